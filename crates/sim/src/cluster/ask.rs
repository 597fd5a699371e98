//! Questions to the whole cluster, as a coordinator asks them, and what nodes reply.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use logpond_cluster::births::silent_max;
use logpond_cluster::hedge::{CallOutcome, Outcome, Races};
use logpond_cluster::question::{Collection, Question, Task, TaskId};
use logpond_cluster::{
    CurrentIncarnation, HeldJournal, HeldSegment, IndexedInventory, Inventory, NodeId, ProcessId,
    Share,
};
use logpond_record::{Id, SourceId, TimeRange, Timestamp};
use logpond_segment::batches::{BatchId, RetryCopy, yielding};
use logpond_segment::sources::SourceSet;

use super::answer::Answer;
use super::bucket::Object;
use super::disk::{Batch, Frame, Rows};
use super::message::{InventoryView, Place, Reply, ReplyTarget, Request};
use super::remote::{ReadTask, count};
use super::world::{Mutation, World};

/// A question under way.
pub(super) struct PendingQuestion {
    /// As much was acknowledged when it began.
    acked_count: usize,
    collection: Option<Collection>,
    question: Option<Question>,
    /// Nodes that were asked for an inventory and have not been heard.
    asked: BTreeSet<NodeId>,
    fresh: Vec<Arc<InventoryView>>,
    /// The batches of every source that is visible, as it was when it was first seen.
    visible: BTreeMap<SourceId, Rows>,
    shadowed: SourceSet,
    races: Races<Scanned>,
    got: Vec<(SourceId, Frame)>,
    open: SourceSet,
    /// What of others' in the bucket a complete answer counts.
    foreign: SourceSet,
    /// Whether something was read from the bucket.
    has_remote: bool,
}

/// The sources that a node has counted, and what it has read of them.
type Scanned = (SourceSet, Vec<(SourceId, Frame)>);

impl World {
    /// Begins a question.
    pub(super) fn ask(&mut self, place: Place) {
        if !self.process(place).asking.is_empty() || !self.nodes[place].disk.is_joined {
            return;
        }
        let query = self.random.draw();
        let registry = self.process(place).registry.clone();
        let asking = PendingQuestion {
            acked_count: self.ledger.acked_count(),
            collection: Some(Collection::new(registry, [])),
            question: None,
            asked: BTreeSet::new(),
            fresh: Vec::new(),
            visible: BTreeMap::new(),
            shadowed: SourceSet::new(),
            races: Races::default(),
            got: Vec::new(),
            open: SourceSet::new(),
            foreign: self.expected_foreign(),
            has_remote: false,
        };
        self.process(place).asking.insert(query, asking);
        self.collect(place, query);
    }

    fn collect(&mut self, place: Place, query: u64) {
        let Some(asking) = self.process(place).asking.get_mut(&query) else {
            return;
        };
        let to_ask = asking.collection.as_ref().map(Collection::to_ask);
        let mut to_ask = to_ask.unwrap_or_default();
        to_ask.retain(|node| asking.asked.insert(*node));
        if asking.asked.is_empty() {
            let again = asking.collection.as_mut().map(Collection::to_ask_again);
            to_ask = again.unwrap_or_default();
            asking.asked.extend(&to_ask);
        }
        if asking.asked.is_empty() {
            return self.first_plan(place, query);
        }
        for node in to_ask {
            let waiting = ReplyTarget::Collect { query, node };
            self.request(place, self.place_of(node), Request::Inventory, waiting);
        }
    }

    /// A node has said what it holds, or nothing.
    pub(super) fn collected(
        &mut self,
        place: Place,
        query: u64,
        node: NodeId,
        seen: Option<Arc<InventoryView>>,
    ) {
        let process = self.process(place);
        let last = process
            .seen
            .get(&node)
            .map(|(seen, _)| seen.indexed.clone());
        let Some(asking) = process.asking.get_mut(&query) else {
            return;
        };
        asking.asked.remove(&node);
        asking.fresh.extend(seen.clone());
        let Some(collection) = &mut asking.collection else {
            if asking.asked.is_empty() {
                self.plan_again(place, query);
            }
            return;
        };
        match seen {
            Some(seen) => collection.answered(seen.indexed.clone()),
            None => collection.silent(node, last),
        }
        self.collect(place, query);
    }

