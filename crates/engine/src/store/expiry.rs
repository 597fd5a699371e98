//! By what time files expire for their age, if by any: clocks may be wrong (CLUSTER R8).

use std::sync::Arc;
use std::time::Duration;

use logpond_cluster::expiry::{self, Clocks, Deletion, OFF_NS_MAX, Permit};
use logpond_record::Timestamp;

use super::Counters;
use logpond_host::telemetry::warn;
use logpond_render::quantity;

/// What is doubted of this node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    Nothing,
    /// There are other nodes, and none has said what time it is.
    Unheard,
    /// It is ahead of the others'.
    Ahead,
    /// It is ahead of what is known to have passed, and nobody agrees with it.
    Jumped,
}

/// The clocks at one moment, as the store sees them.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockSnapshot<'a> {
    /// The wall clock.
    pub(super) now: Timestamp,
    /// A clock that nobody sets, in milliseconds.
    pub(super) now_ms: u64,
    /// The clocks of other nodes, if there are any and they could be asked.
    pub(super) peers: Option<&'a [Timestamp]>,
    /// True if a time server or the bucket agrees with the wall clock.
    pub(super) is_vouched_for: bool,
}

/// What a process goes by.
pub(super) struct Expiry {
    deletion: Deletion,
    /// True if the operator says that the clock is right; counts once.
    is_trusted: bool,
    /// True once a clock was believed that was doubted, as nobody has set it right for long enough or the
    /// operator says so.
    has_yielded: bool,
    counters: Arc<Counters>,
    doubt: Doubt,
}

impl Expiry {
    /// A process that goes on from what is known to have passed.
    pub(super) fn new(deletion: Deletion, is_trusted: bool, counters: Arc<Counters>) -> Expiry {
        Expiry {
            deletion,
            is_trusted,
            has_yielded: false,
            counters,
            doubt: Doubt::Nothing,
        }
    }

    /// The time that ages are counted up to now; nothing expires where there is none.
    pub(super) fn now(&mut self, seen: ClockSnapshot<'_>) -> Option<Timestamp> {
        let lag_ns = self.deletion.lag_ns(seen.now, seen.now_ms);
        let before = self.deletion.doubt();
        let permit = seen.peers.map(|peers| {
            self.deletion.permit(Clocks {
                now: seen.now,
                now_ms: seen.now_ms,
                peers,
                is_vouched_for: seen.is_vouched_for || self.is_trusted,
            })
        });
        if permit.is_some() {
            let was_far = lag_ns > OFF_NS_MAX && self.deletion.doubt().is_none();
            let by_itself = before.is_some() && !seen.is_vouched_for && seen.peers == Some(&[]);
            self.has_yielded |= was_far && (self.is_trusted || by_itself);
            self.is_trusted = false;
        }
        let lag_ns = self.deletion.lag_ns(seen.now, seen.now_ms);
        let (by, doubt, off_ns) = match permit {
            None => (None, Doubt::Unheard, 0),
            Some(Permit::Ahead(ahead_ns)) => (None, Doubt::Ahead, ahead_ns),
            Some(Permit::By(by)) if lag_ns > OFF_NS_MAX => (Some(by), Doubt::Jumped, lag_ns),
            Some(Permit::By(by)) => (Some(by), Doubt::Nothing, 0),
        };
        self.counters.expiry_lag_ms.set(lag_ns / 1_000_000);
        self.counters.expiry_stopped.set(i64::from(by.is_none()));
        if doubt != self.doubt {
            self.doubt = doubt;
            if doubt == Doubt::Ahead {
                let off = quantity::span(Duration::from_nanos(off_ns.unsigned_abs()));
                warn(&format!(
                    "this node's clock is {off} ahead of the other nodes': nothing is removed for its \
                     age until they agree"
                ));
            }
        }
        by
    }

    /// True if the time that ages count up to is far behind the clock, or there is none.
    pub(super) fn is_doubted(&self) -> bool {
        self.doubt != Doubt::Nothing
    }

