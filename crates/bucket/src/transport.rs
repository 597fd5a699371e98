//! How requests get to a store: by hyper over rustls, with bounds on time and size.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::Uri;
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
        }))
    }
}

#[derive(Debug)]
struct Service {
    client: Client<HttpsConnector<TcpConnector>, HttpRequestBody>,
    attempts: Arc<AtomicU64>,
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
            let error = io::Error::new(io::ErrorKind::TimedOut, text);
            Err(HttpError::new(kind, error))
        })
    }
}

impl Service {
    /// Sends a request and reads the whole answer, so that one limit of time holds for all of it.
    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.client.request(request).await.map_err(|error| {
            let kind = if error.is_connect() {
                HttpErrorKind::Connect
            } else {
                // The connection ended before there was an answer.
                HttpErrorKind::Interrupted
            };
            HttpError::new(kind, error)
        })?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| {
            let kind = if error.is::<LengthLimitError>() {
                HttpErrorKind::Decode
            } else {
                HttpErrorKind::Interrupted
            };
            HttpError::new_boxed(kind, error)
        })?;
        let body: Bytes = body.to_bytes();
        if let Some(rejected) = RejectedRequest::of(&head, &body) {
            // Listings would not say of which kind their failure is.
            return Err(HttpError::new(HttpErrorKind::Unknown, rejected));
        }
        let never = |never: std::convert::Infallible| match never {};
        let body = HttpResponseBody::new(Full::new(body).map_err(never));
        Ok(HttpResponse::from_parts(head, body))
    }
}

/// Whether a machine is asked for the credentials of its role, and not a store for objects.
fn asks_role(uri: &Uri) -> bool {
    ROLE_PATHS.iter().any(|path| uri.path().starts_with(path))
}
