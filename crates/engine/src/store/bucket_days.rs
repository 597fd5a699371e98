//! The segments that the bucket listed, remembered on the local disk: a bucket that has lost its lists, or is another one, or
//! is not set any more, is missed.
//!
//! Invariants:
//! - What was listed stays remembered until the bucket says that it has expired, it is in a local segment, or
//!   somebody has accepted the loss.
//! - Nothing is missed before the bucket was read.

use std::collections::BTreeMap;

use logpond_segment::inventory::{BUCKET, BucketDay, VanishedFile, VanishedKind};
use logpond_segment::sources::SourceSet;

use super::live::LiveSet;
use super::offload::{Board, Listing};
use logpond_host::telemetry::warn;

/// The days of the bucket.
#[derive(Default)]
pub(super) struct BucketMemory {
    board: Option<Board>,
    /// The days that are listed, and those that are missed.
    days: BTreeMap<String, BucketDay>,
    /// The reading that the days are of.
    seen: Option<Listing>,
    /// The days that are missed.
    vanished: Vec<VanishedFile>,
}

impl BucketMemory {
    /// The memory of a server with this bucket, if any; `days` are those of its earlier life.
    pub(super) fn new(board: Option<Board>, days: BTreeMap<String, BucketDay>) -> BucketMemory {
        BucketMemory {
            board,
            days,
            ..BucketMemory::default()
        }
    }

    /// The days to remember.
    pub(super) fn days(&self) -> &BTreeMap<String, BucketDay> {
        &self.days
    }

    /// Looks at what the bucket lists now, and has answers name what it does not list any more. Gives whether
    /// something has changed.
    pub(super) fn look(&mut self, live: &LiveSet) -> bool {
        let listing = match &self.board {
            Some(board) => board.listing(),
            None => Some(self.seen.clone().unwrap_or_default()),
        };
        let Some(listing) = listing else {
            return false;
        };
        if self.seen.as_ref().is_some_and(|seen| seen.is(&listing)) {
            return false;
        }
        let segments = live.snapshot();
        let here = segments.iter().map(|segment| segment.sources());
        let held = here.chain([&*listing.sources, &*listing.expired]);
        self.compare(&listing.days, &SourceSet::union_of(held));
        live.set_absent_days(&self.vanished);
        self.seen = Some(listing);
        true
    }

    /// Brings the days to those that are listed, and finds what is in none of `held`.
    fn compare(&mut self, listed: &BTreeMap<String, BucketDay>, held: &SourceSet) {
        let kind = match self.board {
            Some(_) => VanishedKind::BucketDay,
            None => VanishedKind::UnsetBucketDay,
        };
        let before = std::mem::replace(&mut self.days, listed.clone());
        let mut vanished = Vec::new();
        for (day, known) in before {
            let Some(missed) = known.absent(&day, held, kind) else {
                continue;
            };
            if self.vanished.iter().all(|old| old.path != missed.path) {
                warn(&format!("{missed}; {}", missed.remedy()));
            }
            let known = BucketDay {
                sources: missed.sources.clone(),
                ..known
            };
            let entry = self.days.entry(day);
            entry.and_modify(|day| day.widen(&known)).or_insert(known);
            vanished.push(missed);
        }
        self.vanished = vanished;
    }

    /// Forgets what was missed, as far as it is among these.
    pub(super) fn forget(&mut self, forgotten: &[VanishedFile]) {
        for file in forgotten {
            if let Some(day) = file.path.strip_prefix(BUCKET)
                && let Some(known) = self.days.get_mut(day)
            {
                known.sources.subtract(&file.sources);
                if known.sources.is_empty() {
                    self.days.remove(day);
                }
            }
            self.vanished.retain(|other| other.path != file.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::{Incarnation, SourceId, Timestamp};

    use super::*;

    fn sources(numbers: &[u64]) -> SourceSet {
        let source = |sequence: &u64| SourceId {
            incarnation: Incarnation(7),
            sequence: *sequence,
        };
        numbers.iter().map(source).collect()
    }

    fn days(days: &[(&str, u64, &[u64])]) -> BTreeMap<String, BucketDay> {
        let day = |(name, rows, numbers): &(&str, u64, &[u64])| {
            let listed = BucketDay {
                segments: 1,
                rows: *rows,
                received: (Timestamp(1), Timestamp(2)),
                times: (Timestamp(1), Timestamp(2)),
                sources: sources(numbers),
            };
            ((*name).to_owned(), listed)
        };
        days.iter().map(day).collect()
    }

    fn missed(memory: &BucketMemory) -> Vec<(&str, u64, SourceSet)> {
        let vanished = memory.vanished.iter();
        vanished
            .map(|day| (&*day.path, day.rows, day.sources.clone()))
            .collect()
    }

    #[test]
    fn what_is_listed_no_more_is_missed_until_it_is_back_or_forgotten() {
        let listed = days(&[("2026-11-23", 10, &[1, 2]), ("2026-11-24", 20, &[3])]);
        let mut memory = BucketMemory::new(Some(Board::default()), BTreeMap::new());
        memory.compare(&listed, &sources(&[1, 2, 3]));
        assert_eq!((missed(&memory), memory.days()), (vec![], &listed));
        // One day is gone, and of the other one a part, which a local segment holds.
        let less = days(&[("2026-11-23", 5, &[1])]);
        memory.compare(&less, &sources(&[1, 2]));
        assert_eq!(missed(&memory), [("bucket/2026-11-24", 20, sources(&[3]))]);
        assert_eq!(memory.days()["2026-11-23"].sources, sources(&[1]));
        // Of a day that is listed again, something else is there.
        let other = days(&[("2026-11-23", 5, &[1]), ("2026-11-24", 1, &[9])]);
        memory.compare(&other, &sources(&[1, 9]));
        assert_eq!(missed(&memory), [("bucket/2026-11-24", 20, sources(&[3]))]);
        assert_eq!(memory.days()["2026-11-24"].sources, sources(&[3, 9]));
        memory.compare(&listed, &sources(&[1, 2, 3, 9]));
        assert_eq!(missed(&memory), []);
        memory.compare(&less, &sources(&[1]));
        let forgotten = std::mem::take(&mut memory.vanished);
        assert_eq!(forgotten.len(), 2);
        memory.forget(&forgotten);
        assert_eq!(memory.days().len(), 1);
        assert_eq!(memory.days()["2026-11-23"].sources, sources(&[1]));
        memory.compare(&less, &sources(&[1]));
        assert_eq!(missed(&memory), []);
    }
}
