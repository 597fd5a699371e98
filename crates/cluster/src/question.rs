//! How a coordinator asks the whole cluster and knows what it may claim (CLUSTER R7, R9).
//!
//! ```text
//! Collection ── whom to ask ─▶ inventories, silences ─▶ Question ── tasks ─▶ receipts
//!                                                          ▲  └─ missing ─▶ fresh inventories ─┐
//!                                                          └───────────── at most so many times ┘
//! ```
//!
//! Invariants:
//! - Inventories are of after the question was begun; older ones only say whom else to ask and
//!   which incarnations there are.
//! - What is to be counted is fixed by the first collection. Planning again never adds to it, so
//!   that two questions with one target count the same, whatever way they took.
//! - Two partial results are merged only if their receipts share no source. A partial result
//!   without a receipt, or with one that names what was not asked for, is thrown away whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use logpond_record::{Id, SourceId, TimeRange};
use logpond_segment::sources::SourceSet;

use crate::registry::RegistryEntry;
use crate::target::is_bucket_read;
use crate::{
    Completeness, Cover, HeldJournal, IndexedInventory, Inventory, NodeId, ProcessId, Registry,
    Share, Target,
};

/// How often a question plans again what is missing: once for each of a few nodes that die, merge or
/// hand over under it. What is missing after so many is reported.
pub const ROUNDS_MAX: u32 = 8;

/// Gathers what all nodes hold that anybody knows of.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Everything that was heard of nodes and incarnations.
    registry: Registry,
    /// Digests of the registries in that: nearly all nodes have heard the same.
    digests: BTreeSet<u128>,
    nodes: BTreeMap<NodeId, NodeAnswer>,
    /// Nodes that were asked again; none is a third time.
    again: BTreeSet<NodeId>,
}

/// The latest answer of a node.
#[derive(Clone, Debug)]
enum NodeAnswer {
    /// It has yet to answer or to be given up.
    Nothing,
    Inventory(Arc<IndexedInventory>),
    /// It does not answer. What it knew when it answered last.
    Silence(Option<Arc<IndexedInventory>>),
}

impl Collection {
    /// Begins with what the coordinator knows itself, and with nodes that it has heard of in other
    /// ways.
    pub fn new(registry: Registry, others: impl IntoIterator<Item = NodeId>) -> Collection {
        let others = others.into_iter().map(|node| (node, NodeAnswer::Nothing));
        let mut collection = Collection {
            registry,
            digests: BTreeSet::new(),
            nodes: others.collect(),
            again: BTreeSet::new(),
        };
        collection.add_known();
        collection
    }

    fn add_known(&mut self) {
        let known = self.registry.nodes();
        for (node, _) in known.filter(|(_, known)| !known.is_forgotten()) {
            self.nodes.entry(node).or_insert(NodeAnswer::Nothing);
        }
    }

    /// Whom to ask for an inventory. Answers may name further nodes, so this is to be called again
    /// until there is nobody.
    pub fn to_ask(&self) -> Vec<NodeId> {
        let each = self.nodes.iter();
        each.filter(|(_, heard)| matches!(heard, NodeAnswer::Nothing))
            .map(|(node, _)| *node)
            .collect()
    }

    /// Whom to ask again once all were heard: nodes that had begun to take records in after they had
    /// answered, as others say that answered later. What they took in would be unknown although they
    /// are there. Each is named once.
    pub fn to_ask_again(&mut self) -> Vec<NodeId> {
        let births = self.registry.incarnations();
        let births = births.filter(|(_, fate)| fate.sealed.is_none());
        let overtaken = births.filter_map(|(incarnation, fate)| {
            let Some(NodeAnswer::Inventory(said)) = self.nodes.get(&fate.node) else {
                return None;
            };
            let is_news = said.inventory().registry.fate(incarnation).is_none();
            is_news.then_some(fate.node)
        });
        let overtaken: BTreeSet<NodeId> = overtaken.collect();
        let new: Vec<NodeId> = overtaken.difference(&self.again).copied().collect();
        self.again.extend(&new);
        new
    }

