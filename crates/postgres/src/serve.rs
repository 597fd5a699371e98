//! A connection of the listener: its encryption, and what its first message asks for.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use logpond_http::App;
use logpond_listen::net::tls::{Acceptor, IncomingStream, TlsConnection};
use logpond_listen::net::{Context, PlaceRefusal, SharedPlaces};
use logpond_listen::tokens::Admission;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::admit::admit;
use crate::failure::{Code, Failure};
use crate::login::Login;
use crate::registry::Registry;
use crate::session::{Ending, Session};
use crate::texts::{self, TextRoom};
use crate::wire::{self, Opening};

/// Sessions at a time: each has prepared statements and messages in memory.
pub const SESSIONS_MAX: usize = 256;

/// How long a client may take to be admitted.
const LOGIN_TIME_MAX: Duration = Duration::from_secs(30);

/// How long a client may take to read why its session ends.
pub(crate) const FAREWELL_TIME_MAX: Duration = Duration::from_secs(1);

/// Requests for encryption of a connection: one of each kind.
const REQUESTS_MAX: usize = 3;

/// The first byte of TLS that a client begins without asking.
const TLS_RECORD: u8 = 22;

/// The state that all connections of the listener share.
#[derive(Clone)]
pub struct PostgresServer {
    app: Arc<App>,
    tls: Option<Arc<Acceptor>>,
    sessions: SharedPlaces,
    registry: Arc<Registry>,
    texts: Arc<TextRoom>,
}

impl PostgresServer {
    /// A server that answers from these parts; with `tls` encrypted.
    pub fn new(app: Arc<App>, tls: Option<Arc<Acceptor>>) -> PostgresServer {
        let bytes = app.memory_share(texts::SHARE, texts::BYTES_MAX);
        PostgresServer {
            texts: TextRoom::new(bytes),
            app,
            tls,
            sessions: SharedPlaces::new(SESSIONS_MAX),
            registry: Arc::default(),
        }
    }
}

/// Serves an accepted connection to its end.
pub async fn serve_accepted(
    stream: TcpStream,
    peer: IpAddr,
    context: Context,
    server: PostgresServer,
) {
    let mut shutdown = context.shutdown.clone();
    let opening = tokio::time::timeout(LOGIN_TIME_MAX, open(stream, &server));
    let opened = tokio::select! {
        opened = opening => opened,
        () = shutdown.stopping() => return,
    };
    // A client that says nothing gets no answer.
    let Ok(Some(opened)) = opened else {
        return;
    };
    match opened {
        Opened::Plain(stream, opening) => {
            let is_needed = server.tls.is_some() && !peer.is_loopback();
            begin(stream, opening, (is_needed, false, peer), server).await;
        }
        Opened::Tls(mut stream, input) => {
            let mut input = input;
            let opening = tokio::time::timeout(LOGIN_TIME_MAX, first(&mut *stream, &mut input));
            if let Ok(Some(opening)) = opening.await {
                begin(*stream, (opening, input), (false, true, peer), server).await;
            }
        }
    }
}

type FirstMessage = (Result<Opening, wire::WireError>, BytesMut);

/// A connection whose encryption is settled.
enum Opened {
    Plain(TcpStream, FirstMessage),
    Tls(Box<TlsConnection>, BytesMut),
}

/// Settles the encryption of a connection.
async fn open(mut stream: TcpStream, server: &PostgresServer) -> Option<Opened> {
    let mut begin = [0];
    if stream.peek(&mut begin).await.ok()? == 1 && begin[0] == TLS_RECORD {
        return encrypt(stream, server).await;
    }
    let mut input = BytesMut::new();
    for _ in 0..REQUESTS_MAX {
        match first(&mut stream, &mut input).await? {
            Ok(Opening::Ssl) if server.tls.is_some() => {
                // Bytes that are sent before the handshake are not encrypted, and could be somebody else's.
                if !input.is_empty() {
                    return None;
                }
                stream.write_all(b"S").await.ok()?;
                return encrypt(stream, server).await;
            }
            Ok(Opening::Ssl | Opening::Gss) => stream.write_all(b"N").await.ok()?,
            other => return Some(Opened::Plain(stream, (other, input))),
        }
    }
    None
}

async fn encrypt(stream: TcpStream, server: &PostgresServer) -> Option<Opened> {
    let acceptor = server.tls.as_ref()?;
    match acceptor.accept_postgres(stream).await {
        Ok(IncomingStream::Tls(stream)) => Some(Opened::Tls(stream, BytesMut::new())),
        // The peer was told, and it is counted.
        Ok(IncomingStream::Plain(_)) | Err(_) => None,
    }
}

