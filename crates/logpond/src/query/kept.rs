//! What was read of segments, kept in memory for the next question: segments never change.
//!
//! What row groups add to tables answers a panel that is asked for again; decoded columns answer others
//! over the same rows. The memory of each is bounded; what was not asked for longest goes first.

use std::any::Any;
use std::sync::Arc;

use logpond_record::Id;
use logpond_search::Lru;
use logpond_search::scan::KeptColumns;

/// The most memory of what row groups add to tables: the panels of some dashboards.
const GROUPS_BYTES_MAX: usize = 64 << 20;

/// The most memory of what is kept of one row group: what is larger would push out too much else.
const GROUP_BYTES_MAX: usize = GROUPS_BYTES_MAX / 64;

/// The most memory of decoded columns: times and two columns of some four million rows.
const COLUMNS_BYTES_MAX: usize = 64 << 20;

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
pub(super) struct Kept {
    added: Lru<Asked, Added>,
    columns: KeptColumns,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept {
            added: Lru::new(GROUPS_BYTES_MAX),
            columns: KeptColumns::new(COLUMNS_BYTES_MAX),
        }
    }
}

impl Kept {
    /// Whether an answer that takes so many bytes is small enough to be kept.
    pub(super) fn takes(bytes: usize) -> bool {
        bytes <= GROUP_BYTES_MAX
    }

    /// What is kept for this question.
    pub(super) fn get(&self, asked: &Asked) -> Option<Added> {
        self.added.get(asked)
    }

    /// Keeps an answer that takes so many bytes, unless it is too large.
    pub(super) fn put(&self, asked: Asked, added: Added, bytes: usize) {
        let bytes = bytes + 2 * asked.question.len() + ENTRY_BYTES;
        if Kept::takes(bytes) {
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

    #[test]
    fn what_is_small_is_kept_and_a_large_answer_never() {
        let kept = Kept::default();
        let asked = |group: usize| Asked {
            segment: Id(1),
            group,
            question: Box::from(&b"question"[..]),
        };
        let added = |number: usize| Added {
            part: Arc::new(number),
            rows: number as u64,
        };
        kept.put(asked(1), added(1), 1000);
        kept.put(asked(3), added(3), GROUP_BYTES_MAX);
        let found = kept.get(&asked(1)).unwrap();
        assert_eq!(
            (found.rows, found.part.downcast_ref::<usize>()),
            (1, Some(&1))
        );
        assert!(kept.get(&asked(2)).is_none() && kept.get(&asked(3)).is_none());
    }
}
