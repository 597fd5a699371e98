//! Records in a table of numbers.

use logpond_record::Record;
use logpond_segment::file::ReadError;

use super::table::RangeTable;
use crate::matcher::{self, Scratch};
use crate::pipeline::{add_base_labels, add_named_labels};
use crate::scan::{GroupScan, Selected};

impl RangeTable {
    /// Adds a record that the leaf's filter wants.
    pub fn add(&mut self, record: &Record<'_>) {
        let leaf = std::sync::Arc::clone(self.leaf());
        if leaf.counts_times() {
            return self.add_times([record.time.0].into_iter());
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

    /// Adds the selected rows of a block, by their times alone where nothing else counts.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &Selected,
    ) -> Result<(), ReadError> {
        if !self.leaf().counts_times() {
            return scan.each_record(selected, |record| self.add(record));
        }
        let times = scan.block_times()?;
        self.add_times(selected.rows.iter().map(|row| times[*row as usize]));
        Ok(())
    }
}
