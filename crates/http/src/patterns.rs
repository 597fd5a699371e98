//! `GET|POST /api/v1/patterns?n=&step=`: which kinds of messages there are.

use std::sync::Arc;

use hyper::Response;
use logpond_record::{TimeRange, cast};
use logpond_search::aggregate::{Pattern, nice_step_ns};
use logpond_search::hints::Hint;
use serde_json::{Value, json};

use super::App;
use super::body::Body;
use super::error::ApiError;
use super::fold::times_of;
use super::histogram::steps;
use super::params::Params;
use super::rows::{SCOPE_PARAMS, table};
use logpond_engine::query::{Output, Scope};

/// Parameters beside those of every query.
pub(super) const PARAMS: [&str; 2] = ["n", "step"];

/// Patterns in an answer that names no number.
pub(super) const PATTERNS_DEFAULT: u64 = 50;

/// Patterns in an answer at most: more are not kept apart.
pub(super) const PATTERNS_MAX: u64 = 10_000;

/// Said where not all patterns were kept apart.
const COARSE: &str = "there are more than sixteen thousand patterns: those that are alike are counted as one, and the \
                      rarest as '<_>'; ask for a shorter time or with a condition to tell them apart";

/// Buckets that are aimed at where no step is asked for: what a small curve shows.
pub(super) const BUCKETS_DEFAULT: u32 = 20;

/// Counts messages by pattern.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    params.only(&[&SCOPE_PARAMS[..], &PARAMS].concat())?;
    let read = |params: &Params| {
        let n = params.number("n", PATTERNS_DEFAULT, PATTERNS_MAX)?;
        // No limit, as everywhere, is still this limit.
        let n = if n == 0 { PATTERNS_MAX } else { n };
        let has_step = params.one("step")?.is_some();
        let steps = steps(params, BUCKETS_DEFAULT)?;
        Ok((steps, has_step, cast::to_usize(n)))
    };
    let run = |app: &App,
               scope: &Scope,
               ((mut range, mut step_ns), has_step, n): ((TimeRange, i64), bool, usize),
               out: &mut Output| {
        // A curve of an hour within years would be one point. What an answer lacks is told by the one below.
        if !has_step && let Ok(Some(times)) = times_of(&*app.engine, &app.shutdown, scope) {
            range = times;
            step_ns = nice_step_ns(range, BUCKETS_DEFAULT);
        }
        let (answer, mut trailer) = app.engine.patterns(scope, (range, step_ns), n, out)?;
        for pattern in &answer.patterns {
            out.json(&row(pattern))?;
        }
        if answer.is_coarse {
            trailer.hints.push(Hint {
                message: COARSE.to_owned(),
                ..Hint::default()
            });
        }
        Ok(trailer)
    };
    table(app, params, read, run).await
}

fn row(pattern: &Pattern) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let buckets = pattern.buckets.iter();
    let buckets: Vec<_> = buckets
        .map(|(from, count)| json!([from.to_string(), count]))
        .collect();
    let samples = pattern.samples.iter();
    let samples: Vec<_> = samples
        .map(|s| json!({ "time": s.time.to_string(), "message": text(&s.text) }))
        .collect();
    let level = (!pattern.level.is_empty()).then(|| text(&pattern.level));
    json!({
        "pattern": text(&pattern.text),
        "level": level,
        "count": pattern.count,
        "buckets": buckets,
        "samples": samples,
    })
}
