//! Runs a search: its aggregations, its hits and its total.
//!
//! Invariant: an answer that lacks something is refused (503), unless the request says that a partial one is wanted;
//! then `_shards` says what is missing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use logpond_engine::query::{Key, Output, RewriteStatus, RowParts, Search, Trailer};
use logpond_host::memory::Charge;
use logpond_search::Filter;
use serde_json::{Value as Json, json};

use super::aggregations;
use super::document::Document;
use super::hit::max_score;
use super::json::bad;
use super::request::{SearchRequest, Total};
use super::scope;
use crate::App;
use crate::error::{ApiError, Kind};
use crate::logql::run::failed;
use crate::rows::incomplete;

/// The most memory that the hits of an answer take.
pub(super) const HITS_BYTES_MAX: usize = 256 << 20;

/// The parts that the reads of a search lack, together.
#[derive(Debug, Default)]
pub(super) struct Completeness {
    missing: Vec<String>,
}

impl Completeness {
    /// Notes what a read says of itself.
    ///
    /// # Errors
    /// When something is missing, unless a partial answer is wanted.
    pub(super) fn note(
        &mut self,
        app: &App,
        trailer: Trailer,
        may_be_partial: bool,
    ) -> Result<(), ApiError> {
        app.metrics.query_bytes.add(trailer.bytes_scanned);
        if trailer.missing_count == 0 {
            return Ok(());
        }
        let error = incomplete(&trailer);
        if !may_be_partial {
            return Err(error);
        }
        if !self.missing.contains(&error.message) {
            self.missing.push(error.message);
        }
        Ok(())
    }

    /// True if nothing is missing.
    fn is_whole(&self) -> bool {
        self.missing.is_empty()
    }

    /// The member `_shards`.
    pub(super) fn shards(&self) -> Json {
        if self.missing.is_empty() {
            return json!({ "total": 1, "successful": 1, "skipped": 0, "failed": 0 });
        }
        let failure = |what: &String| {
            let reason = json!({ "type": "incomplete_exception", "reason": what });
            json!({ "shard": 0, "index": "logpond", "node": "logpond", "reason": reason })
        };
        let failures: Vec<Json> = self.missing.iter().map(failure).collect();
        json!({ "total": 2, "successful": 1, "skipped": 0, "failed": 1, "failures": failures })
    }
}

/// Runs a search; gives the answer as JSON.
///
/// # Errors
/// When it cannot be answered.
pub(super) fn run(app: &App, request: &SearchRequest, out: &mut Output) -> Result<Json, ApiError> {
    let started = Instant::now();
    let partial = request.options.may_be_partial;
    let mut completeness = Completeness::default();
    let mut counted = None;
    let mut aggregated = None;
    if !request.aggregations.is_empty() {
        let found = aggregations::run(app, request, out, &mut completeness)?;
        counted = Some(found.records);
        aggregated = Some(found.json);
    }
    let has_post_filter = request.hits_filter != Filter::All;
    let filter = Filter::and([request.filter.clone(), request.hits_filter.clone()]);
    let page = hits(app, request, &filter, out)?;
    // All matches were seen if the page is the last one and none was behind a place.
    let is_whole = request.size > 0 && !page.has_more && request.behind.is_none();
    let seen = is_whole.then_some(page.seen);
    completeness.note(app, page.trailer, partial)?;
    let counted = counted.filter(|_| !has_post_filter);
    let total = match request.total {
        Total::Unsaid => None,
        Total::Known(total) => Some(total),
        Total::Exact => match counted.or(seen) {
            Some(total) => Some(total),
            None => Some(count(app, &filter, out, &mut completeness, partial)?),
        },
    };
    let max_score = max_score(&page.hits, &request.order);
    let mut hits = json!({ "max_score": max_score, "hits": page.hits });
    if let Some(total) = total {
        hits["total"] = if request.options.has_plain_total {
            total.into()
        } else {
            let relation = if completeness.is_whole() { "eq" } else { "gte" };
            json!({ "value": total, "relation": relation })
        };
    }
    let mut answer = json!({
        "took": u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        "timed_out": false,
        "_shards": completeness.shards(),
        "hits": hits,
    });
    if let Some(aggregated) = aggregated {
        answer["aggregations"] = aggregated;
    }
    if let Some(pit) = &request.pit {
        answer["pit_id"] = pit.as_str().into();
    }
    if let Some(scroll) = &request.scroll {
        let after = page.last.or(request.behind);
        answer["_scroll_id"] = scroll.id(after, total).into();
    }
    Ok(answer)
}

