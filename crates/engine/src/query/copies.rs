//! Copies of batches that were sent again, as far as a follower has shown them.
//!
//! The original of such a batch may come later, from a stream that says what is in the batch, or from
//! a segment that does not. It is told from other records by the hashes of the copy's rows.
//!
//! Invariants: at most [`ROWS_MAX`] hashes are remembered; a copy of which one was left out is
//! *vague*, and no row of its original can be told by hashes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use logpond_record::{Incarnation, SourceId};
use logpond_segment::batches::BatchSet;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::noted_batches::NotedBatches;

/// Rows that are remembered: at some 16 bytes each that is 16 MiB.
const ROWS_MAX: usize = 1 << 20;

/// The epoch and sequence of a named batch.
pub(super) type Batch = (u128, u64);

/// A copy whose original was not met as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnmatchedCopy {
    /// The copy.
    pub(super) source: SourceId,
    /// Hashes of its shown rows that have not been met in the original, with how often.
    rows: BTreeMap<u64, u32>,
    /// Whether rows of an original cannot be told, since not all were remembered.
    pub(super) is_vague: bool,
    /// Whether the copy was to be read again for that.
    pub(super) is_recalled: bool,
    /// Higher for copies that were shown later.
    number: u64,
}

impl UnmatchedCopy {
    /// Whether all rows that were shown were met.
    pub(super) fn is_met(&self) -> bool {
        self.rows.is_empty() && !self.is_vague
    }

    fn count(&self) -> usize {
        self.rows.values().map(|count| *count as usize).sum()
    }
}

/// What was shown of copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Copies {
    /// Batches of which a copy was shown, at least in part.
    shown: NotedBatches,
    unmet: BTreeMap<Batch, UnmatchedCopy>,
    /// Hashes in all.
    rows: usize,
    number: u64,
}

impl Copies {
    /// Whether a copy of a batch was shown, at least in part.
    pub(super) fn contains(&self, batch: Batch) -> bool {
        self.shown.contains(batch)
    }

    /// Notes that a copy of a batch was shown, without knowing its rows.
    pub(super) fn note(&mut self, batch: Batch) {
        self.shown.note(batch);
    }

    pub(super) fn get(&self, batch: Batch) -> Option<&UnmatchedCopy> {
        self.unmet.get(&batch)
    }

    /// The copies of whose originals something may have to be left out.
    pub(super) fn unmet(&self) -> impl Iterator<Item = (Batch, &UnmatchedCopy)> {
        let unmet = self.unmet.iter().filter(|(_, copy)| !copy.is_met());
        unmet.map(|(batch, copy)| (*batch, copy))
    }

    /// Notes a row of a copy as shown.
    pub(super) fn show(&mut self, batch: Batch, source: SourceId, row: u64) {
        self.shown.note(batch);
        let is_vague = self.entry(batch, source).is_vague;
        if !is_vague && !self.remember(batch, row) {
            self.forget_rows(batch);
        }
    }

    /// Notes that a copy was shown whose rows are not known, unless they are.
    pub(super) fn suspect(&mut self, batch: Batch, source: SourceId) {
        if !self.unmet.contains_key(&batch) {
            self.entry(batch, source).is_vague = true;
        }
    }

    fn entry(&mut self, batch: Batch, source: SourceId) -> &mut UnmatchedCopy {
        let number = &mut self.number;
        let copy = self.unmet.entry(batch).or_insert_with(|| {
            *number += 1;
            UnmatchedCopy {
                source,
                rows: BTreeMap::new(),
                is_vague: false,
                is_recalled: false,
                number: *number,
            }
        });
        copy.source = source;
        copy
    }

    /// Remembers a row of a copy that was shown before; says if there was room.
    pub(super) fn remember(&mut self, batch: Batch, row: u64) -> bool {
        let Some(copy) = self.unmet.get_mut(&batch) else {
            return false;
        };
        let is_room = self.rows < ROWS_MAX;
        if is_room {
            *copy.rows.entry(row).or_default() += 1;
            self.rows += 1;
        }
        is_room
    }

    /// A copy becomes vague.
    fn forget_rows(&mut self, batch: Batch) {
        if let Some(copy) = self.unmet.get_mut(&batch) {
            self.rows -= copy.count();
            copy.rows.clear();
            copy.is_vague = true;
        }
    }

    /// Notes that the rows of a vague copy are to be remembered from its beginning.
    pub(super) fn begin_recall(&mut self, batch: Batch) {
        self.forget_rows(batch);
        if let Some(copy) = self.unmet.get_mut(&batch) {
            copy.is_recalled = true;
        }
    }

    /// Notes that all of a vague copy was read again; `is_whole` if there was room for its rows.
    pub(super) fn end_recall(&mut self, batch: Batch, is_whole: bool) {
        if is_whole {
            self.unmet
                .get_mut(&batch)
                .into_iter()
                .for_each(|copy| copy.is_vague = false)
        } else {
            self.forget_rows(batch)
        }
    }

