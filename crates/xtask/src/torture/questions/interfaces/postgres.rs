//! SQL over the protocol of PostgreSQL: a simple query of a session without a password.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;

use super::{Inquiry, Interface, Row, Rows, Told, complete, connect, incomplete, sql};
use crate::run::Outcome;

pub(super) const ROWS: Interface = Interface {
    name: "postgres",
    is_one_view: true,
    can_be_complete: true,
    ask,
};

/// The port of the listener at the address of a node.
pub(crate) const PORT: u16 = 5432;

/// The code of the error behind an incomplete result.
const INCOMPLETE: &str = "LP001";

/// Version 3.0 of the protocol.
const VERSION: i32 = 196_608;

/// The longest message that is read.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// An error of the server.
#[derive(Debug, Default, PartialEq, Eq)]
struct ServerError {
    code: String,
    text: String,
}

fn ask(inquiry: &mut Inquiry<'_>) -> Told {
    let address = inquiry.run.processes[inquiry.place].address(PORT);
    let mut rows = Rows::default();
    let statement = sql::statement(inquiry);
    let error = query(&address, &statement, |values| {
        let [client, number, value, message] = values else {
            return Err(format!("{address}: a row of other columns: {values:?}"));
        };
        let row = Row {
            client,
            number,
            value,
            message: Some(message),
        };
        rows.add(inquiry, &row)
    });
    match error? {
        None => rows.answer(complete()),
        Some(error) if error.code == INCOMPLETE => rows.answer(incomplete(error.text)),
        Some(error) if sql::is_without_column(&error.text) => rows.answer(complete()),
        Some(error) => Err(format!("{address}: {}: {}", error.code, error.text)),
    }
}

/// Sends a statement in a session of its own; each row goes to `row`. It returns the error, if there is one.
fn query(
    address: &str,
    statement: &str,
    mut row: impl FnMut(&[String]) -> Outcome<()>,
) -> Outcome<Option<ServerError>> {
    let failed = |e: io::Error| format!("{address}: postgres: {e}");
    let mut stream = begin(address).map_err(failed)?;
    let mut error = None;
    let mut is_sent = false;
    loop {
        let (kind, body) = read_message(&mut stream).map_err(failed)?;
        match kind {
            b'D' => row(&read_row(&body).ok_or("a row of another form")?)?,
            b'E' => error = Some(read_error(&body)),
            // Ready for a query: the first time for ours, the second time after it.
            b'Z' if is_sent => return Ok(error),
            b'Z' => {
                is_sent = true;
                let sent = stream.get_mut().write_all(&message(b'Q', statement));
                sent.map_err(failed)?;
            }
            // A session that was refused ends without being ready.
            _ if error.is_some() && !is_sent => return Ok(error),
            _ => {}
        }
    }
}

fn begin(address: &str) -> io::Result<BufReader<TcpStream>> {
    let mut stream = connect(address)?;
    let parameters = b"user\0torture\0database\0logpond\0\0";
    let length = parameters.len() as i32 + 8;
    let mut start = length.to_be_bytes().to_vec();
    start.extend(VERSION.to_be_bytes());
    start.extend(parameters);
    stream.write_all(&start)?;
    Ok(BufReader::new(stream))
}

/// A message with one text.
fn message(kind: u8, text: &str) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((text.len() as i32 + 5).to_be_bytes());
    bytes.extend(text.as_bytes());
    bytes.push(0);
    bytes
}

fn read_message(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
        return Err(io::Error::other(format!("a message of {length} bytes")));
    }
    let mut body = vec![0; length - 4];
    stream.read_exact(&mut body)?;
    Ok((head[0], body))
}

/// The values of a row as texts; an absent value is empty.
fn read_row(mut body: &[u8]) -> Option<Vec<String>> {
    let mut take = |count: usize| {
        let (taken, rest) = body.split_at_checked(count)?;
        body = rest;
        Some(taken)
    };
    let count = u16::from_be_bytes(take(2)?.try_into().ok()?);
    let mut values = Vec::new();
    for _ in 0..count {
        let length = i32::from_be_bytes(take(4)?.try_into().ok()?);
        let value = take(usize::try_from(length).unwrap_or(0))?;
        values.push(String::from_utf8_lossy(value).into_owned());
    }
    Some(values)
}

/// Fields of an error, each a letter and a text that ends with a zero byte.
fn read_error(body: &[u8]) -> ServerError {
    let mut error = ServerError::default();
    for field in body.split(|byte| *byte == 0) {
        let Some((letter, text)) = field.split_first() else {
            continue;
        };
        let text = String::from_utf8_lossy(text).into_owned();
        match letter {
            b'C' => error.code = text,
            b'M' => error.text = text,
            _ => {}
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_are_written() {
        let bytes = message(b'Q', "SELECT 1");
        assert_eq!(
            read_message(&mut &bytes[..]).expect("a message"),
            (b'Q', b"SELECT 1\0".to_vec())
        );
    }

    #[test]
    fn rows_have_values_and_absent_ones() {
        let row = b"\0\x02\0\0\0\x01a\xff\xff\xff\xff";
        assert_eq!(read_row(row), Some(vec!["a".to_owned(), String::new()]));
        assert_eq!(read_row(&row[..8]), None);
    }

    #[test]
    fn an_error_has_a_code_and_a_text() {
        let error = read_error(b"SERROR\0CLP001\0Mit lacks a node\0\0");
        let expected = ServerError {
            code: "LP001".into(),
            text: "it lacks a node".into(),
        };
        assert_eq!(error, expected);
    }
}
