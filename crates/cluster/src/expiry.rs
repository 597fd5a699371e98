//! By which clock a node deletes and receives (CLUSTER R8).
//!
//! What has expired counts nowhere from the moment when the first node that removes it has noted so
//! in its registry ([`crate::Registry::expire`]), which only grows: so all nodes answer alike,
//! whatever their clocks say, and nothing comes back. When that is, is for clocks to say, and they
//! may be wrong.
//!
//! Invariants:
//! - What a node deletes by is never later than its clock, nor than the time that it had reached before
//!   and what has passed since by a clock that nobody sets ([`Deletion`]), unless somebody else agrees
//!   with its clock, or it has stayed as it is for [`WAIT_MS`] while the node ran.
//! - A node deletes nothing while its clock is ahead of the others'.
//!
//! So a clock that is wrong by a year, at the start or later, deletes nothing but what was due.

use logpond_record::{SourceId, Timestamp};
use logpond_segment::sources::{Interval, SourceSet};

/// Clocks of nodes that are kept right differ by milliseconds; one that is off by more than 5
/// minutes is wrong.
pub const OFF_NS_MAX: i64 = 300_000_000_000;

/// How long a clock that nobody agrees with must stay as it is until it is believed, in milliseconds: a
/// day is time enough for somebody to read the log.
pub const WAIT_MS: u64 = 86_400_000;

/// How much further ahead a doubted clock may be set, all in all, without the waiting beginning anew: the
/// time that a machine is off counts as that.
const FURTHER_NS_MAX: i64 = 86_400_000_000_000;

/// The time that ages count up to, and what is doubted of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    reached: Timestamp,
    reached_ms: u64,
    doubt: Option<Doubt>,
}

/// A clock that is ahead of what is known to have passed, and with which nobody agrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// How far it was ahead when the waiting began, in nanoseconds.
    pub ahead_ns: i64,
    /// For how long it has stayed like that while the node ran, in milliseconds.
    pub waited_ms: u64,
}

impl Doubt {
    /// How long it is to stay like that still, in milliseconds.
    pub fn left_ms(&self) -> u64 {
        WAIT_MS.saturating_sub(self.waited_ms)
    }
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
    /// True if somebody else vouches for its own: a time server, a bucket, or the operator.
    pub is_vouched_for: bool,
}

/// By what a node may delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// By this time.
    By(Timestamp),
    /// By nothing, while its clock is ahead of the others' by so many nanoseconds.
    Ahead(i64),
}

impl Deletion {
    /// A process that begins at a time that is believed: there is nothing yet that a wrong clock could
    /// delete, or others tell that it is wrong.
    pub fn new(now: Timestamp, now_ms: u64) -> Deletion {
        Deletion::resume(now, None, now_ms)
    }

    /// A process that begins when so much time is known to have passed: what an earlier one had reached,
    /// or the time of the newest record. `doubt` is what that one doubted.
    pub fn resume(reached: Timestamp, doubt: Option<Doubt>, now_ms: u64) -> Deletion {
        Deletion {
            reached,
            reached_ms: now_ms,
            doubt,
        }
    }

    /// What may be deleted by now.
    pub fn permit(&mut self, clocks: Clocks<'_>) -> Permit {
        let passed_ms = clocks.now_ms.saturating_sub(self.reached_ms);
        self.reached = self.reached_at(clocks.now_ms);
        self.reached_ms = self.reached_ms.max(clocks.now_ms);
        let ahead_of_peers_ns = ahead_ns(clocks.now, clocks.peers);
        if let Some(ahead_ns) = ahead_of_peers_ns.filter(|ahead| *ahead > OFF_NS_MAX) {
            return Permit::Ahead(ahead_ns);
        }
        let is_agreed = clocks.is_vouched_for || ahead_of_peers_ns.is_some();
        if clocks.now <= self.reached || is_agreed || self.has_waited(clocks.now, passed_ms) {
            (self.reached, self.doubt) = (clocks.now, None);
        }
        Permit::By(self.reached)
    }

