//! `GET|POST /api/v1/top?field=&n=`: the most frequent values of a field.

use std::sync::Arc;

use hyper::Response;

use super::body::Body;
use super::error::ApiError;
use super::params::Params;
use super::rows::{SCOPE_PARAMS, table};
use super::{App, hints};
use logpond_engine::query::{Output, Scope};

/// Parameters beside those of every query.
pub(super) const PARAMS: [&str; 2] = ["field", "n"];

/// Values in an answer that names no number.
pub(super) const VALUES_DEFAULT: u64 = 10;

/// Values in an answer at most.
pub(super) const VALUES_MAX: u64 = 100_000;

/// Counts the values of one field.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    params.only(&[&SCOPE_PARAMS[..], &PARAMS].concat())?;
    let read = |params: &Params| {
        let field = params.one("field")?.filter(|name| !name.is_empty());
        let field = field.ok_or_else(|| {
            ApiError::bad_request("parameter 'field' is missing: the field whose values to count")
        })?;
        let n = params.number("n", VALUES_DEFAULT, VALUES_MAX)?;
        // No limit, as everywhere, is still this limit.
        let n = if n == 0 { VALUES_MAX } else { n };
        Ok((field.to_owned(), n as usize))
    };
    let run = |app: &App, scope: &Scope, (field, n): (String, usize), out: &mut Output| {
        let mut trailer = app.engine.top(scope, &field, n, out)?;
        let is_empty = out.lines() == 0;
        hints::note(app, scope, Some(&field), is_empty, &mut trailer);
        Ok(trailer)
    };
    table(app, params, read, run).await
}
