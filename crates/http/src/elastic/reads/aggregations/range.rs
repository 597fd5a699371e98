//! `range`: buckets of numbers between bounds, the lower one included.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::json::{Object, bad, flag, list, number, object, only, optional};
use super::columns::{Field, RowView};
use super::keys::Key;
use super::pipeline::listed;
use super::state::{BucketMap, Finish};
use super::{Buckets, Kind, Reader, Tree, bucket_json};
use crate::error::ApiError;

/// The most ranges of an aggregation.
pub(super) const RANGES_MAX: usize = 1000;

#[derive(Clone, Debug)]
struct Ranges {
    field: Field,
    list: RangeList<f64>,
    missing: Option<f64>,
}

/// Ranges in the order of their bounds, each with a bucket.
#[derive(Clone, Debug)]
pub(super) struct RangeList<T> {
    ranges: Vec<Range<T>>,
    is_keyed: bool,
}

#[derive(Clone, Debug)]
struct Range<T> {
    key: String,
    from: Option<T>,
    to: Option<T>,
}

/// The order of bounds: how they compare, and those that stand for a missing one.
pub(super) struct BoundOrder<T> {
    pub(super) compare: fn(&T, &T) -> Ordering,
    pub(super) least: T,
    pub(super) greatest: T,
}

impl<T: Copy + PartialOrd> RangeList<T> {
    /// Reads the ranges: `bound` reads an end of one, and `shown` is its text in a key.
    ///
    /// # Errors
    /// When there are none, or too many, or one is wrong.
    pub(super) fn read(
        members: &Object,
        order: &BoundOrder<T>,
        bound: impl Fn(&Object, &str) -> Result<Option<T>, ApiError>,
        shown: impl Fn(T) -> String,
    ) -> Result<RangeList<T>, ApiError> {
        let mut ranges = Vec::new();
        for given in each(members)? {
            let (from, to) = (bound(given, "from")?, bound(given, "to")?);
            let name = |bound: Option<T>| bound.map_or("*".to_owned(), &shown);
            let key = optional(given, "key")?;
            let key = key.unwrap_or_else(|| format!("{}-{}", name(from), name(to)));
            ranges.push(Range { key, from, to });
        }
        let bounds = |range: &Range<T>| {
            let from = range.from.unwrap_or(order.least);
            (from, range.to.unwrap_or(order.greatest))
        };
        ranges.sort_by(|a, b| {
            let (a, b) = (bounds(a), bounds(b));
            (order.compare)(&a.0, &b.0).then((order.compare)(&a.1, &b.1))
        });
        Ok(RangeList {
            ranges,
            is_keyed: flag(members, "keyed", false)?,
        })
    }

    /// Puts a value into the buckets of its ranges.
    pub(super) fn assign(&self, value: T, put: &mut dyn FnMut(Key<'_>)) {
        for (at, range) in (0..).zip(&self.ranges) {
            let is_from = range.from.is_none_or(|from| value >= from);
            if is_from && range.to.is_none_or(|to| value < to) {
                put(Key::Number(at));
            }
        }
    }

    /// The buckets as JSON; `show` adds an end of a range to one, by its name.
    pub(super) fn finish(
        &self,
        mut found: BucketMap,
        children: &Tree,
        finish: &mut Finish<'_>,
        show: impl Fn(&mut Json, &str, T),
    ) -> Result<Json, ApiError> {
        let mut buckets = Vec::new();
        for (at, range) in self.ranges.iter().enumerate() {
            let bucket = found.take(at, children);
            let mut own = json!({});
            if !self.is_keyed {
                own["key"] = range.key.as_str().into();
            }
            for (name, bound) in [("from", range.from), ("to", range.to)] {
                if let Some(bound) = bound {
                    show(&mut own, name, bound);
                }
            }
            let json = bucket_json(own, bucket, children, finish)?;
            buckets.push((range.key.clone(), json));
        }
        let buckets = listed(buckets, self.is_keyed, &children.pipelines, finish)?;
        Ok(json!({ "buckets": buckets }))
    }
}

/// The ranges that are given.
fn each(members: &Object) -> Result<Vec<&Object>, ApiError> {
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

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    only(
        members,
        &["field", "ranges", "keyed", "missing", "script"],
        "range",
    )?;
    let order = BoundOrder {
        compare: f64::total_cmp,
        least: f64::NEG_INFINITY,
        greatest: f64::INFINITY,
    };
    let list = RangeList::read(members, &order, number, |bound| format!("{bound:?}"))?;
    Ok(Kind::Buckets(Arc::new(Ranges {
        field: reader.columns.number_field(members, "range")?,
        list,
        missing: number(members, "missing")?,
    })))
}

impl Buckets for Ranges {
    fn typed(&self, _: &BucketMap) -> &'static str {
        "range"
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        let mut seen = BTreeSet::new();
        row.each_number(self.field, self.missing, &mut |number| {
            self.list.assign(number, &mut |key| {
                if let Key::Number(at) = key
                    && seen.insert(at)
                {
                    put(key);
                }
            });
        });
    }

    fn finish(
        &self,
        found: BucketMap,
        children: &Tree,
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError> {
        let show = |own: &mut Json, name: &str, bound: f64| own[name] = bound.into();
        self.list.finish(found, children, finish, show)
    }
}
