//! Counting selected rows without making records of them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use logpond_record::{Timestamp, Value, cast};
use logpond_segment::file::ReadError;
use logpond_segment::rows::{
    Column, ColumnType, NULL, Overflow, OverflowField, StringColumn, cell_bits, column_value,
    number_value, string_value,
};

use super::group::{GroupScan, SelectedRows};
use super::labels::{EmptyTexts, GroupLabels};
use crate::aggregate::{FieldStats, Histogram, LabelSet, Top};
use crate::field::Target;
use crate::label::ComputedLabel;

/// Rows of a block by a value.
struct RowsByValue {
    /// The values, `None` for rows without one; the same may stand more than once.
    values: Vec<Option<Value<'static>>>,
    rows: Vec<u32>,
    /// For each row the place of its value.
    of_rows: Vec<u32>,
}

impl RowsByValue {
    fn add(&mut self, row: u32, place: u32) {
        self.rows.push(row);
        self.of_rows.push(place);
    }

    /// The place of a value, which may have others.
    fn place_of(&mut self, value: Option<Value<'static>>) -> u32 {
        self.values.push(value);
        cast::low_u32(self.values.len()) - 1
    }

    fn rows(&self) -> impl Iterator<Item = (u32, usize)> {
        let values = self.of_rows.iter().map(|value| *value as usize);
        self.rows.iter().copied().zip(values)
    }
}

