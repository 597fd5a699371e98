//! TLS between the nodes of a cluster: both ends show a certificate of the cluster's authority.
//!
//! Invariants:
//! - Who gets through [`ClusterTls::accept`] has the key of a certificate that an authority of
//!   `ca.pem` signed, that holds now, and that says that its owner is a node.
//! - What [`ClusterTls::agent`] connects to has the key of such a certificate for the address that
//!   was asked for. That it is a node's need not be looked at: others' are not for servers.
//! - No session is resumed, so that every connection is judged by the files as they are now.
//! - One bad file leaves acceptor and agent as they were; they change together.

use std::fmt;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

use super::role::node_name;
use super::watch::WatchedTls;
use super::{
    Acceptor, CertificateFiles, IncomingStream, TlsError, provider, read_certificates, tls_error,
};
use logpond_client::{explain, tls_error_of_request};
use logpond_host::telemetry::{Metrics, ReloadTarget, TlsListener, warn};
use logpond_host::watch::{WatchTarget, WatchedFiles};
use logpond_tls::{Identity, now};

/// Name of the file with the cluster's authorities: one, or two while one replaces the other.
pub const AUTHORITIES_NAME: &str = "ca.pem";

/// Name of the file with the authority's key. It is needed to make certificates, and by no server.
pub const AUTHORITY_KEY_NAME: &str = "ca.key";

/// Name of the file with the node's certificate.
pub const CERTIFICATE_NAME: &str = "node.pem";

/// Name of the file with the node's key.
pub const KEY_NAME: &str = "node.key";

/// How long another node may take to accept a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// How often refused connections are reported: a node that was set up wrongly tries again and again.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// What is known of a peer that went away.
const LEFT: &str =
    "it left within the handshake; it may not trust the certificate that it was shown";

/// The end of a connection between nodes, after its handshake.
#[derive(Debug)]
pub struct FromNode {
    /// The connection.
    pub stream: Box<TlsStream<TcpStream>>,
    /// The name of the node at the other end, as its certificate has it.
    pub node: String,
}

/// Why a connection was refused. It is counted, and reported to the operator as far as it is not
/// one of many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRejection {
    /// Where it came from.
    pub peer: IpAddr,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for NodeRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NodeRejection { peer, reason } = self;
        write!(
            f,
            "a connection from {peer} to the cluster's port was refused: {reason}"
        )
    }
}

impl std::error::Error for NodeRejection {}

/// What a node needs to be believed by the others, and to know them. One per process; it keeps
/// itself up to date.
pub struct ClusterTls {
    acceptor: Acceptor,
    /// Locked only to take or to put what is in it.
    current: RwLock<Current>,
    /// When a refusal was reported last, and how many were not since.
    reported: Mutex<(Option<Instant>, u64)>,
}

struct Current {
    agent: ureq::Agent,
    node: Arc<str>,
}

/// Reads `ca.pem`, `node.pem` and `node.key` of the directory, and gives what they make, and what
/// keeps it up to date once `lp-watch` looks at it.
///
/// # Errors
/// When a file cannot be used, the certificate is over, not signed by an authority of `ca.pem`, or
/// not one of a node, or the key is another one's; see [`TlsError`].
pub fn cluster(
    directory: &Path,
    metrics: &Arc<Metrics>,
) -> Result<(Arc<ClusterTls>, Box<dyn WatchTarget>), TlsError> {
    let files = Files::of(directory);
    let seen = WatchedFiles::of(files.all());
    let NodeCredentials {
        identity,
        server,
        current,
    } = files.load()?;
    let acceptor = Acceptor::new(TlsListener::Cluster, server, metrics.clone());
    acceptor.note_expiry(&identity);
    let cluster = Arc::new(ClusterTls {
        acceptor,
        current: RwLock::new(current),
        reported: Mutex::default(),
    });
    let of_watch = cluster.clone();
    let take_in = move || {
        of_watch.replace(files.load()?);
        Ok(())
    };
    let what = ReloadTarget::ClusterCertificate;
    let watched = WatchedTls::new(seen, take_in, what, metrics.clone());
    Ok((cluster, Box::new(watched)))
}

impl ClusterTls {
    /// Makes the handshake of a connection that the cluster's listener just accepted. Takes at most
    /// [`super::HANDSHAKE_TIME_MAX`]; runs on the event loop and touches no file.
    ///
    /// # Errors
    /// When the other end is no node of this cluster, which it was then told.
    pub async fn accept(&self, stream: TcpStream, peer: IpAddr) -> Result<FromNode, NodeRejection> {
        let reason = match self.acceptor.accept(stream).await {
            Ok(IncomingStream::Tls(stream)) => match node_of(&stream) {
                Some(node) => return Ok(FromNode { stream, node }),
                // The verifier asks the same, so this is for a defect of it.
                None => "its certificate is not one of a node".to_owned(),
            },
            Ok(IncomingStream::Plain(_)) => "it does not speak TLS".to_owned(),
            Err(error) => match tls_error(&error) {
                Some(error) => explain(error),
                // Clients end so that do not say what they mind.
                None if error.kind() == ErrorKind::UnexpectedEof => LEFT.to_owned(),
                None => error.to_string(),
            },
        };
        let refused = NodeRejection { peer, reason };
        self.report(&refused);
        Err(refused)
    }

    /// What requests to other nodes go through: blocking, `https://` only, showing this node's
    /// certificate, and believing only the cluster's authority. A status that is an error is an
    /// answer; redirects are not followed. Timeouts other than that of connecting are the caller's
    /// (`.config().timeout_global(…)`, …).
    ///
    /// Agents of one state of the files share their connections: take one for each request, it costs
    /// nothing, and follows the files. Of a failed request, [`reason_of`] says what it means.
    pub fn agent(&self) -> ureq::Agent {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.agent.clone()
    }

