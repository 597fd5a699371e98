//! The notes on one request until it ends.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use logpond_record::{TimeRange, Timestamp};

use super::{Audit, Event};
use crate::query::{Scope, Trailer};

/// The longest text of a question that is kept.
pub const TEXT_BYTES_MAX: usize = 4096;

/// The source of a question, and its endpoint.
#[derive(Clone, Debug)]
pub struct QuestionSource {
    /// `http` or `postgres`.
    pub protocol: &'static str,
    /// The client, as the connection says.
    pub address: Option<IpAddr>,
    /// The method and the route.
    pub endpoint: String,
    /// The path and the parameters, if something is changed rather than asked.
    pub changes: Option<String>,
}

/// The notes on a request. The event is taken when the last part that works on the request lets go of it.
#[derive(Debug)]
pub struct Trail {
    audit: Audit,
    source: QuestionSource,
    token: OnceLock<String>,
    begun: Instant,
    status: AtomicU16,
    rows: AtomicU64,
    bytes_scanned: AtomicU64,
    bytes_sent: AtomicU64,
    range: Mutex<Option<TimeRange>>,
    text: Mutex<String>,
}

impl Trail {
    /// Begins to note; nothing is noted where the audit is off.
    pub fn begin(audit: &Audit, source: QuestionSource) -> Option<Trail> {
        audit.is_on().then(|| Trail {
            audit: audit.clone(),
            source,
            token: OnceLock::new(),
            begun: Instant::now(),
            status: AtomicU16::new(0),
            rows: AtomicU64::new(0),
            bytes_scanned: AtomicU64::new(0),
            bytes_sent: AtomicU64::new(0),
            range: Mutex::default(),
            text: Mutex::default(),
        })
    }

    /// Notes the name or the id of the token that the request came with.
    pub fn came_with(&self, token: &str) {
        // The first one counts.
        let _ = self.token.set(token.to_owned());
    }

    /// Notes the status of the answer.
    pub fn answered(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// Notes bytes of the answer that were sent.
    pub fn sent(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.bytes_sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes a part of the text of the question, as far as texts are kept.
    pub fn text(&self, part: &[u8]) {
        if !self.audit.has_texts() || part.is_empty() {
            return;
        }
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let room = TEXT_BYTES_MAX.saturating_sub(text.len());
        let part = part.get(..room).unwrap_or(part);
        if !text.is_empty() && !part.is_empty() {
            text.push(' ');
        }
        text.push_str(&String::from_utf8_lossy(part));
    }

    /// Notes the range of a part of the work.
    pub(super) fn reads(&self, range: TimeRange) {
        let mut noted = self.range.lock().unwrap_or_else(PoisonError::into_inner);
        let all = noted.unwrap_or(range);
        *noted = Some(TimeRange {
            from: all.from.min(range.from),
            to: all.to.max(range.to),
        });
    }

    /// Notes a part of the work in a scope.
    pub(super) fn reads_scope(&self, scope: &Scope) {
        self.reads(scope.range);
    }

    /// Notes what a part of the work found.
    pub(super) fn found(&self, trailer: &Trailer) {
        self.rows.fetch_add(trailer.rows, Ordering::Relaxed);
        self.bytes_scanned
            .fetch_add(trailer.bytes_scanned, Ordering::Relaxed);
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        let source = &self.source;
        let mut event = Event::new();
        let mut put = |name: &str, value: serde_json::Value| {
            event.insert(name.to_owned(), value);
        };
        match &source.changes {
            Some(what) => {
                put("action", "administer".into());
                put("what", (**what).into());
            }
            None => put("action", "ask".into()),
        }
        put("protocol", source.protocol.into());
        let token = self.token.get().map_or("-", String::as_str);
        put("token", token.into());
        let address = source.address.map(|address| address.to_string());
        put("address", address.unwrap_or_else(|| "-".to_owned()).into());
        put("endpoint", (*source.endpoint).into());
        put("status", self.status.load(Ordering::Relaxed).into());
        put("rows", self.rows.load(Ordering::Relaxed).into());
        let scanned = self.bytes_scanned.load(Ordering::Relaxed);
        put("bytes_scanned", scanned.into());
        put("bytes_sent", self.bytes_sent.load(Ordering::Relaxed).into());
        let elapsed = self.begun.elapsed().as_millis();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        put("duration_ms", elapsed.into());
        let range = self.range.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(range) = *range {
            if range.from != Timestamp::MIN {
                put("from", range.from.to_string().into());
            }
            if range.to != Timestamp::MAX {
                put("to", range.to.to_string().into());
            }
        }
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if !text.is_empty() {
            put("query", text.as_str().into());
        }
        drop((text, range));
        self.audit.take(event);
    }
}
