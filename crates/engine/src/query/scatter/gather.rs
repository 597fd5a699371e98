//! What all nodes hold at the beginning of an answer, and what of it the answer has counted.
//!
//! What is asked of whom, and what may be claimed, is decided by [`Question`]; here are the calls.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use logpond_cluster::question::{Collection, CollectionResult, Question, Scene, Task};
use logpond_cluster::{Completeness, IndexedInventory, NodeId, Registry, Tail, Target};
use logpond_record::{Id, TimeRange, Timestamp};
use logpond_segment::batches::{BatchSet, RetryCopy, yielding};
use logpond_segment::sources::SourceSet;

use super::super::Trailer;
use super::super::positions::{Positions, Region};
use super::calls::Report;
use super::{Cluster, Nodes, Unreachable};
use logpond_host::side_by_side::side_by_side;

/// While more nodes than this are being asked what they hold, all are waited for: each is a thread for
/// as long as such a call may take, also when nobody waits for it any more.
const IN_FLIGHT_MAX: usize = 256;

/// What a node says that it holds.
type Inventory = Result<Arc<IndexedInventory>, Unreachable>;

/// The nodes of one answer.
pub(super) struct Participants<'a> {
    pub(super) cluster: &'a Cluster,
    /// What is to be counted: without copies of batches that others hold.
    pub(super) target: Arc<Target>,
    collected: CollectionResult,
    stored: Arc<SourceSet>,
    /// Where others should be whom nobody has met: what they hold is unknown.
    unmet: Vec<String>,
    state: RefCell<State>,
}

struct State {
    /// Nodes that failed at their part; they are asked for no other.
    failed: BTreeSet<NodeId>,
    /// What every reading so far has counted.
    counted: Option<SourceSet>,
    /// What a follower need not show after the last reading.
    positions: Positions,
    /// Batches that were read as they were first sent.
    batches: BatchSet,
}

/// The sources that repeat batches which others hold, wherever (CLUSTER R10). Asks nobody where
/// there are no copies at all, as is usual. Also gives the nodes that did not say: they may have the
/// originals, so nothing of theirs may be counted beside the copies.
fn repeated(nodes: &dyn Nodes, held: &[Arc<IndexedInventory>]) -> (SourceSet, BTreeSet<NodeId>) {
    let retries = held.iter().flat_map(|indexed| &indexed.inventory().retries);
    let copies: Vec<RetryCopy> = retries.copied().collect();
    if copies.is_empty() {
        return (SourceSet::new(), BTreeSet::new());
    }
    let mut wanted = BatchSet::default();
    for copy in &copies {
        wanted.insert(copy.id.epoch, copy.id.sequence);
    }
    let names: Vec<NodeId> = held
        .iter()
        .map(|indexed| indexed.inventory().node)
        .collect();
    let (found, unsaid) = originals(nodes, &names, &wanted);
    let mut originals = BatchSet::default();
    found
        .iter()
        .for_each(|(_, found)| originals.union_with(found));
    let repeated = yielding(&copies, |id| originals.contains(id.epoch, id.sequence));
    (repeated, unsaid)
}

/// Asks these nodes at once which of some batches they hold as they were first sent; gives what they
/// say, and those that do not.
pub(super) fn originals(
    nodes: &dyn Nodes,
    names: &[NodeId],
    wanted: &BatchSet,
) -> (Vec<(NodeId, BatchSet)>, BTreeSet<NodeId>) {
    let (mut said, mut unsaid) = (Vec::new(), BTreeSet::new());
    let asked = side_by_side(names.iter().copied(), |node| nodes.originals(node, wanted));
    for (node, answer) in asked {
        match answer {
            Some(Ok(found)) => said.push((node, found)),
            _ => drop(unsaid.insert(node)),
        }
    }
    (said, unsaid)
}

/// Asks nodes what they hold.
struct InventoryCollector<'a> {
    cluster: &'a Cluster,
    collection: Collection,
    /// Nodes that have not answered, and since when they are asked.
    waiting: BTreeMap<NodeId, Instant>,
    sender: Sender<(NodeId, Inventory)>,
}

