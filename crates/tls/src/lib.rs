//! What all that speaks TLS here has in common: the cryptography, files of certificates and keys and
//! what is wrong with them, whether such files have changed, whose certificates are good and what they
//! say, and what a failed handshake means.
//!
//! Invariants: files are read only where a function's name or documentation says it; nothing here
//! opens a socket, waits, or knows what is sent.

mod algorithm;
mod client_name;
mod clients;
mod der;
mod error;
mod explain;
mod identity;
mod peers;
mod pem;
mod revocation;
mod stamp;
mod stapling;
mod subject;
mod tickets;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;

pub use algorithm::{key_algorithm, signature_algorithm};
pub use client_name::client_name;
pub use clients::{ClientFiles, ClientTrust, fingerprint};
pub use error::{TlsError, time_text};
pub use explain::{explain, tls_error};
pub use identity::{FAR_FUTURE, Identity, now, valid_until};
pub use peers::{ClientRules, Clients, Peer};
pub use pem::read_certificates;
pub use stamp::Stamp;
pub use stapling::{Staple, staple_path};
pub use subject::{common_name, organizational_units};
pub use tickets::SharedTickets;

/// The one implementation of all cryptography: AWS-LC.
static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));

/// The implementation of cryptography that servers and clients use.
pub fn provider() -> Arc<CryptoProvider> {
    PROVIDER.clone()
}

/// The files of a listener's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM: the certificate, then those between it and an authority that clients trust.
    pub certificate: PathBuf,
    /// PEM: its private key.
    pub key: PathBuf,
}
