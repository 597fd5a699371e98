//! Which node is to do something, chosen alike by all who know the same nodes, without asking.
//!
//! Rendezvous hashing (Thaler and Ravishankar 1996): every node gets a score from a key, and the
//! best one is chosen. When a node comes or goes, only what was or is to be its own moves. Weights
//! stretch the scores (Schindelhauer and Schomaker 2005), so that a node is chosen in proportion.
//!
//! Everything here is a hint: those who know different nodes choose differently, which costs work.

use logpond_record::cast;
use xxhash_rust::xxh3::xxh3_64;

use crate::NodeId;
use crate::give_up::Peer;

/// Partners of a store stay the same for so long: few distinct sets of replicas mean few ways in
/// which the loss of that many disks loses something, and few overlaps for readers.
pub const COHORT_SECONDS: u64 = 3600;

/// A store with less free than this share of its disk is given nothing: it needs room for its own
/// merges.
const FREE_PERCENT_MIN: u64 = 10;

/// Even a store that keeps nothing free on purpose is given nothing once it has less than this.
const RESERVE_BYTES_MAX: u64 = 64 << 20;

/// What a choice is made for; equal keys are chosen alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The store that consumes what an ingester writes during a stretch of time.
    Run {
        /// The ingester.
        ingester: NodeId,
        /// The number of the stretch.
        slot: u64,
    },
    /// The partners of a store for an hour.
    Cohort {
        /// The store.
        store: NodeId,
        /// The number of the hour since 1970.
        hour: u64,
    },
    /// Who sees to a source that has too few or too many copies.
    Source {
        /// Its incarnation.
        incarnation: u128,
        /// Its number, or that of the first one of several.
        sequence: u64,
    },
}

impl Key {
    /// A number that follows evenly from the key and a node.
    pub fn score(&self, node: NodeId) -> u64 {
        let (tag, name, number) = match self {
            Key::Run { ingester, slot } => (1u8, ingester.0, *slot),
            Key::Cohort { store, hour } => (2, store.0, *hour),
            Key::Source {
                incarnation,
                sequence,
            } => (3, *incarnation, *sequence),
        };
        let mut bytes = [0u8; 41];
        bytes[0] = tag;
        bytes[1..17].copy_from_slice(&name.to_le_bytes());
        bytes[17..25].copy_from_slice(&number.to_le_bytes());
        bytes[25..].copy_from_slice(&node.0.to_le_bytes());
        xxh3_64(&bytes)
    }

    /// The nodes, best first.
    pub fn rank(&self, nodes: impl IntoIterator<Item = NodeId>) -> Vec<NodeId> {
        let mut ranked: Vec<_> = nodes.into_iter().collect();
        ranked.sort_unstable();
        ranked.dedup();
        ranked.sort_by_key(|node| (std::cmp::Reverse(self.score(*node)), *node));
        ranked
    }

    /// The stores that may be given a copy beside those in `holders`, best first: the more free
    /// space, the more often; first those in zones that have none yet.
    pub fn rank_targets(&self, stores: &[Store], holders: &[Peer]) -> Vec<NodeId> {
        let is_holder = |store: &&Store| holders.iter().any(|peer| peer.node == store.node);
        let mut zones: Vec<u64> = holders.iter().filter_map(|peer| peer.zone).collect();
        let mut rest: Vec<&Store> = stores
            .iter()
            .filter(|store| !is_holder(store) && store.can_take())
            .collect();
        rest.sort_by(|a, b| {
            let (left, right) = (self.stretched(a), self.stretched(b));
            right.total_cmp(&left).then(a.node.cmp(&b.node))
        });
        let mut ranked = Vec::new();
        while !rest.is_empty() {
            let is_new = |s: &&Store| s.zone.is_none_or(|zone| !zones.contains(&zone));
            let at = rest.iter().position(is_new).unwrap_or(0);
            let store = rest.remove(at);
            zones.extend(store.zone);
            ranked.push(store.node);
        }
        ranked
    }

    /// A score that is the greatest of several in proportion to the stores' weights.
    fn stretched(&self, store: &Store) -> f64 {
        // In (0, 1): the middle of one of 2^53 equal parts.
        let part = cast::float(self.score(store.node) >> 11);
        let even = (part + 0.5) / cast::float(1u64 << 53);
        -store.weight() / even.ln()
    }
}

/// A store as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// The node.
    pub node: NodeId,
    /// The zone that it fails with, if zones are configured.
    pub zone: Option<u64>,
    /// Room on its disk.
    pub free_bytes: u64,
    /// Whether it has said that it has no room, see [`is_full`].
    pub is_full: bool,
    /// Whether it is being emptied.
    pub is_draining: bool,
}

