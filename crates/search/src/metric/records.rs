//! Records in a table of numbers.

use logpond_record::Record;

use super::table::RangeTable;
use crate::matcher::{self, Scratch};
use crate::pipeline::{add_base_labels, add_named_labels};
use crate::scan::GroupLabels;

impl RangeTable {
    /// Adds a record that the leaf's filter wants.
    pub fn add(&mut self, record: &Record<'_>) {
        let leaf = std::sync::Arc::clone(self.leaf());
        if let Some(of_labels) = leaf.of_labels()
            && let GroupLabels::Named(names) = &of_labels.by
            && !of_labels.has_json
        {
            return self.add_work(&of_labels.rest, record.time.0, b"", |labels| {
                add_named_labels(record, names, labels);
                add_named_labels(record, of_labels.number.as_slice(), labels);
            });
        }
        let mut scratch = Scratch::new();
        // Rendering a line costs more than all the rest.
        let line = if leaf.looks_at_lines() {
            matcher::line(record, &mut scratch)
        } else {
            b""
        };
        self.add_line(record.time.0, line, |labels| {
            add_base_labels(record, leaf.named(), labels);
        });
    }
}
