//! `top_hits`: some hits of a bucket, the newest or the oldest.

use std::sync::Arc;

use logpond_engine::query::{Direction, Key as Place};
use logpond_record::Timestamp;
use serde_json::{Value as Json, json};

use super::super::document::Document;
use super::super::hit::{HitForm, max_score};
use super::super::json::{Object, bad, count, flag, only, unsupported};
use super::super::sort::SortOrder;
use super::columns::{Field, RowView};
use super::state::{Finish, TopPlaces};
use super::{Kind, Reader};
use crate::error::ApiError;

/// The most hits of a bucket, as `index.max_inner_result_window`.
pub(in super::super) const SIZE_MAX: u64 = 100;

/// The most hits of all buckets of an answer.
pub(in super::super) const HITS_MAX: u64 = 2000;

/// The aggregation.
#[derive(Clone, Debug)]
pub(super) struct TopHits {
    time: Field,
    id: Field,
    size: usize,
    from: usize,
    order: SortOrder,
    form: HitForm,
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let known = [
        "size",
        "from",
        "sort",
        "_source",
        "fields",
        "docvalue_fields",
        "highlight",
        "explain",
        "version",
        "seq_no_primary_term",
        "track_scores",
    ];
    only(members, &known, "top_hits")?;
    if flag(members, "explain", false)? {
        return Err(unsupported("explain", "there are no scores"));
    }
    let size = count(members, "size", 3)?;
    let from = count(members, "from", 0)?;
    if size.saturating_add(from) > SIZE_MAX {
        return Err(bad(format!(
            "[from] + [size] of [top_hits] is at most {SIZE_MAX}"
        )));
    }
    Ok(Kind::TopHits(Arc::new(TopHits {
        time: reader.columns.of_record("_time"),
        id: reader.columns.of_record("_id"),
        size: usize::try_from(size).unwrap_or(usize::MAX),
        from: usize::try_from(from).unwrap_or(usize::MAX),
        order: SortOrder::read_times(members.get("sort"))?,
        form: HitForm::read(members)?,
    })))
}

impl TopHits {
    /// Adds a record; says how many places are held more.
    pub(super) fn add(&self, row: &RowView<'_>, found: &mut TopPlaces) -> usize {
        found.records += 1;
        let id = row
            .text(self.id)
            .and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
        let (Some(time), Some(id)) = (row.time_ns(self.time), id) else {
            return 0;
        };
        let before = found.places.len();
        self.add_place(
            Place {
                time: Timestamp(time),
                id,
            },
            &mut found.places,
        );
        found.places.len().saturating_sub(before)
    }

    fn add_place(&self, place: Place, places: &mut Vec<Place>) {
        let at = places.partition_point(|other| match self.order.direction {
            Direction::Forward => *other < place,
            Direction::Backward => *other > place,
        });
        let most = self.from + self.size;
        if at < most {
            places.insert(at, place);
            places.truncate(most);
        }
    }

    /// Adds the hits of other records.
    pub(super) fn merge(&self, found: &mut TopPlaces, other: TopPlaces) {
        found.records += other.records;
        for place in other.places {
            self.add_place(place, &mut found.places);
        }
    }

    /// The answer of a bucket with these hits.
    pub(super) fn finish(&self, found: TopPlaces, to: &mut Finish<'_>) -> Result<Json, ApiError> {
        let wanted = found.places.get(self.from..).unwrap_or_default();
        to.hits += wanted.len() as u64;
        if to.hits > HITS_MAX {
            return Err(bad(format!(
                "the [top_hits] of all buckets are more than {HITS_MAX} hits: take fewer buckets or hits"
            )));
        }
        let hits = if wanted.is_empty() {
            Vec::new()
        } else {
            (to.fetch)(wanted, self)?
        };
        let max_score = max_score(&hits, &self.order);
        let total = json!({ "value": found.records, "relation": "eq" });
        Ok(json!({ "hits": { "total": total, "max_score": max_score, "hits": hits } }))
    }

    /// A document as a hit.
    pub(super) fn hit(&self, document: &Document) -> Json {
        self.form.hit(document, &self.order)
    }
}