    /// Takes an inventory that was made, or found to be unchanged, after the question had begun.
    pub fn answered(&mut self, indexed: Arc<IndexedInventory>) {
        self.learn(&indexed);
        let node = indexed.inventory().node;
        self.nodes.insert(node, NodeAnswer::Inventory(indexed));
    }

    /// Notes that a node does not answer; `last` is what it said at an earlier time.
    pub fn silent(&mut self, node: NodeId, last: Option<Arc<IndexedInventory>>) {
        if let Some(last) = &last {
            self.learn(last);
        }
        if !matches!(self.nodes.get(&node), Some(NodeAnswer::Inventory(_))) {
            self.nodes.insert(node, NodeAnswer::Silence(last));
        }
    }

    fn learn(&mut self, indexed: &IndexedInventory) {
        if self.digests.insert(indexed.registry_digest()) {
            self.registry.merge(&indexed.inventory().registry);
            self.add_known();
        }
    }

    /// What is known in the end; who was not heard is silent.
    pub fn finish(self) -> CollectionResult {
        let mut collected = CollectionResult {
            answered: Vec::new(),
            silent: Vec::new(),
            silent_with_bucket: Vec::new(),
            registry: Arc::new(self.registry),
        };
        let mut unsure = Vec::new();
        for (node, heard) in self.nodes {
            let last = match heard {
                NodeAnswer::Inventory(indexed) => {
                    collected.answered.push(indexed);
                    continue;
                }
                NodeAnswer::Silence(last) => last,
                NodeAnswer::Nothing => None,
            };
            let known = collected.registry.node(node);
            if !known.is_some_and(RegistryEntry::is_forgotten) {
                collected.silent.push(node);
                if last
                    .as_ref()
                    .is_some_and(|last| last.inventory().has_bucket())
                {
                    collected.silent_with_bucket.push(node);
                }
                unsure.push(last);
            }
        }
        let forgotten = perhaps_trusted(&collected.registry, &unsure);
        collected.silent.extend(forgotten);
        collected
    }
}

/// Forgotten nodes on which a silent one may have recorded a birth, as it may not have known that
/// they were forgotten. They can hide it as if they were silent.
fn perhaps_trusted(registry: &Registry, silent: &[Option<Arc<IndexedInventory>>]) -> Vec<NodeId> {
    let knows = |last: &Option<Arc<IndexedInventory>>, node: NodeId| {
        let last = last.as_ref();
        let registry = last.map(|indexed| &indexed.inventory().registry);
        registry
            .is_some_and(|registry| registry.node(node).is_some_and(RegistryEntry::is_forgotten))
    };
    let forgotten = registry.nodes().filter(|(_, known)| known.is_forgotten());
    let trusted = forgotten.filter(|(node, _)| silent.iter().any(|last| !knows(last, *node)));
    trusted.map(|(node, _)| node).collect()
}

/// The inventories that were collected, and the silent nodes.
#[derive(Clone, Debug)]
pub struct CollectionResult {
    /// The inventories of the nodes that answered.
    pub answered: Vec<Arc<IndexedInventory>>,
    /// The nodes that may hide something: those that did not answer, and forgotten ones that these
    /// may have trusted.
    pub silent: Vec<NodeId>,
    /// Those of them that had a bucket when they answered last.
    pub silent_with_bucket: Vec<NodeId>,
    /// Everything that was heard; the coordinator should merge it into its own.
    pub registry: Arc<Registry>,
}

impl CollectionResult {
    /// What exists, as far as anybody knows that was heard.
    pub fn target(&self) -> Target {
        self.target_over(&self.stored())
    }

    /// What the nodes that answered have in segments.
    fn stored(&self) -> SourceSet {
        SourceSet::union_of(self.answered.iter().map(|indexed| indexed.stored()))
    }

