//! Whether answers, steps and the end of a run are right.

use std::collections::{BTreeMap, BTreeSet};

use logpond_cluster::Completeness;
use logpond_cluster::give_up::{Copies, Peer};
use logpond_record::SourceId;
use logpond_segment::sources::SourceSet;

use super::bucket::Bucket;
use super::disk::{Batch, Frame};
use super::ledger::Violation;
use super::world::World;

/// What a question was answered with.
pub(super) struct Answer {
    /// As much was acknowledged when it was asked.
    pub(super) acked_count: usize,
    pub(super) counted: SourceSet,
    /// Retry sources that were left out.
    pub(super) shadowed: SourceSet,
    /// Sources that still grew then.
    pub(super) open: SourceSet,
    /// What it has of another cluster, if it is complete.
    pub(super) foreign: SourceSet,
    pub(super) got: Vec<(SourceId, Frame)>,
    pub(super) completeness: Completeness,
}

impl Answer {
    /// Whether a source is one of those that the answer says are missing, or may be.
    fn reports(&self, source: SourceId) -> bool {
        let completeness = &self.completeness;
        let mut gaps = completeness.gaps.iter();
        let mut tails = completeness.tails.iter().chain(&completeness.lost);
        gaps.any(|gap| {
            gap.incarnation == source.incarnation
                && (gap.interval.from..=gap.interval.to).contains(&source.sequence)
        }) || tails
            .any(|tail| tail.incarnation == source.incarnation && tail.from <= source.sequence)
    }
}

impl World {
    /// Judges an answer (C7, C9, C10).
    pub(super) fn judge(&mut self, answer: &Answer) {
        let mut batches: BTreeSet<Batch> = BTreeSet::new();
        for (_, frame) in &answer.got {
            if !batches.insert(frame.batch) {
                self.ledger.violate("R10: a batch is counted twice");
            }
            if self.ledger.rows_of(frame.batch) != Some(frame.rows) {
                self.ledger.violate("a batch was invented");
            }
        }
        self.judge_receipts(answer);
        let acked = self.ledger.acked_until(answer.acked_count);
        let missing = acked.iter().filter(|(batch, _)| !batches.contains(batch));
        let missing: Vec<(Batch, SourceId)> = missing.copied().collect();
        let is_complete = answer.completeness.is_complete();
        for (batch, source) in &missing {
            if self.is_excused(answer, *batch, *source) {
                continue;
            }
            let text = if is_complete {
                "R9: an answer that is called complete lacks"
            } else {
                "R9: an answer does not say that it lacks"
            };
            let sources = self.ledger.sources_of(*batch);
            let sources: Vec<String> = sources
                .map(|source| {
                    let counted = answer.counted.contains(source);
                    let shadowed = answer.shadowed.contains(source);
                    let content = self.ledger.content(source);
                    let frames = content.map(|frames| frames.iter().filter(|f| f.batch == *batch));
                    let frames = frames.map(|frames| frames.collect::<Vec<_>>());
                    format!("{source} counted {counted} shadowed {shadowed} {frames:?}")
                })
                .collect();
            let completeness = &answer.completeness;
            let text = format!("{text} {batch:?} of {source}, {sources:?}: {completeness:?}");
            self.ledger.violate(&text);
        }
        self.judge_foreign(answer);
        if !is_complete {
            self.ledger.last_incomplete = Some(answer.completeness.clone());
        }
        let is_all = is_complete || self.lacks_only_what_is_lost(answer);
        if is_all && self.is_calm() {
            self.ledger.is_all_answered = true;
        }
    }

    /// An answer that is complete has what others had put into the bucket when it was read last.
    fn judge_foreign(&mut self, answer: &Answer) {
        let lacking = answer.foreign.without(&answer.counted);
        if answer.completeness.is_complete() && !lacking.is_empty() {
            let text = format!("R9: an answer that is called complete lacks {lacking:?} of others");
            self.ledger.violate(&text);
        }
        self.report.foreign_counted += answer.foreign.common(&answer.counted).len();
    }

