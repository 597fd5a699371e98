//! What is known of partitions beyond a session with brokers, until the process ends. No IO.

use std::collections::BTreeSet;

/// What is known of partitions, each by its epoch: a topic of the same name that was created anew has others.
#[derive(Default)]
pub(super) struct PartitionHistory {
    given_up: BTreeSet<u128>,
    looked_for: BTreeSet<String>,
    first: BTreeSet<u128>,
}

impl PartitionHistory {
    /// Another node reads it, too, and it is left to that one.
    pub(super) fn give_up(&mut self, epoch: u128) {
        self.given_up.insert(epoch);
    }

    pub(super) fn is_given_up(&self, epoch: u128) -> bool {
        self.given_up.contains(&epoch)
    }

    /// Notes the partitions that a topic has; only the first look at it counts.
    pub(super) fn note_look(&mut self, topic: &str, epochs: impl Iterator<Item = u128>) {
        if self.looked_for.insert(topic.to_owned()) {
            self.first.extend(epochs);
        }
    }

    /// Whether it was not there when its topic was first looked for: all of its messages are newer.
    pub(super) fn is_later(&self, epoch: u128) -> bool {
        !self.first.contains(&epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_there_at_first_is_later() {
        let mut remembered = PartitionHistory::default();
        remembered.note_look("logs", [1, 2].into_iter());
        remembered.note_look("logs", [1, 2, 3].into_iter());
        // This one did not exist.
        remembered.note_look("audit", [].into_iter());
        remembered.note_look("audit", [4].into_iter());
        let later = [1, 2, 3, 4].map(|epoch| remembered.is_later(epoch));
        assert_eq!(later, [false, false, true, true]);
    }

    #[test]
    fn only_what_was_given_up_is() {
        let mut remembered = PartitionHistory::default();
        remembered.give_up(1);
        assert!(remembered.is_given_up(1) && !remembered.is_given_up(2));
    }
}
