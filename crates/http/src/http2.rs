//! Connections that speak HTTP/2 (RFC 9113).

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::header::{HOST, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::{Service, service_fn};
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::inflow::{End, Inflow};
use logpond_host::shutdown::Shutdown;

/// Requests at a time of one connection. Exporters have a handful; a collector in front of many, or a
/// dashboard, dozens.
const STREAMS_MAX: u32 = 64;

/// Bytes of all headers of a request: tokens and tracing are some hundreds, a query in an address
/// some thousands.
const HEADERS_BYTES_MAX: u32 = 64 << 10;

/// After how long without a sign of life a client is asked for one, and how long it may take.
const PING_INTERVAL: Duration = Duration::from_secs(60);
const PING_TIME_MAX: Duration = Duration::from_secs(20);

/// The first bytes of a client that knows without TLS that HTTP/2 is spoken (RFC 9113, section 3.4), and how many
/// of them are those of no method of HTTP/1.1.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const PREFACE_BYTES_MIN: usize = b"PRI".len();

/// How long it takes to look again at a connection of which one or two bytes are there: at first, and at most.
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(5);
const LOOK_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Says whether a connection begins with the preface of HTTP/2, and takes nothing of it. Nothing comes back if the
/// connection broke, ended or sent nothing within `time_max`.
pub(super) async fn begins(stream: &TcpStream, time_max: Duration) -> Option<bool> {
    let looking = async {
        let mut first = [0; PREFACE.len()];
        let mut pause = LOOK_PAUSE_MIN;
        loop {
            match stream.peek(&mut first).await {
                Ok(bytes @ 1..) => match begins_with_preface(&first[..bytes]) {
                    Some(is_preface) => return Some(is_preface),
                    // What is there already ends no wait for more.
                    None => tokio::time::sleep(pause).await,
                },
                _ => return None,
            }
            pause = (pause * 2).min(LOOK_PAUSE_MAX);
        }
    };
    tokio::time::timeout(time_max, looking).await.ok().flatten()
}

/// True if a connection begins with the preface; `None` if too few bytes are there to tell.
fn begins_with_preface(first: &[u8]) -> Option<bool> {
    let is_preface = PREFACE.starts_with(first);
    let is_short = is_preface && first.len() < PREFACE_BYTES_MIN;
    (!is_short).then_some(is_preface)
}

/// Serves one connection to its end; after a stop was asked for, to the end of its requests.
pub(super) async fn serve_connection<I, S, B>(stream: I, mut shutdown: Shutdown, service: S)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<Inflow>, Response = Response<B>, Error = Infallible>,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let of_requests = shutdown.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        service.call(Inflow::of(request, &of_requests))
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEADERS_BYTES_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIME_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // An error here is the peer's: it went away or does not speak HTTP/2.
        _ = connection.as_mut() => return,
        () = shutdown.stopping() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Gives a request the header of HTTP/1.1 that says whom it is for, where only its address does.
pub(super) fn with_host(mut request: Request<Inflow>) -> Request<Inflow> {
    if !request.headers().contains_key(HOST)
        && let Some(authority) = request.uri().authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        request.headers_mut().insert(HOST, host);
    }
    request
}

/// The end of a body that a request without one by its method brings, for which its answer waits: clients that are
/// still sending miss an answer (curl 7.88).
pub(super) fn body_end(request: &mut Request<Inflow>) -> Option<End> {
    let is_read_only = matches!(*request.method(), Method::GET | Method::HEAD);
    let has_body = is_read_only && !request.body().is_end_stream();
    has_body.then(|| request.body_mut().end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preface_is_told_from_requests() {
        for (first, expected) in [
            (PREFACE, Some(true)),
            (&PREFACE[..14], Some(true)),
            (b"PRI", Some(true)),
            (b"PR", None),
            (b"P", None),
            (b"PRI / HTTP/1.1\r\n", Some(false)),
            (b"PROPFIND / HTTP/1.1\r\n", Some(false)),
            (b"PO", Some(false)),
            (b"\r\n", Some(false)),
        ] {
            let found = begins_with_preface(first);
            assert_eq!(found, expected, "{}", first.escape_ascii());
        }
    }
}