impl Store {
    /// Whether it may be given copies.
    pub fn can_take(&self) -> bool {
        !self.is_draining && !self.is_full
    }

    /// Its free space, in powers of two, so that choices do not change with every segment.
    fn weight(&self) -> f64 {
        cast::float(1u64 << self.free_bytes.max(1).ilog2())
    }
}

/// Whether a store has no room for copies: less than a tenth of its disk is free. One that removes
/// its oldest segments only to keep less than that free has little room for good: it takes copies
/// down to half of what it keeps.
pub fn is_full(free_bytes: u64, total_bytes: u64, keep_free_bytes: u64) -> bool {
    let reserve_bytes = RESERVE_BYTES_MAX.min(total_bytes / 25);
    let wanted_bytes = (total_bytes / 100 * FREE_PERCENT_MIN).min(keep_free_bytes / 2);
    free_bytes < wanted_bytes.max(reserve_bytes)
}

/// The number of the hour of a cohort, from seconds since 1970.
pub fn cohort_hour(unix_seconds: u64) -> u64 {
    unix_seconds / COHORT_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(node: u128, free_bytes: u64) -> Store {
        Store {
            node: NodeId(node),
            zone: None,
            free_bytes,
            is_full: false,
            is_draining: false,
        }
    }

    fn hour(hour: u64) -> Key {
        Key::Cohort {
            store: NodeId(0),
            hour,
        }
    }

    #[test]
    fn only_what_was_a_lost_nodes_own_moves() {
        let nodes = |n: u128| (1..=n).map(NodeId);
        for slot in 0..200 {
            let key = Key::Run {
                ingester: NodeId(9),
                slot,
            };
            let (with, without) = (key.rank(nodes(5)), key.rank(nodes(4)));
            let rest: Vec<_> = with.into_iter().filter(|n| *n != NodeId(5)).collect();
            assert_eq!(rest, without);
        }
    }

    #[test]
    fn stores_are_chosen_by_their_room() {
        let stores = [store(1, 1 << 30), store(2, 1 << 31), store(3, 1 << 32)];
        let mut chosen = [0u32; 3];
        for n in 0..7000 {
            let first = hour(n).rank_targets(&stores, &[])[0];
            chosen[first.0 as usize - 1] += 1;
        }
        for (count, expected) in chosen.into_iter().zip([1000, 2000, 4000]) {
            assert!(count.abs_diff(expected) < 200, "{chosen:?}");
        }
    }

    #[test]
    fn holders_full_and_leaving_stores_are_given_nothing() {
        let mut stores = [1, 2, 3, 4, 5].map(|n| store(n, 100));
        stores[0].is_full = true;
        stores[2].is_draining = true;
        let holder = Peer {
            node: NodeId(4),
            zone: None,
        };
        let mut targets = hour(1).rank_targets(&stores, &[holder]);
        targets.sort_unstable();
        assert_eq!(targets, [NodeId(2), NodeId(5)]);
    }

    #[test]
    fn a_store_that_keeps_little_free_takes_copies_all_the_same() {
        const GIB: u64 = 1 << 30;
        // Free, and kept free, of 1,000 GiB.
        let cases = [
            (101 * GIB, 200 * GIB, false),
            (99 * GIB, 200 * GIB, true),
            // Its oldest segments go when 50 GiB are left: it never has more for long.
            (49 * GIB, 50 * GIB, false),
            (24 * GIB, 50 * GIB, true),
            (65 << 20, 0, false),
            (63 << 20, 0, true),
        ];
        for (free, keep_free, expected) in cases {
            assert_eq!(is_full(free, 1000 * GIB, keep_free), expected, "{free}");
        }
        assert!(!is_full(0, 0, 0), "a disk of which nothing is known");
    }

    #[test]
    fn other_zones_come_first() {
        let mut stores = [1, 2, 3, 4, 5].map(|n| store(n, 100));
        for (at, zone) in [(0, 7), (1, 7), (2, 7), (3, 8), (4, 8)] {
            stores[at].zone = Some(zone);
        }
        for n in 0..50 {
            let holder = Peer {
                node: NodeId(1),
                zone: Some(7),
            };
            let ranked = hour(n).rank_targets(&stores, &[holder]);
            assert!(ranked[0] >= NodeId(4), "{ranked:?}");
            assert_eq!(ranked.len(), 4);
        }
    }
}
