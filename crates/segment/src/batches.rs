//! Batches that producers have named, and what a journal file or segment holds of them.
//!
//! A producer names a batch so that it can send it again without its records being there twice
//! (CLUSTER R10). Whoever holds a batch says so by its epoch and sequence; the attempt only tells
//! the first sending, the *original*, from later ones.

use std::fmt;
use std::str::FromStr;

use logpond_record::{Incarnation, SourceId, Timestamp};
use serde_json::Value;

use crate::sources::{Interval, SourceSet};
use crate::wire::{DecodeError, Decoder, Encoder};

/// Version of the encoding of sets between nodes.
const WIRE_VERSION: u64 = 1;

/// A producer's name for one sending of a batch: the same batch sent again differs in the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchId {
    /// Random name of the producer's life.
    pub epoch: u128,
    /// Dense number of the batch within the epoch.
    pub sequence: u64,
    /// 0 for the first sending, then counting up with every sending whose forerunner may have been
    /// taken.
    pub attempt: u32,
    /// When the first sending was begun, by the producer's clock.
    pub first_sent: Timestamp,
    /// How many numbers behind `sequence` the batch has as well: it is a *run* then, as of a producer
    /// who numbers records rather than batches. 0 but for an original; `sequence` and this together
    /// are at most `u64::MAX`.
    pub more: u64,
}

impl BatchId {
    /// Whether an earlier sending of the batch may have been taken, here or elsewhere.
    pub fn is_retry(&self) -> bool {
        self.attempt > 0
    }

    /// The numbers that it has.
    pub fn run(&self) -> Interval {
        Interval {
            from: self.sequence,
            to: self.sequence.saturating_add(self.more),
        }
    }
}

/// `<epoch, 32 hexadecimal digits>-<sequence>-<attempt>@<first sending, milliseconds since 1970>`, and
/// of a run `+<more>` behind that.
impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (epoch, sequence, attempt) = (self.epoch, self.sequence, self.attempt);
        let first_ms = self.first_sent.unix_ms();
        write!(f, "{epoch:032x}-{sequence}-{attempt}@{first_ms}")?;
        match self.more {
            0 => Ok(()),
            more => write!(f, "+{more}"),
        }
    }
}

/// The top 32 bits of the epoch of a batch that is named by its content. The epoch of another is
/// random, and has the same once in four billion producers.
const CONTENT_MARK: u128 = 0x6c70_6e61;

/// The epoch of a batch that its sender gave no name: it is made of a hash of what is in it. Such batches are
/// originals, always: who is sent one that is there already stores nothing.
pub fn content_epoch(identity: u128) -> u128 {
    (CONTENT_MARK << 96) | (identity >> 32)
}

/// True if an epoch is one of [`content_epoch`].
pub fn is_content(epoch: u128) -> bool {
    epoch >> 96 == CONTENT_MARK
}

/// A text that names no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchIdError;

impl fmt::Display for BatchIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected EPOCH-SEQUENCE-ATTEMPT@FIRST: 32 lower-case hexadecimal digits, two whole \
             numbers, and the milliseconds since 1970 at which the batch was first sent",
        )
    }
}

impl std::error::Error for BatchIdError {}

impl FromStr for BatchId {
    type Err = BatchIdError;

    /// Reads what `Display` writes, and nothing else: one name has one form. Runs are not sent by name.
    fn from_str(text: &str) -> Result<BatchId, BatchIdError> {
        let read = || {
            let (name, first_ms) = text.split_once('@')?;
            let mut parts = name.splitn(3, '-');
            let first_ms: u64 = first_ms.parse().ok()?;
            Some(BatchId {
                epoch: u128::from_str_radix(parts.next()?, 16).ok()?,
                sequence: parts.next()?.parse().ok()?,
                attempt: parts.next()?.parse().ok()?,
                first_sent: Timestamp(i64::try_from(first_ms).ok()?.checked_mul(1_000_000)?),
                more: 0,
            })
        };
        let id = read().ok_or(BatchIdError)?;
        (id.to_string() == text).then_some(id).ok_or(BatchIdError)
    }
}

/// A set of batches, as runs of sequences of each epoch; equal sets are equal values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct BatchSet {
    /// Sources are numbered in runs as batches are; the epoch stands in the incarnation's place.
    runs: SourceSet,
}

fn place(epoch: u128, sequence: u64) -> SourceId {
    SourceId {
        incarnation: Incarnation(epoch),
        sequence,
    }
}

