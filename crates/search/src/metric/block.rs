//! Blocks of rows in a table of numbers: column by column where labels alone decide.
//!
//! ```text
//! rows ─▶ labels (each distinct set once: stages, series, number) ─▶ cells of the block ─▶ cells of the table
//!      └▶ pieces of time, numbers
//! ```

use std::collections::HashMap;

use logpond_record::cast;
use logpond_segment::file::ReadError;

use super::cells::{Cell, CellKind};
use super::leaf::Leaf;
use super::table::{LineSample, RangeTable};
use super::windows::NO_PIECE;
use crate::pipeline::StageError;
use crate::scan::{EmptyTexts, GroupLabels, GroupScan, LabelledRows, SelectedRows};

/// The most cells of a block that lie side by side in memory, whether they are used or not.
const DENSE_CELLS_MAX: usize = 1 << 16;

impl RangeTable {
    /// Adds the selected rows of a block; behind the last one of a row group belongs
    /// [`RangeTable::end_group`].
    ///
    /// # Errors
    /// When the block cannot be read.
    pub fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &SelectedRows,
    ) -> Result<(), ReadError> {
        let leaf = std::sync::Arc::clone(self.leaf());
        let Some(of_labels) = leaf.of_labels() else {
            return scan.each_record(selected, |record| self.add(record));
        };
        if self.add_coded(&leaf, scan, selected)? {
            return Ok(());
        }
        let number = of_labels.number.as_deref();
        let has_conditions = !of_labels.rest.is_empty() || leaf.unwrap.is_some();
        let empty_texts = if has_conditions {
            EmptyTexts::Matter
        } else {
            EmptyTexts::BeforeOthers
        };
        let (parts, odd) = match &of_labels.by {
            GroupLabels::Named(names) if of_labels.has_json => {
                let selector = &leaf.spec().aggregation.log.matchers;
                scan.rows_by_members(selected, names, number, (selector, empty_texts))?
            }
            by => {
                let (labelled, odd) = scan.rows_by_labels(selected, by, number, empty_texts)?;
                (vec![labelled], odd)
            }
        };
        for labelled in &parts {
            let lines = Lines {
                times: times(&leaf, scan, selected, labelled)?,
                labelled,
            };
            let sets = labelled.sets.iter();
            let decided: Vec<_> = sets
                .map(|set| self.decide(of_labels, set, labelled.error))
                .collect();
            self.add_lines(&leaf, &decided, &lines);
        }
        let (block, rows) = (selected.block, odd);
        scan.each_record(&SelectedRows { block, rows }, |record| self.add(record))
    }

    fn add_lines(&mut self, leaf: &Leaf, decided: &[Option<LineSample<'_>>], lines: &Lines<'_>) {
        self.note_errors_of(decided, lines);
        let is_wanted = |decided: &Option<LineSample<'_>>| {
            let decided = decided.as_ref();
            decided.is_some_and(|d| d.error != Some(StageError::SampleExtraction))
        };
        let wanted: Vec<bool> = decided.iter().map(is_wanted).collect();
        let cells = match leaf.cells {
            kind if kind.counts_lines() => counts(lines, &wanted),
            kind => numbers(kind, lines, &wanted, decided),
        };
        for ((set, piece), cell) in cells {
            if let Some(decided) = &decided[set as usize] {
                self.add_cell(&decided.key, piece, cell);
            }
        }
    }

    fn note_errors_of(&mut self, decided: &[Option<LineSample<'_>>], lines: &Lines<'_>) {
        let error = |decided: &Option<LineSample<'_>>| decided.as_ref().and_then(|d| d.error);
        let errors: Vec<Option<StageError>> = decided.iter().map(error).collect();
        if errors.iter().all(Option::is_none) {
            return;
        }
        let mut counts = vec![0u64; decided.len()];
        lines.each(|_, set, _| counts[set as usize] += 1);
        for (error, lines) in errors.iter().zip(counts) {
            if let Some(error) = error {
                self.note_errors(*error, lines);
            }
        }
    }
}

/// Cells by their set of labels and their piece of time.
type Placed = ((u32, u32), Cell);

fn counts(lines: &Lines<'_>, wanted: &[bool]) -> Vec<Placed> {
    let counts = lines.counts(wanted).into_iter();
    let counts = counts.filter(|(_, count)| *count > 0);
    counts
        .map(|(at, count)| (at, Cell::Count(u64::from(count))))
        .collect()
}

