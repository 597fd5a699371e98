//! What other nodes may ask of this one: one table.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use logpond_cluster::Registry;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::registry_file;
use super::{Mail, Member};
use crate::http::{self, ApiError, Body, Kind, QueryThreads};
use crate::net;
use crate::query::{Nodes, Output, Pond};
use crate::shutdown::Shutdown;
use crate::telemetry::Metrics;

/// Membership messages.
pub(super) const PATH_GOSSIP: &str = "/cluster/v1/gossip";
/// What the node has heard; what it is told to note.
pub(super) const PATH_REGISTRY: &str = "/cluster/v1/registry";
/// What the node holds.
pub(super) const PATH_INVENTORY: &str = "/cluster/v1/inventory";
/// A question about a share of it.
pub(super) const PATH_QUESTION: &str = "/cluster/v1/question";

/// The header of a membership message that says where its sender is reached.
pub(super) const FROM: &str = "logpond-from";

/// The longest membership message; those of a hundred nodes are some 20 KB.
const GOSSIP_BYTES_MAX: usize = 1 << 20;

/// The longest question: a filter of 1 MiB, and a share of 100,000 segments.
const QUESTION_BYTES_MAX: usize = 16 << 20;

/// Bytes of all bodies at a time.
const BODIES_BYTES_MAX: usize = 64 << 20;

const BYTES: &str = "application/octet-stream";

/// What this node is for others.
pub struct Service {
    member: Arc<Member>,
    pond: Arc<Pond>,
    mail: Mail,
    threads: QueryThreads,
    bodies: Arc<Semaphore>,
}

impl Service {
    /// Puts the parts together.
    pub fn new(
        member: Arc<Member>,
        pond: Arc<Pond>,
        mail: Mail,
        metrics: Arc<Metrics>,
        shutdown: Shutdown,
    ) -> Service {
        Service {
            member,
            pond,
            mail,
            threads: QueryThreads::new("lp-peer", metrics, shutdown),
            bodies: Arc::new(Semaphore::new(BODIES_BYTES_MAX)),
        }
    }
}

/// Serves one connection of another node.
pub async fn serve_connection(
    stream: TcpStream,
    _peer: IpAddr,
    context: net::Context,
    service: Arc<Service>,
) {
    let service = service_fn(move |request| answer(service.clone(), request));
    http::serve_connection(stream, context, service).await;
}

async fn answer(
    service: Arc<Service>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let answered = route(&service, request).await;
    Ok(answered.unwrap_or_else(ApiError::into_response))
}

async fn route(
    service: &Arc<Service>,
    request: Request<Incoming>,
) -> Result<Response<Body>, ApiError> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    match (&method, path.as_str()) {
        (&Method::POST, PATH_GOSSIP) => gossip(service, request).await,
        (&Method::GET, PATH_REGISTRY) => {
            let member = Arc::clone(&service.member);
            service
                .blocking(move || Ok(bytes(member.registry().to_bytes())))
                .await
        }
        (&Method::POST, PATH_REGISTRY) => learn(service, request).await,
        (&Method::GET, PATH_INVENTORY) => inventory(service, &request).await,
        (&Method::POST, PATH_QUESTION) => question(service, request).await,
        _ => {
            let message = format!("a node has nothing for {method} {path}; is it another release?");
            Err(ApiError::new(Kind::NotFound, message))
        }
    }
}

fn bytes(bytes: Vec<u8>) -> Response<Body> {
    Body::whole(StatusCode::OK, BYTES, bytes)
}

fn nothing() -> Response<Body> {
    Body::whole(StatusCode::NO_CONTENT, BYTES, Vec::new())
}

impl Service {
    /// Runs what may block, but only for a moment or a sync.
    async fn blocking(
        &self,
        work: impl FnOnce() -> Result<Response<Body>, ApiError> + Send + 'static,
    ) -> Result<Response<Body>, ApiError> {
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(ApiError::new(Kind::Internal, "the work panicked")))
    }
}

async fn gossip(
    service: &Arc<Service>,
    request: Request<Incoming>,
) -> Result<Response<Body>, ApiError> {
    let from = request.headers().get(FROM);
    let from = from.and_then(|from| from.to_str().ok()?.parse::<SocketAddr>().ok());
    let from = from.ok_or_else(|| {
        let message = format!("the header {FROM} names no address");
        ApiError::bad_request(message)
    })?;
    let body = request.into_body();
    let message = http::receive(body, GOSSIP_BYTES_MAX, &service.bodies).await?;
    service.mail.receive(from, message.into_bytes());
    Ok(nothing())
}

async fn learn(
    service: &Arc<Service>,
    request: Request<Incoming>,
) -> Result<Response<Body>, ApiError> {
    let body = request.into_body();
    let bytes_max = registry_file::BYTES_MAX as usize;
    let body = http::receive(body, bytes_max, &service.bodies).await?;
    let member = Arc::clone(&service.member);
    let work = move || {
        let heard = Registry::from_bytes(&body.into_bytes());
        let heard = heard.map_err(|error| ApiError::bad_request(error.to_string()))?;
        member.learn(&heard).map_err(|error| {
            let message = format!("the registry cannot be written: {error}");
            ApiError::new(Kind::JournalFailed, message)
        })?;
        Ok(nothing())
    };
    service.blocking(work).await
}

async fn inventory(
    service: &Arc<Service>,
    request: &Request<Incoming>,
) -> Result<Response<Body>, ApiError> {
    let known = request.headers().get(IF_NONE_MATCH).cloned();
    let member = Arc::clone(&service.member);
    let work = move || {
        let indexed = member.own_inventory();
        let inventory = indexed.inventory();
        // The process is in it: what another life said is another inventory.
        let tag = format!("\"{}-{}\"", inventory.process, inventory.version);
        if known.is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
            return Ok(Body::whole(StatusCode::NOT_MODIFIED, BYTES, Vec::new()));
        }
        let mut response = bytes(inventory.to_bytes());
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(ETAG, tag);
        }
        Ok(response)
    };
    service.blocking(work).await
}

async fn question(
    service: &Arc<Service>,
    request: Request<Incoming>,
) -> Result<Response<Body>, ApiError> {
    let body = request.into_body();
    let question = http::receive(body, QUESTION_BYTES_MAX, &service.bodies).await?;
    let pond = Arc::clone(&service.pond);
    let prepare = move || {
        let question = Pond::read_question(&question.into_bytes());
        question.map_err(|error| ApiError::bad_request(error.to_string()))
    };
    let run = move |question, mut out: Output| pond.answer_node(&question, &mut out);
    service.threads.spawn(prepare, run).await
}
