//! `order` of buckets: by count, by key, or by a metric within them.

use std::cmp::Ordering;

use logpond_record::cast;
use serde_json::Value as Json;

use super::super::json::{Object, bad, count, list, only, optional, scalar, single};
use super::state::{Bucket, BucketMap, State};
use super::{BUCKETS_MAX, Kind, Tree};
use crate::error::ApiError;

/// Buckets where a request says no number.
const SIZE_DEFAULT: u64 = 10;

/// A key of an order, with whether the largest come first.
#[derive(Clone, Debug, PartialEq)]
struct OrderKey {
    by: By,
    is_descending: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum By {
    Count,
    Key,
    /// A value of a metric within the bucket.
    Metric {
        name: String,
        value: String,
    },
}

/// An order of buckets; ties are in the order of their keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BucketOrder(Vec<OrderKey>);

impl BucketOrder {
    /// The largest counts first.
    pub(super) fn by_count() -> BucketOrder {
        BucketOrder(vec![OrderKey {
            by: By::Count,
            is_descending: true,
        }])
    }

    /// The smallest keys first.
    pub(super) fn by_key() -> BucketOrder {
        BucketOrder(vec![OrderKey {
            by: By::Key,
            is_descending: false,
        }])
    }

    /// The smallest counts first.
    pub(super) fn by_rarity() -> BucketOrder {
        BucketOrder(vec![OrderKey {
            by: By::Count,
            is_descending: false,
        }])
    }

    /// Reads the member `order`.
    ///
    /// # Errors
    /// When it is no order.
    pub(super) fn read(members: &Object, default: BucketOrder) -> Result<BucketOrder, ApiError> {
        let Some(given) = members.get("order") else {
            return Ok(default);
        };
        let mut keys = Vec::new();
        for one in list(given) {
            let (name, direction) = single(one, "order")?;
            let is_descending = is_descending(&scalar(direction, "order")?, "order")?;
            let by = match name {
                "_count" => By::Count,
                "_key" | "_term" | "_time" => By::Key,
                path if path.contains('>') => {
                    return Err(bad(
                        "[order] by a metric of buckets within buckets is not supported: order by one of the bucket itself",
                    ));
                }
                path => {
                    // Percentiles have dots in their names, too: the first one ends the name.
                    let bracketed = path.strip_suffix(']').and_then(|path| path.split_once('['));
                    let dotted = || path.split_once('.').unwrap_or((path, "value"));
                    let (name, value) = bracketed.unwrap_or_else(dotted);
                    By::Metric {
                        name: name.to_owned(),
                        value: value.to_owned(),
                    }
                }
            };
            keys.push(OrderKey { by, is_descending });
        }
        Ok(BucketOrder(keys))
    }

    /// Refuses an order by something that buckets do not have.
    ///
    /// # Errors
    /// With its name.
    pub(super) fn check(&self, children: &Tree) -> Result<(), ApiError> {
        for key in &self.0 {
            let By::Metric { name, value } = &key.by else {
                continue;
            };
            let child = children.list.iter().find(|child| child.name == *name);
            let Some(child) = child else {
                return Err(bad(format!(
                    "[order] names [{name}], which is no aggregation of the buckets"
                )));
            };
            let has_value = match &child.kind {
                Kind::Buckets(_) => value == "_count" || value == "doc_count",
                Kind::Metric(metric) => metric.has_value(value),
                Kind::TopHits(_) => false,
            };
            if !has_value {
                return Err(bad(format!(
                    "[order] names [{name}.{value}], which is no number"
                )));
            }
        }
        Ok(())
    }

    /// The numbers by which a bucket is ordered.
    pub(super) fn numbers(&self, bucket: &Bucket, children: &Tree) -> Vec<Option<f64>> {
        let number = |key: &OrderKey| match &key.by {
            By::Key => None,
            By::Count => Some(cast::float(bucket.records)),
            By::Metric { name, value } => {
                let mut each = children.list.iter().zip(&bucket.level.states);
                let (child, state) = each.find(|(child, _)| child.name == *name)?;
                match (&child.kind, state) {
                    (Kind::Metric(metric), State::Metric(state)) => metric.value(state, value),
                    (Kind::Buckets(_), State::Buckets(found)) => Some(
                        found
                            .numbers
                            .values()
                            .map(|inner| cast::float(inner.records))
                            .sum(),
                    ),
                    _ => None,
                }
            }
        };
        self.0.iter().map(number).collect()
    }

