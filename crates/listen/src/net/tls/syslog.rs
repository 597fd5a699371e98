//! Syslog over TLS (RFC 5425), and RELP over TLS.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::sign::SingleCertAndKey;

use super::acceptor::Acceptor;
use super::watch::WatchedTls;
use super::{CertificateFiles, TlsError, provider, read_certificates};
use logpond_host::telemetry::{Metrics, ReloadTarget, TlsListener};
use logpond_host::watch::{WatchTarget, WatchedFiles};
use logpond_tls::{ClientRules, Clients, Identity};

/// The acceptor of the listeners for syslog and RELP, and what keeps it up to date once `lp-watch` looks at it.
///
/// # Errors
/// When the files cannot be used; see [`TlsError`].
pub fn syslog(
    files: &CertificateFiles,
    rules: &ClientRules,
    metrics: &Arc<Metrics>,
) -> Result<(Arc<Acceptor>, Box<dyn WatchTarget>), TlsError> {
    let mut paths = vec![files.certificate.clone(), files.key.clone()];
    paths.extend(rules.authorities.clone());
    let seen = WatchedFiles::of(paths);
    let (config, identity) = syslog_config(files, rules)?;
    let acceptor = Acceptor::new(TlsListener::Syslog, config, metrics.clone());
    let acceptor = Arc::new(acceptor.with_peers(rules.peers.clone()));
    acceptor.note_expiry(&identity);
    let (files, rules, of_acceptor) = (files.clone(), rules.clone(), acceptor.clone());
    let take_in = move || {
        let (config, identity) = syslog_config(&files, &rules)?;
        of_acceptor.replace(config);
        of_acceptor.note_expiry(&identity);
        Ok(())
    };
    let watched = WatchedTls::new(
        seen,
        take_in,
        ReloadTarget::SyslogCertificate,
        metrics.clone(),
    );
    Ok((acceptor, Box::new(watched)))
}

fn syslog_config(
    files: &CertificateFiles,
    rules: &ClientRules,
) -> Result<(ServerConfig, Identity), TlsError> {
    let identity = Identity::load(files)?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Library)?;
    let builder = if rules.are_open() {
        builder.with_no_client_auth()
    } else {
        builder.with_client_cert_verifier(Arc::new(clients(rules)?))
    };
    let key = SingleCertAndKey::from(identity.key.clone());
    Ok((builder.with_cert_resolver(Arc::new(key)), identity))
}

fn clients(rules: &ClientRules) -> Result<Clients, TlsError> {
    let authorities = match &rules.authorities {
        Some(path) => read_certificates(path)?,
        None => Vec::new(),
    };
    Clients::new(&authorities, rules.peers.clone()).map_err(|reason| TlsError::NotPem {
        path: rules.authorities.clone().unwrap_or_default(),
        expected: "authority",
        reason,
    })
}
