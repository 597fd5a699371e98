//! The listeners of a server. Each is declared by its row in [`TABLE`]: [`Setting::listens`].
//!
//! Invariant: everything that is done with a listener follows from its row. A [`Protocol`] has no default:
//! code that matches on one names each.

use std::fmt;
use std::net::SocketAddr;

use super::{Setting, Settings, TABLE};
use logpond_host::telemetry::{INTAKES, Intake};

/// How a listener is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// Connections.
    Tcp,
}

/// Clients that are admitted, and the encryption of their connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Tokens and TLS as the HTTP interface has them.
    Http,
    /// None: any client is admitted.
    Open,
    /// TLS, with certificates of clients if the rules for clients need them.
    ClientCertificates,
    /// TLS between the nodes of a cluster, if they have certificates.
    Nodes,
}

/// The boundaries of records in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A record is a line.
    Lines,
    /// A record has its length before it, or ends with a NUL or a line end (RFC 6587).
    Frames,
}

/// The form of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A line of any form.
    Line,
    /// A message of syslog.
    Syslog,
    /// A message of GELF.
    Gelf,
}

/// Records in a stream, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamProtocol {
    /// The boundaries of records.
    pub framing: Framing,
    /// The form of a record.
    pub form: Form,
    /// True if records are acknowledged once they are durable.
    pub is_durable: bool,
    /// The name of the protocol, for clients of other protocols.
    pub speaks: &'static str,
}

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A stream of records.
    Stream(StreamProtocol),
    /// A record, or several, in a datagram.
    Datagrams(Form),
    /// RELP.
    Relp,
    /// Uploads of journal files.
    Bulk,
    /// The Forward protocol of Fluentd.
    Forward,
    /// HTTP.
    Http,
    /// HTTP/2 for gRPC only.
    Grpc,
    /// Calls between nodes.
    Nodes,
    /// The protocol of Postgres, for statements of SQL.
    Postgres,
}

impl Protocol {
    const fn transport(self) -> Transport {
        match self {
            Protocol::Datagrams(_) => Transport::Udp,
            Protocol::Stream(_)
            | Protocol::Relp
            | Protocol::Bulk
            | Protocol::Forward
            | Protocol::Http
            | Protocol::Grpc
            | Protocol::Nodes
            | Protocol::Postgres => Transport::Tcp,
        }
    }
}

/// A listener.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    /// The intake that counts its records.
    pub intake: Intake,
    /// The name of its setting.
    pub name: &'static str,
    /// The port, if none is given.
    pub port: u16,
    /// The protocol.
    pub protocol: Protocol,
    /// The clients that are admitted.
    pub protection: Protection,
    /// The heading of its line in the block of the start; listeners beside each other may share one.
    pub title: &'static str,
    /// Its address in that block, with `{}` for the address.
    pub shown: &'static str,
    /// True if it is of records, rather than of queries or of other nodes.
    pub is_of_records: bool,
}

/// A listener for records, with the port that it has if none is given.
pub(super) const fn listener(intake: Intake, port: u16, protocol: Protocol) -> Listener {
    Listener {
        intake,
        name: "",
        port,
        protocol,
        protection: match protocol {
            Protocol::Http | Protocol::Grpc | Protocol::Postgres => Protection::Http,
            Protocol::Nodes => Protection::Nodes,
            Protocol::Stream(_)
            | Protocol::Datagrams(_)
            | Protocol::Relp
            | Protocol::Bulk
            | Protocol::Forward => Protection::Open,
        },
        title: "",
        shown: match protocol.transport() {
            Transport::Udp => "{} udp",
            Transport::Tcp => "{} tcp",
        },
        is_of_records: true,
    }
}

/// A stream that is not acknowledged.
pub(super) const fn stream(framing: Framing, form: Form, speaks: &'static str) -> StreamProtocol {
    StreamProtocol {
        framing,
        form,
        is_durable: false,
        speaks,
    }
}