    /// Waits on; gives whether that was long enough.
    fn has_waited(&mut self, now: Timestamp, passed_ms: u64) -> bool {
        let ahead_ns = now.0.saturating_sub(self.reached.0);
        // Clocks that are slightly off are waited for as well; that says nothing of a jump behind it.
        let is_far = |ahead_ns: i64| ahead_ns > OFF_NS_MAX;
        let goes_on = |doubt: &Doubt| {
            is_far(ahead_ns) == is_far(doubt.ahead_ns)
                && ahead_ns.saturating_sub(doubt.ahead_ns) <= FURTHER_NS_MAX
        };
        let doubt = match self.doubt.filter(goes_on) {
            Some(doubt) => Doubt {
                waited_ms: doubt.waited_ms.saturating_add(passed_ms),
                ..doubt
            },
            None => Doubt {
                ahead_ns,
                waited_ms: 0,
            },
        };
        self.doubt = Some(doubt);
        doubt.left_ms() == 0
    }

    /// The time that ages counted up to last.
    pub fn reached(&self) -> Timestamp {
        self.reached
    }

    /// The doubt about the clock.
    pub fn doubt(&self) -> Option<Doubt> {
        self.doubt
    }

    /// How far the clock has gone ahead of the time that has passed, in nanoseconds: what is deleted
    /// by is so far behind it.
    pub fn lag_ns(&self, now: Timestamp, now_ms: u64) -> i64 {
        now.0.saturating_sub(self.reached_at(now_ms).0).max(0)
    }

    /// The time of a clock that nobody has set since.
    fn reached_at(&self, now_ms: u64) -> Timestamp {
        let passed_ms = now_ms.saturating_sub(self.reached_ms);
        let passed_ns = i64::try_from(passed_ms).unwrap_or(i64::MAX);
        let passed_ns = passed_ns.saturating_mul(1_000_000);
        self.reached.saturating_add(passed_ns)
    }
}

/// How far a clock is ahead of the median of others, in nanoseconds; negative if it is behind. Of
/// two in the middle the earlier one counts: a single clock that is ahead does not move it.
pub fn ahead_ns(now: Timestamp, peers: &[Timestamp]) -> Option<i64> {
    let mut peers = peers.to_vec();
    peers.sort_unstable();
    let median = peers.get(peers.len().checked_sub(1)? / 2)?;
    Some(now.0.saturating_sub(median.0))
}

/// How far a clock may be behind the others' before an ingester must not stamp anything with it,
/// where records are kept for so long: a tenth of that, or what any wrong clock is. To refuse records
/// costs their senders more than that they expire a little early; those that are kept for ever do not.
pub fn behind_ns_max(retain_age_ns: Option<i64>) -> i64 {
    retain_age_ns.map_or(i64::MAX, |age| OFF_NS_MAX.max(age / 10))
}

/// Whether a clock is so far behind the others' that what it stamps would expire too early. Of two
/// nodes it is always the one that is behind, whoever is right: stamps that are too late cost room,
/// those that are too early records.
pub fn is_behind(now: Timestamp, peers: &[Timestamp], behind_ns_max: i64) -> bool {
    ahead_ns(now, peers).is_some_and(|ahead_ns| ahead_ns < -behind_ns_max)
}

/// Of sources that would have expired for their age ([`crate::Registry::ended_before`]) the last one of each
/// incarnation of which nobody holds any: they were lost with all their copies. An incarnation of
/// which something is held expires as that does, since it does so from its beginning on.
pub fn lost(outlived: &SourceSet, held: &SourceSet) -> SourceSet {
    let is_lost = |last: &SourceId| {
        let all = Interval {
            from: 0,
            to: last.sequence,
        };
        let mut of_it = SourceSet::new();
        of_it.insert_interval(last.incarnation, all);
        of_it.common(outlived).is_disjoint(held)
    };
    outlived.last_of_each().filter(is_lost).collect()
}

#[cfg(test)]
mod tests {
    use logpond_record::Incarnation;

    use super::*;

    #[test]
    fn only_what_nobody_holds_is_lost() {
        let set = |sources: &[(u128, u64)]| -> SourceSet {
            let each = sources.iter();
            each.map(|(incarnation, sequence)| SourceId {
                incarnation: Incarnation(*incarnation),
                sequence: *sequence,
            })
            .collect()
        };
        let outlived = set(&[(1, 2), (1, 3), (2, 0), (2, 1), (3, 5)]);
        // Of the second one something is held; of the third one only what has gone on.
        let held = set(&[(2, 1), (3, 6), (4, 5)]);
        assert_eq!(lost(&outlived, &held), set(&[(1, 3), (3, 5)]));
        assert_eq!(lost(&set(&[]), &held), set(&[]));
    }