    /// The same as [`CollectionResult::target`], when it is known what all have in segments
    /// ([`crate::StoredUnion`]).
    pub fn target_over(&self, stored: &SourceSet) -> Target {
        let mut inventory = Inventory::empty(NodeId(0), ProcessId(0));
        inventory.registry = Arc::clone(&self.registry);
        let heard = IndexedInventory::new(inventory);
        let mut answered: Vec<&IndexedInventory> = self.answered.iter().map(|i| &**i).collect();
        answered.push(&heard);
        let mut target = Target::over(&answered, stored);
        if !is_bucket_read(&answered) {
            target.unread.extend(&self.silent_with_bucket);
        }
        target
    }
}

/// Names a task within its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// Something that a node is to read.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// The node.
    pub node: NodeId,
    /// What to read, and the receipt that is expected.
    pub share: Share,
    /// How far to read the journal files of the share that still grow: as far as the inventory
    /// showed them. What comes after may be the original of a batch of which another source is
    /// counted.
    pub open: BTreeMap<SourceId, Reach>,
}

/// How far a journal file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// In bytes.
    pub bytes: u64,
    /// The last row.
    pub last: Id,
}

/// What a question is planned over.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The inventories of the nodes that answered.
    pub answered: Vec<Arc<IndexedInventory>>,
    /// The nodes that may hide something, see [`CollectionResult::silent`].
    pub silent: Vec<NodeId>,
    /// What is to be counted.
    pub target: Arc<Target>,
    /// What the nodes that answered have in segments.
    pub stored: Arc<SourceSet>,
    /// Nodes that are asked for nothing, whatever they hold.
    pub failed: BTreeSet<NodeId>,
}

/// One question to all nodes, from the first plan to the last receipt.
#[derive(Clone, Debug)]
pub struct Question {
    held: BTreeMap<NodeId, Arc<IndexedInventory>>,
    target: Arc<Target>,
    /// What all of `held` have in segments.
    stored: Arc<SourceSet>,
    silent: Vec<NodeId>,
    silent_max: usize,
    range: TimeRange,
    local: Option<NodeId>,
    /// Sources that count nowhere, since visible ones hold the same batches (R10).
    shadowed: SourceSet,
    /// Sources that are not read any more although they are missing.
    barred: SourceSet,
    /// Sources of accepted receipts, and those without a row in the range.
    counted: SourceSet,
    /// Those of them without a row in the range.
    pruned: SourceSet,
    tasks: BTreeMap<TaskId, Task>,
    /// Nodes that failed to do a task.
    failed: BTreeSet<NodeId>,
    next: u32,
    rounds: u32,
}

impl Question {
    /// Plans for everything that exists. `shadowed` are retry sources whose batches other sources
    /// of the target hold; `silent_max` is [`crate::births::silent_max`]. Gives the first tasks.
    pub fn new(
        collected: CollectionResult,
        shadowed: SourceSet,
        range: TimeRange,
        local: Option<NodeId>,
        silent_max: usize,
    ) -> (Question, Vec<Task>) {
        let stored = collected.stored();
        let scene = Scene {
            target: Arc::new(collected.target_over(&stored)),
            stored: Arc::new(stored),
            answered: collected.answered,
            silent: collected.silent,
            failed: BTreeSet::new(),
        };
        Question::over(scene, shadowed, range, local, silent_max)
    }

    /// The same over a scene that serves several questions.
    pub fn over(
        scene: Scene,
        shadowed: SourceSet,
        range: TimeRange,
        local: Option<NodeId>,
        silent_max: usize,
    ) -> (Question, Vec<Task>) {
        let held = scene.answered.into_iter();
        let mut question = Question {
            held: held.map(|i| (i.inventory().node, i)).collect(),
            target: scene.target,
            stored: scene.stored,
            silent: scene.silent,
            silent_max,
            range,
            local,
            shadowed,
            barred: SourceSet::new(),
            counted: SourceSet::new(),
            pruned: SourceSet::new(),
            tasks: BTreeMap::new(),
            failed: scene.failed,
            next: 0,
            rounds: 0,
        };
        let cover = question.cover(&question.missing(), None);
        let tasks = question.take(cover);
        (question, tasks)
    }

