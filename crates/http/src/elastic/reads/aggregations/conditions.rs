//! Filters on rows of columns, for the aggregations `filter` and `filters`.

use logpond_record::{Timestamp, Value};
use logpond_search::query::{FieldFilter, FieldTest};
use logpond_search::{FieldMatcher, Filter};

use super::super::json::bad;
use super::super::numbers::{WrittenNumber, number};
use super::columns::{ColumnList, Field, RowView};

use crate::error::ApiError;

/// A filter, compiled for rows.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    All,
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    Field(Field, Box<FieldMatcher>),
}

impl Condition {
    /// Compiles a filter. Recursion is bounded by the depth of JSON.
    ///
    /// # Errors
    /// When a condition does not compile.
    pub(super) fn new(filter: &Filter, columns: &mut ColumnList) -> Result<Condition, ApiError> {
        let mut each = |parts: &[Filter]| -> Result<Vec<Condition>, ApiError> {
            parts
                .iter()
                .map(|part| Condition::new(part, columns))
                .collect()
        };
        Ok(match filter {
            Filter::All => Condition::All,
            Filter::And(parts) => Condition::And(each(parts)?),
            Filter::Or(parts) => Condition::Or(each(parts)?),
            Filter::Not(inner) => Condition::Not(Box::new(Condition::new(inner, columns)?)),
            Filter::Text(pattern) => {
                let places = ["_raw", "_msg"].map(|name| FieldFilter {
                    name: name.into(),
                    test: FieldTest::Contains(pattern.clone()),
                });
                let places = places.iter().map(|place| of_field(place, columns));
                Condition::Or(places.collect::<Result<_, ApiError>>()?)
            }
            Filter::Field(field) => of_field(field, columns)?,
        })
    }

    /// True if a row satisfies it.
    pub(super) fn holds(&self, row: &RowView<'_>) -> bool {
        match self {
            Condition::All => true,
            Condition::And(parts) => parts.iter().all(|part| part.holds(row)),
            Condition::Or(parts) => parts.iter().any(|part| part.holds(row)),
            Condition::Not(inner) => !inner.holds(row),
            Condition::Field(field, matcher) if field.is_time => {
                let time = row.time_ns(*field).map(Timestamp);
                time.is_some_and(|time| matcher.matches_instant(time))
            }
            Condition::Field(field, matcher) => {
                let value = row.text(*field).map(typed);
                matcher.matches_value(value.as_ref())
            }
        }
    }
}

fn of_field(field: &FieldFilter, columns: &mut ColumnList) -> Result<Condition, ApiError> {
    let matcher = FieldMatcher::new(field).map_err(|error| bad(error.to_string()))?;
    let field = columns.of_record(&field.name);
    Ok(Condition::Field(field, Box::new(matcher)))
}

/// The value that a text is of: a number if it is written as one.
fn typed(text: &[u8]) -> Value<'_> {
    match std::str::from_utf8(text).ok().and_then(number) {
        Some(WrittenNumber::Whole(whole)) => Value::Int(whole),
        Some(WrittenNumber::Float(float)) => Value::Float(float),
        Some(WrittenNumber::Decimal) => Value::Json(String::from_utf8_lossy(text)),
        None => Value::text(text),
    }
}
