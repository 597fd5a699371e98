//! What is said of a connection once it is over.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use tokio::time::Instant;

use crate::session::Agreed;
use crate::sink::Sender;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CloseReason {
    /// In order, the client first.
    Client,
    /// In order, the upstream first.
    Upstream,
    /// The client's connection ended without the end that TLS has, and was passed on as an end.
    ClientTruncated,
    ClientReset,
    UpstreamReset,
    /// The client broke the protocol after its handshake.
    ClientError,
    Idle,
    HalfCloseTimeout,
    /// There are as many connections as there may be, or as many of this address.
    Limit,
    /// The header of another proxy is missing or broken.
    ProxyHeader,
    HandshakeFailed,
    HandshakeTimeout,
    /// The client left before the end of its handshake.
    HandshakeAborted,
    /// Nothing is said of where connections with its name and protocol go.
    NoRoute,
    UpstreamUnreachable,
    /// The proxy ended.
    Drained,
}

/// The record of a connection. It is written when this is dropped.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    #[serde(rename = "time", serialize_with = "now_text")]
    ended: (),
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "name")]
    frontend: Option<Arc<str>>,
    pub(crate) client: String,
    pub(crate) client_port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sni: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alpn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cipher: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "name")]
    pub(crate) upstream: Option<Arc<str>>,
    /// As if the proxy ended now, until it is known better.
    pub(crate) close_reason: CloseReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    pub(crate) bytes_from_client: u64,
    pub(crate) bytes_to_client: u64,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    handshake_s: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    duration_s: Option<Duration>,
    #[serde(skip)]
    accepted: Instant,
    #[serde(skip)]
    sender: Sender,
}

impl Record {
    pub(crate) fn new(client: SocketAddr, frontend: Option<Arc<str>>, sender: Sender) -> Record {
        Record {
            ended: (),
            frontend,
            client: client.ip().to_canonical().to_string(),
            client_port: client.port(),
            sni: None,
            alpn: None,
            version: None,
            cipher: None,
            resumed: None,
            upstream: None,
            close_reason: CloseReason::Drained,
            error: None,
            bytes_from_client: 0,
            bytes_to_client: 0,
            handshake_s: None,
            duration_s: None,
            accepted: Instant::now(),
            sender,
        }
    }

    /// When the connection was accepted.
    pub(crate) fn accepted(&self) -> Instant {
        self.accepted
    }

    /// The handshake is over.
    pub(crate) fn agreed(&mut self, agreed: &Agreed) {
        let alpn = agreed.alpn.as_deref();
        self.alpn = alpn.map(|name| String::from_utf8_lossy(name).into_owned());
        self.version = agreed.version;
        self.cipher = agreed.cipher;
        self.resumed = Some(agreed.is_resumed);
        self.handshake_s = Some(self.accepted.elapsed());
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.duration_s = Some(self.accepted.elapsed());
        // Maps with texts for keys always become JSON.
        if let Ok(mut line) = serde_json::to_vec(&*self) {
            line.push(b'\n');
            self.sender.send(line);
        }
    }
}

fn now_text<S: Serializer>((): &(), serializer: S) -> Result<S::Ok, S::Error> {
    let now = jiff::Timestamp::now();
    serializer.collect_str(&format_args!("{now:.6}"))
}

/// Seconds, to a microsecond.
fn seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    let micros = time.unwrap_or_default().as_micros();
    serializer.serialize_f64(micros as f64 / 1e6)
}

fn name<S: Serializer>(name: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name.as_deref().unwrap_or_default())
}
