//! `terms`: a bucket for each value of a field. Counts are exact: no bucket is left out before all are counted.

use std::sync::Arc;

use logpond_search::query::{FieldFilter, FieldTest, Pattern};
use logpond_search::{FieldMatcher, Number};
use serde_json::{Value as Json, json};

use super::super::document::iso;
use super::super::json::{Object, bad, list, only, optional, scalar, unsupported};
use super::super::lists;
use super::super::query::lucene_regex;
use super::columns::{Field, RowView};
use super::keys::{Key, KeyKind};
use super::order::Selection;
use super::pipeline::{NamedBuckets, listed};
use super::state::{Bucket, BucketMap, Finish};
use super::{Buckets, Kind, Reader, Tree, bucket_json};
use crate::error::ApiError;
use logpond_record::{Timestamp, Value};

#[derive(Clone, Debug)]
struct Terms {
    values: FieldValues,
    selection: Selection,
    /// The number for buckets without records, which have a place with `min_doc_count` 0.
    zeros: Option<usize>,
}

/// The values of a field that make buckets.
#[derive(Clone, Debug)]
pub(super) struct FieldValues {
    pub(super) field: Field,
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
    let selection = Selection::read(members, "terms")?;
    let has_zeros = selection.least == 0;
    reader.has_zeros |= has_zeros;
    Ok(Kind::Buckets(Arc::new(Terms {
        values: FieldValues::read(members, reader, "terms")?,
        selection,
        zeros: has_zeros.then_some(reader.count),
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

impl FieldValues {
    /// Reads `field`, `missing`, `include` and `exclude`.
    ///
    /// # Errors
    /// When one is wrong.
    pub(super) fn read(
        members: &Object,
        reader: &mut Reader<'_>,
        kind: &str,
    ) -> Result<FieldValues, ApiError> {
        Ok(FieldValues {
            field: reader.columns.field(members, kind)?,
            missing: optional(members, "missing")?,
            include: choice(members, "include")?,
            exclude: choice(members, "exclude")?,
        })
    }

    fn takes(&self, value: &[u8]) -> bool {
        self.include.as_ref().is_none_or(|choice| choice.has(value))
            && !self
                .exclude
                .as_ref()
                .is_some_and(|choice| choice.has(value))
    }

    /// Names the buckets of a record: milliseconds of a time, otherwise values.
    pub(super) fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
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
}

/// The buckets of numbers with those put together that differ only in how they are written, as 1 and 1.0 do.
fn equal_joined(mut pairs: Vec<(Box<[u8]>, Bucket)>, children: &Tree) -> Vec<(Box<[u8]>, Bucket)> {
    let is_equal = |a: &[u8], b: &[u8]| match (Number::parse(a), Number::parse(b)) {
        (Some(a), Some(b)) => a.compare(&b).is_eq(),
        _ => false,
    };
    pairs.sort_by(|(a, _), (b, _)| KeyKind::Float.compare(a, b));
    let mut joined: Vec<(Box<[u8]>, Bucket)> = Vec::with_capacity(pairs.len());
    for (key, bucket) in pairs {
        match joined.last_mut() {
            Some((last, mine)) if is_equal(last, &key) => mine.join(bucket, children),
            _ => joined.push((key, bucket)),
        }
    }
    joined
}

/// The kind of some keys in typed answers: of whole numbers, of others and of texts.
pub(super) fn typed_by_keys(
    field: Field,
    found: &BucketMap,
    [whole, float, text]: [&'static str; 3],
) -> &'static str {
    if field.is_time {
        return whole;
    }
    match KeyKind::of(found.texts.keys()) {
        KeyKind::Whole | KeyKind::Bool => whole,
        KeyKind::Float => float,
        KeyKind::Text => text,
    }
}

/// The key and its text of a bucket of times.
pub(super) fn time_json(ms: i64) -> Json {
    let text = iso(Timestamp(ms.saturating_mul(1_000_000)));
    json!({ "key": ms, "key_as_string": text })
}

impl Buckets for Terms {
    fn typed(&self, found: &BucketMap) -> &'static str {
        typed_by_keys(self.values.field, found, ["lterms", "dterms", "sterms"])
    }

    fn zeros(&self) -> Option<usize> {
        self.zeros
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        self.values.assign(row, put);
    }

    fn finish(
        &self,
        mut found: BucketMap,
        children: &Tree,
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError> {
        let mut buckets = NamedBuckets::new();
        let others;
        if self.values.field.is_time {
            let pairs = found.numbers.into_iter().collect();
            let (chosen, rest) = self.selection.chosen(pairs, children, Ord::cmp)?;
            others = rest;
            for (ms, bucket) in chosen {
                let json = bucket_json(time_json(ms), bucket, children, finish)?;
                buckets.push((String::new(), json));
            }
        } else {
            if let Some(number) = self.zeros {
                finish.add_zeros(number, &mut found.texts, children)?;
            }
            let kind = KeyKind::of(found.texts.keys());
            let pairs = found.texts.into_pairs().collect();
            let pairs = match kind {
                KeyKind::Float => equal_joined(pairs, children),
                _ => pairs,
            };
            let chosen = self
                .selection
                .chosen(pairs, children, |a, b| kind.compare(a, b));
            let (chosen, rest) = chosen?;
            others = rest;
            for (key, bucket) in chosen {
                let json = bucket_json(kind.members(&key), bucket, children, finish)?;
                buckets.push((String::new(), json));
            }
        }
        Ok(json!({
            "doc_count_error_upper_bound": 0,
            "sum_other_doc_count": others,
            "buckets": listed(buckets, false, &children.pipelines, finish)?,
        }))
    }
}
