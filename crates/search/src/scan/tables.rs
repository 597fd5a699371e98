//! Counting selected rows without making records of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use logpond_record::{SlotKind, TimeRange, Timestamp, Value};
use logpond_segment::file::ReadError;
use logpond_segment::rows::{Column, ColumnType, NULL, Overflow};

use super::block::{column_value, number_value, string_value};
use super::group::{GroupScan, Selected};
use crate::aggregate::{FieldStats, Histogram, Top};
use crate::field::Target;

impl GroupScan<'_> {
    /// Counts the selected rows of the block at hand by a field.
    pub fn add_to_top(
        &mut self,
        field: &str,
        selected: &Selected,
        top: &mut Top,
    ) -> Result<(), ReadError> {
        if !matches!(Target::new(field), Target::Field(_)) {
            return self.each_record(selected, |record| top.add(record));
        }
        let mut without = Vec::new();
        match self.directory.schema.column(field) {
            None => without.extend_from_slice(&selected.rows),
            Some(number) => {
                self.count_field(number, &selected.rows, &mut without, |value, rows| {
                    top.add_value(Some(value), rows);
                })?;
            }
        }
        for row in without {
            self.value_elsewhere(field, row as usize, |value| top.add_value(value, 1))?;
        }
        Ok(())
    }

    /// Hands over each distinct value of a column with how many of some rows have it, and
    /// collects the rows without a value.
    fn count_field(
        &mut self,
        number: usize,
        rows: &[u32],
        without: &mut Vec<u32>,
        mut visit: impl FnMut(&Value<'_>, u64),
    ) -> Result<(), ReadError> {
        let directory = self.directory;
        let spec = &directory.schema.columns[number];
        let holds_fractions = matches!(spec.kind, ColumnType::Float | ColumnType::Decimal(_));
        let whole = match holds_fractions && self.mixes_numbers(&spec.name) {
            true => self.rows_of_whole_numbers(&spec.name, rows)?,
            false => Vec::new(),
        };
        let (block, reader, _) = self.parts();
        let column = block.field(number, reader)?;
        if whole.is_empty() {
            count_column(column, spec.kind, rows, without, visit);
            return Ok(());
        }
        let mut counts: BTreeMap<(u64, bool), u64> = BTreeMap::new();
        for (&row, &is_whole) in rows.iter().zip(&whole) {
            match column_value(column, spec.kind, row as usize) {
                Some(Value::Float(f)) => *counts.entry((f.to_bits(), is_whole)).or_default() += 1,
                Some(value) => visit(&value, 1),
                None => without.push(row),
            }
        }
        for ((bits, is_whole), count) in counts {
            let number = f64::from_bits(bits);
            match is_whole {
                true => visit(&Value::Int(number as i64), count),
                false => visit(&Value::Float(number), count),
            }
        }
        Ok(())
    }

    /// For each of some rows, whether its shape has a slot of this name for whole numbers: a
    /// column of fractions holds these as well and cannot tell.
    fn rows_of_whole_numbers(&mut self, name: &str, rows: &[u32]) -> Result<Vec<bool>, ReadError> {
        let (block, reader, _) = self.parts();
        let shapes = block.shapes(reader)?;
        let values = Arc::clone(&shapes.values);
        let codes: Vec<u32> = rows.iter().map(|row| shapes.codes[*row as usize]).collect();
        let mut known: Vec<Option<bool>> = vec![None; values.len()];
        let mut is_whole = |code: u32| {
            let known = &mut known[code as usize];
            *known.get_or_insert_with(|| {
                let shape = self.shape(&values, code);
                let slot = shape.slots().iter().find(|slot| &*slot.name == name);
                slot.is_some_and(|slot| slot.kind == SlotKind::Int)
            })
        };
        Ok(codes.into_iter().map(&mut is_whole).collect())
    }

    /// Hands over a field's value that is not in its column.
    fn value_elsewhere(
        &mut self,
        name: &str,
        row: usize,
        visit: impl FnOnce(Option<&Value<'_>>),
    ) -> Result<(), ReadError> {
        if !self.may_be_elsewhere(name) {
            visit(None);
            return Ok(());
        }
        let (block, reader, _) = self.parts();
        if let Some(value) = block
            .more(reader)?
            .get(row)
            .and_then(|object| Overflow::find(object, name))
        {
            visit(Some(&value));
            return Ok(());
        }
        let is_null = self.shape_has_null(name, row)?;
        visit(is_null.then_some(&Value::Null));
        Ok(())
    }

    /// Counts the selected rows of the block at hand by time.
    pub fn add_to_histogram(
        &mut self,
        selected: &Selected,
        histogram: &mut Histogram,
    ) -> Result<(), ReadError> {
        if histogram.split_field().is_some() {
            return self.each_record(selected, |record| histogram.add(record));
        }
        let times = self.times()?;
        for row in &selected.rows {
            histogram.add_value(Timestamp(times[*row as usize]), None, 1);
        }
        Ok(())
    }

    /// Counts the fields of the selected rows of the block at hand.
    pub fn add_to_fields(
        &mut self,
        selected: &Selected,
        stats: &mut FieldStats,
    ) -> Result<(), ReadError> {
        stats.add_rows(selected.rows.len() as u64);
        let directory = self.directory;
        for (number, spec) in directory.schema.columns.iter().enumerate() {
            self.count_field(number, &selected.rows, &mut Vec::new(), |value, rows| {
                stats.add_value(&spec.name, value, rows);
            })?;
        }
        let (block, reader, _) = self.parts();
        let more = block.more(reader)?;
        for row in &selected.rows {
            let object = more.get(*row as usize).into_iter();
            object
                .flat_map(Overflow::new)
                .for_each(|(name, value)| stats.add_value(&name, &value, 1));
        }
        self.add_nulls_of_shapes(selected, stats)?;
        self.add_messages(selected, stats)
    }

    fn add_nulls_of_shapes(
        &mut self,
        selected: &Selected,
        stats: &mut FieldStats,
    ) -> Result<(), ReadError> {
        let directory = self.directory;
        let names = directory
            .counts
            .fields
            .iter()
            .filter(|(_, count)| count.shape_null > 0);
        for (name, _) in names {
            for row in &selected.rows {
                if self.shape_has_null(name, *row as usize)? {
                    stats.add_value(name, &Value::Null, 1);
                }
            }
        }
        Ok(())
    }

    fn add_messages(
        &mut self,
        selected: &Selected,
        stats: &mut FieldStats,
    ) -> Result<(), ReadError> {
        let (block, reader, _) = self.parts();
        let (text, bytes) = block.messages(reader)?;
        for messages in [text, bytes] {
            let column = Column::Strings(messages);
            count_column(
                &column,
                ColumnType::Text,
                &selected.rows,
                &mut Vec::new(),
                |value, rows| {
                    stats.add_value("_msg", value, rows);
                },
            );
        }
        Ok(())
    }

    /// Hands over the records of selected rows of the block at hand.
    pub fn each_record(
        &mut self,
        selected: &Selected,
        mut visit: impl FnMut(&logpond_record::Record<'_>),
    ) -> Result<(), ReadError> {
        self.with_view(|view, ids| {
            for row in &selected.rows {
                let row = *row as usize;
                visit(&view.record(row, ids.of_row(view.rows(), row)));
            }
        })
    }

    /// Rows of the row group, where the filter wants all and the range covers it: known without
    /// reading anything.
    pub fn rows_known(&self, is_all: bool, range: TimeRange) -> Option<u64> {
        let group = self.entry();
        let (min, max) = group.time_bounds();
        (is_all && range.covers(Timestamp(min), Timestamp(max))).then(|| group.rows() as u64)
    }
}

/// Hands over each distinct value of some rows with how many of them have it, and collects the
/// rows without a value.
fn count_column(
    column: &Column,
    kind: ColumnType,
    rows: &[u32],
    without: &mut Vec<u32>,
    mut visit: impl FnMut(&Value<'_>, u64),
) {
    match column {
        Column::Absent => without.extend_from_slice(rows),
        Column::Strings(strings) => {
            let mut counts = vec![0u64; strings.values.len()];
            for &row in rows {
                match strings.codes[row as usize] {
                    NULL => without.push(row),
                    code => counts[code as usize] += 1,
                }
            }
            for (code, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                visit(&string_value(kind, strings.values.get(code as u32)), *count);
            }
        }
        Column::Ints(numbers) => {
            let mut counts: HashMap<i64, u64> = HashMap::new();
            for &row in rows {
                match numbers.get(row as usize) {
                    Some(int) => *counts.entry(int).or_default() += 1,
                    None => without.push(row),
                }
            }
            counts
                .iter()
                .for_each(|(int, count)| visit(&number_value(kind, *int), *count));
        }
        Column::Floats(_) | Column::Bools(_) => {
            for &row in rows {
                match column_value(column, kind, row as usize) {
                    Some(value) => visit(&value, 1),
                    None => without.push(row),
                }
            }
        }
    }
}
