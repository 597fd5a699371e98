//! `percentiles`, exactly: between two numbers the value is interpolated.

use std::sync::Arc;

use logpond_record::cast;
use serde_json::{Value as Json, json};

use super::super::json::{Object, bad, flag, number, only};
use super::columns::{Field, RowView};
use super::state::MetricState;
use super::{Kind, Metric, Reader, stats};
use crate::error::ApiError;

/// The most percentiles of an aggregation.
const PERCENTS_MAX: usize = 100;

/// The percentiles where none are named.
const PERCENTS: [f64; 7] = [1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0];

#[derive(Clone, Debug)]
struct Percentiles {
    field: Field,
    missing: Option<f64>,
    percents: Vec<f64>,
    is_keyed: bool,
}

/// Reads the aggregation. Options of estimates change nothing: the answer is exact.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let known = [
        "field", "missing", "percents", "keyed", "tdigest", "hdr", "script",
    ];
    only(members, &known, "percentiles")?;
    Ok(Kind::Metric(Arc::new(Percentiles {
        field: reader.columns.number_field(members, "percentiles")?,
        missing: number(members, "missing")?,
        percents: percents(members)?,
        is_keyed: flag(members, "keyed", true)?,
    })))
}

/// The percentiles that are asked for.
///
/// # Errors
/// When one is none.
pub(super) fn percents(members: &Object) -> Result<Vec<f64>, ApiError> {
    let percents = numbers(members, "percents")?.unwrap_or_else(|| PERCENTS.to_vec());
    let is_percent = |percent: &f64| (0.0..=100.0).contains(percent);
    if percents.iter().all(is_percent) {
        Ok(percents)
    } else {
        Err(bad("[percents] are from 0 to 100"))
    }
}

/// Numbers in order.
pub(super) fn sorted(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers
}

/// A list of numbers, also as texts.
pub(super) fn numbers(members: &Object, name: &str) -> Result<Option<Vec<f64>>, ApiError> {
    let Some(given) = members.get(name) else {
        return Ok(None);
    };
    let texts = super::super::json::texts(given, name)?;
    let numbers = texts.iter().map(|text| {
        let number: Option<f64> = text.parse().ok();
        let number = number.filter(|number| number.is_finite());
        number.ok_or_else(|| bad(format!("[{name}] are numbers, and [{text}] is none")))
    });
    let numbers: Vec<f64> = numbers.collect::<Result<_, ApiError>>()?;
    if numbers.is_empty() || numbers.len() > PERCENTS_MAX {
        return Err(bad(format!(
            "[{name}] has from 1 to {PERCENTS_MAX} numbers"
        )));
    }
    Ok(Some(numbers))
}

/// Values with the numbers that they are for, as an object or a list.
pub(super) fn written(pairs: &[(f64, Option<f64>)], is_keyed: bool) -> Json {
    if is_keyed {
        let members = pairs.iter();
        let members = members.map(|(at, value)| (format!("{at:?}"), json!(value)));
        return json!({ "values": Json::Object(members.collect()) });
    }
    let list = pairs
        .iter()
        .map(|(at, value)| json!({ "key": at, "value": value }));
    json!({ "values": list.collect::<Vec<Json>>() })
}

/// A percentile of numbers in order.
pub(super) fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = percent / 100.0 * cast::float(last);
    let low = place.floor();
    let below = *sorted.get(cast::whole_usize(low))?;
    let above = *sorted.get((cast::whole_usize(low) + 1).min(last))?;
    Some(below + (above - below) * (place - low))
}

impl Metric for Percentiles {
    fn typed(&self) -> &'static str {
        "tdigest_percentiles"
    }

    fn empty(&self) -> MetricState {
        MetricState::Values(Vec::new())
    }

    fn add(&self, row: &RowView<'_>, state: &mut MetricState) {
        stats::add(row, self.field, self.missing, state);
    }

    fn finish(&self, state: MetricState) -> Json {
        let MetricState::Values(values) = state else {
            return Json::Null;
        };
        let values = sorted(values);
        let pairs = self
            .percents
            .iter()
            .map(|at| (*at, percentile(&values, *at)));
        written(&pairs.collect::<Vec<_>>(), self.is_keyed)
    }

    fn has_value(&self, name: &str) -> bool {
        name.parse::<f64>().is_ok()
    }

    fn value(&self, state: &MetricState, name: &str) -> Option<f64> {
        let MetricState::Values(values) = state else {
            return None;
        };
        let percent: f64 = name.parse().ok()?;
        percentile(&sorted(values.clone()), percent)
    }
}