    /// The name of this node, as its certificate has it.
    pub fn node(&self) -> Arc<str> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.node.clone()
    }

    fn replace(&self, loaded: NodeCredentials) {
        self.acceptor.note_expiry(&loaded.identity);
        self.acceptor.replace(loaded.server);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = loaded.current;
    }

    fn report(&self, refused: &NodeRejection) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, unsaid) = &mut *reported;
        if last.is_some_and(|at| at.elapsed() < REPORT_INTERVAL) {
            *unsaid += 1;
            return;
        }
        match std::mem::take(unsaid) {
            0 => warn(&refused.to_string()),
            more => warn(&format!("{refused} ({more} more before it)")),
        }
        *last = Some(Instant::now());
    }
}

/// Why a request to another node failed, in words.
pub fn reason_of(error: &ureq::Error) -> String {
    tls_error_of_request(error).map_or_else(|| error.to_string(), explain)
}

fn node_of(stream: &TlsStream<TcpStream>) -> Option<String> {
    let (_, connection) = stream.get_ref();
    node_name(connection.peer_certificates()?.first()?)
}

struct Files {
    authorities: PathBuf,
    own: CertificateFiles,
}

struct NodeCredentials {
    identity: Identity,
    server: ServerConfig,
    current: Current,
}

impl Files {
    fn of(directory: &Path) -> Files {
        Files {
            authorities: directory.join(AUTHORITIES_NAME),
            own: CertificateFiles {
                certificate: directory.join(CERTIFICATE_NAME),
                key: directory.join(KEY_NAME),
            },
        }
    }

    fn all(&self) -> Vec<PathBuf> {
        let CertificateFiles { certificate, key } = &self.own;
        [&self.authorities, certificate, key]
            .map(PathBuf::clone)
            .to_vec()
    }

    fn load(&self) -> Result<NodeCredentials, TlsError> {
        let authorities = read_certificates(&self.authorities)?;
        let mut roots = RootCertStore::empty();
        for authority in &authorities {
            roots
                .add(authority.clone())
                .map_err(|source| TlsError::Unusable {
                    path: self.authorities.clone(),
                    source,
                })?;
        }
        let identity = Identity::load(&self.own)?;
        self.check_issuer(&identity, &roots)?;
        let own = &identity.key.cert[0];
        let node = node_name(own).ok_or_else(|| TlsError::NotForThis {
            path: self.own.certificate.clone(),
            reason: "is not one of a node; make one by 'logpond cluster certificate'".to_owned(),
        })?;
        let server = server_config(&identity, roots)?;
        let agent = agent(&authorities, &identity).map_err(|_| TlsError::NotPem {
            path: self.own.key.clone(),
            expected: "private key",
            reason: "it cannot be parsed".to_owned(),
        })?;
        let current = Current {
            agent,
            node: node.into(),
        };
        Ok(NodeCredentials {
            identity,
            server,
            current,
        })
    }

    /// A certificate of another authority would be refused by every other node.
    fn check_issuer(&self, identity: &Identity, roots: &RootCertStore) -> Result<(), TlsError> {
        let chain = &identity.key.cert;
        let judged = ParsedCertificate::try_from(&chain[0]).and_then(|own| {
            let algorithms = provider().signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&own, roots, &chain[1..], now(), algorithms)
        });
        judged.map_err(|source| TlsError::NotForThis {
            path: self.own.certificate.clone(),
            reason: format!(
                "is not signed by an authority of {}: {}; make one with this authority by \
                 'logpond cluster certificate'",
                self.authorities.display(),
                explain(&source)
            ),
        })
    }
}

fn server_config(identity: &Identity, roots: RootCertStore) -> Result<ServerConfig, TlsError> {
    let of_authority = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|error| TlsError::Library(Error::General(error.to_string())))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Library)?
        .with_client_cert_verifier(Arc::new(NodeVerifier { of_authority }))
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity.key.clone())));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn agent(
    authorities: &[CertificateDer<'static>],
    identity: &Identity,
) -> Result<ureq::Agent, ureq::Error> {
    let owned = |der: &CertificateDer<'_>| Certificate::from_der(der).to_owned();
    let authorities: Vec<_> = authorities.iter().map(owned).collect();
    let chain: Vec<_> = identity.key.cert.iter().map(owned).collect();
    let key = PrivateKey::from_pem(&identity.key_text)?;
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&authorities))
        .client_cert(Some(ClientCert::new_with_certs(&chain, key)))
        .unversioned_rustls_crypto_provider(provider())
        .build();
    let config = ureq::Agent::config_builder()
        .tls_config(tls)
        .https_only(true)
        .http_status_as_error(false)
        .max_redirects(0)
        // Nodes are neighbours: a proxy for the web must not get the logs.
        .proxy(None)
        .timeout_connect(Some(CONNECT_TIME_MAX))
        .user_agent(concat!("logpond/", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(logpond_client::agent_of(config))
}

/// Takes certificates of the cluster's authority, and of these only nodes'.
#[derive(Debug)]
struct NodeVerifier {
    of_authority: Arc<dyn ClientCertVerifier>,
}

impl ClientCertVerifier for NodeVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.of_authority.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self
            .of_authority
            .verify_client_cert(end_entity, intermediates, now)?;
        match node_name(end_entity) {
            Some(_) => Ok(verified),
            None => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.of_authority.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.of_authority.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.of_authority.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests;
