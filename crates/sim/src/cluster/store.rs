//! The store of a node: claims into segments, copies to others, merges, and deletion by age.

use std::sync::Arc;

use logpond_cluster::Day;
use logpond_cluster::consume::{Consume, Step};
use logpond_cluster::expiry::{Clocks, Permit};
use logpond_cluster::give_up::{Content, HoldingsReply, WhoHolds};
use logpond_cluster::offers::Claim;
use logpond_cluster::placement::{Key, Store};
use logpond_record::{Id, Timestamp};
use logpond_segment::sources::SourceSet;

use super::bucket::Object;
use super::disk::{Contents, content};
use super::message::{Place, Reply, ReplyTarget, Request, Timer};
use super::process::{ConsumeTask, NextAction};
use super::world::{Mutation, World};

/// Claims that a store works on at a time.
const CLAIMS_MAX: usize = 2;

/// What was received longer ago is to go; no run lasts as long.
pub(super) const RETENTION_NS: i64 = 3_600_000_000_000;

impl World {
    /// Asks an ingester for work.
    pub(super) fn claim(&mut self, place: Place) {
        let is_leaving = self.nodes[place].disk.is_leaving;
        if is_leaving || self.process(place).consuming.len() >= CLAIMS_MAX {
            return;
        }
        let known = self.known(place);
        let places = known.into_iter().map(|node| self.place_of(node));
        let ingesters: Vec<Place> = places.filter(|at| self.nodes[*at].takes_in).collect();
        if ingesters.is_empty() {
            return;
        }
        let ingester = ingesters[self.random.below(ingesters.len() as u64) as usize];
        self.request(
            place,
            ingester,
            Request::Claim,
            ReplyTarget::Claim { ingester },
        );
    }

    /// Begins to work on a claim.
    pub(super) fn claimed(&mut self, place: Place, ingester: Place, claim: Claim) {
        let me = self.nodes[place].id;
        let (others, attempt, number) =
            (self.stores_known(place), self.attempt(), self.random.draw());
        let key = Key::Cohort {
            store: me,
            hour: self.now_ms / 5_000,
        };
        let own = self.peer(place, me);
        let targets = key.rank_targets(&self.targets(place), &[own]);
        let consume = Consume::new(me, claim, &others, targets, self.copies, attempt);
        let consuming = ConsumeTask { consume, ingester };
        self.process(place).consuming.insert(number, consuming);
        self.consume(place, number);
    }

    /// The stores that may be given copies.
    pub(super) fn targets(&self, place: Place) -> Vec<Store> {
        let leaving = self.leaving_seen(place);
        let stores = self.stores_known(place).into_iter();
        let store = |node| Store {
            node,
            zone: self.peer(place, node).zone,
            free_bytes: 1 << 30,
            is_full: false,
            is_draining: leaving.contains(&node),
        };
        stores.map(store).collect()
    }

    /// Goes on with a claim as far as it goes.
    pub(super) fn consume(&mut self, place: Place, number: u64) {
        loop {
            let process = self.process(place);
            let Some(consuming) = process.consuming.get_mut(&number) else {
                return;
            };
            let ingester = consuming.ingester;
            match consuming.consume.next(&process.holdings) {
                Step::Wait => return,
                Step::Ask { nodes, question } => {
                    for node in nodes {
                        let request = Request::WhoHolds(question.clone());
                        let waiting = ReplyTarget::Consume { number, node };
                        self.request(place, self.place_of(node), request, waiting);
                    }
                }
                Step::Build(files) => {
                    let sources = files.iter().map(|file| file.content.source).collect();
                    let waiting = ReplyTarget::Fetch { number };
                    self.request(place, ingester, Request::Fetch(sources), waiting);
                }
                Step::Send { segment, to } => {
                    for node in to {
                        let waiting = ReplyTarget::Put {
                            number,
                            segment,
                            node,
                        };
                        self.put(place, segment, self.place_of(node), waiting);
                    }
                }
                Step::Report { claim, sources } => {
                    self.process(place).consuming.remove(&number);
                    self.report.consumed += sources.len();
                    let request = Request::Report { claim, sources };
                    self.request(place, ingester, request, ReplyTarget::Nothing);
                    return;
                }
            }
        }
    }

