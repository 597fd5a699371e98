//! `normalize`: the value of each bucket in relation to all.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::super::json::{Object, bad, optional};
use super::super::sums::Sums;
use super::path::{Gap, Path};
use super::{BucketValues, NamedBuckets, ParentShape, PipelineKind, number, single_path};
use crate::error::ApiError;

/// How a value is put in relation to the sums of all.
type Method = fn(f64, &Sums, f64) -> f64;

/// The methods; the last argument is the sum of the exponentials of all values.
const METHODS: [(&str, Method); 6] = [
    ("rescale_0_1", |value, all, _| {
        (value - all.min) / (all.max - all.min)
    }),
    ("rescale_0_100", |value, all, _| {
        100.0 * (value - all.min) / (all.max - all.min)
    }),
    ("percent_of_sum", |value, all, _| value / all.sum()),
    ("mean", |value, all, _| {
        (value - all.mean().unwrap_or_default()) / (all.max - all.min)
    }),
    ("z-score", |value, all, _| {
        let deviation = all.variance().map_or(f64::NAN, f64::sqrt);
        (value - all.mean().unwrap_or_default()) / deviation
    }),
    ("softmax", |value, _, exponentials| {
        value.exp() / exponentials
    }),
];

#[derive(Clone, Debug)]
struct Normalize {
    path: Path,
    method: Method,
}

/// Reads the pipeline.
pub(super) fn read(members: &Object) -> Result<PipelineKind, ApiError> {
    let path = single_path(members, &["method"], "normalize")?;
    let given = optional(members, "method")?.unwrap_or_default();
    let method = METHODS.iter().find(|(name, _)| *name == given);
    let (_, method) = method.ok_or_else(|| {
        let known: Vec<&str> = METHODS.iter().map(|(name, _)| *name).collect();
        bad(format!(
            "[method] is one of {}, not [{given}]",
            known.join(", ")
        ))
    })?;
    Ok(PipelineKind::Values(Arc::new(Normalize {
        path,
        method: *method,
    })))
}

impl BucketValues for Normalize {
    fn parent(&self) -> ParentShape {
        ParentShape::List
    }

    fn paths(&self) -> Vec<&Path> {
        vec![&self.path]
    }

    fn values(&self, buckets: &NamedBuckets) -> Result<Vec<Option<Json>>, ApiError> {
        let values = buckets
            .iter()
            .map(|(_, bucket)| self.path.value(bucket, Gap::Skip));
        let values: Vec<Option<f64>> = values.collect::<Result<_, _>>()?;
        let mut all = Sums::default();
        let mut exponentials = 0.0;
        for value in values.iter().flatten() {
            all.add(*value);
            exponentials += value.exp();
        }
        let each = values.iter().map(|value| {
            let relative = value.map(|value| (self.method)(value, &all, exponentials));
            relative.map(|relative| json!({ "value": number(relative) }))
        });
        Ok(each.collect())
    }
}
