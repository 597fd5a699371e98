//! Everything that a server listens at on the network: one table.

use std::net::SocketAddr;

use super::{SHIPPERS, Settings, Shipper, Transport};
use logpond_host::telemetry::Intake;

/// Who is let in, and how the connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Tokens and TLS as the HTTP interface has them.
    Http,
    /// None: whoever can connect.
    Open,
    /// TLS, with certificates of clients where these are asked for.
    ClientCertificates,
    /// TLS between the nodes of a cluster, if they have certificates.
    Nodes,
}

/// A listener.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    /// What it takes.
    pub intake: Intake,
    /// Name of the setting.
    pub name: &'static str,
    /// The flag, with its dashes.
    pub flag: &'static str,
    /// The port, where none is named.
    pub port: u16,
    /// How it is reached.
    pub transport: Transport,
    /// Who is let in.
    pub protection: Protection,
}

const fn listener(
    intake: Intake,
    (name, flag): (&'static str, &'static str),
    port: u16,
    transport: Transport,
    protection: Protection,
) -> Listener {
    Listener {
        intake,
        name,
        flag,
        port,
        transport,
        protection,
    }
}

/// The listeners that are no [`SHIPPERS`].
const OWN: [Listener; 10] = {
    use Protection::{ClientCertificates, Http, Nodes, Open};
    use Transport::{Tcp, Udp};
    [
        listener(Intake::Http, ("http", "--http"), 7650, Tcp, Http),
        listener(Intake::Fast, ("fast", "--fast"), 7651, Tcp, Open),
        listener(Intake::Durable, ("durable", "--durable"), 7652, Tcp, Open),
        listener(
            Intake::Bulk,
            ("bulk", "--bulk"),
            super::BULK_PORT,
            Tcp,
            Open,
        ),
        listener(
            Intake::SyslogUdp,
            ("syslog-udp", "--syslog-udp"),
            5514,
            Udp,
            Open,
        ),
        listener(
            Intake::SyslogTcp,
            ("syslog-tcp", "--syslog-tcp"),
            5514,
            Tcp,
            Open,
        ),
        // RFC 5425, section 4.1.
        listener(
            Intake::SyslogTls,
            ("syslog-tls", "--syslog-tls"),
            6514,
            Tcp,
            ClientCertificates,
        ),
        listener(Intake::Relp, ("relp", "--relp"), 2514, Tcp, Open),
        // That behind the one of RELP.
        listener(
            Intake::RelpTls,
            ("relp-tls", "--relp-tls"),
            2515,
            Tcp,
            ClientCertificates,
        ),
        listener(
            Intake::Cluster,
            ("gossip", "--gossip"),
            super::GOSSIP_PORT,
            Tcp,
            Nodes,
        ),
    ]
};

const fn of_shipper(shipper: &Shipper) -> Listener {
    let protection = match shipper.is_http {
        true => Protection::Http,
        false => Protection::Open,
    };
    listener(
        shipper.intake,
        (shipper.name, shipper.flag),
        shipper.port,
        shipper.transport,
        protection,
    )
}

/// All listeners, in the order in which they are bound.
pub fn listeners() -> impl Iterator<Item = Listener> {
    OWN.into_iter().chain(SHIPPERS.iter().map(of_shipper))
}

/// The port of a listener, where none is named.
pub(super) fn port_of(name: &str) -> u16 {
    listeners()
        .find(|listener| listener.name == name)
        .map_or(0, |listener| listener.port)
}

/// A listener that is on.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Which one.
    pub listener: Listener,
    /// Where it is to listen.
    pub address: SocketAddr,
    /// Whether somebody asked for it. If not, the server starts without it where it cannot be had.
    pub is_asked_for: bool,
}

impl Settings {
    /// The listeners for records that are on, those that were asked for first: what is on only by
    /// default must not take their ports.
    pub fn intakes(&self) -> Vec<Wanted> {
        let wanted = listeners().filter_map(|listener| {
            let address = self.address_of(listener.intake)?;
            Some(Wanted {
                listener,
                address,
                is_asked_for: !self.default_listeners.contains(&listener.name),
            })
        });
        let mut wanted: Vec<Wanted> = wanted.collect();
        wanted.sort_by_key(|wanted| !wanted.is_asked_for);
        wanted
    }

    /// Where records of an intake are taken, if they are.
    fn address_of(&self, intake: Intake) -> Option<SocketAddr> {
        match intake {
            Intake::Fast => self.fast,
            Intake::Durable => self.durable,
            Intake::Bulk => self.bulk,
            Intake::SyslogUdp => self.syslog_udp,
            Intake::SyslogTcp => self.syslog_tcp,
            Intake::SyslogTls => self.syslog_tls,
            Intake::Relp => self.relp,
            Intake::RelpTls => self.relp_tls,
            intake => self.shippers.of(intake),
        }
    }
}
