//! Calls to other nodes. They block, each for a bounded time.

use std::fmt;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use logpond_cluster::give_up::{HoldingsReply, WhoHolds};
use logpond_cluster::offers::Claim;
use logpond_cluster::wire::DecodeError;
use logpond_cluster::{Inventory, NodeId, Recent, Registry};
use logpond_record::{Id, SourceId, Timestamp};
use logpond_segment::batches::BatchSet;

use super::canary::Canary;
use super::clocks;
use super::messages::{
    A_IM, FOUND, FROM, HASH, LEAVES, NODE, NewsReceipt, OFFER_WAIT_MAX, PATH_ALERTS, PATH_CANARY,
    PATH_CLAIM, PATH_GOSSIP, PATH_HOLDS, PATH_INVENTORY, PATH_JOURNAL, PATH_LEAVE, PATH_OFFER,
    PATH_ORIGINALS, PATH_REGISTRY, PATH_REPORT, PATH_SAVED, PATH_SEGMENT, PATH_STATUS, PATH_STORED,
    PATH_TAKEN, RECENT, Report, STAYS,
};
use super::registry_file;
use super::status::{self, NodeStatus};
use logpond_engine::saved::TEXT_BYTES_MAX;
use logpond_listen::net::tls::{ClusterTls, reason_of};

/// How long a node may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a node may take for a small answer: it is in memory.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The same for a node that is thought to be gone: one that came back answers at once.
pub(super) const GONE_TIMEOUT: Duration = Duration::from_millis(300);

/// How long a node that answers a question may be silent. It says several times in this that it is
/// there, also while it finds nothing.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The longest inventory: 100,000 segments of 160 bytes with a hundred intervals each.
const INVENTORY_BYTES_MAX: u64 = 256 << 20;

/// The longest small answer: a claim of thousands of files, what a node holds of them.
const MESSAGE_BYTES_MAX: u64 = 16 << 20;

/// The longest text of an error.
const ERROR_BYTES_MAX: u64 = 4 << 10;

/// The status of an answer that says what has changed (RFC 3229, section 10.4.1).
const IM_USED: u16 = 226;

/// A call failed; why, in words.
#[derive(Clone, Debug)]
pub struct PeerError(pub(super) String);

impl PeerError {
    /// A call that failed for this reason.
    pub fn new(why: impl Into<String>) -> PeerError {
        PeerError(why.into())
    }
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PeerError {}

impl From<ureq::Error> for PeerError {
    fn from(error: ureq::Error) -> PeerError {
        PeerError(reason_of(&error))
    }
}

/// The part of an inventory that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InventoryPart {
    /// All that it has.
    All,
    /// Its segments, which change rarely.
    Segments,
}

/// The answer of a node, and the time of its clock.
pub(super) struct InventoryAnswer {
    pub(super) fetched: InventoryUpdate,
    pub(super) at: Option<Timestamp>,
}

/// An inventory, unless it is the one that is known.
pub(super) enum InventoryUpdate {
    /// It has not changed.
    Same,
    /// What of it has changed, and its tag.
    Recent(Recent, String),
    /// It and its tag.
    New(Box<Inventory>, String),
}

/// The node that a call is for. Addresses are used again: another process may answer at the address of a
/// node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallTarget {
    address: SocketAddr,
    /// The node that must answer; anybody may where there is none.
    node: Option<NodeId>,
}

impl CallTarget {
    /// A node that is thought to be at an address.
    pub(super) fn node(node: NodeId, address: SocketAddr) -> CallTarget {
        let node = Some(node);
        CallTarget { address, node }
    }

    /// Whoever is at an address.
    pub(super) fn whoever(address: SocketAddr) -> CallTarget {
        CallTarget {
            address,
            node: None,
        }
    }

    /// Makes sure that an answer is of the node that was asked: what another one holds, says or does is
    /// nothing of it.
    fn check(self, response: &Response) -> Result<(), PeerError> {
        let Some(node) = self.node else {
            return Ok(());
        };
        let said = response.headers().get(NODE).map(|said| said.to_str());
        match said {
            Some(Ok(said)) if said.parse() == Ok(node) => Ok(()),
            Some(Ok(said)) => Err(PeerError(format!(
                "another node ({said}) is at {}, not {node}",
                self.address
            ))),
            _ => Err(PeerError(format!(
                "what is at {} does not say that it is node {node}",
                self.address
            ))),
        }
    }
}

