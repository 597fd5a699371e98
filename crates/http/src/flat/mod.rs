//! `GET|POST /api/query`: LogQL by text or by name, answered as flat objects: what tools ask that fetch
//! JSON or CSV from an address, such as Grafana's data source Infinity.

mod write;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use logpond_record::{TimeRange, Timestamp};
use logpond_search::logql::duration_ns;

use super::App;
use super::body::Body;
use super::coding::Coding;
use super::error::{ApiError, Kind};
use super::header_text::{self, WARNING_HEADER};
use super::logql::found::QueryResult;
use super::logql::resolve::Resolver;
use super::logql::run::{self, POINTS_DEFAULT, QueryParameters};
use super::params::Params;
use super::rows;
use logpond_engine::query::{Direction, Output, Trailer, cursor_text, parse_cursor};
use logpond_engine::saved::{Format, Value, Window};
use logpond_host::clock;
use logpond_render::Cells;
use write::{Form, Page};

/// Parameters beside those that begin with [`VARIABLE_PREFIX`].
pub(super) const PARAMS: [&str; 11] = [
    "query",
    "from",
    "to",
    "format",
    "show",
    "step",
    "limit",
    "direction",
    "cursor",
    "strict",
    "defuse",
];

/// What the names of parameters begin with that are values of variables.
pub(super) const VARIABLE_PREFIX: &str = "var-";

/// Lines of an answer that does not say how many.
pub(super) const LIMIT_DEFAULT: u64 = 1_000;

/// Where the next page begins.
const CURSOR_HEADER: &str = "logpond-cursor";

/// Answers a query.
pub(super) async fn answer(
    app: &Arc<App>,
    headers: &HeaderMap,
    params: Params,
) -> Result<Response<Body>, ApiError> {
    let coding = Coding::of(headers);
    check_names(&params)?;
    let form = form(&params)?;
    let cells = Cells {
        are_defused: params.flag("defuse", false)?,
    };
    // What of the head of the answer is known once all was gathered.
    let said: Arc<Mutex<HeadFields>> = Arc::default();
    let (app_there, said_there) = (app.clone(), said.clone());
    let work = move |out: &mut Output| {
        let page = gather(&app_there, &params, out)?;
        *said_there.lock().unwrap_or_else(PoisonError::into_inner) = HeadFields::of(&page);
        Ok(page)
    };
    let send = move |page: Page, out: &mut Output| {
        coding.send(out, |to| write::page(&page, form, cells, to))
    };
    let mut response = app.threads.gathered(work, send).await?;
    coding.dress(&mut response);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.content_type()));
    let said = std::mem::take(&mut *said.lock().unwrap_or_else(PoisonError::into_inner));
    let cursor = said
        .cursor
        .and_then(|text| HeaderValue::from_str(&text).ok());
    for (name, value) in [(CURSOR_HEADER, cursor), (WARNING_HEADER, said.warning)] {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    Ok(response)
}

/// The cursor and the warning of an answer's head.
#[derive(Default)]
struct HeadFields {
    cursor: Option<String>,
    warning: Option<HeaderValue>,
}

impl HeadFields {
    fn of(page: &Page) -> HeadFields {
        let lost = run::losses(&page.lost);
        let warnings: Vec<String> = page.warnings.iter().cloned().chain(lost).collect();
        HeadFields {
            cursor: page.cursor.clone(),
            warning: header_text::warning(&warnings),
        }
    }
}

fn check_names(params: &Params) -> Result<(), ApiError> {
    let is_known = |name: &str| PARAMS.contains(&name) || name.starts_with(VARIABLE_PREFIX);
    match params.pairs().find(|(name, _)| !is_known(name)) {
        None => Ok(()),
        Some((name, _)) => Err(ApiError::bad_request(format!(
            "unknown parameter '{name}'; known here: {}, and {VARIABLE_PREFIX}NAME for variables",
            PARAMS.join(", ")
        ))),
    }
}

/// A variable that a query does not have was mistyped: the answer would be that of another question.
fn check_variables(params: &Params, known: &BTreeSet<String>) -> Result<(), ApiError> {
    let mut given = params
        .pairs()
        .filter_map(|(name, _)| name.strip_prefix(VARIABLE_PREFIX));
    // Those of the range are everywhere.
    let is_foreign = |name: &&str| !name.starts_with("__") && !known.contains(*name);
    let Some(name) = given.find(is_foreign) else {
        return Ok(());
    };
    let mut error = ApiError::bad_request(format!("the query has no variable '{name}'"));
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    error.hint = Some(if known.is_empty() {
        "it has none".to_owned()
    } else {
        format!("its variables are {}", known.join(", "))
    });
    Err(error)
}

