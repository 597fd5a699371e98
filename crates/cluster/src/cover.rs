//! Which node reads what, so that each source is counted once (CLUSTER R7).
//!
//! Invariants: the shares of a cover are disjoint in sources; a wanted source that any
//! node holds is in one of them, or is pruned because no row of it is in the range.

use std::collections::BTreeMap;

use logpond_record::{Id, SourceId, TimeRange};
use logpond_segment::sources::SourceSet;

use crate::placement::Key;
use crate::{HeldSegment, IndexedInventory, NodeId};

/// A segment that a node is to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentShare {
    /// The segment.
    pub id: Id,
    /// Its sources that are counted elsewhere, or nowhere.
    pub excluded: SourceSet,
}

/// What a node is to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Segments.
    pub segments: Vec<SegmentShare>,
    /// Journal files.
    pub journal: SourceSet,
    /// All sources that the node counts by that: its receipt, if it does.
    pub sources: SourceSet,
}

/// Who reads what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cover {
    /// For each node that has something to read, what.
    pub shares: BTreeMap<NodeId, Share>,
    /// Sources without a row in the range.
    pub pruned: SourceSet,
}

impl Cover {
    /// Covers what nodes hold of the wanted sources, for a range of event times.
    ///
    /// What is not wanted is counted nowhere, whoever holds it. Segments are taken from the one with
    /// the most rows down, so that a merged segment wins over its inputs; of the holders of a segment
    /// the one with the fewest bytes to read so far, `local` if it is one of them and has no more to
    /// read than any other. Of those that would read it from a bucket it is always the same one, which
    /// may have kept what it read last time, and none of them if somebody has it on disk.
    pub fn plan(
        held: &[&IndexedInventory],
        wanted: &SourceSet,
        range: TimeRange,
        local: Option<NodeId>,
    ) -> Cover {
        let stored = SourceSet::union_of(held.iter().map(|indexed| indexed.stored()));
        Cover::plan_over(held, &stored, wanted, range, local)
    }

    /// The same, when it is known what all of them have in segments ([`crate::StoredUnion`]).
    pub fn plan_over(
        held: &[&IndexedInventory],
        stored: &SourceSet,
        wanted: &SourceSet,
        range: TimeRange,
        local: Option<NodeId>,
    ) -> Cover {
        let mut planning = CoverPlanner {
            cover: Cover::default(),
            open: wanted.clone(),
            bytes: BTreeMap::new(),
            local,
        };
        for candidate in candidates(held, range) {
            planning.take_segment(&candidate);
        }
        for indexed in held {
            let inventory = indexed.inventory();
            for file in &inventory.journal {
                if !stored.contains(file.source) {
                    planning.take_journal(inventory.node, file.source);
                }
            }
        }
        planning.cover.pruned = planning.open.common(stored);
        planning.cover
    }

    /// The sources that are counted if every node does its share.
    pub fn counted(&self) -> SourceSet {
        let mut counted = self.pruned.clone();
        for share in self.shares.values() {
            counted.union_with(&share.sources);
        }
        counted
    }
}

/// A segment and the nodes that hold copies of it.
struct Candidate<'a> {
    segment: &'a HeldSegment,
    holders: Vec<NodeId>,
    /// Those that would read it from a bucket.
    remote: Vec<NodeId>,
}

impl Candidate<'_> {
    /// The one that reads it from a bucket.
    fn reader(&self) -> Option<NodeId> {
        let first = self.segment.sources.iter().next()?;
        let key = Key::Source {
            incarnation: first.incarnation.0,
            sequence: first.sequence,
        };
        key.rank(self.remote.iter().copied()).first().copied()
    }
}

/// The segments that may have rows in a range, most rows first.
fn candidates<'a>(held: &[&'a IndexedInventory], range: TimeRange) -> Vec<Candidate<'a>> {
    let mut by_name: BTreeMap<(Id, u128), Candidate<'a>> = BTreeMap::new();
    for indexed in held {
        let node = indexed.inventory().node;
        for segment in indexed.overlapping(range) {
            let candidate = by_name.entry((segment.id, segment.digest));
            let candidate = candidate.or_insert(Candidate {
                segment,
                holders: Vec::new(),
                remote: Vec::new(),
            });
            if segment.is_remote {
                candidate.remote.push(node)
            } else {
                candidate.holders.push(node)
            }
        }
    }
    let mut all: Vec<_> = by_name.into_values().collect();
    all.sort_by_key(|c| {
        (
            std::cmp::Reverse(c.segment.rows),
            c.segment.id,
            c.segment.digest,
        )
    });
    all
}

/// The state of a planning run.
struct CoverPlanner {
    cover: Cover,
    /// Sources that are wanted and that nobody counts so far.
    open: SourceSet,
    /// What each node has to read so far.
    bytes: BTreeMap<NodeId, u64>,
    local: Option<NodeId>,
}

impl CoverPlanner {
    fn take_segment(&mut self, candidate: &Candidate<'_>) {
        let sources = &candidate.segment.sources;
        let fresh = sources.common(&self.open);
        if fresh.is_empty() {
            return;
        }
        let load = |node: &NodeId| {
            let bytes = self.bytes.get(node).copied().unwrap_or(0);
            (bytes, Some(*node) != self.local, *node)
        };
        let on_disk = candidate.holders.iter().copied().min_by_key(load);
        let Some(node) = on_disk.or_else(|| candidate.reader()) else {
            return;
        };
        *self.bytes.entry(node).or_default() += candidate.segment.bytes;
        self.open.subtract(&fresh);
        let share = self.cover.shares.entry(node).or_default();
        share.segments.push(SegmentShare {
            id: candidate.segment.id,
            excluded: sources.without(&fresh),
        });
        share.sources.union_with(&fresh);
    }

    fn take_journal(&mut self, node: NodeId, source: SourceId) {
        if !self.open.contains(source) {
            return;
        }
        self.open.subtract(&SourceSet::from_iter([source]));
        let share = self.cover.shares.entry(node).or_default();
        share.journal.insert(source);
        share.sources.insert(source);
    }
}

#[cfg(test)]
mod tests;
