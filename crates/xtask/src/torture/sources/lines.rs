//! Sessions over TCP without acknowledgements: the bytes of a batch at once.

use std::io::{self, Write};
use std::net::TcpStream;

use super::{Record, Reply, Session, connect};
use crate::run::Outcome;

/// A connection, and the bytes of a record.
struct TcpSession {
    stream: TcpStream,
    encode: fn(&Record) -> Vec<u8>,
}

/// Connects to an address, for records in this form.
pub(super) fn open(address: &str, encode: fn(&Record) -> Vec<u8>) -> io::Result<Box<dyn Session>> {
    let stream = connect(address)?;
    Ok(Box::new(TcpSession { stream, encode }))
}

impl Session for TcpSession {
    fn send(&mut self, records: &[Record]) -> Outcome<Reply> {
        let bytes: Vec<u8> = records.iter().flat_map(self.encode).collect();
        match self.stream.write_all(&bytes) {
            Ok(()) => Ok(Reply::SENT),
            Err(_) => Ok(Reply::UNKNOWN),
        }
    }
}