impl fmt::Display for CallTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// Calls other nodes.
pub(super) struct Client {
    plain: ureq::Agent,
    /// What this node shows to others, and by what it knows them.
    tls: Option<Arc<ClusterTls>>,
    /// Where this node is reached.
    own: SocketAddr,
}

impl Client {
    pub(super) fn new(own: SocketAddr, tls: Option<Arc<ClusterTls>>) -> Client {
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .max_redirects(0)
            .proxy(None)
            .user_agent(concat!("logpond/", env!("CARGO_PKG_VERSION")))
            .build();
        let plain = logpond_client::agent_of(config);
        Client { plain, tls, own }
    }

    fn url(&self, to: CallTarget, path: &str) -> String {
        let to = to.address;
        match &self.tls {
            Some(_) => format!("https://{to}{path}"),
            None => format!("http://{to}{path}"),
        }
    }

    /// Asked for each call, so that it shows the certificate of now.
    fn agent(&self) -> ureq::Agent {
        match &self.tls {
            Some(tls) => tls.agent(),
            None => self.plain.clone(),
        }
    }

    /// A call whose answer is small.
    fn quick<B>(
        &self,
        to: CallTarget,
        request: ureq::RequestBuilder<B>,
    ) -> ureq::RequestBuilder<B> {
        meant_for(to, request)
            .config()
            .http_status_as_error(false)
            .timeout_global(Some(ANSWER_TIMEOUT))
            .build()
    }

    /// Sends a small message, to an answer that is small, too.
    fn send(&self, to: CallTarget, path: &str, message: &[u8]) -> Result<Response, PeerError> {
        let request = self.quick(to, self.agent().post(self.url(to, path)));
        check(to, request.send(message)?)
    }

    /// A call with a long body or a long answer: it may take as long as it makes progress.
    fn streaming<B>(
        &self,
        to: CallTarget,
        request: ureq::RequestBuilder<B>,
    ) -> ureq::RequestBuilder<B> {
        meant_for(to, request)
            .config()
            .http_status_as_error(false)
            .timeout_recv_response(Some(SILENCE_MAX))
            .timeout_per_read(Some(SILENCE_MAX))
            .timeout_per_write(Some(SILENCE_MAX))
            .build()
    }

    /// Sends a membership message.
    pub(super) fn gossip(&self, to: CallTarget, message: &[u8]) -> Result<(), PeerError> {
        let request = self.quick(to, self.agent().post(self.url(to, PATH_GOSSIP)));
        let request = request.header(FROM, self.own.to_string());
        check(to, request.send(message)?).map(drop)
    }

    /// Has another node note what a registry says; returns once it is on its disk.
    pub(super) fn tell(
        &self,
        to: CallTarget,
        registry: &Registry,
    ) -> Result<NewsReceipt, PeerError> {
        let response = self.send(to, PATH_REGISTRY, &registry.to_bytes())?;
        decode(response, MESSAGE_BYTES_MAX, NewsReceipt::from_bytes)
    }

    /// What another node has heard.
    pub(super) fn registry(&self, of: CallTarget) -> Result<Registry, PeerError> {
        let request = self.quick(of, self.agent().get(self.url(of, PATH_REGISTRY)));
        let response = check(of, request.call()?)?;
        decode(response, registry_file::BYTES_MAX, Registry::from_bytes)
    }

    /// The saved queries of another node, as text.
    pub(super) fn saved_queries(&self, of: CallTarget) -> Result<String, PeerError> {
        let request = self.quick(of, self.agent().get(self.url(of, PATH_SAVED)));
        let bytes = read(check(of, request.call()?)?, TEXT_BYTES_MAX as u64)?;
        String::from_utf8(bytes).map_err(|_| PeerError::new("saved queries are no UTF-8 text"))
    }

