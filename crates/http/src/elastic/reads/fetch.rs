//! Reads records as documents.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use logpond_engine::query::{
    Key, Output, RewriteStatus, RowParts, Scope, Search, Trailer, Visitor,
};
use logpond_host::memory::Charge;
use logpond_record::TimeRange;
use logpond_render::Row;
use logpond_search::Filter;
use logpond_search::query::{Comparison, FieldTest};

use super::completeness::Completeness;
use super::document::Document;
use super::json::bad;
use super::names;
use crate::App;
use crate::error::{ApiError, Kind};
use crate::logql::run::failed;

/// The most memory that the hits of an answer take.
pub(super) const HITS_BYTES_MAX: usize = 256 << 20;

/// The documents of a search, but for the first of them.
///
/// # Errors
/// When they cannot be read, or take too much memory.
pub(super) fn documents(
    app: &App,
    mut search: Search,
    skip: u64,
    out: &mut Output,
) -> Result<(Vec<Document>, Trailer), ApiError> {
    search.parts = RowParts {
        line: true,
        origin: false,
        clip_bytes: 0,
    };
    let sink = Arc::new(Mutex::new(Sink {
        skip,
        documents: Vec::new(),
        bytes: 0,
        charge: Charge::new(out.lease()),
    }));
    let taking = Arc::clone(&sink);
    let visitor: Visitor = Box::new(move |row, _| {
        let mut sink = taking.lock().unwrap_or_else(PoisonError::into_inner);
        sink.take(row)
    });
    let found = app.engine.visit(&search, visitor, out);
    let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
    if sink.bytes > HITS_BYTES_MAX {
        return Err(bad(format!(
            "the hits take more than {} MiB: ask for fewer by [size]",
            HITS_BYTES_MAX >> 20
        )));
    }
    if sink.charge.is_refused() {
        return Err(ApiError::no_memory(&sink.charge));
    }
    std::mem::take(&mut sink.charge).leave();
    Ok((std::mem::take(&mut sink.documents), found.map_err(failed)?))
}

/// The most records that are read by their ids at once: a filter has as many terms.
const PLACES_MAX: usize = 500;

/// Records within so many nanoseconds are read at once, since what lies between them is read with them: a second.
const TOGETHER_NS_MIN: i64 = 1_000_000_000;

/// The most reads of an answer: where there would be more, each takes in a longer time.
const READS_MAX: usize = 256;

/// The documents at places, in the order of these.
///
/// # Errors
/// When one cannot be read.
pub(super) fn documents_at(
    app: &App,
    places: &[Key],
    out: &mut Output,
) -> Result<Vec<Document>, ApiError> {
    let mut found = BTreeMap::new();
    for places in neighbours(places) {
        let filter = Filter::or(places.iter().map(|place| {
            let id = place.id.to_string();
            let test = FieldTest::Compare(Comparison::Equal, id.as_bytes().into());
            Filter::field(names::ID, test)
        }));
        let times = places.iter().map(|place| place.time);
        let range = TimeRange {
            from: times.clone().min().unwrap_or_default(),
            to: times.max().unwrap_or_default().saturating_add(1),
        };
        let scope = Scope::of_filter(&filter, range);
        let scope = scope.map_err(|error| ApiError::new(Kind::Internal, error.message))?;
        let (documents, trailer) = documents(app, Search::new(scope), 0, out)?;
        Completeness::default().note(app, trailer, false, out)?;
        found.extend(
            documents
                .into_iter()
                .map(|document| (document.key, document)),
        );
    }
    let in_order = places.iter().map(|place| found.remove(place));
    in_order.collect::<Option<Vec<_>>>().ok_or_else(|| {
        let message = "a record was removed while it was read: ask again";
        ApiError::new(Kind::Incomplete, message)
    })
}

/// The places in groups of those that are near to each other in time.
fn neighbours(places: &[Key]) -> Vec<Vec<Key>> {
    let mut sorted = places.to_vec();
    sorted.sort_unstable_by_key(|place| place.time);
    let mut together_ns = TOGETHER_NS_MIN;
    loop {
        let mut groups: Vec<Vec<Key>> = Vec::new();
        for place in &sorted {
            match groups.last_mut() {
                Some(group)
                    if group.len() < PLACES_MAX
                        && place.time.0.saturating_sub(group[0].time.0) < together_ns =>
                {
                    group.push(*place);
                }
                _ => groups.push(vec![*place]),
            }
        }
        let are_few = groups.len() <= READS_MAX.max(sorted.len().div_ceil(PLACES_MAX));
        if are_few || together_ns == i64::MAX {
            return groups;
        }
        together_ns = together_ns.saturating_mul(4);
    }
}

struct Sink {
    skip: u64,
    documents: Vec<Document>,
    bytes: usize,
    charge: Charge,
}

impl Sink {
    fn take(&mut self, row: &Row<'_>) -> RewriteStatus {
        if self.skip > 0 {
            self.skip -= 1;
            return RewriteStatus::GoOn;
        }
        // The line, its fields and its source as trees, and the hit.
        self.bytes += 10 * row.text_bytes() + 512;
        self.charge.set_soon(self.bytes);
        if self.bytes > HITS_BYTES_MAX || self.charge.is_refused() {
            return RewriteStatus::Done;
        }
        self.documents.extend(Document::of(row));
        RewriteStatus::GoOn
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::{Id, Timestamp};

    use super::*;

    fn groups(times: impl Iterator<Item = i64>) -> Vec<usize> {
        let places: Vec<Key> = times
            .map(|time| Key {
                time: Timestamp(time),
                id: Id(time.unsigned_abs().into()),
            })
            .collect();
        let groups = neighbours(&places);
        assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), places.len());
        groups.iter().map(Vec::len).collect()
    }

    #[test]
    fn records_far_from_each_other_are_read_apart() {
        const DAY_NS: i64 = 86_400_000_000_000;
        assert_eq!(groups([5, DAY_NS, 7, -DAY_NS].into_iter()), [1, 2, 1]);
        assert_eq!(groups(std::iter::repeat_n(3, 1200)), [500, 500, 200]);
        assert_eq!(groups((0..200).map(|at| at * DAY_NS)).len(), 200);
        assert_eq!(groups([i64::MIN, i64::MAX].into_iter()), [1, 1]);
        let many = groups((0..10_000).map(|at| at * DAY_NS / 100)).len();
        assert!((64..=READS_MAX).contains(&many), "{many}");
        assert_eq!(groups(std::iter::empty()), [0_usize; 0]);
    }
}
