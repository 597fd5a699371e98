//! What was read of segments, kept in memory for the next question: segments never change.
//!
//! What row groups add to tables answers a panel that is asked for again; decoded columns answer others
//! over the same rows. The memory of each is bounded; what was not asked for longest goes first.

use std::any::Any;
use std::mem::size_of_val;
use std::ops::RangeInclusive;
use std::sync::Arc;

use logpond_record::Id;
use logpond_search::Lru;
use logpond_search::scan::KeptColumns;

use crate::memory;

/// The share of the machine's memory that is used, for parts of tables and for columns together.
const MEMORY_SHARE: u64 = 32;

/// The bounds of it: the panels and columns of some dashboards over four million rows; and what nobody
/// should be surprised by.
const BYTES: RangeInclusive<u64> = 128 << 20..=2 << 30;

/// Part of the memory for tables that what is kept of one row group may take: what is larger would push
/// out too much else.
const GROUP_SHARE: usize = 64;

/// The same of what many row groups add together.
const TOGETHER_SHARE: usize = 4;

/// What an entry takes beside its question and its answer: its places in the maps.
const ENTRY_BYTES: usize = 256;

/// What was asked of which row groups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    /// The row groups, by their segments and their places there.
    pub(super) groups: Box<[(Id, usize)]>,
    /// The filter, and what the table is of.
    pub(super) question: Box<[u8]>,
}

/// What row groups add to a table.
#[derive(Clone)]
pub(super) struct Added {
    /// As the table knows it.
    pub(super) part: Arc<dyn Any + Send + Sync>,
    /// How many rows were selected.
    pub(super) rows: u64,
}

/// All that is kept.
pub(super) struct Kept {
    added: Lru<Asked, Added>,
    added_bytes_max: usize,
    columns: KeptColumns,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept::with_memory(memory::bytes())
    }
}

impl Kept {
    /// Keeps as much as is right where there is so much memory.
    fn with_memory(bytes: u64) -> Kept {
        let bytes = (bytes / MEMORY_SHARE).clamp(*BYTES.start(), *BYTES.end());
        let half = usize::try_from(bytes / 2).unwrap_or(usize::MAX);
        Kept {
            added: Lru::new(half),
            added_bytes_max: half,
            columns: KeptColumns::new(half),
        }
    }

    /// Whether what a row group adds is small enough to be kept, if it takes so many bytes.
    pub(super) fn takes(&self, bytes: usize) -> bool {
        bytes <= self.added_bytes_max / GROUP_SHARE
    }

    /// What is kept for this question.
    pub(super) fn get(&self, asked: &Asked) -> Option<Added> {
        self.added.get(asked)
    }

    /// Keeps an answer that takes so many bytes, unless it is too large.
    pub(super) fn put(&self, asked: Asked, added: Added, bytes: usize) {
        let key_bytes = asked.question.len() + size_of_val(&*asked.groups);
        let share = match asked.groups.len() {
            1 => GROUP_SHARE,
            _ => TOGETHER_SHARE,
        };
        let bytes = bytes + 2 * key_bytes + ENTRY_BYTES;
        if bytes <= self.added_bytes_max / share {
            self.added.put(asked, added, bytes);
        }
    }

    /// Decoded columns.
    pub(super) fn columns(&self) -> &KeptColumns {
        &self.columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(groups: impl Iterator<Item = usize>) -> Asked {
        Asked {
            groups: groups.map(|group| (Id(1), group)).collect(),
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
    fn what_is_small_is_kept_and_a_large_answer_never() {
        let kept = Kept::with_memory(0);
        let group_bytes_max = (64 << 20) / GROUP_SHARE;
        kept.put(asked(1..2), added(1), 1000);
        kept.put(asked(3..4), added(3), group_bytes_max);
        let found = kept.get(&asked(1..2)).unwrap();
        assert_eq!(
            (found.rows, found.part.downcast_ref::<usize>()),
            (1, Some(&1))
        );
        assert!(kept.get(&asked(2..3)).is_none() && kept.get(&asked(3..4)).is_none());
        kept.put(asked(1..9), added(9), group_bytes_max);
        kept.put(asked(1..8), added(8), 64 << 20);
        assert!(kept.get(&asked(1..9)).is_some() && kept.get(&asked(1..8)).is_none());
    }

    #[test]
    fn memory_is_a_share_with_bounds() {
        let columns = |bytes: u64| Kept::with_memory(bytes).added_bytes_max >> 20;
        assert_eq!(columns(512 << 20), 64);
        assert_eq!(columns(16 << 30), 256);
        assert_eq!(columns(1 << 40), 1024);
    }
}
