//! TLS of the listeners, and between the nodes of a cluster.
//!
//! Invariants:
//! - TLS 1.2 and 1.3 by rustls; what makes a connection is read and checked before anything
//!   listens, and again whenever its files change. Files that are bad leave what was there.
//! - Nothing of TLS exists in a process whose settings name no certificate.
//! - A handshake takes at most [`HANDSHAKE_TIME_MAX`], and at most [`HANDSHAKES_MAX`] run at a time.
//! - Files are read by the thread that starts the server and by `lp-watch`, never by the event loop.

mod acceptor;
mod authority;
mod cluster;
mod role;
mod syslog;
mod watch;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::sign::SingleCertAndKey;

pub use acceptor::{
    Acceptor, HANDSHAKE_TIME_MAX, HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX, IncomingStream,
    TlsConnection,
};
pub use authority::{Authority, IssuedCertificate, NODE_VALID, Name};
pub use cluster::{
    AUTHORITIES_NAME, AUTHORITY_KEY_NAME, CERTIFICATE_NAME, ClusterTls, FromNode, KEY_NAME,
    NodeRejection, cluster, reason_of,
};
pub use logpond_tls::{
    CertificateFiles, TlsError, provider, read_certificates, tls_error, valid_until,
};
pub use role::is_node_name;
pub use syslog::syslog;

use logpond_host::telemetry::{Metrics, ReloadTarget, TlsListener};
use logpond_host::watch::{WatchTarget, WatchedFiles};
use logpond_tls::Identity;
use watch::WatchedTls;

/// The acceptor of the HTTP listener, which asks clients for no certificate, and what keeps it up to
/// date once `lp-watch` looks at it.
///
/// # Errors
/// When the files cannot be used; see [`TlsError`].
pub fn https(
    files: &CertificateFiles,
    metrics: &Arc<Metrics>,
) -> Result<(Arc<Acceptor>, Box<dyn WatchTarget>), TlsError> {
    let paths = vec![files.certificate.clone(), files.key.clone()];
    let seen = WatchedFiles::of(paths);
    let (config, identity) = https_config(files)?;
    let acceptor = Arc::new(Acceptor::new(TlsListener::Http, config, metrics.clone()));
    acceptor.note_expiry(&identity);
    let (files, of_acceptor) = (files.clone(), acceptor.clone());
    let take_in = move || {
        let (config, identity) = https_config(&files)?;
        of_acceptor.replace(config);
        of_acceptor.note_expiry(&identity);
        Ok(())
    };
    let watched = WatchedTls::new(
        seen,
        take_in,
        ReloadTarget::HttpCertificate,
        metrics.clone(),
    );
    Ok((acceptor, Box::new(watched)))
}

fn https_config(files: &CertificateFiles) -> Result<(ServerConfig, Identity), TlsError> {
    let identity = Identity::load(files)?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Library)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity.key.clone())));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((config, identity))
}