    fn first_plan(&mut self, place: Place, query: u64) {
        let (me, copies) = (self.nodes[place].id, self.copies);
        let counts_retries = self.mutation == Some(Mutation::CountedRetries);
        let Some(asking) = self.process(place).asking.get_mut(&query) else {
            return;
        };
        let Some(collection) = asking.collection.take() else {
            return;
        };
        let collected = collection.finish();
        let mut heard = asking.fresh.iter().map(|seen| seen.indexed.inventory());
        let is_unheard_of = collected.silent_with_bucket.is_empty()
            && !heard.any(|inventory| inventory.has_bucket());
        if is_unheard_of {
            // Neither has anybody answered who knows of a bucket, nor has this node ever heard of one.
            asking.foreign = SourceSet::new();
        }
        for seen in std::mem::take(&mut asking.fresh) {
            for (source, rows) in &seen.batches {
                asking.see(*source, rows);
            }
            let journal = &seen.indexed.inventory().journal;
            let open = journal.iter().filter(|file| file.is_open);
            open.for_each(|file| asking.open.insert(file.source));
        }
        if !counts_retries {
            let copies: SourceSet = asking.visible.keys().copied().collect();
            asking.shadowed = asking.yielding(&copies);
        }
        let (question, tasks) = Question::new(
            collected,
            asking.shadowed.clone(),
            TimeRange::ALL,
            Some(me),
            silent_max(copies),
        );
        asking.question = Some(question);
        self.read(place, query, tasks);
    }

    fn plan_again(&mut self, place: Place, query: u64) {
        let counts_retries = self.mutation == Some(Mutation::CountedRetries);
        let Some(asking) = self.process(place).asking.get_mut(&query) else {
            return;
        };
        let fresh = std::mem::take(&mut asking.fresh);
        let Some(question) = &mut asking.question else {
            return;
        };
        let indexed: Vec<Arc<IndexedInventory>> =
            fresh.iter().map(|seen| seen.indexed.clone()).collect();
        let new = question.newly_visible(&indexed);
        if !counts_retries {
            asking.judge_new(&new, &fresh);
        }
        let Some(question) = &mut asking.question else {
            return;
        };
        let tasks = question.replan(indexed);
        self.read(place, query, tasks);
    }

    fn read(&mut self, place: Place, query: u64, tasks: Vec<Task>) {
        let is_hedged = self.random.one_in(6);
        let mut all = tasks;
        if let Some(asking) = self.process(place).asking.get_mut(&query) {
            all.iter().for_each(|task| asking.races.begin(task.clone()));
            let late = all.first().filter(|_| is_hedged).map(|task| task.id);
            if let (Some(late), Some(question)) = (late, &mut asking.question) {
                let others = question.hedge(late);
                if !others.is_empty() {
                    asking.races.hedge(late, others.clone());
                    all.extend(others);
                }
            }
        }
        if all.is_empty() {
            return self.finish(place, query);
        }
        for task in all {
            let waiting = ReplyTarget::Scan {
                query,
                task: task.id,
            };
            let request = Request::Scan {
                share: task.share,
                open: task
                    .open
                    .into_iter()
                    .map(|(source, reach)| (source, reach.bytes))
                    .collect(),
            };
            self.request(place, self.place_of(task.node), request, waiting);
        }
    }

    /// Takes note of an answer for which the bucket was asked.
    pub(super) fn note_remote(&mut self, place: Place, query: u64, is_remote: bool) {
        if let Some(asking) = self.process(place).asking.get_mut(&query) {
            asking.has_remote |= is_remote;
        }
    }

    /// A task is done, or is not going to be.
    pub(super) fn scanned(
        &mut self,
        place: Place,
        query: u64,
        task: TaskId,
        done: Option<Scanned>,
    ) {
        let Some(asking) = self.process(place).asking.get_mut(&query) else {
            return;
        };
        let Some(question) = &mut asking.question else {
            return;
        };
        let outcome = done.map_or(Outcome::Failed, Outcome::Done);
        for ended in asking.races.ended(question, task, outcome) {
            if let CallOutcome::Done(task, (counted, frames)) = ended
                && question.receipt(task.id, &counted)
            {
                asking.got.extend(frames);
            }
        }
        if question.waiting().next().is_some() {
            return;
        }
        if question.missing().is_empty() {
            return self.finish(place, query);
        }
        let nodes = self.known(place);
        if let Some(asking) = self.process(place).asking.get_mut(&query) {
            asking.asked = nodes.iter().copied().collect();
        }
        for node in nodes {
            let waiting = ReplyTarget::Collect { query, node };
            self.request(place, self.place_of(node), Request::Inventory, waiting);
        }
    }

