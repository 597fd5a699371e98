//! What other nodes may ask of this one: one table.

use std::convert::Infallible;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use hyper::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use logpond_cluster::give_up::WhoHolds;
use logpond_cluster::{IndexedInventory, NodeId, Recent, Registry};
use logpond_record::{Id, SourceId, cast};
use logpond_segment::batches::BatchSet;
use tokio::net::TcpStream;

use crate::cluster::canary::{self, Canary};
use crate::cluster::messages::*;
use crate::cluster::registry_file;
use crate::cluster::{Mail, Member};
use crate::handoff::{CopyError, Handoff, JournalPiece};
use logpond_engine::query::{Engine, LocalEngine, Nodes, Output, Search};
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::Metrics;
use logpond_http as http;
use logpond_http::{ApiError, Bodies, Body, Hosts, Inflow, Kind, QUERIES_MAX, QueryThreads};
use logpond_listen::net;
use logpond_listen::net::tls::ClusterTls;

/// The longest membership message; those of a hundred nodes are some 20 KB.
const GOSSIP_BYTES_MAX: usize = 1 << 20;

/// The longest small message: what is held of a few thousand files.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Chunks of a copy that wait for the disk.
const CHUNKS_MAX: usize = 8;

/// The longest question: a filter of 1 MiB, and a share of 100,000 segments.
const QUESTION_BYTES_MAX: usize = 16 << 20;

/// Read at a time of a file that is sent.
const CHUNK_BYTES: usize = 64 << 10;

/// Followers of other nodes at a time, apart from their questions, which must not wait for them:
/// those of eight nodes that each serve as many as they may.
const FOLLOWERS_MAX: usize = 8 * QUERIES_MAX;

const BYTES: &str = "application/octet-stream";

/// Gives what is known of alerts as bytes.
pub type AlertStates = Arc<dyn Fn() -> Vec<u8> + Send + Sync>;

/// What this node is for others.
pub struct Service {
    member: Arc<Member>,
    handoff: Arc<Handoff>,
    pond: Arc<LocalEngine>,
    engine: Arc<dyn Engine>,
    mail: Mail,
    threads: QueryThreads,
    followers: QueryThreads,
    /// What is known here of alerts, if there are rules for any.
    alerts: Option<AlertStates>,
    bodies: Bodies,
    shutdown: Shutdown,
}

impl Service {
    /// Puts the parts together; `alerts` is the state of alerts, if there are rules for any.
    pub fn new(
        (member, handoff): (Arc<Member>, Arc<Handoff>),
        (pond, engine): (Arc<LocalEngine>, Arc<dyn Engine>),
        mail: Mail,
        alerts: Option<AlertStates>,
        metrics: Arc<Metrics>,
        shutdown: Shutdown,
    ) -> Service {
        let memory_bytes = pond.budget().bytes() as u64;
        let bodies = Bodies::new(memory_bytes);
        Service {
            member,
            handoff,
            pond,
            engine,
            mail,
            threads: QueryThreads::new("lp-peer", QUERIES_MAX, metrics.clone(), shutdown.clone()),
            followers: QueryThreads::new("lp-tail", FOLLOWERS_MAX, metrics, shutdown.clone()),
            shutdown,
            alerts,
            bodies,
        }
    }
}

/// Serves one connection of another node; with `tls` only if it is one.
pub async fn serve_connection(
    stream: TcpStream,
    peer: IpAddr,
    context: net::Context,
    service: Arc<Service>,
    tls: Option<Arc<ClusterTls>>,
) {
    let Some(tls) = tls else {
        // Whoever is on this machine may connect, a browser among them.
        let hosts = Hosts::addresses();
        let answer = service_fn(move |request| {
            let checked = http::check_program(&hosts, &request);
            let service = service.clone();
            async move {
                match checked {
                    Ok(()) => answer(service, request).await,
                    Err(error) => Ok(error.into_response()),
                }
            }
        });
        return http::serve_connection(stream, context.shutdown, answer).await;
    };
    let answer = service_fn(move |request| answer(service.clone(), request));
    let mut shutdown = context.shutdown.clone();
    let accepted = tokio::select! {
        accepted = tls.accept(stream, peer) => accepted,
        () = shutdown.stopping() => return,
    };
    // One that is refused was told, and it is counted.
    if let Ok(node) = accepted {
        http::serve_connection(*node.stream, context.shutdown, answer).await;
    }
}

