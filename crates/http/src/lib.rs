//! The HTTP face: records in, answers out, the page, the metrics.
//!
//! Invariants:
//! - Connections, headers, bodies, the bytes of all bodies in flight and the queries running are
//!   bounded; beyond a bound the answer names it.
//! - Decoding and validating happen on `lp-blocking` threads, queries on `lp-query-N` threads,
//!   never on the async thread.
//! - Nothing is dropped with a success status.
//! - Where tokens are asked for, nothing of a request but its head is read before its token is
//!   found to suffice.
//! - A query whose reader goes away ends; one whose reader is slow waits with a bounded number of
//!   chunks in memory.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "tests cast numbers that they know"
    )
)]

mod administration;
mod error;
mod params;
mod bodies;
mod body;
mod hosts;
mod inflow;
mod once;
mod origin;
mod authorization;
mod router;
mod running;
mod rows;
mod fold;
mod hints;
mod forget;
mod intake;
mod push;
mod loki;
mod elastic;
mod otlp;
mod gatewayd;
mod gelf;
mod grpc;
mod http2;
mod shippers;
mod splunk;
mod victoria;
mod logpush;
mod pubsub;
mod firehose;
mod datadog;
mod logplex;
mod journal_upload;
mod batches;
mod query;
mod sql;
#[cfg(feature = "sql")]
mod statements;
mod aggregate;
mod histogram;
mod report;
mod patterns;
mod segments;
mod session;
mod listeners;
mod coding;
mod compact;
mod cluster;
mod metrics;
mod header_text;
mod health;
mod unread;
mod trails;
mod view;
mod vacuum;
mod page;
mod saved;
mod logql;
mod flat;
mod logsql;
mod grafana;
mod mcp;
pub mod proxy;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::HeaderName;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

pub use administration::{Administration, OperateError};
pub use bodies::Bodies;
pub use body::{Body, pass_on, receive};
pub use error::{ApiError, Kind};
pub use grpc::serve_grpc;
pub use hosts::Hosts;
pub use inflow::Inflow;
pub use router::routes;
pub use rows::{QUERIES_MAX, QueryThreads};
#[cfg(feature = "sql")]
pub use statements::StatementRun;
use unread::UnreadFlag;

use logpond_engine::alert::Alerts;
use logpond_engine::audit::Audit;
use logpond_engine::ingest::Ingest;
use logpond_engine::query::{Engine, Maintenance};
use logpond_engine::resends::Resends;
use logpond_engine::saved::SavedQueries;
use logpond_engine::store::Store;
use logpond_host::memory::Budget;
use logpond_host::memory::incoming::BODIES;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::Metrics;
use logpond_listen::net;
use logpond_listen::net::tls::{self, Acceptor};
use logpond_listen::tokens::Guard;

/// Time for the headers of a request, also of the next one on an open connection.
const HEADER_TIME_MAX: Duration = Duration::from_secs(60);

/// Headers of a request. Browsers and proxies send some thirty.
const HEADERS_MAX: usize = 100;

/// Read and write buffer of a connection; also bounds the size of all headers together.
const CONNECTION_BUFFER_BYTES: usize = 64 << 10;

const _: () = assert!(body::RECEIVED_BYTES_MAX <= BODIES.bytes_max);

