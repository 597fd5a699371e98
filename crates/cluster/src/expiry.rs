//! What counts no more for its age, and when it may be deleted (CLUSTER R8).
//!
//! Invariants: whether a source has expired follows from when it was received, its retention and
//! one cutoff for each question, whatever node is asked. Deletion lags behind: it never removes
//! what has not been expired for [`LAG_NS`], it goes on only as fast as the monotonic clock does,
//! and it stops while this node's clock is ahead of the others'. So a clock that jumps by a year
//! deletes nothing but what was due.

use logpond_record::Timestamp;

/// Deletion lags behind expiry by an hour: answers of other nodes, whose clocks and cutoffs differ,
/// still find what they count.
pub const LAG_NS: i64 = 3_600_000_000_000;

/// While the clock is further ahead of the peers' median than 5 minutes, nothing is deleted.
pub const AHEAD_NS_MAX: i64 = 300_000_000_000;

/// What was received before this has expired at a moment. Nothing has if there is no retention.
pub fn cutoff(now: Timestamp, retention_ns: Option<i64>) -> Timestamp {
    retention_ns.map_or(Timestamp::MIN, |ns| now.saturating_add(ns.saturating_neg()))
}

/// Whether a source expires as a whole: all of it was received before the cutoff.
pub fn is_expired(received_max: Timestamp, cutoff: Timestamp) -> bool {
    received_max < cutoff
}

/// How far a node has come with deleting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// What was received before this may be gone; unknown until there is something.
    horizon: Option<Timestamp>,
    ran_ms: u64,
}

/// The clocks as a node sees them at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Clocks<'a> {
    /// Its own.
    pub now: Timestamp,
    /// Its own monotonic one.
    pub now_ms: u64,
    /// Those of others.
    pub peers: &'a [Timestamp],
}

impl Deletion {
    /// A process that begins at a monotonic time.
    pub fn new(now_ms: u64) -> Deletion {
        Deletion {
            horizon: None,
            ran_ms: now_ms,
        }
    }

    /// Moves on as far as it may: what was received before the time given may be deleted. `oldest`
    /// is when the oldest of what the node holds was received; a process goes on from what it finds.
    pub fn advance(
        &mut self,
        clocks: Clocks<'_>,
        retention_ns: Option<i64>,
        oldest: Option<Timestamp>,
    ) -> Timestamp {
        let passed_ms = clocks.now_ms.saturating_sub(self.ran_ms);
        self.ran_ms = self.ran_ms.max(clocks.now_ms);
        let Some(before) = self.horizon.or(oldest) else {
            return Timestamp::MIN;
        };
        let horizon = self.horizon.insert(before);
        if is_ahead(clocks.now, clocks.peers) {
            return Timestamp::MIN;
        }
        let due = cutoff(clocks.now, retention_ns).saturating_add(-LAG_NS);
        let passed_ns = i64::try_from(passed_ms).unwrap_or(i64::MAX);
        let reachable = before.saturating_add(passed_ns.saturating_mul(1_000_000));
        *horizon = before.max(due.min(reachable));
        // What comes late may be older than what was found first, and is not due for that.
        due.min(*horizon)
    }
}

/// How far a clock is ahead of the median of others, in nanoseconds; 0 if there are none.
fn ahead_ns(now: Timestamp, peers: &[Timestamp]) -> i64 {
    let mut peers = peers.to_vec();
    peers.sort_unstable();
    let median = peers.get(peers.len() / 2);
    median.map_or(0, |median| now.0.saturating_sub(median.0))
}

/// Whether a clock is further ahead of the median of others than is believed.
pub fn is_ahead(now: Timestamp, peers: &[Timestamp]) -> bool {
    ahead_ns(now, peers) > AHEAD_NS_MAX
}

