//! Lines of a row group by the values of one label, counted by the values' numbers in the group's dictionary:
//! a label with many values costs its table one entry for each value in the group, not in each block.

use std::sync::Arc;

use logpond_segment::file::ReadError;
use logpond_segment::rows::{NULL, StringColumn, Strings};

use super::cells::Cell;
use super::leaf::Leaf;
use super::series::SeriesLabels;
use super::table::RangeTable;
use crate::scan::{By, GroupScan, Selected};

/// Counts that are not in the table yet, all of one piece of time.
#[derive(Clone, Debug)]
pub(super) struct CodedCounts {
    name: Box<str>,
    piece: u32,
    values: Arc<Strings>,
    /// By the numbers of the values.
    counts: Vec<u64>,
    /// Lines without the label.
    without: u64,
}

impl CodedCounts {
    fn new(name: &str, piece: u32, values: &Arc<Strings>) -> CodedCounts {
        CodedCounts {
            name: name.into(),
            piece,
            values: Arc::clone(values),
            counts: vec![0; values.len()],
            without: 0,
        }
    }

    fn is_of(&self, piece: u32, values: &Arc<Strings>) -> bool {
        self.piece == piece && Arc::ptr_eq(&self.values, values)
    }

    fn add(&mut self, column: &StringColumn, rows: &[u32]) {
        for row in rows {
            match column.codes[*row as usize] {
                NULL => self.without += 1,
                code => self.counts[code as usize] += 1,
            }
        }
    }
}

impl RangeTable {
    /// Counts the selected rows of a block, if all that matters is how many there are with each value of
    /// one label, and those are texts of one column. [`RangeTable::end_group`] adds them to the table.
    pub(super) fn add_coded(
        &mut self,
        leaf: &Leaf,
        scan: &mut GroupScan<'_>,
        selected: &Selected,
    ) -> Result<bool, ReadError> {
        let (from, to) = scan.block_span(selected);
        let (Some(name), Some(piece)) = (leaf.one_label(), leaf.windows.piece_of_span(from, to))
        else {
            return Ok(false);
        };
        let Some(column) = scan.text_label(selected, name)? else {
            return Ok(false);
        };
        let known = self.coded.as_ref();
        if !known.is_some_and(|coded| coded.is_of(piece, &column.values)) {
            self.end_group();
            self.coded = Some(CodedCounts::new(name, piece, &column.values));
        }
        if let Some(coded) = &mut self.coded {
            coded.add(column, &selected.rows);
        }
        Ok(true)
    }

    /// To be called when no more blocks of a row group come.
    pub fn end_group(&mut self) {
        let Some(mut coded) = self.coded.take() else {
            return;
        };
        let mut key = Vec::new();
        for (code, count) in coded.counts.iter().enumerate().filter(|(_, c)| **c > 0) {
            let value = coded.values.get(code as u32);
            if value.is_empty() {
                // An empty text is no value.
                coded.without += count;
                continue;
            }
            key.clear();
            let value = String::from_utf8_lossy(value);
            SeriesLabels::write_key([(&*coded.name, &*value)].into_iter(), &mut key);
            self.add_cell(&key, coded.piece, Cell::Count(*count));
        }
        if coded.without > 0 {
            self.add_cell(&[], coded.piece, Cell::Count(coded.without));
        }
    }
}

impl Leaf {
    /// The label whose values are all that tells series apart, where lines are only counted.
    fn one_label(&self) -> Option<&str> {
        let of_labels = self.of_labels().filter(|of| {
            of.rest.is_empty() && !of.has_json && of.number.is_none() && self.unwrap.is_none()
        })?;
        let is_by = self.grouping.as_ref().is_some_and(|by| !by.is_without);
        match &of_labels.by {
            By::Named(names) if is_by && self.cells.counts_lines() => match &names[..] {
                [name] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }
}
