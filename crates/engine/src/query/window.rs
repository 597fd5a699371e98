//! The next rows of a search in their order, within a bound of memory.
//!
//! Invariant: a full window holds the first rows, in the order asked for, of all that were
//! offered; what it had to leave out lies behind its last row.

use std::collections::BTreeMap;

use logpond_search::order::{Direction, Key};

/// Encoded rows that one window holds. An answer larger than this is read in several passes.
pub(super) const WINDOW_BYTES_MAX: usize = 16 << 20;

/// The part of the memory for queries and caches that one window takes at most.
pub(super) const WINDOW_SHARE: usize = 32;

/// Bookkeeping per row beside its text.
const ROW_OVERHEAD_BYTES: usize = 96;

pub(super) struct Window<R> {
    rows: BTreeMap<Key, (R, usize)>,
    direction: Direction,
    rows_max: usize,
    bytes: usize,
    bytes_max: usize,
    overflowed: bool,
}

impl<R> Window<R> {
    pub(super) fn new(direction: Direction, rows_max: usize, bytes_max: usize) -> Window<R> {
        let rows = BTreeMap::new();
        Window {
            rows,
            direction,
            rows_max,
            bytes: 0,
            bytes_max,
            overflowed: false,
        }
    }

    /// Whether a row of this key would stay; if not, it is taken note of.
    pub(super) fn admits(&mut self, key: Key) -> bool {
        // Once a row was left out, none behind the last one may come in, even where it would fit:
        // the next pass begins behind the last row and would miss what was left out.
        let is_full =
            self.overflowed || self.rows.len() >= self.rows_max || self.bytes >= self.bytes_max;
        let admitted = !is_full
            || self
                .last()
                .is_none_or(|last| is_before(self.direction, key, last));
        self.overflowed |= !admitted;
        admitted
    }

    /// Adds a row; drops rows from the end that do not fit any more.
    pub(super) fn insert(&mut self, key: Key, row: R, bytes: usize) {
        let bytes = bytes + ROW_OVERHEAD_BYTES;
        self.bytes += bytes;
        self.rows.insert(key, (row, bytes));
        while self.rows.len() > 1
            && (self.rows.len() > self.rows_max || self.bytes > self.bytes_max)
        {
            let dropped = match self.direction {
                Direction::Forward => self.rows.pop_last(),
                Direction::Backward => self.rows.pop_first(),
            };
            self.bytes -= dropped.map_or(0, |(_, (_, bytes))| bytes);
            self.overflowed = true;
        }
    }

    /// The memory that the rows take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether rows were left out.
    pub(super) fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// The key of the last row in the order asked for.
    pub(super) fn last(&self) -> Option<Key> {
        match self.direction {
            Direction::Forward => self.rows.last_key_value(),
            Direction::Backward => self.rows.first_key_value(),
        }
        .map(|(key, _)| *key)
    }

    /// The rows in the order asked for.
    pub(super) fn into_rows(mut self) -> impl Iterator<Item = (Key, R)> {
        std::iter::from_fn(move || {
            let next = match self.direction {
                Direction::Forward => self.rows.pop_first(),
                Direction::Backward => self.rows.pop_last(),
            };
            next.map(|(key, (row, _))| (key, row))
        })
    }
}

/// Whether `a` leaves before `b`.
pub(super) fn is_before(direction: Direction, a: Key, b: Key) -> bool {
    direction.compare(a, b).is_lt()
}

#[cfg(test)]
mod tests {
    use logpond_record::{Id, Timestamp};
    use proptest::prelude::*;

    use super::*;

    fn key(time: i64, id: u128) -> Key {
        Key {
            time: Timestamp(time),
            id: Id(id),
        }
    }

    proptest! {
        #[test]
        fn passes_together_give_every_row_once_in_order(
            rows in proptest::collection::vec((0i64..20, 1usize..400), 0..60),
            rows_max in 1usize..8,
            bytes_max in 200usize..2_000,
            backward: bool,
        ) {
            let direction = if backward { Direction::Backward } else { Direction::Forward };
            let keys: Vec<_> =
                rows.iter().enumerate().map(|(i, (time, _))| key(*time, i as u128)).collect();
            let mut expected = keys.clone();
            expected.sort();
            if backward {
                expected.reverse();
            }
            let mut found = Vec::new();
            loop {
                let behind: Option<Key> = found.last().copied();
                let mut window = Window::new(direction, rows_max, bytes_max);
                for (&key, (_, bytes)) in keys.iter().zip(&rows) {
                    let wanted = behind.is_none_or(|b| is_before(direction, b, key));
                    if wanted && window.admits(key) {
                        window.insert(key, (), *bytes);
                    }
                }
                let again = window.has_overflowed();
                found.extend(window.into_rows().map(|(key, ())| key));
                if !again {
                    break;
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
