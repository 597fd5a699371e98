//! `derivative`: the difference to the bucket before.

use std::sync::Arc;

use logpond_record::cast;
use serde_json::{Value as Json, json};

use super::super::super::dates::interval::duration_ms;
use super::super::super::json::{Object, bad, optional};
use super::path::{Gap, Path};
use super::{BucketValues, NamedBuckets, PipelineKind, number, single_path};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct Derivative {
    path: Path,
    gap: Gap,
    /// The time for which a rate is given, too.
    unit_ms: Option<i64>,
}

/// Reads the pipeline.
pub(super) fn read(members: &Object) -> Result<PipelineKind, ApiError> {
    let unit = optional(members, "unit")?;
    let unit_ms = unit.map(|text| {
        let named = match &*text {
            "second" => "1s",
            "minute" => "1m",
            "hour" => "1h",
            "day" => "1d",
            "week" => "1w",
            other => other,
        };
        let ms = duration_ms(named).filter(|ms| *ms > 0);
        ms.ok_or_else(|| {
            bad(format!(
                "[unit] is a length of time, such as 1s, not [{text}]"
            ))
        })
    });
    Ok(PipelineKind::Values(Arc::new(Derivative {
        path: single_path(members, &["unit"], "derivative")?,
        gap: Gap::read(members, Gap::Skip)?,
        unit_ms: unit_ms.transpose()?,
    })))
}

impl BucketValues for Derivative {
    fn typed(&self) -> &'static str {
        "derivative"
    }

    fn paths(&self) -> Vec<&Path> {
        vec![&self.path]
    }

    fn values(&self, buckets: &NamedBuckets) -> Result<Vec<Option<Json>>, ApiError> {
        let mut before: Option<(Option<f64>, f64)> = None;
        let mut out = Vec::with_capacity(buckets.len());
        for (_, bucket) in buckets {
            let value = self.path.value(bucket, self.gap)?;
            let key = bucket["key"].as_f64().unwrap_or_default();
            out.push(before.map(|(earlier, earlier_key)| {
                let difference = value.zip(earlier).map(|(value, earlier)| value - earlier);
                let mut json = json!({ "value": difference.map(number) });
                if let Some(unit_ms) = self.unit_ms {
                    let units = (key - earlier_key) / cast::float(unit_ms);
                    let rate = difference.map(|difference| number(difference / units));
                    json["normalized_value"] = rate.into();
                }
                json
            }));
            before = Some((value, key));
        }
        Ok(out)
    }
}