async fn answer(
    service: Arc<Service>,
    request: Request<Inflow>,
) -> Result<Response<Body>, Infallible> {
    let own = service.member.identity().node;
    let answered = match meant_for_another(own, &request) {
        Some(error) => Err(error),
        None => route(&service, request).await,
    };
    let mut response = answered.unwrap_or_else(ApiError::into_response);
    if let Ok(own) = HeaderValue::from_str(&own.to_string()) {
        response.headers_mut().insert(NODE, own);
    }
    Ok(response)
}

/// Why a call is not answered that is for another node, which was here before or is to come.
fn meant_for_another(own: NodeId, request: &Request<Inflow>) -> Option<ApiError> {
    let meant = request.headers().get(NODE)?.to_str().unwrap_or_default();
    let is_own = meant.parse() == Ok(own);
    (!is_own).then(|| {
        let message = format!("this is node {own}, not {meant}");
        ApiError::new(Kind::NotFound, message)
    })
}

async fn route(
    service: &Arc<Service>,
    request: Request<Inflow>,
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
        (&Method::POST, PATH_REGISTRY) => {
            let bytes_max = cast::to_usize(registry_file::BYTES_MAX);
            service.message(request, bytes_max, learn).await
        }
        (&Method::GET, PATH_SAVED) => {
            let saved = Arc::clone(&service.member.saved);
            service
                .blocking(move || Ok(bytes(saved.to_text().into_bytes())))
                .await
        }
        (&Method::GET, PATH_INVENTORY) => {
            inventory(service, &request, |member| member.own_inventory()).await
        }
        (&Method::GET, PATH_STORED) => inventory(service, &request, Member::own_stored).await,
        (&Method::POST, PATH_QUESTION) => question(service, &service.threads, request).await,
        (&Method::POST, PATH_FOLLOW) => question(service, &service.followers, request).await,
        (&Method::POST, PATH_ORIGINALS) => {
            service.message(request, MESSAGE_BYTES_MAX, originals).await
        }
        (&Method::POST, PATH_TAKEN) => service.message(request, MESSAGE_BYTES_MAX, taken).await,
        (&Method::POST, PATH_CLAIM) => service.message(request, MESSAGE_BYTES_MAX, claim).await,
        (&Method::POST, PATH_REPORT) => service.message(request, MESSAGE_BYTES_MAX, report).await,
        (&Method::POST, PATH_HOLDS) => service.message(request, MESSAGE_BYTES_MAX, holds).await,
        (&Method::GET, PATH_OFFER) => offer(service, &request).await,
        (&Method::GET, PATH_STATUS) => status(service).await,
        (&Method::GET, PATH_ALERTS) => alerts(service).await,
        (&Method::POST, PATH_CANARY) => find_canary(service, request).await,
        (&Method::POST, PATH_LEAVE) => service.message(request, MESSAGE_BYTES_MAX, leave).await,
        (&Method::GET, PATH_JOURNAL) => journal(service, &request).await,
        (&Method::PUT, PATH_SEGMENT) => segment(service, request).await,
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

    /// Receives a message of at most `bytes_max` and answers it, as [`Service::blocking`] does.
    async fn message(
        self: &Arc<Service>,
        request: Request<Inflow>,
        bytes_max: usize,
        answer: fn(&Service, &[u8]) -> Result<Response<Body>, ApiError>,
    ) -> Result<Response<Body>, ApiError> {
        let message = http::receive(request.into_body(), bytes_max, &self.bodies).await?;
        let service = Arc::clone(self);
        self.blocking(move || answer(&service, &message.into_bytes()))
            .await
    }
}

fn malformed(error: impl Display) -> ApiError {
    ApiError::bad_request(error.to_string())
}

