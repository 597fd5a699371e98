//! The Forward protocol of Fluentd: a chunk of events for each batch, which the node acknowledges by its id.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::{Listener, Promise, Record, Reply, Session, Source, connect};
use crate::run::Outcome;

pub(super) const SOURCE: Source = Source {
    name: "fluent",
    promise: Promise::Once,
    listener: Some(Listener {
        flag: "--fluent",
        port: 24224,
    }),
    open: |address| Ok(Box::new(FluentSession(connect(address)?))),
};

/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;

/// The longest text of MessagePack with its length in its first byte, which is the form of the answer.
const ID_BYTES_MAX: usize = 31;

struct FluentSession(TcpStream);

impl Session for FluentSession {
    fn send(&mut self, records: &[Record]) -> Outcome<Reply> {
        let id = chunk_id(records);
        if self.0.write_all(&message(records, &id)).is_err() {
            return Ok(Reply::UNKNOWN);
        }
        let expected = acknowledgement(&id);
        let mut answer = vec![0; expected.len()];
        match self.0.read_exact(&mut answer) {
            Ok(()) if answer == expected => Ok(Reply::acknowledged(records.len())),
            Ok(()) => Err(format!("chunk {id} was answered by {answer:?}")),
            Err(_) => Ok(Reply::UNKNOWN),
        }
    }
}

/// The same id for the same records, so that the node knows a chunk that is sent again. It has at most
/// [`ID_BYTES_MAX`] bytes.
fn chunk_id(records: &[Record]) -> String {
    let id = records
        .first()
        .map(|first| format!("{}-{}", first.client, first.value));
    id.unwrap_or_default()
}

/// The bytes that acknowledge a chunk: `{"ack": id}`.
fn acknowledgement(id: &str) -> Vec<u8> {
    debug_assert!(id.len() <= ID_BYTES_MAX, "{id}");
    let mut bytes = b"\x81\xa3ack".to_vec();
    bytes.push(0xa0 | id.len() as u8);
    bytes.extend(id.as_bytes());
    bytes
}

/// `[tag, [[time, event], …], {"chunk": id}]` as MessagePack.
fn message(records: &[Record], id: &str) -> Vec<u8> {
    let mut bytes = vec![0x93];
    put_text(&mut bytes, "torture");
    bytes.push(0xdc);
    bytes.extend((records.len() as u16).to_be_bytes());
    for record in records {
        bytes.extend([0x92, 0xd7, 0x00]);
        bytes.extend(((record.time.0 / SECOND_NS) as u32).to_be_bytes());
        bytes.extend(((record.time.0 % SECOND_NS) as u32).to_be_bytes());
        bytes.push(0x81);
        put_text(&mut bytes, "log");
        put_text(&mut bytes, &record.object());
    }
    bytes.push(0x81);
    put_text(&mut bytes, "chunk");
    put_text(&mut bytes, id);
    bytes
}

/// A text of up to 64 KiB.
fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(0xda);
    bytes.extend((text.len() as u16).to_be_bytes());
    bytes.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torture::sources::record;

    #[test]
    fn a_chunk_has_the_id_that_is_acknowledged() {
        let records = [record(1), record(2)];
        let id = chunk_id(&records);
        let message = message(&records, &id);
        assert!(message.ends_with(id.as_bytes()));
        assert!(acknowledgement(&id).ends_with(id.as_bytes()));
        assert_eq!(message[..1], [0x93]);
    }
}
