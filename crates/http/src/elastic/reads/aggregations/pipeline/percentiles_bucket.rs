//! `percentiles_bucket`: percentiles of the values of buckets. Each is the value of a bucket, without interpolation.

use std::sync::Arc;

use serde_json::Value as Json;

use super::super::super::json::{Object, bad, flag};
use super::super::percentiles::{PERCENTS, numbers, written};
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
    let percents = numbers(members, "percents")?.unwrap_or_else(|| PERCENTS.to_vec());
    if !percents
        .iter()
        .all(|percent| (0.0..=100.0).contains(percent))
    {
        return Err(bad("[percents] are from 0 to 100"));
    }
    Ok(PipelineKind::Sibling(Arc::new(PercentilesBucket {
        path,
        percents,
        is_keyed: flag(members, "keyed", true)?,
    })))
}

impl Sibling for PercentilesBucket {
    fn typed(&self) -> &'static str {
        "percentiles_bucket"
    }

    fn finish(&self, values: &[(String, f64)]) -> Json {
        let mut sorted: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let pairs = self.percents.iter().map(|percent| {
            let last = sorted.len().saturating_sub(1) as f64;
            let place = (percent / 100.0 * last).round();
            (*percent, sorted.get(place as usize).copied())
        });
        written(&pairs.collect::<Vec<_>>(), self.is_keyed)
    }

    fn path(&self) -> &SiblingPath {
        &self.path
    }
}