    /// Compares two buckets by their numbers, and by their keys as `keys` compares these.
    pub(super) fn compare(
        &self,
        (a, b): (&[Option<f64>], &[Option<f64>]),
        keys: Ordering,
    ) -> Ordering {
        for (at, key) in self.0.iter().enumerate() {
            let number = |of: &[Option<f64>]| of.get(at).copied().flatten();
            let order = match (&key.by, number(a), number(b)) {
                (By::Key, ..) => keys,
                // Those without a number are last in any direction.
                (_, None, None) => Ordering::Equal,
                (_, None, Some(_)) => return Ordering::Greater,
                (_, Some(_), None) => return Ordering::Less,
                (_, Some(a), Some(b)) => a.total_cmp(&b),
            };
            let order = if key.is_descending {
                order.reverse()
            } else {
                order
            };
            if order.is_ne() {
                return order;
            }
        }
        keys
    }
}

/// Reads `asc` or `desc` at a place.
///
/// # Errors
/// When it is neither.
pub(super) fn is_descending(text: &str, place: &str) -> Result<bool, ApiError> {
    match &*text.to_ascii_lowercase() {
        "asc" => Ok(false),
        "desc" => Ok(true),
        other => Err(bad(format!("[{place}] is asc or desc, not [{other}]"))),
    }
}

/// Reads the direction of a key of an order: `desc`, or an object with `order`.
///
/// # Errors
/// When it is none.
pub(super) fn is_descending_key(options: &Json, known: &[&str]) -> Result<bool, ApiError> {
    match options {
        Json::Object(options) => {
            only(options, known, "sort")?;
            let order = optional(options, "order")?;
            order.map_or(Ok(false), |order| is_descending(&order, "sort"))
        }
        direction => is_descending(&scalar(direction, "sort")?, "sort"),
    }
}

/// Sorts pairs of a key and a bucket.
pub(super) fn sorted<K>(
    pairs: Vec<(K, Bucket)>,
    order: &BucketOrder,
    children: &Tree,
    compare: impl Fn(&K, &K) -> Ordering,
) -> Vec<(K, Bucket)> {
    let with_numbers = pairs.into_iter().map(|(key, bucket)| {
        let numbers = order.numbers(&bucket, children);
        (key, bucket, numbers)
    });
    let mut all: Vec<(K, Bucket, Vec<Option<f64>>)> = with_numbers.collect();
    all.sort_by(|a, b| order.compare((&a.2, &b.2), compare(&a.0, &b.0)));
    all.into_iter()
        .map(|(key, bucket, _)| (key, bucket))
        .collect()
}

/// The buckets of numbers that have at least so many records, in order.
pub(super) fn numbered(
    found: BucketMap,
    least: u64,
    order: &BucketOrder,
    children: &Tree,
) -> Vec<(i64, Bucket)> {
    let pairs = found.numbers.into_iter();
    let pairs = pairs.filter(|(_, bucket)| bucket.records >= least);
    sorted(pairs.collect(), order, children, Ord::cmp)
}

/// The buckets that an answer has of many.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    /// Invariant: more than 0.
    size: usize,
    /// The least number of records of a bucket.
    pub(super) least: u64,
    order: BucketOrder,
}

impl Selection {
    /// Reads `size`, `min_doc_count` and `order`.
    ///
    /// # Errors
    /// When one is wrong.
    pub(super) fn read(members: &Object, kind: &str) -> Result<Selection, ApiError> {
        let size = count(members, "size", SIZE_DEFAULT)?;
        if size == 0 {
            return Err(bad(format!("[size] of [{kind}] is more than 0")));
        }
        Ok(Selection {
            size: usize::try_from(size.min(BUCKETS_MAX + 1)).unwrap_or(usize::MAX),
            least: count(members, "min_doc_count", 1)?,
            order: BucketOrder::read(members, BucketOrder::by_count())?,
        })
    }

    /// The buckets that the answer has, and the count of the others' records.
    ///
    /// # Errors
    /// When the order names something that buckets do not have.
    pub(super) fn chosen<K>(
        &self,
        pairs: Vec<(K, Bucket)>,
        children: &Tree,
        compare: impl Fn(&K, &K) -> Ordering,
    ) -> Result<(Vec<(K, Bucket)>, u64), ApiError> {
        self.order.check(children)?;
        let enough: Vec<(K, Bucket)> = pairs
            .into_iter()
            .filter(|(_, bucket)| bucket.records >= self.least)
            .collect();
        let total: u64 = enough.iter().map(|(_, bucket)| bucket.records).sum();
        let mut all = sorted(enough, &self.order, children, compare);
        all.truncate(self.size);
        let kept: u64 = all.iter().map(|(_, bucket)| bucket.records).sum();
        Ok((all, total - kept))
    }
}
