//! What all nodes hold at the beginning of an answer, and what of it the answer has counted.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use logpond_cluster::{Completeness, Cover, Indexed, NodeId, Target};
use logpond_record::{Id, TimeRange, Timestamp};
use logpond_segment::batches::{BatchSet, RetryCopy, yielding};
use logpond_segment::sources::SourceSet;

use super::super::Trailer;
use super::super::positions::{Positions, Region};
use super::{Cluster, Nodes};
use crate::side_by_side::side_by_side;

/// How often nodes that were only just heard of are asked, too.
const ROUNDS_MAX: usize = 3;

/// The nodes of one answer.
pub(super) struct Gathered<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) target: Target,
    /// Where others should be whom nobody has met: what they hold is unknown.
    unmet: Vec<String>,
    state: RefCell<State>,
}

struct State {
    answered: BTreeMap<NodeId, Arc<Indexed>>,
    /// Nodes that gave no inventory.
    silent: Vec<NodeId>,
    /// Nodes that failed at a share; they are asked for no other.
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
fn repeated(nodes: &dyn Nodes, held: &[&Indexed]) -> (SourceSet, BTreeSet<NodeId>) {
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

/// What all nodes hold, as they say at this moment, and which do not.
pub(super) fn look_around(nodes: &dyn Nodes) -> (BTreeMap<NodeId, Arc<Indexed>>, Vec<NodeId>) {
    let mut answered = BTreeMap::new();
    let mut silent = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let mut others = nodes.others();
        others.retain(|node| !answered.contains_key(node) && !silent.contains(node));
        if others.is_empty() {
            break;
        }
        for (node, answer) in side_by_side(others, |node| nodes.inventory(node)) {
            match answer {
                Some(Ok(indexed)) => drop(answered.insert(node, indexed)),
                _ => silent.push(node),
            }
        }
    }
    // Taken last: what this node has handed over meanwhile is in one of them at least.
    let own = nodes.own_inventory();
    answered.insert(own.inventory().node, own);
    (answered, silent)
}

impl<'a> Gathered<'a> {
    /// Asks all nodes at once what they hold; those that were heard of from them, too.
    pub(super) fn new(cluster: &'a Cluster) -> Gathered<'a> {
        let nodes = &*cluster.nodes;
        // Asked first: who is met meanwhile may not be asked any more.
        let unmet = nodes.unmet();
        let (answered, silent) = look_around(nodes);
        let held: Vec<&Indexed> = answered.values().map(|indexed| &**indexed).collect();
        let stored = cluster.stored(answered.values());
        let mut target = Target::over(&held, &stored);
        let (repeated, unsaid) = repeated(nodes, &held);
        target.wanted = target.wanted.without(&repeated);
        Gathered {
            cluster,
            target,
            unmet,
            state: RefCell::new(State {
                answered,
                silent,
                failed: unsaid,
                counted: None,
                positions: Positions::default(),
                batches: BatchSet::default(),
            }),
        }
    }

    /// Who is to read what of these sources.
    pub(super) fn cover(&self, wanted: &SourceSet, range: TimeRange) -> Cover {
        let state = self.state.borrow();
        let able = state.answered.values().filter(|indexed| {
            let node = indexed.inventory().node;
            !state.failed.contains(&node)
        });
        let able: Vec<&Arc<Indexed>> = able.collect();
        let stored = self.cluster.stored(able.iter().copied());
        let held: Vec<&Indexed> = able.into_iter().map(|indexed| &**indexed).collect();
        let own = Some(self.cluster.nodes.own());
        Cover::plan_over(&held, &stored, wanted, range, own)
    }

    /// Whether it is known before anything was read that the answer will not be complete.
    pub(super) fn lacks_something(&self, range: TimeRange) -> bool {
        let counted = self.cover(&self.target.wanted, range).counted();
        let mut trailer = Trailer::default();
        let state = self.state.borrow();
        let held: Vec<&Indexed> = state.answered.values().map(|indexed| &**indexed).collect();
        let nodes = &*self.cluster.nodes;
        judge(
            nodes,
            (&self.target, &counted),
            &held,
            (&state.silent, &self.unmet),
            &mut trailer,
        );
        trailer.missing_count > 0
    }

    /// Takes note that a node failed at its share.
    pub(super) fn fail(&self, node: NodeId) {
        self.state.borrow_mut().failed.insert(node);
    }

    /// Asks a node anew: what it said that it holds has changed.
    pub(super) fn refresh(&self, node: NodeId) {
        let nodes = &*self.cluster.nodes;
        let fresh = match node == nodes.own() {
            true => Ok(nodes.own_inventory()),
            false => nodes.inventory(node),
        };
        let mut state = self.state.borrow_mut();
        match fresh {
            Ok(indexed) => drop(state.answered.insert(node, indexed)),
            Err(_) => drop(state.failed.insert(node)),
        }
    }

    /// Asks all nodes anew that have not failed: something went from one to another.
    pub(super) fn refresh_all(&self) {
        let nodes: Vec<NodeId> = {
            let state = self.state.borrow();
            let known = state.answered.keys().copied();
            known.filter(|node| !state.failed.contains(node)).collect()
        };
        nodes.into_iter().for_each(|node| self.refresh(node));
    }

    /// Takes note of what a reading has counted: the answer has counted what all of its readings
    /// have.
    pub(super) fn note_counted(&self, counted: SourceSet) {
        let mut state = self.state.borrow_mut();
        state.counted = Some(match state.counted.take() {
            Some(before) => before.common(&counted),
            None => counted,
        });
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
        let nodes = &*self.cluster.nodes;
        let held: Vec<&Indexed> = state.answered.values().map(|indexed| &**indexed).collect();
        judge(
            nodes,
            (&self.target, counted),
            &held,
            (&state.silent, &self.unmet),
            trailer,
        );
        let silent = state.silent.iter().chain(&state.failed);
        trailer.silent = silent.map(|node| nodes.name(*node)).collect();
    }
}

/// Says in a trailer what an answer does not have that has counted some sources, while some nodes
/// were silent and none was met yet at some addresses.
pub(super) fn judge(
    nodes: &dyn Nodes,
    (target, counted): (&Target, &SourceSet),
    held: &[&Indexed],
    (silent, unmet): (&[NodeId], &[String]),
    trailer: &mut Trailer,
) {
    let completeness = Completeness::judge(target, counted, held, silent, nodes.silent_max());
    let name = |node: Option<NodeId>| match node {
        Some(node) => nodes.name(node),
        None => "a node that nobody has heard of".to_owned(),
    };
    for gap in &completeness.gaps {
        trailer.miss(format_args!("{}: {gap}", name(gap.node)));
    }
    for tail in &completeness.tails {
        trailer.miss(format_args!("{}: {tail}", name(tail.node)));
    }
    for node in &completeness.hiding {
        trailer.miss(format_args!("{} does not answer", nodes.name(*node)));
    }
    if !unmet.is_empty() {
        let addresses = unmet.join(", ");
        trailer.miss(format_args!(
            "what nodes hold that were not met yet, at {addresses}"
        ));
    }
    for tail in &completeness.lost {
        trailer.lost.push(format!("{}: {tail}", name(tail.node)));
    }
}