    const DAY_NS: i64 = 86_400_000_000_000;
    const DAY_MS: u64 = 86_400_000;
    const START: Timestamp = Timestamp(100 * DAY_NS);

    fn permit(now: i64, now_ms: u64, peers: &[Timestamp]) -> Permit {
        let mut deletion = Deletion::new(START, 7);
        let now = Timestamp(now);
        deletion.permit(Clocks {
            now,
            now_ms: now_ms + 7,
            peers,
            is_vouched_for: false,
        })
    }

    #[test]
    fn deletion_follows_the_clock_as_fast_as_time_passes() {
        let table = [
            // The clock, milliseconds that have passed, what may be deleted by.
            (START.0, 0, START.0),
            (START.0 + DAY_NS, DAY_MS, START.0 + DAY_NS),
            // It was set ahead, back, and back behind where it began.
            (START.0 + 365 * DAY_NS, 1_000, START.0 + 1_000_000_000),
            (START.0 + DAY_NS, 2 * DAY_MS, START.0 + DAY_NS),
            (START.0 - DAY_NS, DAY_MS, START.0 - DAY_NS),
            (i64::MAX, u64::MAX - 7, i64::MAX),
        ];
        for (now, passed_ms, expected) in table {
            let expected = Permit::By(Timestamp(expected));
            assert_eq!(permit(now, passed_ms, &[]), expected, "{now} {passed_ms}");
        }
    }

    #[test]
    fn a_clock_that_is_ahead_of_the_others_deletes_nothing() {
        let year = START.0 + 365 * DAY_NS;
        let ahead = Permit::Ahead(365 * DAY_NS);
        assert_eq!(permit(year, 365 * DAY_MS, &[START]), ahead);
        assert_eq!(permit(year, 365 * DAY_MS, &[START, Timestamp(year)]), ahead);
        let most = [START, Timestamp(year), Timestamp(year)];
        assert_eq!(
            permit(year, 365 * DAY_MS, &most),
            Permit::By(Timestamp(year))
        );
        let near = Timestamp(START.0 - OFF_NS_MAX);
        assert_eq!(permit(START.0, 0, &[near]), Permit::By(START));
    }

    #[test]
    fn how_far_deletion_is_behind_is_known() {
        let deletion = Deletion::new(START, 0);
        assert_eq!(deletion.lag_ns(START, 0), 0);
        assert_eq!(deletion.lag_ns(Timestamp(START.0 + 5), 0), 5);
        assert_eq!(deletion.lag_ns(Timestamp(START.0 - 5), 1), 0);
    }

    /// A node alone that begins when a time is known to be reached, with a clock that is ahead of that.
    struct SoleNode(Deletion);

    impl SoleNode {
        fn at(&mut self, days: f64, now_ms: u64) -> f64 {
            self.ask(days, now_ms, false)
        }

        /// Days since [`START`] by which is deleted.
        fn ask(&mut self, days: f64, now_ms: u64, is_vouched_for: bool) -> f64 {
            let permit = self.0.permit(Clocks {
                now: Timestamp(START.0 + (days * DAY_NS as f64).round() as i64),
                now_ms,
                peers: &[],
                is_vouched_for,
            });
            match permit {
                Permit::By(by) => (by.0 - START.0) as f64 / DAY_NS as f64,
                Permit::Ahead(_) => panic!("there are no others"),
            }
        }
    }

    #[test]
    fn a_clock_that_is_wrong_at_the_start_deletes_nothing_for_a_day() {
        let mut alone = SoleNode(Deletion::resume(START, None, 0));
        assert_eq!(alone.at(40.0, 0), 0.0);
        assert_eq!(alone.at(40.5, DAY_MS / 2), 0.5);
        let doubt = alone.0.doubt().unwrap();
        assert_eq!((doubt.ahead_ns, doubt.waited_ms), (40 * DAY_NS, DAY_MS / 2));
        // The next process goes on waiting, and the hour that the machine was off does not begin it anew.
        let mut next = SoleNode(Deletion::resume(alone.0.reached(), Some(doubt), 7));
        assert_eq!(next.at(40.55, 7), 0.5);
        assert_eq!(next.at(40.8, 7 + DAY_MS / 4), 0.75);
        assert_eq!(next.at(41.06, 7 + DAY_MS / 2), 41.06);
        assert_eq!(next.0.doubt(), None);
        // From then on it may not jump either.
        assert_eq!(next.at(400.0, 7 + DAY_MS / 2), 41.06);
    }