/// The state that endpoints share. There is one for a server, and one for a request that sees a part of it only.
#[derive(Clone)]
pub struct App {
    /// Where pushed records go.
    pub ingest: Ingest,
    /// What answers queries.
    pub engine: Arc<dyn Engine>,
    /// The care of the files.
    pub maintenance: Arc<dyn Maintenance>,
    /// What compacts.
    pub store: Store,
    /// Where queries run.
    pub threads: QueryThreads,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// When to stop.
    pub shutdown: Shutdown,
    /// Longer lines of a push are rejected.
    pub line_bytes_max: usize,
    /// The tokens.
    pub guard: Arc<Guard>,
    /// Under which names, where no token is asked for.
    pub hosts: Arc<Hosts>,
    /// Which listeners there are.
    pub listening: Arc<net::ListenerStatus>,
    /// Queries by name.
    pub saved: Arc<SavedQueries>,
    /// What operators ask, of a cluster.
    pub operator: Option<Arc<dyn Administration>>,
    /// True if HTTP is encrypted here.
    pub is_encrypted: bool,
    /// What answers SQL.
    #[cfg(feature = "sql")]
    pub sql: Option<Arc<logpond_sql::Sql>>,
    /// The readers of the answers of SQL.
    #[cfg(feature = "sql")]
    sql_readers: logpond_engine::query::Readers,
    /// The alert rules, if there are any.
    pub alerts: Option<Arc<Alerts>>,
    /// The audit, which notes questions and changes.
    audit: Audit,
    /// The client of a session, for the audit.
    client: Arc<view::Client>,
    /// True if a part of the records is seen only.
    is_partial: bool,
    /// The header that names the tenant of a request, if one does.
    tenant_header: Option<HeaderName>,
    /// The queries of a request that sees a part of the records only.
    built_in: Arc<SavedQueries>,
    bodies: Arc<Bodies>,
    /// The calls of assistants that run now.
    calls: logpond_mcp::Calls,
    /// What uploads of journals share.
    uploads: Arc<journal_upload::Uploads>,
    /// Requests that came lately.
    once: Arc<once::RecentRequests>,
    /// Requests that are remembered longer.
    resends: Arc<Resends>,
    /// Acknowledgement ids that were given to senders that ask for some.
    acks: Arc<AtomicU64>,
}

/// What an [`App`] is made of.
pub struct Parts {
    /// Tokens, saved queries, alerts and the audit.
    pub access: Access,
    /// Where pushed records go.
    pub ingest: Ingest,
    /// The engine of queries, and the care of the files.
    pub engine: (Arc<dyn Engine>, Arc<dyn Maintenance>),
    /// What compacts.
    pub store: Store,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// When to stop.
    pub shutdown: Shutdown,
    /// Longer lines of a push are rejected.
    pub line_bytes_max: usize,
    /// Under which names, where no token is asked for.
    pub hosts: Hosts,
    /// Which listeners there are.
    pub listening: Arc<net::ListenerStatus>,
    /// The memory of requests, beyond the journal.
    pub resends: Arc<Resends>,
    /// The parts that queries share.
    pub memory: Arc<Budget>,
    /// Answers the questions of operators, in a cluster.
    pub operator: Option<Arc<dyn Administration>>,
    /// True if HTTP is encrypted here.
    pub is_encrypted: bool,
    /// Answers SQL, if it is built in.
    #[cfg(feature = "sql")]
    pub sql: Option<logpond_sql::Sql>,
    /// The header that names the tenant of a request; empty if none does.
    pub tenant_header: String,
}

/// The parts of an [`App`] that files and commands change while the server runs.
pub struct Access {
    /// The tokens.
    pub guard: Arc<Guard>,
    /// Queries by name.
    pub saved: Arc<SavedQueries>,
    /// The alert rules, if there are any.
    pub alerts: Option<Arc<Alerts>>,
    /// The audit, which notes questions and changes.
    pub audit: Audit,
}

impl App {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> App {
        let threads = QueryThreads::new(
            "lp-query",
            QUERIES_MAX,
            parts.metrics.clone(),
            parts.shutdown.clone(),
        )
        .within(Arc::clone(&parts.memory));
        App {
            ingest: parts.ingest,
            engine: parts.engine.0,
            maintenance: parts.engine.1,
            store: parts.store,
            threads,
            metrics: parts.metrics,
            shutdown: parts.shutdown,
            line_bytes_max: parts.line_bytes_max,
            guard: parts.access.guard,
            hosts: Arc::new(parts.hosts),
            listening: parts.listening,
            built_in: Arc::new(parts.access.saved.without_saved()),
            saved: parts.access.saved,
            audit: parts.access.audit,
            client: Arc::default(),
            operator: parts.operator,
            is_encrypted: parts.is_encrypted,
            #[cfg(feature = "sql")]
            sql: parts.sql.map(Arc::new),
            #[cfg(feature = "sql")]
            sql_readers: logpond_engine::query::Readers::default(),
            alerts: parts.access.alerts,
            is_partial: false,
            tenant_header: HeaderName::from_bytes(parts.tenant_header.as_bytes()).ok(),
            bodies: Arc::new(Bodies::new(parts.memory.bytes() as u64)),
            calls: logpond_mcp::Calls::default(),
            uploads: Arc::default(),
            once: Arc::default(),
            resends: parts.resends,
            acks: Arc::default(),
        }
    }
}