    /// What is to be counted.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The sources that are to be counted and are not yet.
    pub fn missing(&self) -> SourceSet {
        let wanted = self.target.wanted.without(&self.shadowed);
        wanted.without(&self.counted)
    }

    /// The sources without a row in the range, as far as that was planned.
    pub fn pruned(&self) -> &SourceSet {
        &self.pruned
    }

    /// The sources that were counted, or need not be.
    pub fn accounted(&self) -> SourceSet {
        let mut accounted = self.counted.clone();
        accounted.union_with(&self.shadowed);
        accounted
    }

    /// The sources that were counted, or have no row in the range.
    pub fn counted(&self) -> &SourceSet {
        &self.counted
    }

    /// Tasks that are neither done nor failed.
    pub fn waiting(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// Adds retry sources that turn out to be shadowed: they became visible after the first plan,
    /// and what is counted holds their batches.
    pub fn shadow(&mut self, sources: &SourceSet) {
        let uncounted = sources.without(&self.counted);
        self.shadowed.union_with(&uncounted);
    }

    /// Leaves sources out of all plans to come; they stay missing, and the answer says so. For those
    /// that became visible after the first plan and hold the original of a batch of which a retry
    /// source is counted: to count them would count the batch twice (R10).
    pub fn bar(&mut self, sources: &SourceSet) {
        self.barred.union_with(sources);
    }

    /// The missing sources that these inventories show, and the earlier ones did not show whole:
    /// those for which [`Question::shadow`] and [`Question::bar`] are, before [`Question::replan`].
    pub fn newly_visible(&self, fresh: &[Arc<IndexedInventory>]) -> SourceSet {
        let missing = self.missing();
        let shown = fresh.iter().map(|indexed| indexed.inventory().sources());
        let shown = shown.fold(SourceSet::new(), |mut all, sources| {
            all.union_with(&sources);
            all
        });
        let mut whole = SourceSet::new();
        for held in self.held.values() {
            whole.union_with(held.stored());
            let closed = held.inventory().journal.iter().filter(|file| !file.is_open);
            closed.for_each(|file| whole.insert(file.source));
        }
        shown.common(&missing).without(&whole)
    }

    /// Takes the receipt of a task: the sources that its partial result counts, which may be fewer
    /// than were asked for where files have gone. True if the partial result is to be merged; if
    /// not, all of it is to be thrown away.
    pub fn receipt(&mut self, id: TaskId, counted: &SourceSet) -> bool {
        let Some(task) = self.tasks.remove(&id) else {
            return false;
        };
        let is_asked = task.share.sources.contains_all(counted);
        if !is_asked || !self.counted.is_disjoint(counted) {
            return false;
        }
        self.counted.union_with(counted);
        true
    }

    /// Notes that a task was not done. Its node is asked for nothing more.
    pub fn failed(&mut self, id: TaskId) {
        if let Some(task) = self.tasks.remove(&id) {
            self.failed.insert(task.node);
        }
    }

    /// Notes that nobody waits for a task any more: others do what it was to do.
    pub fn give_over(&mut self, id: TaskId) {
        self.tasks.remove(&id);
    }

    /// The nodes that failed to do a task.
    pub fn failed_nodes(&self) -> &BTreeSet<NodeId> {
        &self.failed
    }

    /// Asks a node for nothing more.
    pub fn avoid(&mut self, node: NodeId) {
        self.failed.insert(node);
    }

    /// Tasks for other nodes that do together what a slow one was asked for, if they can. The task
    /// goes on; whichever is done first counts, and the receipts of the rest are refused.
    pub fn hedge(&mut self, id: TaskId) -> Vec<Task> {
        let Some(task) = self.tasks.get(&id) else {
            return Vec::new();
        };
        let (node, sources) = (task.node, task.share.sources.clone());
        let elsewhere = self.cover(&sources, Some(node));
        if !elsewhere.counted().contains_all(&sources) {
            return Vec::new();
        }
        self.add(elsewhere)
    }

    /// Plans for what is missing, once no task is waiting. `fresh` are inventories of after the
    /// last receipt, of as many nodes as answer. No tasks are given when nothing is missing, when
    /// nobody has it, or after [`ROUNDS_MAX`] rounds.
    pub fn replan(&mut self, fresh: Vec<Arc<IndexedInventory>>) -> Vec<Task> {
        let missing = self.missing();
        self.replan_of(&missing, fresh)
    }

    /// The same for some of what is missing, which no task is waiting for: a part of an answer that
    /// goes on behind the last row that was read of it.
    pub fn replan_of(
        &mut self,
        wanted: &SourceSet,
        fresh: Vec<Arc<IndexedInventory>>,
    ) -> Vec<Task> {
        if !fresh.is_empty() {
            for indexed in fresh {
                self.held.insert(indexed.inventory().node, indexed);
            }
            let stored = self.held.values().map(|indexed| indexed.stored());
            self.stored = Arc::new(SourceSet::union_of(stored));
        }
        let missing = self.missing().without(&self.barred).common(wanted);
        if missing.is_empty() || self.rounds == ROUNDS_MAX {
            return Vec::new();
        }
        self.rounds += 1;
        let cover = self.cover(&missing, None);
        self.take(cover)
    }

    /// What may be claimed of what was counted.
    pub fn finish(&self) -> Completeness {
        let answered: Vec<&IndexedInventory> = self.held.values().map(|i| &**i).collect();
        Completeness::judge(
            &self.target,
            &self.accounted(),
            &answered,
            &self.silent,
            self.silent_max,
        )
    }

    fn take(&mut self, cover: Cover) -> Vec<Task> {
        // What another cover has counted already is not missing, and so not in this one.
        let pruned = cover.pruned.common(&self.missing());
        self.counted.union_with(&pruned);
        self.pruned.union_with(&pruned);
        self.add(cover)
    }

    fn open(&self, node: NodeId, share: &Share) -> BTreeMap<SourceId, Reach> {
        let held = self.held.get(&node);
        let journal = held.map_or(&[][..], |held| &held.inventory().journal);
        let open = journal
            .iter()
            .filter(|file| file.is_open && share.journal.contains(file.source));
        let reach = |file: &HeldJournal| Reach {
            bytes: file.bytes,
            last: file.last,
        };
        open.map(|file| (file.source, reach(file))).collect()
    }

    /// Who reads these sources, of the nodes that have not failed.
    fn cover(&self, wanted: &SourceSet, but: Option<NodeId>) -> Cover {
        let able = self.held.iter();
        let able = able.filter(|(node, _)| !self.failed.contains(node) && Some(**node) != but);
        let able: Vec<&IndexedInventory> = able.map(|(_, indexed)| &**indexed).collect();
        if able.len() == self.held.len() {
            Cover::plan_over(&able, &self.stored, wanted, self.range, self.local)
        } else {
            Cover::plan(&able, wanted, self.range, self.local)
        }
    }

    fn add(&mut self, cover: Cover) -> Vec<Task> {
        let mut added = Vec::new();
        for (node, share) in cover.shares {
            let id = TaskId(self.next);
            self.next += 1;
            let task = Task {
                id,
                node,
                open: self.open(node, &share),
                share,
            };
            self.tasks.insert(id, task.clone());
            added.push(task);
        }
        added
    }
}

#[cfg(test)]
mod tests;
