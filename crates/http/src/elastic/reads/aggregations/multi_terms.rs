//! `multi_terms`: a bucket for each combination of the values of several fields.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::document::iso;
use super::super::json::{Object, bad, list, object, only, optional, unsupported};
use super::columns::{Field, RowView};
use super::keys::{Key, KeyKind};
use super::order::Selection;
use super::pipeline::{NamedBuckets, listed};
use super::state::{BucketMap, Finish};
use super::tuples::{self, Part};
use super::{Buckets, Kind, Reader, Tree, bucket_json};
use crate::error::ApiError;
use logpond_record::Timestamp;

/// The most fields.
const FIELDS_MAX: usize = 16;

#[derive(Clone, Debug)]
struct MultiTerms {
    /// The fields, with the value of records without.
    fields: Vec<(Field, Option<String>)>,
    /// None descends: the order is that of the selection.
    directions: Vec<bool>,
    selection: Selection,
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let known = [
        "terms",
        "size",
        "order",
        "min_doc_count",
        "shard_size",
        "shard_min_doc_count",
        "show_term_doc_count_error",
        "collect_mode",
    ];
    only(members, &known, "multi_terms")?;
    let given = members.get("terms").map_or(&[][..], list);
    if given.len() < 2 || given.len() > FIELDS_MAX {
        return Err(bad(format!(
            "[terms] of [multi_terms] has from 2 to {FIELDS_MAX} fields"
        )));
    }
    let mut fields = Vec::new();
    for one in given {
        let one = object(one, "terms")?;
        only(one, &["field", "missing", "value_type"], "terms")?;
        let field = reader.columns.field(one, "terms")?;
        fields.push((field, optional(one, "missing")?));
    }
    let selection = Selection::read(members, "multi_terms")?;
    if selection.least == 0 {
        return Err(unsupported(
            "min_doc_count 0 of multi_terms",
            "use terms within terms",
        ));
    }
    Ok(Kind::Buckets(Arc::new(MultiTerms {
        directions: vec![false; fields.len()],
        fields,
        selection,
    })))
}

impl Buckets for MultiTerms {
    fn typed(&self, _: &BucketMap) -> &'static str {
        "multi_terms"
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        let fields = self.fields.iter();
        let lists =
            fields.map(|(field, missing)| tuples::parts_of(row, *field, missing.as_deref()));
        let lists: Vec<Vec<Part>> = lists.collect();
        tuples::each_combination(&lists, &self.directions, &mut |tuple| {
            put(tuple.map_or(Key::TooMany, Key::Text));
        });
    }

    fn finish(
        &self,
        found: BucketMap,
        children: &Tree,
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError> {
        let texts = found.texts.keys();
        let texts: Vec<_> = texts
            .map(|tuple| tuples::texts(tuple, &self.directions))
            .collect();
        let kinds = (0..self.fields.len())
            .map(|at| KeyKind::of(texts.iter().filter_map(|texts| texts.get(at)?.as_deref())));
        let kinds: Vec<KeyKind> = kinds.collect();
        let pairs = found.texts.into_pairs().collect();
        let (chosen, others) = self.selection.chosen(pairs, children, Ord::cmp)?;
        let mut buckets = NamedBuckets::new();
        for (tuple, bucket) in chosen {
            let texts = tuples::texts(&tuple, &self.directions);
            let (mut key, mut shown) = (Vec::new(), Vec::new());
            for ((text, kind), (field, _)) in texts.iter().zip(&kinds).zip(&self.fields) {
                let text = text.as_deref().unwrap_or_default();
                let json = kind.json(text);
                shown.push(match json.as_i64().filter(|_| field.is_time) {
                    Some(ms) => iso(Timestamp(ms.saturating_mul(1_000_000))),
                    None => String::from_utf8_lossy(text).into_owned(),
                });
                key.push(json);
            }
            let own = json!({ "key": key, "key_as_string": shown.join("|") });
            buckets.push((String::new(), bucket_json(own, bucket, children, finish)?));
        }
        Ok(json!({
            "doc_count_error_upper_bound": 0,
            "sum_other_doc_count": others,
            "buckets": listed(buckets, false, &children.pipelines, finish)?,
        }))
    }
}
