//! Rows of a block by what a condition says of a label that is computed.

use std::sync::Arc;

use logpond_record::Value;
use logpond_segment::file::ReadError;

use super::evaluate::select_by_record;
use super::group::GroupScan;
use crate::field::FieldMatcher;
use crate::label::{self, ComputedLabel};

/// The rows whose computed label is wanted: of each what the first of some fields says that has a text.
pub(super) fn select_by_computed(
    label: ComputedLabel,
    matcher: &FieldMatcher,
    number: usize,
    scan: &mut GroupScan<'_>,
    rows: Vec<u32>,
) -> Result<Vec<u32>, ReadError> {
    let fields = scan.fields_of_computed(label);
    if fields.iter().any(|field| scan.mixes_numbers(field)) {
        // How such a number is written is known to its record alone.
        return select_by_record(matcher, scan, rows);
    }
    let is_said_wanted = |field: &str, value: &Value<'_>| {
        matcher.matches_value(label.value(&label.said_by(field, value)).as_ref())
    };
    let (mut wanted, mut rest) = (Vec::new(), rows);
    for field in fields.iter() {
        if rest.is_empty() {
            break;
        }
        let is_wanted = |value: &Value<'_>| is_said_wanted(field, value);
        if let Some(column) = scan.directory.schema.column(field) {
            let present = scan.part_by_presence(column, rest)?;
            rest = present.without;
            let parted = scan.part_by_column(column, number, present.wanted, is_wanted)?;
            wanted.extend(parted.wanted);
        }
        if !rest.is_empty() && scan.may_be_elsewhere(field) {
            let mut silent = Vec::new();
            rest = scan.visit_more(field, &rest, |row, value| {
                if *value == Value::Null || value.to_text().is_empty() {
                    silent.push(row);
                } else if is_wanted(value) {
                    wanted.push(row);
                }
            })?;
            rest.extend(silent);
            rest.sort_unstable();
        }
    }
    if matcher.matches_value(label.unknown_value().as_ref()) {
        wanted.extend(rest);
    }
    wanted.sort_unstable();
    Ok(wanted)
}

impl<'a> GroupScan<'a> {
    /// The fields of the row group that may say what a computed label is, in the order in which they count.
    fn fields_of_computed(&mut self, computed: ComputedLabel) -> Arc<[&'a str]> {
        if let Some((_, fields)) = self.computed.iter().find(|(known, _)| *known == computed) {
            return Arc::clone(fields);
        }
        let names = computed.names();
        let fields = names.flat_map(|name| self.fields_by(|field| label::place(name, field)));
        let fields: Arc<[&str]> = fields.collect();
        self.computed.push((computed, Arc::clone(&fields)));
        fields
    }
}
