//! What a follower of all nodes shows, and what it reads next: decisions without IO.
//!
//! Each row comes from one of two places. *Streams* bring a node's own journal as it grows, in the
//! order of arrival. *Errands* read what no stream brings: sources that were handed over before a
//! stream had them, or whose node is gone, from whoever holds a segment with them.
//!
//! Invariants:
//! - A source that an errand has begun is never taken from a stream again, since a stream passes
//!   over what it skips.
//! - Of every named batch one sending is shown: whichever comes first. A copy that was sent again
//!   is shown only once no node says that it has the original (CLUSTER R10); nodes that say so
//!   later have their original suppressed.
//! - Both sendings come as a whole ([`Whole`](super::whole::Whole), [`Errand::copies`]): what is told to
//!   a client never ends within one, unless its limit did.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use logpond_cluster::{IndexedInventory, NodeId, Target};
use logpond_record::{Id, SourceId};
use logpond_search::order::{Direction, Key};
use logpond_segment::batches::{BatchSet, RetryCopy};
use logpond_segment::sources::SourceSet;
use xxhash_rust::xxh3::xxh3_64;

use super::super::copies::{Batch, UnmatchedCopy};
use super::super::frames::{Block, JournalProgress};
use super::super::positions::{Positions, Region};

/// After so many signs of a stream that it has sent everything, it has sent what was visible before
/// the first of them.
const MARKS: u64 = 2;

/// What an errand is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Errand {
    /// Batches about whose originals all nodes are asked.
    pub(super) batches: BatchSet,
    /// Sources to be read, with what of them is left out.
    pub(super) groups: Vec<(SourceSet, Vec<Region>)>,
    /// Sources of these that are to be shown as a whole or not at all: copies, each by itself.
    pub(super) copies: SourceSet,
}

/// A copy that is read again.
#[derive(Debug)]
struct RereadCopy {
    batch: Batch,
    /// What was shown of it.
    regions: Vec<Region>,
    /// Whether there was room for all of that.
    is_whole: bool,
}

/// The state of a follower.
#[derive(Debug, Default)]
pub(super) struct FollowerState {
    positions: Positions,
    /// Sources that errands read.
    barred: SourceSet,
    /// Copies that the errand reads.
    copied: BTreeMap<SourceId, Batch>,
    /// What the errand reads, and the last row of it that came.
    reading: Option<(Arc<SourceSet>, Key)>,
    /// The batches that may be in what the errand reads, as they were first sent.
    read_originals: Arc<BatchSet>,
    /// Copies that the errand reads again, with what was shown of them.
    recalled: BTreeMap<SourceId, RereadCopy>,
    /// Copies that are to be read, of which batch they are.
    ready: BTreeMap<SourceId, Batch>,
    /// Copies whose original is somewhere: for each node that has it, how many marks of its stream
    /// there must be until the original was shown.
    waiting: BTreeMap<SourceId, Vec<(NodeId, u64)>>,
    /// Batches whose original may be in what the errand reads.
    suspects: BTreeSet<Batch>,
    /// Signs of each node's stream that it has sent everything. Nodes without one have no entry.
    marks: BTreeMap<NodeId, u64>,
}

impl FollowerState {
    /// A follower that goes on where others were, who have seen these originals.
    pub(super) fn new(mut positions: Positions, seen: &BatchSet) -> FollowerState {
        positions.note_originals(seen);
        FollowerState {
            positions,
            ..FollowerState::default()
        }
    }

    pub(super) fn positions(&self) -> &Positions {
        &self.positions
    }

    /// Where a client goes on that has been sent all that was shown so far, as text. What an errand
    /// reads is in order, so that it can be said of a part of it, too.
    pub(super) fn told(&mut self) -> String {
        if let Some((sources, last)) = self.reading.take() {
            let is_copy = self.copied.keys().any(|copy| sources.contains(*copy));
            let originals = if is_copy {
                Arc::default()
            } else {
                // Else a copy of what was shown would be shown to the client elsewhere.
                Arc::clone(&self.read_originals)
            };
            self.cut(&sources, last, &originals);
        }
        self.positions.to_text()
    }

