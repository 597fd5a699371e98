//! Turns accepted connections into encrypted ones.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use logpond_proxy::counted_as;
use rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use logpond_host::telemetry::{Metrics, TlsListener};
use logpond_tls::{Identity, Peer, client_name};

/// How long a handshake may take, from the accepted connection on. It has two round trips; who
/// needs longer is on no network that logs are sent over, or holds connections on purpose.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// Handshakes of a listener at a time; further ones wait, within their time. Their buffers and
/// their arithmetic stay a small part of what open connections cost.
pub const HANDSHAKES_MAX: usize = 128;

/// Of these for one address; of IPv6 for one network of 64 bits. Its further ones wait for each other, and
/// not in the way of others.
pub const HANDSHAKES_PER_ADDRESS_MAX: usize = 32;

/// How long a peer whose handshake failed may take to notice.
const LINGER_TIME_MAX: Duration = Duration::from_secs(1);

/// What such a peer may have sent meanwhile: its first request, with TLS 1.3.
const LINGER_BYTES_MAX: usize = 64 << 10;

/// First byte of everything that begins a TLS connection: a record of type handshake (RFC 8446,
/// section 5.1).
pub(super) const HANDSHAKE_RECORD: u8 = 22;

/// A connection over TLS.
pub type TlsConnection = TlsStream<TcpStream>;

/// An accepted connection, by its protocol.
#[derive(Debug)]
pub enum IncomingStream {
    /// Encrypted, and ready to be used.
    Tls(Box<TlsConnection>),
    /// Not TLS at all. Nothing was read of it.
    Plain(TcpStream),
}

/// Accepts TLS connections with a configuration that may be replaced at any time. Connections that
/// are open keep the one they began with.
pub struct Acceptor {
    listener: TlsListener,
    /// Locked only to take or to put the pointer.
    config: RwLock<Arc<ServerConfig>>,
    handshakes: Semaphore,
    /// Of addresses that shake hands now.
    by_address: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
    metrics: Arc<Metrics>,
    /// The clients that are let in by what they are called.
    peers: Vec<Peer>,
}

impl Acceptor {
    pub(super) fn new(
        listener: TlsListener,
        config: ServerConfig,
        metrics: Arc<Metrics>,
    ) -> Acceptor {
        Acceptor {
            listener,
            config: RwLock::new(Arc::new(config)),
            handshakes: Semaphore::new(HANDSHAKES_MAX),
            by_address: Mutex::default(),
            metrics,
            peers: Vec::new(),
        }
    }

    /// The same, which says by which of these a client was let in.
    pub(super) fn with_peers(self, peers: Vec<Peer>) -> Acceptor {
        Acceptor { peers, ..self }
    }

    /// What a client is called that showed a certificate and was let in: the fingerprint or the name
    /// that was asked for, else the first name of the certificate, else its fingerprint.
    pub fn client_of(&self, stream: &TlsStream<TcpStream>) -> Option<String> {
        let (_, session) = stream.get_ref();
        let certificate = session.peer_certificates()?.first()?;
        Some(client_name(certificate, &self.peers))
    }

    /// From now on connections begin with this configuration.
    pub(super) fn replace(&self, config: ServerConfig) {
        let mut current = self.config.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(config);
    }

    /// Exposes until when the certificate holds.
    pub(super) fn note_expiry(&self, identity: &Identity) {
        let seconds = identity.not_after.as_secs();
        let tls = self.metrics.access.tls(self.listener);
        tls.not_after_s
            .set(i64::try_from(seconds).unwrap_or(i64::MAX));
    }

