//! `rate`: records, or the values of a field, for a length of time, in the buckets of a `date_histogram`.

use std::sync::Arc;

use jiff::tz::TimeZone;
use logpond_record::cast;
use serde_json::{Value as Json, json};

use super::super::dates::interval::Interval;
use super::super::json::{Object, bad, only, optional};
use super::columns::{Field, RowView};
use super::state::MetricState;
use super::sums::Sums;
use super::{Kind, Metric, Reader};
use crate::error::ApiError;

/// Units of a fixed length, in milliseconds.
const UNITS_MS: [(&str, i64); 5] = [
    ("second", 1000),
    ("minute", 60_000),
    ("hour", 3_600_000),
    ("day", 86_400_000),
    ("week", 604_800_000),
];

/// Units of the calendar, in months.
const UNITS_MONTHS: [(&str, u32); 3] = [("month", 1), ("quarter", 3), ("year", 12)];

#[derive(Clone, Debug)]
struct Rate {
    field: Option<Field>,
    is_of_values: bool,
    interval: Interval,
    zone: TimeZone,
    unit: Unit,
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    /// That of the buckets.
    Interval,
    Ms(i64),
    Months(u32),
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    only(members, &["field", "unit", "mode", "script"], "rate")?;
    let Some((interval, zone)) = reader.interval.clone() else {
        return Err(bad(
            "the rate aggregation can only be used within a date_histogram",
        ));
    };
    let is_of_values = match optional(members, "mode")?.as_deref() {
        None | Some("sum") => false,
        Some("value_count") => true,
        Some(other) => return Err(bad(format!("[mode] is sum or value_count, not [{other}]"))),
    };
    let has_field = members.contains_key("field") || members.contains_key("script");
    if is_of_values && !has_field {
        return Err(bad("[mode] of [rate] needs [field]"));
    }
    let field = has_field.then(|| reader.columns.number_field(members, "rate"));
    Ok(Kind::Metric(Arc::new(Rate {
        field: field.transpose()?,
        is_of_values,
        interval,
        zone,
        unit: unit(members, interval)?,
    })))
}

fn unit(members: &Object, interval: Interval) -> Result<Unit, ApiError> {
    let Some(text) = optional(members, "unit")? else {
        return Ok(Unit::Interval);
    };
    let name = match &*text {
        "1s" => "second",
        "1m" => "minute",
        "1h" => "hour",
        "1d" => "day",
        "1w" => "week",
        "1M" => "month",
        "1q" => "quarter",
        "1y" => "year",
        other => other,
    };
    if let Some((_, ms)) = UNITS_MS.iter().find(|(unit, _)| *unit == name) {
        return Ok(Unit::Ms(*ms));
    }
    let Some((_, months)) = UNITS_MONTHS.iter().find(|(unit, _)| *unit == name) else {
        return Err(bad(format!(
            "[unit] of [rate] is second, minute, hour, day, week, month, quarter or year, not [{text}]"
        )));
    };
    if interval.months().is_none() {
        return Err(bad(format!(
            "[unit] {name} of [rate] needs a calendar_interval of months, quarters or years"
        )));
    }
    Ok(Unit::Months(*months))
}

impl Rate {
    /// How many units a bucket is long that starts at these milliseconds.
    fn units(&self, start_ms: i64) -> f64 {
        match self.unit {
            Unit::Interval => 1.0,
            Unit::Months(months) => {
                f64::from(self.interval.months().unwrap_or(1)) / f64::from(months)
            }
            Unit::Ms(unit_ms) => {
                let length_ms = self.interval.next(start_ms, &self.zone) - start_ms;
                cast::float(length_ms) / cast::float(unit_ms)
            }
        }
    }
}

impl Metric for Rate {
    fn typed(&self) -> &'static str {
        "rate"
    }

    fn empty(&self) -> MetricState {
        MetricState::Sums(Sums::default())
    }

    fn add(&self, row: &RowView<'_>, state: &mut MetricState) {
        let MetricState::Sums(sums) = state else {
            return;
        };
        match self.field {
            None => sums.add(1.0),
            Some(field) => row.each_number(field, None, &mut |number| sums.add(number)),
        }
    }

    fn finish(&self, state: MetricState) -> Json {
        json!({ "value": self.value(&state, "value") })
    }

    fn finish_within(&self, state: MetricState, start_ms: Option<i64>) -> Json {
        let units = start_ms.map_or(1.0, |start_ms| self.units(start_ms));
        json!({ "value": self.value(&state, "value").map(|value| value / units) })
    }

    /// For the whole bucket: the order is that of the rates.
    fn value(&self, state: &MetricState, name: &str) -> Option<f64> {
        match state {
            MetricState::Sums(sums) if name == "value" && self.is_of_values => {
                Some(cast::float(sums.count))
            }
            MetricState::Sums(sums) if name == "value" => Some(sums.sum()),
            _ => None,
        }
    }
}
