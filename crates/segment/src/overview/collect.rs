//! The overview of rows.

use std::collections::HashMap;

use logpond_record::{Shape, SlotKind, TypeSet, Value, cast};

use super::{MESSAGE, Overview, ValueCount};
use crate::rows::{
    Column, ColumnType, FieldCounts, NULL, Overflow, Plans, Rows, RowsView, Schema, StringColumn,
    cell_bits, number_value, string_value,
};

/// Makes the overview of a segment, row group by row group.
pub struct OverviewBuilder {
    overview: Overview,
    is_bounded: bool,
}

impl Default for OverviewBuilder {
    fn default() -> OverviewBuilder {
        OverviewBuilder {
            overview: Overview::default(),
            is_bounded: true,
        }
    }
}

impl OverviewBuilder {
    /// Adds rows; `counts` are those of the whole file.
    pub(crate) fn add(&mut self, rows: &Rows, schema: &Schema, counts: &FieldCounts) {
        if !self.is_bounded {
            return;
        }
        self.overview.rows += rows.len() as u64;
        let mut plans = Plans::default();
        let view = RowsView::new(rows, schema, &mut plans);
        for (column, spec) in rows.fields.iter().zip(&schema.columns) {
            let count = counts.fields.get(&spec.name);
            let is_mixed = count.is_some_and(|count| count.may_mix(spec.kind));
            match column {
                Column::Absent => {}
                Column::Strings(strings) => self.add_strings(&spec.name, strings, spec.kind),
                _ => self.add_numbers(&view, column, (&spec.name, spec.kind), is_mixed),
            }
        }
        for row in 0..rows.len() {
            for (name, value) in rows.more.get(row).into_iter().flat_map(Overflow::new) {
                self.add_value(&name, &value, 1);
            }
            if !self.overview.has_few_fields() {
                self.is_bounded = false;
                self.overview = Overview::default();
                return;
            }
        }
        self.add_nulls(&view);
        for messages in [&rows.message, &rows.message_bytes] {
            self.add_strings(MESSAGE, messages, ColumnType::Text);
        }
        self.check_bounds();
    }

    fn check_bounds(&mut self) {
        self.is_bounded = self.overview.is_bounded();
        if !self.is_bounded {
            self.overview = Overview::default();
        }
    }

    fn add_value(&mut self, name: &str, value: &Value<'_>, rows: u64) {
        let types = TypeSet::of(value);
        let count = ValueCount { rows, types };
        self.overview.add(name, &value.to_text(), count);
    }

    fn add_strings(&mut self, name: &str, strings: &StringColumn, kind: ColumnType) {
        let mut counts = vec![0u64; strings.values.len()];
        let codes = strings.codes.iter().filter(|code| **code != NULL);
        codes.for_each(|code| counts[*code as usize] += 1);
        for (text, rows) in strings
            .values
            .iter()
            .zip(counts)
            .filter(|(_, rows)| *rows > 0)
        {
            let types = TypeSet::of(&string_value(kind, text));
            self.overview.add(name, text, ValueCount { rows, types });
        }
    }

    fn add_numbers(
        &mut self,
        view: &RowsView<'_>,
        column: &Column,
        (name, kind): (&str, ColumnType),
        is_mixed: bool,
    ) {
        // The bits of a number, and whether its slot is one of whole numbers.
        let mut counts: HashMap<(u64, bool), u64> = HashMap::new();
        for row in 0..view.rows().len() {
            if let Some(bits) = cell_bits(column, row) {
                let is_whole = is_mixed && view.is_whole_number(row, name);
                *counts.entry((bits, is_whole)).or_default() += 1;
            }
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable();
        for ((bits, is_whole), rows) in counts {
            let value = match column {
                Column::Bools(_) => Value::Bool(bits == 1),
                Column::Floats(_) => Value::Float(f64::from_bits(bits)),
                _ => number_value(kind, cast::signed(bits)),
            };
            let value = match value {
                Value::Float(number) if is_whole => Value::Int(cast::whole_i64(number)),
                value => value,
            };
            self.add_value(name, &value, rows);
        }
    }

    /// Adds the nulls that shapes have in slots.
    fn add_nulls(&mut self, view: &RowsView<'_>) {
        let shapes = &view.rows().shape;
        let mut rows_of: Vec<(u64, usize)> = vec![(0, 0); shapes.values.len()];
        for (row, code) in shapes
            .codes
            .iter()
            .enumerate()
            .filter(|(_, code)| **code != NULL)
        {
            let known = &mut rows_of[*code as usize];
            *known = (known.0 + 1, row);
        }
        for (rows, row) in rows_of.into_iter().filter(|(rows, _)| *rows > 0) {
            for name in null_names(view.shape(row)) {
                self.add_value(name, &Value::Null, rows);
            }
        }
    }

    /// Adds the overview of other rows.
    pub(crate) fn merge(&mut self, other: &Overview) {
        if self.is_bounded {
            self.overview.merge(other);
            self.check_bounds();
        }
    }

    /// The overview; `None` if it would be beyond its bounds.
    pub(crate) fn finish(self) -> Option<Overview> {
        self.is_bounded.then_some(self.overview)
    }
}

/// The names of the null slots of a shape, each once.
fn null_names(shape: &Shape) -> Vec<&str> {
    let slots = shape.slots().iter();
    let nulls = slots.filter(|slot| slot.kind == SlotKind::Null);
    let mut names: Vec<&str> = nulls.map(|slot| &*slot.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}
