//! Copies where there are too few, and fewer where there are too many: what each node sees to.
//!
//! A copy is sent whole, as after its making; one too many goes as a journal file does: flagged
//! first, then only if enough others say that they hold what is in it (CLUSTER R6).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use logpond_cluster::drain::Progress;
use logpond_cluster::expiry;
use logpond_cluster::give_up::{Attempt, CONTENTS_MAX, Content, Copies, GiveUp};
use logpond_cluster::repair::{self, Job, Member as Seen, Presence, Repair};
use logpond_cluster::trim::{self, Trim};
use logpond_cluster::{IndexedInventory, NodeId};
use logpond_record::Id;
use logpond_segment::sources::SourceSet;

use super::{Handoff, new_attempt};
use logpond_engine::query::Nodes;
use logpond_engine::store::{Board, LiveSegment, Store, local};
use logpond_host::side_by_side::side_by_side;
use logpond_host::telemetry::warn;

/// How often it is looked for what is lost and would have expired: days count.
const LOST_INTERVAL: Duration = Duration::from_secs(3600);

/// The state of the repair thread from round to round.
pub(super) struct RepairState {
    repair: Repair,
    trim: Trim,
    gone_ms: u64,
    /// Since when nodes do not answer.
    gone_since_ms: BTreeMap<NodeId, u64>,
    /// When it was last looked for what is lost and would have expired.
    lost_at: Option<Instant>,
    /// What the last round has seen, if it found nothing that is to be done now or later. To compare
    /// what a hundred nodes hold takes long, and most of the time nothing has changed.
    settled: Option<Round>,
}

/// What a round goes by.
pub(super) struct Round {
    known: Vec<Known>,
    /// Sources that count nowhere any more.
    pub(super) expired: SourceSet,
    /// Sources that the bucket lists.
    listed: Arc<SourceSet>,
    /// What copies there are to be.
    pub(super) copies: Copies,
    /// The zones of those who are known.
    zones: Vec<Option<u64>>,
}

/// How many copies there are of what is stored, as far as nodes say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyState {
    /// Sources of which too few nodes that are there have a copy.
    pub lacking: u64,
    /// Sources of which more have one than need to.
    pub superfluous: u64,
    /// Of a node that is leaving: what is left here.
    pub leaving: Option<Progress>,
}

impl RepairState {
    pub(super) fn new(own: NodeId, copies: usize, repair_after: Duration) -> RepairState {
        let gone_ms = u64::try_from(repair_after.as_millis()).unwrap_or(u64::MAX);
        let settings = repair::Settings {
            gone_ms,
            ..repair::Settings::default()
        };
        let trim = trim::Settings::default();
        let trim = trim::Settings {
            // Who makes up for a node sooner finds sooner that it is back.
            after_ms: trim.after_ms.min(gone_ms),
            ..trim
        };
        RepairState {
            repair: Repair::new(own, copies, settings),
            trim: Trim::new(own, copies, trim),
            gone_ms,
            gone_since_ms: BTreeMap::new(),
            lost_at: None,
            settled: None,
        }
    }

    /// Whether a round would find what the last one has found: nothing to do.
    fn is_settled(&self, round: &Round) -> bool {
        // Of one that is gone it matters only whether it still counts.
        let standing = |presence| match presence {
            Presence::Gone { for_ms } => Err(for_ms < self.gone_ms),
            presence => Ok(presence),
        };
        let seen = |known: &Known| {
            let (node, presence, held) = known;
            (*node, standing(*presence), held.as_ref().map(Arc::as_ptr))
        };
        self.settled.as_ref().is_some_and(|before| {
            // What was seen is kept, so nothing else can be where it is.
            let is_same = round
                .known
                .iter()
                .map(seen)
                .eq(before.known.iter().map(seen));
            is_same
                && round.copies == before.copies
                && round.zones == before.zones
                && round.expired == before.expired
                && round.listed == before.listed
        })
    }

    /// How long a node has not answered.
    fn gone_for_ms(&mut self, node: NodeId, is_there: bool, now_ms: u64) -> Option<u64> {
        if is_there {
            self.gone_since_ms.remove(&node);
            return None;
        }
        let since_ms = *self.gone_since_ms.entry(node).or_insert(now_ms);
        Some(now_ms - since_ms)
    }
}

/// A node, whether it is there, and what it says that it has or has said last.
type Known = (NodeId, Presence, Option<Arc<IndexedInventory>>);