    /// Sends a copy of a segment.
    pub(super) fn put(&mut self, place: Place, id: Id, to: Place, waiting: ReplyTarget) {
        self.notice_damage(place, id);
        let Some(segment) = self.nodes[place].disk.readable(id) else {
            return self.failed(place, waiting);
        };
        let request = Request::Put {
            id,
            contents: segment.contents.clone(),
            received: segment.received,
        };
        self.request(place, to, request, waiting);
    }

    /// What an ingester's files hold has come.
    pub(super) fn fetched(&mut self, place: Place, number: u64, contents: Contents, at: Timestamp) {
        let (id, is_full) = (Id(self.wide()), self.is_full(place));
        let process = self.process(place);
        let Some(consuming) = process.consuming.get_mut(&number) else {
            return;
        };
        if is_full {
            consuming.consume.not_built();
            self.report.refused_full += 1;
            return self.consume(place, number);
        }
        let each = contents.iter();
        let listed: Vec<Content> = each.map(|(source, rows)| content(*source, rows)).collect();
        match consuming.consume.built(id, &listed) {
            Ok(()) if listed.is_empty() => self.consume(place, number),
            Ok(()) => self.write(place, id, contents, at, NextAction::Consume(number)),
            Err(_) => {
                if !self.restores {
                    self.ledger
                        .violate("R4: a segment differs from what is in its files");
                }
                self.consume(place, number);
            }
        }
    }

    /// Begins to write a segment; [`World::written`] and [`World::named`] follow.
    pub(super) fn write(
        &mut self,
        place: Place,
        id: Id,
        contents: Contents,
        at: Timestamp,
        then: NextAction,
    ) {
        self.nodes[place].disk.write(id, contents.clone(), at);
        self.process(place).writing.insert(id, (contents, then));
        let after_ms = 1 + self.random.below(20);
        self.timer(place, after_ms, Timer::Written(id));
    }

    pub(super) fn written(&mut self, place: Place, id: Id) {
        self.nodes[place].disk.rename(id);
        let after_ms = 1 + self.random.below(5);
        self.timer(place, after_ms, Timer::Named(Some(id)));
    }

    pub(super) fn named(&mut self, place: Place, id: Option<Id>) {
        self.nodes[place].disk.sync_names();
        let Some(id) = id else {
            return;
        };
        let Some((contents, then)) = self.process(place).writing.remove(&id) else {
            return;
        };
        self.ledger.listed(&contents);
        let process = self.process(place);
        process.holdings.add(id, contents.keys().copied().collect());
        process.version += 1;
        match then {
            NextAction::Consume(number) => self.consume(place, number),
            NextAction::Reply { to, number } => {
                if let Some(offload) = &mut self.process(place).offload {
                    // Nobody has uploaded it, as far as this node has tried.
                    offload.copies.insert(id, u64::MAX);
                }
                self.reply(place, to, number, Reply::Stored);
            }
            NextAction::Retire(inputs) => {
                process.merged.insert(id, inputs);
                self.retire_later(place, id);
            }
            NextAction::Trim(trimming) => {
                process.trimmed.insert(id, trimming);
                self.retire_later(place, id);
            }
        }
    }

    /// What a segment takes the place of is retired a while after it is durable.
    fn retire_later(&mut self, place: Place, output: Id) {
        let most_ms = if self.is_eager { 5_000 } else { 500 };
        let after_ms = 1 + self.random.below(most_ms);
        self.timer(place, after_ms, Timer::Retire(output));
    }

