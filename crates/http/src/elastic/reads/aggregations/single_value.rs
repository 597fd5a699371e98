//! `avg`, `max`, `min`, `sum` and `value_count`.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::document::iso;
use super::super::json::{Object, number, only};
use super::columns::{Field, RowView};
use super::state::MetricState;
use super::sums::Sums;
use super::{Kind, Metric, Reader};
use crate::error::ApiError;
use logpond_record::{Timestamp, cast};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Avg,
    Max,
    Min,
    Sum,
    Count,
}

/// A value of the numbers of a field.
#[derive(Clone, Debug)]
struct SingleValue {
    function: Function,
    field: Field,
    missing: Option<f64>,
}

/// The mean.
pub(super) fn avg(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    read(Function::Avg, members, reader)
}

/// The largest number.
pub(super) fn max(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    read(Function::Max, members, reader)
}

/// The smallest number.
pub(super) fn min(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    read(Function::Min, members, reader)
}

/// The sum.
pub(super) fn sum(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    read(Function::Sum, members, reader)
}

/// How many values there are.
pub(super) fn value_count(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    read(Function::Count, members, reader)
}

fn read(function: Function, members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let name = function.name();
    only(members, &["field", "missing", "script"], name)?;
    Ok(Kind::Metric(Arc::new(SingleValue {
        function,
        field: reader.columns.number_field(members, name)?,
        missing: number(members, "missing")?,
    })))
}

impl Function {
    fn name(self) -> &'static str {
        match self {
            Function::Avg => "avg",
            Function::Max => "max",
            Function::Min => "min",
            Function::Sum => "sum",
            Function::Count => "value_count",
        }
    }
}

impl Metric for SingleValue {
    fn typed(&self) -> &'static str {
        self.function.name()
    }

    fn empty(&self) -> MetricState {
        match self.function {
            Function::Count => MetricState::Count(0),
            _ => MetricState::Sums(Sums::default()),
        }
    }

    fn add(&self, row: &RowView<'_>, state: &mut MetricState) {
        match state {
            MetricState::Count(count) => {
                let found = row.values_count(self.field);
                *count += found.max(u64::from(self.missing.is_some()));
            }
            MetricState::Sums(sums) => {
                row.each_number(self.field, self.missing, &mut |number| sums.add(number));
            }
            _ => {}
        }
    }

    fn finish(&self, state: MetricState) -> Json {
        let value = self.value(&state, "value");
        let is_count = self.function == Function::Count;
        let mut json = match (value, &state) {
            (_, MetricState::Count(count)) => json!({ "value": count }),
            (value, _) => json!({ "value": value }),
        };
        if let (Some(ms), true, false) = (value, self.field.is_time, is_count) {
            let time = Timestamp(cast::whole_i64(ms).saturating_mul(1_000_000));
            json["value_as_string"] = iso(time).into();
        }
        json
    }

    fn value(&self, state: &MetricState, name: &str) -> Option<f64> {
        if name != "value" {
            return None;
        }
        match state {
            MetricState::Count(count) => Some(cast::float(*count)),
            MetricState::Sums(sums) => match self.function {
                Function::Avg => sums.mean(),
                Function::Max => sums.some(sums.max),
                Function::Min => sums.some(sums.min),
                Function::Sum | Function::Count => Some(sums.sum()),
            },
            _ => None,
        }
    }
}
