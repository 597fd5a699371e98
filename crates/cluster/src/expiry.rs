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
    /// What was received before this may be gone.
    horizon: Timestamp,
    ran_ms: u64,
}

impl Deletion {
    /// A process that begins at a monotonic time, and has nothing that was received before
    /// `oldest`: it goes on from there.
    pub fn new(oldest: Timestamp, now_ms: u64) -> Deletion {
        Deletion {
            horizon: oldest,
            ran_ms: now_ms,
        }
    }

    /// Moves on as far as it may: what was received before the time given may be deleted.
    /// `peers` are the clocks of other nodes at this moment.
    pub fn advance(
        &mut self,
        now: Timestamp,
        now_ms: u64,
        retention_ns: Option<i64>,
        peers: &[Timestamp],
    ) -> Timestamp {
        let passed_ms = now_ms.saturating_sub(self.ran_ms);
        self.ran_ms = self.ran_ms.max(now_ms);
        if is_ahead(now, peers) {
            return self.horizon;
        }
        let passed_ns = i64::try_from(passed_ms)
            .unwrap_or(i64::MAX)
            .saturating_mul(1_000_000);
        let due = cutoff(now, retention_ns).saturating_add(-LAG_NS);
        let reachable = self.horizon.saturating_add(passed_ns);
        self.horizon = self.horizon.max(due.min(reachable));
        self.horizon
    }
}

/// Whether a clock is further ahead of the median of others than is believed.
pub fn is_ahead(now: Timestamp, peers: &[Timestamp]) -> bool {
    let mut peers = peers.to_vec();
    peers.sort_unstable();
    let median = peers.get(peers.len() / 2);
    median.is_some_and(|median| now > median.saturating_add(AHEAD_NS_MAX))
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

    #[test]
    fn deletion_follows_the_clock_with_a_lag() {
        let start = Timestamp(100 * DAY_NS);
        let mut deletion = Deletion::new(Timestamp(90 * DAY_NS), 0);
        let keep = Some(10 * DAY_NS);
        assert_eq!(
            deletion.advance(start, 0, keep, &[]),
            Timestamp(90 * DAY_NS)
        );
        let later = start.saturating_add(DAY_NS);
        assert_eq!(
            deletion.advance(later, DAY_MS, keep, &[later]),
            Timestamp(91 * DAY_NS - LAG_NS)
        );
        assert_eq!(
            deletion.advance(start, DAY_MS, keep, &[]),
            Timestamp(91 * DAY_NS - LAG_NS),
            "a clock that goes back brings nothing back"
        );
    }

    #[test]
    fn a_clock_that_jumps_deletes_nothing() {
        let oldest = Timestamp(90 * DAY_NS);
        let year = Timestamp(500 * DAY_NS);
        let mut alone = Deletion::new(oldest, 0);
        let keep = Some(10 * DAY_NS);
        assert_eq!(alone.advance(year, 0, keep, &[]), oldest);
        // Without others to compare with it goes on no faster than time does.
        assert_eq!(
            alone.advance(year, 1000, keep, &[]),
            oldest.saturating_add(1_000_000_000)
        );
        let mut member = Deletion::new(oldest, 0);
        let peers = [100, 100, 500].map(|day| Timestamp(day * DAY_NS));
        assert_eq!(member.advance(year, DAY_MS, keep, &peers), oldest);
        // What passed while it was not believed is not made up for at once.
        let back = Timestamp(101 * DAY_NS);
        assert_eq!(
            member.advance(back, DAY_MS + 1, keep, &[back]),
            oldest.saturating_add(1_000_000)
        );
    }
}
