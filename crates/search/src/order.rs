//! The total order of records, `(time, id)`: merging streams in it and keeping its ends.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use logpond_record::{Id, Record, Timestamp};

/// The place of a record in the total order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Event time.
    pub time: Timestamp,
    /// The record's id, which tells records of the same time apart.
    pub id: Id,
}

/// A row that has a place in the total order.
pub trait KeyedRow {
    /// The place.
    fn key(&self) -> Key;
}

impl KeyedRow for Key {
    fn key(&self) -> Key {
        *self
    }
}

impl KeyedRow for Record<'_> {
    fn key(&self) -> Key {
        Key {
            time: self.time,
            id: self.id,
        }
    }
}

/// Which way rows are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Oldest first.
    Forward,
    /// Newest first.
    #[default]
    Backward,
}

impl Direction {
    /// The other one.
    pub fn reversed(self) -> Direction {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }

    /// The order in which rows with these keys are read.
    pub fn compare(self, a: Key, b: Key) -> Ordering {
        match self {
            Direction::Forward => a.cmp(&b),
            Direction::Backward => b.cmp(&a),
        }
    }
}

/// A row in a heap whose greatest element is the one read last.
struct HeapRow<T> {
    row: T,
    direction: Direction,
    /// Which stream it came from; among equal keys the first stream's row is read first.
    stream: usize,
}

impl<T: KeyedRow> Ord for HeapRow<T> {
    fn cmp(&self, other: &HeapRow<T>) -> Ordering {
        self.direction
            .compare(self.row.key(), other.row.key())
            .then(self.stream.cmp(&other.stream))
    }
}

impl<T: KeyedRow> PartialOrd for HeapRow<T> {
    fn partial_cmp(&self, other: &HeapRow<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: KeyedRow> PartialEq for HeapRow<T> {
    fn eq(&self, other: &HeapRow<T>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: KeyedRow> Eq for HeapRow<T> {}

/// Merges streams of rows, each in order, into one in order. It holds one row per stream, and
/// asks a stream for its next row only after the previous one was taken.
pub struct Merge<S: Iterator> {
    streams: Vec<S>,
    heads: BinaryHeap<std::cmp::Reverse<HeapRow<S::Item>>>,
    direction: Direction,
    /// The stream whose row was taken last, and whose next is not yet known.
    taken: Option<usize>,
}

impl<S: Iterator<Item: KeyedRow>> Merge<S> {
    /// Merges streams that each give rows in this direction.
    pub fn new(streams: Vec<S>, direction: Direction) -> Merge<S> {
        let mut merge = Merge {
            heads: BinaryHeap::with_capacity(streams.len()),
            streams,
            direction,
            taken: None,
        };
        for stream in 0..merge.streams.len() {
            merge.advance(stream);
        }
        merge
    }

    fn advance(&mut self, stream: usize) {
        if let Some(row) = self.streams[stream].next() {
            self.heads.push(std::cmp::Reverse(HeapRow {
                row,
                direction: self.direction,
                stream,
            }));
        }
    }
}

impl<S: Iterator<Item: KeyedRow>> Iterator for Merge<S> {
    type Item = S::Item;

    fn next(&mut self) -> Option<S::Item> {
        if let Some(stream) = self.taken.take() {
            self.advance(stream);
        }
        let std::cmp::Reverse(head) = self.heads.pop()?;
        self.taken = Some(head.stream);
        Some(head.row)
    }
}

/// Keeps the first N rows in a direction of rows that come in any order: with
/// [`Direction::Backward`] the newest N.
pub struct FirstN<T> {
    rows: BinaryHeap<HeapRow<T>>,
    limit: usize,
    direction: Direction,
    pushed: usize,
}

impl<T: KeyedRow> FirstN<T> {
    /// Keeps at most `limit` rows; memory grows with the rows kept only.
    pub fn new(limit: usize, direction: Direction) -> FirstN<T> {
        FirstN {
            rows: BinaryHeap::new(),
            limit,
            direction,
            pushed: 0,
        }
    }

    /// Offers a row; says whether it is kept for now.
    pub fn push(&mut self, row: T) -> bool {
        if !self.wants(row.key()) {
            return false;
        }
        self.rows.push(HeapRow {
            row,
            direction: self.direction,
            stream: self.pushed,
        });
        self.pushed += 1;
        if self.rows.len() > self.limit {
            self.rows.pop();
        }
        true
    }

    /// Whether a row with this key would be kept.
    pub fn wants(&self, key: Key) -> bool {
        match self.bound() {
            Some(bound) => self.direction.compare(key, bound).is_lt(),
            None => self.limit > 0,
        }
    }

    /// The key that a row must come before, once all places are taken. Files whose rows all come
    /// after it need not be read.
    pub fn bound(&self) -> Option<Key> {
        let full = self.rows.len() >= self.limit;
        self.rows.peek().filter(|_| full).map(|h| h.row.key())
    }

    /// Rows kept.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no row is kept.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows kept, in the direction.
    pub fn into_sorted(self) -> Vec<T> {
        let sorted = self.rows.into_sorted_vec();
        sorted.into_iter().map(|held| held.row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys() -> impl Strategy<Value = Vec<Key>> {
        let key = (0i64..20, 0u128..20).prop_map(|(time, id)| Key {
            time: Timestamp(time),
            id: Id(id),
        });
        proptest::collection::vec(key, 0..40)
    }

    fn direction() -> impl Strategy<Value = Direction> {
        prop_oneof![Just(Direction::Forward), Just(Direction::Backward)]
    }

    proptest! {
        #[test]
        fn merging_sorts(
            streams in proptest::collection::vec(keys(), 0..6),
            direction in direction(),
        ) {
            let order = |a: &Key, b: &Key| direction.compare(*a, *b);
            let mut all = streams.concat();
            all.sort_by(order);
            let sorted = streams.into_iter().map(|mut stream| {
                stream.sort_by(order);
                stream.into_iter()
            });
            let merged: Vec<Key> = Merge::new(sorted.collect(), direction).collect();
            prop_assert_eq!(merged, all);
        }

        #[test]
        fn the_first_n_are_kept(rows in keys(), limit in 0usize..12, direction in direction()) {
            let mut kept = FirstN::new(limit, direction);
            for row in &rows {
                let wanted = kept.wants(*row);
                prop_assert_eq!(kept.push(*row), wanted);
                prop_assert!(kept.len() <= limit);
            }
            let mut all = rows;
            all.sort_by(|a, b| direction.compare(*a, *b));
            all.truncate(limit);
            prop_assert_eq!(kept.bound(), all.last().copied().filter(|_| all.len() == limit));
            prop_assert_eq!(kept.into_sorted(), all);
        }
    }
}
