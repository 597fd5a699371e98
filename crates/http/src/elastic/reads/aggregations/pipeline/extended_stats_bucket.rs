//! `extended_stats_bucket`: those of `stats_bucket`, and variances.

use std::sync::Arc;

use serde_json::Value as Json;

use super::super::super::json::{Object, number};
use super::super::extended_stats;
use super::super::sums::Sums;
use super::{PipelineKind, Sibling, SiblingPath};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct ExtendedStatsBucket {
    path: SiblingPath,
    sigma: f64,
}

/// Reads the pipeline.
pub(super) fn read(members: &Object) -> Result<PipelineKind, ApiError> {
    Ok(PipelineKind::Sibling(Arc::new(ExtendedStatsBucket {
        path: SiblingPath::read(members, &["sigma"], "extended_stats_bucket")?,
        sigma: number(members, "sigma")?.unwrap_or(extended_stats::SIGMA),
    })))
}

impl Sibling for ExtendedStatsBucket {
    fn typed(&self) -> &'static str {
        "extended_stats_bucket"
    }

    fn finish(&self, values: &[(String, f64)]) -> Json {
        let mut all = Sums::default();
        values.iter().for_each(|(_, value)| all.add(*value));
        extended_stats::json_of(&all, self.sigma)
    }

    fn path(&self) -> &SiblingPath {
        &self.path
    }
}
