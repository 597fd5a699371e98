//! Batches that a follower has seen, and whose senders were heard last.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use logpond_segment::batches::BatchSet;

/// A set of batches that knows in which order its epochs were noted last.
///
/// Two are equal if their batches are: the order only tells what is left out first.
#[derive(Clone, Debug, Default)]
pub(super) struct NotedBatches {
    all: BatchSet,
    /// For each epoch the count of notes at its last one.
    noted_at: BTreeMap<u128, u64>,
    notes: u64,
}

impl PartialEq for NotedBatches {
    fn eq(&self, other: &NotedBatches) -> bool {
        self.all == other.all
    }
}

impl Eq for NotedBatches {}

impl From<BatchSet> for NotedBatches {
    fn from(all: BatchSet) -> NotedBatches {
        NotedBatches {
            all,
            ..NotedBatches::default()
        }
    }
}

impl NotedBatches {
    pub(super) fn contains(&self, (epoch, sequence): (u128, u64)) -> bool {
        self.all.contains(epoch, sequence)
    }

    pub(super) fn note(&mut self, (epoch, sequence): (u128, u64)) {
        self.all.insert(epoch, sequence);
        self.touch(epoch);
    }

    pub(super) fn note_all(&mut self, batches: &BatchSet) {
        self.all.union_with(batches);
        batches.epochs().for_each(|epoch| self.touch(epoch));
    }

    fn touch(&mut self, epoch: u128) {
        self.notes += 1;
        self.noted_at.insert(epoch, self.notes);
    }

    /// The last runs of the epochs that were noted last, at most `runs_max` of all.
    pub(super) fn newest(&self, runs_max: usize) -> BatchSet {
        let noted_at = |epoch: &u128| self.noted_at.get(epoch).copied().unwrap_or(0);
        let mut epochs: Vec<u128> = self.all.epochs().collect();
        epochs.sort_by_key(|epoch| Reverse(noted_at(epoch)));
        let of_each = (runs_max / epochs.len().max(1)).max(1);
        let mut newest = BatchSet::default();
        for epoch in epochs.into_iter().take(runs_max) {
            let runs: Vec<_> = self.all.of_epoch(epoch).collect();
            for run in runs.into_iter().rev().take(of_each) {
                newest.insert_run(epoch, run);
            }
        }
        newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_runs_the_last_ones_of_each_epoch_are_told() {
        let mut noted = NotedBatches::default();
        (0..100).for_each(|sequence| noted.note((1, 2 * sequence)));
        noted.note((2, 0));
        let newest = noted.newest(20);
        assert!(newest.contains(2, 0));
        for sequence in 0..100 {
            assert_eq!(
                newest.contains(1, 2 * sequence),
                sequence >= 90,
                "{sequence}"
            );
        }
    }

    #[test]
    fn of_many_epochs_those_are_told_that_were_noted_last() {
        // Their names are in no order, as they are random.
        let name = |number: u128| (number * 0x9e37_79b9) % 1_000_003;
        let mut noted = NotedBatches::default();
        (0..100).for_each(|number| noted.note((name(number), 7)));
        noted.note_all(&BatchSet::from_iter([(name(3), 8)]));
        let newest = noted.newest(10);
        for number in 0..100 {
            let is_told = newest.contains(name(number), 7);
            assert_eq!(is_told, number == 3 || number > 90, "{number}");
        }
        assert!(newest.contains(name(3), 8));
    }
}
