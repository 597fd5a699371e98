//! The client: many connections from one thread, with TLS or without.
//!
//! It agrees to TLS 1.3 with AES-256-GCM and X25519 only, so that all that it talks to do the same.

mod connection;
mod crowd;
mod fresh;
mod idle;
mod steady;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use super::message::Exchange;
use crate::run::Outcome;

pub(super) use fresh::shake_hands;
pub(super) use idle::Idle;
pub(super) use steady::keep_asking;

/// How long anything but the load itself may take: only what is broken takes it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sessions that are kept for resumption; the server's name is one, so there is one entry.
const SESSIONS: usize = 16;

/// Where a load goes.
#[derive(Clone)]
pub(super) struct Destination {
    /// Who listens.
    pub(super) address: SocketAddr,
    /// Whose certificate is trusted; none speaks without TLS.
    pub(super) tls: Option<Arc<ClientConfig>>,
}

/// A load for a time.
pub(super) struct Load {
    pub(super) destination: Destination,
    /// Connections at a time.
    pub(super) connections: usize,
    pub(super) exchange: Exchange,
    /// What is not counted, once all connections have had an answer.
    pub(super) warm_up: Duration,
    /// What is counted.
    pub(super) duration: Duration,
}

/// The ends of what is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Begin,
    End,
}

/// What is done at both ends, while the client does nothing.
pub(super) type AtEdge<'e> = &'e mut dyn FnMut(Edge) -> Outcome<()>;

/// TLS that trusts this certificate alone.
///
/// # Errors
///
/// If it is none.
pub(super) fn trusting(certificate: &[u8], resumes: bool) -> Outcome<Arc<ClientConfig>> {
    let failed = |e: rustls::Error| format!("the client's TLS: {e}");
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_slice(certificate).into_owned())
        .map_err(failed)?;
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![cipher_suite::TLS13_AES_256_GCM_SHA384];
    provider.kx_groups = vec![kx_group::X25519];
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = if resumes {
        Resumption::in_memory_sessions(SESSIONS)
    } else {
        Resumption::disabled()
    };
    Ok(Arc::new(config))
}
