//! `stats`: count, min, max, avg and sum.

use std::sync::Arc;

use logpond_record::cast;
use serde_json::{Value as Json, json};

use super::super::json::{Object, number, only};
use super::columns::{Field, RowView};
use super::state::MetricState;
use super::sums::Sums;
use super::{Kind, Metric, Reader};
use crate::error::ApiError;

/// The values by which buckets are ordered.
pub(super) const NAMES: [&str; 5] = ["count", "min", "max", "avg", "sum"];

#[derive(Clone, Debug)]
struct Stats {
    field: Field,
    missing: Option<f64>,
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    only(members, &["field", "missing", "script"], "stats")?;
    Ok(Kind::Metric(Arc::new(Stats {
        field: reader.columns.number_field(members, "stats")?,
        missing: number(members, "missing")?,
    })))
}

/// A value of the sums, by its name.
pub(super) fn value_of(sums: &Sums, name: &str) -> Option<f64> {
    match name {
        "count" => Some(cast::float(sums.count)),
        "min" => sums.some(sums.min),
        "max" => sums.some(sums.max),
        "avg" => sums.mean(),
        "sum" => Some(sums.sum()),
        _ => None,
    }
}

/// The members of the answer.
pub(super) fn json_of(sums: &Sums) -> Json {
    json!({
        "count": sums.count,
        "min": sums.some(sums.min),
        "max": sums.some(sums.max),
        "avg": sums.mean(),
        "sum": sums.sum(),
    })
}

impl Metric for Stats {
    fn typed(&self) -> &'static str {
        "stats"
    }

    fn empty(&self) -> MetricState {
        MetricState::Sums(Sums::default())
    }

    fn add(&self, row: &RowView<'_>, state: &mut MetricState) {
        add(row, self.field, self.missing, state);
    }

    fn finish(&self, state: MetricState) -> Json {
        match state {
            MetricState::Sums(sums) => json_of(&sums),
            _ => Json::Null,
        }
    }

    fn has_value(&self, name: &str) -> bool {
        NAMES.contains(&name)
    }

    fn value(&self, state: &MetricState, name: &str) -> Option<f64> {
        match state {
            MetricState::Sums(sums) => value_of(sums, name),
            _ => None,
        }
    }
}

/// Adds the number of a record.
pub(super) fn add(row: &RowView<'_>, field: Field, missing: Option<f64>, state: &mut MetricState) {
    row.each_number(field, missing, &mut |number| match state {
        MetricState::Sums(sums) => sums.add(number),
        MetricState::Values(values) => values.push(number),
        _ => {}
    });
}
