//! Lines of a row group by the values of one label, counted by the values' numbers in the group's dictionary:
//! a label with many values costs its table one entry for each value in the group, not in each block.

use std::borrow::Cow;
use std::mem::size_of;
use std::sync::Arc;

use logpond_record::cast;
use logpond_segment::file::ReadError;
use logpond_segment::rows::{NULL, StringColumn, Strings};

use super::cells::Cell;
use super::leaf::Leaf;
use super::series::SeriesLabels;
use super::series_map::{TOGETHER_MAX, Tag};
use super::table::RangeTable;
use crate::scan::{GroupLabels, GroupScan, SelectedRows};

/// Counts that are not in the table yet, all of one piece of time.
#[derive(Clone, Debug)]
pub(super) struct CodedCounts {
    name: Box<str>,
    piece: u32,
    values: Arc<Strings>,
    /// By the numbers of the values; a row group has fewer than 2^32 lines.
    counts: Vec<u32>,
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

    /// The piece of time of all.
    pub(super) fn piece(&self) -> u32 {
        self.piece
    }

    /// Whether so many of the values were seen that the counts take less memory than series.
    pub(super) fn is_dense(&self) -> bool {
        let seen = self.counts.iter().filter(|count| **count > 0).count();
        seen * 2 >= self.counts.len()
    }

    /// About the memory that it takes, with the values, which others may have, too.
    pub(super) fn bytes(&self) -> usize {
        self.values.memory_bytes() + size_of_val(&*self.counts)
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
        selected: &SelectedRows,
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
        if let Some(coded) = self.coded.take() {
            self.add_counts(&coded, coded.piece);
        }
    }

    /// Adds the counts of a row group to a piece of time.
    pub(super) fn add_counts(&mut self, coded: &CodedCounts, piece: u32) {
        let mut without = coded.without;
        let mut batch = Batch::of_label(&coded.name);
        let seen = coded.counts.iter().filter(|count| **count > 0).count();
        let key_bytes = seen * batch.before_value.len() + coded.values.bytes().len();
        self.expect(seen, key_bytes);
        for (code, count) in coded.counts.iter().enumerate().filter(|(_, c)| **c > 0) {
            let value = lossy(coded.values.get(cast::low_u32(code)));
            if value.is_empty() {
                // An empty text is no value.
                without += u64::from(*count);
                continue;
            }
            batch.push(&value, u64::from(*count));
            if batch.is_full() {
                self.add_batch(&batch, piece);
                batch.clear();
            }
        }
        self.add_batch(&batch, piece);
        if without > 0 {
            self.add_cell(&[], piece, Cell::Count(without));
        }
    }

    fn add_batch(&mut self, batch: &Batch, piece: u32) {
        let keys = &batch.keys()[..batch.counts.len()];
        self.add_counts_of(keys, piece, &batch.counts);
    }
}

/// Bytes as a text; mostly they are one, and that is found faster than what is none.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Series by the values of one label, with their counts, which are looked for together.
struct Batch {
    /// The key of a series as far as it is the same for all: up to the length of the value.
    before_value: Vec<u8>,
    /// All keys, one behind another, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    counts: Vec<u64>,
}

impl Batch {
    fn of_label(name: &str) -> Batch {
        let mut before_value = Vec::new();
        SeriesLabels::write_key([(name, "")].into_iter(), &mut before_value);
        before_value.truncate(before_value.len() - size_of::<u32>());
        Batch {
            before_value,
            bytes: Vec::new(),
            ends: Vec::new(),
            counts: Vec::new(),
        }
    }

    fn push(&mut self, value: &str, count: u64) {
        self.bytes.extend_from_slice(&self.before_value);
        SeriesLabels::write_text(value, &mut self.bytes);
        self.ends.push(self.bytes.len());
        self.counts.push(count);
    }

    fn is_full(&self) -> bool {
        self.counts.len() >= TOGETHER_MAX
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.counts.clear();
    }

    /// The keys with their tags, behind which empty ones are.
    fn keys(&self) -> [(Tag, &[u8]); TOGETHER_MAX] {
        let mut keys = [(Tag::default(), &[][..]); TOGETHER_MAX];
        let mut start = 0;
        for (key, end) in keys.iter_mut().zip(&self.ends) {
            let bytes = &self.bytes[start..*end];
            *key = (Tag::of(bytes), bytes);
            start = *end;
        }
        keys
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
            GroupLabels::Named(names) if is_by && self.cells.counts_lines() => match &names[..] {
                [name] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }
}
