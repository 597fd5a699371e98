//! What a row group adds to tables of numbers, kept for tables of other times.
//!
//! Dashboards ask again and again, each time a little later. Pieces of time that lie in a row group are
//! the same as long as the steps fall on the same instants, and so is what the group adds to them.

use std::mem::size_of;
use std::sync::Arc;

use logpond_record::Timestamp;
use logpond_segment::wire::Encoder;

use super::cells::Cell;
use super::coded::CodedCounts;
use super::table::RangeTable;
use crate::pipeline::StageError;

/// A version of the encoding of questions is not needed: they do not leave the process.
const NO_VERSION: u64 = 0;

/// What a row group adds to a table.
#[derive(Debug)]
pub struct KeptNumbers {
    /// Counts by the numbers of a dictionary, and a time of their piece.
    coded: Option<(i64, CodedCounts)>,
    /// The keys of series, one behind another.
    keys: Vec<u8>,
    /// Where the key and the cells of each series end.
    ends: Vec<(u32, u32)>,
    /// Cells, each with a time of its piece.
    cells: Vec<(i64, Cell)>,
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

    /// What this table has of rows from that time on, of which all are of one row group, whether it was told
    /// that the group has ended or not.
    ///
    /// # Errors
    /// The table, if there was no room for all.
    pub fn keep(mut self, from: Timestamp) -> Result<KeptNumbers, Box<RangeTable>> {
        let leaf = Arc::clone(self.leaf());
        let coded = self.coded.take_if(|coded| coded.is_dense());
        self.end_group();
        if self.is_full() {
            return Err(Box::new(self));
        }
        let (series, errors) = self.into_parts();
        let time_of = |piece: u32| leaf.windows.start_of(piece).saturating_add(1).max(from.0);
        let mut kept = KeptNumbers {
            coded: coded.map(|coded| (time_of(coded.piece()), coded)),
            keys: Vec::new(),
            ends: Vec::with_capacity(series.len()),
            cells: Vec::with_capacity(series.len()),
            errors: errors.into_iter().collect(),
            bytes: size_of::<KeptNumbers>(),
        };
        let mut values = 0;
        series.into_each(|key, cells| {
            kept.keys.extend_from_slice(key);
            for (piece, cell) in cells {
                values += cell.values();
                kept.cells.push((time_of(piece), cell));
            }
            kept.ends
                .push((kept.keys.len() as u32, kept.cells.len() as u32));
        });
        kept.keys.shrink_to_fit();
        kept.cells.shrink_to_fit();
        kept.bytes += kept.keys.len()
            + size_of_val(&*kept.ends)
            + size_of_val(&*kept.cells)
            + values * leaf.cells.value_bytes()
            + kept.coded.as_ref().map_or(0, |(_, coded)| coded.bytes());
        Ok(kept)
    }

    /// Adds what a row group adds.
    pub fn add_kept(&mut self, kept: &KeptNumbers) {
        let leaf = Arc::clone(self.leaf());
        for (error, lines) in &kept.errors {
            self.note_errors(*error, *lines);
        }
        if let Some((time, coded)) = &kept.coded
            && let Some(piece) = leaf.windows.piece_of(*time)
        {
            self.add_counts(coded, piece);
        }
        let mut last = (0, 0);
        for (key_end, cells_end) in &kept.ends {
            let key = &kept.keys[last.0 as usize..*key_end as usize];
            for (time, cell) in &kept.cells[last.1 as usize..*cells_end as usize] {
                if let Some(piece) = leaf.windows.piece_of(*time) {
                    self.add_cell(key, piece, cell.clone());
                }
            }
            last = (*key_end, *cells_end);
        }
    }
}
