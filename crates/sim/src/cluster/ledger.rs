//! What was sent, what was promised, and what sources hold: the judge of every step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use logpond_record::{Incarnation, SourceId};
use logpond_segment::sources::SourceSet;

use super::disk::{Batch, Contents, Frame};

/// A rule was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What was seen.
    pub what: String,
    /// When, in milliseconds of the run.
    pub at_ms: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} ms: {}", self.at_ms, self.what)
    }
}

/// Everything that is known from outside of the nodes.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    sent: BTreeMap<Batch, u64>,
    acked: Vec<(Batch, SourceId)>,
    /// Where batches were ever appended.
    sources: BTreeMap<Batch, BTreeSet<SourceId>>,
    contents: BTreeMap<SourceId, Vec<Frame>>,
    /// Sources with two contents, since their disk came back as it was earlier.
    torn: SourceSet,
    /// Incarnations whose node has an earlier disk again: nobody can say how many sources they had.
    blurred: BTreeSet<Incarnation>,
    /// Sources of which an ingester has said that enough stores have them.
    safe: SourceSet,
    replicated: BTreeSet<Batch>,
    is_shrunk: bool,
    broken: Option<String>,
    /// What the last answer that was not complete said.
    pub(super) last_incomplete: Option<logpond_cluster::Completeness>,
    /// Disks that came back as they were earlier.
    pub(super) restores: u64,
    /// Whether a question that was asked after all had healed was answered with everything.
    pub(super) is_all_answered: bool,
}

impl Ledger {
    /// Notes that a rule was broken.
    pub(super) fn violate(&mut self, what: &str) {
        self.broken.get_or_insert(what.to_owned());
    }

    pub(super) fn broken(&self) -> Option<&String> {
        self.broken.as_ref()
    }

    pub(super) fn sent(&mut self, batch: Batch, rows: u64) {
        self.sent.insert(batch, rows);
    }

    pub(super) fn rows_of(&self, batch: Batch) -> Option<u64> {
        self.sent.get(&batch).copied()
    }

    pub(super) fn appended(&mut self, source: SourceId, frame: Frame) {
        self.sources.entry(frame.batch).or_default().insert(source);
    }

    /// The sources that ever held a batch.
    pub(super) fn sources_of(&self, batch: Batch) -> impl Iterator<Item = SourceId> {
        self.sources.get(&batch).into_iter().flatten().copied()
    }

    /// Notes an acknowledgement (C1).
    pub(super) fn acked(&mut self, batch: Batch, source: SourceId, is_durable: bool) {
        if !is_durable {
            self.violate("R1: what is acknowledged is not synced");
        }
        self.acked.push((batch, source));
    }

    pub(super) fn acked_count(&self) -> usize {
        self.acked.len()
    }

    pub(super) fn acked_until(&self, count: usize) -> &[(Batch, SourceId)] {
        &self.acked[..count]
    }

    pub(super) fn replicated(&mut self, batch: Batch) {
        self.replicated.insert(batch);
    }

    pub(super) fn is_replicated(&self, batch: Batch) -> bool {
        self.replicated.contains(&batch)
    }

    /// Notes that a journal file is closed: its content never changes again (C2).
    pub(super) fn closed(&mut self, source: SourceId, frames: &[Frame]) {
        match self.contents.get(&source) {
            None => {
                self.contents.insert(source, frames.to_vec());
            }
            Some(known) if known == frames => {}
            // The file went on after the image of it was taken that has come back. If its rows are
            // the beginning of those, nothing was made up.
            Some(known) if self.restores > 0 => {
                let is_earlier = known.starts_with(frames) || frames.starts_with(known);
                if !is_earlier {
                    self.violate("R2: a source's name was used twice");
                }
                self.torn.insert(source);
            }
            Some(_) => self.violate("R2: a closed source has changed"),
        }
    }

    /// Notes what a segment holds (C2, C4).
    pub(super) fn listed(&mut self, contents: &Contents) {
        for (source, rows) in contents {
            let is_same = self
                .contents
                .get(source)
                .is_some_and(|known| known == &**rows);
            if !is_same && !self.torn.contains(*source) {
                self.violate("R4: a segment holds something else than its sources");
            }
        }
    }

    /// What a closed source holds, if there is but one answer to that.
    pub(super) fn content(&self, source: SourceId) -> Option<&Vec<Frame>> {
        let known = self.contents.get(&source);
        known.filter(|_| !self.torn.contains(source))
    }

    pub(super) fn is_torn(&self, source: SourceId) -> bool {
        self.torn.contains(source)
    }

    pub(super) fn blur(&mut self, incarnation: Incarnation) {
        self.blurred.insert(incarnation);
    }

    /// Whether no answer can be held to account for a source.
    pub(super) fn is_blurred(&self, source: SourceId) -> bool {
        self.torn.contains(source) || self.blurred.contains(&source.incarnation)
    }

    /// Notes sources that an ingester may drop.
    pub(super) fn safe(&mut self, sources: &SourceSet) {
        self.safe.union_with(sources);
        self.is_shrunk = true;
    }

    pub(super) fn all_safe(&self) -> &SourceSet {
        &self.safe
    }

    /// Notes that a node holds less than before.
    pub(super) fn shrunk(&mut self) {
        self.is_shrunk = true;
    }

    pub(super) fn take_shrunk(&mut self) -> bool {
        std::mem::take(&mut self.is_shrunk)
    }
}
