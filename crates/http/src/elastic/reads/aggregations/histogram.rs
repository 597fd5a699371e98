//! `histogram`: a bucket for each interval of numbers.

use std::collections::BTreeSet;
use std::sync::Arc;

use logpond_record::cast;
use serde_json::{Value as Json, json};

use super::super::json::{Object, bad, count, flag, number, object, only};
use super::columns::{Field, RowView};
use super::keys::Key;
use super::order::{BucketOrder, numbered};
use super::pipeline::{ParentShape, listed};
use super::state::{BucketMap, Finish, too_many_buckets};
use super::{BUCKETS_MAX, Buckets, Kind, Reader, Tree, bucket_json};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct Histogram {
    field: Field,
    /// Invariant: more than 0.
    interval: f64,
    offset: f64,
    least: u64,
    order: BucketOrder,
    is_keyed: bool,
    missing: Option<f64>,
    extended: (Option<f64>, Option<f64>),
    hard: (Option<f64>, Option<f64>),
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let known = [
        "field",
        "interval",
        "offset",
        "min_doc_count",
        "order",
        "keyed",
        "missing",
        "extended_bounds",
        "hard_bounds",
        "script",
    ];
    only(members, &known, "histogram")?;
    let bounds = |name: &str| -> Result<(Option<f64>, Option<f64>), ApiError> {
        let Some(given) = members.get(name).filter(|given| !given.is_null()) else {
            return Ok((None, None));
        };
        let given = object(given, name)?;
        only(given, &["min", "max"], name)?;
        Ok((number(given, "min")?, number(given, "max")?))
    };
    Ok(Kind::Buckets(Arc::new(Histogram {
        field: reader.columns.number_field(members, "histogram")?,
        interval: interval(members)?,
        offset: number(members, "offset")?.unwrap_or(0.0),
        least: count(members, "min_doc_count", 0)?,
        order: BucketOrder::read(members, BucketOrder::by_key())?,
        is_keyed: flag(members, "keyed", false)?,
        missing: number(members, "missing")?,
        extended: bounds("extended_bounds")?,
        hard: bounds("hard_bounds")?,
    })))
}

/// The length of a step, which is above 0.
///
/// # Errors
/// When it is none.
pub(super) fn interval(members: &Object) -> Result<f64, ApiError> {
    let interval = number(members, "interval")?.filter(|interval| *interval > 0.0);
    interval.ok_or_else(|| bad("[interval] of [histogram] is a number above 0"))
}

impl Histogram {
    /// The number of the bucket that a number is in.
    fn place(&self, number: f64) -> i64 {
        // Beyond whole numbers of 64 bits all are in the last bucket.
        cast::whole_i64(((number - self.offset) / self.interval).floor())
    }

    fn fill(&self, found: &mut BucketMap, children: &Tree) -> Result<(), ApiError> {
        let (low, high) = self.extended;
        let place = |number: Option<f64>| number.map(|number| self.place(number));
        let Some((first, last)) = found.extent(place(low), place(high)) else {
            return Ok(());
        };
        if last.saturating_sub(first).cast_unsigned() >= BUCKETS_MAX && last >= first {
            return Err(too_many_buckets());
        }
        for at in first..=last {
            found.add_empty(at, children);
        }
        Ok(())
    }
}

impl Buckets for Histogram {
    fn typed(&self, _: &BucketMap) -> &'static str {
        "histogram"
    }

    fn shape(&self) -> ParentShape {
        ParentShape::Sequence
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        let (low, high) = self.hard;
        let mut seen = BTreeSet::new();
        row.each_number(self.field, self.missing, &mut |number| {
            let is_within =
                low.is_none_or(|low| number >= low) && high.is_none_or(|high| number <= high);
            let place = self.place(number);
            if is_within && seen.insert(place) {
                put(Key::Number(place));
            }
        });
    }

    fn finish(
        &self,
        mut found: BucketMap,
        children: &Tree,
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError> {
        self.order.check(children)?;
        if self.least == 0 {
            self.fill(&mut found, children)?;
        }
        let mut buckets = Vec::new();
        for (place, bucket) in numbered(found, self.least, &self.order, children) {
            let key = cast::float(place) * self.interval + self.offset;
            let json = bucket_json(json!({ "key": key }), bucket, children, finish)?;
            buckets.push((format!("{key:?}"), json));
        }
        let buckets = listed(buckets, self.is_keyed, &children.pipelines, finish)?;
        Ok(json!({ "buckets": buckets }))
    }
}
