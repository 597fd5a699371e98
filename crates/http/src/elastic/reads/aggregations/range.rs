//! `range`: buckets of numbers between bounds, the lower one included.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::json::{Object, bad, flag, list, number, object, only, optional};
use super::columns::{Field, RowView};
use super::keys::Key;
use super::order::listed;
use super::state::{BucketMap, Finish};
use super::{Aggregation, Buckets, Kind, Reader, bucket_json};
use crate::error::ApiError;

/// The most ranges of an aggregation.
pub(super) const RANGES_MAX: usize = 1000;

#[derive(Clone, Debug)]
struct Ranges {
    field: Field,
    ranges: Vec<Range>,
    is_keyed: bool,
    missing: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
struct Range {
    key: String,
    from: Option<f64>,
    to: Option<f64>,
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    only(
        members,
        &["field", "ranges", "keyed", "missing", "script"],
        "range",
    )?;
    let mut ranges = Vec::new();
    for given in each(members)? {
        let (from, to) = (number(given, "from")?, number(given, "to")?);
        let name = |bound: Option<f64>| bound.map_or("*".to_owned(), |bound| format!("{bound:?}"));
        let key = optional(given, "key")?;
        let key = key.unwrap_or_else(|| format!("{}-{}", name(from), name(to)));
        ranges.push(Range { key, from, to });
    }
    let bound = |range: &Range| {
        let from = range.from.unwrap_or(f64::NEG_INFINITY);
        (from, range.to.unwrap_or(f64::INFINITY))
    };
    ranges.sort_by(|a, b| {
        let (a, b) = (bound(a), bound(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    Ok(Kind::Buckets(Arc::new(Ranges {
        field: reader.columns.field(members, "range")?,
        ranges,
        is_keyed: flag(members, "keyed", false)?,
        missing: number(members, "missing")?,
    })))
}

/// The ranges that are given.
///
/// # Errors
/// When there are none, or too many.
pub(super) fn each(members: &Object) -> Result<Vec<&Object>, ApiError> {
    let ranges = members.get("ranges").map_or(&[][..], list);
    if ranges.is_empty() || ranges.len() > RANGES_MAX {
        return Err(bad(format!("[ranges] has from 1 to {RANGES_MAX} ranges")));
    }
    let ranges = ranges.iter().map(|range| {
        let range = object(range, "ranges")?;
        only(range, &["key", "from", "to"], "ranges")?;
        Ok(range)
    });
    ranges.collect()
}

impl Buckets for Ranges {
    fn typed(&self, _: &BucketMap) -> &'static str {
        "range"
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        let Some(number) = row.number(self.field).or(self.missing) else {
            return;
        };
        for (at, range) in (0..).zip(&self.ranges) {
            let is_from = range.from.is_none_or(|from| number >= from);
            if is_from && range.to.is_none_or(|to| number < to) {
                put(Key::Number(at));
            }
        }
    }

    fn finish(
        &self,
        mut found: BucketMap,
        children: &[Aggregation],
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError> {
        let mut buckets = Vec::new();
        for (at, range) in self.ranges.iter().enumerate() {
            let bucket = found.take(at, children);
            let mut own = json!({});
            if !self.is_keyed {
                own["key"] = range.key.as_str().into();
            }
            if let Some(from) = range.from {
                own["from"] = from.into();
            }
            if let Some(to) = range.to {
                own["to"] = to.into();
            }
            let json = bucket_json(own, bucket, children, finish)?;
            buckets.push((range.key.clone(), json));
        }
        Ok(json!({ "buckets": listed(buckets, self.is_keyed) }))
    }
}
