//! Nodes that run twice: a data directory was copied, and both copies are served.
//!
//! Gossip tells of each life of a node how far its heartbeat has counted. The heartbeat of a life that has ended rises
//! only while others pass on the last that they heard of it. `A` is an address, which the product reaches.
//!
//! Invariants:
//! - A life runs if its heartbeat has risen [`RISES`] times within [`WINDOW_MS`], all of them later than
//!   [`SETTLED_MS`] after the youngest life of its node was first heard of. So a node that starts again is not taken
//!   for two.
//! - A node runs twice while two of its lives run.

use std::collections::{BTreeMap, VecDeque};

use crate::NodeId;

/// A heartbeat that rises so often is that of a process that runs.
pub const RISES: usize = 8;

/// Within this time, in milliseconds. A heartbeat rises at least twice a second.
pub const WINDOW_MS: u64 = 10_000;

/// So long after another life was first heard of, all have heard of the end of the life before, in milliseconds. News
/// spread within some rounds of gossip of half a second each.
pub const SETTLED_MS: u64 = 20_000;

/// A life of a node, as gossip tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life<A> {
    /// The node.
    pub node: NodeId,
    /// When its process started, in milliseconds by its own clock.
    pub generation: u64,
    /// The address at which others reach it.
    pub address: A,
    /// The last heartbeat that was heard of.
    pub heartbeat: u64,
}

#[derive(Clone, Debug)]
struct LifeState {
    first_heard_ms: u64,
    heartbeat: u64,
    /// The last times at which the heartbeat rose, at most [`RISES`], oldest first.
    rises_ms: VecDeque<u64>,
}

impl LifeState {
    fn note(&mut self, now_ms: u64, heartbeat: u64) {
        if heartbeat <= self.heartbeat {
            return;
        }
        self.heartbeat = heartbeat;
        if self.rises_ms.len() == RISES {
            self.rises_ms.pop_front();
        }
        self.rises_ms.push_back(now_ms);
    }

    fn is_running(&self, now_ms: u64) -> bool {
        let is_within = |first: &u64| now_ms.saturating_sub(*first) <= WINDOW_MS;
        self.rises_ms.len() == RISES && self.rises_ms.front().is_some_and(is_within)
    }
}

/// The lives that gossip tells of.
#[derive(Clone, Debug)]
pub struct Twins<A> {
    nodes: BTreeMap<NodeId, BTreeMap<(u64, A), LifeState>>,
}

impl<A> Default for Twins<A> {
    fn default() -> Twins<A> {
        Twins {
            nodes: BTreeMap::new(),
        }
    }
}

impl<A: Copy + Ord> Twins<A> {
    /// Takes what gossip tells of now, which is all that it knows; `now_ms` never goes back.
    pub fn note(&mut self, now_ms: u64, lives: &[Life<A>]) {
        let mut before = std::mem::take(&mut self.nodes);
        for life in lives {
            let key = (life.generation, life.address);
            let known = before.get_mut(&life.node);
            let known = known.and_then(|known| known.remove(&key));
            let mut state = known.unwrap_or_else(|| LifeState {
                first_heard_ms: now_ms,
                heartbeat: life.heartbeat,
                rises_ms: VecDeque::new(),
            });
            state.note(now_ms, life.heartbeat);
            self.nodes.entry(life.node).or_default().insert(key, state);
        }
        for known in self.nodes.values_mut() {
            let youngest_ms = known.values().map(|state| state.first_heard_ms).max();
            let settled_ms = youngest_ms.unwrap_or(now_ms) + SETTLED_MS;
            for state in known.values_mut() {
                state.rises_ms.retain(|rise_ms| *rise_ms > settled_ms);
            }
        }
    }

    /// The nodes that run twice, with the addresses of their lives that run.
    pub fn running(&self, now_ms: u64) -> BTreeMap<NodeId, Vec<A>> {
        let mut twins = BTreeMap::new();
        for (node, known) in &self.nodes {
            let running = known.iter().filter(|(_, state)| state.is_running(now_ms));
            let addresses: Vec<A> = running.map(|((_, address), _)| *address).collect();
            if addresses.len() > 1 {
                twins.insert(*node, addresses);
            }
        }
        twins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_MS: u64 = 250;

    /// Lives of node 7 that count from their start until their end, as others tell of them `lag_ms` later.
    fn told(now_ms: u64, lag_ms: u64, lives: &[(u64, u64)]) -> Vec<Life<u64>> {
        let heard = |(start_ms, end_ms): &(u64, u64)| {
            let last_ms = now_ms.checked_sub(lag_ms)?.min(*end_ms);
            let alive_ms = last_ms.checked_sub(*start_ms)?;
            Some(Life {
                node: NodeId(7),
                generation: *start_ms,
                address: *start_ms,
                heartbeat: alive_ms / ROUND_MS,
            })
        };
        lives.iter().filter_map(heard).collect()
    }

    fn run(lag_ms: u64, lives: &[(u64, u64)]) -> Vec<(u64, Vec<u64>)> {
        let mut twins = Twins::default();
        let mut found = Vec::new();
        for now_ms in (0..200_000).step_by(ROUND_MS as usize) {
            // A start is heard of at once, the last heartbeats of an end late.
            let mut all = told(now_ms, lag_ms, lives);
            for life in told(now_ms, 0, lives) {
                if !all.iter().any(|known| known.generation == life.generation) {
                    all.push(life);
                }
            }
            twins.note(now_ms, &all);
            let running = twins.running(now_ms);
            if let Some(addresses) = running.get(&NodeId(7)) {
                found.push((now_ms, addresses.clone()));
            }
        }
        found
    }

    #[test]
    fn a_node_that_starts_again_runs_once() {
        for lag_ms in [0, 1000, 15_000] {
            let lives: Vec<(u64, u64)> = (0..20).map(|n| (n * 10_000, n * 10_000 + 9000)).collect();
            assert!(run(lag_ms, &lives).is_empty());
            assert!(run(lag_ms, &[(0, 60_000), (60_500, 200_000)]).is_empty());
            // The process before goes on for a while.
            assert!(run(lag_ms, &[(0, 65_000), (60_500, 200_000)]).is_empty());
        }
    }

    #[test]
    fn a_copy_is_found_until_one_of_both_ends() {
        let found = run(0, &[(1, 150_000), (50_000, 200_000)]);
        let (first_ms, addresses) = &found[0];
        assert_eq!(addresses, &[1, 50_000]);
        assert!((70_000..75_000).contains(first_ms), "{first_ms}");
        let (last_ms, _) = found[found.len() - 1];
        assert!(
            (150_000..=150_000 + WINDOW_MS).contains(&last_ms),
            "{last_ms}"
        );
    }
}