async fn gossip(
    service: &Arc<Service>,
    request: Request<Inflow>,
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

fn learn(service: &Service, message: &[u8]) -> Result<Response<Body>, ApiError> {
    let heard = Registry::from_bytes(message).map_err(malformed)?;
    service.member.learn(&heard).map_err(|error| {
        let message = format!("the registry cannot be written: {error}");
        ApiError::new(Kind::JournalFailed, message)
    })?;
    let noted = NewsReceipt {
        node: service.member.identity().node,
        has_joined: service.member.has_joined(),
    };
    Ok(bytes(noted.to_bytes()))
}

async fn inventory(
    service: &Arc<Service>,
    request: &Request<Inflow>,
    of: fn(&Member) -> Arc<IndexedInventory>,
) -> Result<Response<Body>, ApiError> {
    let known = request.headers().get(IF_NONE_MATCH).cloned();
    let takes_recent = request.headers().get(A_IM).is_some_and(|im| im == RECENT);
    let member = Arc::clone(&service.member);
    let work = move || {
        let indexed = of(&member);
        let inventory = indexed.inventory();
        // The process is in it: what another life said is another inventory.
        let base = format!("\"{}-{}-", inventory.process, inventory.base);
        let tag = format!("{base}{}\"", inventory.version);
        let known = known.as_ref().map_or(&[][..], HeaderValue::as_bytes);
        if known == tag.as_bytes() {
            return Ok(Body::whole(StatusCode::NOT_MODIFIED, BYTES, Vec::new()));
        }
        let mut response = if takes_recent && known.starts_with(base.as_bytes()) {
            recent(&inventory.recent())
        } else {
            bytes(inventory.to_bytes())
        };
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(ETAG, tag);
        }
        Ok(response)
    };
    service.blocking(work).await
}

/// What of an inventory has changed, for a node that knows the rest.
fn recent(recent: &Recent) -> Response<Body> {
    let mut response = Body::whole(StatusCode::IM_USED, BYTES, recent.to_bytes());
    let im = HeaderValue::from_static(RECENT);
    response.headers_mut().insert(IM, im);
    response
}

async fn question(
    service: &Arc<Service>,
    threads: &QueryThreads,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let body = request.into_body();
    let question = http::receive(body, QUESTION_BYTES_MAX, &service.bodies).await?;
    let pond = Arc::clone(&service.pond);
    let prepare = move || {
        let question = LocalEngine::read_question(&question.into_bytes());
        question.map_err(malformed)
    };
    let run = move |question, mut out: Output| pond.answer_node(&question, &mut out);
    threads.spawn(prepare, run).await
}

fn originals(service: &Service, message: &[u8]) -> Result<Response<Body>, ApiError> {
    let wanted = BatchSet::from_bytes(message).map_err(malformed)?;
    Ok(bytes(service.member.own_originals(&wanted).to_bytes()))
}

fn taken(service: &Service, message: &[u8]) -> Result<Response<Body>, ApiError> {
    let wanted = BatchSet::from_bytes(message).map_err(malformed)?;
    Ok(bytes(service.member.own_taken(&wanted).to_bytes()))
}

fn claim(service: &Service, message: &[u8]) -> Result<Response<Body>, ApiError> {
    let text = std::str::from_utf8(message).ok();
    let store = text.and_then(|text| text.parse().ok());
    let store = store.ok_or_else(|| ApiError::bad_request("the body names no node"))?;
    let claim = service.handoff.claim(store);
    Ok(claim.map_or_else(nothing, |claim| bytes(claim.to_bytes())))
}

/// Answers as soon as there is something for a store to claim, or after a while that there is not.
async fn offer(
    service: &Arc<Service>,
    request: &Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let store: NodeId = parameter(request, "store")?;
    let deadline = Instant::now() + OFFER_WAIT_MAX;
    let mut stop = service.shutdown.clone();
    loop {
        let (is_offered, next, mut news) = service.handoff.is_offered(store);
        if is_offered {
            return Ok(bytes(Vec::new()));
        }
        let until = next.map_or(deadline, |next| (Instant::now() + next).min(deadline));
        tokio::select! {
            _ = news.changed() => {}
            () = tokio::time::sleep_until(until.into()) => {}
            () = stop.stopping() => return Ok(nothing()),
        }
        if Instant::now() >= deadline {
            return Ok(nothing());
        }
    }
}

fn report(service: &Service, message: &[u8]) -> Result<Response<Body>, ApiError> {
    let report = Report::from_bytes(message).map_err(malformed)?;
    service
        .handoff
        .reported(report.claim, report.sources.as_ref());
    Ok(nothing())
}

fn holds(service: &Service, message: &[u8]) -> Result<Response<Body>, ApiError> {
    let question = WhoHolds::from_bytes(message).map_err(malformed)?;
    Ok(bytes(service.handoff.holds(&question).to_bytes()))
}

async fn status(service: &Arc<Service>) -> Result<Response<Body>, ApiError> {
    let handoff = Arc::clone(&service.handoff);
    let work = move || {
        let status = serde_json::to_vec(&handoff.status());
        let status = status.map_err(|error| ApiError::new(Kind::Internal, error.to_string()))?;
        Ok(bytes(status))
    };
    service.blocking(work).await
}

