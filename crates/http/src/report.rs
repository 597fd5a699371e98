//! `GET|POST /api/v1/query?format=html`: a report of one page, for the file of an incident.
//!
//! Invariant: the page is that of `logpond query -o html`; parts that the answer lacks are named on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::Response;
use hyper::header::{
    CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue,
};
use jiff::tz::TimeZone;
use logpond_record::{TimeRange, Timestamp};
use logpond_search::aggregate::{HistogramSpec, nice_step_ns};
use logpond_search::label::counted_field;

use super::body::Body;
use super::error::ApiError;
use super::logql::run::failed;
use super::params::Params;
use super::{App, histogram, query};
use logpond_engine::query::{
    CHUNK_BYTES, Output, QueryError, RewriteStatus, Scope, Search, Trailer, Visitor,
};
use logpond_host::clock;
use logpond_render::Render;
use logpond_render::html::{self, Bucket, Facts, Html};

/// Parameters of a query that a page cannot have.
const REFUSED: [&str; 9] = [
    "follow",
    "position",
    "positions",
    "before",
    "after",
    "count",
    "progress",
    "fields",
    "clip",
];

/// The head of an answer. Other pages do not get at the file where a browser opens it.
const HEAD: [(hyper::header::HeaderName, &str); 3] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (
        CONTENT_DISPOSITION,
        "attachment; filename=\"logpond-report.html\"",
    ),
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    ),
];

/// Answers with a page, if that is the form that is asked for, and else with rows.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    if params.one("format")? != Some("html") {
        return query::answer(app, params).await;
    }
    params.only(&query::PARAMS)?;
    for name in REFUSED {
        if params.one(name)?.is_some() {
            let message = format!("a report has no use for the parameter '{name}': leave it out");
            return Err(ApiError::bad_request(message));
        }
    }
    let app_there = Arc::clone(app);
    let gather = move |out: &mut Output| {
        let zone = zone(&params)?;
        let mut search = query::search(&params)?;
        search.limit = Some(search.limit.unwrap_or(html::ROWS_DEFAULT));
        page(&app_there, &search, &zone, out)
    };
    let write = |page: Vec<u8>, out: &mut Output| {
        let mut pieces = page.chunks(CHUNK_BYTES);
        let written = pieces.try_for_each(|piece| out.append(|chunk| chunk.extend(piece)));
        written.map_err(|_| std::io::ErrorKind::BrokenPipe.into())
    };
    let mut response = app.threads.gathered(gather, write).await?;
    let headers: &mut HeaderMap = response.headers_mut();
    for (name, value) in HEAD {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

fn zone(params: &Params) -> Result<TimeZone, ApiError> {
    let Some(name) = params.one("timezone")?.filter(|name| !name.is_empty()) else {
        return Ok(TimeZone::UTC);
    };
    TimeZone::get(name).map_err(|_| {
        let message = format!(
            "parameter 'timezone' is a name such as Europe/Berlin, and there is no zone {name:?}"
        );
        ApiError::bad_request(message)
    })
}

fn page(
    app: &App,
    search: &Search,
    zone: &TimeZone,
    out: &mut Output,
) -> Result<Vec<u8>, ApiError> {
    let html = Arc::new(Mutex::new(Html::new(zone.clone())));
    let table = Arc::clone(&html);
    let visitor: Visitor = Box::new(move |row, _| {
        locked(&table).row(row, &mut Vec::new());
        RewriteStatus::GoOn
    });
    let answer = app.engine.visit(search, visitor, out);
    let mut trailer = answer.map_err(failed)?;
    let buckets = buckets(app, &search.scope, zone, &mut trailer, out).map_err(failed)?;
    if search.is_strict && trailer.missing_count > 0 {
        return Err(super::rows::incomplete(&trailer));
    }
    let mut page = Vec::new();
    let mut html = locked(&html);
    html.conclude(facts(&search.scope, zone, trailer, buckets));
    html.end(&mut page);
    Ok(page)
}

/// The histogram over the range; what it lacks is missing in the answer, too.
fn buckets(
    app: &App,
    scope: &Scope,
    zone: &TimeZone,
    trailer: &mut Trailer,
    out: &mut Output,
) -> Result<Vec<Bucket>, QueryError> {
    let mut range = scope.range;
    if range.to == Timestamp::MAX {
        range.to = clock::now().max(range.from).saturating_add(1);
    }
    let mut spec = HistogramSpec {
        range,
        step_ns: nice_step_ns(range, histogram::BUCKETS_DEFAULT),
        by: Some(counted_field("level").into()),
    };
    histogram::narrow(app, scope, &mut spec);
    let (answer, counted) = app.engine.histogram(scope, &spec, out)?;
    for what in counted.missing {
        if !trailer.missing.contains(&what) {
            trailer.miss(what);
        }
    }
    let buckets = answer.buckets.iter().enumerate();
    let buckets = buckets.map(|(at, bucket)| Bucket {
        from: html::zoned(&bucket.start.to_string(), zone),
        count: bucket.count,
        levels: histogram::counts_by_value(&answer, at).collect(),
    });
    Ok(buckets.collect())
}

fn facts(scope: &Scope, zone: &TimeZone, trailer: Trailer, buckets: Vec<Bucket>) -> Facts {
    let TimeRange { from, to } = scope.range;
    let bound =
        |time: Timestamp, open| (time != open).then(|| html::zoned(&time.to_string(), zone));
    let counted = (!buckets.is_empty()).then(|| buckets.iter().map(|bucket| bucket.count).sum());
    Facts {
        query: if scope.text.trim().is_empty() {
            "all records".to_owned()
        } else {
            scope.text.to_string()
        },
        range: html::range_text(bound(from, Timestamp::MIN), bound(to, Timestamp::MAX)),
        source: logpond_host::hostname::own().to_string(),
        made: html::zoned(&clock::now().to_string(), zone),
        missing: trailer.missing,
        lost: trailer.lost,
        matches: counted,
        has_more: trailer.has_more,
        buckets,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