impl BatchSet {
    /// The set as a message between nodes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::new(WIRE_VERSION);
        out.sources(&self.runs);
        out.finish()
    }

    /// Reads what [`BatchSet::to_bytes`] wrote.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<BatchSet, DecodeError> {
        let mut from = Decoder::new(bytes, WIRE_VERSION)?;
        let runs = from.sources("the batches")?;
        from.finish()?;
        Ok(BatchSet { runs })
    }

    /// Adds one batch.
    pub fn insert(&mut self, epoch: u128, sequence: u64) {
        self.runs.insert(place(epoch, sequence));
    }

    /// Adds a run of batches, which must not be reversed.
    pub fn insert_run(&mut self, epoch: u128, run: Interval) {
        self.runs.insert_interval(Incarnation(epoch), run);
    }

    /// The set as JSON: for each epoch the first and last sequence of each run, one behind the other.
    pub fn to_json(&self) -> Value {
        self.runs.to_json()
    }

    /// Reads what [`BatchSet::to_json`] gave; `None` for anything else.
    pub fn from_json(value: &Value) -> Option<BatchSet> {
        let runs = SourceSet::from_json(value)?;
        Some(BatchSet { runs })
    }

    /// Adds all batches of another set.
    pub fn union_with(&mut self, other: &BatchSet) {
        self.runs.union_with(&other.runs);
    }

    /// The batches that are not in another set.
    pub fn without(&self, other: &BatchSet) -> BatchSet {
        let runs = self.runs.without(&other.runs);
        BatchSet { runs }
    }

    /// The batches that are in both sets.
    pub fn intersection(&self, other: &BatchSet) -> BatchSet {
        let runs = other.runs.without(&other.runs.without(&self.runs));
        BatchSet { runs }
    }

    /// Whether a batch is in the set.
    pub fn contains(&self, epoch: u128, sequence: u64) -> bool {
        self.runs.contains(place(epoch, sequence))
    }

    /// The batches that are named by what is in them, and the others.
    pub fn split_content(&self) -> (BatchSet, BatchSet) {
        let (mut content, mut others) = (BatchSet::default(), BatchSet::default());
        for (epoch, run) in self.runs() {
            let set = if is_content(epoch) {
                &mut content
            } else {
                &mut others
            };
            set.insert_run(epoch, run);
        }
        (content, others)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The epochs in order.
    pub fn epochs(&self) -> impl Iterator<Item = u128> {
        self.runs.incarnations().map(|incarnation| incarnation.0)
    }

    /// The runs of an epoch in order.
    pub fn of_epoch(&self, epoch: u128) -> impl Iterator<Item = Interval> {
        let runs = self.runs.intervals_of(Incarnation(epoch));
        runs.iter().copied()
    }

    /// The runs in order of epoch and sequence.
    pub fn runs(&self) -> impl Iterator<Item = (u128, Interval)> {
        let runs = self.runs.intervals();
        runs.map(|(epoch, run)| (epoch.0, run))
    }
}

impl FromIterator<(u128, u64)> for BatchSet {
    fn from_iter<T: IntoIterator<Item = (u128, u64)>>(batches: T) -> BatchSet {
        let mut set = BatchSet::default();
        let each = batches.into_iter();
        each.for_each(|(epoch, sequence)| set.insert(epoch, sequence));
        set
    }
}

impl fmt::Debug for BatchSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.runs.fmt(f)
    }
}

/// The batches that a source holds.
///
/// Invariant: a source with a retry holds that batch and no other row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldBatches {
    all: BatchSet,
    retry: Option<BatchId>,
    has_rows: bool,
}

impl HeldBatches {
    /// Adds a frame of the source, which may belong to no named batch.
    pub fn add(&mut self, id: Option<BatchId>) {
        if let Some(id) = id {
            self.all.insert_run(id.epoch, id.run());
        }
        let begins = !std::mem::replace(&mut self.has_rows, true);
        if begins {
            self.retry = id.filter(BatchId::is_retry);
        } else if self.retry != id {
            // Rows that would go with the copy of a batch that is elsewhere, too.
            self.retry = None;
        }
    }

    /// Adds what another part of the source holds.
    pub fn union_with(&mut self, other: &HeldBatches) {
        self.all.union_with(&other.all);
        self.retry = match (self.has_rows, other.has_rows) {
            (true, true) if self.retry == other.retry => self.retry,
            (true, true) => None,
            (true, false) => self.retry,
            (false, _) => other.retry,
        };
        self.has_rows |= other.has_rows;
    }

