//! Columns of selected rows, as they are stored as far as that is possible.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use logpond_record::{Value, cast};
use logpond_segment::file::ReadError;
use logpond_segment::rows::{
    Column, ColumnType, NULL, Numbers, OverflowField, StringColumn, Strings, column_value,
    from_decimal,
};

use super::group::{GroupScan, SelectedRows};
use crate::aggregate::FieldTypes;
use crate::columns::{ColumnBuilder, ColumnKind, ColumnRequest, Columns, ColumnsBuilder};
use crate::field::Target;

/// What a column is: its places, and how many values they cannot hold.
type Made = (Column, u64);

impl GroupScan<'_> {
    /// The selected rows of the block at hand; only what the columns are made from is read.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub fn columns(
        &mut self,
        asked: &[ColumnRequest],
        selected: &SelectedRows,
    ) -> Result<Columns, ReadError> {
        let mut made = Vec::with_capacity(asked.len());
        let mut unmade = Vec::new();
        for column in asked {
            let one = self.column(column, selected)?;
            if one.is_none() {
                unmade.push(column.clone());
            }
            made.push(one);
        }
        let mut by_record = Vec::new();
        if !unmade.is_empty() {
            let mut builder = ColumnsBuilder::new(unmade.into());
            self.each_record(selected, |record| builder.add(record))?;
            let columns = builder.take();
            // Which of them could not hold a value is of no account.
            let mut unfit = columns.unfit;
            for column in columns.columns {
                by_record.push((column, std::mem::take(&mut unfit)));
            }
        }
        let mut by_record = by_record.into_iter();
        let all = made
            .into_iter()
            .filter_map(|one| one.or_else(|| by_record.next()));
        let mut columns = Columns {
            rows: selected.rows.len(),
            ..Columns::default()
        };
        for (column, unfit) in all {
            columns.unfit += unfit;
            columns.columns.push(column);
        }
        Ok(columns)
    }

    /// Adds the names and types of the fields that the selected rows of the block at hand may have.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub fn add_to_field_types(
        &mut self,
        selected: &SelectedRows,
        types: &mut FieldTypes,
    ) -> Result<(), ReadError> {
        if types.is_exact() {
            return self.each_record(selected, |record| types.add(record));
        }
        let in_lines = if types.is_of_lines() {
            Some(self.names_in_lines(selected)?)
        } else {
            None
        };
        let is_meant = |name: &str| in_lines.as_ref().is_none_or(|names| names.contains(name));
        let counts = &self.directory.counts.fields;
        for (name, count) in counts.iter().filter(|(name, _)| is_meant(name)) {
            types.add_counts(name, count);
            if count.null > 0 {
                self.visit_more(name, &selected.rows, |_, value| {
                    types.add_value(name, value)
                })?;
            }
        }
        Ok(())
    }

    /// Names of fields in the shapes of some rows.
    fn names_in_lines(&mut self, selected: &SelectedRows) -> Result<BTreeSet<Box<str>>, ReadError> {
        let (block, reader, _) = self.parts();
        let shapes = block.shapes(reader)?;
        let codes = selected.rows.iter().map(|row| shapes.codes[*row as usize]);
        let codes: BTreeSet<u32> = codes.collect();
        let values = Arc::clone(&shapes.values);
        let mut names = BTreeSet::new();
        for code in codes {
            let shape = self.shape(&values, code);
            let fields = shape.slots().iter().filter(|slot| slot.is_field());
            names.extend(fields.map(|slot| Box::<str>::from(&*slot.name)));
        }
        Ok(names)
    }

    /// One column; `None` if only the records tell what it is.
    fn column(
        &mut self,
        asked: &ColumnRequest,
        selected: &SelectedRows,
    ) -> Result<Option<Made>, ReadError> {
        let rows = &selected.rows;
        Ok(match Target::new(&asked.name) {
            Target::Time => Some((ints(rows, self.times()?, 1), 0)),
            Target::Received => {
                let (block, reader, _) = self.parts();
                block.read_identities(reader)?;
                Some((ints(rows, &block.known_rows().received, 1000), 0))
            }
            Target::Id if asked.kind == ColumnKind::Text => {
                let mut ids = ColumnBuilder::new(ColumnKind::Text);
                for id in self.ids(rows)? {
                    ids.push_text(Some(id.to_string().as_bytes()));
                }
                Some(ids.finish())
            }
            Target::Message if asked.kind == ColumnKind::Text => Some((self.messages(rows)?, 0)),
            Target::Line if asked.kind == ColumnKind::Text => {
                let column = self.with_lines(rows, |view| {
                    let mut lines = ColumnBuilder::new(ColumnKind::Text);
                    let mut line = Vec::new();
                    for row in rows {
                        line.clear();
                        view.write_line(*row as usize, &mut line);
                        lines.push_text(Some(&line));
                    }
                    lines.finish()
                })?;
                Some(column)
            }
            Target::Field(name) => self.field_column(&name, asked.kind, rows)?,
            _ => None,
        })
    }

    /// Messages, which are lines where they are no part of one.
    fn messages(&mut self, rows: &[u32]) -> Result<Column, ReadError> {
        let (block, reader, _) = self.parts();
        let [messages, others] = block.messages(reader)?;
        let is_part = |row: &&u32| messages.codes[**row as usize] != NULL;
        if rows.iter().all(|row| is_part(&row)) {
            return Ok(Column::Strings(strings(messages, rows)));
        }
        let has_none = |row: &&u32| !is_part(row) && others.codes[**row as usize] == NULL;
        let without: Vec<u32> = rows.iter().filter(has_none).copied().collect();
        self.with_lines(&without, |view| {
            let mut column = ColumnBuilder::new(ColumnKind::Text);
            let mut line = Vec::new();
            for &row in rows {
                let at = row as usize;
                let known = view.rows();
                let part = known
                    .message
                    .get(at)
                    .or_else(|| known.message_bytes.get(at));
                if part.is_none() && view.shape(at).message_is_line() {
                    line.clear();
                    view.write_line(at, &mut line);
                    column.push_text(Some(&line));
                } else {
                    column.push_text(part);
                }
            }
            column.finish().0
        })
    }

    /// A field that has no column of its own.
    fn overflow_column(
        &mut self,
        name: &str,
        kind: ColumnKind,
        rows: &[u32],
    ) -> Result<Made, ReadError> {
        let nulls = self.rows_with_null(name, rows)?;
        let mut column = ColumnBuilder::new(kind);
        let (block, reader, _) = self.parts();
        let more = block.more(reader)?;
        let field = OverflowField::new(name);
        for row in rows {
            let object = more.get(*row as usize);
            let object = object.filter(|_| nulls.binary_search(row).is_err());
            column.push(object.and_then(|object| field.find(object)).as_ref());
        }
        Ok(column.finish())
    }

    fn field_column(
        &mut self,
        name: &str,
        kind: ColumnKind,
        rows: &[u32],
    ) -> Result<Option<Made>, ReadError> {
        let is_elsewhere = self.may_be_elsewhere(name);
        let Some(number) = self.directory.schema.column(name) else {
            if !is_elsewhere {
                return Ok(Some((Column::Absent, 0)));
            }
            return self.overflow_column(name, kind, rows).map(Some);
        };
        let stored = self.directory.schema.columns[number].kind;
        let is_float = matches!(kind, ColumnKind::Float | ColumnKind::Number);
        if !is_float && self.mixes_numbers(name) {
            // Which of the numbers are whole is known to their shapes.
            return Ok(None);
        }
        // Where the line says null, a label of the same name does not count.
        let nulls = self.rows_with_null(name, rows)?;
        let (block, reader, _) = self.parts();
        block.field(number, reader)?;
        if is_elsewhere {
            block.more(reader)?;
        }
        let known = block.known_rows();
        let column = &known.fields[number];
        if !is_elsewhere && let Some(made) = stored_column(column, kind, stored, rows) {
            return Ok(Some((made, 0)));
        }
        let mut made = ColumnBuilder::new(kind);
        let field = OverflowField::new(name);
        for row in rows {
            let at = *row as usize;
            if nulls.binary_search(row).is_ok() {
                made.push(None);
                continue;
            }
            let value: Option<Value<'_>> = column_value(column, stored, at).or_else(|| {
                let object = is_elsewhere.then(|| known.more.get(at)).flatten()?;
                field.find(object)
            });
            made.push(value.as_ref());
        }
        Ok(Some(made.finish()))
    }
}

