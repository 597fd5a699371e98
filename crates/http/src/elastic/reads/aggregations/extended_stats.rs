//! `extended_stats`: those of `stats`, and variances.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::json::{Object, number, only};
use super::columns::{Field, RowView};
use super::state::MetricState;
use super::sums::Sums;
use super::{Kind, Metric, Reader, stats};
use crate::error::ApiError;

/// How many standard deviations the bounds are from the mean, where a request says no number.
pub(super) const SIGMA: f64 = 2.0;

#[derive(Clone, Debug)]
struct ExtendedStats {
    field: Field,
    missing: Option<f64>,
    sigma: f64,
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    only(
        members,
        &["field", "missing", "sigma", "script"],
        "extended_stats",
    )?;
    Ok(Kind::Metric(Arc::new(ExtendedStats {
        field: reader.columns.number_field(members, "extended_stats")?,
        missing: number(members, "missing")?,
        sigma: number(members, "sigma")?.unwrap_or(SIGMA),
    })))
}

/// The members of the answer.
pub(super) fn json_of(sums: &Sums, sigma: f64) -> Json {
    let mut json = stats::json_of(sums);
    let (variance, sampling) = (sums.variance(), sums.sampling_variance());
    let bound =
        |sign: f64, variance: Option<f64>| Some(sums.mean()? + sign * sigma * variance?.sqrt());
    let more = json!({
        "sum_of_squares": sums.some(sums.squares()),
        "variance": variance,
        "variance_population": variance,
        "variance_sampling": sampling,
        "std_deviation": variance.map(f64::sqrt),
        "std_deviation_population": variance.map(f64::sqrt),
        "std_deviation_sampling": sampling.map(f64::sqrt),
        "std_deviation_bounds": {
            "upper": bound(1.0, variance),
            "lower": bound(-1.0, variance),
            "upper_population": bound(1.0, variance),
            "lower_population": bound(-1.0, variance),
            "upper_sampling": bound(1.0, sampling),
            "lower_sampling": bound(-1.0, sampling),
        },
    });
    if let Json::Object(more) = more {
        for (name, value) in more {
            json[name] = value;
        }
    }
    json
}

impl Metric for ExtendedStats {
    fn typed(&self) -> &'static str {
        "extended_stats"
    }

    fn empty(&self) -> MetricState {
        MetricState::Sums(Sums::default())
    }

    fn add(&self, row: &RowView<'_>, state: &mut MetricState) {
        stats::add(row, self.field, self.missing, state);
    }

    fn finish(&self, state: MetricState) -> Json {
        match state {
            MetricState::Sums(sums) => json_of(&sums, self.sigma),
            _ => Json::Null,
        }
    }

    fn has_value(&self, name: &str) -> bool {
        let own = ["sum_of_squares", "variance", "std_deviation"];
        own.contains(&name) || stats::NAMES.contains(&name)
    }

    fn value(&self, state: &MetricState, name: &str) -> Option<f64> {
        let MetricState::Sums(sums) = state else {
            return None;
        };
        match name {
            "sum_of_squares" => Some(sums.squares()),
            "variance" => sums.variance(),
            "std_deviation" => sums.variance().map(f64::sqrt),
            name => stats::value_of(sums, name),
        }
    }
}
