//! Protocols by which clients send beside the push of the product: a file for each, and a row of [`SOURCES`].

mod bulk;
mod durable;
mod fast;
mod fluent;
mod gelf;
mod lines;
mod loki;
mod otlp;
mod relp;
mod request;
mod splunk;
mod syslog;

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use logpond_record::Timestamp;

use crate::run::Outcome;

/// How long a client waits for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a client waits for an acknowledgement before it takes it as lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// All protocols.
pub(super) const SOURCES: [&Source; 11] = [
    &bulk::SOURCE,
    &loki::SOURCE,
    &otlp::SOURCE,
    &splunk::SOURCE,
    &fluent::SOURCE,
    &relp::SOURCE,
    &durable::SOURCE,
    &fast::SOURCE,
    &gelf::SOURCE,
    &syslog::TCP,
    &syslog::UDP,
];

/// A protocol.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) promise: Promise,
    /// Its listener; it sends to the listener of HTTP if there is none.
    pub(super) listener: Option<Listener>,
    /// Connects to an address.
    pub(super) open: fn(&str) -> io::Result<Box<dyn Session>>,
}

/// A listener of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listener {
    /// The flag that sets its address.
    pub(super) flag: &'static str,
    /// Its port at the address of the node.
    pub(super) port: u16,
}

/// The promise of a protocol to its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// Nothing is acknowledged. A record is stored at most once, as it was sent.
    Nothing,
    /// An acknowledged record is durable. A record that is sent again is stored again.
    Durable,
    /// The same, and a record that is sent again to the same node is stored once.
    Once,
}

/// A record of a batch.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) client: String,
    pub(super) number: u64,
    pub(super) value: String,
    pub(super) pad: String,
    /// Its own time, for protocols that send one. It is finer than a second.
    pub(super) time: Timestamp,
}

impl Record {
    /// The record as an object, without its time.
    fn object(&self) -> String {
        let Record {
            client,
            number,
            value,
            pad,
            ..
        } = self;
        format!(
            "{{\"_msg\":\"torture\",\"client\":\"{client}\",\"n\":{number},\"v\":\"{value}\",\"pad\":\"{pad}\"}}"
        )
    }

    /// Its time in microseconds, as RFC 3339 writes it.
    fn time_text(&self) -> String {
        // The text has nine digits behind the point, and the last three are 0.
        let text = self.time.to_string();
        format!("{}Z", &text[..text.len() - 4])
    }
}

/// A connection of a client.
pub(super) trait Session: Send {
    /// Sends records in their order.
    ///
    /// # Errors
    /// An answer that no node may give.
    fn send(&mut self, records: &[Record]) -> Outcome<Reply>;
}

/// The reply to a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// Records that were acknowledged, from the first one on.
    pub(super) acknowledged: usize,
    /// The fate of all others.
    pub(super) others: Others,
}

/// The fate of records that were not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    /// The node stored none of them.
    Refused,
    /// Nobody knows; the connection has ended.
    Unknown,
    /// They were sent, and the protocol has no acknowledgements.
    Sent,
}

impl Reply {
    /// All records were acknowledged, or the first of them and the connection ended.
    fn acknowledged(count: usize) -> Reply {
        Reply {
            acknowledged: count,
            others: Others::Unknown,
        }
    }

    const REFUSED: Reply = Reply {
        acknowledged: 0,
        others: Others::Refused,
    };

    const UNKNOWN: Reply = Reply {
        acknowledged: 0,
        others: Others::Unknown,
    };

    const SENT: Reply = Reply {
        acknowledged: 0,
        others: Others::Sent,
    };
}

/// Connects over TCP.
fn connect(address: &str) -> io::Result<TcpStream> {
    let parsed = address.parse().map_err(io::Error::other)?;
    let stream = TcpStream::connect_timeout(&parsed, CONNECT_TIMEOUT)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
fn record(number: u64) -> Record {
    Record {
        client: "c-1".to_owned(),
        number,
        value: "00ff".to_owned(),
        pad: "x".to_owned(),
        time: Timestamp(1_750_000_000_123_456_000),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_ports_are_unique() {
        let names: BTreeSet<&str> = SOURCES.iter().map(|source| source.name).collect();
        assert_eq!(names.len(), SOURCES.len());
        let listeners: Vec<Listener> = SOURCES.iter().filter_map(|s| s.listener).collect();
        let flags: BTreeSet<&str> = listeners.iter().map(|l| l.flag).collect();
        let ports: BTreeSet<u16> = listeners.iter().map(|l| l.port).collect();
        assert_eq!(
            (flags.len(), ports.len()),
            (listeners.len(), listeners.len())
        );
    }

    #[test]
    fn a_record_is_an_object_with_a_time_in_microseconds() {
        let record = record(7);
        let object: serde_json::Value = serde_json::from_str(&record.object()).expect("an object");
        assert_eq!(object["n"], 7);
        assert_eq!(object["v"], "00ff");
        assert_eq!(record.time_text(), "2025-06-15T15:06:40.123456Z");
    }
}