    /// What another node holds, unless its tag is still `known`.
    pub(super) fn inventory(
        &self,
        of: CallTarget,
        what: InventoryPart,
        known: Option<&str>,
        timeout: Duration,
    ) -> Result<InventoryAnswer, PeerError> {
        let path = match what {
            InventoryPart::All => PATH_INVENTORY,
            InventoryPart::Segments => PATH_STORED,
        };
        let request = self.quick(of, self.agent().get(self.url(of, path)));
        let mut request = request.config().timeout_global(Some(timeout)).build();
        if let Some(known) = known {
            request = request.header("if-none-match", known);
            request = request.header(A_IM, RECENT);
        }
        let response = request.call()?;
        of.check(&response)?;
        let header = |response: &Response, name| {
            let header = response.headers().get(name);
            header
                .and_then(|text| text.to_str().ok())
                .map(str::to_owned)
        };
        let at = header(&response, "date").and_then(|date| clocks::read(&date));
        if response.status().as_u16() == 304 {
            let fetched = InventoryUpdate::Same;
            return Ok(InventoryAnswer { fetched, at });
        }
        let response = check(of, response)?;
        let tag = header(&response, "etag").unwrap_or_default();
        let fetched = match response.status().as_u16() {
            IM_USED => {
                let recent = decode(response, INVENTORY_BYTES_MAX, Recent::from_bytes)?;
                InventoryUpdate::Recent(recent, tag)
            }
            _ => {
                let inventory = decode(response, INVENTORY_BYTES_MAX, Inventory::from_bytes)?;
                InventoryUpdate::New(Box::new(inventory), tag)
            }
        };
        Ok(InventoryAnswer { fetched, at })
    }

    /// Asks a node how it is doing.
    pub(super) fn status(&self, of: CallTarget) -> Result<NodeStatus, PeerError> {
        let request = self.quick(of, self.agent().get(self.url(of, PATH_STATUS)));
        let bytes = read(check(of, request.call()?)?, status::BYTES_MAX)?;
        serde_json::from_slice(&bytes).map_err(|error| PeerError(error.to_string()))
    }

    /// Asks a node what it knows of alerts; bytes of at most `bytes_max`.
    pub(super) fn alert_states(
        &self,
        of: CallTarget,
        bytes_max: u64,
    ) -> Result<Vec<u8>, PeerError> {
        let request = self.quick(of, self.agent().get(self.url(of, PATH_ALERTS)));
        read(check(of, request.call()?)?, bytes_max)
    }

    /// Asks a node whether its answers have a canary record.
    pub(super) fn find_canary(&self, node: CallTarget, canary: &Canary) -> Result<bool, PeerError> {
        let answer = self.send(node, PATH_CANARY, &canary.to_bytes())?;
        Ok(read(answer, MESSAGE_BYTES_MAX)? == FOUND)
    }

    /// Has a node leave the cluster, or stay after all.
    pub(super) fn leave(&self, node: CallTarget, leaves: bool) -> Result<(), PeerError> {
        let message: &[u8] = if leaves { LEAVES } else { STAYS };
        self.send(node, PATH_LEAVE, message).map(drop)
    }

    /// Asks for journal files to make a segment of.
    pub(super) fn claim(&self, of: CallTarget, store: NodeId) -> Result<Option<Claim>, PeerError> {
        let response = self.send(of, PATH_CLAIM, store.to_string().as_bytes())?;
        if response.status().as_u16() == 204 {
            return Ok(None);
        }
        decode(response, MESSAGE_BYTES_MAX, Claim::from_bytes).map(Some)
    }

    /// Waits until a node has journal files for a store, for a while; whether it has.
    pub(super) fn wait_for_offer(&self, of: CallTarget, store: NodeId) -> Result<bool, PeerError> {
        let url = format!("{}?store={store}", self.url(of, PATH_OFFER));
        let request = meant_for(of, self.agent().get(url)).config();
        let timeout = OFFER_WAIT_MAX + ANSWER_TIMEOUT;
        let request = request.http_status_as_error(false);
        let request = request.timeout_global(Some(timeout)).build();
        Ok(check(of, request.call()?)?.status().as_u16() != 204)
    }

    /// Says what became of a claim.
    pub(super) fn report(&self, to: CallTarget, report: &Report) -> Result<(), PeerError> {
        self.send(to, PATH_REPORT, &report.to_bytes()).map(drop)
    }

