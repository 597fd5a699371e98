//! `GET /loki/api/v1/tail`: lines as they come, over a WebSocket (RFC 6455).
//!
//! Invariants:
//! - What is wrong with a question is said before the upgrade, with a status.
//! - Lines that were there and lines that come follow each other without a gap, each once.
//! - A client that does not read makes its query wait, with a bounded number of messages in memory; one
//!   that does not answer for [`SILENCE_MAX`] is given up.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use hyper::body::Bytes;
use hyper::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use logpond_record::{TimeRange, Timestamp};
use logpond_search::Filter;
use logpond_search::logql::{self, LogQuery, Query};
use logpond_search::pipeline::{Pipeline, Work};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::reply::failed;
use super::streams::{Streams, wants_categories};
use super::{LokiRequest, selector, times};
use crate::App;
use crate::body::Body;
use crate::error::{ApiError, Kind};
use crate::rows;
use logpond_engine::query::{
    CHUNK_BYTES, Chunks, Direction, Key, Line, LineQuery, Output, Search, Tap, read_entry,
};
use logpond_host::shutdown::Shutdown;

/// How often a client is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(5);

/// How long a client may say nothing, not even that it is there.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The longest delay that may be asked for.
const DELAY_SECONDS_MAX: u64 = 5;

/// Messages that wait for their delay; the query waits while there are as many.
const DELAYED_MAX: usize = 64;

/// The longest message of a client; it has nothing to say.
const RECEIVED_BYTES_MAX: usize = 4 << 10;

/// The longest reason in a frame that closes (RFC 6455, section 5.5).
const REASON_BYTES_MAX: usize = 123;

/// How much older than the oldest line that is shown first a line that comes late may be.
const LATE_NS: i64 = 600_000_000_000;

/// What is hashed with a client's key (RFC 6455, section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The parameters of a request.
struct TailRequest {
    log: LogQuery,
    now: Timestamp,
    from: Timestamp,
    /// Lines of what is there that are shown first.
    limit: u64,
    is_categorized: bool,
}

/// Begins to follow.
pub(super) async fn answer(
    app: &Arc<App>,
    request: &LokiRequest,
    upgrade: OnUpgrade,
) -> Result<Response<Body>, ApiError> {
    let wanted = wanted(request)?;
    let delay = delay(request)?;
    let accept = accept(&request.headers)?;
    let (ended, end) = oneshot::channel();
    let app_there = app.clone();
    let work = move |mut out: Output| {
        let said = follow(&app_there, wanted, &mut out);
        let end = match out.refusal() {
            Some(why) => (CloseCode::Policy, Some(why.to_owned())),
            None => (CloseCode::Error, said.err().map(|error| error.message)),
        };
        let _ = ended.send(end);
    };
    let messages = app.threads.for_followers(true).start(work).await?;
    let shutdown = app.shutdown.clone();
    tokio::spawn(async move {
        // A client that went away meanwhile needs nothing.
        if let Ok(upgraded) = upgrade.await {
            serve(upgraded, messages, end, delay, shutdown).await;
        }
    });
    let mut response = Response::new(Body::Whole(None));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

fn wanted(request: &LokiRequest) -> Result<TailRequest, ApiError> {
    let text = request.text("query").unwrap_or_default();
    let Query::Log(log) = logql::parse(text).map_err(selector::refused)? else {
        return Err(ApiError::bad_request(
            "only queries for logs can be followed: leave the functions out",
        ));
    };
    Ok(TailRequest {
        log,
        now: request.now,
        from: times::range(request)?.from,
        limit: times::limit(request)?,
        is_categorized: wants_categories(&request.headers),
    })
}

fn delay(request: &LokiRequest) -> Result<Duration, ApiError> {
    match request.text("delay_for").map(str::parse::<u64>) {
        None => Ok(Duration::ZERO),
        Some(Ok(seconds)) if seconds <= DELAY_SECONDS_MAX => Ok(Duration::from_secs(seconds)),
        Some(_) => Err(ApiError::bad_request(format!(
            "delay_for is a whole number of seconds up to {DELAY_SECONDS_MAX}"
        ))),
    }
}

/// What shows a client that its request for an upgrade was read (RFC 6455, section 4.2.2).
fn accept(headers: &HeaderMap) -> Result<HeaderValue, ApiError> {
    let has = |name: HeaderName, wanted: &str| {
        let values = headers.get_all(name).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        let mut tokens = values.flat_map(|value| value.split(','));
        tokens.any(|token| token.trim().eq_ignore_ascii_case(wanted))
    };
    let key = headers.get(SEC_WEBSOCKET_KEY);
    let key = key.filter(|key| STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == 16));
    let is_asked =
        has(UPGRADE, "websocket") && has(CONNECTION, "upgrade") && has(SEC_WEBSOCKET_VERSION, "13");
    match key {
        Some(key) if is_asked => {
            let mut text = key.as_bytes().to_vec();
            text.extend_from_slice(GUID);
            let sha1 = &aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY;
            let digest = aws_lc_rs::digest::digest(sha1, &text);
            HeaderValue::from_str(&STANDARD.encode(digest))
                .map_err(|e| ApiError::new(Kind::Internal, e.to_string()))
        }
        _ => Err(ApiError::bad_request(
            "lines are sent over a WebSocket of version 13: ask for the upgrade",
        )),
    }
}