/// Reads the first message; `None` if the client is gone.
async fn first<S: AsyncRead + Unpin>(
    stream: &mut S,
    input: &mut BytesMut,
) -> Option<Result<Opening, wire::WireError>> {
    loop {
        match wire::opening(input) {
            Ok(None) => {}
            Ok(Some(opening)) => return Some(Ok(opening)),
            Err(error) => return Some(Err(error)),
        }
        if stream.read_buf(input).await.ok()? == 0 {
            return None;
        }
    }
}

/// Does what the first message asks for.
async fn begin<S: AsyncRead + AsyncWrite + Unpin + Send>(
    mut stream: S,
    (opening, input): FirstMessage,
    (needs_tls, is_encrypted, peer): (bool, bool, IpAddr),
    server: PostgresServer,
) {
    let ending = match opening {
        Ok(Opening::Cancel { process_id, secret }) => {
            return server.registry.cancel(process_id, secret);
        }
        Ok(Opening::Startup { minor, parameters }) if !needs_tls => {
            let begun = Beginning {
                minor,
                parameters,
                is_encrypted,
                is_local: peer.is_loopback(),
                peer,
            };
            let serving = serve(&mut stream, input, begun, server);
            serving.await
        }
        Ok(_) => {
            let message = "connections from other machines are encrypted: connect with sslmode=verify-full, or require";
            Ending::Fatal(Failure::new(Code::NotAuthorized, message))
        }
        Err(error) => Ending::Fatal(Failure::new(Code::ProtocolViolation, error.to_string())),
    };
    if let Ending::Fatal(failure) = ending {
        let mut out = Vec::new();
        failure.put(&mut out, true);
        let farewell = async {
            stream.write_all(&out).await?;
            stream.shutdown().await?;
            // With bytes that were not read the system would take back what was sent.
            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
        };
        // It is over in any case.
        let _ = tokio::time::timeout(FAREWELL_TIME_MAX, farewell).await;
    }
}

/// The beginning of a session, before its client is admitted.
struct Beginning {
    minor: u32,
    parameters: Vec<(String, String)>,
    is_encrypted: bool,
    is_local: bool,
    peer: IpAddr,
}

/// Admits a client and serves its session.
async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send>(
    stream: &mut S,
    mut input: BytesMut,
    beginning: Beginning,
    server: PostgresServer,
) -> Ending {
    let login = match Login::of(&beginning.parameters) {
        Ok(login) => login,
        Err(failure) => return Ending::Fatal(failure),
    };
    let admitting = welcome(stream, &mut input, &beginning, &server);
    let admission = match tokio::time::timeout(LOGIN_TIME_MAX, admitting).await {
        Ok(Ok(admission)) => admission,
        Ok(Err(ending)) => return ending,
        Err(_) => {
            let message = "the client was not admitted in time";
            return Ending::Fatal(Failure::new(Code::NotAuthorized, message));
        }
    };
    // Only now: clients that are not admitted take no places of others.
    let _place = match server.sessions.take(beginning.peer) {
        Ok(place) => place,
        Err(refusal) => return Ending::Fatal(full(refusal)),
    };
    let Some(guard) = server.registry.enter() else {
        let message = "the system gives no random bytes";
        return Ending::Fatal(Failure::new(Code::Internal, message));
    };
    let app = match server
        .app
        .seen_by_session(admission.as_ref(), beginning.peer)
    {
        Ok(app) => app,
        Err(message) => return Ending::Fatal(Failure::new(Code::NotAuthorized, message)),
    };
    let admitted = (admission, guard);
    let session = Session::new(stream, input, app, login, admitted, server.texts);
    session.run().await
}

fn full(refusal: PlaceRefusal) -> Failure {
    let message = match refusal {
        PlaceRefusal::All(most) => {
            format!("{most} sessions are open, as many as there may be")
        }
        PlaceRefusal::OfAddress(most) => format!(
            "{most} sessions of this address are open, as many as one address may have; close some, or use fewer \
             connections in a pool"
        ),
    };
    Failure::new(Code::TooManyConnections, message)
}

/// Settles the version with a client, and admits it.
async fn welcome<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    input: &mut BytesMut,
    beginning: &Beginning,
    server: &PostgresServer,
) -> Result<Option<Admission>, Ending> {
    let mut out = Vec::new();
    let unknown = beginning.parameters.iter().map(|(name, _)| name.as_str());
    let unknown: Vec<&str> = unknown.filter(|name| name.starts_with("_pq_.")).collect();
    if beginning.minor > 0 || !unknown.is_empty() {
        wire::put_version(&mut out, &unknown);
        stream.write_all(&out).await.map_err(|_| Ending::Closed)?;
        out.clear();
    }
    let mut admission = None;
    if server.app.guard.is_required() {
        let is_private = beginning.is_encrypted || beginning.is_local;
        admission = Some(admit(stream, input, is_private, &server.app).await?);
    }
    wire::put_admitted(&mut out);
    stream.write_all(&out).await.map_err(|_| Ending::Closed)?;
    Ok(admission)
}