    /// What was counted must be what is in the sources of the receipts, whichever copies were read:
    /// a row and a sum more or less would show.
    fn judge_receipts(&mut self, answer: &Answer) {
        let mut got: BTreeMap<SourceId, Vec<Frame>> = BTreeMap::new();
        for (source, frame) in &answer.got {
            got.entry(*source).or_default().push(*frame);
        }
        let mut expected = (0u64, 0u64);
        let mut found = (0u64, 0u64);
        let add = |sum: &mut (u64, u64), frames: &[Frame]| {
            for frame in frames {
                sum.0 += frame.rows;
                sum.1 = sum.1.wrapping_add(frame.value().wrapping_mul(frame.rows));
            }
        };
        for source in answer.counted.iter().filter(|s| !answer.open.contains(*s)) {
            if let Some(content) = self.ledger.content(source) {
                add(&mut expected, content);
                add(&mut found, got.get(&source).map_or(&[][..], Vec::as_slice));
                self.report.sources_counted += 1;
            }
        }
        if expected != found {
            self.ledger
                .violate("R7: an aggregate is not that of its receipts' sources");
        }
        if got.keys().any(|source| !answer.counted.contains(*source)) {
            self.ledger.violate("R7: rows without a receipt");
        }
    }

    /// Whether an acknowledged batch may be missing in an answer.
    fn is_excused(&self, answer: &Answer, batch: Batch, source: SourceId) -> bool {
        let mut sources = self.ledger.sources_of(batch);
        if sources.any(|source| answer.reports(source) || self.ledger.is_blurred(source)) {
            return true;
        }
        // Nodes that may hide other incarnations are named.
        if !answer.completeness.hiding.is_empty() {
            let incarnation = source.incarnation;
            let known = answer
                .counted
                .intervals()
                .any(|(name, _)| name == incarnation);
            return !known;
        }
        false
    }

    /// Whether an answer lacks nothing but sources that were only on disks that are lost.
    fn lacks_only_what_is_lost(&self, answer: &Answer) -> bool {
        let completeness = &answer.completeness;
        let mut gone = SourceSet::new();
        for gap in &completeness.gaps {
            gone.insert_interval(gap.incarnation, gap.interval);
        }
        let lost = self.nodes.iter().filter(|n| n.is_gone && !n.has_left);
        let lost: BTreeSet<_> = lost.map(|node| Some(node.id)).collect();
        let is_lost = |node| lost.contains(&node) || self.ledger.restores > 0;
        completeness.tails.is_empty()
            && completeness.hiding.is_empty()
            && completeness.gaps.iter().all(|gap| is_lost(gap.node))
            && completeness.unread.is_empty()
            && self.held(1).is_disjoint(&gone)
            && self.listed_in_bucket().is_disjoint(&gone)
    }

    /// Whether any disk holds a batch.
    pub(super) fn is_anywhere(&self, batch: Batch) -> bool {
        let mut disks = self.nodes.iter().filter(|node| !node.is_gone);
        disks.any(|node| {
            let mut segments = node.disk.live();
            let mut journal = node.disk.journal();
            let holds = |frames: &[Frame]| frames.iter().any(|frame| frame.batch == batch);
            segments.any(|(_, segment)| segment.contents.values().any(|rows| holds(rows)))
                || journal.any(|(_, file)| holds(&file.frames))
        }) || self.bucket.iter().flat_map(Bucket::objects).any(|object| {
            let mut frames = object.contents.values().flat_map(|rows| rows.iter());
            frames.any(|frame| frame.batch == batch)
        })
    }

    /// The sources that so many disks hold in segments.
    pub(super) fn held(&self, copies: usize) -> SourceSet {
        self.held_in(Copies::on_nodes(copies))
    }

    /// The sources of which there are such copies in segments.
    fn held_in(&self, copies: Copies) -> SourceSet {
        let disks = (0..self.nodes.len()).filter(|place| !self.nodes[*place].is_gone);
        let stored: Vec<(Peer, SourceSet)> = disks
            .map(|place| {
                let mut stored = SourceSet::new();
                for (_, segment) in self.nodes[place].disk.live() {
                    stored.union_with(&segment.sources());
                }
                let peer = Peer {
                    node: self.nodes[place].id,
                    zone: self.has_zones.then_some(place as u64 % 2),
                };
                (peer, stored)
            })
            .collect();
        copies.held_by(stored.iter().map(|(peer, stored)| (*peer, stored)))
    }

    /// The sources of which there are so many copies, or that the bucket lists. One copy is not enough
    /// where there is a bucket: it is on its way there.
    pub(super) fn safe_somewhere(&self, copies: usize) -> SourceSet {
        let mut safe = self.listed_in_bucket();
        if self.bucket.is_none() || self.copies > 1 {
            safe.union_with(&self.held(copies));
        }
        safe
    }