    /// Whether a row of an original was shown with its copy; each row is met once.
    pub(super) fn meet(&mut self, batch: Batch, row: u64) -> bool {
        let Some(copy) = self.unmet.get_mut(&batch) else {
            return false;
        };
        let Some(count) = copy.rows.get_mut(&row) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            copy.rows.remove(&row);
        }
        self.rows -= 1;
        true
    }

    /// Notes that these originals were passed to their ends, so that no row of them is still to come.
    pub(super) fn pass(&mut self, originals: &BatchSet) {
        let rows = &mut self.rows;
        self.unmet.retain(|(epoch, sequence), copy| {
            let is_passed = originals.contains(*epoch, *sequence);
            if is_passed {
                *rows -= copy.count();
            }
            !is_passed
        });
    }

    /// Appends the newest of it: at most so many runs of batches, and rows of copies.
    pub(super) fn encode(&self, runs_max: usize, rows_max: usize, out: &mut Encoder) {
        out.bytes(&self.shown.newest(runs_max).to_bytes());
        let clear = self.unmet.iter().filter(|(_, copy)| !copy.is_vague);
        let mut clear: Vec<(&Batch, &UnmatchedCopy)> = clear.collect();
        clear.sort_by_key(|(_, copy)| Reverse(copy.number));
        let mut left = rows_max;
        // A copy that was met costs about as much as a row.
        clear.retain(|(_, copy)| match left.checked_sub(copy.count() + 1) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        });
        out.count(clear.len());
        for ((epoch, sequence), copy) in clear.into_iter().rev() {
            out.wide(*epoch);
            out.number(*sequence);
            out.wide(copy.source.incarnation.0);
            out.number(copy.source.sequence);
            let rows = copy.rows.iter();
            let rows = rows.flat_map(|(row, count)| std::iter::repeat_n(*row, *count as usize));
            let rows: Vec<u8> = rows.flat_map(u64::to_le_bytes).collect();
            out.bytes(&rows);
        }
    }

    /// Reads what [`Copies::encode`] wrote into `bytes_max` bytes.
    pub(super) fn decode(from: &mut Decoder<'_>, bytes_max: usize) -> Result<Copies, DecodeError> {
        let what = "the copies";
        let mut copies = Copies {
            shown: BatchSet::from_bytes(from.bytes(bytes_max, what)?)?.into(),
            ..Copies::default()
        };
        for _ in 0..from.count(35, what)? {
            let batch = (from.wide(what)?, from.number(what)?);
            let source = SourceId {
                incarnation: Incarnation(from.wide(what)?),
                sequence: from.number(what)?,
            };
            copies.entry(batch, source);
            let (rows, rest) = from.bytes(bytes_max, what)?.as_chunks();
            if !rest.is_empty() {
                return Err(DecodeError::Malformed(what));
            }
            for row in rows {
                copies.show(batch, source, u64::from_le_bytes(*row));
            }
        }
        Ok(copies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: SourceId = SourceId {
        incarnation: Incarnation(7),
        sequence: 3,
    };

    fn told(copies: &Copies, runs_max: usize, rows_max: usize) -> Result<Copies, DecodeError> {
        let mut out = Encoder::default();
        copies.encode(runs_max, rows_max, &mut out);
        let bytes = out.finish();
        let mut from = Decoder::bare(&bytes);
        let copies = Copies::decode(&mut from, bytes.len())?;
        from.finish().map(|()| copies)
    }

    #[test]
    fn each_row_is_met_as_often_as_it_was_shown() {
        let mut copies = Copies::default();
        let batch = (1, 2);
        let rows = [10, 11, 10].into_iter();
        rows.for_each(|row| copies.show(batch, SOURCE, row));
        for mut copies in [told(&copies, 9, 9).unwrap(), copies] {
            let met = [10, 10, 10, 12, 11, 11].map(|row| copies.meet(batch, row));
            assert_eq!(met, [true, true, false, false, true, false]);
            assert_eq!(copies.unmet().count(), 0);
            assert!(copies.contains(batch) && copies.get(batch).is_some());
            copies.pass(&BatchSet::from_iter([batch]));
            assert!(copies.contains(batch) && copies.get(batch).is_none());
            assert_eq!(copies.rows, 0);
        }
    }

    #[test]
    fn the_newest_copies_that_fit_are_told() {
        let mut copies = Copies::default();
        for sequence in (0..4).rev() {
            (0..10).for_each(|row| copies.show((1, sequence), SOURCE, row));
        }
        copies.suspect((2, 0), SOURCE);
        let told = told(&copies, 9, 25).unwrap();
        let known = told.unmet().map(|((_, sequence), _)| sequence);
        assert_eq!(known.collect::<Vec<u64>>(), [0, 1]);
        assert!((0..4).all(|sequence| told.contains((1, sequence))));
        // As one tells what one was told, the order stays.
        assert!(told.get((1, 0)).map(|c| c.number) > told.get((1, 1)).map(|c| c.number));
    }

    #[test]
    fn a_copy_without_room_for_its_rows_is_vague_until_it_was_read_again() {
        let mut copies = Copies {
            rows: ROWS_MAX - 1,
            ..Copies::default()
        };
        let batch = (1, 2);
        let rows = [10, 11].into_iter();
        rows.for_each(|row| copies.show(batch, SOURCE, row));
        assert!(copies.get(batch).is_some_and(|copy| copy.is_vague));
        assert!(!copies.meet(batch, 10));
        copies.rows -= 2;
        copies.begin_recall(batch);
        assert!([10, 11].into_iter().all(|row| copies.remember(batch, row)));
        copies.end_recall(batch, true);
        assert!(copies.meet(batch, 10) && copies.meet(batch, 11));
        assert_eq!(copies.rows, ROWS_MAX - 3);
    }
}
