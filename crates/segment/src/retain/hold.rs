//! A limit that would remove most of what is there at a start waits: it may be a mistake.
//!
//! Invariants: until a start was judged with a clock that is believed, no plan of more than half of what
//! is there is let through; one that waits is let through once it has waited for [`WAIT_MS`] of the time
//! that processes ran, however often they were started again and whatever came in meanwhile; other limits
//! are judged anew.

/// How long a limit waits, in milliseconds: a day is time enough for somebody to read the log.
pub const WAIT_MS: u64 = 86_400_000;

/// The limits that are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How long rows are kept after they were received, in nanoseconds.
    pub age_ns: Option<i64>,
    /// The most bytes of all files together.
    pub size_bytes: Option<u64>,
}

/// How much a plan removes of what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Records that go.
    pub records: u64,
    /// Records that are there.
    pub records_total: u64,
    /// Bytes that go.
    pub bytes: u64,
    /// Bytes that are there.
    pub bytes_total: u64,
}

impl Share {
    /// True if more than half goes.
    pub fn is_most(&self) -> bool {
        let most = |part: u64, total: u64| part > total / 2;
        most(self.records, self.records_total) || most(self.bytes, self.bytes_total)
    }
}

/// The state for the next process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldState {
    /// The limits that wait.
    pub limits: Limits,
    /// For how long they have waited, in milliseconds; no more than [`WAIT_MS`].
    pub waited_ms: u64,
}

/// The outcome for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is carried out.
    Go,
    /// It waits for so many milliseconds still.
    Wait(u64),
}

/// Lets plans through, or has them wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    limits: Limits,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was judged yet, or with a clock that is doubted only.
    Starting,
    /// Most of what is there would go.
    Waiting(u64),
    /// Plans of these limits are carried out.
    Settled,
}

impl Hold {
    /// Of a process that begins with these limits. `earlier` is what the one before has left,
    /// `is_confirmed` whether the operator has confirmed them.
    pub fn new(limits: Limits, earlier: Option<HoldState>, is_confirmed: bool) -> Hold {
        let waited_ms = earlier
            .filter(|held| held.limits == limits)
            .map(|held| held.waited_ms.min(WAIT_MS));
        let phase = match (is_confirmed, waited_ms) {
            (true, _) => Phase::Settled,
            (false, Some(waited_ms)) => Phase::Waiting(waited_ms),
            (false, None) => Phase::Starting,
        };
        Hold { limits, phase }
    }

    /// Judges a plan, when so many milliseconds have passed since the last one. `is_certain` is false
    /// while the clock that the plan counts ages by may be far behind.
    pub fn judge(&mut self, share: &Share, passed_ms: u64, is_certain: bool) -> Verdict {
        match self.phase {
            Phase::Settled => return Verdict::Go,
            Phase::Starting if !share.is_most() => {
                if is_certain {
                    self.phase = Phase::Settled;
                }
                return Verdict::Go;
            }
            Phase::Starting => self.phase = Phase::Waiting(0),
            Phase::Waiting(waited_ms) => {
                let waited_ms = waited_ms.saturating_add(passed_ms).min(WAIT_MS);
                self.phase = Phase::Waiting(waited_ms);
            }
        }
        match self.left_ms() {
            // After the wait the limits hold until all is removed: the next process goes on with it.
            0 if !share.is_most() && is_certain => {
                self.phase = Phase::Settled;
                Verdict::Go
            }
            0 => Verdict::Go,
            // Somebody else has removed it.
            _ if share.records == 0 && share.bytes == 0 && is_certain => {
                self.phase = Phase::Settled;
                Verdict::Go
            }
            left_ms => Verdict::Wait(left_ms),
        }
    }

    /// The state for the next process.
    pub fn held(&self) -> Option<HoldState> {
        match self.phase {
            Phase::Waiting(waited_ms) => Some(HoldState {
                limits: self.limits,
                waited_ms,
            }),
            Phase::Starting | Phase::Settled => None,
        }
    }

    fn left_ms(&self) -> u64 {
        match self.phase {
            Phase::Waiting(waited_ms) => WAIT_MS - waited_ms,
            Phase::Starting | Phase::Settled => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        age_ns: None,
        size_bytes: Some(10),
    };

    fn share(records: u64, records_total: u64) -> Share {
        Share {
            records,
            records_total,
            ..Share::default()
        }
    }

    #[test]
    fn half_is_not_most() {
        assert!(!share(2, 4).is_most() && share(3, 4).is_most());
        assert!(!Share::default().is_most() && share(1, 1).is_most());
        let bytes = Share {
            bytes: 6,
            bytes_total: 10,
            ..share(1, 4)
        };
        assert!(bytes.is_most());
    }

    #[test]
    fn most_waits_a_day_of_running() {
        let mut hold = Hold::new(LIMITS, None, false);
        assert_eq!(hold.judge(&share(9, 10), 0, true), Verdict::Wait(WAIT_MS));
        let left = Verdict::Wait(WAIT_MS - 1_000);
        assert_eq!(hold.judge(&share(9, 10), 1_000, true), left);
        // A start does not begin it anew, nor does what came in meanwhile end it.
        let mut hold = Hold::new(LIMITS, hold.held(), false);
        assert_eq!(hold.judge(&share(9, 30), 0, true), left);
        assert_eq!(hold.judge(&share(9, 10), WAIT_MS, true), Verdict::Go);
        let mut hold = Hold::new(LIMITS, hold.held(), false);
        assert_eq!(hold.judge(&share(9, 10), 0, true), Verdict::Go);
        assert_eq!(hold.judge(&share(1, 10), 0, true), Verdict::Go);
        assert_eq!(hold.held(), None);
        assert_eq!(hold.judge(&share(10, 10), 0, true), Verdict::Go);
    }

    #[test]
    fn other_limits_are_judged_anew() {
        let mut hold = Hold::new(LIMITS, None, false);
        hold.judge(&share(9, 10), 0, true);
        hold.judge(&share(9, 10), WAIT_MS, true);
        let other = Limits {
            size_bytes: Some(11),
            ..LIMITS
        };
        let mut next = Hold::new(other, hold.held(), false);
        assert_eq!(next.judge(&share(9, 10), 0, true), Verdict::Wait(WAIT_MS));
        let mut confirmed = Hold::new(other, next.held(), true);
        assert_eq!(confirmed.judge(&share(9, 10), 0, true), Verdict::Go);
        assert_eq!(confirmed.held(), None);
    }

    #[test]
    fn a_start_is_not_over_before_the_clock_is_believed() {
        let mut hold = Hold::new(LIMITS, None, false);
        assert_eq!(hold.judge(&share(0, 10), 0, false), Verdict::Go);
        assert_eq!(hold.judge(&share(9, 10), 0, true), Verdict::Wait(WAIT_MS));
        assert_eq!(hold.judge(&share(0, 10), 5, true), Verdict::Go);
        // Later on, what was taken in may expire together.
        assert_eq!(hold.judge(&share(10, 10), 5, true), Verdict::Go);
    }
}
