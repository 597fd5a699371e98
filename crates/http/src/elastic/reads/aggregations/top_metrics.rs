//! `top_metrics`: values of the first records in an order.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::document::iso;
use super::super::json::{Object, bad, count, list, object, only, optional, single, unsupported};
use super::columns::{Field, RowView};
use super::keys::KeyKind;
use super::order::is_descending_key;
use super::state::MetricState;
use super::{Kind, Metric, Reader};
use crate::error::ApiError;
use logpond_record::{Timestamp, cast};
use logpond_search::Number;

/// The most records of a bucket, as `index.top_metrics_max_size`.
const SIZE_MAX: u64 = 10;

/// The most values of a record.
const METRICS_MAX: usize = 100;

#[derive(Clone, Debug)]
struct TopMetrics {
    metrics: Vec<(String, Field)>,
    sort: Field,
    is_descending: bool,
    size: usize,
}

/// The first records of an order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FirstRows {
    rows: Vec<FirstRow>,
    size: usize,
    is_descending: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct FirstRow {
    sort: SortValue,
    values: Vec<Option<MetricValue>>,
}

#[derive(Clone, Debug, PartialEq)]
enum SortValue {
    Time(i64),
    Number(f64, Box<[u8]>),
    Text(Box<[u8]>),
}

#[derive(Clone, Debug, PartialEq, PartialOrd)]
enum MetricValue {
    Time(i64),
    Text(Box<[u8]>),
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    only(members, &["metrics", "sort", "size"], "top_metrics")?;
    let mut metrics = Vec::new();
    for given in members.get("metrics").map_or(&[][..], list) {
        let given = object(given, "metrics")?;
        only(given, &["field"], "metrics")?;
        let name = optional(given, "field")?.unwrap_or_default();
        metrics.push((name, reader.columns.field(given, "metrics")?));
    }
    if metrics.is_empty() || metrics.len() > METRICS_MAX {
        return Err(bad(format!(
            "[metrics] of [top_metrics] has from 1 to {METRICS_MAX} fields"
        )));
    }
    let size = count(members, "size", 1)?;
    if size == 0 || size > SIZE_MAX {
        return Err(bad(format!(
            "[size] of [top_metrics] is from 1 to {SIZE_MAX}"
        )));
    }
    let (name, is_descending) = order(members.get("sort"))?;
    let field = Object::from_iter([("field".to_owned(), Json::from(name))]);
    Ok(Kind::Metric(Arc::new(TopMetrics {
        metrics,
        sort: reader.columns.field(&field, "sort")?,
        is_descending,
        size: usize::try_from(size).unwrap_or(usize::MAX),
    })))
}

/// The field of the order, and whether it descends.
fn order(given: Option<&Json>) -> Result<(String, bool), ApiError> {
    let keys = given.map_or(&[][..], list);
    let [key] = keys else {
        return Err(bad("[sort] of [top_metrics] has one field"));
    };
    if let Json::String(name) = key {
        return Ok((name.clone(), false));
    }
    let (name, options) = single(key, "sort")?;
    if name.starts_with('_') {
        return Err(unsupported(
            &format!("sort of top_metrics by {name}"),
            "sort by @timestamp or another field",
        ));
    }
    let known = ["order", "unmapped_type", "numeric_type", "format"];
    Ok((name.to_owned(), is_descending_key(options, &known)?))
}

impl SortValue {
    /// Times and numbers come before texts.
    fn compare(&self, other: &SortValue) -> Ordering {
        match (self, other) {
            (SortValue::Time(a), SortValue::Time(b)) => a.cmp(b),
            (SortValue::Number(a, first), SortValue::Number(b, second)) => {
                a.total_cmp(b).then_with(|| first.cmp(second))
            }
            (SortValue::Text(a), SortValue::Text(b)) => a.cmp(b),
            (SortValue::Text(_), _) => Ordering::Greater,
            (_, SortValue::Text(_)) => Ordering::Less,
            (SortValue::Time(_), SortValue::Number(..)) => Ordering::Less,
            (SortValue::Number(..), SortValue::Time(_)) => Ordering::Greater,
        }
    }

