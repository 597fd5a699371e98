//! What was written and put into a segment between two looks of a follower: who reads slowly may miss all
//! of a file's life.

use std::sync::Arc;

use logpond_record::{SourceId, Timestamp};
use logpond_segment::journal::Snapshot;
use logpond_segment::sources::SourceSet;

use super::journal_rows::Row;
use super::output::Output;
use super::pond::{EngineSnapshot, LocalEngine};
use super::reads::Reads;
use super::view::View;
use super::{QueryError, Search, Trailer, retries};
use crate::store::{LiveSegment, Segments};

/// Rows of sources that are read at a time; they are held in memory to be put in order. One source alone may
/// have more: as many as a journal file.
const ROWS_MAX: u64 = 1 << 16;

/// Sources that are in segments, in order, and what is needed to read them.
#[derive(Default)]
pub(super) struct StoredSources {
    snapshot: Snapshot,
    segments: Segments,
    /// The sources that are still to be read, with their rows.
    sources: Vec<(SourceId, u64)>,
}

impl StoredSources {
    /// The sources that are not among the known ones, and count.
    ///
    /// What is in the bucket only may have become known just now, and be old: it is new if it is of what
    /// is written now.
    pub(super) fn find(
        snapshot: &Snapshot,
        segments: &Segments,
        known: &SourceSet,
    ) -> StoredSources {
        let written = snapshot.latest.map(|source| source.incarnation);
        let is_of_now = |segment: &LiveSegment| {
            let mut incarnations = segment.sources().incarnations();
            !segment.is_remote() || incarnations.any(|one| Some(one) == written)
        };
        let new = segments
            .iter()
            .filter(|segment| is_of_now(segment) && !known.contains_all(segment.sources()));
        let entries = new.flat_map(|segment| &segment.file().manifest().sources);
        let mut sources: Vec<(SourceId, u64)> = entries
            .map(|entry| (entry.source, entry.rows))
            .filter(|(source, _)| !known.contains(*source))
            .collect();
        if !sources.is_empty() {
            let repeated = retries::excluded(snapshot, segments);
            sources.retain(|(source, _)| !repeated.contains(*source));
            sources.sort_unstable();
            sources.dedup_by_key(|(source, _)| *source);
        }
        StoredSources {
            snapshot: snapshot.clone(),
            segments: Arc::clone(segments),
            sources,
        }
    }

    /// Takes the next sources that are to be read together, of those before another one, or of all.
    pub(super) fn next(&mut self, before: Option<SourceId>) -> Option<SourceSet> {
        let mut rows = 0;
        let count = self.sources.iter().take_while(|(source, of_source)| {
            let is_first = rows == 0;
            rows += of_source;
            before.is_none_or(|before| *source < before) && (is_first || rows <= ROWS_MAX)
        });
        let count = count.count();
        let mut taken = SourceSet::new();
        for (source, _) in self.sources.drain(..count) {
            taken.insert(source);
        }
        (count > 0).then_some(taken)
    }

    /// The matches in these sources, in the order in which they came.
    pub(super) fn read(
        &self,
        sources: &SourceSet,
        (engine, search): (&LocalEngine, &Search),
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<Vec<Row>, QueryError> {
        let look = EngineSnapshot {
            engine,
            view: View::of_sources(self.snapshot.clone(), &self.segments, sources),
            seen: 0,
        };
        let mut rows = Vec::new();
        let mut take = |row: Row, _: &mut Output, _: &mut Trailer| {
            rows.push(row);
            Ok(true)
        };
        look.each_row(&of_new_rows(search), out, trailer, &mut take)?;
        rows.sort_unstable_by_key(|(key, ..)| key.id);
        Ok(rows)
    }
}

/// The same search of rows of which none was shown: whatever their order, and whatever its end.
fn of_new_rows(search: &Search) -> Search {
    let mut new = search.without_context();
    (new.is_followed, new.behind, new.limit) = (false, None, None);
    new.shown.clear();
    new.scope.range.to = Timestamp::MAX;
    new
}