/// The column of a field as it is stored, or simply made from that. Invariant: no row has its value elsewhere.
fn stored_column(
    column: &Column,
    kind: ColumnKind,
    stored: ColumnType,
    rows: &[u32],
) -> Option<Column> {
    let is_float = matches!(kind, ColumnKind::Float | ColumnKind::Number);
    Some(match (column, stored) {
        (Column::Strings(texts), _) if kind == ColumnKind::Text => {
            Column::Strings(strings(texts, rows))
        }
        (Column::Ints(numbers), ColumnType::Int) if kind == ColumnKind::Int => {
            Column::Ints(gathered(numbers, rows))
        }
        (Column::Ints(numbers), ColumnType::Int) if kind == ColumnKind::Text => {
            Column::Strings(texts_of(&gathered(numbers, rows)))
        }
        (Column::Ints(numbers), ColumnType::Int) if is_float => {
            Column::Floats(converted(gathered(numbers, rows), cast::float))
        }
        (Column::Ints(numbers), ColumnType::Decimal(scale)) if is_float => {
            let float = |int| from_decimal(int, scale);
            Column::Floats(converted(gathered(numbers, rows), float))
        }
        (Column::Floats(numbers), _) if is_float => Column::Floats(gathered(numbers, rows)),
        (Column::Bools(values), _) if kind == ColumnKind::Bool => {
            Column::Bools(gathered(values, rows))
        }
        _ => return None,
    })
}

