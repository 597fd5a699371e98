//! Keys of rows, of which mostly only the first ones are wanted: the rest is put in order when its turn
//! comes.

use logpond_search::order::Direction;
use logpond_search::scan::Key;

/// How many keys are put in order at first; each further time it is twice as many.
const KEYS_FIRST: usize = 128;

/// Keys of which the next one is at hand.
///
/// Invariants: each key of `next` leaves before all of `rest`, and `next` is only empty if `rest` is.
#[derive(Debug)]
pub(super) struct NextKeys {
    direction: Direction,
    /// In order, the next one last.
    next: Vec<Key>,
    /// In no order.
    rest: Vec<Key>,
    count: usize,
}

impl NextKeys {
    pub(super) fn new(direction: Direction) -> NextKeys {
        NextKeys {
            direction,
            next: Vec::new(),
            rest: Vec::new(),
            count: KEYS_FIRST,
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.next.len() + self.rest.len()
    }

    /// The key that leaves next.
    pub(super) fn peek(&self) -> Option<&Key> {
        self.next.last()
    }

    /// Takes the key that leaves next.
    pub(super) fn pop(&mut self) -> Option<Key> {
        let key = self.next.pop();
        if self.next.is_empty() {
            self.put_in_order();
        }
        key
    }

    /// Adds keys in any order.
    pub(super) fn extend(&mut self, keys: Vec<Key>) {
        if keys.is_empty() {
            return;
        }
        self.rest.append(&mut self.next);
        if self.rest.is_empty() {
            self.rest = keys
        } else {
            self.rest.extend(keys)
        }
        self.put_in_order();
    }

    /// The first so many, in order; they stay.
    pub(super) fn first(&mut self, count: usize) -> Vec<Key> {
        if self.next.len() < count && !self.rest.is_empty() {
            self.rest.append(&mut self.next);
            self.count = self.count.max(count);
            self.put_in_order();
        }
        self.next.iter().rev().take(count).copied().collect()
    }

    /// Forgets all but the first so many, at least one; gives the first of those that were forgotten, if
    /// there are some.
    pub(super) fn keep_first(&mut self, count: usize) -> Option<Key> {
        let count = count.max(1);
        if self.len() <= count {
            return None;
        }
        let is_forward = matches!(self.direction, Direction::Forward);
        let order = |a: &Key, b: &Key| if is_forward { b.cmp(a) } else { a.cmp(b) };
        if self.next.len() > count {
            let left = self.next.len() - count;
            let first = self.next[left - 1];
            self.next = self.next.split_off(left);
            self.rest = Vec::new();
            return Some(first);
        }
        let left = self.rest.len() - (count - self.next.len());
        if left < self.rest.len() {
            self.rest.select_nth_unstable_by(left, order);
        }
        let kept = self.rest.split_off(left);
        let first = self.rest.iter().copied().max_by(order);
        // What was forgotten gives its memory back.
        self.rest = kept;
        first
    }

    fn put_in_order(&mut self) {
        let left = self.rest.len().saturating_sub(self.count);
        self.count = self.count.saturating_mul(2);
        // Those that leave last come first.
        let is_forward = matches!(self.direction, Direction::Forward);
        let order = |a: &Key, b: &Key| if is_forward { b.cmp(a) } else { a.cmp(b) };
        if left > 0 {
            self.rest.select_nth_unstable_by(left, order);
        }
        self.next = self.rest.split_off(left);
        self.next.sort_unstable_by(order);
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::{Id, Timestamp};
    use proptest::prelude::*;

    use super::*;

    fn key(time: i64, number: u32) -> Key {
        Key {
            time: Timestamp(time),
            id: Id(u128::from(number)),
            block: 0,
            row: number,
        }
    }

    proptest! {
        #[test]
        fn the_first_keys_are_kept(
            parts in proptest::collection::vec(proptest::collection::vec(0i64..50, 1..300), 1..4),
            taken in 0usize..200,
            count in 0usize..500,
            is_forward: bool,
        ) {
            let direction = if is_forward { Direction::Forward } else { Direction::Backward };
            let (mut keys, mut number) = (NextKeys::new(direction), 0);
            let mut model: Vec<Key> = Vec::new();
            for times in parts {
                let of_part: Vec<Key> = times.into_iter().map(|time| {
                    number += 1;
                    key(time, number)
                }).collect();
                model.extend(&of_part);
                keys.extend(of_part);
            }
            model.sort_unstable();
            if !is_forward {
                model.reverse();
            }
            let taken = taken.min(model.len());
            model.drain(..taken).for_each(|key| assert_eq!(keys.pop(), Some(key)));
            let forgotten = keys.keep_first(count);
            prop_assert_eq!(forgotten, model.get(count.max(1)).copied());
            model.truncate(count.max(1));
            prop_assert_eq!(keys.len(), model.len());
            model.into_iter().for_each(|key| assert_eq!(keys.pop(), Some(key)));
            prop_assert_eq!(keys.pop(), None);
        }

        #[test]
        fn keys_leave_in_order(
            parts in proptest::collection::vec(proptest::collection::vec(0i64..50, 0..400), 1..5),
            taken_between in 0usize..300,
            is_forward: bool,
        ) {
            let direction = if is_forward { Direction::Forward } else { Direction::Backward };
            let mut keys = NextKeys::new(direction);
            let mut model: Vec<Key> = Vec::new();
            let mut number = 0;
            let take = |keys: &mut NextKeys, model: &mut Vec<Key>, count: usize| {
                model.sort_unstable();
                for _ in 0..count {
                    let expected = match (model.is_empty(), is_forward) {
                        (true, _) => None,
                        (false, true) => Some(model.remove(0)),
                        (false, false) => model.pop(),
                    };
                    prop_assert_eq!(keys.peek().copied(), expected);
                    prop_assert_eq!(keys.pop(), expected);
                    prop_assert_eq!(keys.len(), model.len());
                }
                Ok(())
            };
            for times in parts {
                let of_part: Vec<Key> = times.into_iter().map(|time| {
                    number += 1;
                    key(time, number)
                }).collect();
                model.extend(&of_part);
                keys.extend(of_part);
                take(&mut keys, &mut model, taken_between)?;
            }
            let left = model.len() + 1;
            take(&mut keys, &mut model, left)?;
        }
    }
}