impl StreamProtocol {
    /// Its records are acknowledged.
    pub(super) const fn durable(mut self) -> StreamProtocol {
        self.is_durable = true;
        self
    }
}

impl Listener {
    /// It is shown so in the block of the start.
    pub(super) const fn shown(mut self, title: &'static str, shown: &'static str) -> Listener {
        (self.title, self.shown) = (title, shown);
        self
    }

    /// It has this heading in the block of the start.
    pub(super) const fn titled(self, title: &'static str) -> Listener {
        let shown = self.shown;
        self.shown(title, shown)
    }

    /// Its connections are encrypted.
    pub(super) const fn encrypted(mut self) -> Listener {
        self.protection = Protection::ClientCertificates;
        self
    }

    /// It is not of records.
    pub(super) const fn beside_records(mut self) -> Listener {
        self.is_of_records = false;
        self
    }

    /// How it is reached.
    pub const fn transport(&self) -> Transport {
        self.protocol.transport()
    }
}

/// All listeners, in the order in which they are bound.
pub fn listeners() -> impl Iterator<Item = &'static Listener> {
    TABLE.iter().filter_map(Setting::listener)
}

/// Those of records.
pub(super) fn record_listeners() -> impl Iterator<Item = &'static Listener> {
    listeners().filter(|listener| listener.is_of_records)
}

/// The port of a listener, if none is given.
pub(super) fn port_of(name: &str) -> u16 {
    let mut all = listeners();
    all.find(|listener| listener.name == name)
        .map_or(0, |listener| listener.port)
}

/// The addresses of listeners for records; a listener that is off has none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IntakeAddresses([Option<SocketAddr>; INTAKES.len()]);

impl Default for IntakeAddresses {
    fn default() -> IntakeAddresses {
        IntakeAddresses([None; INTAKES.len()])
    }
}

impl IntakeAddresses {
    /// All listeners for records at one address, which only makes sense with port 0.
    pub fn all_at(address: SocketAddr) -> IntakeAddresses {
        let mut addresses = IntakeAddresses::default();
        for listener in record_listeners() {
            addresses.set(listener.intake, Some(address));
        }
        addresses
    }

    /// The address of an intake.
    pub fn of(&self, intake: Intake) -> Option<SocketAddr> {
        self.0[intake as usize]
    }

    /// Gives an intake an address, or none.
    pub fn set(&mut self, intake: Intake, address: Option<SocketAddr>) {
        self.0[intake as usize] = address;
    }

    /// The listeners that are on, in the order of the table.
    pub fn on(&self) -> impl Iterator<Item = (&'static Listener, SocketAddr)> {
        record_listeners().filter_map(|listener| Some((listener, self.of(listener.intake)?)))
    }
}

impl fmt::Debug for IntakeAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self
            .on()
            .map(|(listener, address)| (listener.name, address));
        f.debug_map().entries(on).finish()
    }
}

/// A listener that is on.
#[derive(Clone, Copy, Debug)]
pub struct EnabledListener {
    /// The listener.
    pub listener: &'static Listener,
    /// Its address.
    pub address: SocketAddr,
    /// True if a setting names the address. If not, the server starts without it if it cannot be bound.
    pub is_asked_for: bool,
}

impl Settings {
    /// The listeners for records that are on. Those that a setting names are first: a default address must
    /// not take their ports.
    pub fn intakes(&self) -> Vec<EnabledListener> {
        let on = self.listeners.on();
        let mut wanted: Vec<EnabledListener> = on
            .map(|(listener, address)| EnabledListener {
                listener,
                address,
                is_asked_for: !self.default_listeners.contains(&listener.name),
            })
            .collect();
        wanted.sort_by_key(|wanted| !wanted.is_asked_for);
        wanted
    }

    /// True if a listener that is on knows its clients by their certificates.
    pub fn knows_clients(&self) -> bool {
        let mut on = self.listeners.on();
        on.any(|(listener, _)| listener.protection == Protection::ClientCertificates)
    }
}