async fn alerts(service: &Arc<Service>) -> Result<Response<Body>, ApiError> {
    let states = service
        .alerts
        .clone()
        .ok_or_else(|| ApiError::new(Kind::NotFound, "this node has no alert rules"))?;
    service.blocking(move || Ok(bytes(states()))).await
}

/// Looks for a record in an answer over all nodes.
async fn find_canary(
    service: &Arc<Service>,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let message = http::receive(request.into_body(), canary::BYTES_MAX, &service.bodies).await?;
    let engine = Arc::clone(&service.engine);
    let prepare = move || {
        let canary = Canary::from_bytes(&message.into_bytes());
        canary.map_err(malformed)?.search().map_err(malformed)
    };
    let run = move |search: Search, mut out: Output| {
        if let Ok(trailer) = engine.search(&search, &mut out)
            && trailer.rows > 0
        {
            // If the one that asked is gone, it knows.
            let _ = out
                .append(|chunk| chunk.extend_from_slice(FOUND))
                .and_then(|()| out.flush());
        }
    };
    service.threads.spawn(prepare, run).await
}

fn leave(service: &Service, message: &[u8]) -> Result<Response<Body>, ApiError> {
    let leaves = match message {
        LEAVES => true,
        STAYS => false,
        _ => {
            return Err(ApiError::bad_request(
                "the body says neither leave nor stay",
            ));
        }
    };
    let set = service.handoff.set_leaving(leaves);
    set.map_err(|error| ApiError::new(Kind::DiskFull, error.to_string()))?;
    Ok(nothing())
}

/// A parameter of the query string.
fn parameter<T: FromStr>(request: &Request<Inflow>, name: &str) -> Result<T, ApiError> {
    let query = request.uri().query().unwrap_or_default();
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(key, _)| *key == name);
    found
        .and_then(|(_, value)| value.parse().ok())
        .ok_or_else(|| ApiError::bad_request(format!("the parameter {name} is missing or wrong")))
}

async fn journal(
    service: &Arc<Service>,
    request: &Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let source = SourceId {
        incarnation: parameter(request, "incarnation")?,
        sequence: parameter(request, "sequence")?,
    };
    let handoff = Arc::clone(&service.handoff);
    let prepare = move || {
        let gone = || ApiError::new(Kind::NotFound, format!("{source} is not here any more"));
        handoff.journal(source).ok_or_else(gone)
    };
    service.threads.spawn(prepare, send_file).await
}

/// Sends a file to a reader who notices if it is cut.
fn send_file(piece: JournalPiece, mut out: Output) {
    let mut offset = 0;
    while offset < piece.bytes {
        let count = cast::to_usize((piece.bytes - offset).min(CHUNK_BYTES as u64));
        let mut read = Ok(());
        let sent = out.append(|chunk| {
            let start = chunk.len();
            chunk.resize(start + count, 0);
            read = piece.file.read_at(offset, &mut chunk[start..]);
        });
        if read.is_err() || sent.is_err() {
            return;
        }
        offset += count as u64;
    }
    // If the reader is gone, it knows.
    let _ = out.flush();
}

async fn segment(
    service: &Arc<Service>,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let id: Id = parameter(&request, "id")?;
    let hash = request.headers().get(HASH);
    let hash = hash.and_then(|hash| u128::from_str_radix(hash.to_str().ok()?, 16).ok());
    let hash =
        hash.ok_or_else(|| ApiError::bad_request(format!("the header {HASH} is no hash")))?;
    let (sender, mut receiver) = tokio::sync::mpsc::channel(CHUNKS_MAX);
    let handoff = Arc::clone(&service.handoff);
    let prepare = move || {
        handoff.receive(id, hash, &mut receiver).map_err(|error| {
            let kind = match error {
                CopyError::Disk(_) => Kind::DiskFull,
                CopyError::NoStore => Kind::WrongRole,
                CopyError::Busy => Kind::Busy,
                CopyError::Differs | CopyError::Damaged(_) => Kind::BadRequest,
            };
            ApiError::new(kind, error.to_string())
        })
    };
    let taken = service.threads.spawn(prepare, |(), _| ());
    let (_, taken) = tokio::join!(http::pass_on(request.into_body(), sender), taken);
    taken
}
