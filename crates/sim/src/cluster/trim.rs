//! Trimming of a node: parts of segments that enough others hold are left out of a new one, which
//! takes the place of the old one once it is durable.

use logpond_cluster::give_up::{Attempt, GiveUp};
use logpond_cluster::repair::Member;
use logpond_cluster::trim::Part;
use logpond_record::Id;
use logpond_segment::sources::SourceSet;

use super::disk::Segment;
use super::message::{Place, Timer};
use super::process::{GiveUpTask, NextAction, TrimTask};
use super::world::{Mutation, World};

impl World {
    /// Begins to trim what is superfluous in part, as all hold what they say. What a bucket lists is
    /// sorted out there.
    pub(super) fn look_for_parts(&mut self, place: Place, members: &[Member<'_>]) {
        let now_ms = self.now_ms;
        if self.bucket.is_some() || self.is_rewriting(place) {
            return;
        }
        let node = &mut self.nodes[place];
        let (disk, Some(process)) = (&node.disk, &mut node.process) else {
            return;
        };
        if process.repair.is_lacking() {
            return;
        }
        let rows_of = |id: Id, sources: &SourceSet| {
            let each = disk.opened(id).into_iter().flat_map(|s| &s.contents);
            let those = each.filter(|(source, _)| sources.contains(**source));
            let frames = those.flat_map(|(_, rows)| rows.iter());
            frames.map(|frame| frame.rows).sum()
        };
        let part = process
            .trim
            .plan(members, &SourceSet::new(), &rows_of, now_ms);
        if let Some(part) = part {
            self.give_up_part(place, part);
        }
    }

    /// Whether the store writes a segment that is to take the place of others.
    pub(super) fn is_rewriting(&mut self, place: Place) -> bool {
        let process = self.process(place);
        let takes_place =
            |then: &NextAction| matches!(then, NextAction::Retire(_) | NextAction::Trim(_));
        let mut writing = process.writing.values();
        !process.merged.is_empty()
            || !process.trimmed.is_empty()
            || writing.any(|(_, then)| takes_place(then))
    }

    fn give_up_part(&mut self, place: Place, part: Part) {
        let (attempt, peers) = (self.attempt(), self.other_stores(place));
        let (copies, mutation) = (self.enough(place), self.mutation);
        let Part { segment, sources } = part;
        let process = self.process(place);
        let is_given = |giving: &GiveUpTask| giving.segment == Some(segment);
        if process.giving.values().any(is_given) {
            return self.end_part(place, segment, attempt, false);
        }
        if !matches!(mutation, Some(Mutation::NoFlags | Mutation::UnflaggedTrim)) {
            process.holdings.flag(attempt, sources.clone());
        }
        if mutation == Some(Mutation::UnaskedTrim) {
            return self.leave_out(place, segment, attempt, sources);
        }
        let giving = GiveUpTask {
            give_up: GiveUp::new(attempt, sources, &peers, copies),
            segment: Some(segment),
            is_part: true,
        };
        process.giving.insert(attempt, giving);
        self.ask_holders(place, attempt);
    }

    /// Begins to write a segment anew without what others have confirmed.
    pub(super) fn leave_out(
        &mut self,
        place: Place,
        id: Id,
        attempt: Attempt,
        confirmed: SourceSet,
    ) {
        self.notice_damage(place, id);
        let is_able = !self.is_full(place) && !self.is_rewriting(place) && !confirmed.is_empty();
        let mut live = self.process(place).holdings.live();
        let is_live = live.any(|(live, _)| live == id);
        drop(live);
        let segment = self.nodes[place].disk.readable(id).cloned();
        let Some(Segment {
            mut contents,
            received,
            ..
        }) = segment.filter(|_| is_able && is_live)
        else {
            return self.end_part(place, id, attempt, false);
        };
        contents.retain(|source, _| !confirmed.contains(*source));
        let trimming = TrimTask {
            segment: id,
            attempt,
            confirmed,
        };
        if contents.is_empty() {
            return self.drop_whole(place, trimming);
        }
        let output = Id(self.wide());
        if self.mutation == Some(Mutation::EarlyTrim) {
            self.drop_whole(place, trimming.clone());
        }
        self.write(
            place,
            output,
            contents,
            received,
            NextAction::Trim(trimming),
        );
    }

    /// The segment that is to take the place of another is durable; that one goes, if it may.
    pub(super) fn drop_trimmed(&mut self, place: Place, output: Id) {
        if let Some(trimming) = self.process(place).trimmed.remove(&output) {
            self.drop_whole(place, trimming);
        }
    }

    fn drop_whole(&mut self, place: Place, trimming: TrimTask) {
        let TrimTask {
            segment,
            attempt,
            confirmed,
        } = trimming;
        let mutation = self.mutation;
        let process = self.process(place);
        if matches!(mutation, Some(Mutation::NoFlags | Mutation::UnflaggedTrim)) {
            // What was answered meanwhile did not know of it.
            process.holdings.flag(attempt, confirmed.clone());
        }
        let is_gone = match mutation {
            Some(Mutation::EarlyTrim) => {
                process.holdings.lose(&[segment]);
                true
            }
            _ => process
                .holdings
                .give_up(segment, attempt, &confirmed)
                .is_ok(),
        };
        if is_gone {
            self.report.trims += 1;
            self.report.trimmed += confirmed.len();
            let disk = &mut self.nodes[place].disk;
            if disk.live().any(|(live, _)| live == segment) {
                disk.retire(&[segment]);
            }
            self.ledger.shrunk();
            self.timer(place, 2, Timer::Named(None));
        }
        self.end_part(place, segment, attempt, is_gone);
    }

    /// Ends an attempt to trim a segment.
    fn end_part(&mut self, place: Place, segment: Id, attempt: Attempt, is_trimmed: bool) {
        let now_ms = self.now_ms;
        let process = self.process(place);
        process.holdings.unflag(attempt);
        process.version += 1;
        process.trim.ended(segment, is_trimmed, now_ms);
        self.report.untrimmed += u64::from(!is_trimmed);
    }
}
