//! Rows that are rendered before their turn, so that the blocks that they are of can be forgotten.
//!
//! If many row groups overlap in time, each row in order may be of another block than the one before it.
//! Decoded blocks take much more memory than the rows that are wanted of them. Before blocks are forgotten, the
//! rows that leave next are rendered, as many as have room. A block is read again only once those have left.

use std::collections::HashMap;

use logpond_record::{Id, cast};
use logpond_search::order::{Direction, Key};
use logpond_search::scan;

use super::{QueryError, ROWS_FEW, Row, SegmentRows, disk_error, may_come_first, order_key};
use crate::query::output::Output;

/// Rows that are rendered ahead at a time.
const ROWS_AHEAD_MAX: usize = 1 << 14;

/// Rows of a short answer, such as a page of an interface asks for.
const ROWS_SHORT: u64 = 1_000;

/// The part of the memory for decoded blocks that rows ahead may take.
const BYTES_AHEAD_SHARE: usize = 2;

/// Bytes that a rendered row takes beside its text: its key and its place in the table.
const ROW_BYTES: usize = 64;

/// Rendered rows of one row group, by block and row.
#[derive(Default)]
pub(super) struct RowsAhead {
    rows: HashMap<(u32, u32), Row>,
    bytes: usize,
}

impl RowsAhead {
    pub(super) fn has(&self, stored: &scan::Key) -> bool {
        self.rows.contains_key(&(stored.block, stored.row))
    }

    pub(super) fn take(&mut self, stored: &scan::Key) -> Option<Row> {
        let row = self.rows.remove(&(stored.block, stored.row))?;
        self.bytes -= row.1.len() + ROW_BYTES;
        Some(row)
    }

    fn add(&mut self, stored: &scan::Key, row: Row) -> usize {
        let bytes = row.1.len() + ROW_BYTES;
        self.bytes += bytes;
        self.rows.insert((stored.block, stored.row), row);
        bytes
    }

    /// About the memory that they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn clear(&mut self) {
        *self = RowsAhead::default();
    }
}

impl SegmentRows<'_> {
    /// Forgets decoded blocks that are too many, and takes the memory for the others.
    pub(super) fn bound_memory(&mut self, out: &mut Output) -> Result<(), QueryError> {
        self.rows_since_check = 0;
        if self.blocks_bytes() > self.kept_bytes_max {
            self.render_ahead()?;
            self.active.iter_mut().for_each(|a| a.scan.forget());
        }
        let keys: usize = self.active.iter().map(|active| active.keys.len()).sum();
        let ahead: usize = self.active.iter().map(|active| active.ahead.bytes()).sum();
        let bytes = self.blocks_bytes() + ahead + keys * size_of::<scan::Key>();
        if self.waiting.is_empty() {
            self.reserved = 0;
        }
        Ok(out.take(&mut self.charge, bytes.max(self.reserved))?)
    }

    /// About the memory of a block of each row group that may have rows beside those of the first one, and of the places
    /// of rows, if the answer is long. A short one, or one of rare rows, ends with less.
    pub(super) fn first_blocks_bytes(&self) -> usize {
        let is_short = self.search.limit.is_some_and(|limit| limit <= ROWS_SHORT);
        let Some(first) = self.waiting.last().filter(|_| !is_short) else {
            return 0;
        };
        let direction = self.search.direction;
        let last = match direction {
            Direction::Forward => first.group.max,
            Direction::Backward => first.group.min,
        };
        let (time, id) = (last, Id::MIN);
        let beside = self.waiting.iter().filter(|turn| {
            let span = (turn.group.min, turn.group.max);
            may_come_first(direction, span, Some(Key { time, id }))
        });
        let bytes: u64 = beside
            .map(|turn| {
                let directory = &self.opened.segments[turn.group.segment].directory;
                scan::block_bytes_max(directory, turn.group.number)
            })
            .sum();
        let most = self.kept_bytes_max + self.kept_bytes_max / BYTES_AHEAD_SHARE;
        let blocks = most.min(usize::try_from(bytes).unwrap_or(most));
        blocks + blocks.min(self.keys_max * size_of::<scan::Key>())
    }

    /// About the memory of decoded blocks.
    fn blocks_bytes(&self) -> usize {
        let kept = |active: &super::Active<'_>| cast::to_usize(active.scan.kept_bytes());
        self.active.iter().map(kept).sum()
    }

    /// Renders the rows that leave next, of blocks that are decoded.
    fn render_ahead(&mut self) -> Result<(), QueryError> {
        let mut room = self.kept_bytes_max / BYTES_AHEAD_SHARE;
        let ahead = self.active.iter().map(|active| active.ahead.bytes());
        room = room.saturating_sub(ahead.sum());
        for (number, stored) in self.next_keys() {
            if room == 0 {
                break;
            }
            let active = &self.active[number];
            if active.ahead.has(&stored) || !active.scan.is_kept(&stored) {
                continue;
            }
            if let Some(row) = self.render(number, stored)? {
                room = room.saturating_sub(self.active[number].ahead.add(&stored, row));
            }
        }
        Ok(())
    }

    /// The rows that leave next of all open row groups, in order, with the numbers of their groups.
    fn next_keys(&mut self) -> Vec<(usize, scan::Key)> {
        let wanted = self.search.limit.filter(|_| !self.search.has_context());
        let wanted = wanted.map_or(usize::MAX, |limit| {
            usize::try_from(limit.saturating_sub(self.rows_left)).unwrap_or(usize::MAX)
        });
        let wanted = wanted.clamp(ROWS_FEW, ROWS_AHEAD_MAX);
        let mut keys = Vec::new();
        for (number, active) in self.active.iter_mut().enumerate() {
            let next = active.keys.first(wanted).into_iter();
            keys.extend(next.map(|stored| (number, stored)));
        }
        let direction = self.search.direction;
        keys.sort_unstable_by(|(_, a), (_, b)| direction.compare(order_key(a), order_key(b)));
        keys.truncate(wanted);
        keys
    }

    /// Renders a row; `None` if its block turns out to be damaged.
    pub(super) fn render(
        &mut self,
        number: usize,
        stored: scan::Key,
    ) -> Result<Option<Row>, QueryError> {
        let (search, buffer, scratch) = (self.search, &mut self.buffer, &mut self.scratch);
        let row = self.active[number].scan.record(stored, |record| {
            buffer.clear();
            search.write_row(record, buffer);
            let is_match = !search.has_context() || search.scope.matcher.matches(record, scratch);
            (order_key(&stored), Box::from(buffer.as_slice()), is_match)
        });
        row.map_err(disk_error)
    }
}
