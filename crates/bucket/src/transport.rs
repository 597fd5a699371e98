//! How requests get to a store: by hyper over rustls, with bounds on time and size.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Method, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::TokioExecutor;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use rustls::ClientConfig;

use crate::rejected::RejectedRequest;

/// How long a connection may take to come about.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// How long a request may take until its answer is whole.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a store may be silent: before the answer to a request that sends nothing, and between two pieces of an answer.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The longest answer that is read: parts of objects are asked for in smaller pieces, and links are
/// no longer than this.
const ANSWER_BYTES_MAX: usize = 65 << 20;

/// How long a machine may take to tell which role's credentials it has. A machine without any may not answer at
/// all, which is to be said soon.
const ROLE_TIME_MAX: Duration = Duration::from_secs(3);

/// What the paths begin with by which machines tell credentials: at Amazon, Google and Azure.
const ROLE_PATHS: [&str; 4] = [
    "/latest/api/token",
    "/latest/meta-data/",
    "/computeMetadata/",
    "/metadata/identity/oauth2/token",
];

/// How long an unused connection is kept.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);

/// Unused connections that are kept.
const IDLE_CONNECTIONS_MAX: usize = 16;

/// Makes clients that trust the system's authorities.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    tls: ClientConfig,
    attempts: Arc<AtomicU64>,
}

impl Transport {
    /// Reads the system's authorities.
    pub(crate) fn new(attempts: Arc<AtomicU64>) -> io::Result<Transport> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let tls = ClientConfig::builder_with_provider(logpond_tls::provider())
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Transport { tls, attempts })
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIME_MAX));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIME_MAX)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build(connector);
        Ok(HttpClient::new(Service {
            client,
            attempts: Arc::clone(&self.attempts),
            silence_max: SILENCE_MAX,
        }))
    }
}

#[derive(Debug)]
struct Service {
    client: Client<HttpsConnector<TcpConnector>, HttpRequestBody>,
    attempts: Arc<AtomicU64>,
    silence_max: Duration,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        // What times out for a role is not tried again: nobody is there.
        let (time_max, kind) = if asks_role(request.uri()) {
            (ROLE_TIME_MAX, HttpErrorKind::Unknown)
        } else {
            (REQUEST_TIME_MAX, HttpErrorKind::Timeout)
        };
        let answer = tokio::time::timeout(time_max, self.exchange(request)).await;
        answer.unwrap_or_else(|_| {
            let text = format!("no whole answer within {time_max:?}");
            Err(timed_out(kind, text))
        })
    }
}

fn timed_out(kind: HttpErrorKind, text: String) -> HttpError {
    HttpError::new(kind, io::Error::new(io::ErrorKind::TimedOut, text))
}

impl Service {
    /// Sends a request and reads the whole answer, so that one limit of time holds for all of it.
    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // A request that sends something may take long; an answer comes soon.
        let sends_nothing = matches!(*request.method(), Method::GET | Method::HEAD);
        let response = self.client.request(request);
        let response = if sends_nothing {
            self.unless_silent(response).await?
        } else {
            response.await
        };
        let response = response.map_err(|error| {
            let kind = if error.is_connect() {
                HttpErrorKind::Connect
            } else {
                // The connection ended before there was an answer.
                HttpErrorKind::Interrupted
            };
            HttpError::new(kind, error)
        })?;
        let (head, body) = response.into_parts();
        let body = self.whole(body).await?;
        if let Some(rejected) = RejectedRequest::of(&head, &body) {
            // Listings would not say of which kind their failure is.
            return Err(HttpError::new(HttpErrorKind::Unknown, rejected));
        }
        let never = |never: std::convert::Infallible| match never {};
        let body = HttpResponseBody::new(Full::new(body).map_err(never));
        Ok(HttpResponse::from_parts(head, body))
    }

    /// Waits as long as a store may be silent.
    async fn unless_silent<T>(&self, waiting: impl Future<Output = T>) -> Result<T, HttpError> {
        let waited = tokio::time::timeout(self.silence_max, waiting).await;
        waited.map_err(|_| {
            let text = format!("nothing came for {:?}", self.silence_max);
            timed_out(HttpErrorKind::Timeout, text)
        })
    }

    /// The whole of an answer.
    async fn whole(&self, body: Incoming) -> Result<Bytes, HttpError> {
        let mut body = Limited::new(body, ANSWER_BYTES_MAX);
        let mut whole = BytesMut::new();
        while let Some(frame) = self.unless_silent(body.frame()).await? {
            let frame = frame.map_err(|error| {
                let kind = if error.is::<LengthLimitError>() {
                    HttpErrorKind::Decode
                } else {
                    HttpErrorKind::Interrupted
                };
                HttpError::new_boxed(kind, error)
            })?;
            if let Ok(data) = frame.into_data() {
                whole.extend_from_slice(&data);
            }
        }
        Ok(whole.freeze())
    }
}

/// Whether a machine is asked for the credentials of its role, and not a store for objects.
fn asks_role(uri: &Uri) -> bool {
    ROLE_PATHS.iter().any(|path| uri.path().starts_with(path))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// The answer of a store that says this and then nothing.
    fn answer(said: &'static str) -> Result<HttpResponse, HttpError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        let store = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            stream.write_all(said.as_bytes()).unwrap();
            // Until the client has gone.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        let transport = Transport::new(Arc::default()).unwrap();
        let connector = HttpsConnectorBuilder::new().with_tls_config(transport.tls);
        let connector = connector.https_or_http().enable_http1().wrap_connector(tcp);
        let service = Service {
            client: Client::builder(TokioExecutor::new()).build(connector),
            attempts: Arc::default(),
            silence_max: Duration::from_millis(100),
        };
        let request = HttpRequest::new(HttpRequestBody::empty());
        let (mut head, body) = request.into_parts();
        head.uri = url.parse().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let answer = runtime.block_on(service.call(HttpRequest::from_parts(head, body)));
        drop((service, runtime));
        store.join().unwrap();
        answer
    }

    #[test]
    fn a_silent_store_is_not_waited_for() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let part = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc";
        for said in ["", head, part] {
            let error = answer(said).unwrap_err();
            assert_eq!(error.kind(), HttpErrorKind::Timeout, "{said:?}");
        }
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(answer(whole).unwrap().status(), 200);
    }
}