    /// Takes a copy from another store.
    pub(super) fn take(
        &mut self,
        place: Place,
        (to, number): (Place, u64),
        id: Id,
        contents: Contents,
        received: Timestamp,
    ) -> Option<Reply> {
        let attempt = self.attempt();
        if self.nodes[place].disk.is_leaving {
            return Some(Reply::Refused);
        }
        let process = self.process(place);
        let sources: SourceSet = contents.keys().copied().collect();
        let held = process
            .holdings
            .answer(&WhoHolds::new(attempt, sources.clone()));
        if held == sources {
            return Some(Reply::Stored);
        }
        if self.is_full(place) {
            self.report.refused_full += 1;
            return Some(Reply::Refused);
        }
        let process = self.process(place);
        if !process.writing.contains_key(&id) && process.holdings.live().all(|(live, _)| live != id)
        {
            let then = NextAction::Reply { to, number };
            self.write(place, id, contents, received, then);
        }
        None
    }

    /// Says what is held.
    pub(super) fn who_holds(&mut self, place: Place, question: &WhoHolds) -> Reply {
        let node = self.nodes[place].id;
        let holdings = &self.process(place).holdings;
        let sources = holdings.answer(question);
        let listed = holdings.answer_listed(question);
        let mut contents = Vec::new();
        if question.with_contents {
            let mut all = sources.clone();
            all.union_with(listed.as_ref().unwrap_or(&SourceSet::new()));
            let process = self.nodes[place].process.as_ref();
            let offload = process.and_then(|process| process.offload.as_ref());
            for source in all.iter() {
                let mut live = self.nodes[place].disk.named();
                let rows = live.find_map(|(_, segment)| segment.contents.get(&source));
                let mut remote = offload.iter().flat_map(|offload| offload.remote.values());
                let rows = rows.or_else(|| remote.find_map(|o| o.contents.get(&source)));
                contents.extend(rows.map(|rows| content(source, rows)));
            }
        }
        Reply::Held(HoldingsReply {
            attempt: question.attempt,
            node,
            sources,
            listed,
            contents,
        })
    }

    /// Merges a few segments.
    pub(super) fn merge(&mut self, place: Place) {
        if self.is_rewriting(place) {
            return;
        }
        if let Some(id) = self.next_renewal(place) {
            return self.merge_these(place, vec![id], &[]);
        }
        let (mut inputs, remote) = match self.overlapping(place) {
            Some(overlapping) => {
                self.report.overlap_merges += 1;
                overlapping
            }
            None => (self.neighbours(place), Vec::new()),
        };
        for id in &inputs {
            self.notice_damage(place, *id);
        }
        let disk = &self.nodes[place].disk;
        inputs.retain(|id| disk.readable(*id).is_some());
        if inputs.is_empty() || inputs.len() + remote.len() < 2 || self.is_full(place) {
            return;
        }
        self.merge_these(place, inputs, &remote);
    }

    /// A segment of this disk that is to get another name.
    fn next_renewal(&mut self, place: Place) -> Option<Id> {
        if self.is_full(place) {
            return None;
        }
        let id = self.process(place).offload.as_mut()?.renewing.pop_first()?;
        self.notice_damage(place, id);
        let is_live = self
            .process(place)
            .holdings
            .live()
            .any(|(live, _)| live == id);
        (is_live && self.nodes[place].disk.readable(id).is_some()).then_some(id)
    }

    /// Some segments that are worth a merge; with a bucket, of one day and not on their way there.
    fn neighbours(&mut self, place: Place) -> Vec<Id> {
        let process = self.process(place);
        let mut live: Vec<Id> = process.holdings.live().map(|(id, _)| id).collect();
        if let Some(offload) = &process.offload {
            live.retain(|id| !offload.is_leaving(*id));
        }
        if live.len() < 3 {
            return Vec::new();
        }
        let first = self.random.below(live.len() as u64 - 1) as usize;
        let disk = &self.nodes[place].disk;
        let day = |id: &Id| disk.opened(*id).map(|segment| Day::of(segment.received));
        let is_alike = |id: &&Id| self.bucket.is_none() || day(id) == day(&live[first]);
        let next = live[first..].iter().filter(is_alike);
        next.take(3).copied().collect()
    }

