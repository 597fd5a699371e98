//! `rare_terms`: a bucket for each value that few records have, exactly.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::json::{Object, bad, count, only};
use super::columns::RowView;
use super::keys::{Key, KeyKind};
use super::order::{BucketOrder, sorted};
use super::pipeline::{NamedBuckets, listed};
use super::state::{Bucket, BucketMap, Finish};
use super::terms::{FieldValues, time_json, typed_by_keys};
use super::{Buckets, Kind, Reader, Tree, bucket_json};
use crate::error::ApiError;

/// The most records of a rare value.
const COUNT_MAX: u64 = 100;

#[derive(Clone, Debug)]
struct RareTerms {
    values: FieldValues,
    most: u64,
    order: BucketOrder,
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let known = [
        "field",
        "max_doc_count",
        "missing",
        "include",
        "exclude",
        "precision",
        "value_type",
        "script",
    ];
    only(members, &known, "rare_terms")?;
    let most = count(members, "max_doc_count", 1)?;
    if most == 0 || most > COUNT_MAX {
        return Err(bad(format!("[max_doc_count] is from 1 to {COUNT_MAX}")));
    }
    Ok(Kind::Buckets(Arc::new(RareTerms {
        values: FieldValues::read(members, reader, "rare_terms")?,
        most,
        order: BucketOrder::by_rarity(),
    })))
}

impl RareTerms {
    fn is_rare<K>(&self, (_, bucket): &(K, Bucket)) -> bool {
        bucket.records <= self.most
    }
}

impl Buckets for RareTerms {
    fn typed(&self, found: &BucketMap) -> &'static str {
        let kinds = ["lrareterms", "srareterms", "srareterms"];
        typed_by_keys(self.values.field, found, kinds)
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        self.values.assign(row, put);
    }

    fn finish(
        &self,
        found: BucketMap,
        children: &Tree,
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError> {
        let kind = KeyKind::of(found.texts.keys());
        let times = found.numbers.into_iter();
        let times = times.filter(|pair| self.is_rare(pair)).collect();
        let texts = found.texts.into_pairs();
        let texts: Vec<(Box<[u8]>, Bucket)> = texts.filter(|pair| self.is_rare(pair)).collect();
        let mut all: Vec<(Json, Bucket)> = Vec::new();
        for (ms, bucket) in sorted(times, &self.order, children, Ord::cmp) {
            all.push((time_json(ms), bucket));
        }
        for (key, bucket) in sorted(texts, &self.order, children, |a, b| kind.compare(a, b)) {
            all.push((kind.members(&key), bucket));
        }
        let mut buckets = NamedBuckets::new();
        for (own, bucket) in all {
            buckets.push((String::new(), bucket_json(own, bucket, children, finish)?));
        }
        let buckets = listed(buckets, false, &children.pipelines, finish)?;
        Ok(json!({ "buckets": buckets }))
    }
}