/// What all nodes hold, as they say at this moment. A late one is not waited for if what the others
/// hold is complete without it, which follows from their registries (CLUSTER R9); `waits` is whether
/// it is waited for nevertheless.
pub(super) fn collect(cluster: &Cluster, waits: bool) -> CollectionResult {
    let nodes = &*cluster.nodes;
    let (sender, answers) = channel();
    let mut asking = InventoryCollector {
        cluster,
        collection: Collection::new(Registry::clone(&nodes.registry()), nodes.others()),
        waiting: BTreeMap::new(),
        sender,
    };
    let patience = cluster.hedging.inventory_patience();
    let mut is_patient = !waits;
    loop {
        asking.ask();
        let Some(since) = asking.waiting.values().min() else {
            break;
        };
        let left = if is_patient {
            patience.saturating_sub(since.elapsed())
        } else {
            // Calls end by themselves.
            Duration::MAX
        };
        match answers.recv_timeout(left) {
            Ok((node, answer)) => asking.take(node, answer),
            Err(RecvTimeoutError::Timeout) => is_patient = false,
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if !waits && !is_patient && asking.may_pass_over() {
            cluster.hedging.pass_over(asking.waiting.len());
            break;
        }
    }
    let mut collection = asking.silenced();
    // Taken last: what this node has handed over meanwhile is in one of them at least.
    collection.answered(nodes.own_inventory());
    collection.finish()
}

impl InventoryCollector<'_> {
    /// Asks those that were not asked yet, and in the end those whose word was overtaken.
    fn ask(&mut self) {
        let own = self.cluster.nodes.own();
        let to_ask = self.collection.to_ask().into_iter();
        let is_new = |node: &NodeId| *node != own && !self.waiting.contains_key(node);
        let mut new: Vec<NodeId> = to_ask.filter(is_new).collect();
        if new.is_empty() && self.waiting.is_empty() {
            new = self.collection.to_ask_again();
        }
        for node in new {
            let (nodes, sender) = (Arc::clone(&self.cluster.nodes), self.sender.clone());
            self.waiting.insert(node, Instant::now());
            let in_flight = self.cluster.hedging.begin_inventory();
            let panicked = Err(Unreachable {
                why: "nothing was heard of the thread that asked".to_owned(),
            });
            let mut report = Report::new(sender, (node, panicked));
            let spawned = thread::Builder::new()
                .name("lp-ask".to_owned())
                .spawn(move || {
                    let _in_flight = in_flight;
                    report.say((node, nodes.inventory(node)));
                });
            // Without a thread its report is that it is silent.
            drop(spawned);
        }
    }

    fn take(&mut self, node: NodeId, answer: Inventory) {
        if let Some(since) = self.waiting.remove(&node) {
            self.cluster.hedging.note_inventory(since.elapsed());
        }
        match answer {
            Ok(indexed) => self.collection.answered(indexed),
            Err(_) => self.note_silent(node),
        }
    }

    fn note_silent(&mut self, node: NodeId) {
        let last = self.cluster.nodes.last_inventory(node);
        self.collection.silent(node, last);
    }

    /// Whether those that have answered hold everything that there is, and know that they do.
    fn may_pass_over(&self) -> bool {
        let nodes = &*self.cluster.nodes;
        if self.waiting.is_empty() || self.cluster.hedging.inventories() > IN_FLIGHT_MAX {
            return false;
        }
        let mut without = self.silenced();
        without.answered(nodes.own_inventory());
        let collected = without.finish();
        let held = collected.answered.iter();
        let held = held.fold(SourceSet::new(), |mut held, indexed| {
            held.union_with(&indexed.inventory().sources());
            held
        });
        let target = collected.target();
        let (silent, max) = (&collected.silent, nodes.silent_max());
        Completeness::judge(&target, &held, &[], silent, max).is_complete()
    }

    /// What is known if nobody else answers.
    fn silenced(&self) -> Collection {
        let mut collection = self.collection.clone();
        for node in self.waiting.keys() {
            collection.silent(*node, self.cluster.nodes.last_inventory(*node));
        }
        collection
    }
}

