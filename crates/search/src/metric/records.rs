//! Records in a table of numbers.

use logpond_record::Record;
use logpond_segment::file::ReadError;

use super::series::SeriesLabels;
use super::table::RangeTable;
use crate::matcher::{self, Scratch};
use crate::pipeline::{add_base_labels, add_named_labels};
use crate::scan::{GroupScan, Selected};

impl RangeTable {
    /// Adds a record that the leaf's filter wants.
    pub fn add(&mut self, record: &Record<'_>) {
        let leaf = std::sync::Arc::clone(self.leaf());
        if leaf.counts_times() {
            return self.add_times(&[], [record.time.0].into_iter());
        }
        let mut scratch = Scratch::new();
        // Rendering a line costs more than all the rest.
        let line = match leaf.looks_at_lines() {
            true => matcher::line(record, &mut scratch),
            false => b"",
        };
        self.add_line(record.time.0, line, |labels| match leaf.only_labels() {
            Some(names) => add_named_labels(record, names, labels),
            None => add_base_labels(record, leaf.named(), labels),
        });
    }

    /// Adds the selected rows of a block: by their times and the columns of the labels where nothing else
    /// counts.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &Selected,
    ) -> Result<(), ReadError> {
        let leaf = std::sync::Arc::clone(self.leaf());
        let Some(names) = leaf.only_labels().filter(|_| !leaf.looks_at_lines()) else {
            return scan.each_record(selected, |record| self.add(record));
        };
        let (labelled, odd) = scan.rows_by_labels(selected, names)?;
        let times = scan.block_times()?;
        let mut key = Vec::new();
        for (labels, rows) in labelled {
            key.clear();
            let labels = SeriesLabels::of_set(&labels);
            SeriesLabels::write_key(labels.iter(), &mut key);
            self.add_times(&key, rows.iter().map(|row| times[*row as usize]));
        }
        let (block, rows) = (selected.block, odd);
        scan.each_record(&Selected { block, rows }, |record| self.add(record))
    }
}
