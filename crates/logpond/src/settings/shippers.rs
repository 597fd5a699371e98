//! Where what ships logs to other systems is taken at: one table of listeners.

use std::net::SocketAddr;

use crate::telemetry::Intake;

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
}

const fn shipper(
    intake: Intake,
    name: &'static str,
    flag: &'static str,
    title: &'static str,
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
    }
}

/// All of them.
pub const SHIPPERS: [Shipper; 3] = [
    shipper(
        Intake::GelfUdp,
        "gelf-udp",
        "--gelf-udp",
        "GELF",
        12201,
        Transport::Udp,
    ),
    shipper(
        Intake::GelfTcp,
        "gelf-tcp",
        "--gelf-tcp",
        "GELF",
        12201,
        Transport::Tcp,
    ),
    shipper(
        Intake::Fluent,
        "fluent",
        "--fluent",
        "Fluent",
        24224,
        Transport::Tcp,
    ),
];

/// An address for each of [`SHIPPERS`]; what is off has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
