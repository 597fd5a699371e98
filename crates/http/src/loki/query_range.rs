//! `GET|POST /loki/api/v1/query_range`: lines or numbers of a range.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use hyper::Response;
use logpond_search::Filter;
use logpond_search::logql::{self, LogQuery, Metric, Query};
use logpond_search::metric::{Plan, Times};

use super::numbers::{self, Stats};
use super::reply::{Writer, failed, gathered, write_warnings};
use super::streams::{Streams, wants_categories};
use super::{LokiRequest, selector, times};
use crate::App;
use crate::body::Body;
use crate::error::ApiError;
use logpond_engine::query::{Key, LineQuery, Output, cursor_text, parse_cursor};

/// The streams of an answer, and its statistics.
struct LogAnswer {
    streams: Streams,
    stats: Stats,
    /// The last line, if there are more behind it.
    cursor: Option<Key>,
    warnings: Vec<String>,
}

/// Answers a query over a range.
pub(super) async fn answer(
    app: &Arc<App>,
    request: LokiRequest,
) -> Result<Response<Body>, ApiError> {
    let text = request.text("query").unwrap_or_default();
    match logql::parse(text).map_err(selector::refused)? {
        Query::Log(query) => lines(app, request, query).await,
        Query::Metric(query) => of_numbers(app, request, query).await,
    }
}

async fn lines(
    app: &Arc<App>,
    request: LokiRequest,
    log: LogQuery,
) -> Result<Response<Body>, ApiError> {
    let cursor = request.text("cursor").map(parse_cursor).transpose();
    let behind = cursor.map_err(|e| ApiError::bad_request(format!("parameter 'cursor': {e}")))?;
    let query = LineQuery {
        log,
        range: times::range(&request)?,
        limit: times::limit(&request)?,
        direction: times::direction(&request)?,
        behind,
        interval_ns: times::interval_ns(&request)?.unsigned_abs(),
        now: request.now,
        only: Filter::All,
    };
    let is_categorized = wants_categories(&request.headers);
    let gather = move |app: &App, out: &mut Output| {
        let started = Instant::now();
        let answer = app.engine.lines(&query, out).map_err(failed)?;
        let mut streams = Streams::new(is_categorized);
        streams.add_all(answer.lines);
        let trailer = answer.trailer;
        let found = LogAnswer {
            stats: Stats {
                bytes: trailer.bytes_scanned,
                rows: trailer.rows,
                entries: streams.count(),
                time: started.elapsed(),
            },
            streams,
            cursor: trailer.cursor,
            warnings: answer.warnings,
        };
        Ok((found, trailer))
    };
    gathered(app, &request.headers, gather, |found, missing, to| {
        write(&found, missing, to)
    })
    .await
}

fn write(found: &LogAnswer, missing: &[String], to: Writer<'_>) -> io::Result<()> {
    to.write_all(b"{\"status\":\"success\",\"data\":{\"resultType\":\"streams\",")?;
    found.streams.write_flags(to)?;
    to.write_all(b"\"result\":")?;
    found.streams.write(to)?;
    write!(to, ",\"stats\":{}", found.stats.json())?;
    if let Some(cursor) = found.cursor {
        write!(to, ",\"cursor\":\"{}\"", cursor_text(cursor))?;
    }
    to.write_all(b"}")?;
    write_warnings(&[missing, &found.warnings].concat(), to)?;
    to.write_all(b"}\n")
}

async fn of_numbers(
    app: &Arc<App>,
    request: LokiRequest,
    query: Metric,
) -> Result<Response<Body>, ApiError> {
    let range = times::range(&request)?;
    let step_ns = times::step_ns(&request, range)?;
    let instants = Times::range(range.from, range.to, step_ns);
    let instants = instants.map_err(|e| ApiError::bad_request(e.to_string()))?;
    let plan = Plan::range(query, instants, request.now.0);
    let plan = plan.map_err(|e| ApiError::bad_request(e.to_string()))?;
    numbers::answer(app, &request, plan, range.to).await
}