    fn json(&self) -> Json {
        match self {
            SortValue::Time(ns) => iso(Timestamp(*ns)).into(),
            SortValue::Number(_, text) | SortValue::Text(text) => json_of(text),
        }
    }
}

fn json_of(text: &[u8]) -> Json {
    KeyKind::of([text].into_iter()).json(text)
}

impl FirstRows {
    fn add(&mut self, row: FirstRow) {
        let at = self.rows.partition_point(|other| {
            let order = other.sort.compare(&row.sort);
            let order = if self.is_descending {
                order.reverse()
            } else {
                order
            };
            // Records of one place in the order are told apart by their values.
            order.is_lt() || order.is_eq() && other.values <= row.values
        });
        if at < self.size {
            self.rows.insert(at, row);
            self.rows.truncate(self.size);
        }
    }

    /// Adds those of other records.
    pub(super) fn merge(&mut self, other: FirstRows) {
        other.rows.into_iter().for_each(|row| self.add(row));
    }

    /// How many values it holds.
    pub(super) fn held(&self) -> usize {
        self.rows.iter().map(|row| 1 + row.values.len()).sum()
    }
}

impl Metric for TopMetrics {
    fn typed(&self) -> &'static str {
        "top_metrics"
    }

    fn empty(&self) -> MetricState {
        MetricState::First(FirstRows {
            rows: Vec::new(),
            size: self.size,
            is_descending: self.is_descending,
        })
    }

    fn add(&self, row: &RowView<'_>, state: &mut MetricState) {
        let MetricState::First(first) = state else {
            return;
        };
        let text = row.text(self.sort);
        let number = |text: &[u8]| {
            let number = Number::parse(text)?.to_float();
            Some(SortValue::Number(number, text.into()))
        };
        let sort = match row.time_ns(self.sort) {
            Some(ns) => Some(SortValue::Time(ns)),
            None => text.map(|text| number(text).unwrap_or_else(|| SortValue::Text(text.into()))),
        };
        // A record without the field of the order is not counted.
        let Some(sort) = sort else { return };
        let values = self.metrics.iter().map(|(_, field)| {
            let time = row.time_ns(*field).map(MetricValue::Time);
            time.or_else(|| Some(MetricValue::Text(row.text(*field)?.into())))
        });
        let values = values.collect();
        first.add(FirstRow { sort, values });
    }

    fn finish(&self, state: MetricState) -> Json {
        let MetricState::First(first) = state else {
            return Json::Null;
        };
        let top = first.rows.iter().map(|row| {
            let metrics = self
                .metrics
                .iter()
                .zip(&row.values)
                .map(|((name, _), value)| {
                    let json = match value {
                        None => Json::Null,
                        Some(MetricValue::Time(ns)) => iso(Timestamp(*ns)).into(),
                        Some(MetricValue::Text(text)) => json_of(text),
                    };
                    (name.clone(), json)
                });
            json!({ "sort": [row.sort.json()], "metrics": Json::Object(metrics.collect()) })
        });
        json!({ "top": top.collect::<Vec<Json>>() })
    }

    fn has_value(&self, name: &str) -> bool {
        self.metrics.iter().any(|(known, _)| known == name)
    }

    fn value(&self, state: &MetricState, name: &str) -> Option<f64> {
        let MetricState::First(first) = state else {
            return None;
        };
        let at = self.metrics.iter().position(|(known, _)| known == name)?;
        match first.rows.first()?.values.get(at)? {
            Some(MetricValue::Text(text)) => Some(Number::parse(text)?.to_float()),
            Some(MetricValue::Time(ns)) => Some(cast::float(*ns) / 1e6),
            None => None,
        }
    }
}
