//! `GET|POST /api/v1/query`: rows as they are found.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::Response;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use logpond_record::cast;

use super::body::Body;
use super::error::ApiError;
use super::params::Params;
use super::rows::{self, Begins};
use super::{App, header_text, hints};
use logpond_engine::query::{
    CONTEXT_ROWS_MAX, Direction, Output, Positions, RewriteStatus, RowParts, Search, Visitor,
    parse_cursor,
};
use logpond_host::clock;
use logpond_render::{Cells, Csv, Render};

/// Parameters of a query; the first are those of every query.
pub(super) const PARAMS: [&str; 19] = [
    "q",
    "from",
    "to",
    "strict",
    "limit",
    "direction",
    "cursor",
    "follow",
    "position",
    "positions",
    "before",
    "after",
    "count",
    "progress",
    "fields",
    "clip",
    "format",
    "defuse",
    "timezone",
];

/// Bytes after which values may be cut at most: records are shorter than this.
const CLIP_BYTES_MAX: u64 = 1 << 30;

/// The name that a browser gives the saved file.
const FILE_NAME: &str = "attachment; filename=\"logpond.csv\"";

/// Streams the rows that match.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    params.only(&PARAMS)?;
    if params.one("timezone")?.is_some() {
        let message = "parameter 'timezone' is for 'format=html': other times are in UTC";
        return Err(ApiError::bad_request(message));
    }
    if let Some(cells) = csv(&params)? {
        return answer_csv(app, params, cells).await;
    }
    let begins = begins(&params)?;
    let app_there = app.clone();
    let threads = app.threads.for_followers(params.flag("follow", false)?);
    let prepare = move || search(&params);
    let run = move |search: Search, out: &mut Output| {
        let mut trailer = app_there.engine.search(&search, out)?;
        if !search.is_followed {
            // A page behind the last match is no question that found nothing.
            let is_empty = trailer.rows == 0 && search.behind.is_none();
            hints::note(&app_there, &search.scope, None, is_empty, &mut trailer);
        }
        Ok(trailer)
    };
    threads.stream(begins, prepare, run).await
}

/// How cells are written, if the answer is to be CSV.
fn csv(params: &Params) -> Result<Option<Cells>, ApiError> {
    let are_defused = params.flag("defuse", false)?;
    match params.one("format")? {
        None | Some("ndjson") => Ok(None),
        Some("csv") => {
            if params.flag("follow", false)? || params.flag("count", false)? {
                let message =
                    "CSV is a table of rows that has an end: leave out 'follow' and 'count'";
                return Err(ApiError::bad_request(message));
            }
            if params.one("clip")?.is_some() {
                let message = "CSV has no place for what was cut: leave out 'clip'";
                return Err(ApiError::bad_request(message));
            }
            Ok(Some(Cells { are_defused }))
        }
        Some(other) => Err(ApiError::bad_request(format!(
            "parameter 'format' is ndjson, csv or html, not '{other}'"
        ))),
    }
}

/// Sends rows as CSV. It has no place for what is missing: an answer that lacks something before its first row
/// is refused, later it is broken off.
async fn answer_csv(
    app: &Arc<App>,
    params: Params,
    cells: Cells,
) -> Result<Response<Body>, ApiError> {
    let engine = app.engine.clone();
    let prepare = move || search(&params);
    let run = move |search: Search, out: &mut Output| {
        let csv = Arc::new(Mutex::new(Csv::new(&[], cells)));
        let table = Arc::clone(&csv);
        let visitor: Visitor = Box::new(move |row, out| {
            let mut csv = table.lock().unwrap_or_else(PoisonError::into_inner);
            csv.row(row, out);
            RewriteStatus::GoOn
        });
        let trailer = engine.visit(&search, visitor, out)?;
        let mut csv = csv.lock().unwrap_or_else(PoisonError::into_inner);
        out.append(|chunk| csv.end(chunk))?;
        Ok(trailer)
    };
    let mut response = app.threads.stream(Begins::WithRows, prepare, run).await?;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/csv; charset=utf-8"),
    );
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static(FILE_NAME));
    Ok(header_text::note_losses(app, response).await)
}

/// When the status is known: rows of a strict answer may have been sent before something is found to
/// be missing, a count is not.
fn begins(params: &Params) -> Result<Begins, ApiError> {
    let is_strict = params.flag("strict", false)?;
    if is_strict && params.flag("follow", false)? {
        let message = "what is followed has no end at which it could be complete: leave out \
                       'strict' or 'follow'";
        return Err(ApiError::bad_request(message));
    }
    Ok(match (is_strict, params.flag("count", false)?) {
        (false, false) => Begins::AtOnce,
        (false, true) => Begins::WithBytes,
        (true, false) => Begins::WithRows,
        (true, true) => Begins::AtEnd,
    })
}

pub(super) fn search(params: &Params) -> Result<Search, ApiError> {
    let scope = rows::scope(params, clock::now())?;
    let limit = params.number("limit", 0, u64::MAX)?;
    let before = params.number("before", 0, CONTEXT_ROWS_MAX as u64)?;
    let after = params.number("after", 0, CONTEXT_ROWS_MAX as u64)?;
    let cursor = params.one("cursor")?.filter(|text| !text.is_empty());
    let behind = cursor.map(parse_cursor).transpose();
    let mut search = Search::new(scope);
    search.limit = (limit > 0).then_some(limit);
    search.direction = direction(params)?;
    search.behind =
        behind.map_err(|e| ApiError::bad_request(format!("parameter 'cursor': {e}")))?;
    search.is_followed = params.flag("follow", false)?;
    search.positions = position(params)?;
    search.wants_positions = params.flag("positions", false)?;
    search.rows_before = cast::to_usize(before);
    search.rows_after = cast::to_usize(after);
    search.is_strict = params.flag("strict", false)?;
    search.is_count = params.flag("count", false)?;
    search.wants_progress = params.flag("progress", false)?;
    search.parts = parts(params)?;
    Ok(search)
}

fn position(params: &Params) -> Result<Option<Positions>, ApiError> {
    let text = params.one("position")?.filter(|text| !text.is_empty());
    let positions = text.map(Positions::from_text).transpose();
    positions.map_err(|e| ApiError::bad_request(format!("parameter 'position': {e}")))
}

fn direction(params: &Params) -> Result<Direction, ApiError> {
    match params.one("direction")? {
        None | Some("forward") => Ok(Direction::Forward),
        Some("backward") => Ok(Direction::Backward),
        Some(other) => Err(ApiError::bad_request(format!(
            "parameter 'direction' is forward or backward, not '{other}'"
        ))),
    }
}

fn parts(params: &Params) -> Result<RowParts, ApiError> {
    let clip_bytes = params.number("clip", 0, CLIP_BYTES_MAX)?;
    let mut parts = RowParts {
        clip_bytes: cast::to_usize(clip_bytes),
        ..RowParts::default()
    };
    let named = params.one("fields")?.unwrap_or_default();
    for part in named.split(',').filter(|part| !part.is_empty()) {
        match part {
            "raw" => parts.line = true,
            "origin" => parts.origin = true,
            other => {
                return Err(ApiError::bad_request(format!(
                    "parameter 'fields' lists raw and origin, not '{other}'"
                )));
            }
        }
    }
    Ok(parts)
}
