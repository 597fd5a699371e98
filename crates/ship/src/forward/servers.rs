//! Which of several servers is sent to.
//!
//! Invariants: the server at hand is kept as long as it takes batches and does not ask senders to
//! go elsewhere; who is asked goes at most once in [`KEEP_TIME`], and only to a server that is not
//! known to be as busy. Nothing here reads a clock.

use std::time::{Duration, Instant};

/// How long a server is kept although it is busy, so that senders do not run to and fro.
const KEEP_TIME: Duration = Duration::from_secs(30);

/// How long it is believed that a server is busy.
const BUSY_TIME: Duration = Duration::from_secs(60);

/// What is known of the servers.
#[derive(Clone, Debug)]
pub(super) struct Servers {
    /// The one at hand, and since when.
    current: usize,
    since: Instant,
    /// When each was last busy.
    busy_at: Vec<Option<Instant>>,
}

impl Servers {
    /// So many servers, of which the first is the one at hand.
    pub(super) fn new(count: usize, now: Instant) -> Servers {
        Servers {
            current: 0,
            since: now,
            busy_at: vec![None; count],
        }
    }

    /// The server at hand.
    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// All servers in the order in which they are tried: the one at hand, then those that are not
    /// known to be busy.
    pub(super) fn order(&self, now: Instant) -> Vec<usize> {
        let count = self.busy_at.len();
        let others = (1..count).map(|turn| (self.current + turn) % count);
        let (busy, free): (Vec<_>, Vec<_>) = others.partition(|at| self.is_busy(*at, now));
        let first = std::iter::once(self.current);
        first.chain(free).chain(busy).collect()
    }

    /// Notes that a server took a batch, and whether it asks senders to go elsewhere.
    pub(super) fn took(&mut self, at: usize, is_busy: bool, now: Instant) {
        if at != self.current {
            self.current = at;
            self.since = now;
        }
        self.busy_at[at] = is_busy.then_some(now);
        if !is_busy || now.saturating_duration_since(self.since) < KEEP_TIME {
            return;
        }
        let next = self.order(now)[1..].first().copied();
        if let Some(next) = next.filter(|next| !self.is_busy(*next, now)) {
            self.current = next;
            self.since = now;
        }
    }

    fn is_busy(&self, at: usize, now: Instant) -> bool {
        let since = self.busy_at[at].map(|busy| now.saturating_duration_since(busy));
        since.is_some_and(|since| since < BUSY_TIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_servers_are_left_for_others_and_not_too_often() {
        let start = Instant::now();
        let at = |second: u64| start + Duration::from_secs(second);
        let mut servers = Servers::new(3, start);
        // Second, who takes a batch, whether it is busy, and who is asked next.
        let steps = [
            (1, 0, false, [0, 1, 2]),
            // Busy, but kept for a while.
            (2, 0, true, [0, 1, 2]),
            (29, 0, true, [0, 1, 2]),
            (30, 0, true, [1, 2, 0]),
            (31, 1, true, [1, 2, 0]),
            (60, 1, true, [2, 0, 1]),
            // All are busy: nobody runs.
            (61, 2, true, [2, 0, 1]),
            (89, 2, true, [2, 0, 1]),
            // The first was busy long ago.
            (91, 2, true, [0, 1, 2]),
            (92, 0, false, [0, 1, 2]),
            // A failure leads to another one at once.
            (93, 1, false, [1, 0, 2]),
        ];
        for (second, who, is_busy, order) in steps {
            servers.took(who, is_busy, at(second));
            assert_eq!(servers.order(at(second)), order, "second {second}");
        }
        let mut alone = Servers::new(1, start);
        alone.took(0, true, at(100));
        assert_eq!(alone.order(at(100)), [0]);
    }
}
