//! `serial_diff`: the difference to the bucket some steps before.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::super::json::{Object, bad, count};
use super::path::{Gap, Path};
use super::{BucketValues, NamedBuckets, PipelineKind, number, single_path};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct SerialDiff {
    path: Path,
    gap: Gap,
    /// Steps. Invariant: at least 1.
    lag: usize,
}

/// Reads the pipeline.
pub(super) fn read(members: &Object) -> Result<PipelineKind, ApiError> {
    let lag = count(members, "lag", 1)?;
    if lag == 0 {
        return Err(bad("[lag] is more than 0"));
    }
    Ok(PipelineKind::Values(Arc::new(SerialDiff {
        path: single_path(members, &["lag"], "serial_diff")?,
        gap: Gap::read(members, Gap::Skip)?,
        lag: usize::try_from(lag).unwrap_or(usize::MAX),
    })))
}

impl BucketValues for SerialDiff {
    fn paths(&self) -> Vec<&Path> {
        vec![&self.path]
    }

    fn values(&self, buckets: &NamedBuckets) -> Result<Vec<Option<Json>>, ApiError> {
        let values = buckets
            .iter()
            .map(|(_, bucket)| self.path.value(bucket, self.gap));
        let values: Vec<Option<f64>> = values.collect::<Result<_, _>>()?;
        let difference = |at: usize| {
            let earlier = values.get(at.checked_sub(self.lag)?)?;
            let value = values.get(at)?;
            Some(json!({ "value": number((*value)? - (*earlier)?) }))
        };
        Ok((0..values.len()).map(difference).collect())
    }
}
