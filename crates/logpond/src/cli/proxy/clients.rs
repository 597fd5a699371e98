//! Certificates of the proxy's clients, as it is told of them.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use logpond_settings::ClientAuthMode;

/// Flags for clients that show certificates.
#[derive(Debug, Args)]
pub struct ProxyClients {
    /// Authorities whose clients are let in, in PEM; may be given several times. Clients are asked for a
    /// certificate then.
    #[arg(long, value_name = "FILE", requires = "listen", value_hint = ValueHint::FilePath)]
    pub client_ca: Vec<PathBuf>,
    /// Whether clients without a certificate are refused [default: required].
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        requires = "client_ca",
        hide_short_help = true
    )]
    pub client_auth: Option<ClientAuthMode>,
    /// Certificates that their authorities have revoked: lists in PEM, or one in DER; may be given several
    /// times. Each authority needs one then.
    #[arg(long, value_name = "FILE", requires = "client_ca", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub client_crl: Vec<PathBuf>,
    /// Only clients whose certificates have this: cn=NAME, ou=NAME, dns=NAME, uri=URI, ip=ADDRESS or
    /// spki-sha256=HASH; given several times, one of these.
    #[arg(long, value_name = "RULE", requires = "client_ca")]
    pub client_allow: Vec<String>,
}