    /// True if a doubted clock was believed in the end without anybody else agreeing with it: what it
    /// removes was said before.
    pub(super) fn has_yielded(&self) -> bool {
        self.has_yielded
    }

    /// The state for the next process: the time reached, and the doubt.
    pub(super) fn reached(&self) -> (Timestamp, Option<expiry::Doubt>) {
        (self.deletion.reached(), self.deletion.doubt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: i64 = 3_600_000_000_000;
    const HOUR_MS: u64 = 3_600_000;
    const START: Timestamp = Timestamp(1_000 * HOUR_NS);

    fn seen(now: Timestamp, now_ms: u64, peers: Option<&[Timestamp]>) -> ClockSnapshot<'_> {
        ClockSnapshot {
            now,
            now_ms,
            peers,
            is_vouched_for: false,
        }
    }

    #[test]
    fn what_is_doubted_is_shown() {
        let counters = Arc::new(Counters::default());
        let deletion = Deletion::new(START, 0);
        let mut expiry = Expiry::new(deletion, false, Arc::clone(&counters));
        let shown = || (counters.expiry_stopped.get(), counters.expiry_lag_ms.get());
        assert_eq!(expiry.now(seen(START, 0, Some(&[]))), Some(START));
        assert_eq!(shown(), (0, 0));
        let unheard = expiry.now(seen(START, 0, None));
        assert_eq!(unheard, None, "others could not be asked");
        assert_eq!(shown(), (1, 0));
        // Nothing that was not due an hour ago is due now.
        let ahead = START.saturating_add(2 * HOUR_NS);
        assert_eq!(expiry.now(seen(ahead, 0, Some(&[]))), Some(START));
        let lag_ms = HOUR_NS / 1_000_000;
        assert!(shown().0 == 0 && shown().1 > lag_ms, "{:?}", shown());
        assert!(expiry.is_doubted());
        assert_eq!(expiry.now(seen(ahead, 0, Some(&[START]))), None);
        assert_eq!(shown().0, 1);
        assert_eq!(expiry.now(seen(START, 0, Some(&[START]))), Some(START));
        assert_eq!(shown(), (0, 0));
        assert!(!expiry.is_doubted());
    }

    #[test]
    fn the_operator_is_believed_once() {
        let counters = Arc::new(Counters::default());
        let deletion = Deletion::resume(START, None, 0);
        let mut expiry = Expiry::new(deletion, true, counters);
        let ahead = START.saturating_add(960 * HOUR_NS);
        assert_eq!(expiry.now(seen(ahead, 0, Some(&[]))), Some(ahead));
        assert!(expiry.has_yielded());
        let further = ahead.saturating_add(960 * HOUR_NS);
        assert_eq!(expiry.now(seen(further, 0, Some(&[]))), Some(ahead));
    }

    #[test]
    fn a_time_server_is_believed_and_a_clock_alone_after_a_day() {
        let ahead = START.saturating_add(960 * HOUR_NS);
        let deletion = Deletion::resume(START, None, 0);
        let counters = Arc::new(Counters::default());
        let mut synchronised = Expiry::new(deletion, false, Arc::clone(&counters));
        let vouched = ClockSnapshot {
            is_vouched_for: true,
            ..seen(ahead, 0, Some(&[]))
        };
        assert_eq!(synchronised.now(vouched), Some(ahead));
        assert!(!synchronised.has_yielded());
        let mut alone = Expiry::new(deletion, false, counters);
        assert_eq!(alone.now(seen(ahead, 0, Some(&[]))), Some(START));
        assert!(alone.is_doubted() && !alone.has_yielded());
        let later = ahead.saturating_add(24 * HOUR_NS);
        let by = alone.now(seen(later, 24 * HOUR_MS, Some(&[])));
        assert_eq!(by, Some(later));
        assert!(!alone.is_doubted() && alone.has_yielded());
    }
}