/// Lines on their way into messages.
struct MessageBuilder {
    pipeline: Pipeline,
    work: Work<'static>,
    streams: Streams,
    is_categorized: bool,
    /// The first line to show; everything before it in order is passed over until it has come.
    first: Option<Key>,
    /// Bytes of the lines that wait.
    bytes: usize,
}

impl Tap for MessageBuilder {
    fn line(&mut self, row: &[u8]) -> bool {
        self.work.labels.clear();
        let Ok((key, line)) = read_entry(row, &mut self.work.labels) else {
            return false;
        };
        if let Some(first) = self.first {
            if key < first {
                return false;
            }
            self.first = None;
        }
        self.work.time_ns = key.time.0;
        self.work.line = line.to_vec().into();
        if self.pipeline.run(&mut self.work) {
            let line = Line::of(key, &self.work);
            self.bytes += line.bytes();
            self.streams.add_all(vec![line]);
        }
        self.bytes >= CHUNK_BYTES
    }

    fn message(&mut self) -> Option<Vec<u8>> {
        let streams = std::mem::replace(&mut self.streams, Streams::new(self.is_categorized));
        self.bytes = 0;
        if streams.count() == 0 {
            return None;
        }
        let mut message = Vec::new();
        // Writing to a vector cannot fail.
        let _ = write(&streams, &mut message);
        Some(message)
    }
}

fn write(streams: &Streams, to: &mut Vec<u8>) -> std::io::Result<()> {
    to.extend_from_slice(b"{");
    streams.write_flags(to)?;
    to.extend_from_slice(b"\"streams\":");
    streams.write(to)?;
    to.extend_from_slice(b"}");
    Ok(())
}

/// Finds lines until nobody listens.
fn follow(app: &App, wanted: TailRequest, out: &mut Output) -> Result<(), ApiError> {
    let first = first_shown(app, &wanted, out)?;
    let late = |first: Key| first.time.saturating_add(-LATE_NS);
    let range = TimeRange {
        from: first.map_or(wanted.from, |first| wanted.from.max(late(first))),
        to: Timestamp::MAX,
    };
    let filter = logql::filter_of(&wanted.log);
    let mut search = Search::new(selector::scope_of_filter(filter, range)?);
    search.is_followed = true;
    search.labels = Some(Box::new(logql::NamedLabels::of(&wanted.log)));
    search.has_places = true;
    let pipeline = Pipeline::new(&wanted.log.stages, wanted.now.0);
    out.tap(Box::new(MessageBuilder {
        pipeline: pipeline.map_err(ApiError::bad_request)?,
        work: Work::new(),
        streams: Streams::new(wanted.is_categorized),
        is_categorized: wanted.is_categorized,
        first,
        bytes: 0,
    }));
    let trailer = app.engine.search(&search, out).map_err(failed)?;
    if trailer.missing_count > 0 {
        return Err(rows::incomplete(&trailer));
    }
    Ok(())
}

/// Where the newest lines begin that are shown first; `None` if all there are may be shown.
fn first_shown(app: &App, wanted: &TailRequest, out: &mut Output) -> Result<Option<Key>, ApiError> {
    let query = LineQuery {
        log: wanted.log.clone(),
        range: TimeRange {
            from: wanted.from,
            to: Timestamp::MAX,
        },
        limit: wanted.limit,
        direction: Direction::Backward,
        behind: None,
        interval_ns: 0,
        now: wanted.now,
        only: Filter::All,
    };
    let found = app.engine.lines(&query, out).map_err(failed)?;
    let is_all = (found.lines.len() as u64) < wanted.limit;
    Ok(found.lines.last().map(|line| line.key).filter(|_| !is_all))
}

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Sends messages until one of both sides ends.
async fn serve(
    upgraded: Upgraded,
    messages: Chunks,
    end: oneshot::Receiver<QueryEnd>,
    delay: Duration,
    shutdown: Shutdown,
) {
    let config = WebSocketConfig::default()
        .max_message_size(Some(RECEIVED_BYTES_MAX))
        .max_frame_size(Some(RECEIVED_BYTES_MAX));
    let io = TokioIo::new(upgraded);
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let ended = pass_on(&mut socket, (messages, end), delay, shutdown.clone()).await;
    let (code, reason) = match ended {
        // Grafana and `logcli` come back to a connection that breaks, and take a close for the end of the
        // query, whatever its code.
        EndReason::Gone | EndReason::Stopping => return,
        // The query may notice the stop first.
        EndReason::Finished(_) if shutdown.is_stopping() => return,
        EndReason::ByClient => (CloseCode::Normal, String::new()),
        EndReason::Finished((code, reason)) => {
            let reason = reason.unwrap_or_else(|| "the query has ended".to_owned());
            (code, reason)
        }
    };
    let reason = &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)];
    let frame = CloseFrame {
        code,
        reason: reason.into(),
    };
    // The client may be gone already.
    let _ = socket.close(Some(frame)).await;
}