    /// Whether it holds a batch, whatever its attempt.
    pub fn contains(&self, epoch: u128, sequence: u64) -> bool {
        self.all.contains(epoch, sequence)
    }

    /// Whether it holds all numbers of a batch, whatever its attempt; `None` if it holds some of them.
    pub fn holds(&self, id: &BatchId) -> Option<bool> {
        if id.more == 0 {
            return Some(self.contains(id.epoch, id.sequence));
        }
        let mut rest = BatchSet::default();
        rest.insert_run(id.epoch, id.run());
        let missing = rest.without(&self.all);
        match (missing.is_empty(), missing == rest) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }

    /// Adds all of them to a set, whatever their attempts.
    pub fn add_to(&self, set: &mut BatchSet) {
        set.union_with(&self.all);
    }

    /// The epochs of batches that are named by what is in them.
    pub fn content_names(&self) -> impl Iterator<Item = u128> {
        self.all.epochs().filter(|epoch| is_content(*epoch))
    }

    /// The batches of a set that it holds, whatever their attempts.
    pub fn intersection(&self, wanted: &BatchSet) -> BatchSet {
        self.all.intersection(wanted)
    }

    /// The batch of which the source is a copy that was sent again, and which may be elsewhere.
    pub fn retry(&self) -> Option<BatchId> {
        self.retry
    }

    /// The batches that count wherever else they are; none if the source is a retry.
    pub fn originals(&self) -> Option<&BatchSet> {
        let is_some = self.retry.is_none() && !self.all.is_empty();
        is_some.then_some(&self.all)
    }
}

/// A source that is the copy of a batch that was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryCopy {
    /// The source.
    pub source: SourceId,
    /// The batch.
    pub id: BatchId,
}