    fn finish(&mut self, place: Place, query: u64) {
        let (is_blind, is_bucket_blind) = (
            self.mutation == Some(Mutation::BlindCompleteness),
            self.mutation == Some(Mutation::BlindBucket),
        );
        let Some(asking) = self.process(place).asking.remove(&query) else {
            return;
        };
        let Some(question) = asking.question else {
            return;
        };
        let counted = question.counted().clone();
        let mut completeness = question.finish();
        if is_bucket_blind {
            completeness.unread.clear();
        }
        if is_blind {
            completeness.tails.clear();
            completeness.hiding.clear();
        }
        self.report.answers += 1;
        self.report.unread += u64::from(!completeness.unread.is_empty());
        if completeness.is_complete() {
            self.report.complete += 1;
            self.report.remote_complete += u64::from(asking.has_remote);
        } else {
            self.report.incomplete += 1
        }
        self.judge(&Answer {
            acked_count: asking.acked_count,
            counted,
            shadowed: asking.shadowed,
            open: asking.open,
            foreign: asking.foreign,
            got: asking.got,
            completeness,
        });
    }

    /// What a node holds, with the batches in it.
    pub(super) fn inventory(&mut self, place: Place) -> Arc<InventoryView> {
        let node = self.nodes[place].id;
        let process = self.process(place);
        let mut inventory = Inventory::empty(node, ProcessId(u128::from(process.number)));
        inventory.version = process.version;
        inventory.registry = Arc::new(process.registry.clone());
        inventory.living = process.life.as_ref().map(|life| CurrentIncarnation {
            incarnation: life.incarnation,
            end: life.next,
        });
        let live: Vec<_> = process.holdings.live().map(|(id, _)| id).collect();
        let disk = &self.nodes[place].disk;
        let mut batches = BTreeMap::new();
        for id in live {
            let Some(segment) = disk.opened(id) else {
                continue;
            };
            let frames = segment.contents.values();
            Arc::make_mut(&mut inventory.segments).push(HeldSegment {
                id,
                digest: id.0,
                bytes: 1,
                rows: frames.flat_map(|rows| rows.iter()).map(|f| f.rows).sum(),
                time_min: Timestamp(0),
                time_max: Timestamp(0),
                received_min: segment.received,
                received_max: segment.received,
                is_remote: false,
                sources: segment.sources(),
            });
            batches.extend(segment.contents.clone());
        }
        let stored = Arc::new(IndexedInventory::new(inventory.clone()));
        inventory.bucket = self.bucket_view(place);
        if let Some(offload) = self.nodes[place]
            .process
            .as_ref()
            .and_then(|p| p.offload.as_ref())
        {
            for (id, object) in &offload.remote {
                Arc::make_mut(&mut inventory.segments).push(remote_segment(*id, object));
                for (source, rows) in &object.contents {
                    batches.entry(*source).or_insert_with(|| rows.clone());
                }
            }
        }
        let disk = &self.nodes[place].disk;
        for (source, file) in disk.journal() {
            inventory.journal.push(HeldJournal {
                source,
                bytes: file.synced as u64,
                rows: file.synced as u64,
                received_min: file.received,
                received_max: file.received,
                last: Id(0),
                is_open: !file.is_closed,
            });
            let frames = file.frames[..file.synced].to_vec();
            batches.entry(source).or_insert(frames.into());
        }
        let indexed = Arc::new(IndexedInventory::new(inventory));
        Arc::new(InventoryView {
            indexed,
            stored,
            batches,
            is_leaving: disk.is_leaving,
        })
    }

    /// Does a share of a question.
    pub(super) fn scan(
        &mut self,
        place: Place,
        (to, number): (Place, u64),
        share: &Share,
        open: &BTreeMap<SourceId, u64>,
    ) -> Option<Reply> {
        let ignores_exclusions = self.mutation == Some(Mutation::IgnoredExclusions);
        share
            .segments
            .iter()
            .for_each(|wanted| self.notice_damage(place, wanted.id));
        let disk = &self.nodes[place].disk;
        let process = self.nodes[place].process.as_ref();
        let offload = process.and_then(|process| process.offload.as_ref());
        let mut counted = SourceSet::new();
        let mut frames = Vec::new();
        let mut left = BTreeMap::new();
        for wanted in &share.segments {
            let Some(segment) = disk.readable(wanted.id) else {
                if offload.is_some_and(|offload| offload.remote.contains_key(&wanted.id)) {
                    left.insert(wanted.id, wanted.excluded.clone());
                }
                continue;
            };
            let into = (&mut counted, &mut frames);
            count(
                &segment.contents,
                &wanted.excluded,
                ignores_exclusions,
                into,
            );
        }
        for source in share.journal.iter() {
            let Some(file) = disk.file(source) else {
                continue;
            };
            let limit = open.get(&source).map_or(file.synced, |n| *n as usize);
            let read = &file.frames[..limit.min(file.synced)];
            counted.insert(source);
            frames.extend(read.iter().map(|frame| (source, *frame)));
        }
        if left.is_empty() {
            return Some(Reply::Scanned {
                counted,
                frames,
                is_remote: false,
            });
        }
        let reading = ReadTask {
            to,
            number,
            counted,
            frames,
            left,
        };
        self.read_remote(place, reading);
        None
    }
}

