//! Syslog of RFC 5424 over TCP, in lines, and over UDP. Neither is acknowledged.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use super::{Listener, Promise, Record, Reply, Session, Source, lines};
use crate::run::Outcome;

pub(super) const TCP: Source = Source {
    name: "syslog-tcp",
    promise: Promise::Nothing,
    listener: Some(Listener {
        flag: "--syslog-tcp",
        port: 5514,
    }),
    open: |address| lines::open(address, |record| (message(record) + "\n").into_bytes()),
};

pub(super) const UDP: Source = Source {
    name: "syslog-udp",
    promise: Promise::Nothing,
    listener: Some(Listener {
        flag: "--syslog-udp",
        port: 5515,
    }),
    open: open_udp,
};

/// A message: a header with a time, and the record as an object.
pub(super) fn message(record: &Record) -> String {
    let (time, object) = (record.time_text(), record.object());
    format!("<14>1 {time} torture app - - - {object}")
}

/// A socket that sends to one address.
struct UdpSession(UdpSocket);

fn open_udp(address: &str) -> io::Result<Box<dyn Session>> {
    let to: SocketAddr = address.parse().map_err(io::Error::other)?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(to)?;
    Ok(Box::new(UdpSession(socket)))
}

impl Session for UdpSession {
    fn send(&mut self, records: &[Record]) -> Outcome<Reply> {
        let sent = records.iter().try_for_each(|record| {
            let sent = self.0.send(message(record).as_bytes());
            sent.map(drop)
        });
        match sent {
            Ok(()) => Ok(Reply::SENT),
            Err(_) => Ok(Reply::UNKNOWN),
        }
    }
}
