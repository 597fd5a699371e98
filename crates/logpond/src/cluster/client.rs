//! Calls to other nodes. They block, each for a bounded time.

use std::fmt;
use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use logpond_cluster::{Inventory, Registry};

use super::registry_file;
use super::server::{FROM, PATH_GOSSIP, PATH_INVENTORY, PATH_QUESTION, PATH_REGISTRY};

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

/// The longest text of an error.
const ERROR_BYTES_MAX: u64 = 4 << 10;

/// A call failed; why, in words.
#[derive(Clone, Debug)]
pub struct PeerError(pub(super) String);

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PeerError {}

impl From<ureq::Error> for PeerError {
    fn from(error: ureq::Error) -> PeerError {
        PeerError(error.to_string())
    }
}

/// An inventory, unless it is the one that is known.
pub(super) enum Fetched {
    /// It has not changed.
    Same,
    /// It and its tag.
    New(Box<Inventory>, String),
}

/// Calls other nodes.
pub(super) struct Client {
    quick: ureq::Agent,
    streaming: ureq::Agent,
    /// Where this node is reached.
    own: SocketAddr,
}

impl Client {
    pub(super) fn new(own: SocketAddr) -> Client {
        let config = || {
            ureq::Agent::config_builder()
                .http_status_as_error(false)
                .timeout_connect(Some(CONNECT_TIMEOUT))
                .max_redirects(0)
                .proxy(None)
                .user_agent(concat!("logpond/", env!("CARGO_PKG_VERSION")))
        };
        Client {
            quick: config()
                .timeout_global(Some(ANSWER_TIMEOUT))
                .build()
                .new_agent(),
            streaming: config()
                .timeout_recv_response(Some(SILENCE_MAX))
                .timeout_per_read(Some(SILENCE_MAX))
                .timeout_per_write(Some(SILENCE_MAX))
                .build()
                .new_agent(),
            own,
        }
    }

    fn url(to: SocketAddr, path: &str) -> String {
        format!("http://{to}{path}")
    }

    /// Sends a membership message.
    pub(super) fn gossip(&self, to: SocketAddr, message: &[u8]) -> Result<(), PeerError> {
        let request = self.quick.post(Client::url(to, PATH_GOSSIP));
        check(request.header(FROM, self.own.to_string()).send(message)?).map(drop)
    }

    /// Has another node note what a registry says; returns once it is on its disk.
    pub(super) fn tell(&self, to: SocketAddr, registry: &Registry) -> Result<(), PeerError> {
        let request = self.quick.post(Client::url(to, PATH_REGISTRY));
        check(request.send(&registry.to_bytes()[..])?).map(drop)
    }

    /// What another node has heard.
    pub(super) fn registry(&self, of: SocketAddr) -> Result<Registry, PeerError> {
        let response = check(self.quick.get(Client::url(of, PATH_REGISTRY)).call()?)?;
        let bytes = read(response, registry_file::BYTES_MAX)?;
        Registry::from_bytes(&bytes).map_err(|error| PeerError(error.to_string()))
    }

    /// What another node holds, unless its tag is still `known`.
    pub(super) fn inventory(
        &self,
        of: SocketAddr,
        known: Option<&str>,
        timeout: Duration,
    ) -> Result<Fetched, PeerError> {
        let request = self.quick.get(Client::url(of, PATH_INVENTORY));
        let mut request = request.config().timeout_global(Some(timeout)).build();
        if let Some(known) = known {
            request = request.header("if-none-match", known);
        }
        let response = request.call()?;
        if response.status().as_u16() == 304 {
            return Ok(Fetched::Same);
        }
        let response = check(response)?;
        let tag = response
            .headers()
            .get("etag")
            .and_then(|tag| tag.to_str().ok());
        let tag = tag.unwrap_or_default().to_owned();
        let bytes = read(response, INVENTORY_BYTES_MAX)?;
        let inventory = Inventory::from_bytes(&bytes).map_err(|e| PeerError(e.to_string()))?;
        Ok(Fetched::New(Box::new(inventory), tag))
    }

    /// Asks a question; gives the answer from its first byte on.
    pub(super) fn ask(
        &self,
        to: SocketAddr,
        question: &[u8],
    ) -> Result<Box<dyn Read + Send>, PeerError> {
        let request = self.streaming.post(Client::url(to, PATH_QUESTION));
        let response = check(request.send(question)?)?;
        Ok(Box::new(
            response
                .into_body()
                .into_with_config()
                .limit(u64::MAX)
                .reader(),
        ))
    }
}

type Response = ureq::http::Response<ureq::Body>;

fn check(response: Response) -> Result<Response, PeerError> {
    let status = response.status().as_u16();
    if (200..300).contains(&status) {
        return Ok(response);
    }
    let text = read(response, ERROR_BYTES_MAX).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    Err(PeerError(format!("answered {status}: {}", text.trim_end())))
}

fn read(response: Response, bytes_max: u64) -> Result<Vec<u8>, PeerError> {
    let body = response.into_body().into_with_config().limit(bytes_max);
    let mut bytes = Vec::new();
    body.reader()
        .read_to_end(&mut bytes)
        .map_err(|error| PeerError(error.to_string()))?;
    Ok(bytes)
}