/// A segment of the bucket as an inventory names it.
fn remote_segment(id: Id, object: &Object) -> HeldSegment {
    let listed = object.listed(id);
    HeldSegment {
        id,
        digest: id.0,
        bytes: 1,
        rows: listed.rows,
        time_min: Timestamp(0),
        time_max: Timestamp(0),
        received_min: object.received,
        received_max: object.received,
        is_remote: true,
        sources: listed.sources,
    }
}

impl PendingQuestion {
    /// Takes note of a source; of several views of one the longest.
    fn see(&mut self, source: SourceId, rows: &Rows) {
        let seen = self.visible.entry(source).or_default();
        if seen.len() < rows.len() {
            *seen = rows.clone();
        }
    }

    /// The batch of a source that was sent again.
    fn retry(&self, source: SourceId) -> Option<Frame> {
        let first = self.visible.get(&source)?.first()?;
        (first.attempt > 0).then_some(*first)
    }

    /// Of some sources those that do not count: others that are visible hold their batches (R10).
    fn yielding(&self, sources: &SourceSet) -> SourceSet {
        let frames = self.visible.values().flat_map(|rows| rows.iter());
        let originals: BTreeSet<Batch> = frames
            .filter(|frame| frame.attempt == 0)
            .map(|frame| frame.batch)
            .collect();
        let unshadowed = self.visible.keys().copied();
        let unshadowed = unshadowed.filter(|source| !self.shadowed.contains(*source));
        let copies: Vec<RetryCopy> = unshadowed
            .filter_map(|source| self.retry(source).map(|frame| (source, frame)))
            .map(|(source, frame)| RetryCopy {
                source,
                id: BatchId {
                    epoch: u128::from(frame.batch.epoch),
                    sequence: frame.batch.sequence,
                    attempt: frame.attempt,
                    first_sent: Timestamp(0),
                    more: 0,
                },
            })
            .collect();
        let is_original = |id: &BatchId| {
            originals.contains(&Batch {
                epoch: id.epoch as u64,
                sequence: id.sequence,
            })
        };
        yielding(&copies, is_original).common(sources)
    }

    /// Decides on sources that became visible after the first plan: what others of them are counted
    /// may not be counted again.
    fn judge_new(&mut self, new: &SourceSet, fresh: &[Arc<InventoryView>]) {
        // Batches of which a copy that was sent again counts.
        let counting = self
            .visible
            .iter()
            .filter(|(source, _)| !self.shadowed.contains(**source) && !new.contains(**source));
        let counting: BTreeSet<Batch> = counting
            .flat_map(|(_, rows)| rows.iter())
            .filter(|frame| frame.attempt > 0)
            .map(|frame| frame.batch)
            .collect();
        for seen in fresh {
            for (source, rows) in seen.batches.iter().filter(|(s, _)| new.contains(**s)) {
                self.see(*source, rows);
            }
        }
        let (mut barred, mut shadowed) = (SourceSet::new(), SourceSet::new());
        let mut retries = SourceSet::new();
        for source in new.iter() {
            let rows = self.visible.get(&source).cloned().unwrap_or_default();
            let is_retry = self.retry(source).is_some();
            let mut frames = rows.iter();
            let is_counting = frames.any(|frame| counting.contains(&frame.batch));
            match (is_counting, is_retry) {
                (true, true) => shadowed.insert(source),
                (true, false) => barred.insert(source),
                (false, true) => retries.insert(source),
                (false, false) => {}
            }
        }
        shadowed.union_with(&self.yielding(&retries));
        self.shadowed.union_with(&shadowed);
        if let Some(question) = &mut self.question {
            question.bar(&barred);
            question.shadow(&shadowed);
        }
    }
}
