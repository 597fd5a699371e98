//! `percentile_ranks`, exactly: which part of the numbers is not above a value, in percent.

use std::sync::Arc;

use logpond_record::cast;
use serde_json::Value as Json;

use super::super::json::{Object, bad, flag, number, only};
use super::columns::{Field, RowView};
use super::percentiles::{numbers, sorted, written};
use super::state::MetricState;
use super::{Kind, Metric, Reader, stats};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct PercentileRanks {
    field: Field,
    missing: Option<f64>,
    values: Vec<f64>,
    is_keyed: bool,
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let known = [
        "field", "missing", "values", "keyed", "tdigest", "hdr", "script",
    ];
    only(members, &known, "percentile_ranks")?;
    let values = numbers(members, "values")?;
    Ok(Kind::Metric(Arc::new(PercentileRanks {
        field: reader.columns.number_field(members, "percentile_ranks")?,
        missing: number(members, "missing")?,
        values: values.ok_or_else(|| bad("[percentile_ranks] needs [values]"))?,
        is_keyed: flag(members, "keyed", true)?,
    })))
}

fn rank(sorted: &[f64], value: f64) -> Option<f64> {
    let below = sorted.partition_point(|number| *number <= value);
    (!sorted.is_empty()).then(|| cast::float(below) * 100.0 / cast::float(sorted.len()))
}

impl Metric for PercentileRanks {
    fn typed(&self) -> &'static str {
        "tdigest_percentile_ranks"
    }

    fn empty(&self) -> MetricState {
        MetricState::Values(Vec::new())
    }

    fn add(&self, row: &RowView<'_>, state: &mut MetricState) {
        stats::add(row, self.field, self.missing, state);
    }

    fn finish(&self, state: MetricState) -> Json {
        let MetricState::Values(found) = state else {
            return Json::Null;
        };
        let found = sorted(found);
        let pairs = self.values.iter().map(|at| (*at, rank(&found, *at)));
        written(&pairs.collect::<Vec<_>>(), self.is_keyed)
    }

    fn has_value(&self, name: &str) -> bool {
        name.parse::<f64>().is_ok()
    }

    fn value(&self, state: &MetricState, name: &str) -> Option<f64> {
        let MetricState::Values(found) = state else {
            return None;
        };
        rank(&sorted(found.clone()), name.parse().ok()?)
    }
}
