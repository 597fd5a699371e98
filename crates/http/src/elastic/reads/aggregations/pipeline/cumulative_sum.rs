//! `cumulative_sum`: the sum of the buckets up to each.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::super::json::Object;
use super::path::{Gap, Path};
use super::{BucketValues, NamedBuckets, PipelineKind, number, single_path};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct CumulativeSum {
    path: Path,
}

/// Reads the pipeline.
pub(super) fn read(members: &Object) -> Result<PipelineKind, ApiError> {
    Ok(PipelineKind::Values(Arc::new(CumulativeSum {
        path: single_path(members, &[], "cumulative_sum")?,
    })))
}

impl BucketValues for CumulativeSum {
    fn paths(&self) -> Vec<&Path> {
        vec![&self.path]
    }

    fn values(&self, buckets: &NamedBuckets) -> Result<Vec<Option<Json>>, ApiError> {
        let mut sum = 0.0;
        let each = buckets.iter().map(|(_, bucket)| {
            sum += self.path.value(bucket, Gap::Zeros)?.unwrap_or(0.0);
            Ok(Some(json!({ "value": number(sum) })))
        });
        each.collect()
    }
}
