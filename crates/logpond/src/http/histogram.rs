//! `GET|POST /api/v1/histogram?step=`: counts per bucket of time.

use std::sync::Arc;

use hyper::Response;
use logpond_record::{TimeRange, Timestamp};
use logpond_search::aggregate::{Histogram, nice_step_ns};

use super::App;
use super::body::Body;
use super::error::ApiError;
use super::params::Params;
use super::rows::{SCOPE_PARAMS, range, table};
use crate::clock;
use crate::query::Scope;

/// Parameters beside those of every query.
pub(super) const PARAMS: [&str; 1] = ["step"];

/// Buckets that are aimed at where no step is asked for: about one for each terminal column.
pub(super) const BUCKETS_DEFAULT: u32 = 60;

/// Counts matches over time.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    params.only(&[&SCOPE_PARAMS[..], &PARAMS].concat())?;
    let run = |app: &App, scope: &Scope, (range, step_ns): (TimeRange, i64), out: &mut _| {
        app.engine.histogram(scope, range, step_ns, out)
    };
    table(app, params, buckets, run).await
}

fn buckets(params: &Params) -> Result<(TimeRange, i64), ApiError> {
    steps(params, BUCKETS_DEFAULT)
}

/// The range and the width of its buckets; about so many where no step is asked for.
pub(super) fn steps(params: &Params, buckets: u32) -> Result<(TimeRange, i64), ApiError> {
    let now = clock::now();
    let mut range = range(params, now)?;
    if range.to == Timestamp::MAX {
        // Open: the last bucket is the one of now.
        range.to = now.max(range.from).saturating_add(1);
    }
    let step_ns = match params.one("step")? {
        None => nice_step_ns(range, buckets),
        Some(text) => logpond_search::size::parse_duration(text)
            .map_err(|e| ApiError::bad_request(format!("parameter 'step': {e}")))?,
    };
    Histogram::new(range, step_ns, 0)
        .map_err(|e| ApiError::bad_request(format!("parameter 'step': {e}")))?;
    Ok((range, step_ns))
}