/// Refuses what a browser sends where only programs ask.
///
/// # Errors
/// When the request is for another host, or from a page of another site.
pub fn check_program<B>(hosts: &Hosts, request: &Request<B>) -> Result<(), ApiError> {
    hosts.check(request)?;
    origin::check(request.method(), request.headers(), origin::Target::Other)
}

/// Serves an accepted connection to its end: with `tls` after its handshake, and only if there is
/// one.
pub async fn serve_accepted(
    stream: TcpStream,
    context: net::Context,
    app: Arc<App>,
    tls: Option<Arc<Acceptor>>,
) {
    let client = stream.peer_addr().ok().map(|address| address.ip());
    let mut shutdown = context.shutdown.clone();
    let Some(tls) = tls else {
        let begun = tokio::select! {
            begun = http2::begins(&stream, HEADER_TIME_MAX) => begun,
            () = shutdown.stopping() => return,
        };
        return match begun {
            Some(true) => serve_streams(stream, context, app, client).await,
            Some(false) => serve_requests(stream, context, app, client).await,
            None => {}
        };
    };
    let incoming = tokio::select! {
        incoming = tls.accept(stream) => incoming,
        () = shutdown.stopping() => return,
    };
    match incoming {
        Ok(tls::IncomingStream::Tls(stream))
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") =>
        {
            serve_streams(*stream, context, app, client).await;
        }
        Ok(tls::IncomingStream::Tls(stream)) => serve_requests(*stream, context, app, client).await,
        Ok(tls::IncomingStream::Plain(stream)) => {
            let service = service_fn(move |_| router::refuse_plain(app.clone()));
            serve_connection(stream, context.shutdown, service).await;
        }
        // The peer was told, and it is counted.
        Err(_) => {}
    }
}

/// Serves a connection of HTTP/2 to its end.
async fn serve_streams<I>(stream: I, context: net::Context, app: Arc<App>, client: Option<IpAddr>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let mut request = trails::of_client(http2::with_host(request), client);
        let end = http2::body_end(&mut request);
        let answer = router::answer(app.clone(), request);
        async move {
            let response = answer.await;
            if let Some(end) = end {
                end.wait().await;
            }
            response
        }
    });
    http2::serve_connection(stream, context.shutdown, service).await;
}

async fn serve_requests<I>(stream: I, context: net::Context, app: Arc<App>, client: Option<IpAddr>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let unread = UnreadFlag::default();
    let stream = unread.over(stream);
    let service = service_fn(move |request| {
        let in_hand = unread.begin(&request);
        let request = trails::of_client(request, client);
        let answer = router::answer(app.clone(), request);
        async move {
            let response = answer.await;
            drop(in_hand);
            response
        }
    });
    serve_connection(stream, context.shutdown, service).await;
}

/// Serves one connection to its end; after a stop was asked for, to the end of its request.
pub async fn serve_connection<I, S>(stream: I, mut shutdown: Shutdown, service: S)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<Inflow>, Response = Response<body::Body>, Error = Infallible>,
    S::Future: 'static,
{
    let of_requests = shutdown.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        service.call(Inflow::of(request, &of_requests))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(CONNECTION_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // An error here is the peer's: it went away or does not speak HTTP and was told so.
        _ = connection.as_mut() => return,
        () = shutdown.stopping() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
