//! Raw lines over TCP. The node acknowledges them in their order: `OK COUNT` for so many more lines. `ERR`
//! ends the connection; the fate of all other lines is unknown.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use super::{Listener, Promise, Record, Reply, Session, Source, connect};
use crate::run::Outcome;

pub(super) const SOURCE: Source = Source {
    name: "durable",
    promise: Promise::Durable,
    listener: Some(Listener {
        flag: "--durable",
        port: 7652,
    }),
    open: |address| Ok(Box::new(DurableSession(BufReader::new(connect(address)?)))),
};

struct DurableSession(BufReader<TcpStream>);

impl Session for DurableSession {
    fn send(&mut self, records: &[Record]) -> Outcome<Reply> {
        let lines: String = records
            .iter()
            .map(|record| record.object() + "\n")
            .collect();
        if self.0.get_mut().write_all(lines.as_bytes()).is_err() {
            return Ok(Reply::UNKNOWN);
        }
        let mut count = 0;
        while count < records.len() {
            let mut line = String::new();
            match self.0.read_line(&mut line) {
                Ok(1..) if line.starts_with("ERR ") => return Ok(Reply::acknowledged(count)),
                Ok(1..) if line.ends_with('\n') => count += read_count(&line)?,
                _ => return Ok(Reply::acknowledged(count)),
            }
        }
        if count == records.len() {
            Ok(Reply::acknowledged(count))
        } else {
            let sent = records.len();
            Err(format!("{count} lines were acknowledged of {sent}"))
        }
    }
}

fn read_count(line: &str) -> Outcome<usize> {
    let count = line.trim_end().strip_prefix("OK ");
    let count = count.and_then(|count| count.parse().ok());
    count.ok_or_else(|| format!("a durable push was answered by {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_read_and_nothing_else() {
        assert_eq!(read_count("OK 20\n"), Ok(20));
        assert!(read_count("NO 20\n").is_err());
    }
}
