//! `bucket_sort`: another order of the buckets, and a part of them.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value as Json;

use super::super::super::json::{Object, bad, count, list, only, single};
use super::super::BUCKETS_MAX;
use super::super::order::is_descending_key;
use super::path::{Gap, Path, key_text};
use super::{BucketChoice, NamedBuckets, PipelineKind};
use crate::error::ApiError;

/// The most keys of an order.
const KEYS_MAX: usize = 16;

#[derive(Clone, Debug)]
struct BucketSort {
    keys: Vec<SortKey>,
    from: usize,
    size: usize,
    gap: Gap,
}

#[derive(Clone, Debug)]
struct SortKey {
    path: Path,
    is_by_key: bool,
    is_descending: bool,
}

/// A value by which a bucket is sorted.
#[derive(Clone, Debug)]
enum SortValue {
    Number(f64),
    Text(String),
}

/// Reads the pipeline.
pub(super) fn read(members: &Object) -> Result<PipelineKind, ApiError> {
    only(
        members,
        &["sort", "from", "size", "gap_policy"],
        "bucket_sort",
    )?;
    let mut keys = Vec::new();
    for given in members.get("sort").map_or(&[][..], list) {
        keys.push(key(given)?);
    }
    if keys.len() > KEYS_MAX {
        return Err(bad(format!("[sort] has at most {KEYS_MAX} keys")));
    }
    let from = count(members, "from", 0)?;
    let size = count(members, "size", BUCKETS_MAX)?;
    if size == 0 {
        return Err(bad("[size] of [bucket_sort] is more than 0"));
    }
    let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Ok(PipelineKind::Choice(Arc::new(BucketSort {
        keys,
        from: place(from),
        size: place(size),
        gap: Gap::read(members, Gap::Skip)?,
    })))
}

fn key(given: &Json) -> Result<SortKey, ApiError> {
    let (name, is_descending) = match given {
        Json::String(name) => (&**name, false),
        other => {
            let (name, options) = single(other, "sort")?;
            (name, is_descending_key(options, &["order"])?)
        }
    };
    Ok(SortKey {
        path: Path::read(name)?,
        is_by_key: name == "_key",
        is_descending,
    })
}

impl BucketSort {
    fn values(&self, bucket: &Json) -> Result<Vec<Option<SortValue>>, ApiError> {
        let each = self.keys.iter().map(|key| {
            if key.is_by_key {
                let number = bucket["key"].as_f64().map(SortValue::Number);
                return Ok(Some(
                    number.unwrap_or_else(|| SortValue::Text(key_text(bucket))),
                ));
            }
            Ok(key.path.value(bucket, self.gap)?.map(SortValue::Number))
        });
        each.collect()
    }

    fn compare(&self, a: &[Option<SortValue>], b: &[Option<SortValue>]) -> Ordering {
        for (key, (a, b)) in self.keys.iter().zip(a.iter().zip(b)) {
            let order = match (a, b) {
                (None, None) => continue,
                // Those without a value are last in any direction.
                (None, Some(_)) => return Ordering::Greater,
                (Some(_), None) => return Ordering::Less,
                (Some(SortValue::Number(a)), Some(SortValue::Number(b))) => a.total_cmp(b),
                (Some(SortValue::Text(a)), Some(SortValue::Text(b))) => a.cmp(b),
                (Some(SortValue::Number(_)), Some(SortValue::Text(_))) => Ordering::Less,
                (Some(SortValue::Text(_)), Some(SortValue::Number(_))) => Ordering::Greater,
            };
            if order.is_ne() {
                return if key.is_descending {
                    order.reverse()
                } else {
                    order
                };
            }
        }
        Ordering::Equal
    }
}

impl BucketChoice for BucketSort {
    fn paths(&self) -> Vec<&Path> {
        self.keys.iter().map(|key| &key.path).collect()
    }

    fn choose(&self, buckets: NamedBuckets) -> Result<NamedBuckets, ApiError> {
        let mut all = Vec::new();
        for (name, bucket) in buckets {
            let values = self.values(&bucket)?;
            // A bucket without any value of the order is left out.
            if values.is_empty() || values.iter().any(Option::is_some) {
                all.push((values, name, bucket));
            }
        }
        all.sort_by(|a, b| self.compare(&a.0, &b.0));
        let chosen = all.into_iter().skip(self.from).take(self.size);
        Ok(chosen.map(|(_, name, bucket)| (name, bucket)).collect())
    }
}