    /// Whether a row of a node's stream is to be shown; it is noted as shown.
    pub(super) fn take_streamed(&mut self, block: &Block, key: Key, row: &[u8]) -> bool {
        let source = block.source;
        if self.positions.is_done(source) || self.barred.contains(source) {
            return false;
        }
        let regions = self.positions.regions(source);
        if regions.iter().any(|region| region.contains(key)) {
            return false;
        }
        self.positions.pass(source, Region::arrived(key.id));
        let Some(batch) = block.batch else {
            return true;
        };
        let Some(copy) = self.positions.copies.get(batch) else {
            // A copy may have been shown to the client before it came back.
            let is_shown = self.positions.copies.contains(batch);
            if !is_shown {
                self.positions.note_original(batch);
            }
            return !is_shown;
        };
        let (copy, is_vague) = (copy.source, copy.is_vague);
        let is_shown = is_vague || self.meet(batch, hash(row));
        if !is_vague {
            // What the copy has beyond what was shown of it comes with the original.
            self.leave_out(copy);
        }
        !is_shown
    }

    /// Whether a row of an original was shown with its copy.
    fn meet(&mut self, batch: Batch, row: u64) -> bool {
        let copies = &mut self.positions.copies;
        let is_shown = copies.meet(batch, row);
        if copies.get(batch).is_some_and(UnmatchedCopy::is_met) {
            self.positions.note_original(batch);
        }
        is_shown
    }

    /// Notes that nothing more of a copy is to be shown.
    fn leave_out(&mut self, copy: SourceId) {
        if self.ready.remove(&copy).is_some() {
            self.positions.finish(&SourceSet::from_iter([copy]));
        }
    }

    /// Notes how far a node has sent its journal.
    pub(super) fn pass(&mut self, node: NodeId, passed: &JournalProgress) {
        *self.marks.entry(node).or_default() += 1;
        for (source, last) in &passed.growing {
            if !self.barred.contains(*source) && *last > Id::MIN {
                self.positions.pass(*source, Region::arrived(*last));
            }
        }
        self.positions.finish(&passed.done.without(&self.barred));
        let growing = passed.growing.iter().map(|(source, _)| *source);
        let is_barred = |source| self.barred.contains(source);
        // Rows that an errand brings were not passed, and which batches they are of is not known.
        if !growing.chain(passed.done.iter()).any(is_barred) {
            self.positions.note_originals(&passed.batches);
            self.positions.copies.pass(&passed.batches);
        }
    }

    /// Notes that a node's stream has begun.
    pub(super) fn connect(&mut self, node: NodeId) {
        self.marks.insert(node, 0);
    }

    /// Notes that a node's stream has ended.
    pub(super) fn disconnect(&mut self, node: NodeId) {
        self.marks.remove(&node);
    }