    #[test]
    fn who_agrees_ends_the_waiting() {
        let resumed = Deletion::resume(START, None, 0);
        assert_eq!(SoleNode(resumed).ask(40.0, 0, true), 40.0);
        let mut among = resumed;
        let now = Timestamp(START.0 + 40 * DAY_NS);
        let mut permit = |peers: &[Timestamp]| {
            among.permit(Clocks {
                now,
                now_ms: 0,
                peers,
                is_vouched_for: false,
            })
        };
        assert_eq!(permit(&[START]), Permit::Ahead(40 * DAY_NS));
        assert_eq!(permit(&[]), Permit::By(START));
        assert_eq!(permit(&[now]), Permit::By(now));
    }

    #[test]
    fn a_clock_that_is_set_again_is_waited_for_again() {
        let mut alone = SoleNode(Deletion::resume(START, None, 0));
        assert_eq!(alone.at(40.0, 0), 0.0);
        assert_eq!(alone.at(80.9, DAY_MS * 9 / 10), 0.9);
        assert_eq!(alone.0.doubt().unwrap().waited_ms, 0);
        assert_eq!(alone.at(81.1, DAY_MS * 11 / 10), 1.1);
        // Set right, it has nothing to wait for, and what it deletes by goes back with it.
        assert_eq!(alone.at(1.0, DAY_MS * 11 / 10), 1.0);
        assert_eq!(alone.0.doubt(), None);
        assert_eq!(alone.at(40.0, DAY_MS * 11 / 10), 1.0);
    }

    #[test]
    fn a_clock_that_was_slightly_off_is_not_believed_sooner() {
        let mut alone = SoleNode(Deletion::resume(START, None, 0));
        assert_eq!(alone.at(0.001, 0), 0.0);
        assert_eq!(alone.at(0.751, DAY_MS * 3 / 4), 0.75);
        assert_eq!(alone.0.doubt().unwrap().waited_ms, DAY_MS * 3 / 4);
        assert_eq!(alone.at(1.65, DAY_MS * 3 / 4), 0.75);
        assert_eq!(alone.0.doubt().unwrap().waited_ms, 0);
        // A clock that is slightly off is believed after a day.
        let mut alone = SoleNode(Deletion::resume(START, None, 0));
        assert_eq!(alone.at(0.001, 0), 0.0);
        assert_eq!(alone.at(1.001, DAY_MS), 1.001);
    }

    #[test]
    fn one_wrong_clock_does_not_make_others_wrong() {
        let off = OFF_NS_MAX + 1;
        let peers = |offsets: &[i64]| -> Vec<Timestamp> {
            let each = offsets.iter();
            each.map(|offset| START.saturating_add(*offset)).collect()
        };
        // Offsets of the others, how far this one is ahead, and whether it is behind.
        let table: [(&[i64], Option<i64>, bool); 7] = [
            (&[], None, false),
            (&[off], Some(-off), true),
            (&[0, off], Some(0), false),
            (&[0, -off], Some(off), false),
            (&[off, off], Some(-off), true),
            (&[OFF_NS_MAX, OFF_NS_MAX], Some(-OFF_NS_MAX), false),
            (&[off, 0, off], Some(-off), true),
        ];
        for (offsets, ahead, behind) in table {
            let peers = peers(offsets);
            assert_eq!(ahead_ns(START, &peers), ahead, "{offsets:?}");
            assert_eq!(is_behind(START, &peers, OFF_NS_MAX), behind, "{offsets:?}");
        }
    }

    #[test]
    fn records_are_refused_only_where_they_would_expire_much_too_early() {
        let table = [
            (None, i64::MAX),
            (Some(0), OFF_NS_MAX),
            (Some(DAY_NS / 24), 360_000_000_000),
            (Some(30 * DAY_NS), 3 * DAY_NS),
        ];
        for (retain_age_ns, expected) in table {
            assert_eq!(behind_ns_max(retain_age_ns), expected);
        }
        let peers = [START];
        let late = Timestamp(START.0 - 2 * DAY_NS);
        assert!(!is_behind(late, &peers, behind_ns_max(Some(30 * DAY_NS))));
        assert!(!is_behind(Timestamp(0), &peers, behind_ns_max(None)));
        assert!(is_behind(late, &peers, behind_ns_max(Some(10 * DAY_NS))));
    }
}
