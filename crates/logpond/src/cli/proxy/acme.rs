//! Certificates of the proxy that are ordered, as it is told of them.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Flags for certificates by ACME.
#[derive(Debug, Args)]
pub struct ProxyAcme {
    /// Order a certificate for these names by ACME, at Let's Encrypt if not said otherwise, whose terms are
    /// agreed to by this, and renew it; needs --acme-dir.
    #[arg(long, value_name = "NAME[,NAME...]", value_delimiter = ',', requires_all = ["listen", "acme_dir"])]
    pub acme: Vec<String>,
    /// Where the account's key and certificates are kept, of the user that the proxy runs as.
    #[arg(long, value_name = "DIR", requires = "acme", value_hint = ValueHint::DirPath, hide_short_help = true)]
    pub acme_dir: Option<PathBuf>,
    /// Where the ACME server writes to if something is the matter: mailto:ADDRESS; may be given several times.
    #[arg(long, value_name = "URL", requires = "acme", hide_short_help = true)]
    pub acme_contact: Vec<String>,
    /// The ACME server [default: https://acme-v02.api.letsencrypt.org/directory].
    #[arg(long, value_name = "URL", requires = "acme", value_hint = ValueHint::Url, hide_short_help = true)]
    pub acme_directory: Option<String>,
    /// By whom the ACME server's own certificate is issued, in PEM [default: whom the system trusts].
    #[arg(long, value_name = "FILE", requires = "acme", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub acme_ca: Option<PathBuf>,
}
