//! Messages that are sent again, in a protocol that gives them no names.
//!
//! A sender that was cut off does not know what of its last messages was stored. In its next session it
//! sends all of them that were not acknowledged to it, before any other (RELP: librelp sends its list of
//! unacknowledged frames right after the open). So the first messages of a session are compared with those
//! that were stored last of the same sender; the first that is not among them ends the comparison.
//!
//! Invariants:
//! - Rather twice than not at all: a message is taken for one that was sent again only if it has a time of its
//!   own and stands just once among the last ones. A line that is the same twice, time and all, is stored
//!   again.
//! - What is remembered is bounded by [`MESSAGES_MAX`] fingerprints a sender.

use std::collections::VecDeque;

use logpond_record::{Entry, EntryKind, Envelope, Id, Labels, TimeSource, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

use super::parser::Parser;

/// Messages of a sender that are remembered. librelp has 128 on their way unless it is told otherwise,
/// rsyslog sends up to a batch (`queue.dequeueBatchSize`) of 1024 again, and a kill or two may come together.
pub const MESSAGES_MAX: usize = 4096;

/// What stands for a message: one of [`MESSAGES_MAX`] is mistaken once in 4 × 10¹⁵ messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// That of a message.
    pub fn of(message: &[u8]) -> Fingerprint {
        Fingerprint(xxh3_64(message))
    }

    /// It as a number, to be kept.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The one that was this number.
    pub fn of_number(number: u64) -> Fingerprint {
        Fingerprint(number)
    }
}

/// The messages that were stored last of a sender, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Recent(VecDeque<Fingerprint>);

impl Recent {
    /// Remembers a message, and forgets the oldest one if there are too many.
    pub fn add(&mut self, message: Fingerprint) {
        if self.0.len() == MESSAGES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(message);
    }

    /// Remembers what another one does, as newer.
    pub fn append(&mut self, newer: &Recent) {
        newer.0.iter().for_each(|message| self.add(*message));
    }

    /// The messages, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Fingerprint> {
        self.0.iter().copied()
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Compares the first messages of a session.
#[derive(Debug, Default)]
pub struct Resends {
    /// In order. Empty once the comparison is over.
    known: Vec<Fingerprint>,
}

impl Resends {
    /// Compares with these.
    pub fn of(recent: &Recent) -> Resends {
        let mut known: Vec<Fingerprint> = recent.0.iter().copied().collect();
        known.sort_unstable();
        Resends { known }
    }

    /// Whether the next message of the session was stored before and need not be stored again.
    pub fn is_resent(&mut self, message: &[u8]) -> bool {
        if self.known.is_empty() {
            return false;
        }
        let wanted = Fingerprint::of(message);
        let first = self.known.partition_point(|known| *known < wanted);
        let same = self.known[first..]
            .iter()
            .take_while(|known| **known == wanted);
        match same.count() {
            0 => {
                self.known = Vec::new();
                false
            }
            1 => has_time(message),
            _ => false,
        }
    }
}

fn has_time(message: &[u8]) -> bool {
    let entry = Entry {
        id: Id::MIN,
        // Only guesses of years are made by it.
        received: Timestamp(0),
        kind: EntryKind::Syslog,
        labels: &Labels::new(),
        envelope: Envelope::default(),
        raw: message,
    };
    Parser::new().parse(&entry).time_source != TimeSource::Received
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(number: usize) -> Vec<u8> {
        format!("<13>1 2026-03-02T00:00:00.{number:06}Z ash app 7 - - x").into_bytes()
    }

    fn recent(messages: impl IntoIterator<Item = Vec<u8>>) -> Recent {
        let mut recent = Recent::default();
        for message in messages {
            recent.add(Fingerprint::of(&message));
        }
        recent
    }

    #[test]
    fn only_the_first_messages_that_were_stored_count() {
        let stored = recent((0..10).map(message));
        let mut resends = Resends::of(&stored);
        for number in 6..10 {
            assert!(resends.is_resent(&message(number)), "{number}");
        }
        // A batch that begins anew.
        assert!(resends.is_resent(&message(6)));
        assert!(!resends.is_resent(&message(10)));
        assert!(!resends.is_resent(&message(9)), "it is over");
        assert!(!Resends::default().is_resent(&message(9)));
    }

    #[test]
    fn what_might_be_another_message_is_stored_again() {
        let plain = |text: &str| text.as_bytes().to_vec();
        let repeated = "<13>Mar  2 00:00:00 ash app: again";
        let stored = recent(
            [
                "<13>no time",
                repeated,
                repeated,
                "<13>Mar  2 00:00:00 ash app: once",
            ]
            .map(plain),
        );
        let mut resends = Resends::of(&stored);
        assert!(!resends.is_resent(b"<13>no time"));
        assert!(!resends.is_resent(repeated.as_bytes()));
        assert!(
            resends.is_resent(b"<13>Mar  2 00:00:00 ash app: once"),
            "the comparison went on"
        );
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut stored = recent((0..MESSAGES_MAX).map(message));
        stored.append(&recent([message(MESSAGES_MAX)]));
        assert!(!Resends::of(&stored).is_resent(&message(0)));
        assert!(Resends::of(&stored).is_resent(&message(1)));
        assert!(Resends::of(&stored).is_resent(&message(MESSAGES_MAX)));
        assert!(!stored.is_empty() && Recent::default().is_empty());
    }

    proptest! {
        /// A sender that was cut off anywhere: everything it has is stored once.
        #[test]
        fn a_cut_sender_loses_nothing_and_doubles_nothing(
            total in 1usize..200,
            cuts in prop::collection::vec((0usize..60, 0usize..40), 0..6),
        ) {
            let mut recent = Recent::default();
            let mut stored = Vec::new();
            // What was acknowledged, and what of the rest was stored before the cut.
            let mut acknowledged = 0;
            for (ahead, unheard) in cuts.into_iter().chain([(total, 0)]) {
                let mut resends = Resends::of(&recent);
                let end = (acknowledged + ahead).min(total);
                for number in acknowledged..end {
                    if !resends.is_resent(&message(number)) {
                        stored.push(number);
                        recent.add(Fingerprint::of(&message(number)));
                    }
                }
                acknowledged = end.saturating_sub(unheard).max(acknowledged);
            }
            prop_assert_eq!(stored, (0..total).collect::<Vec<_>>());
        }
    }
}
