//! When a group is evaluated, and by whom.

use logpond_record::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

/// The instants at which a group is evaluated: multiples of its interval, moved by an offset of the
/// group's own, so that not all groups are evaluated at once, and each at the same instants by whoever
/// does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    interval_ns: i64,
    offset_ns: i64,
}

impl Schedule {
    /// The instants of a group, known by its key.
    pub fn new(key: &str, interval_ns: i64) -> Schedule {
        let interval_ns = interval_ns.max(1);
        let offset = xxh3_64(key.as_bytes()) % interval_ns.unsigned_abs();
        Schedule {
            interval_ns,
            offset_ns: i64::try_from(offset).unwrap_or(0),
        }
    }

    /// The last instant that is not after `now`.
    pub fn last(&self, now: Timestamp) -> Timestamp {
        let since = now.0.saturating_sub(self.offset_ns);
        let back = since.rem_euclid(self.interval_ns);
        Timestamp(now.0.saturating_sub(back))
    }

    /// The first instant after this one.
    pub fn next(&self, after: Timestamp) -> Timestamp {
        self.last(after).saturating_add(self.interval_ns)
    }

    /// The time between two instants, in nanoseconds.
    pub fn interval_ns(&self) -> i64 {
        self.interval_ns
    }

    /// How many instants there were from `due` on before `at`.
    pub fn missed(&self, due: Timestamp, at: Timestamp) -> u64 {
        let between = at.0.saturating_sub(due.0) / self.interval_ns;
        u64::try_from(between).unwrap_or(0)
    }
}

/// Which of several nodes evaluates a group: the one with the highest hash of both (rendezvous hashing,
/// Thaler and Ravishankar 1998). When one goes, only its groups go to others.
pub fn owner(key: &str, nodes: impl IntoIterator<Item = u128>) -> Option<u128> {
    let weight = |node: &u128| {
        let mut bytes = key.as_bytes().to_vec();
        bytes.extend_from_slice(&node.to_le_bytes());
        (xxh3_64(&bytes), *node)
    };
    nodes.into_iter().max_by_key(weight)
}