    /// What is to be read or asked now, if anything: by what nodes hold, and have in segments all
    /// together. The sources of it are the errand's from here on.
    pub(super) fn plan(
        &mut self,
        held: &[&IndexedInventory],
        stored: &SourceSet,
    ) -> Option<Errand> {
        let wanted = Target::over(held, stored).wanted;
        let mut streamed = SourceSet::new();
        let mut there = SourceSet::new();
        for indexed in held {
            let inventory = indexed.inventory();
            for file in inventory.journal.iter().filter(|file| file.rows > 0) {
                there.insert(file.source);
                if self.marks.contains_key(&inventory.node) {
                    streamed.insert(file.source);
                }
            }
        }
        there.union_with(stored);
        let copies = self.open_copies(held);
        if let Some(errand) = self.recall(&there) {
            return Some(errand);
        }
        let copied = SourceSet::from_iter(copies.iter().map(|copy| copy.source));
        let open = self.positions.open(&wanted.common(stored));
        let others = open.without(&streamed).without(&copied);
        let are_originals_shown = open.without(&copied).is_empty();
        self.settle(&copies, &there, are_originals_shown);
        let ready = SourceSet::from_iter(self.ready.keys().copied()).common(&there);
        let mut errand = Errand::default();
        let undecided = copies.iter().filter(|copy| {
            let is_known = self.ready.contains_key(&copy.source)
                || self.waiting.contains_key(&copy.source)
                || self.positions.is_done(copy.source);
            !is_known
        });
        undecided.for_each(|copy| errand.batches.insert(copy.id.epoch, copy.id.sequence));
        // Copies go first and by themselves, so that their originals are known when they are met.
        errand.groups = if ready.is_empty() {
            self.positions.groups(&others)
        } else {
            let alone = ready.iter().map(|copy| SourceSet::from_iter([copy]));
            alone
                .flat_map(|copy| self.positions.groups(&copy))
                .collect()
        };
        if ready.is_empty() && !others.is_empty() {
            let unmet = self.positions.copies.unmet();
            unmet.for_each(|((epoch, sequence), _)| errand.batches.insert(epoch, sequence));
        }
        errand.copies = ready.clone();
        self.suspects.clear();
        let copied = self.ready.iter().filter(|(copy, _)| ready.contains(**copy));
        self.copied = copied.map(|(copy, batch)| (*copy, *batch)).collect();
        for (sources, _) in &errand.groups {
            self.barred.union_with(sources);
        }
        (errand != Errand::default()).then_some(errand)
    }

    /// Copies that were shown before the client came back: they are read again, so that their
    /// originals are known by their rows. Once only, as those who have one may be gone.
    fn recall(&mut self, there: &SourceSet) -> Option<Errand> {
        self.recalled.clear();
        let mut errand = Errand::default();
        let vague = self.positions.copies.unmet().filter(|(batch, copy)| {
            let is_unmet =
                self.positions.copies.contains(*batch) && !self.positions.has_original(*batch);
            let is_due = copy.is_vague && !copy.is_recalled && is_unmet;
            is_due && there.contains(copy.source) && !self.barred.contains(copy.source)
        });
        let due: Vec<(Batch, SourceId)> = vague.map(|(batch, copy)| (batch, copy.source)).collect();
        for (batch, copy) in due {
            self.positions.copies.begin_recall(batch);
            let regions = if self.positions.is_done(copy) {
                vec![Region::arrived(Id::MAX)]
            } else {
                self.positions.regions(copy)
            };
            self.recalled.insert(
                copy,
                RereadCopy {
                    batch,
                    regions,
                    is_whole: true,
                },
            );
            let alone = SourceSet::from_iter([copy]);
            errand.groups.push((alone, Vec::new()));
        }
        (!errand.groups.is_empty()).then_some(errand)
    }

    /// The copy among these sources that the errand reads again.
    fn recalled(&self, sources: &SourceSet) -> Option<SourceId> {
        let mut recalled = self.recalled.keys();
        recalled.find(|copy| sources.contains(**copy)).copied()
    }

    /// The copies of which something may have to be shown.
    fn open_copies(&mut self, held: &[&IndexedInventory]) -> Vec<RetryCopy> {
        let mut copies: Vec<RetryCopy> = Vec::new();
        let retries = held.iter().flat_map(|indexed| &indexed.inventory().retries);
        for copy in retries {
            let batch = (copy.id.epoch, copy.id.sequence);
            let is_begun = self.positions.is_begun(copy.source);
            // Otherwise it was left out, as its original was shown.
            let is_shown =
                self.positions.copies.contains(batch) || !self.positions.has_original(batch);
            if is_begun && is_shown && !self.barred.contains(copy.source) {
                // That was before this follower began.
                self.positions.copies.suspect(batch, copy.source);
            }
            if !self.positions.is_done(copy.source) {
                copies.push(*copy);
            }
        }
        copies.sort_by_key(|copy| {
            (
                copy.id.epoch,
                copy.id.sequence,
                copy.id.attempt,
                copy.source,
            )
        });
        copies.dedup_by_key(|copy| copy.source);
        copies
    }

