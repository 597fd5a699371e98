//! One `date_histogram` alone, by the engine's own histogram: segments know how many records each second has, so that
//! none is read for it.

use logpond_engine::query::{Output, Scope, Trailer};
use logpond_search::aggregate::HistogramSpec;

use super::super::dates::MS_NS;
use super::state::{Bucket, Level};
use super::{Kind, Plan};
use crate::App;
use crate::error::ApiError;
use crate::logql::run::failed;

/// Counts records by time, if that is all that a plan needs and the range has few enough steps.
///
/// # Errors
/// When they cannot be counted.
pub(super) fn read(
    app: &App,
    plan: &Plan,
    scope: &Scope,
    out: &mut Output,
) -> Result<Option<(Level, Trailer)>, ApiError> {
    let Some(spec) = spec(plan, scope) else {
        return Ok(None);
    };
    let (answer, trailer) = app.engine.histogram(scope, &spec, out).map_err(failed)?;
    let found = answer.buckets.iter().filter(|bucket| bucket.count > 0);
    let found = found.map(|bucket| (bucket.start.0.div_euclid(MS_NS), bucket.count));
    let bucket = |(ms, records)| {
        let level = Level::default();
        (ms, Bucket { records, level })
    };
    let level = Level::of_buckets(found.map(bucket).collect());
    Ok(Some((level, trailer)))
}

/// The histogram that a plan is, if it is one.
fn spec(plan: &Plan, scope: &Scope) -> Option<HistogramSpec> {
    let ([one], [column]) = (&*plan.tree.list, &*plan.columns) else {
        return None;
    };
    let step_ms = match &one.kind {
        Kind::Buckets(buckets) if one.children.list.is_empty() => buckets.timeline_step_ms(),
        _ => None,
    };
    let step_ns = step_ms?.checked_mul(MS_NS)?;
    let spec = HistogramSpec {
        range: scope.range,
        step_ns,
        by: None,
    };
    (&*column.name == "_time" && spec.empty().is_ok()).then_some(spec)
}
