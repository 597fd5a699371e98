//! `terms`: a bucket for each value of a field. Counts are exact: no bucket is left out before all are counted.

use std::sync::Arc;

use logpond_search::FieldMatcher;
use logpond_search::query::{FieldFilter, FieldTest, Pattern};
use serde_json::{Value as Json, json};

use super::super::document::iso;
use super::super::json::{Object, bad, count, list, only, optional, scalar, unsupported};
use super::super::lists;
use super::super::query::lucene_regex;
use super::columns::{Field, RowView};
use super::keys::{Key, KeyKind};
use super::order::{BucketOrder, sorted};
use super::state::{Bucket, BucketMap, Finish};
use super::{Aggregation, BUCKETS_MAX, Buckets, Kind, Reader, bucket_json};
use crate::error::ApiError;
use logpond_record::{Timestamp, Value};

/// Buckets where a request says no number.
const SIZE_DEFAULT: u64 = 10;

#[derive(Clone, Debug)]
struct Terms {
    field: Field,
    size: u64,
    least: u64,
    order: BucketOrder,
    missing: Option<String>,
    include: Option<Choice>,
    exclude: Option<Choice>,
}

/// A choice of values.
#[derive(Clone, Debug)]
enum Choice {
    Values(Vec<String>),
    Matching(FieldMatcher),
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let known = [
        "field",
        "size",
        "order",
        "min_doc_count",
        "missing",
        "include",
        "exclude",
        "shard_size",
        "shard_min_doc_count",
        "show_term_doc_count_error",
        "collect_mode",
        "execution_hint",
        "value_type",
        "script",
    ];
    only(members, &known, "terms")?;
    let size = count(members, "size", SIZE_DEFAULT)?;
    if size == 0 {
        return Err(bad("[size] of [terms] is more than 0"));
    }
    let least = count(members, "min_doc_count", 1)?;
    Ok(Kind::Buckets(Arc::new(Terms {
        field: reader.columns.field(members, "terms")?,
        size: size.min(BUCKETS_MAX + 1),
        // Values that no record of the query has are not known: they are as many as with 1.
        least: if least == 0 {
            return Err(unsupported(
                "min_doc_count 0 of terms",
                "use 1: values without records are not listed",
            ));
        } else {
            least
        },
        order: BucketOrder::read(members, BucketOrder::by_count())?,
        missing: optional(members, "missing")?,
        include: choice(members, "include")?,
        exclude: choice(members, "exclude")?,
    })))
}

fn choice(members: &Object, name: &str) -> Result<Option<Choice>, ApiError> {
    match members.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Object(_)) => Err(unsupported("partitions of terms", "use a larger size")),
        Some(values @ Json::Array(_)) => {
            let values = list(values).iter().map(|value| scalar(value, name));
            Ok(Some(Choice::Values(
                values.collect::<Result<_, ApiError>>()?,
            )))
        }
        Some(source) => {
            let source = lucene_regex(&scalar(source, name)?)?;
            let pattern = Pattern::regex(&format!("^(?s:{source})$"), false);
            let filter = FieldFilter {
                name: "value".into(),
                test: FieldTest::Contains(pattern),
            };
            let matcher = FieldMatcher::new(&filter);
            let matcher = matcher.map_err(|error| bad(format!("[{name}]: {error}")))?;
            Ok(Some(Choice::Matching(matcher)))
        }
    }
}

impl Choice {
    fn has(&self, value: &[u8]) -> bool {
        match self {
            Choice::Values(values) => values.iter().any(|one| one.as_bytes() == value),
            Choice::Matching(matcher) => matcher.matches_value(Some(&Value::text(value))),
        }
    }
}

impl Terms {
    fn takes(&self, value: &[u8]) -> bool {
        self.include.as_ref().is_none_or(|choice| choice.has(value))
            && !self
                .exclude
                .as_ref()
                .is_some_and(|choice| choice.has(value))
    }

    /// The buckets that the answer has, and the count of the others.
    fn chosen<K>(
        &self,
        pairs: Vec<(K, Bucket)>,
        children: &[Aggregation],
        compare: impl Fn(&K, &K) -> std::cmp::Ordering,
    ) -> (Vec<(K, Bucket)>, u64) {
        let total: u64 = pairs.iter().map(|(_, bucket)| bucket.records).sum();
        let enough = pairs
            .into_iter()
            .filter(|(_, bucket)| bucket.records >= self.least);
        let mut all = sorted(enough.collect(), &self.order, children, compare);
        all.truncate(usize::try_from(self.size).unwrap_or(usize::MAX));
        let kept: u64 = all.iter().map(|(_, bucket)| bucket.records).sum();
        (all, total - kept)
    }
}

impl Buckets for Terms {
    fn typed(&self, found: &BucketMap) -> &'static str {
        if self.field.is_time {
            return "lterms";
        }
        match KeyKind::of(found.texts.keys()) {
            KeyKind::Whole => "lterms",
            KeyKind::Float => "dterms",
            KeyKind::Text => "sterms",
        }
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        if self.field.is_time {
            if let Some(ms) = row.time_ms(self.field) {
                put(Key::Number(ms));
            }
            return;
        }
        let missing = self.missing.as_deref().map(str::as_bytes);
        lists::each_value(row.text(self.field).or(missing), &mut |value| {
            if self.takes(value) {
                put(Key::Text(value));
            }
        });
    }

    fn finish(
        &self,
        found: BucketMap,
        children: &[Aggregation],
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError> {
        self.order.check(children)?;
        let mut buckets = Vec::new();
        let others;
        if self.field.is_time {
            let (chosen, rest) =
                self.chosen(found.numbers.into_iter().collect(), children, Ord::cmp);
            others = rest;
            for (ms, bucket) in chosen {
                let text = iso(Timestamp(ms.saturating_mul(1_000_000)));
                let own = json!({ "key": ms, "key_as_string": text });
                buckets.push(bucket_json(own, bucket, children, finish)?);
            }
        } else {
            let kind = KeyKind::of(found.texts.keys());
            let pairs = found.texts.into_pairs().collect();
            let (chosen, rest) = self.chosen(pairs, children, |a, b| kind.compare(a, b));
            others = rest;
            for (key, bucket) in chosen {
                let own = json!({ "key": kind.json(&key) });
                buckets.push(bucket_json(own, bucket, children, finish)?);
            }
        }
        Ok(json!({
            "doc_count_error_upper_bound": 0,
            "sum_other_doc_count": others,
            "buckets": buckets,
        }))
    }
}
