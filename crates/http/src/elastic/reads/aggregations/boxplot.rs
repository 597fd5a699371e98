//! `boxplot`: extremes, quartiles and whiskers of a field, exactly.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::json::{Object, number, only};
use super::columns::{Field, RowView};
use super::percentiles::{percentile, sorted};
use super::state::MetricState;
use super::{Kind, Metric, Reader, stats};
use crate::error::ApiError;

/// How many distances between the quartiles the whiskers reach at most (Tukey, 1977).
const WHISKER: f64 = 1.5;

/// The values.
const NAMES: [&str; 7] = ["min", "max", "q1", "q2", "q3", "lower", "upper"];

#[derive(Clone, Debug)]
struct Boxplot {
    field: Field,
    missing: Option<f64>,
}

/// Reads the aggregation. Options of estimates change nothing: the answer is exact.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let known = [
        "field",
        "missing",
        "compression",
        "execution_hint",
        "script",
    ];
    only(members, &known, "boxplot")?;
    Ok(Kind::Metric(Arc::new(Boxplot {
        field: reader.columns.number_field(members, "boxplot")?,
        missing: number(members, "missing")?,
    })))
}

/// The values of numbers in order.
fn values(sorted: &[f64]) -> Option<[f64; 7]> {
    let quartile = |percent: f64| percentile(sorted, percent);
    let (q1, q3) = (quartile(25.0)?, quartile(75.0)?);
    let reach = WHISKER * (q3 - q1);
    let low = sorted.iter().find(|number| **number >= q1 - reach);
    let high = sorted.iter().rfind(|number| **number <= q3 + reach);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    Some([min, max, q1, quartile(50.0)?, q3, *low?, *high?])
}

impl Metric for Boxplot {
    fn typed(&self) -> &'static str {
        "boxplot"
    }

    fn empty(&self) -> MetricState {
        MetricState::Values(Vec::new())
    }

    fn add(&self, row: &RowView<'_>, state: &mut MetricState) {
        stats::add(row, self.field, self.missing, state);
    }

    fn finish(&self, state: MetricState) -> Json {
        let MetricState::Values(numbers) = state else {
            return Json::Null;
        };
        let values = values(&sorted(numbers)).map(|values| values.map(Some));
        let values = NAMES.into_iter().zip(values.unwrap_or_default());
        values
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect()
    }

    fn has_value(&self, name: &str) -> bool {
        NAMES.contains(&name)
    }

    fn value(&self, state: &MetricState, name: &str) -> Option<f64> {
        let MetricState::Values(numbers) = state else {
            return None;
        };
        let at = NAMES.iter().position(|known| *known == name)?;
        values(&sorted(numbers.clone()))?.get(at).copied()
    }
}
