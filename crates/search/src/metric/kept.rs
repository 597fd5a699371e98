//! What a row group adds to tables of numbers, kept for tables of other times.
//!
//! Dashboards ask again and again, each time a little later. Pieces of time that lie in a row group are
//! the same as long as the steps fall on the same instants, and so is what the group adds to them.

use std::mem::size_of;
use std::sync::Arc;

use logpond_record::Timestamp;
use logpond_segment::wire::Encoder;

use super::coded::CodedCounts;
use super::leaf::Leaf;
use super::series_map::SeriesMap;
use super::table::RangeTable;
use crate::lru::allocated;
use crate::pipeline::StageError;

/// A version of the encoding of questions is not needed: they do not leave the process.
const NO_VERSION: u64 = 0;

/// What a row group adds to a table, or several of them together.
#[derive(Debug)]
pub struct KeptNumbers {
    /// Counts by the numbers of a dictionary.
    coded: Option<CodedCounts>,
    series: Arc<SeriesMap>,
    /// The memory of the series in a table.
    series_bytes: usize,
    /// Of which the pieces of time are.
    leaf: Arc<Leaf>,
    /// The time of the first row.
    from: Timestamp,
    errors: Vec<(StageError, u64)>,
}

impl KeptNumbers {
    /// The memory that it takes; a dictionary counts wherever it is.
    pub fn bytes(&self) -> usize {
        let coded = self.coded.as_ref().map_or(0, CodedCounts::bytes);
        allocated(size_of::<KeptNumbers>()) + coded + self.series.memory_bytes()
    }

    /// The piece of a table of other times that has the rows of a piece.
    fn piece_in(&self, leaf: &Leaf, piece: u32) -> Option<u32> {
        let start = self.leaf.windows.start_of(piece).saturating_add(1);
        leaf.windows.piece_of(start.max(self.from.0))
    }

    /// Whether all pieces have the same numbers in a table of other times.
    fn has_pieces_of(&self, leaf: &Leaf) -> bool {
        let mut last = None;
        let mut cells = self.series.iter().flat_map(|(_, cells)| cells);
        self.leaf.windows == leaf.windows
            || cells.all(|(piece, _)| {
                let is_known = last == Some(*piece);
                last = Some(*piece);
                is_known || self.piece_in(leaf, *piece) == Some(*piece)
            })
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

    /// What this table has of row groups from that time on, whether it was told that the last one has ended
    /// or not.
    ///
    /// # Errors
    /// The table, if there was no room for all.
    pub fn keep(mut self, from: Timestamp) -> Result<KeptNumbers, Box<RangeTable>> {
        let coded = self.coded.take_if(|coded| coded.is_dense());
        self.end_group();
        if self.is_full() {
            return Err(Box::new(self));
        }
        let (leaf, series_bytes) = (Arc::clone(self.leaf()), self.counted_bytes());
        let (series, errors) = self.into_parts();
        Ok(KeptNumbers {
            coded,
            series: series.into_shared(),
            series_bytes,
            leaf,
            from,
            errors: errors.into_iter().collect(),
        })
    }

    /// Adds what was kept of a table with the same question.
    pub fn add_kept(&mut self, kept: &KeptNumbers) {
        let leaf = Arc::clone(self.leaf());
        for (error, lines) in &kept.errors {
            self.note_errors(*error, *lines);
        }
        let is_shared = kept.has_pieces_of(&leaf) && self.share(&kept.series, kept.series_bytes);
        if !is_shared {
            for (key, cells) in kept.series.iter() {
                for (piece, cell) in cells {
                    if let Some(piece) = kept.piece_in(&leaf, *piece) {
                        self.add_cell(key, piece, cell.clone());
                    }
                }
            }
        }
        if let Some(coded) = &kept.coded
            && let Some(piece) = kept.piece_in(&leaf, coded.piece())
        {
            self.add_counts(coded, piece);
        }
    }
}