impl<'a> Participants<'a> {
    /// Asks all nodes at once what they hold; those that were heard of from them, too.
    pub(super) fn new(cluster: &'a Cluster) -> Participants<'a> {
        let nodes = &*cluster.nodes;
        // Asked first: who is met meanwhile may not be asked any more.
        let unmet = nodes.unmet();
        let collected = collect(cluster, false);
        let stored = cluster.stored(&collected.answered);
        let mut target = collected.target_over(&stored);
        let (repeated, unsaid) = repeated(nodes, &collected.answered);
        target.wanted = target.wanted.without(&repeated);
        Participants {
            cluster,
            target: Arc::new(target),
            collected,
            stored,
            unmet,
            state: RefCell::new(State {
                failed: unsaid,
                counted: None,
                positions: Positions::default(),
                batches: BatchSet::default(),
            }),
        }
    }

    /// A reading of everything in a range, and who is to do what of it.
    pub(super) fn question(&self, range: TimeRange) -> (Question, Vec<Task>) {
        let nodes = &*self.cluster.nodes;
        let scene = Scene {
            answered: self.collected.answered.clone(),
            silent: self.collected.silent.clone(),
            target: Arc::clone(&self.target),
            stored: Arc::clone(&self.stored),
            failed: self.state.borrow().failed.clone(),
        };
        let shadowed = SourceSet::new();
        Question::over(
            scene,
            shadowed,
            range,
            Some(nodes.own()),
            nodes.silent_max(),
        )
    }

    /// Whether it is known before anything was read that the answer will not be complete.
    pub(super) fn lacks_something(&self, range: TimeRange) -> bool {
        let (question, tasks) = self.question(range);
        let mut counted = question.counted().clone();
        for task in tasks {
            counted.union_with(&task.share.sources);
        }
        let mut trailer = Trailer::default();
        self.judge_counted(&counted, &mut trailer);
        trailer.missing_count > 0
    }

    /// Plans again for what was not done, by what nodes hold now.
    pub(super) fn plan_again(&self, question: &mut Question, undone: &SourceSet) -> Vec<Task> {
        let fresh = self.renew(question);
        let new = question.newly_visible(&fresh);
        if !new.is_empty() {
            let (repeated, unsaid) = repeated(&*self.cluster.nodes, &fresh);
            unsaid.into_iter().for_each(|node| question.avoid(node));
            if repeated.is_disjoint(question.counted()) {
                question.shadow(&repeated.common(&new))
            } else {
                // A copy was counted whose original is in something of this.
                question.bar(&new)
            }
        }
        question.replan_of(undone, fresh)
    }

    /// What the nodes hold now that have not failed; those that do not say have.
    fn renew(&self, question: &mut Question) -> Vec<Arc<IndexedInventory>> {
        let nodes = &*self.cluster.nodes;
        let own = nodes.own();
        let known = self.collected.answered.iter();
        let known = known.map(|indexed| indexed.inventory().node);
        let able = known.filter(|node| *node != own && !question.failed_nodes().contains(node));
        let asked: Vec<NodeId> = able.collect();
        let mut fresh = Vec::new();
        for (node, answer) in side_by_side(asked, |node| nodes.inventory(node)) {
            match answer {
                Some(Ok(indexed)) => fresh.push(indexed),
                _ => question.avoid(node),
            }
        }
        fresh.push(nodes.own_inventory());
        fresh
    }

    /// Takes note of what a reading has counted, and of who failed at it: the answer has counted what
    /// all of its readings have.
    pub(super) fn note(&self, question: &Question) {
        let mut state = self.state.borrow_mut();
        let accounted = question.accounted();
        state.counted = Some(match state.counted.take() {
            Some(before) => before.common(&accounted),
            None => accounted,
        });
        state.failed.extend(question.failed_nodes());
    }

    /// Takes note of what a reading has shown; what earlier ones have shown was for it only.
    pub(super) fn note_positions(&self, positions: Positions) {
        self.state.borrow_mut().positions = positions;
    }

    /// Takes note of batches that were read as they were first sent.
    pub(super) fn note_batches(&self, batches: &BatchSet) {
        self.state.borrow_mut().batches.union_with(batches);
    }

    /// The batches that were read as they were first sent.
    pub(super) fn batches(&self) -> BatchSet {
        self.state.borrow().batches.clone()
    }

    /// Where a follower goes on. Of what could not be read, nothing that arrived before `since` is
    /// to be shown, if that is given.
    pub(super) fn positions(&self, since: Option<Timestamp>) -> Positions {
        let state = self.state.borrow();
        let mut positions = state.positions.clone();
        positions.note_originals(&state.batches);
        let inventories = self.collected.answered.iter().map(|i| i.inventory());
        for copy in inventories.flat_map(|inventory| &inventory.retries) {
            let batch = (copy.id.epoch, copy.id.sequence);
            if positions.is_begun(copy.source) && !positions.has_original(batch) {
                positions.copies.note(batch);
            }
        }
        if let Some(since) = since {
            let since = Id(u128::from(since.unix_ms().max(0).unsigned_abs()) << 80);
            for tail in &self.target.tails {
                positions.set_floor(tail.incarnation, since);
            }
            let unread = positions.open(&self.target.wanted);
            let unread = unread.without(&positions.begun(&unread));
            for source in unread.iter() {
                positions.pass(source, Region::arrived(since));
            }
        }
        positions
    }

    /// Says in the trailer what the answer does not have.
    pub(super) fn judge(&self, trailer: &mut Trailer) {
        let state = self.state.borrow();
        let nothing = SourceSet::new();
        let counted = state.counted.as_ref().unwrap_or(&nothing);
        self.judge_counted(counted, trailer);
        let nodes = &*self.cluster.nodes;
        let silent = self.collected.silent.iter().chain(&state.failed);
        trailer.silent = silent.map(|node| nodes.name(*node)).collect();
    }

    fn judge_counted(&self, counted: &SourceSet, trailer: &mut Trailer) {
        let held: Vec<&IndexedInventory> = self.collected.answered.iter().map(|i| &**i).collect();
        judge(
            &*self.cluster.nodes,
            (&self.target, counted),
            &held,
            (&self.collected.silent, &self.unmet),
            trailer,
        );
    }
}

/// Says in a trailer what an answer does not have that has counted some sources, while some nodes
/// were silent and none was met yet at some addresses.
pub(super) fn judge(
    nodes: &dyn Nodes,
    (target, counted): (&Target, &SourceSet),
    held: &[&IndexedInventory],
    (silent, unmet): (&[NodeId], &[String]),
    trailer: &mut Trailer,
) {
    let completeness = Completeness::judge(target, counted, held, silent, nodes.silent_max());
    for gap in &completeness.gaps {
        trailer.miss(format_args!("{}: {gap}", name(nodes, gap.node)));
    }
    for tail in &completeness.tails {
        trailer.miss(format_args!("{}: {tail}", name(nodes, tail.node)));
    }
    for node in &completeness.hiding {
        trailer.miss(format_args!("{} does not answer", nodes.name(*node)));
    }
    for node in &completeness.unread {
        let name = nodes.name(*node);
        trailer.miss(format_args!(
            "what may be in the bucket of {name}, which no node that answered has read whole"
        ));
    }
    if !unmet.is_empty() {
        let addresses = unmet.join(", ");
        trailer.miss(format_args!(
            "what nodes hold that were not met yet, at {addresses}"
        ));
    }
    for addresses in nodes.twins() {
        trailer.miss(format_args!(
            "what one of the nodes at {addresses} has: they run on copies of one data directory; stop them, remove \
             cluster/node from one of the copies, and start them again"
        ));
    }
    trailer.lost.extend(losses(nodes, &completeness.lost));
}

/// Losses for good, in words.
pub(super) fn losses(nodes: &dyn Nodes, lost: &[Tail]) -> Vec<String> {
    let lost = lost.iter();
    lost.map(|tail| format!("{}: {tail}", name(nodes, tail.node)))
        .collect()
}

fn name(nodes: &dyn Nodes, node: Option<NodeId>) -> String {
    match node {
        Some(node) => nodes.name(node),
        None => "a node that nobody has heard of".to_owned(),
    }
}
