//! What was read of segments, kept in memory for the next question: segments never change.
//!
//! What row groups add to tables answers a panel that is asked for again; decoded columns answer others
//! over the same rows. The memory of each is bounded; what was not asked for longest goes first.

use std::any::Any;
use std::mem::size_of_val;
use std::sync::Arc;

use logpond_record::Id;
use logpond_search::scan::ColumnCache;
use logpond_search::{Lru, allocated};

use logpond_host::memory::{Budget, CacheRoom, GivesWay};

/// Part of the memory for tables that what is kept of one row group may take: what is larger would push
/// out too much else.
const GROUP_SHARE: usize = 64;

/// The same of what many row groups add together.
const TOGETHER_SHARE: usize = 4;

/// A question and the row groups that it was put to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CacheKey {
    /// The row groups, by their segments and their places there.
    pub(super) groups: Box<[(Id, usize)]>,
    /// The filter, and what the table is of.
    pub(super) question: Box<[u8]>,
}

/// The rows that row groups add to a table.
#[derive(Clone)]
pub(super) struct CacheEntry {
    /// As the table knows it.
    pub(super) part: Arc<dyn Any + Send + Sync>,
    /// How many rows were selected.
    pub(super) rows: u64,
}

/// The cache of tables and columns.
pub(super) struct Cache {
    added: Lru<CacheKey, CacheEntry>,
    added_bytes_max: usize,
    columns: ColumnCache,
}

impl GivesWay for Cache {
    fn bytes(&self) -> usize {
        self.added.bytes() + self.columns.bytes()
    }

    fn give_way(&self, bytes: usize) -> usize {
        // Columns answer more questions, but are read again in less time than a table is made.
        let freed = self.columns.give_way(bytes);
        freed + self.added.give_way(bytes.saturating_sub(freed))
    }
}

impl Cache {
    /// Keeps as much as is right within this memory, for parts of tables and for columns together.
    pub(super) fn within(budget: &Arc<Budget>) -> Cache {
        let half = budget.cache_bytes() / 2;
        let room = CacheRoom::of(budget);
        Cache {
            added: Lru::new(half).within(room.clone()),
            added_bytes_max: half,
            columns: ColumnCache::new(half).within(room),
        }
    }

    /// Whether what a row group adds is small enough to be kept, if it takes so many bytes.
    pub(super) fn takes(&self, bytes: usize) -> bool {
        bytes <= self.added_bytes_max / GROUP_SHARE
    }

    /// What is kept for this question.
    pub(super) fn get(&self, asked: &CacheKey) -> Option<CacheEntry> {
        self.added.get(asked)
    }

    /// Keeps an answer that takes so many bytes, unless it is too large.
    pub(super) fn put(&self, asked: CacheKey, added: CacheEntry, bytes: usize) {
        let key_bytes = allocated(asked.question.len()) + allocated(size_of_val(&*asked.groups));
        let share = match asked.groups.len() {
            1 => GROUP_SHARE,
            _ => TOGETHER_SHARE,
        };
        let bytes = bytes + 2 * key_bytes;
        if bytes <= self.added_bytes_max / share {
            self.added.put(asked, added, bytes);
        }
    }

    /// Decoded columns.
    pub(super) fn columns(&self) -> &ColumnCache {
        &self.columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(groups: impl Iterator<Item = usize>) -> CacheKey {
        CacheKey {
            groups: groups.map(|group| (Id(1), group)).collect(),
            question: Box::from(&b"question"[..]),
        }
    }

    fn added(number: usize) -> CacheEntry {
        CacheEntry {
            part: Arc::new(number),
            rows: number as u64,
        }
    }

    #[test]
    fn what_is_small_is_kept_and_a_large_answer_never() {
        let budget = Budget::unmeasured(512 << 20);
        let kept = Cache::within(&budget);
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
        let columns =
            |bytes: usize| Cache::within(&Budget::unmeasured(bytes)).added_bytes_max >> 20;
        assert_eq!(columns(64 << 20), 8);
        assert_eq!(columns(512 << 20), 64);
        assert_eq!(columns(12 << 30), 512);
        assert_eq!(columns(1 << 40), 1024);
    }

    #[test]
    fn what_is_kept_gives_way() {
        let budget = Budget::unmeasured(512 << 20);
        let kept = Cache::within(&budget);
        (0..10).for_each(|n| kept.put(asked(n..n + 1), added(n), 10_000));
        let before = kept.bytes();
        assert!(before > 100_000);
        let freed = kept.give_way(15_000);
        assert_eq!((freed > 15_000, kept.bytes()), (true, before - freed));
        assert!(kept.get(&asked(0..1)).is_none() && kept.get(&asked(9..10)).is_some());
    }
}
