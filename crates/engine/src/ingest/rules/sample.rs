//! One record in so many, exactly, by counting.

use std::sync::Mutex;

use super::locked;

/// Keeps one in `every`.
///
/// Invariant: of `n` records that were taken and not given back, `ceil(n / every)` are kept; what is given
/// back is made up for by those that come next.
#[derive(Debug)]
pub(super) struct Sampler {
    pub(super) every: u64,
    state: Mutex<SampleCounts>,
}

/// The number of records that came, and of those that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SampleCounts {
    pub(super) seen: u64,
    pub(super) kept: u64,
}

impl Sampler {
    pub(super) fn new(every: u64) -> Sampler {
        Sampler {
            every,
            state: Mutex::default(),
        }
    }

    /// Takes a record; gives whether it is kept.
    pub(super) fn take(&self) -> bool {
        let mut state = locked(&self.state);
        let is_kept = state.kept.saturating_mul(self.every) <= state.seen;
        state.seen += 1;
        state.kept += u64::from(is_kept);
        is_kept
    }

    /// Forgets records that were taken.
    pub(super) fn give_back(&self, sampled: SampleCounts) {
        let mut state = locked(&self.state);
        state.seen = state.seen.saturating_sub(sampled.seen);
        state.kept = state.kept.saturating_sub(sampled.kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_so_many_is_kept() {
        let sampler = Sampler::new(3);
        let kept: Vec<bool> = (0..7).map(|_| sampler.take()).collect();
        assert_eq!(kept, [true, false, false, true, false, false, true]);
    }

    /// However batches come and are given back, of what stays the share is right.
    #[test]
    fn what_is_given_back_is_made_up_for() {
        for every in [2, 7, 100] {
            let sampler = Sampler::new(every);
            let mut stayed = SampleCounts::default();
            for batch in 1..500u64 {
                let mut taken = SampleCounts::default();
                for _ in 0..batch % 37 {
                    taken.seen += 1;
                    taken.kept += u64::from(sampler.take());
                }
                match batch % 3 {
                    0 => sampler.give_back(taken),
                    _ => {
                        stayed.seen += taken.seen;
                        stayed.kept += taken.kept;
                    }
                }
            }
            let _ = (0..every).filter(|_| sampler.take()).count();
            let state = *locked(&sampler.state);
            assert_eq!(state.seen, stayed.seen + every);
            assert_eq!(state.kept, state.seen.div_ceil(every), "{every}");
        }
    }
}