fn form(params: &Params) -> Result<Form, ApiError> {
    match params.one("format")? {
        None => Ok(Form::Json),
        Some(text) => Form::parse(text).ok_or_else(|| {
            ApiError::bad_request(format!(
                "parameter 'format' is json, ndjson, csv or page, not '{text}'"
            ))
        }),
    }
}

/// Values of variables as parameters: one that is given several times is a choice.
fn variable(params: &Params, name: &str) -> Option<Value> {
    let given = format!("{VARIABLE_PREFIX}{name}");
    let mut texts: Vec<String> = params.all(&given).map(str::to_owned).collect();
    match texts.len() {
        0 => None,
        1 => texts.pop().map(Value::One),
        _ => Some(Value::Any(texts)),
    }
}

fn gather(app: &App, params: &Params, out: &mut Output) -> Result<Page, ApiError> {
    let started = Instant::now();
    let now = clock::now();
    let text = params.one("query")?.filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| {
        let mut error = ApiError::bad_request("parameter 'query' is missing");
        error.hint = Some("it is LogQL or the name of a saved query".to_owned());
        error
    })?;
    let range = range(params, now)?;
    let step_ns = run::step_ns(range, step(params)?, POINTS_DEFAULT);
    let resolver = Resolver {
        saved: &app.saved,
        window: Window {
            from_ms: range.from.unix_ms(),
            to_ms: range.to.unix_ms(),
            interval_ns: step_ns,
        },
        filters: &[],
        format: show(params)?,
    };
    let known = RefCell::new(BTreeSet::new());
    let resolved = resolver.resolve(text, |name| {
        known.borrow_mut().insert(name.to_owned());
        variable(params, name)
    })?;
    let mut known = known.into_inner();
    // What a saved query declares it has, be it that it stands nowhere.
    let saved = app.saved.get(text.trim());
    known.extend(
        saved
            .into_iter()
            .flat_map(|query| query.variables.into_keys()),
    );
    check_variables(params, &known)?;
    let cursor = params.one("cursor")?.filter(|text| !text.is_empty());
    let behind = cursor.map(parse_cursor).transpose();
    let limit = params.number("limit", LIMIT_DEFAULT, u64::MAX)?;
    let wanted = QueryParameters {
        range,
        step_ns,
        format: resolved.format,
        limit: if limit == 0 { u64::MAX } else { limit },
        direction: direction(params)?,
        behind: behind.map_err(|e| ApiError::bad_request(format!("parameter 'cursor': {e}")))?,
        now,
    };
    let result = run::run(&*app.engine, resolved.query, &wanted, out);
    app.metrics.query_ns.observe_duration(started.elapsed());
    let (found, trailer) = result?;
    app.metrics.query_bytes.add(trailer.bytes_scanned);
    if params.flag("strict", false)? && trailer.missing_count > 0 {
        return Err(rows::incomplete(&trailer));
    }
    Ok(page(found, &trailer))
}

fn page(found: QueryResult, trailer: &Trailer) -> Page {
    let cursor = match &found {
        QueryResult::Lines { cursor, .. } => cursor.map(cursor_text),
        QueryResult::Numbers { .. } => None,
    };
    let mut warnings = run::missing(trailer);
    warnings.extend_from_slice(found.warnings());
    Page {
        found,
        cursor,
        is_complete: trailer.missing_count == 0,
        lost: trailer.lost.clone(),
        warnings,
    }
}

/// An hour before now or before the end, to now.
fn range(params: &Params, now: Timestamp) -> Result<TimeRange, ApiError> {
    let range = rows::range(params, now)?;
    let to = match params.one("to")? {
        Some(_) => range.to,
        None => now.max(range.from),
    };
    Ok(TimeRange { to, ..range })
}

fn step(params: &Params) -> Result<Option<i64>, ApiError> {
    let Some(text) = params.one("step")?.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    match duration_ns(text).filter(|step| *step > 0) {
        Some(step) => Ok(Some(step)),
        None => Err(ApiError::bad_request(format!(
            "parameter 'step' is a duration such as 1m, not '{text}'"
        ))),
    }
}

fn show(params: &Params) -> Result<Option<Format>, ApiError> {
    match params.one("show")?.filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => Format::parse(text).map(Some).ok_or_else(|| {
            let message = format!("parameter 'show' is time_series or table, not '{text}'");
            ApiError::new(Kind::BadRequest, message)
        }),
    }
}

fn direction(params: &Params) -> Result<Direction, ApiError> {
    match params.one("direction")? {
        None | Some("backward") => Ok(Direction::Backward),
        Some("forward") => Ok(Direction::Forward),
        Some(other) => Err(ApiError::bad_request(format!(
            "parameter 'direction' is forward or backward, not '{other}'"
        ))),
    }
}
