//! `logpond proxy` as it is typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// Flags of `logpond proxy`.
#[derive(Debug, Args)]
#[command(
    after_help = "Prints a line of JSON on standard output for each connection that has ended.\n\
                        Certificates are read again when their files change, and at SIGHUP; bad ones \
                        leave what was there.\n\
                        SIGTERM ends it: connections get --drain-timeout to end by themselves, \
                        a second signal cuts them.\n\
                        Exit status: 0 it was ended, 2 it could not start."
)]
pub struct Proxy {
    /// Where TLS is taken in: IP:PORT; port 0 is any free one.
    #[arg(long, value_name = "ADDR")]
    pub listen: SocketAddr,
    /// A certificate in PEM with those between it and its authority; may be given several times. Clients
    /// are shown the one with the name that they ask for, and the first if none has it.
    #[arg(long, value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub cert: Vec<PathBuf>,
    /// The private key of each certificate, in the same order.
    #[arg(long, value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub key: Vec<PathBuf>,
    /// Where connections go: unix:PATH or tcp:HOST:PORT. Several take turns; another one is tried where
    /// one takes no connection.
    #[arg(long, value_name = "UPSTREAM", required = true)]
    pub to: Vec<String>,
    /// A protocol that the application speaks, such as h2 or http/1.1, the preferred first; may be given
    /// several times [default: clients get no answer about it].
    #[arg(long, value_name = "PROTOCOL")]
    pub alpn: Vec<String>,
    /// Refuse clients that ask for a name that no certificate has, or for none.
    #[arg(long)]
    pub strict_sni: bool,
    /// Tell upstreams whom they talk to, by a header of the PROXY protocol.
    #[arg(long, value_name = "VERSION", value_enum)]
    pub proxy_protocol: Option<ProxyVersion>,
    /// Connections from this network begin with a header of the PROXY protocol, v1 or v2, which is
    /// believed: ADDRESS or ADDRESS/BITS; may be given several times.
    #[arg(long, value_name = "NETWORK")]
    pub accept_proxy: Vec<String>,
    /// Threads that serve connections [default: one for each core].
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// How long a handshake may take.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub handshake_timeout: String,
    /// How long connecting to an upstream may take.
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    pub connect_timeout: String,
    /// How long a connection may be silent.
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    pub idle_timeout: String,
    /// How long it may be silent once one side has ended.
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub half_close_timeout: String,
    /// How long connections may go on after SIGTERM.
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub drain_timeout: String,
    /// Connections at a time [default: 10000, or what the limit of open files allows].
    #[arg(long, value_name = "N")]
    pub connections_max: Option<usize>,
    /// Of these from one address, or from one /64 of IPv6.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub connections_per_address_max: usize,
}

/// A version of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProxyVersion {
    /// A line with the addresses.
    V1,
    /// Addresses, the name that was asked for, and what TLS agreed on.
    V2,
}