impl Handoff {
    /// Looks at what all nodes have, and does what is to be done here. True if something was done,
    /// so that there may be more.
    pub(super) fn see_to_copies(&self, state: &mut RepairState, store: &Store) -> bool {
        let known = self.look_at_nodes(state);
        let registry = self.parts.member.registry();
        let round = Round {
            zones: known
                .iter()
                .map(|(node, ..)| registry.zone(*node))
                .collect(),
            known,
            expired: self.parts.member.registry().expired(),
            listed: self.listed(),
            copies: self.parts.member.copies_wanted(),
        };
        self.expire_lost(state, &round);
        if state.is_settled(&round) {
            return self.give_up_damaged(store);
        }
        let known = &round.known;
        // What a node has that was not heard yet counts as long as one that is gone does.
        let is_blind = known.iter().any(|(_, presence, held)| match presence {
            Presence::Gone { for_ms } => held.is_none() && *for_ms < state.gone_ms,
            _ => false,
        });
        let members: Vec<Seen<'_>> = known
            .iter()
            .filter_map(|(node, presence, held)| {
                let held = held.as_deref()?;
                Some(Seen {
                    node: *node,
                    zone: registry.zone(*node),
                    presence: *presence,
                    held,
                })
            })
            .collect();
        state.repair.set_expired(round.expired.clone());
        state.repair.set_listed((*round.listed).clone());
        state.repair.set_copies(round.copies);
        state.trim.set_copies(round.copies);
        self.note_copies(&members, &round);
        let targets = self.parts.member.stores();
        let jobs = state.repair.plan(&members, &targets, self.now_ms());
        let (copies, rest): (Vec<Job>, Vec<Job>) = jobs
            .into_iter()
            .partition(|job| matches!(job, Job::Copy { .. }));
        let mut is_done = false;
        if !is_blind {
            is_done |= self.send_copies(state, &copies);
        } else {
            copies.iter().for_each(|job| self.put_off(state, job));
        }
        for job in rest {
            if let Job::GiveUp(segment) = job {
                is_done |= self.give_up(segment, round.copies, store);
            }
        }
        if !state.repair.is_lacking() {
            is_done |= self.trim(&mut state.trim, &members, &round, store);
        }
        let is_settled = state.repair.is_settled() && state.trim.is_settled();
        state.settled = is_settled.then_some(round);
        is_done | self.give_up_damaged(store)
    }

    /// Notes as expired what is as old as that and nobody holds: it was lost with all its copies, and would be
    /// missed in answers for ever. Only while all nodes say what they have.
    fn expire_lost(&self, state: &mut RepairState, round: &Round) {
        let is_due = |at: Instant| at.elapsed() >= LOST_INTERVAL;
        if !state.lost_at.is_none_or(is_due) {
            return;
        }
        let is_there = |known: &Known| matches!(known.1, Presence::Live | Presence::Draining);
        if !round.known.iter().all(is_there) {
            return;
        }
        state.lost_at = Some(Instant::now());
        let outlived = self.parts.member.outlived();
        if outlived.is_empty() {
            return;
        }
        let held = round.known.iter().filter_map(|(_, _, held)| held.as_ref());
        let mut held = SourceSet::union_of(held.map(|held| held.stored()));
        held.union_with(&round.listed);
        let lost = expiry::lost(&outlived, &held);
        if let Err(error) = self.parts.member.expire(&lost) {
            warn(&format!("what has expired cannot be noted: {error}"));
        }
    }

    /// Asks all nodes what they have; this one is among them.
    fn look_at_nodes(&self, state: &mut RepairState) -> Vec<Known> {
        let member = &self.parts.member;
        // Before the others': what is stored here by now, they have stored before.
        let own_stored = member.own_stored();
        let answers = side_by_side(member.others(), |node| member.stored_of(node));
        let now_ms = self.now_ms();
        let own = if member.is_leaving() {
            Presence::Draining
        } else {
            Presence::Live
        };
        let mut known = vec![(self.own(), own, Some(own_stored))];
        for (node, answer) in answers {
            let answer = answer.and_then(Result::ok);
            let is_leaving = member.gossip().of(node).is_some_and(|seen| seen.is_leaving);
            let presence = match state.gone_for_ms(node, answer.is_some(), now_ms) {
                Some(for_ms) => Presence::Gone { for_ms },
                None if is_leaving => Presence::Draining,
                None => Presence::Live,
            };
            let held = answer.or_else(|| member.stored_last(node));
            known.push((node, presence, held));
        }
        known
    }

    /// The sources that the bucket lists, if there is one.
    fn listed(&self) -> Arc<SourceSet> {
        self.parts
            .board
            .as_ref()
            .map(Board::sources)
            .unwrap_or_default()
    }

