//! `stats_bucket`: count, min, max, avg and sum of the values of buckets.

use std::sync::Arc;

use serde_json::Value as Json;

use super::super::super::json::Object;
use super::super::stats;
use super::super::sums::Sums;
use super::{PipelineKind, Sibling, SiblingPath};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct StatsBucket {
    path: SiblingPath,
}

/// Reads the pipeline.
pub(super) fn read(members: &Object) -> Result<PipelineKind, ApiError> {
    Ok(PipelineKind::Sibling(Arc::new(StatsBucket {
        path: SiblingPath::read(members, &[], "stats_bucket")?,
    })))
}

impl Sibling for StatsBucket {
    fn typed(&self) -> &'static str {
        "stats_bucket"
    }

    fn finish(&self, values: &[(String, f64)]) -> Json {
        let mut all = Sums::default();
        values.iter().for_each(|(_, value)| all.add(*value));
        stats::json_of(&all)
    }

    fn path(&self) -> &SiblingPath {
        &self.path
    }
}