    /// Makes the handshake of a connection that was just accepted.
    ///
    /// # Errors
    /// When the peer does not do its part in time ([`io::ErrorKind::TimedOut`]), or the two do not
    /// agree; the peer was then told so, as far as TLS can tell. It is counted already.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<IncomingStream> {
        self.accept_for(stream, None).await
    }

    /// The same for HTTP/2, which clients of gRPC insist on.
    ///
    /// # Errors
    /// As for [`Acceptor::accept`].
    pub async fn accept_http2(&self, stream: TcpStream) -> io::Result<IncomingStream> {
        self.accept_for(stream, Some(b"h2")).await
    }

    /// The same for Postgres, whose clients may insist on its name.
    ///
    /// # Errors
    /// As for [`Acceptor::accept`].
    pub async fn accept_postgres(&self, stream: TcpStream) -> io::Result<IncomingStream> {
        self.accept_for(stream, Some(b"postgresql")).await
    }

    async fn accept_for(
        &self,
        stream: TcpStream,
        protocol: Option<&[u8]>,
    ) -> io::Result<IncomingStream> {
        let tls = self.metrics.access.tls(self.listener);
        let shaking = self.shake_hands(stream, protocol);
        match tokio::time::timeout(HANDSHAKE_TIME_MAX, shaking).await {
            Ok(Ok(IncomingStream::Tls(stream))) => {
                tls.done.add(1);
                Ok(IncomingStream::Tls(stream))
            }
            Ok(Ok(plain)) => {
                tls.plain.add(1);
                Ok(plain)
            }
            Ok(Err(HandshakeFailure { error, stream })) => {
                tls.failed.add(1);
                if let Some(stream) = stream {
                    linger(stream).await;
                }
                Err(error)
            }
            Err(_) => {
                tls.slow.add(1);
                let seconds = HANDSHAKE_TIME_MAX.as_secs();
                let text = format!("no TLS handshake within {seconds} s");
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            }
        }
    }

    async fn shake_hands(
        &self,
        stream: TcpStream,
        protocol: Option<&[u8]>,
    ) -> Result<IncomingStream, HandshakeFailure> {
        let mut first = [0];
        match stream.peek(&mut first).await? {
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            _ if first[0] != HANDSHAKE_RECORD => return Ok(IncomingStream::Plain(stream)),
            _ => {}
        }
        let own = self.handshakes_of(stream.peer_addr()?.ip());
        let own = own.acquire_owned().await;
        let _own = own.map_err(io::Error::other)?;
        let slot = self.handshakes.acquire().await;
        let _slot = slot.map_err(io::Error::other)?;
        let mut config = {
            let current = self.config.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&current)
        };
        if let Some(protocol) = protocol {
            // Its parts are shared.
            Arc::make_mut(&mut config).alpn_protocols = vec![protocol.to_vec()];
        }
        let handshake = TlsAcceptor::from(config).accept(stream).into_fallible();
        match handshake.await {
            Ok(stream) => Ok(IncomingStream::Tls(Box::new(stream))),
            Err((error, stream)) => Err(HandshakeFailure {
                error,
                stream: Some(stream),
            }),
        }
    }
}

impl Acceptor {
    /// The handshakes that an address may make at a time.
    fn handshakes_of(&self, address: IpAddr) -> Arc<Semaphore> {
        let by_address = &self.by_address;
        let mut by_address = by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let address = counted_as(address);
        if let Some(known) = by_address.get(&address).and_then(Weak::upgrade) {
            return known;
        }
        // Addresses are kept only while they shake hands, and connections are bounded.
        by_address.retain(|_, known| known.strong_count() > 0);
        let own = Arc::new(Semaphore::new(HANDSHAKES_PER_ADDRESS_MAX));
        by_address.insert(address, Arc::downgrade(&own));
        own
    }
}

/// A handshake that failed, with the connection if the peer is to read why.
struct HandshakeFailure {
    error: io::Error,
    stream: Option<TcpStream>,
}

impl From<io::Error> for HandshakeFailure {
    fn from(error: io::Error) -> HandshakeFailure {
        let stream = None;
        HandshakeFailure { error, stream }
    }
}

/// Ends a connection so that the peer gets to read why: were it closed with something of the peer
/// unread, the system would take back what was sent.
async fn linger(mut stream: TcpStream) {
    let mut unread = [0; 4096];
    let read_all = async {
        stream.shutdown().await?;
        for _ in 0..LINGER_BYTES_MAX / unread.len() {
            if stream.read(&mut unread).await? == 0 {
                break;
            }
        }
        io::Result::Ok(())
    };
    // It is over in any case.
    let _ = tokio::time::timeout(LINGER_TIME_MAX, read_all).await;
}
