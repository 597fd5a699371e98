//! Runs a search: its aggregations, its hits and its total.
//!
//! Invariant: an answer that lacks something is refused (503), unless the request says that a partial one is wanted;
//! then `_shards` says what is missing.

use std::time::Instant;

use logpond_engine::query::{Output, Search, Trailer, cursor_text};
use logpond_search::Filter;
use serde_json::{Value as Json, json};

use super::aggregations;
use super::completeness::Completeness;
use super::document::Document;
use super::fetch::documents;
use super::hit::max_score;
use super::objects;
use super::request::{SearchRequest, Total};
use super::scope;
use super::sorted::{self, Window};
use crate::App;
use crate::error::ApiError;
use crate::logql::run::failed;

/// Runs a search; gives the answer as JSON.
///
/// # Errors
/// When it cannot be answered.
pub(super) fn run(app: &App, request: &SearchRequest, out: &mut Output) -> Result<Json, ApiError> {
    let started = Instant::now();
    let with_members =
        |filter: &Filter, out: &mut Output| objects::with_members(app, filter.clone(), out);
    let request = &SearchRequest {
        filter: with_members(&request.filter, out)?,
        hits_filter: with_members(&request.hits_filter, out)?,
        ..request.clone()
    };
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
    completeness.note(app, page.trailer, partial, out)?;
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
        let after = page.last.or_else(|| request.scroll_after.clone());
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
    completeness.note(app, trailer, may_be_partial, out)?;
    Ok(rows)
}

/// A page of hits.
#[derive(Debug, Default)]
struct Page {
    hits: Vec<Json>,
    /// Matches up to the end of the page.
    seen: u64,
    /// The last hit, for the id of a scroll.
    last: Option<Json>,
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
    if !request.order.is_of_times() {
        let window = Window {
            from: request.from,
            size: request.size,
            after: request.after.as_ref(),
        };
        let form = |document: &Document| request.form.hit(document, &request.order);
        let found = sorted::hits(app, filter, (&request.order, window), &form, out)?;
        page.hits = found.hits;
        page.last = found.last;
        page.seen = found.records;
        page.trailer = found.trailer;
        return Ok(page);
    }
    let mut search = Search::new(scope::of_filter(filter)?);
    search.direction = request.order.direction;
    search.behind = request.behind;
    search.limit = Some(request.from + request.size);
    let (documents, trailer) = documents(app, search, request.from, out)?;
    page.seen = trailer.rows;
    page.has_more = trailer.has_more;
    page.last = documents
        .last()
        .map(|document| cursor_text(document.key).into());
    page.hits = documents
        .iter()
        .map(|document| request.form.hit(document, &request.order))
        .collect();
    page.trailer = trailer;
    Ok(page)
}