fn numbers(
    kind: CellKind,
    lines: &Lines<'_>,
    wanted: &[bool],
    decided: &[Option<LineSample<'_>>],
) -> Vec<Placed> {
    let mut cells: Grid<Option<Cell>> = Grid::new(lines);
    if kind.keeps_numbers() {
        for ((set, piece), count) in lines.counts(wanted) {
            if count > 0 {
                *cells.at(set, piece) = Some(kind.with_room(count as usize));
            }
        }
    }
    lines.each(|at, set, piece| {
        if wanted[set as usize]
            && let Some(decided) = &decided[set as usize]
        {
            let number = lines.labelled.numbers.get(at).copied();
            let number = number.unwrap_or(decided.number);
            kind.add(cells.at(set, piece), lines.time(at), number);
        }
    });
    let cells = cells.finish().into_iter();
    cells.filter_map(|(at, cell)| Some((at, cell?))).collect()
}

/// When the rows of a block were.
enum Times {
    /// All in this piece.
    Piece(u32),
    /// For each row its piece and, where they count, its time.
    Each(Vec<u32>, Vec<i64>),
}

fn times(
    leaf: &Leaf,
    scan: &mut GroupScan<'_>,
    selected: &SelectedRows,
    labelled: &LabelledRows,
) -> Result<Times, ReadError> {
    let (from, to) = scan.block_span(selected);
    let needs_times = leaf.cells.needs_times();
    if let Some(piece) = leaf
        .windows
        .piece_of_span(from, to)
        .filter(|_| !needs_times)
    {
        return Ok(Times::Piece(piece));
    }
    let all = scan.block_times()?;
    let times = labelled.rows.iter().map(|row| all[*row as usize]);
    let pieces = leaf.windows.pieces_of(times.clone());
    let times = if needs_times {
        times.collect()
    } else {
        Vec::new()
    };
    Ok(Times::Each(pieces, times))
}

/// Rows of a block, as far as they count.
struct Lines<'b> {
    labelled: &'b LabelledRows,
    times: Times,
}

impl Lines<'_> {
    /// Hands over the place, set of labels and piece of each row that is in a window.
    fn each(&self, mut visit: impl FnMut(usize, u32, u32)) {
        let sets = self.labelled.of_rows.iter().enumerate();
        match &self.times {
            Times::Piece(piece) => sets.for_each(|(at, set)| visit(at, *set, *piece)),
            Times::Each(pieces, _) => sets
                .zip(pieces)
                .filter(|(_, piece)| **piece != NO_PIECE)
                .for_each(|((at, set), piece)| visit(at, *set, *piece)),
        }
    }

    /// How many rows there are of each wanted set in each piece.
    fn counts(&self, wanted: &[bool]) -> Vec<((u32, u32), u32)> {
        let mut counts: Grid<u32> = Grid::new(self);
        self.each(|_, set, piece| *counts.at(set, piece) += u32::from(wanted[set as usize]));
        counts.finish()
    }

    fn time(&self, at: usize) -> i64 {
        match &self.times {
            Times::Each(_, times) => times.get(at).copied().unwrap_or(0),
            Times::Piece(_) => 0,
        }
    }

    /// The first piece, and how many there are up to the last one.
    fn span(&self) -> (u32, usize) {
        match &self.times {
            Times::Piece(piece) => (*piece, 1),
            Times::Each(pieces, _) => {
                let known = || pieces.iter().copied().filter(|piece| *piece != NO_PIECE);
                let (first, last) = (known().min().unwrap_or(0), known().max().unwrap_or(0));
                (first, (last - first) as usize + 1)
            }
        }
    }
}

/// Something for each set of labels in each piece of time.
enum Grid<T> {
    Dense {
        first: u32,
        pieces: usize,
        all: Vec<T>,
    },
    Sparse(HashMap<(u32, u32), T>),
}

impl<T: Default + Clone> Grid<T> {
    fn new(lines: &Lines<'_>) -> Grid<T> {
        let (first, pieces) = lines.span();
        match lines.labelled.sets.len().checked_mul(pieces) {
            Some(cells) if cells <= DENSE_CELLS_MAX => Grid::Dense {
                first,
                pieces,
                all: vec![T::default(); cells],
            },
            _ => Grid::Sparse(HashMap::new()),
        }
    }

    fn at(&mut self, set: u32, piece: u32) -> &mut T {
        match self {
            Grid::Dense { first, pieces, all } => {
                &mut all[set as usize * *pieces + (piece - *first) as usize]
            }
            Grid::Sparse(some) => some.entry((set, piece)).or_default(),
        }
    }

    /// All, by set and piece.
    fn finish(self) -> Vec<((u32, u32), T)> {
        match self {
            Grid::Dense { first, pieces, all } => {
                let place = |at: usize| {
                    (
                        cast::low_u32(at / pieces),
                        first + cast::low_u32(at % pieces),
                    )
                };
                let all = all.into_iter().enumerate();
                all.map(|(at, value)| (place(at), value)).collect()
            }
            Grid::Sparse(some) => {
                let mut some: Vec<_> = some.into_iter().collect();
                some.sort_unstable_by_key(|(at, _)| *at);
                some
            }
        }
    }
}