    /// Judges the step that was just made (C6).
    pub(super) fn check_step(&mut self) -> Result<(), Violation> {
        // The bucket is lost with no disk.
        let is_all_there = self.bucket.is_some() && self.copies == 1;
        let destroys = (self.loses_disks || self.restores) && !is_all_there;
        if let Some(bucket) = &self.bucket
            && !bucket.expired().is_disjoint(self.ledger.all_safe())
        {
            self.ledger
                .violate("R8: what is not old expires in the bucket");
        }
        if self.ledger.take_shrunk() && !destroys {
            let lacking = self
                .ledger
                .all_safe()
                .without(&self.safe_somewhere(self.copies));
            // Of what was damaged there may be one copy less until it is repaired.
            let lacking = if lacking.is_empty() {
                lacking
            } else {
                let least = self.safe_somewhere(self.copies - usize::from(self.damages));
                lacking.without(&self.damaged.common(&least))
            };
            if !lacking.is_empty() {
                let text = format!("R6: too few copies of {lacking:?}");
                self.ledger.violate(&text);
            }
            self.report.checks += 1;
        }
        match self.ledger.broken() {
            None => Ok(()),
            Some(what) => Err(self.violation(what.clone())),
        }
    }

    fn violation(&self, what: String) -> Violation {
        Violation {
            what,
            at_ms: self.now_ms,
        }
    }

    /// Whether everything has healed: nothing is sent, waited for or lacking.
    pub(super) fn is_calm(&self) -> bool {
        if !self.is_healing() || !self.forwarders.iter().all(|f| f.is_idle()) {
            return false;
        }
        let running = self.nodes.iter().filter(|node| !node.is_gone);
        let mut processes = running.map(|node| node.process.as_ref());
        let is_quiet = processes.all(|process| {
            process.is_some_and(|p| p.offers.bytes() == 0 && p.consuming.is_empty())
        });
        // Where disks come back as they were, files may be disputed, and stay until somebody looks.
        is_quiet && (self.all_have_left() || self.restores) && {
            let any = self.held(1);
            match &self.bucket {
                None => self.held_in(self.copies_true()).contains_all(&any),
                Some(bucket) => bucket.listed().contains_all(&any),
            }
        }
    }

    /// Whether the run may end: all is well, and a question was answered since.
    pub(super) fn is_settled(&self) -> bool {
        self.ledger.is_all_answered
    }

    /// Judges the end of a run.
    pub(super) fn check_end(&mut self) -> Result<(), Violation> {
        self.report.runs = 1;
        self.report.bucket_runs = u64::from(self.bucket.is_some());
        self.report.zone_runs = u64::from(self.copies_true().zones > 1);
        for (batch, source) in self.ledger.acked_until(self.ledger.acked_count()) {
            let is_kept = self.ledger.is_replicated(*batch) || !self.loses_data();
            if is_kept && !self.is_anywhere(*batch) && !self.ledger.is_torn(*source) {
                return Err(self.violation(format!("{batch:?} of {source} is lost")));
            }
        }
        if !self.ledger.is_all_answered {
            let why = self.unsettled();
            return Err(self.violation(format!("nothing settles: {why}")));
        }
        Ok(())
    }

    /// Whether disks are lost whose batches no forwarder has kept.
    fn loses_data(&self) -> bool {
        let keep = self.forwarders.iter().all(|forwarder| forwarder.keeps());
        (self.loses_disks || self.restores) && !keep
    }

    /// What keeps a run from settling.
    fn unsettled(&self) -> String {
        let busy = self.forwarders.iter().filter(|f| !f.is_idle()).count();
        let down = self
            .nodes
            .iter()
            .filter(|n| !n.is_gone && n.process.is_none());
        let waiting: Vec<String> = self
            .nodes
            .iter()
            .filter_map(|node| node.process.as_ref().map(|p| (node.id, p)))
            .map(|(id, p)| {
                let offers = (p.offers.bytes(), p.offers.waiting_count());
                format!("{} offers {offers:?}, consumes {}", id.0, p.consuming.len())
            })
            .collect();
        let lacking = self.held(1).without(&self.held_in(self.copies_true()));
        let leaving = self.leaving_state();
        format!(
            "leaving: {leaving:?}, {busy} forwarders are busy, {} nodes down, nodes: {waiting:?}, lacking {lacking:?}, \
             last answer: {:?}",
            down.count(),
            self.ledger.last_incomplete
        )
    }
}