/// Counts the records of a filter.
///
/// # Errors
/// When they cannot be counted.
pub(super) fn count(
    app: &App,
    filter: &Filter,
    out: &mut Output,
    completeness: &mut Completeness,
    may_be_partial: bool,
) -> Result<u64, ApiError> {
    let mut search = Search::new(scope::of_filter(filter)?);
    search.is_count = true;
    let trailer = app.engine.search(&search, out).map_err(failed)?;
    let rows = trailer.rows;
    completeness.note(app, trailer, may_be_partial)?;
    Ok(rows)
}

/// A page of hits.
#[derive(Debug, Default)]
struct Page {
    hits: Vec<Json>,
    /// Matches up to the end of the page.
    seen: u64,
    last: Option<Key>,
    has_more: bool,
    trailer: Trailer,
}

fn hits(
    app: &App,
    request: &SearchRequest,
    filter: &Filter,
    out: &mut Output,
) -> Result<Page, ApiError> {
    let mut page = Page::default();
    if request.size == 0 {
        return Ok(page);
    }
    let mut search = Search::new(scope::of_filter(filter)?);
    search.direction = request.order.direction;
    search.behind = request.behind;
    search.limit = Some(request.from + request.size);
    let (documents, trailer) = documents(app, search, request.from, out)?;
    page.seen = trailer.rows;
    page.has_more = trailer.has_more;
    page.last = documents.last().map(|document| document.key);
    page.hits = documents
        .iter()
        .map(|document| request.form.hit(document, &request.order))
        .collect();
    page.trailer = trailer;
    Ok(page)
}

/// The documents of a search, but for the first of them.
///
/// # Errors
/// When they cannot be read, or take too much memory.
pub(super) fn documents(
    app: &App,
    mut search: Search,
    skip: u64,
    out: &mut Output,
) -> Result<(Vec<Document>, Trailer), ApiError> {
    search.parts = RowParts {
        line: true,
        origin: false,
    };
    let sink = Arc::new(Mutex::new(Sink {
        skip,
        documents: Vec::new(),
        bytes: 0,
        charge: Charge::new(out.lease()),
    }));
    let taking = Arc::clone(&sink);
    out.rewrite(Box::new(move |line, _| {
        let mut sink = taking.lock().unwrap_or_else(PoisonError::into_inner);
        sink.take(line)
    }));
    let found = app.engine.search(&search, out);
    let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
    if sink.bytes > HITS_BYTES_MAX {
        return Err(bad(format!(
            "the hits take more than {} MiB: ask for fewer by [size]",
            HITS_BYTES_MAX >> 20
        )));
    }
    if sink.charge.is_refused() {
        let message = "there is no memory for the hits: ask for fewer by [size]";
        return Err(ApiError::new(Kind::MemoryFull, message));
    }
    std::mem::take(&mut sink.charge).leave();
    Ok((std::mem::take(&mut sink.documents), found.map_err(failed)?))
}

struct Sink {
    skip: u64,
    documents: Vec<Document>,
    bytes: usize,
    charge: Charge,
}

impl Sink {
    fn take(&mut self, line: &[u8]) -> RewriteStatus {
        if self.skip > 0 {
            self.skip -= 1;
            return RewriteStatus::GoOn;
        }
        // The line, its fields and its source as trees, and the hit.
        self.bytes += 10 * line.len() + 512;
        self.charge.set_soon(self.bytes);
        if self.bytes > HITS_BYTES_MAX || self.charge.is_refused() {
            return RewriteStatus::Done;
        }
        self.documents.extend(Document::read(line));
        RewriteStatus::GoOn
    }
}