    /// Decides about copies of which enough is known.
    fn settle(&mut self, copies: &[RetryCopy], there: &SourceSet, are_originals_shown: bool) {
        let mut left_out = SourceSet::new();
        for copy in copies {
            let batch = (copy.id.epoch, copy.id.sequence);
            let shown = self.positions.copies.get(batch);
            let is_begun = shown.is_some_and(|shown| shown.source == copy.source);
            let is_shown = shown.is_some()
                || self.positions.copies.contains(batch)
                || self.positions.has_original(batch);
            let has_sent = |(node, marks): &(NodeId, u64)| {
                self.marks.get(node).is_some_and(|now| now >= marks)
            };
            let waits = self.waiting.get(&copy.source);
            let is_original_shown =
                are_originals_shown && waits.is_some_and(|all| all.iter().any(has_sent));
            if !is_begun && is_shown || is_original_shown {
                left_out.insert(copy.source);
                self.ready.remove(&copy.source);
                self.waiting.remove(&copy.source);
                continue;
            }
            if waits.is_some_and(|all| !all.iter().any(|(n, _)| self.marks.contains_key(n))) {
                // Nobody who had it is there: it is asked for anew.
                self.waiting.remove(&copy.source);
            }
        }
        // Instead of those that are gone another copy may do, or the original.
        let copies = &self.positions.copies;
        self.ready.retain(|source, batch| {
            let is_begun = copies
                .get(*batch)
                .is_some_and(|copy| copy.source == *source);
            is_begun || there.contains(*source)
        });
        self.barred.union_with(&left_out);
        self.positions.finish(&left_out);
    }

    /// Takes note of which nodes have which originals, as an errand has found.
    pub(super) fn note_originals(
        &mut self,
        held: &[&IndexedInventory],
        found: &[(NodeId, BatchSet)],
    ) {
        let holders = |(epoch, sequence): Batch| {
            let has = found
                .iter()
                .filter(move |(_, set)| set.contains(epoch, sequence));
            has.map(|(node, _)| *node).collect::<Vec<NodeId>>()
        };
        let unmet = self.positions.copies.unmet();
        let found_of = unmet.filter(|(batch, _)| !holders(*batch).is_empty());
        let found_of: Vec<(Batch, SourceId, bool)> = found_of
            .map(|(batch, copy)| (batch, copy.source, copy.is_vague))
            .collect();
        self.suspects = found_of.iter().map(|(batch, ..)| *batch).collect();
        // What they have beyond what was shown of them comes with the originals.
        let clear = found_of.iter().filter(|(_, _, is_vague)| !is_vague);
        clear.for_each(|(_, copy, _)| self.leave_out(*copy));
        for copy in self.open_copies(held) {
            let batch = (copy.id.epoch, copy.id.sequence);
            let is_known =
                self.ready.contains_key(&copy.source) || self.waiting.contains_key(&copy.source);
            if is_known || self.ready.values().any(|of| *of == batch) {
                continue;
            }
            let holders = holders(batch);
            let shown = self.positions.copies.get(batch);
            let is_begun = shown.is_some_and(|shown| shown.source == copy.source);
            if holders.is_empty() || is_begun {
                self.ready.insert(copy.source, batch);
            } else {
                let marks = |node| self.marks.get(&node).copied().unwrap_or(0) + MARKS;
                let waits = holders
                    .into_iter()
                    .map(|node| (node, marks(node)))
                    .collect();
                self.waiting.insert(copy.source, waits);
            }
        }
    }

    /// Notes which originals may be among the rows that come next of an errand.
    pub(super) fn begin_read(&mut self, originals: &Arc<BatchSet>) {
        self.read_originals = Arc::clone(originals);
    }

