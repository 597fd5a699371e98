//! `GET|POST /api/v1/histogram?step=`: counts per bucket of time.
//!
//! A row is `{"from":…,"to":…,"count":…}`, with the counts of values as `by` if a field splits the histogram.

use std::sync::Arc;

use hyper::Response;
use logpond_record::{TimeRange, Timestamp};
use logpond_search::aggregate::{Histogram, HistogramAnswer, HistogramSpec, nice_step_ns};
use logpond_search::label::counted_field;
use serde_json::{Value, json};

use super::body::Body;
use super::error::ApiError;
use super::fold::times_of;
use super::params::Params;
use super::rows::{SCOPE_PARAMS, range, table};
use super::{App, hints};
use logpond_engine::query::{Output, Scope};
use logpond_host::clock;

/// Parameters beside those of every query.
pub(super) const PARAMS: [&str; 2] = ["step", "by"];

/// Buckets that are aimed at where no step is asked for: about one for each terminal column.
pub(super) const BUCKETS_DEFAULT: u32 = 60;

/// A range up to this long is shown as it was asked for: that most of it is empty is what it says.
const RANGE_AS_ASKED_NS: i64 = 24 * 3_600_000_000_000;

/// A longer one is shown from its first to its last record where these lie in less than one of so many
/// parts of it: else a day's records are one bar among empty weeks.
const SPARSE_PARTS: i64 = 4;

/// Counts matches over time.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    params.only(&[&SCOPE_PARAMS[..], &PARAMS].concat())?;
    let read = |params: &Params| {
        let has_step = params.one("step")?.is_some();
        Ok((spec(params)?, has_step))
    };
    let run = |app: &App,
               scope: &Scope,
               (mut spec, has_step): (HistogramSpec, bool),
               out: &mut Output| {
        if !has_step {
            narrow(app, scope, &mut spec);
        }
        let (answer, mut trailer) = app.engine.histogram(scope, &spec, out)?;
        for at in 0..answer.buckets.len() {
            out.json(&row(&answer, at, spec.by.is_some()))?;
        }
        // Of no records at all more is said than that they lack the field.
        let by = spec.by.as_deref().filter(|_| trailer.rows > 0);
        if let Some(by) = by.filter(|_| !has_values(&answer)) {
            hints::note_unknown_field(app, scope, by, &mut trailer);
        }
        Ok(trailer)
    };
    table(app, params, read, run).await
}

fn row(answer: &HistogramAnswer, at: usize, is_split: bool) -> Value {
    let bucket = &answer.buckets[at];
    let to = bucket.start.saturating_add(answer.step_ns);
    let (from, to) = (bucket.start.to_string(), to.to_string());
    let mut row = json!({ "from": from, "to": to, "count": bucket.count });
    if is_split {
        let counts = counts_by_value(answer, at).map(|(value, count)| (value, count.into()));
        row["by"] = Value::Object(counts.collect());
        let other = answer.other.as_ref().map_or(0, |other| other.counts[at]);
        if other > 0 {
            row["other"] = other.into();
        }
    }
    row
}

/// How many records of a bucket have each value, those without one left out.
pub(super) fn counts_by_value(
    answer: &HistogramAnswer,
    bucket: usize,
) -> impl Iterator<Item = (String, u64)> {
    answer.series.iter().filter_map(move |series| {
        let value = String::from_utf8_lossy(series.value.as_deref()?);
        let count = series.counts[bucket];
        (count > 0).then(|| (value.into_owned(), count))
    })
}

/// True if any record has the field that splits the histogram.
fn has_values(answer: &HistogramAnswer) -> bool {
    answer.other.is_some() || answer.series.iter().any(|series| series.value.is_some())
}

/// The range of a histogram with a step of its own, where records are.
pub(super) fn narrow(app: &App, scope: &Scope, spec: &mut HistogramSpec) {
    // Parts that are missing are named by the answer of the histogram.
    if width_ns(spec.range) > RANGE_AS_ASKED_NS
        && let Ok(Some(times)) = times_of(&*app.engine, &app.shutdown, scope)
        && width_ns(times).saturating_mul(SPARSE_PARTS) < width_ns(spec.range)
    {
        spec.range = times;
        spec.step_ns = nice_step_ns(times, BUCKETS_DEFAULT);
    }
}

fn spec(params: &Params) -> Result<HistogramSpec, ApiError> {
    let (range, step_ns) = steps(params, BUCKETS_DEFAULT)?;
    let by = params.one("by")?.map(|field| counted_field(field).into());
    Ok(HistogramSpec { range, step_ns, by })
}

fn width_ns(range: TimeRange) -> i64 {
    range.to.0.saturating_sub(range.from.0)
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
