//! `weighted_avg`: the mean of a field, with another field as the weight.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::json::{Object, bad, number, object, only};
use super::columns::{Field, RowView};
use super::state::MetricState;
use super::sums::Sums;
use super::{Kind, Metric, Reader};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct WeightedAvg {
    value: Operand,
    weight: Operand,
}

#[derive(Clone, Debug)]
struct Operand {
    field: Field,
    missing: Option<f64>,
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    only(members, &["value", "weight"], "weighted_avg")?;
    Ok(Kind::Metric(Arc::new(WeightedAvg {
        value: operand(members, "value", reader)?,
        weight: operand(members, "weight", reader)?,
    })))
}

fn operand(members: &Object, name: &str, reader: &mut Reader<'_>) -> Result<Operand, ApiError> {
    let given = members.get(name);
    let given = given.ok_or_else(|| bad(format!("[weighted_avg] needs [{name}]")))?;
    let given = object(given, name)?;
    only(given, &["field", "missing", "script"], name)?;
    Ok(Operand {
        field: reader.columns.number_field(given, name)?,
        missing: number(given, "missing")?,
    })
}

impl Metric for WeightedAvg {
    fn typed(&self) -> &'static str {
        "weighted_avg"
    }

    fn empty(&self) -> MetricState {
        MetricState::Weighted(Sums::default(), Sums::default())
    }

    fn add(&self, row: &RowView<'_>, state: &mut MetricState) {
        let MetricState::Weighted(values, weights) = state else {
            return;
        };
        let mut weight = None;
        row.each_number(self.weight.field, self.weight.missing, &mut |number| {
            weight.get_or_insert(number);
        });
        let Some(weight) = weight else { return };
        row.each_number(self.value.field, self.value.missing, &mut |value| {
            values.add(value * weight);
            weights.add(weight);
        });
    }

    fn finish(&self, state: MetricState) -> Json {
        json!({ "value": self.value(&state, "value") })
    }

    fn value(&self, state: &MetricState, name: &str) -> Option<f64> {
        match state {
            MetricState::Weighted(values, weights) if name == "value" => {
                let mean = values.sum() / weights.sum();
                Some(mean).filter(|mean| mean.is_finite())
            }
            _ => None,
        }
    }
}