    /// Asks what a node holds.
    pub(super) fn who_holds(
        &self,
        node: CallTarget,
        question: &WhoHolds,
    ) -> Result<HoldingsReply, PeerError> {
        let response = self.send(node, PATH_HOLDS, &question.to_bytes())?;
        decode(response, MESSAGE_BYTES_MAX, HoldingsReply::from_bytes)
    }

    /// Asks which batches a node holds as they were first sent.
    pub(super) fn originals(
        &self,
        node: CallTarget,
        wanted: &BatchSet,
    ) -> Result<BatchSet, PeerError> {
        let response = self.send(node, PATH_ORIGINALS, &wanted.to_bytes())?;
        decode(response, MESSAGE_BYTES_MAX, BatchSet::from_bytes)
    }

    /// Asks which batches a node has taken in itself, as far as its journal says.
    pub(super) fn taken(&self, node: CallTarget, wanted: &BatchSet) -> Result<BatchSet, PeerError> {
        let response = self.send(node, PATH_TAKEN, &wanted.to_bytes())?;
        decode(response, MESSAGE_BYTES_MAX, BatchSet::from_bytes)
    }

    /// Reads a closed journal file.
    pub(super) fn journal(
        &self,
        of: CallTarget,
        source: SourceId,
    ) -> Result<Box<dyn Read + Send>, PeerError> {
        let url = self.url(of, PATH_JOURNAL);
        let url = format!(
            "{url}?incarnation={}&sequence={}",
            source.incarnation, source.sequence
        );
        let request = self.streaming(of, self.agent().get(url));
        let response = check(of, request.call()?)?;
        Ok(stream(response))
    }

    /// Sends a copy of a segment; returns once it is synced there.
    pub(super) fn segment(
        &self,
        to: CallTarget,
        segment: Id,
        (hash, bytes): (u128, u64),
        from: &mut (dyn Read + Send),
    ) -> Result<(), PeerError> {
        let url = format!("{}?id={segment}", self.url(to, PATH_SEGMENT));
        let request = self
            .streaming(to, self.agent().put(url))
            .header(HASH, format!("{hash:032x}"))
            .header("content-length", bytes.to_string());
        let mut from = from;
        check(to, request.send(ureq::SendBody::from_reader(&mut from))?).map(drop)
    }

    /// Asks a question; gives the answer from its first byte on.
    pub(super) fn ask(
        &self,
        to: CallTarget,
        path: &str,
        question: &[u8],
    ) -> Result<Box<dyn Read + Send>, PeerError> {
        let request = self.streaming(to, self.agent().post(self.url(to, path)));
        let response = check(to, request.send(question)?)?;
        Ok(stream(response))
    }
}

type Response = ureq::http::Response<ureq::Body>;

/// Says whom a call is for, so that nobody else does what it asks for.
fn meant_for<B>(to: CallTarget, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
    match to.node {
        Some(node) => request.header(NODE, node.to_string()),
        None => request,
    }
}

fn check(to: CallTarget, response: Response) -> Result<Response, PeerError> {
    to.check(&response)?;
    let status = response.status().as_u16();
    if (200..300).contains(&status) {
        return Ok(response);
    }
    let text = read(response, ERROR_BYTES_MAX).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    Err(PeerError(format!("answered {status}: {}", text.trim_end())))
}

/// The body as it comes, however long: its reader bounds what it keeps.
fn stream(response: Response) -> Box<dyn Read + Send> {
    let body = response.into_body().into_with_config();
    Box::new(body.limit(u64::MAX).reader())
}

fn decode<T>(
    response: Response,
    bytes_max: u64,
    from_bytes: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
) -> Result<T, PeerError> {
    let bytes = read(response, bytes_max)?;
    from_bytes(&bytes).map_err(|error| PeerError(error.to_string()))
}

fn read(response: Response, bytes_max: u64) -> Result<Vec<u8>, PeerError> {
    let body = response.into_body().into_with_config().limit(bytes_max);
    let mut bytes = Vec::new();
    body.reader()
        .read_to_end(&mut bytes)
        .map_err(|error| PeerError(error.to_string()))?;
    Ok(bytes)
}
