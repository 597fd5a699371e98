//! Rows by their numbers.

use super::room::Room;

/// Which rows have a value: the first so many, and some behind them. In order.
#[derive(Default)]
pub(super) struct RowList {
    first: u32,
    others: Vec<u32>,
}

impl RowList {
    pub(super) fn push(&mut self, row: u32) {
        if self.others.is_empty() && row == self.first {
            self.first += 1;
        } else {
            self.others.push(row);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.first as usize + self.others.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..self.first).chain(self.others.iter().copied())
    }

    pub(super) fn make_room(&mut self, room: &Room) {
        self.others.reserve(room.rows_like(self.others.len()));
    }
}