fn converted(numbers: Numbers<i64>, convert: impl Fn(i64) -> f64) -> Numbers<f64> {
    Numbers {
        values: numbers.values.into_iter().map(convert).collect(),
        valid: numbers.valid,
    }
}

/// The texts of whole numbers: equal ones have one code.
fn texts_of(numbers: &Numbers<i64>) -> StringColumn {
    let mut codes_by_number = HashMap::new();
    let mut values = Strings::default();
    let codes = (0..numbers.values.len()).map(|row| {
        let Some(number) = numbers.get(row) else {
            return NULL;
        };
        *codes_by_number.entry(number).or_insert_with(|| {
            values.push(number.to_string().as_bytes());
            cast::low_u32(values.len()) - 1
        })
    });
    StringColumn {
        codes: codes.collect(),
        values: Arc::new(values),
    }
}

fn ints(rows: &[u32], numbers: &[i64], unit: i64) -> Column {
    let numbers = rows
        .iter()
        .map(|row| numbers[*row as usize].saturating_mul(unit));
    Column::Ints(Numbers {
        values: numbers.collect(),
        valid: Vec::new(),
    })
}

fn strings(texts: &StringColumn, rows: &[u32]) -> StringColumn {
    StringColumn {
        codes: rows.iter().map(|row| texts.codes[*row as usize]).collect(),
        values: Arc::clone(&texts.values),
    }
}

fn gathered<T: Copy>(numbers: &Numbers<T>, rows: &[u32]) -> Numbers<T> {
    let valid = if numbers.valid.is_empty() {
        Vec::new()
    } else {
        rows.iter()
            .map(|row| numbers.valid[*row as usize])
            .collect()
    };
    Numbers {
        values: rows
            .iter()
            .map(|row| numbers.values[*row as usize])
            .collect(),
        valid,
    }
}
