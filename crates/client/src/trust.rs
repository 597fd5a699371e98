//! Whom a client believes that it is the server.

use std::path::Path;

use rustls::pki_types::CertificateDer;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::ClientError;

/// What connections to `https://` addresses are made with: the authorities of the file, or without
/// one those that this system trusts.
///
/// # Errors
/// When the file cannot be used, or the system trusts nobody.
pub(super) fn tls_config(authorities: Option<&Path>) -> Result<TlsConfig, ClientError> {
    let trusted = match authorities {
        Some(path) => logpond_tls::read_certificates(path).map_err(ClientError::Authorities)?,
        None => of_system()?,
    };
    let trusted: Vec<_> = trusted
        .iter()
        .map(|certificate| Certificate::from_der(certificate).to_owned())
        .collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&trusted))
        .unversioned_rustls_crypto_provider(logpond_tls::provider())
        .build())
}

/// The authorities that the operating system trusts, those of the organisation included.
fn of_system() -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let found = rustls_native_certs::load_native_certs();
    // Single bad ones are left out, as everywhere on a system; none at all is a system without any.
    if found.certs.is_empty() {
        Err(ClientError::NoAuthorities)
    } else {
        Ok(found.certs)
    }
}
