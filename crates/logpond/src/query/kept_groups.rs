//! What row groups of segments add to tables, kept in memory: segments never change.
//!
//! Invariants: the memory is bounded by [`KEPT_BYTES_MAX`]; what was not asked for longest goes first.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use logpond_record::Id;

/// The most memory of all that is kept: the panels of some dashboards.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// The most memory of what is kept of one row group: what is larger would push out too much else.
const GROUP_BYTES_MAX: usize = KEPT_BYTES_MAX / 64;

/// What an entry takes beside its question and its answer: its places in the maps.
const ENTRY_BYTES: usize = 256;

/// What was asked of which row group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    /// The segment.
    pub(super) segment: Id,
    /// The row group in it.
    pub(super) group: usize,
    /// The filter, and what the table is of.
    pub(super) question: Box<[u8]>,
}

/// What a row group adds to a table.
#[derive(Clone)]
pub(super) struct Added {
    /// As the table knows it.
    pub(super) part: Arc<dyn Any + Send + Sync>,
    /// How many rows were selected.
    pub(super) rows: u64,
}

/// All that is kept.
#[derive(Default)]
pub(super) struct KeptGroups(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    entries: HashMap<Asked, Entry>,
    /// Entries by when they were last asked for.
    by_use: BTreeMap<u64, Asked>,
    bytes: usize,
    uses: u64,
}

struct Entry {
    added: Added,
    bytes: usize,
    used: u64,
}

impl KeptGroups {
    /// Whether an answer that takes so many bytes is small enough to be kept.
    pub(super) fn takes(bytes: usize) -> bool {
        bytes <= GROUP_BYTES_MAX
    }

    /// What is kept for this question.
    pub(super) fn get(&self, asked: &Asked) -> Option<Added> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *kept;
        let entry = kept.entries.get_mut(asked)?;
        kept.uses += 1;
        if let Some(asked) = kept.by_use.remove(&entry.used) {
            kept.by_use.insert(kept.uses, asked);
        }
        entry.used = kept.uses;
        Some(entry.added.clone())
    }

    /// Keeps an answer that takes so many bytes, unless it is too large.
    pub(super) fn put(&self, asked: Asked, added: Added, bytes: usize) {
        let bytes = bytes + 2 * asked.question.len() + ENTRY_BYTES;
        if !KeptGroups::takes(bytes) {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let used = kept.uses;
        kept.bytes += bytes;
        kept.by_use.insert(used, asked.clone());
        let entry = Entry { added, bytes, used };
        if let Some(before) = kept.entries.insert(asked, entry) {
            // Another thread was as fast.
            kept.bytes -= before.bytes;
            kept.by_use.remove(&before.used);
        }
        while kept.bytes > KEPT_BYTES_MAX {
            let Some((_, oldest)) = kept.by_use.pop_first() else {
                break;
            };
            if let Some(entry) = kept.entries.remove(&oldest) {
                kept.bytes -= entry.bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(number: usize) -> Asked {
        Asked {
            segment: Id(1),
            group: number,
            question: Box::from(&b"question"[..]),
        }
    }

    fn added(number: usize) -> Added {
        Added {
            part: Arc::new(number),
            rows: number as u64,
        }
    }

    #[test]
    fn what_was_not_asked_for_longest_goes_first() {
        let kept = KeptGroups::default();
        let bytes = GROUP_BYTES_MAX / 2;
        let room = KEPT_BYTES_MAX / (bytes + 2 * 8 + ENTRY_BYTES);
        for number in 0..room {
            kept.put(asked(number), added(number), bytes);
            // The first one is asked for all the time.
            assert_eq!(kept.get(&asked(0)).unwrap().rows, 0);
        }
        assert_eq!(kept.get(&asked(1)).unwrap().rows, 1);
        kept.put(asked(room), added(room), bytes);
        assert!(kept.get(&asked(2)).is_none());
        assert_eq!(kept.get(&asked(0)).unwrap().rows, 0);
        let found = kept.get(&asked(1)).unwrap();
        assert_eq!(found.part.downcast_ref::<usize>(), Some(&1));
        assert!(kept.0.lock().unwrap().bytes <= KEPT_BYTES_MAX);
    }

    #[test]
    fn the_same_question_is_kept_once_and_a_large_answer_never() {
        let kept = KeptGroups::default();
        kept.put(asked(1), added(1), 1000);
        let bytes = kept.0.lock().unwrap().bytes;
        kept.put(asked(1), added(2), 1000);
        assert_eq!(kept.0.lock().unwrap().bytes, bytes);
        assert_eq!(kept.get(&asked(1)).unwrap().rows, 2);
        kept.put(asked(3), added(3), GROUP_BYTES_MAX);
        assert!(kept.get(&asked(3)).is_none());
    }
}
