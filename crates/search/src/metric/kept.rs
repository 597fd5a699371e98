//! What a row group adds to tables of numbers, kept for tables of other times.
//!
//! Dashboards ask again and again, each time a little later. Pieces of time that lie in a row group are
//! the same as long as the steps fall on the same instants, and so is what the group adds to them.

use std::mem::size_of;
use std::sync::Arc;

use logpond_record::Timestamp;
use logpond_segment::wire::Encoder;

use super::cells::Cell;
use super::table::{OVERHEAD_BYTES, RangeTable};
use crate::pipeline::StageError;

/// A version of the encoding of questions is not needed: they do not leave the process.
const NO_VERSION: u64 = 0;

/// The cells of a series, each with a time of its piece.
type TimedCells = Vec<(i64, Cell)>;

/// What a row group adds to a table.
#[derive(Debug)]
pub struct KeptNumbers {
    /// The keys of series, and their cells.
    series: Vec<(Box<[u8]>, TimedCells)>,
    errors: Vec<(StageError, u64)>,
    bytes: usize,
}

impl KeptNumbers {
    /// About the memory that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl RangeTable {
    /// What is asked of rows with times from one to another, both included: wherever this is the same,
    /// they add the same. `None` where that cannot be said.
    pub fn question(&self, from: Timestamp, to: Timestamp) -> Option<Vec<u8>> {
        let leaf = self.leaf();
        if leaf.looks_at_the_clock() {
            return None;
        }
        let grid = leaf.windows.grid(from.0, to.0)?;
        let mut out = Encoder::new(NO_VERSION);
        leaf.spec().encode_aggregation(&mut out);
        grid.iter().for_each(|part| out.time(Timestamp(*part)));
        Some(out.finish())
    }

    /// What this table has of rows from that time on.
    ///
    /// # Errors
    /// The table, if there was no room for all.
    pub fn keep(self, from: Timestamp) -> Result<KeptNumbers, Box<RangeTable>> {
        let leaf = Arc::clone(self.leaf());
        if self.is_full() {
            return Err(Box::new(self));
        }
        let (series, errors) = self.into_parts();
        let mut bytes = size_of::<KeptNumbers>();
        let time_of = |piece: u32| leaf.windows.start_of(piece).saturating_add(1).max(from.0);
        let series = series.into_iter().map(|(key, cells)| {
            let cells = cells.into_iter();
            let cells: Vec<_> = cells.map(|(piece, cell)| (time_of(piece), cell)).collect();
            let values = cells.iter().map(|(_, cell)| cell.values());
            let values: usize = values.map(|count| count * leaf.cells.value_bytes()).sum();
            bytes += key.len() + OVERHEAD_BYTES + values;
            bytes += cells.len() * size_of::<(i64, Cell)>();
            (key, cells)
        });
        Ok(KeptNumbers {
            series: series.collect(),
            errors: errors.into_iter().collect(),
            bytes,
        })
    }

    /// Adds what a row group adds.
    pub fn add_kept(&mut self, kept: &KeptNumbers) {
        let leaf = Arc::clone(self.leaf());
        for (error, lines) in &kept.errors {
            self.note_errors(*error, *lines);
        }
        for (key, cells) in &kept.series {
            for (time, cell) in cells {
                if let Some(piece) = leaf.windows.piece_of(*time) {
                    self.add_cell(key, piece, cell.clone());
                }
            }
        }
    }
}