impl GroupScan<'_> {
    /// Counts the selected rows of the block at hand by a field.
    pub fn add_to_top(
        &mut self,
        field: &str,
        selected: &SelectedRows,
        top: &mut Top,
    ) -> Result<(), ReadError> {
        match Target::new(field) {
            Target::Field(_) => {}
            Target::Computed(label) => {
                let (computed, others) = self.rows_by_computed(label, selected)?;
                let mut counts = vec![0u64; computed.values.len()];
                computed.rows().for_each(|(_, value)| counts[value] += 1);
                for (value, count) in computed.values.iter().zip(counts) {
                    top.add_value(value.as_ref(), count);
                }
                return self.each_record(&others, |record| top.add(record));
            }
            _ => return self.each_record(selected, |record| top.add(record)),
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
        self.count_elsewhere(field, &without, top)
    }

    /// The selected rows of the block at hand by a computed label, and those whose records alone tell it.
    fn rows_by_computed(
        &mut self,
        label: ComputedLabel,
        selected: &SelectedRows,
    ) -> Result<(RowsByValue, SelectedRows), ReadError> {
        let by = GroupLabels::Named(vec![label.name().into()]);
        let (labelled, odd) = self.rows_by_labels(selected, &by, None, EmptyTexts::AreNone)?;
        let value = |set: &LabelSet| {
            let (_, text) = set.iter().next()?;
            label.value(text.as_bytes()).map(Value::into_owned)
        };
        let computed = RowsByValue {
            values: labelled.sets.iter().map(value).collect(),
            rows: labelled.rows,
            of_rows: labelled.of_rows,
        };
        let (block, rows) = (selected.block, odd);
        Ok((computed, SelectedRows { block, rows }))
    }

    /// Counts the values of some rows that are not in their field's column.
    fn count_elsewhere(
        &mut self,
        field: &str,
        rows: &[u32],
        top: &mut Top,
    ) -> Result<(), ReadError> {
        if !self.may_be_elsewhere(field) {
            top.add_missing(rows.len() as u64);
            return Ok(());
        }
        let without = self.visit_more(field, rows, |_, value| top.add_value(Some(value), 1))?;
        let nulls = self.rows_with_null(field, &without)?.len() as u64;
        if nulls > 0 {
            top.add_value(Some(&Value::Null), nulls);
        }
        top.add_missing(without.len() as u64 - nulls);
        Ok(())
    }

    /// Hands over the values that some rows of the block at hand have for a field in the overflow
    /// column, and returns the rows without.
    pub(super) fn visit_more(
        &mut self,
        field: &str,
        rows: &[u32],
        mut visit: impl FnMut(u32, &Value<'_>),
    ) -> Result<Vec<u32>, ReadError> {
        let (block, reader, _) = self.parts();
        let more = block.more(reader)?;
        let field = OverflowField::new(field);
        let value_of = |row: u32| field.find(more.get(row as usize)?);
        let mut without = Vec::new();
        for &row in rows {
            match value_of(row) {
                Some(value) => visit(row, &value),
                None => without.push(row),
            }
        }
        Ok(without)
    }

    /// Hands over each distinct value of a column with how many of some rows have it, and
    /// collects the rows without a value.
    pub(super) fn count_field(
        &mut self,
        number: usize,
        rows: &[u32],
        without: &mut Vec<u32>,
        mut visit: impl FnMut(&Value<'_>, u64),
    ) -> Result<(), ReadError> {
        let directory = self.directory;
        let spec = &directory.schema.columns[number];
        let whole = if self.mixes_numbers(&spec.name) {
            self.rows_of_whole_numbers(&spec.name, rows)?
        } else {
            Vec::new()
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
        counts.into_iter().for_each(|((bits, is_whole), count)| {
            let number = f64::from_bits(bits);
            if is_whole {
                visit(&Value::Int(cast::whole_i64(number)), count)
            } else {
                visit(&Value::Float(number), count)
            }
        });
        Ok(())
    }

    /// For each of some rows, whether its shape has a slot of this name for whole numbers: a
    /// column of fractions holds these as well and cannot tell.
    fn rows_of_whole_numbers(&mut self, name: &str, rows: &[u32]) -> Result<Vec<bool>, ReadError> {
        self.test_shapes(rows, |shape| {
            let slot = shape.slots().iter().find(|slot| &*slot.name == name);
            slot.is_some_and(|slot| slot.kind.is_whole_number())
        })
    }

    /// Counts the selected rows of the block at hand by time.
    pub fn add_to_histogram(
        &mut self,
        selected: &SelectedRows,
        histogram: &mut Histogram,
    ) -> Result<(), ReadError> {
        let Some(field) = histogram.split_field() else {
            let times = self.times()?;
            let rows = selected.rows.iter().map(|row| (times[*row as usize], 0));
            add_runs(rows, &[None], histogram);
            return Ok(());
        };
        let field = field.to_owned();
        let (by_value, others) = match Target::new(&field) {
            Target::Computed(label) => self.rows_by_computed(label, selected)?,
            Target::Field(_) if !self.mixes_numbers(&field) => {
                let rows = self.rows_by_field(&field, &selected.rows)?;
                let others = SelectedRows {
                    block: selected.block,
                    rows: Vec::new(),
                };
                (rows, others)
            }
            _ => return self.each_record(selected, |record| histogram.add(record)),
        };
        let times = self.times()?.to_vec();
        let rows = by_value
            .rows()
            .map(|(row, value)| (times[row as usize], value));
        add_runs(rows, &by_value.values, histogram);
        self.each_record(&others, |record| histogram.add(record))
    }

    /// Some rows of the block at hand by a field, which does not mix numbers. Rows whose value is not in its
    /// column come last.
    fn rows_by_field(&mut self, field: &str, rows: &[u32]) -> Result<RowsByValue, ReadError> {
        let is_elsewhere = self.may_be_elsewhere(field);
        let directory = self.directory;
        let number = directory.schema.column(field);
        let (block, reader, _) = self.parts();
        let (column, kind) = match number {
            Some(number) => {
                let kind = directory.schema.columns[number].kind;
                (block.field(number, reader)?, kind)
            }
            None => (&Column::Absent, ColumnType::Text),
        };
        let mut found = RowsByValue {
            values: vec![None],
            rows: Vec::new(),
            of_rows: Vec::new(),
        };
        let mut others = Vec::new();
        let mut places: HashMap<u64, u32> = HashMap::new();
        // Neighbours are mostly alike.
        let mut last = (None, 0);
        for &row in rows {
            let cell = cell_bits(column, row as usize);
            let Some(bits) = cell else {
                if is_elsewhere {
                    others.push(row);
                } else {
                    found.add(row, 0);
                }
                continue;
            };
            if last.0 != cell {
                let place = *places.entry(bits).or_insert_with(|| {
                    let value = column_value(column, kind, row as usize);
                    found.place_of(value.map(Value::into_owned))
                });
                last = (cell, place);
            }
            found.add(row, last.1);
        }
        self.add_elsewhere(field, &others, &mut found)?;
        Ok(found)
    }

    /// Adds rows whose value is not in the column of their field, if they have one.
    fn add_elsewhere(
        &mut self,
        field: &str,
        rows: &[u32],
        found: &mut RowsByValue,
    ) -> Result<(), ReadError> {
        if rows.is_empty() {
            return Ok(());
        }
        let without = self.visit_more(field, rows, |row, value| {
            let place = found.place_of(Some(value.clone().into_owned()));
            found.add(row, place);
        })?;
        let nulls = self.rows_with_null(field, &without)?;
        let null = found.place_of(Some(Value::Null));
        let mut nulls = nulls.into_iter().peekable();
        for row in without {
            let is_null = nulls.next_if_eq(&row).is_some();
            found.add(row, if is_null { null } else { 0 });
        }
        Ok(())
    }

    /// Counts the fields of the selected rows of the block at hand.
    pub fn add_to_fields(
        &mut self,
        selected: &SelectedRows,
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
        selected: &SelectedRows,
        stats: &mut FieldStats,
    ) -> Result<(), ReadError> {
        let directory = self.directory;
        let names = directory
            .counts
            .fields
            .iter()
            .filter(|(_, count)| count.shape_null > 0);
        for (name, _) in names {
            let nulls = self.rows_with_null(name, &selected.rows)?.len() as u64;
            if nulls > 0 {
                stats.add_value(name, &Value::Null, nulls);
            }
        }
        Ok(())
    }

    fn add_messages(
        &mut self,
        selected: &SelectedRows,
        stats: &mut FieldStats,
    ) -> Result<(), ReadError> {
        let (block, reader, _) = self.parts();
        for messages in block.messages(reader)? {
            count_strings(
                messages,
                ColumnType::Text,
                &selected.rows,
                &mut Vec::new(),
                |value, rows| stats.add_value("_msg", value, rows),
            );
        }
        Ok(())
    }

    /// Hands over the records of selected rows of the block at hand.
    pub fn each_record(
        &mut self,
        selected: &SelectedRows,
        mut visit: impl FnMut(&logpond_record::Record<'_>),
    ) -> Result<(), ReadError> {
        if selected.rows.is_empty() {
            // Records need every column.
            return Ok(());
        }
        self.with_view(|view, ids| {
            for row in &selected.rows {
                let row = *row as usize;
                visit(&view.record(row, ids.of_row(view.rows(), row)));
            }
        })
    }

    /// Rows of the row group, where the filter wants all, the range covers it and nothing is
    /// excluded: known without reading anything.
    pub fn rows_known(&self) -> Option<u64> {
        let group = self.entry();
        let (min, max) = group.time_bounds();
        let (is_all, range) = (
            self.evaluator.is_all(self.directory),
            self.evaluator.range(),
        );
        let is_whole = is_all && !self.excludes_some();
        let is_known = is_whole && range.covers(Timestamp(min), Timestamp(max));
        is_known.then(|| group.rows() as u64)
    }
}

/// Counts rows by their times and the places of their values. Neighbours are mostly alike.
fn add_runs(
    rows: impl Iterator<Item = (i64, usize)>,
    values: &[Option<Value<'_>>],
    histogram: &mut Histogram,
) {
    let mut run: Option<(Range<i64>, usize, u64)> = None;
    let flush = |run: Option<(Range<i64>, usize, u64)>, histogram: &mut Histogram| {
        if let Some((bucket, value, rows)) = run {
            histogram.add_value(Timestamp(bucket.start), values[value].as_ref(), rows);
        }
    };
    for (time, value) in rows {
        match &mut run {
            Some((bucket, last, rows)) if *last == value && bucket.contains(&time) => *rows += 1,
            _ => {
                flush(run.take(), histogram);
                run = histogram.bucket_of(time).map(|bucket| (bucket, value, 1));
            }
        }
    }
    flush(run, histogram);
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
        Column::Strings(strings) => count_strings(strings, kind, rows, without, visit),
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

fn count_strings(
    strings: &StringColumn,
    kind: ColumnType,
    rows: &[u32],
    without: &mut Vec<u32>,
    mut visit: impl FnMut(&Value<'_>, u64),
) {
    let mut counts = vec![0u64; strings.values.len()];
    for &row in rows {
        match strings.codes[row as usize] {
            NULL => without.push(row),
            code => counts[code as usize] += 1,
        }
    }
    for (code, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        visit(
            &string_value(kind, strings.values.get(cast::low_u32(code))),
            *count,
        );
    }
}
