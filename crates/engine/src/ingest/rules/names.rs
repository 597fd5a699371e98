//! Names of batches that were counted, so that one that is sent again counts once.
//!
//! The journal knows those that it holds; not those of which nothing was kept, nor those that segments
//! hold by now.

use logpond_segment::batches::{BatchId, BatchSet};

/// Runs of names that are remembered at least: a run is all that a producer sent without a gap, in a
/// hundred bytes. Twice as many are remembered at most.
const RUNS_MAX: usize = 32_768;

/// Names after which the runs are counted again: counting costs a look at each.
const COUNT_INTERVAL: usize = 1_024;

/// What was counted lately.
#[derive(Default)]
pub(super) struct Names {
    recent: Generation,
    before: Generation,
    since_count: usize,
}

#[derive(Default)]
struct Generation {
    all: BatchSet,
    /// Those of which nothing was kept.
    dropped: BatchSet,
}

fn has(set: &BatchSet, id: &BatchId) -> bool {
    set.contains(id.epoch, id.sequence)
}

impl Names {
    /// Whether a batch was counted of which nothing was kept.
    pub(super) fn is_dropped(&self, id: &BatchId) -> bool {
        has(&self.recent.dropped, id) || has(&self.before.dropped, id)
    }

    /// Notes a batch; gives whether it is new.
    pub(super) fn add(&mut self, id: &BatchId, is_dropped: bool) -> bool {
        if has(&self.recent.all, id) || has(&self.before.all, id) {
            return false;
        }
        self.recent.all.insert(id.epoch, id.sequence);
        if is_dropped {
            self.recent.dropped.insert(id.epoch, id.sequence);
        }
        self.since_count += 1;
        if self.since_count >= COUNT_INTERVAL {
            self.since_count = 0;
            let runs = self.recent.all.runs().count() + self.recent.dropped.runs().count();
            if runs >= RUNS_MAX {
                self.before = std::mem::take(&mut self.recent);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::Timestamp;

    use super::*;

    fn id(epoch: u128, sequence: u64) -> BatchId {
        BatchId {
            epoch,
            sequence,
            attempt: 0,
            first_sent: Timestamp(0),
            more: 0,
        }
    }

    #[test]
    fn a_name_is_new_once_and_the_memory_is_bounded() {
        let mut names = Names::default();
        assert!(names.add(&id(1, 1), true) && names.add(&id(1, 2), false));
        assert!(!names.add(&id(1, 1), false) && !names.add(&id(1, 2), true));
        assert!(names.is_dropped(&id(1, 1)) && !names.is_dropped(&id(1, 2)));
        // A producer's dense names take no room.
        for sequence in 3..200_000 {
            assert!(names.add(&id(1, sequence), false));
        }
        assert!(!names.add(&id(1, 1), false));
        for epoch in 2..3 * RUNS_MAX as u128 {
            names.add(&id(epoch, 0), true);
        }
        assert!(names.recent.all.runs().count() <= RUNS_MAX + COUNT_INTERVAL);
        assert!(names.before.all.runs().count() <= RUNS_MAX + COUNT_INTERVAL);
    }
}
