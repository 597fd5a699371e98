//! Documents as hits: of a search, and of `top_hits`.

use serde_json::{Value as Json, json};

use super::document::{Document, FieldList, SourceFilter};
use super::json::{Object, flag};
use super::sort::SortOrder;
use crate::error::ApiError;

/// The members that hits have.
#[derive(Clone, Debug)]
pub(super) struct HitForm {
    pub(super) source: SourceFilter,
    fields: FieldList,
    has_version: bool,
    has_sequence: bool,
}

impl HitForm {
    /// Reads `_source`, `fields`, `docvalue_fields`, `version` and `seq_no_primary_term`.
    ///
    /// # Errors
    /// When one of them is wrong.
    pub(super) fn read(members: &Object) -> Result<HitForm, ApiError> {
        let mut fields = FieldList::default();
        fields.add(members.get("fields"))?;
        fields.add(members.get("docvalue_fields"))?;
        Ok(HitForm {
            source: SourceFilter::read(members.get("_source"))?,
            fields,
            has_version: flag(members, "version", false)?,
            has_sequence: flag(members, "seq_no_primary_term", false)?,
        })
    }

    /// A document as a hit.
    pub(super) fn hit(&self, document: &Document, order: &SortOrder) -> Json {
        let mut hit = json!({ "_index": document.index, "_id": document.id });
        hit["_score"] = score(order);
        if let Some(source) = self.source.source(document) {
            hit["_source"] = source;
        }
        if let Some(fields) = self.fields.of(document) {
            hit["fields"] = fields;
        }
        if order.is_given() {
            hit["sort"] = order.values(document.key).into();
        }
        if self.has_version {
            hit["_version"] = 1.into();
        }
        if self.has_sequence {
            hit["_seq_no"] = 0.into();
            hit["_primary_term"] = 1.into();
        }
        hit
    }
}

/// The score of a hit: all have the same, unless an order is given.
fn score(order: &SortOrder) -> Json {
    if order.is_given() {
        Json::Null
    } else {
        1.0.into()
    }
}

/// The best score of these hits.
pub(super) fn max_score(hits: &[Json], order: &SortOrder) -> Json {
    if hits.is_empty() {
        Json::Null
    } else {
        score(order)
    }
}