/// The reason for the end of a tail.
enum EndReason {
    /// The client is gone, or silent for too long.
    Gone,
    /// The client closes.
    ByClient,
    /// The server stops.
    Stopping,
    /// There is nothing more, or the client may have no more.
    Finished(QueryEnd),
}

/// How a query ended, and why.
type QueryEnd = (CloseCode, Option<String>);

async fn pass_on(
    socket: &mut Socket,
    (mut messages, mut end): (Chunks, oneshot::Receiver<QueryEnd>),
    delay: Duration,
    mut shutdown: Shutdown,
) -> EndReason {
    let mut delayed: VecDeque<(Instant, Bytes)> = VecDeque::new();
    let mut ping_at = Instant::now() + PING_EVERY;
    let mut heard_at = Instant::now();
    let mut is_finished = false;
    let mut query_end: Option<QueryEnd> = None;
    loop {
        let due = delayed
            .front()
            .map_or(ping_at, |(due, _)| (*due).min(ping_at));
        let has_room = !is_finished && delayed.len() < DELAYED_MAX;
        tokio::select! {
            message = messages.recv(), if has_room => match message {
                Some(message) => delayed.push_back((Instant::now() + delay, message)),
                None => is_finished = true,
            },
            said = &mut end, if query_end.is_none() => {
                let (code, reason) = said.unwrap_or((CloseCode::Error, None));
                if code == CloseCode::Policy {
                    // It may not have what waits for its delay either.
                    return EndReason::Finished((code, reason));
                }
                query_end = Some((code, reason));
            }
            received = socket.next() => match received {
                Some(Ok(Message::Close(_))) => return EndReason::ByClient,
                Some(Ok(_)) => heard_at = Instant::now(),
                Some(Err(_)) | None => return EndReason::Gone,
            },
            () = shutdown.stopping() => return EndReason::Stopping,
            () = sleep_until(due) => {}
        }
        let now = Instant::now();
        while let Some((_, bytes)) = delayed.pop_front_if(|(due, _)| *due <= now) {
            if !send(socket, bytes).await {
                return EndReason::Gone;
            }
        }
        if is_finished
            && delayed.is_empty()
            && let Some(end) = query_end.take()
        {
            return EndReason::Finished(end);
        }
        if now >= ping_at {
            ping_at = now + PING_EVERY;
            let pinged = socket.send(Message::Ping(Bytes::new())).await;
            if pinged.is_err() || heard_at.elapsed() > SILENCE_MAX {
                return EndReason::Gone;
            }
        }
    }
}

/// Sends a message; says whether the client takes it.
async fn send(socket: &mut Socket, bytes: Bytes) -> bool {
    // It was written as JSON, which is text.
    let Ok(text) = Utf8Bytes::try_from(bytes) else {
        return false;
    };
    let sending = socket.send(Message::Text(text));
    let sent = tokio::time::timeout(SILENCE_MAX, sending).await;
    matches!(sent, Ok(Ok(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(HeaderName, &'static str)]) -> HeaderMap {
        let lines = lines.iter().cloned();
        lines
            .map(|(name, value)| (name, HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn upgrades_are_accepted_as_the_standard_says() {
        // The example of RFC 6455, section 1.3.
        let key = (SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==");
        let rest = [
            (UPGRADE, "WebSocket"),
            (CONNECTION, "keep-alive, Upgrade"),
            (SEC_WEBSOCKET_VERSION, "13"),
        ];
        let whole: Vec<_> = rest.iter().cloned().chain([key]).collect();
        let accepted = accept(&headers(&whole)).unwrap();
        assert_eq!(accepted, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for missing in 0..whole.len() {
            let mut some = whole.clone();
            some.remove(missing);
            assert!(accept(&headers(&some)).is_err());
        }
    }
}
