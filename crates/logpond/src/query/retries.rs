//! Copies of batches that were sent again: which of them no answer counts (CLUSTER R10).
//!
//! Invariant: of every named batch that is visible, one source counts: the original, or the copy
//! of the lowest attempt.

use std::sync::Arc;

use logpond_segment::batches::{BatchSet, HeldBatches, RetryCopy, yielding};
use logpond_segment::journal::Snapshot;
use logpond_segment::sources::SourceSet;

use crate::store::{LiveSegment, holds};

/// The sources that are left out of every answer over these files.
pub fn excluded(snapshot: &Snapshot, segments: &[Arc<LiveSegment>]) -> SourceSet {
    let journal = || {
        let closed = snapshot.closed.iter().map(|c| (c.source, &*c.batches));
        let open = snapshot.open.iter().map(|o| (o.source, &*o.batches));
        // Of a file that is in a segment already, the segment says what counts.
        closed.chain(open)
    };
    let copy = |(source, batches): (_, &HeldBatches)| {
        let id = batches.retry()?;
        (!holds(segments, source)).then_some(RetryCopy { source, id })
    };
    let mut copies: Vec<RetryCopy> = journal().filter_map(copy).collect();
    copies.extend(segments.iter().flat_map(|segment| segment.retries()));
    if copies.is_empty() {
        return SourceSet::new();
    }
    yielding(&copies, |id| {
        let contains = |batches: &BatchSet| batches.contains(id.epoch, id.sequence);
        let in_journal = journal().filter_map(|(_, batches)| batches.originals());
        let in_segments = segments.iter().map(|s| &s.file().manifest().batches);
        in_journal.chain(in_segments).any(contains)
    })
}
