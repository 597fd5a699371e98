//! `moving_fn`: what a script computes from the values of the buckets before.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::super::json::{Object, bad, count, optional};
use super::path::{Gap, Path};
use super::script::{Script, Value};
use super::{BucketValues, NamedBuckets, PipelineKind, number, single_path};
use crate::error::ApiError;

/// The most buckets of a window.
const WINDOW_MAX: u64 = 10_000;

#[derive(Clone, Debug)]
struct MovingFn {
    path: Path,
    gap: Gap,
    script: Script,
    /// Buckets. Invariant: from 1 to the bound.
    window: i64,
    /// How many buckets later the window ends.
    shift: i64,
}

/// Reads the pipeline.
pub(super) fn read(members: &Object) -> Result<PipelineKind, ApiError> {
    let path = single_path(members, &["window", "shift", "script"], "moving_fn")?;
    let window = count(members, "window", 0)?;
    if window == 0 || window > WINDOW_MAX {
        return Err(bad(format!(
            "[window] of [moving_fn] is from 1 to {WINDOW_MAX}"
        )));
    }
    let shift = optional(members, "shift")?.map(|text| {
        let number = text.parse::<i32>();
        number.map_err(|_| bad(format!("[shift] is a whole number, not [{text}]")))
    });
    Ok(PipelineKind::Values(Arc::new(MovingFn {
        path,
        gap: Gap::read(members, Gap::Skip)?,
        script: Script::read(members.get("script"), &[])?,
        window: window.cast_signed(),
        shift: i64::from(shift.transpose()?.unwrap_or(0)),
    })))
}

impl BucketValues for MovingFn {
    fn paths(&self) -> Vec<&Path> {
        vec![&self.path]
    }

    fn values(&self, buckets: &NamedBuckets) -> Result<Vec<Option<Json>>, ApiError> {
        let found = buckets
            .iter()
            .map(|(_, bucket)| self.path.value(bucket, self.gap));
        let found: Vec<Option<f64>> = found.collect::<Result<_, _>>()?;
        let values: Vec<f64> = found.iter().flatten().copied().collect();
        let place = |at: i64| usize::try_from(at).unwrap_or(0).min(values.len());
        let mut at = 0;
        let each = found.iter().map(|value| {
            if value.is_none() {
                return Ok(None);
            }
            let end = at + self.shift;
            let (start, end) = (place(end - self.window), place(end));
            at += 1;
            let window = values.get(start..end).unwrap_or_default();
            match self.script.run(&[], window)? {
                Value::Number(value) => Ok(Some(json!({ "value": number(value) }))),
                Value::Null | Value::Truth(_) => Err(bad("[script] of [moving_fn] gives a number")),
            }
        });
        each.collect()
    }
}