    fn merge_these(&mut self, place: Place, inputs: Vec<Id>, remote: &[(Id, Arc<Object>)]) {
        let mut contents = Contents::new();
        let mut received = Timestamp::MIN;
        for id in &inputs {
            if let Some(segment) = self.nodes[place].disk.readable(*id) {
                contents.extend(segment.contents.clone());
                received = received.max(segment.received);
            }
        }
        for (_, object) in remote {
            contents.extend(object.contents.clone());
            received = received.max(object.received);
        }
        if self.mutation == Some(Mutation::SplitSources) {
            let mut rows = contents.values_mut();
            if let Some(rows) = rows.find(|rows| rows.len() > 1) {
                *rows = rows[..rows.len() / 2].to_vec().into();
            }
        }
        self.report.merges += 1;
        let output = Id(self.wide());
        self.write(
            place,
            output,
            contents,
            received,
            NextAction::Retire(inputs),
        );
    }

    /// Retires the inputs of a merge, if that may be.
    pub(super) fn retire_inputs(&mut self, place: Place, output: Id) {
        let is_checked = self.mutation != Some(Mutation::UncheckedRetirement);
        let process = self.process(place);
        let Some(inputs) = process.merged.remove(&output) else {
            return self.drop_trimmed(place, output);
        };
        if !is_checked {
            process.holdings.lose(&inputs);
        } else if process.holdings.retire(&inputs).is_err() {
            self.report.kept_inputs += 1;
            return;
        }
        self.process(place).version += 1;
        let disk = &mut self.nodes[place].disk;
        let mine: Vec<Id> = inputs
            .into_iter()
            .filter(|id| disk.live().any(|(live, _)| live == *id))
            .collect();
        disk.retire(&mine);
        self.ledger.shrunk();
        self.timer(place, 2, Timer::Named(None));
    }

    /// Takes note that a segment is damaged, if it is, as whoever reads it does: it holds nothing from
    /// then on, and stays where it is.
    pub(super) fn notice_damage(&mut self, place: Place, id: Id) {
        let disk = &self.nodes[place].disk;
        let is_damaged = disk.opened(id).is_some_and(|segment| segment.is_damaged);
        let process = self.process(place);
        if !is_damaged || process.holdings.live().all(|(live, _)| live != id) {
            return;
        }
        self.report.damages_noticed += 1;
        if self.mutation != Some(Mutation::AnsweredDamage) {
            let process = self.process(place);
            process.holdings.lose(&[id]);
            process.version += 1;
        }
    }

    /// Removes what is retired, and what has outlived its retention; reads something.
    pub(super) fn purge(&mut self, place: Place) {
        self.nodes[place].disk.purge();
        let live: Vec<Id> = self.process(place).holdings.live().map(|l| l.0).collect();
        if !live.is_empty() {
            let at = self.random.below(live.len() as u64) as usize;
            self.notice_damage(place, live[at]);
        }
        let (now, now_ms) = (self.clock(place), self.now_ms);
        let peers = self.peer_clocks(place);
        let process = self.process(place);
        let clocks = Clocks {
            now,
            now_ms,
            peers: &peers,
            is_vouched_for: false,
        };
        let permit = process.deletion.permit(clocks);
        let by = match (permit, self.mutation) {
            (_, Some(Mutation::UnlimitedDeletion)) => now,
            (Permit::By(by), _) => by,
            (Permit::Ahead(_), _) => return,
        };
        let horizon = by.saturating_add(-RETENTION_NS);
        if let Some(offload) = &mut self.process(place).offload {
            let before = offload.remote.len();
            let old = offload
                .remote
                .extract_if(.., |_, object| object.received < horizon);
            offload.expired.extend(old.map(|(id, _)| id));
            let is_less = offload.remote.len() < before;
            self.process(place).version += u64::from(is_less);
        }
        let live = self.nodes[place].disk.live();
        let old = live.filter(|(_, segment)| segment.received < horizon);
        let old: Vec<Id> = old.map(|(id, _)| id).collect();
        if old.is_empty() {
            return;
        }
        self.process(place).holdings.lose(&old);
        self.process(place).version += 1;
        old.iter().for_each(|id| self.nodes[place].disk.remove(*id));
        self.ledger.shrunk();
    }
}
