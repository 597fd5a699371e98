//! `logpond proxy` as it is typed.

mod acme;
mod clients;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Access;
use logpond_settings::ProxyVersion;

pub use acme::ProxyAcme;
pub use clients::ProxyClients;

/// Flags of `logpond proxy`.
#[derive(Debug, Args)]
#[command(
    after_help = "Gives a line of JSON for each connection that has ended.\n\
                        Settings and certificates are read again when their files change, and at \
                        SIGHUP; bad ones leave what was there.\n\
                        SIGTERM ends it: connections get --drain-timeout to end by themselves, \
                        a second signal cuts them. SIGUSR2 starts the program anew, which takes over.\n\
                        Exit status: 0 it was ended, 2 it could not start."
)]
pub struct Proxy {
    /// The frontend, where it is told by flags.
    #[command(flatten)]
    pub frontend: ProxyFrontend,
    /// Settings file whose [[proxy]] sections are the frontends; their keys are the flags above
    /// [default: /etc/logpond/logpond.toml, then ~/.config/logpond/logpond.toml].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "listen")]
    pub config: Option<PathBuf>,
    /// Threads that serve connections [default: one for each core].
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub workers: Option<usize>,
    /// What may wait in all connections for sides that do not take it; beyond it connections end
    /// [default: a 16th of memory].
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub waiting_bytes_max: Option<String>,
    /// Where operators reach it by HTTP, on this machine: /metrics, /-/reload, /-/healthy,
    /// /api/v1/proxy/clients, /api/v1/proxy/upstreams [default: nowhere].
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<SocketAddr>,
    /// A name under which --admin may be asked, beside IP addresses, localhost and this machine's names; may
    /// be given several times.
    #[arg(long, value_name = "NAME", requires = "admin", hide_short_help = true)]
    pub admin_host: Vec<String>,
    /// Let other machines reach --admin, where nothing is encrypted or authenticated.
    #[arg(long, requires = "admin", hide_short_help = true)]
    pub insecure: bool,
    /// Send records of connections to these servers, acknowledged, instead of printing them.
    #[arg(long, value_name = "URL[,URL...]", value_delimiter = ',')]
    pub records: Vec<String>,
    /// Keep records in this directory until a server has them, up to 1 GiB; then new ones are dropped.
    #[arg(long, value_name = "DIR", requires = "records", value_hint = ValueHint::DirPath, hide_short_help = true)]
    pub records_spool: Option<PathBuf>,
    /// What is shown to servers that records are sent to.
    #[command(flatten)]
    pub access: Access,
    /// Once it listens, go on as this user, who must be able to read certificates and keys when they change.
    #[arg(long, value_name = "USER[:GROUP]")]
    pub user: Option<String>,
    /// Once it listens, read nothing but what it was given and what programs need to start, write only
    /// --records-spool, listen nowhere else, and make no calls that only intruders make; needs Linux 6.7
    /// with Landlock.
    #[arg(long, hide_short_help = true)]
    pub sandbox: bool,
    /// How long connections may go on after SIGTERM.
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub drain_timeout: String,
}

/// Flags of one frontend.
#[derive(Debug, Args)]
pub struct ProxyFrontend {
    /// Where TLS is taken in: IP:PORT; port 0 is any free one; may be given several times.
    #[arg(long, value_name = "ADDR", requires = "to")]
    pub listen: Vec<SocketAddr>,
    /// A certificate in PEM with those between it and its authority; may be given several times. Clients
    /// are shown the one with the name that they ask for, and the first if none has it.
    #[arg(long, value_name = "FILE", requires_all = ["listen", "key"], value_hint = ValueHint::FilePath)]
    pub cert: Vec<PathBuf>,
    /// The private key of each certificate, in the same order.
    #[arg(long, value_name = "FILE", requires_all = ["listen", "cert"], value_hint = ValueHint::FilePath)]
    pub key: Vec<PathBuf>,
    /// A certificate that is ordered.
    #[command(flatten)]
    pub acme: ProxyAcme,
    /// Where connections go: HOST:PORT or unix:PATH. Several take turns; another one is tried where
    /// one takes no connection.
    #[arg(long, value_name = "UPSTREAM", requires = "listen")]
    pub to: Vec<String>,
    /// Connect to upstreams this often without a client, and pass over those that take no connection
    /// [default: only clients' connections tell].
    #[arg(
        long,
        value_name = "DURATION",
        requires = "listen",
        hide_short_help = true
    )]
    pub check_interval: Option<String>,
    /// Protocols that the application speaks, such as h2,http/1.1, the preferred first; may be given
    /// several times [default: clients get no answer about it].
    #[arg(
        long,
        value_name = "PROTOCOL[,PROTOCOL...]",
        requires = "listen",
        value_delimiter = ','
    )]
    pub alpn: Vec<String>,
    /// Refuse clients that ask for a name that no certificate has, or for none.
    #[arg(long, requires = "listen", hide_short_help = true)]
    pub strict_sni: bool,
    /// A secret of 32 to 4096 bytes: processes that have the same resume each other's sessions
    /// [default: each its own].
    #[arg(long, value_name = "FILE", requires = "listen", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub ticket_secret: Option<PathBuf>,
    /// Which clients are let in by certificates.
    #[command(flatten)]
    pub clients: ProxyClients,
    /// Tell upstreams whom they talk to, by a header of the PROXY protocol.
    #[arg(long, value_name = "VERSION", value_enum, requires = "listen")]
    pub proxy_protocol: Option<ProxyVersion>,
    /// Connections from this network begin with a header of the PROXY protocol, v1 or v2, which is
    /// believed: ADDRESS or ADDRESS/BITS; may be given several times.
    #[arg(
        long,
        value_name = "NETWORK",
        requires = "listen",
        hide_short_help = true
    )]
    pub accept_proxy: Vec<String>,
    /// How long a handshake may take [default: 10s].
    #[arg(
        long,
        value_name = "DURATION",
        requires = "listen",
        hide_short_help = true
    )]
    pub handshake_timeout: Option<String>,
    /// How long connecting to an upstream may take [default: 5s].
    #[arg(
        long,
        value_name = "DURATION",
        requires = "listen",
        hide_short_help = true
    )]
    pub connect_timeout: Option<String>,
    /// How long a connection may be silent [default: 1h].
    #[arg(
        long,
        value_name = "DURATION",
        requires = "listen",
        hide_short_help = true
    )]
    pub idle_timeout: Option<String>,
    /// How long it may be silent once one side has ended [default: 1m].
    #[arg(
        long,
        value_name = "DURATION",
        requires = "listen",
        hide_short_help = true
    )]
    pub half_close_timeout: Option<String>,
    /// Connections at a time [default: 10000, or what the limit of open files allows].
    #[arg(long, value_name = "N", requires = "listen", hide_short_help = true)]
    pub connections_max: Option<usize>,
    /// Of these from one address, or from one /64 of IPv6 [default: 1000].
    #[arg(long, value_name = "N", requires = "listen", hide_short_help = true)]
    pub connections_per_address_max: Option<usize>,
    /// Handshakes of one address, or one /64 of IPv6, in a second; twice as many may come at once
    /// [default: 2000].
    #[arg(long, value_name = "N", requires = "listen", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub handshakes_per_address_per_second_max: Option<u32>,
}