    fn note_copies(&self, members: &[Seen<'_>], round: &Round) {
        let (few, many) = repair::deficit(members, round.copies);
        let leaving = self.parts.member.is_leaving().then(|| {
            let others = members.iter().filter(|m| m.presence == Presence::Live);
            let elsewhere = round.copies.held_by(others.map(Seen::holds));
            Progress::new(&self.holdings(), &elsewhere)
        });
        self.state().copies = CopyState {
            lacking: few.without(&round.expired).without(&round.listed).len(),
            superfluous: many.len(),
            leaving,
        };
    }

    /// How many copies there are of what is stored, as of the last look.
    pub fn copy_state(&self) -> CopyState {
        self.state().copies.clone()
    }

    fn send_copies(&self, state: &mut RepairState, jobs: &[Job]) -> bool {
        let copies = jobs.iter().filter_map(|job| match job {
            Job::Copy { segment, to } => Some((*segment, *to)),
            Job::GiveUp(_) => None,
        });
        let sent = side_by_side(copies, |(segment, to)| self.send_copy(segment, to));
        let mut is_done = false;
        for ((segment, to), outcome) in sent {
            let is_stored = matches!(outcome, Some(Ok(())));
            match outcome {
                Some(Ok(())) => self.counters.repairs.add(1),
                Some(Err(error)) => {
                    self.counters.failures.add(1);
                    let name = self.parts.member.name(to);
                    warn(&format!("a copy cannot be sent to {name}: {error}"));
                }
                None => self.counters.failures.add(1),
            }
            state.repair.copied(segment, to, is_stored, self.now_ms());
            is_done |= is_stored;
        }
        is_done
    }

    fn put_off(&self, state: &mut RepairState, job: &Job) {
        if let Job::Copy { segment, to } = job {
            state.repair.copied(*segment, *to, false, self.now_ms());
        }
    }

    /// Gives up segments that cannot be read, of which another node has a copy: that one counts as
    /// the only one then, and is copied. Without another copy it is kept for what can be read of it.
    fn give_up_damaged(&self, store: &Store) -> bool {
        let live = self.parts.live.snapshot();
        let damaged = local(&live).filter(|segment| segment.is_damaged());
        let mut is_done = false;
        for id in damaged.map(|segment| segment.file().manifest().id) {
            if self.give_up(id, Copies::on_nodes(1), store) {
                self.counters.damaged.add(1);
                warn(&format!(
                    "segments/{id}.parquet is damaged; others have what was in it, and copy it"
                ));
                is_done = true;
            }
        }
        is_done
    }

    /// Gives up a segment of this node if so many others hold what is in it. True if it is gone.
    pub(super) fn give_up(&self, segment: Id, copies: Copies, store: &Store) -> bool {
        let live = self.parts.live.snapshot();
        let found = live.iter().find(|s| s.file().manifest().id == segment);
        let Some(found) = found else {
            return false;
        };
        let flag = self.flag(found.sources());
        let confirmed = self.ask_for(found, found.sources(), copies, flag.attempt);
        let is_gone = match store.give_up(segment, &confirmed) {
            Ok(is_gone) => is_gone,
            Err(error) => {
                warn(&format!("a segment cannot be given up: {error}"));
                false
            }
        };
        // Only now: an answer between the two would have counted on it.
        drop(flag);
        self.counters.given_up.add(u64::from(is_gone));
        is_gone
    }

    /// Answers no to whoever asks for these sources, until the flag is dropped.
    pub(super) fn flag(&self, sources: &SourceSet) -> Flag<'_> {
        let attempt = new_attempt();
        self.state().flags.insert(attempt, sources.clone());
        Flag {
            handoff: self,
            attempt,
        }
    }

    /// Which of these sources of a segment so many others hold, and are not giving up themselves.
    pub(super) fn ask_for(
        &self,
        segment: &LiveSegment,
        wanted: &SourceSet,
        copies: Copies,
        attempt: Attempt,
    ) -> SourceSet {
        let member = &self.parts.member;
        let peers = member.peers(member.others());
        let mut asking = GiveUp::new(attempt, wanted.clone(), &peers, copies);
        if wanted.len() <= CONTENTS_MAX {
            asking = asking.expecting(&contents(segment, wanted));
        }
        self.ask_holders(&mut asking);
        self.warn_of_conflicts(&asking);
        asking.confirmed()
    }
}

/// Sources that this node may be about to give up.
pub(super) struct Flag<'a> {
    handoff: &'a Handoff,
    pub(super) attempt: Attempt,
}

impl Drop for Flag<'_> {
    fn drop(&mut self) {
        self.handoff.state().flags.remove(&self.attempt);
    }
}

/// What is in these sources of a segment.
fn contents(segment: &LiveSegment, wanted: &SourceSet) -> Vec<Content> {
    let sources = segment.file().manifest().sources.iter();
    sources
        .filter(|entry| wanted.contains(entry.source))
        .map(Content::of)
        .collect()
}
