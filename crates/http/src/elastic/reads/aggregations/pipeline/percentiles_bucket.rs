//! `percentiles_bucket`: percentiles of the values of buckets. Each is the value of a bucket, without interpolation.

use std::sync::Arc;

use logpond_record::cast;
use serde_json::Value as Json;

use super::super::super::json::{Object, flag};
use super::super::percentiles::{percents, sorted, written};
use super::{PipelineKind, Sibling, SiblingPath};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct PercentilesBucket {
    path: SiblingPath,
    percents: Vec<f64>,
    is_keyed: bool,
}

/// Reads the pipeline.
pub(super) fn read(members: &Object) -> Result<PipelineKind, ApiError> {
    let path = SiblingPath::read(members, &["percents", "keyed"], "percentiles_bucket")?;
    Ok(PipelineKind::Sibling(Arc::new(PercentilesBucket {
        path,
        percents: percents(members)?,
        is_keyed: flag(members, "keyed", true)?,
    })))
}

impl Sibling for PercentilesBucket {
    fn typed(&self) -> &'static str {
        "percentiles_bucket"
    }

    fn finish(&self, values: &[(String, f64)]) -> Json {
        let sorted = sorted(values.iter().map(|(_, value)| *value).collect());
        let pairs = self.percents.iter().map(|percent| {
            let last = cast::float(sorted.len().saturating_sub(1));
            let place = (percent / 100.0 * last).round();
            (*percent, sorted.get(cast::whole_usize(place)).copied())
        });
        written(&pairs.collect::<Vec<_>>(), self.is_keyed)
    }

    fn path(&self) -> &SiblingPath {
        &self.path
    }
}
