//! `median_absolute_deviation`: the median of the distances from the median, exactly.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::json::{Object, number, only};
use super::columns::{Field, RowView};
use super::percentiles::{percentile, sorted};
use super::state::MetricState;
use super::{Kind, Metric, Reader, stats};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct MedianDeviation {
    field: Field,
    missing: Option<f64>,
}

/// Reads the aggregation. Options of estimates change nothing: the answer is exact.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let kind = "median_absolute_deviation";
    let known = [
        "field",
        "missing",
        "compression",
        "execution_hint",
        "script",
    ];
    only(members, &known, kind)?;
    Ok(Kind::Metric(Arc::new(MedianDeviation {
        field: reader.columns.number_field(members, kind)?,
        missing: number(members, "missing")?,
    })))
}

fn median(numbers: Vec<f64>) -> Option<f64> {
    percentile(&sorted(numbers), 50.0)
}

impl Metric for MedianDeviation {
    fn typed(&self) -> &'static str {
        "median_absolute_deviation"
    }

    fn empty(&self) -> MetricState {
        MetricState::Values(Vec::new())
    }

    fn add(&self, row: &RowView<'_>, state: &mut MetricState) {
        stats::add(row, self.field, self.missing, state);
    }

    fn finish(&self, state: MetricState) -> Json {
        json!({ "value": self.value(&state, "value") })
    }

    fn value(&self, state: &MetricState, name: &str) -> Option<f64> {
        let MetricState::Values(numbers) = state else {
            return None;
        };
        let middle = median(numbers.clone()).filter(|_| name == "value")?;
        median(
            numbers
                .iter()
                .map(|number| (number - middle).abs())
                .collect(),
        )
    }
}
