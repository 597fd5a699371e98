//! When an answer is late, and whether another node may be asked for it, too.
//!
//! After Dean and Barroso, "The Tail at Scale" (Communications of the ACM, 2013): a call that takes
//! longer than nearly all lately is made again elsewhere, and the first answer counts.
//!
//! Invariant: of all calls at most one in [`HEDGES_ONE_IN`] is made again, and [`HEDGES_BURST`] more,
//! however late all are: what makes every node slow must not be made worse.

use std::collections::VecDeque;
use std::time::Duration;

/// Calls whose times are remembered: some seconds of a node that is asked now and then.
const CALLS_MAX: usize = 256;

/// With fewer known times nothing is late before [`PATIENCE_UNKNOWN`].
const CALLS_MIN: usize = 16;

/// A call is late when it takes longer than all but one in so many did.
const LATE_ONE_IN: usize = 20;

/// Nothing is late before this: a busy machine takes so long to run a thread.
const PATIENCE_MIN: Duration = Duration::from_millis(20);

/// What is late while little is known.
const PATIENCE_UNKNOWN: Duration = Duration::from_millis(500);

/// One further call for so many calls: 5 % more load.
pub const HEDGES_ONE_IN: u32 = 20;

/// Further calls that may be made at once after a quiet time: as much as one question to a cluster of
/// a few nodes, one of which has just stopped, needs.
pub const HEDGES_BURST: u32 = 8;

/// How long calls took lately.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    times: VecDeque<Duration>,
}

impl Lateness {
    /// Notes how long a call took, or how long it had taken when nobody waited for it any more.
    pub fn note(&mut self, took: Duration) {
        if self.times.len() == CALLS_MAX {
            self.times.pop_front();
        }
        self.times.push_back(took);
    }

    /// How long a call may take until it is late.
    pub fn patience(&self) -> Duration {
        if self.times.len() < CALLS_MIN {
            return PATIENCE_UNKNOWN;
        }
        let mut times: Vec<Duration> = self.times.iter().copied().collect();
        let rank = times.len() - 1 - times.len() / LATE_ONE_IN;
        let (_, quantile, _) = times.select_nth_unstable(rank);
        (*quantile).max(PATIENCE_MIN)
    }
}

/// How many further calls may be made.
#[derive(Clone, Debug)]
pub struct Budget {
    /// In calls that have to be made for one, [`HEDGES_ONE_IN`] for each.
    credit: u32,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            credit: HEDGES_BURST * HEDGES_ONE_IN,
        }
    }
}

impl Budget {
    /// Notes that a call was made.
    pub fn earn(&mut self) {
        self.credit = (self.credit + 1).min(HEDGES_BURST * HEDGES_ONE_IN);
    }

    /// Whether so many further calls may be made now; if so, they are.
    pub fn spend(&mut self, calls: usize) -> bool {
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        let left = self.credit.checked_sub(calls.saturating_mul(HEDGES_ONE_IN));
        left.map(|left| self.credit = left).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn late_is_what_nearly_all_were_not() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.patience(), PATIENCE_UNKNOWN);
        (0..CALLS_MIN).for_each(|_| lateness.note(MS));
        assert_eq!(lateness.patience(), PATIENCE_MIN);
        (0..CALLS_MAX).for_each(|n| lateness.note(100 * MS + MS * n as u32));
        // 12 of 256 took longer.
        assert_eq!(lateness.patience(), 343 * MS);
        // What was long ago counts no more.
        (0..CALLS_MAX).for_each(|_| lateness.note(50 * MS));
        assert_eq!(lateness.patience(), 50 * MS);
    }

    proptest! {
        #[test]
        fn further_calls_are_few(
            steps in prop::collection::vec(prop_oneof![3 => Just(0usize), 1 => 1usize..12], 0..400),
        ) {
            let mut budget = Budget::default();
            let (mut calls, mut hedges) = (0, 0);
            for step in steps {
                if step == 0 {
                    budget.earn();
                    calls += 1;
                } else if budget.spend(step) {
                    hedges += step as u32;
                }
                prop_assert!(hedges <= calls / HEDGES_ONE_IN + HEDGES_BURST);
            }
        }
    }
}
