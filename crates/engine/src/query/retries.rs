//! Copies of batches that were sent again: which of them no answer counts (CLUSTER R10).
//!
//! Invariant: of every named batch that is visible, one source counts: the original, or the copy
//! of the lowest attempt.

use std::sync::Arc;

use logpond_record::SourceId;
use logpond_segment::batches::{BatchSet, HeldBatches, RetryCopy, yielding};
use logpond_segment::journal::Snapshot;
use logpond_segment::sources::SourceSet;

use super::view::View;
use crate::store::{LiveSegment, holds};

/// The sources that are left out of every answer over these files.
pub(super) fn excluded(snapshot: &Snapshot, segments: &[Arc<LiveSegment>]) -> SourceSet {
    let copies = copies(snapshot, segments);
    if copies.is_empty() {
        return SourceSet::new();
    }
    yielding(&copies, |id| {
        is_original(snapshot, segments, id.epoch, id.sequence)
    })
}

/// The journal's files with the batches in them.
fn journal(snapshot: &Snapshot) -> impl Iterator<Item = (SourceId, &HeldBatches)> {
    let closed = snapshot.closed.iter().map(|c| (c.source, &*c.batches));
    closed.chain(snapshot.open.iter().map(|o| (o.source, &*o.batches)))
}

/// The sources of these files that are copies of batches that were sent again.
pub fn copies(snapshot: &Snapshot, segments: &[Arc<LiveSegment>]) -> Vec<RetryCopy> {
    let copy = |(source, batches): (_, &HeldBatches)| {
        let id = batches.retry()?;
        // Of a file that is in a segment already, the segment says what counts.
        (!holds(segments, source)).then_some(RetryCopy { source, id })
    };
    let mut copies: Vec<RetryCopy> = journal(snapshot).filter_map(copy).collect();
    copies.extend(segments.iter().flat_map(|segment| segment.retries()));
    copies
}

/// Which of some batches these files hold as they were first sent.
pub fn originals(
    snapshot: &Snapshot,
    segments: &[Arc<LiveSegment>],
    wanted: &BatchSet,
) -> BatchSet {
    let mut found = BatchSet::default();
    let in_journal = journal(snapshot).filter_map(|(_, batches)| batches.originals());
    let in_segments = segments.iter().map(|s| &s.file().manifest().batches);
    for held in in_journal.chain(in_segments) {
        found.union_with(&held.intersection(wanted));
    }
    found
}

/// The most runs of batches that are said of what was read; of more none are said.
const RUNS_MAX: usize = 65_536;

/// The batches that a view's segments and these of its journal files hold as they were first sent.
pub(super) fn originals_in(view: &View, sources: &SourceSet) -> BatchSet {
    let mut found = BatchSet::default();
    let read = journal(&view.snapshot).filter(|(source, _)| sources.contains(*source));
    let in_journal = read.filter_map(|(_, batches)| batches.originals());
    let segments = view.segments.iter();
    let in_segments = segments.map(|viewed| &viewed.segment.file().manifest().batches);
    // Nobody sends copies of what is named by what is in it.
    let others = |held: &BatchSet| held.split_content().1;
    in_journal
        .chain(in_segments)
        .for_each(|held| found.union_with(&others(held)));
    let is_small = found.runs().nth(RUNS_MAX).is_none();
    if is_small { found } else { BatchSet::default() }
}

fn is_original(
    snapshot: &Snapshot,
    segments: &[Arc<LiveSegment>],
    epoch: u128,
    sequence: u64,
) -> bool {
    let contains = |batches: &BatchSet| batches.contains(epoch, sequence);
    let in_journal = journal(snapshot).filter_map(|(_, batches)| batches.originals());
    let in_segments = segments.iter().map(|s| &s.file().manifest().batches);
    in_journal.chain(in_segments).any(contains)
}