/// Of some copies those that do not count: the batch is held as an original, or one of the other
/// copies has a lower attempt or, of the same attempt, a lower source.
pub fn yielding(copies: &[RetryCopy], is_original: impl Fn(&BatchId) -> bool) -> SourceSet {
    let mut order: Vec<&RetryCopy> = copies.iter().collect();
    let batch = |copy: &RetryCopy| (copy.id.epoch, copy.id.sequence);
    order.sort_by_key(|copy| (batch(copy), copy.id.attempt, copy.source));
    let mut yielding = SourceSet::new();
    for same in order.chunk_by(|a, b| batch(a) == batch(b)) {
        // A source may be listed in several places; its own other listing is no winner over it.
        let winner = if is_original(&same[0].id) {
            None
        } else {
            Some(same[0].source)
        };
        let rest = same.iter().filter(|copy| Some(copy.source) != winner);
        rest.for_each(|copy| yielding.insert(copy.source));
    }
    yielding
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(sequence: u64, attempt: u32) -> BatchId {
        BatchId {
            epoch: 0xab,
            sequence,
            attempt,
            first_sent: Timestamp(1_700_000_000_123_000_000),
            more: 0,
        }
    }

    fn source(sequence: u64) -> SourceId {
        place(1, sequence)
    }

    #[test]
    fn names_have_one_form() {
        let text = "000000000000000000000000000000ab-7-2@1700000000123";
        assert_eq!(id(7, 2).to_string(), text);
        assert_eq!(text.parse(), Ok(id(7, 2)));
        let bad = [
            "",
            "ab-7-2@1700000000123",
            "000000000000000000000000000000AB-7-2@1700000000123",
            "000000000000000000000000000000ab-7-2",
            "000000000000000000000000000000ab-7-2@",
            "000000000000000000000000000000ab-7-2@-1",
            "000000000000000000000000000000ab-7-2@99999999999999999999",
            "000000000000000000000000000000ab-7-2@9223372036854775807",
            "000000000000000000000000000000ab-07-2@1700000000123",
            "000000000000000000000000000000ab-7-+2@1700000000123",
            "000000000000000000000000000000ab-7-4294967296@1700000000123",
            "000000000000000000000000000000ab-18446744073709551616-0@1700000000123",
            "000000000000000000000000000000ab-7-2-3@1700000000123",
            " 000000000000000000000000000000ab-7-2@1700000000123",
        ];
        for text in bad {
            assert_eq!(text.parse::<BatchId>(), Err(BatchIdError), "{text}");
        }
    }

    #[test]
    fn only_a_source_of_one_copy_is_a_retry() {
        let held = |frames: &[Option<BatchId>]| {
            let mut held = HeldBatches::default();
            frames.iter().for_each(|id| held.add(*id));
            // The same in two parts.
            for at in 0..=frames.len() {
                let mut parts = [HeldBatches::default(), HeldBatches::default()];
                frames[..at].iter().for_each(|id| parts[0].add(*id));
                frames[at..].iter().for_each(|id| parts[1].add(*id));
                let [mut whole, rest] = parts;
                whole.union_with(&rest);
                assert_eq!(whole, held);
            }
            held
        };
        let (original, copy) = (Some(id(1, 0)), Some(id(2, 1)));
        assert_eq!(held(&[]).retry(), None);
        assert_eq!(held(&[copy]).retry(), copy);
        assert_eq!(held(&[copy, copy]).retry(), copy);
        assert_eq!(held(&[copy]).originals(), None);
        for mixed in [
            &[original, copy][..],
            &[copy, original],
            &[None, copy],
            &[copy, None],
        ] {
            assert_eq!(held(mixed).retry(), None);
            assert!(held(mixed).originals().unwrap().contains(0xab, 2));
        }
        assert_eq!(held(&[None]).originals(), None);
    }

    #[test]
    fn one_copy_counts_unless_there_is_an_original() {
        let copy = |at: u64, sequence, attempt| RetryCopy {
            source: source(at),
            id: id(sequence, attempt),
        };
        let copies = [
            copy(9, 1, 2),
            copy(3, 1, 1),
            copy(2, 1, 2),
            copy(3, 1, 1),
            copy(5, 2, 7),
        ];
        let sources = |of: &[u64]| of.iter().map(|at| source(*at)).collect::<SourceSet>();
        assert_eq!(yielding(&copies, |_| false), sources(&[2, 9]));
        assert_eq!(
            yielding(&copies, |id| id.sequence == 1),
            sources(&[2, 3, 9])
        );
        assert_eq!(yielding(&copies, |_| true), sources(&[2, 3, 5, 9]));
    }

    #[test]
    fn a_run_is_more_than_one_number() {
        let run = BatchId {
            more: 2,
            ..id(7, 0)
        };
        assert_eq!(run.run(), Interval { from: 7, to: 9 });
        let text = "000000000000000000000000000000ab-7-0@1700000000123+2";
        assert_eq!(run.to_string(), text);
        assert_eq!(
            text.parse::<BatchId>(),
            Err(BatchIdError),
            "not sent by name"
        );
    }

    proptest! {
        #[test]
        fn runs_are_held_whole_or_in_part(
            held in prop::collection::vec((0u64..24, 0u64..6), 0..6),
            (from, more) in (0u64..24, 0u64..6),
        ) {
            let mut holds = HeldBatches::default();
            let mut model = std::collections::BTreeSet::new();
            for (sequence, more) in held {
                holds.add(Some(BatchId { more, ..id(sequence, 0) }));
                model.extend(sequence..=sequence + more);
            }
            let wanted = BatchId { more, ..id(from, 0) };
            let there = (from..=from + more).filter(|n| model.contains(n)).count() as u64;
            let expected = match there {
                0 => Some(false),
                n if n == more + 1 => Some(true),
                _ => None,
            };
            prop_assert_eq!(holds.holds(&wanted), expected);
            for number in 0..40 {
                prop_assert_eq!(holds.contains(0xab, number), model.contains(&number));
            }
        }

        #[test]
        fn every_batch_counts_once(
            sent in prop::collection::vec((0u64..4, 0u32..4), 0..20),
        ) {
            // Attempt 0 goes into one source for all; every other sending is a source of its own.
            let originals: BatchSet =
                sent.iter().filter(|(_, attempt)| *attempt == 0).map(|(s, _)| (0xab, *s)).collect();
            let copies: Vec<_> = sent.iter().enumerate()
                .filter(|(_, (_, attempt))| *attempt > 0)
                .map(|(at, (s, attempt))| RetryCopy { source: source(at as u64), id: id(*s, *attempt) })
                .collect();
            let out = yielding(&copies, |id| originals.contains(id.epoch, id.sequence));
            for sequence in 0..4 {
                let is_sent = sent.iter().any(|(s, _)| *s == sequence);
                let counted = copies.iter()
                    .filter(|copy| copy.id.sequence == sequence && !out.contains(copy.source));
                let all = counted.count() + usize::from(originals.contains(0xab, sequence));
                prop_assert_eq!(all, usize::from(is_sent));
            }
        }
    }
}
