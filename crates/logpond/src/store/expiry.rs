//! By what time files expire for their age, if by any: clocks may be wrong (CLUSTER R8).

use std::sync::Arc;
use std::time::{Duration, Instant};

use logpond_cluster::expiry::{Clocks, Deletion, OFF_NS_MAX, Permit};
use logpond_record::Timestamp;

use super::Counters;
use crate::output::quantity;
use crate::telemetry::warn;

/// What is doubted of this node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    Nothing,
    /// There are other nodes, and none has said what time it is.
    Unheard,
    /// It is ahead of the others'.
    Ahead,
    /// It was set ahead.
    Jumped,
}

/// What a process goes by.
pub(super) struct Expiry {
    deletion: Deletion,
    began: Instant,
    counters: Arc<Counters>,
    doubt: Doubt,
}

impl Expiry {
    /// A process that begins now.
    pub(super) fn new(now: Timestamp, counters: Arc<Counters>) -> Expiry {
        Expiry {
            deletion: Deletion::new(now, 0),
            began: Instant::now(),
            counters,
            doubt: Doubt::Nothing,
        }
    }

    /// The time that ages are counted up to now; nothing expires where there is none. `peers` are
    /// the clocks of other nodes, if there are any and they could be asked.
    pub(super) fn now(&mut self, now: Timestamp, peers: Option<&[Timestamp]>) -> Option<Timestamp> {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let lag_ns = self.deletion.lag_ns(now, now_ms);
        let permit = peers.map(|peers| self.deletion.permit(Clocks { now, now_ms, peers }));
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
            let off = Duration::from_nanos(off_ns.unsigned_abs());
            self.complain(&quantity::span(off));
        }
        by
    }

    fn complain(&self, off: &str) {
        match self.doubt {
            Doubt::Nothing | Doubt::Unheard => {}
            Doubt::Ahead => warn(&format!(
                "this node's clock is {off} ahead of the other nodes': nothing is removed for its \
                 age until they agree"
            )),
            Doubt::Jumped => warn(&format!(
                "the clock was set ahead by {off} while this server ran: what would not have been \
                 removed for its age without that is not; if the clock is right, restart the server"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: i64 = 3_600_000_000_000;
    const START: Timestamp = Timestamp(1_000 * HOUR_NS);

    #[test]
    fn what_is_doubted_is_shown() {
        let counters = Arc::new(Counters::default());
        let mut expiry = Expiry::new(START, Arc::clone(&counters));
        let shown = || (counters.expiry_stopped.get(), counters.expiry_lag_ms.get());
        assert_eq!(expiry.now(START, Some(&[])), Some(START));
        assert_eq!(shown(), (0, 0));
        assert_eq!(expiry.now(START, None), None, "others could not be asked");
        assert_eq!(shown(), (1, 0));
        // Nothing that was not due an hour ago is due now, however the test is held up.
        let ahead = START.saturating_add(2 * HOUR_NS);
        let by = expiry.now(ahead, Some(&[])).expect("what was due is due");
        assert!(START <= by && by < START.saturating_add(HOUR_NS), "{by}");
        let lag_ms = HOUR_NS / 1_000_000;
        assert!(shown().0 == 0 && shown().1 > lag_ms, "{:?}", shown());
        assert_eq!(expiry.now(ahead, Some(&[START])), None);
        assert_eq!(shown().0, 1);
        assert_eq!(expiry.now(START, Some(&[START])), Some(START));
        assert_eq!(shown(), (0, 0));
    }
}
