//! Syslog over RELP: a transaction for each message, acknowledged one by one.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::{Listener, Promise, Record, Reply, Session, Source, connect, syslog};
use crate::run::Outcome;

pub(super) const SOURCE: Source = Source {
    name: "relp",
    promise: Promise::Once,
    listener: Some(Listener {
        flag: "--relp",
        port: 2514,
    }),
    open,
};

/// The offer of a client.
const OFFER: &str = "relp_version=0\nrelp_software=torture\ncommands=syslog";

/// The code of a message that the node cannot store now.
const BUSY: &str = "500";

/// The longest response that is read.
const RESPONSE_BYTES_MAX: usize = 64 << 10;

struct RelpSession {
    stream: BufReader<TcpStream>,
    /// The number of the last transaction.
    last: u64,
}

fn open(address: &str) -> io::Result<Box<dyn Session>> {
    let mut session = RelpSession {
        stream: BufReader::new(connect(address)?),
        last: 1,
    };
    let offer = format!("1 open {} {OFFER}\n", OFFER.len());
    session.stream.get_mut().write_all(offer.as_bytes())?;
    let (number, text) = read_response(&mut session.stream)?;
    if number == 1 && text.starts_with("200") {
        Ok(Box::new(session))
    } else {
        Err(io::Error::other(format!("{number}: {text}")))
    }
}

impl Session for RelpSession {
    fn send(&mut self, records: &[Record]) -> Outcome<Reply> {
        let first = self.last + 1;
        let mut frames = String::new();
        for record in records {
            self.last += 1;
            let (number, message) = (self.last, syslog::message(record));
            frames += &format!("{number} syslog {} {message}\n", message.len());
        }
        if self.stream.get_mut().write_all(frames.as_bytes()).is_err() {
            return Ok(Reply::UNKNOWN);
        }
        for (index, expected) in (first..=self.last).enumerate() {
            match read_response(&mut self.stream) {
                Ok((number, text)) if number == expected && text.starts_with("200") => {}
                // The server closes the session by a hint of this number.
                Ok((0, _)) | Err(_) => return Ok(Reply::acknowledged(index)),
                // This message was not stored; later ones may be.
                Ok((number, text)) if number == expected && text.starts_with(BUSY) => {
                    return Ok(Reply::acknowledged(index));
                }
                Ok((number, text)) => {
                    return Err(format!(
                        "message {expected} was answered by {number}: {text}"
                    ));
                }
            }
        }
        Ok(Reply::acknowledged(records.len()))
    }
}

/// Reads `NUMBER rsp LENGTH TEXT` and the end of the line; a number and the text.
fn read_response(stream: &mut impl BufRead) -> io::Result<(u64, String)> {
    let number = read_number(stream)?;
    let mut command = Vec::new();
    stream.take(32).read_until(b' ', &mut command)?;
    let length = read_number(stream)? as usize;
    if length > RESPONSE_BYTES_MAX {
        return Err(io::Error::other("a response is too long"));
    }
    // The text and the end of the line; after a length of 0 the end is read already.
    let mut text = vec![0; if length == 0 { 0 } else { length + 1 }];
    stream.read_exact(&mut text)?;
    Ok((number, String::from_utf8_lossy(&text).trim_end().to_owned()))
}

/// Reads digits and the byte behind them.
fn read_number(stream: &mut impl BufRead) -> io::Result<u64> {
    let mut number = 0_u64;
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        match byte[0] {
            digit @ b'0'..=b'9' if number < 1 << 40 => {
                number = number * 10 + u64::from(digit - b'0');
            }
            b' ' | b'\n' => return Ok(number),
            _ => return Err(io::Error::other("no number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_read_to_their_ends() {
        let mut bytes = &b"1 rsp 9 200 OK\nab\n12 rsp 6 200 OK\n0 serverclose 0\n"[..];
        let mut next = || read_response(&mut bytes).expect("a response");
        assert_eq!(next(), (1, "200 OK\nab".to_owned()));
        assert_eq!(next(), (12, "200 OK".to_owned()));
        assert_eq!(next(), (0, String::new()));
        assert!(read_response(&mut bytes).is_err());
    }
}