/// Whether a clock is so far from the median of others that an ingester must not stamp anything
/// with it: what seems old would be deleted, and what seems new be kept for too long.
pub fn is_off(now: Timestamp, peers: &[Timestamp]) -> bool {
    ahead_ns(now, peers).unsigned_abs() > AHEAD_NS_MAX.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_NS: i64 = 86_400_000_000_000;
    const DAY_MS: u64 = 86_400_000;

    #[test]
    fn without_retention_nothing_expires() {
        assert!(!is_expired(Timestamp(i64::MIN), cutoff(Timestamp(9), None)));
        let cutoff = cutoff(Timestamp(100), Some(10));
        assert!(is_expired(Timestamp(89), cutoff) && !is_expired(Timestamp(90), cutoff));
    }

    const KEEP: Option<i64> = Some(10 * DAY_NS);
    const OLDEST: Timestamp = Timestamp(90 * DAY_NS);

    fn advance(deletion: &mut Deletion, now: Timestamp, now_ms: u64, peers: &[Timestamp]) -> i64 {
        let clocks = Clocks { now, now_ms, peers };
        deletion.advance(clocks, KEEP, Some(OLDEST)).0
    }

    #[test]
    fn deletion_follows_the_clock_with_a_lag() {
        let start = Timestamp(100 * DAY_NS);
        let mut deletion = Deletion::new(0);
        let due = OLDEST.0 - LAG_NS;
        assert_eq!(advance(&mut deletion, start, 0, &[]), due);
        let later = start.saturating_add(DAY_NS);
        let expected = due + DAY_NS;
        assert_eq!(advance(&mut deletion, later, DAY_MS, &[later]), expected);
        // With less time gone than the clock says, it goes on no faster than time does.
        let next = later.saturating_add(DAY_NS);
        let second = expected + 1_000_000_000;
        assert_eq!(advance(&mut deletion, next, DAY_MS + 1000, &[]), second);
        // A clock that goes back deletes less.
        assert_eq!(advance(&mut deletion, start, DAY_MS + 1000, &[]), due);
    }

    #[test]
    fn a_clock_that_jumps_deletes_nothing() {
        let year = Timestamp(500 * DAY_NS);
        let mut alone = Deletion::new(0);
        assert_eq!(advance(&mut alone, year, 0, &[]), OLDEST.0);
        // Without others to compare with it goes on no faster than time does.
        let second = OLDEST.0 + 1_000_000_000;
        assert_eq!(advance(&mut alone, year, 1000, &[]), second);
        let mut member = Deletion::new(0);
        let peers = [100, 100, 500].map(|day| Timestamp(day * DAY_NS));
        assert_eq!(advance(&mut member, year, DAY_MS, &peers), i64::MIN);
        // What passed while it was not believed is not made up for at once.
        let back = Timestamp(102 * DAY_NS);
        let expected = OLDEST.0 + 1_000_000;
        assert_eq!(advance(&mut member, back, DAY_MS + 1, &[back]), expected);
    }

    #[test]
    fn what_comes_late_is_not_due_for_that() {
        let now = Timestamp(100 * DAY_NS);
        let clocks = |now_ms| Clocks {
            now,
            now_ms,
            peers: &[],
        };
        let mut deletion = Deletion::new(0);
        let recent = Some(Timestamp(99 * DAY_NS));
        assert!(deletion.advance(clocks(0), KEEP, recent) < OLDEST);
        assert!(deletion.advance(clocks(1), KEEP, Some(OLDEST)) < OLDEST);
    }

    #[test]
    fn clocks_are_compared_with_the_median() {
        let peers = [1, 100, 101].map(|day| Timestamp(day * DAY_NS));
        let table = [
            (100 * DAY_NS, false, false),
            (100 * DAY_NS + AHEAD_NS_MAX, false, false),
            (100 * DAY_NS + AHEAD_NS_MAX + 1, true, true),
            (100 * DAY_NS - AHEAD_NS_MAX - 1, false, true),
        ];
        for (now, ahead, off) in table {
            let now = Timestamp(now);
            assert_eq!((is_ahead(now, &peers), is_off(now, &peers)), (ahead, off));
        }
        assert!(!is_off(Timestamp(i64::MAX), &[]));
    }

    #[test]
    fn an_empty_node_begins_when_there_is_something() {
        let mut deletion = Deletion::new(0);
        let clocks = |now_ms| Clocks {
            now: Timestamp(500 * DAY_NS),
            now_ms,
            peers: &[],
        };
        assert_eq!(deletion.advance(clocks(DAY_MS), KEEP, None), Timestamp::MIN);
        let later = clocks(DAY_MS + 1);
        let expected = OLDEST.saturating_add(1_000_000);
        assert_eq!(deletion.advance(later, KEEP, Some(OLDEST)), expected);
    }
}