    /// Whether a row that an errand has read of these sources is to be shown.
    pub(super) fn take_read(&mut self, sources: &Arc<SourceSet>, key: Key, row: &[u8]) -> bool {
        self.reading = Some((Arc::clone(sources), key));
        let hash = hash(row);
        let mut recalled = self.recalled.iter_mut();
        if let Some((_, recalled)) = recalled.find(|(copy, _)| sources.contains(**copy)) {
            if recalled.regions.iter().any(|region| region.contains(key)) {
                recalled.is_whole &= self.positions.copies.remember(recalled.batch, hash);
            }
            return false;
        }
        let mut copied = self.copied.iter();
        let copied = copied.find(|(copy, _)| sources.contains(**copy));
        if let Some((copy, batch)) = copied.map(|(copy, batch)| (*copy, *batch)) {
            // The original may have come while the copy was fetched.
            let is_wanted = self.ready.contains_key(&copy) && !self.positions.has_original(batch);
            if is_wanted {
                self.positions.copies.show(batch, copy, hash);
            }
            return is_wanted;
        }
        let suspects: Vec<Batch> = self.suspects.iter().copied().collect();
        !suspects.into_iter().any(|batch| self.meet(batch, hash))
    }

    /// Notes that an errand has read these sources to their end, and with them these originals.
    pub(super) fn finish(&mut self, sources: &SourceSet, originals: &BatchSet) {
        self.reading = None;
        let recalled = self.recalled(sources);
        if let Some(recalled) = recalled.and_then(|copy| self.recalled.remove(&copy)) {
            let copies = &mut self.positions.copies;
            copies.end_recall(recalled.batch, recalled.is_whole);
            return;
        }
        self.positions.note_originals(originals);
        self.positions.finish(sources);
        self.ready.retain(|source, _| !sources.contains(*source));
    }

    /// Notes that an errand's reading of these sources broke behind a row. Of these originals some
    /// may have been shown, so the rest comes with them, too.
    pub(super) fn cut(&mut self, sources: &SourceSet, last: Key, originals: &BatchSet) {
        self.reading = None;
        if self.recalled(sources).is_some() {
            return;
        }
        self.positions.note_originals(originals);
        let region = Region::read(Id::MAX, last, Direction::Forward);
        sources
            .iter()
            .for_each(|source| self.positions.pass(source, region));
    }
}

/// The hash of what is the same of a row in all sendings of its record, wherever it is read: a journal has
/// labels in the order of their sender, a segment in that of its columns.
fn hash(row: &[u8]) -> u64 {
    let sum = |sum: u64, member: &[u8]| sum.wrapping_add(xxh3_64(member));
    members(without_name(row)).fold(0, sum)
}

/// The members of the outermost object, of which this is the rest: what stands between its commas.
fn members(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (mut depth, mut in_text, mut at) = (0_usize, false, 0);
        while let Some(byte) = rest.get(at) {
            match byte {
                b'\\' if in_text => at += 1,
                b'"' => in_text = !in_text,
                _ if in_text => {}
                b'{' | b'[' => depth += 1,
                // That of the object itself is its end.
                b'}' | b']' if depth == 0 => break,
                b'}' | b']' => depth -= 1,
                b',' if depth == 0 => break,
                _ => {}
            }
            at += 1;
        }
        let member = &rest[..at.min(rest.len())];
        rest = rest.get(at + 1..).unwrap_or_default();
        Some(member)
    })
}

/// A row behind the name of its record, which each sending has anew.
fn without_name(row: &[u8]) -> &[u8] {
    // {"_time":"…","_id":"…",
    let name = memchr::memmem::find(row, b"\"_id\":\"");
    name.and_then(|at| row.get(at + 7 + 26 + 1..))
        .unwrap_or(row)
}

#[cfg(test)]
mod tests;
