//! What is said of a connection once it is over.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use logpond_record::cast;
use rustls::pki_types::CertificateDer;
use serde::{Serialize, Serializer};
use tokio::time::Instant;

use crate::client_rules::common_name_of;
use crate::counters::Counters;
use crate::session::HandshakeResult;
use crate::sink::Sender;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// There are as many connections as there may be, or as many of this address; or more handshakes or
    /// waiting bytes.
    Limit,
    /// The header of another proxy is missing or broken.
    ProxyHeader,
    HandshakeFailed,
    /// There is no certificate yet for the client: it was ordered and has not come.
    NoCertificate,
    /// It was an authority's that wanted to know whether this proxy answers for a name.
    Acme,
    /// The client's certificate, or that it has none, keeps it out.
    ClientCertificate,
    HandshakeTimeout,
    /// The client left before the end of its handshake.
    HandshakeAborted,
    /// Nothing is said of where connections with its name and protocol go.
    NoRoute,
    UpstreamUnreachable,
    /// The proxy ended.
    Drained,
}

impl CloseReason {
    /// All, in their order.
    pub(crate) const ALL: [CloseReason; 19] = [
        CloseReason::Client,
        CloseReason::Upstream,
        CloseReason::ClientTruncated,
        CloseReason::ClientReset,
        CloseReason::UpstreamReset,
        CloseReason::ClientError,
        CloseReason::Idle,
        CloseReason::HalfCloseTimeout,
        CloseReason::Limit,
        CloseReason::ProxyHeader,
        CloseReason::HandshakeFailed,
        CloseReason::NoCertificate,
        CloseReason::Acme,
        CloseReason::ClientCertificate,
        CloseReason::HandshakeTimeout,
        CloseReason::HandshakeAborted,
        CloseReason::NoRoute,
        CloseReason::UpstreamUnreachable,
        CloseReason::Drained,
    ];

    /// As records and metrics have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CloseReason::Client => "client",
            CloseReason::Upstream => "upstream",
            CloseReason::ClientTruncated => "client_truncated",
            CloseReason::ClientReset => "client_reset",
            CloseReason::UpstreamReset => "upstream_reset",
            CloseReason::ClientError => "client_error",
            CloseReason::Idle => "idle",
            CloseReason::HalfCloseTimeout => "half_close_timeout",
            CloseReason::Limit => "limit",
            CloseReason::ProxyHeader => "proxy_header",
            CloseReason::HandshakeFailed => "handshake_failed",
            CloseReason::NoCertificate => "no_certificate",
            CloseReason::Acme => "acme",
            CloseReason::ClientCertificate => "client_certificate",
            CloseReason::HandshakeTimeout => "handshake_timeout",
            CloseReason::HandshakeAborted => "handshake_aborted",
            CloseReason::NoRoute => "no_route",
            CloseReason::UpstreamUnreachable => "upstream_unreachable",
            CloseReason::Drained => "drained",
        }
    }
}

impl Serialize for CloseReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The record of a connection. It is written, and the connection's end counted, when this is dropped.
#[derive(Debug, Serialize)]
pub(crate) struct Record<'a> {
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
    #[serde(skip_serializing_if = "Option::is_none")]
    client_cn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "name")]
    pub(crate) upstream: Option<Arc<str>>,
    /// As if the proxy ended now, until it is known better.
    pub(crate) close_reason: CloseReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    bytes_from_client: u64,
    bytes_to_client: u64,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    handshake_s: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    duration_s: Option<Duration>,
    #[serde(skip)]
    accepted: Instant,
    #[serde(skip)]
    sender: &'a Sender,
    #[serde(skip)]
    counters: &'a Counters,
}

impl<'a> Record<'a> {
    pub(crate) fn new(
        client: SocketAddr,
        frontend: Option<Arc<str>>,
        sender: &'a Sender,
        counters: &'a Counters,
    ) -> Record<'a> {
        counters.accepted();
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
            client_cn: None,
            client_fingerprint: None,
            upstream: None,
            close_reason: CloseReason::Drained,
            error: None,
            bytes_from_client: 0,
            bytes_to_client: 0,
            handshake_s: None,
            duration_s: None,
            accepted: Instant::now(),
            sender,
            counters,
        }
    }

    /// When the connection was accepted.
    pub(crate) fn accepted(&self) -> Instant {
        self.accepted
    }

    /// The client showed this certificate, good or not.
    pub(crate) fn shown_by_client(&mut self, certificate: &CertificateDer<'_>) {
        self.client_cn = common_name_of(certificate);
        let hex = |text: String, byte: &u8| text + &format!("{byte:02x}");
        let digest = logpond_tls::fingerprint(certificate);
        self.client_fingerprint = Some(digest.iter().fold(String::with_capacity(64), hex));
    }

    /// The handshake is over.
    pub(crate) fn agreed(&mut self, agreed: &HandshakeResult) {
        let alpn = agreed.alpn.as_deref();
        self.alpn = alpn.map(|name| String::from_utf8_lossy(name).into_owned());
        self.version = agreed.version;
        self.cipher = agreed.cipher;
        self.resumed = Some(agreed.is_resumed);
        let time = self.accepted.elapsed();
        self.handshake_s = Some(time);
        self.counters.agreed(agreed, time);
    }

    /// So many bytes were moved in all.
    pub(crate) fn moved(&mut self, (from_client, to_client): (u64, u64)) -> (u64, u64) {
        let more = (
            from_client - self.bytes_from_client,
            to_client - self.bytes_to_client,
        );
        (self.bytes_from_client, self.bytes_to_client) = (from_client, to_client);
        self.counters.moved(more.0, more.1);
        more
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        self.counters.closed(self.close_reason);
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
    serializer.serialize_f64(cast::float(micros) / 1e6)
}

fn name<S: Serializer>(name: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name.as_deref().unwrap_or_default())
}
