//! Where what ships logs to other systems is taken at: one table of listeners.

use std::fmt;
use std::net::SocketAddr;

use logpond_host::telemetry::Intake;

/// How a listener is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// Connections.
    Tcp,
}

/// A listener for what ships logs to another system.
#[derive(Clone, Copy, Debug)]
pub struct Shipper {
    /// What takes the records.
    pub intake: Intake,
    /// Name of the setting.
    pub name: &'static str,
    /// The flag, with its dashes.
    pub flag: &'static str,
    /// What it speaks, for a person; listeners of one protocol stand together in the table.
    pub title: &'static str,
    /// The port of the other system.
    pub port: u16,
    /// How it is reached.
    pub transport: Transport,
    /// Whether it is encrypted and asks for tokens as HTTP does.
    pub is_http: bool,
}

const fn raw(
    intake: Intake,
    (name, flag, title): (&'static str, &'static str, &'static str),
    port: u16,
    transport: Transport,
) -> Shipper {
    Shipper {
        intake,
        name,
        flag,
        title,
        port,
        transport,
        is_http: false,
    }
}

const fn http(
    intake: Intake,
    (name, flag, title): (&'static str, &'static str, &'static str),
    port: u16,
) -> Shipper {
    Shipper {
        intake,
        name,
        flag,
        title,
        port,
        transport: Transport::Tcp,
        is_http: true,
    }
}

const GELF_UDP: (&str, &str, &str) = ("gelf-udp", "--gelf-udp", "GELF");
const GELF_TCP: (&str, &str, &str) = ("gelf-tcp", "--gelf-tcp", "GELF");
const FLUENT: (&str, &str, &str) = ("fluent", "--fluent", "Fluent");
const OTLP_GRPC: (&str, &str, &str) = ("otlp-grpc", "--otlp-grpc", "OTLP");
const OTLP_HTTP: (&str, &str, &str) = ("otlp-http", "--otlp-http", "OTLP/HTTP");
const LOKI: (&str, &str, &str) = ("loki", "--loki", "Loki");
const ELASTIC: (&str, &str, &str) = ("elasticsearch", "--elasticsearch", "Elastic");
const SPLUNK: (&str, &str, &str) = ("splunk", "--splunk", "Splunk");

/// All of them.
pub const SHIPPERS: [Shipper; 8] = [
    raw(Intake::GelfUdp, GELF_UDP, 12201, Transport::Udp),
    raw(Intake::GelfTcp, GELF_TCP, 12201, Transport::Tcp),
    raw(Intake::Fluent, FLUENT, 24224, Transport::Tcp),
    http(Intake::OtlpGrpc, OTLP_GRPC, 4317),
    http(Intake::Otlp, OTLP_HTTP, 4318),
    http(Intake::Loki, LOKI, 3100),
    http(Intake::Elastic, ELASTIC, 9200),
    http(Intake::Splunk, SPLUNK, 8088),
];

/// An address for each of [`SHIPPERS`]; what is off has none.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ShipperAddresses(pub [Option<SocketAddr>; SHIPPERS.len()]);

impl ShipperAddresses {
    /// What is on, in the order of the table.
    pub fn on(&self) -> impl Iterator<Item = (&'static Shipper, SocketAddr)> {
        let each = SHIPPERS.iter().zip(self.0);
        each.filter_map(|(shipper, address)| Some((shipper, address?)))
    }

    /// The address of an intake.
    pub fn of(&self, intake: Intake) -> Option<SocketAddr> {
        let mut on = self.on();
        on.find_map(|(shipper, address)| (shipper.intake == intake).then_some(address))
    }
}

impl fmt::Debug for ShipperAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.on().map(|(shipper, address)| (shipper.name, address));
        f.debug_map().entries(on).finish()
    }
}
