//! What the segments of all nodes have together, kept from one question to the next.
//!
//! Between two questions few nodes change what they store, so the union is a tree: each node is a
//! leaf, each inner node has the union of the two below it, and after a change only the path to the
//! root is made again.
//!
//! Invariant: what is given is the union over the inventories that are given, and nothing else.
//! That a leaf is unchanged follows from what it has being the same value, not from what a node
//! says of its version; a node that is not given has no leaf.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use logpond_record::Incarnation;
use logpond_segment::sources::{Interval, SourceSet};

use crate::{IndexedInventory, NodeId};

/// Sources of one incarnation.
type Run = (Incarnation, Interval);

/// Number of the root among the inner nodes; below number `n` are `2n` and `2n + 1`.
const ROOT: usize = 1;

/// The fewest leaves of a tree that has a root.
const LEAVES_MIN: usize = 2;

/// The union of what nodes have in segments.
///
/// Shape: a tree over a power of two of leaves, at most four times as many as there are nodes (or
/// [`LEAVES_MIN`]). The lower levels have about as many intervals as the inventories, each; the upper
/// ones fewer and fewer, since runs of neighbours join.
#[derive(Clone, Debug, Default)]
pub struct StoredUnion {
    places: BTreeMap<NodeId, usize>,
    /// What the node at each place has; nothing at free ones. Whole inventories would live on here
    /// after they are replaced, and be freed while a question waits.
    leaves: Vec<Option<Arc<[Run]>>>,
    /// The unions, as many as leaves, each in order and with no two runs that touch; the one before
    /// the root is not used. Runs in one piece of memory, as most of the time goes into merging them.
    inner: Vec<Vec<Run>>,
    /// The root's runs as a set.
    all: Arc<SourceSet>,
}

impl StoredUnion {
    /// The union over these inventories, one of each node at most. Takes time for those that are
    /// not the same as in the last call.
    pub fn of<'a>(
        &mut self,
        held: impl IntoIterator<Item = &'a Arc<IndexedInventory>>,
    ) -> Arc<SourceSet> {
        let named = held.into_iter().map(|held| (held.inventory().node, held));
        let held: BTreeMap<NodeId, &Arc<IndexedInventory>> = named.collect();
        self.fit(held.len());
        let mut stale = BTreeSet::new();
        self.drop_others(&held, &mut stale);
        let mut free = self.free().into_iter();
        for (node, indexed) in held {
            let known = self.places.get(&node).copied();
            // The tree has as many places as there are nodes at least.
            if let Some(place) = known.or_else(|| free.next()) {
                self.places.insert(node, place);
                self.put(place, Some(Arc::clone(indexed.runs())), &mut stale);
            }
        }
        self.renew(stale);
        Arc::clone(&self.all)
    }

    /// Begins anew if the tree is too small or far too large for so many nodes.
    fn fit(&mut self, nodes: usize) {
        let leaves = self.leaves.len();
        let is_fit = leaves >= LEAVES_MIN && nodes <= leaves && leaves <= LEAVES_MIN.max(nodes * 4);
        if !is_fit {
            let leaves = nodes.next_power_of_two().max(LEAVES_MIN);
            self.places.clear();
            self.leaves = vec![None; leaves];
            self.inner = vec![Vec::new(); leaves];
            self.all = Arc::default();
        }
    }

    fn drop_others(
        &mut self,
        held: &BTreeMap<NodeId, &Arc<IndexedInventory>>,
        stale: &mut BTreeSet<usize>,
    ) {
        let all = self.places.iter().map(|(node, place)| (*node, *place));
        let gone: Vec<_> = all.filter(|(node, _)| !held.contains_key(node)).collect();
        for (node, place) in gone {
            self.places.remove(&node);
            self.put(place, None, stale);
        }
    }

    fn free(&self) -> Vec<usize> {
        let places = self.leaves.iter().enumerate();
        let free = places.filter(|(_, leaf)| leaf.is_none());
        free.map(|(place, _)| place).collect()
    }

    /// Has a place stand for an inventory; adds the inner node above it to the stale ones if what
    /// is stored differs.
    fn put(&mut self, place: usize, leaf: Option<Arc<[Run]>>, stale: &mut BTreeSet<usize>) {
        let before = std::mem::replace(&mut self.leaves[place], leaf);
        let now = &self.leaves[place];
        let is_same = match (&before, now) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now) || before == now,
            (Some(one), None) | (None, Some(one)) => one.is_empty(),
            (None, None) => true,
        };
        if !is_same {
            stale.insert((self.leaves.len() + place) / 2);
        }
    }

    /// Makes inner nodes again, the lowest first, and those above that change by it.
    fn renew(&mut self, mut stale: BTreeSet<usize>) {
        while let Some(at) = stale.pop_last() {
            let union = merge(self.below(at * 2), self.below(at * 2 + 1));
            if union == self.inner[at] {
                continue;
            }
            if at > ROOT {
                stale.insert(at / 2);
            } else {
                self.all = Arc::new(to_set(&union));
            }
            self.inner[at] = union;
        }
    }

    /// What an inner node or a leaf has.
    fn below(&self, child: usize) -> &[Run] {
        match child.checked_sub(self.leaves.len()) {
            Some(place) => self.leaves[place].as_deref().unwrap_or_default(),
            None => &self.inner[child],
        }
    }
}

/// The union of two lists of runs, each in order and with no two that touch, as is the result.
fn merge<'a>(mut left: &'a [Run], mut right: &'a [Run]) -> Vec<Run> {
    let mut merged: Vec<Run> = Vec::with_capacity(left.len().max(right.len()));
    loop {
        let from = match (left.first(), right.first()) {
            (Some(one), Some(other)) if one <= other => &mut left,
            (Some(_), None) => &mut left,
            (_, Some(_)) => &mut right,
            (None, None) => return merged,
        };
        if let Some((run, rest)) = from.split_first() {
            append(&mut merged, *run);
            *from = rest;
        }
    }
}

/// Adds a run to those of which none begins after it.
fn append(runs: &mut Vec<Run>, (incarnation, interval): Run) {
    match runs.last_mut() {
        Some((last, own)) if *last == incarnation && interval.from <= own.to.saturating_add(1) => {
            own.to = own.to.max(interval.to);
        }
        _ => runs.push((incarnation, interval)),
    }
}

fn to_set(runs: &[Run]) -> SourceSet {
    let mut set = SourceSet::new();
    for (incarnation, interval) in runs {
        set.insert_interval(*incarnation, *interval);
    }
    set
}

#[cfg(test)]
mod tests;
