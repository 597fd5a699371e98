//! One block of a row group, its columns read when they are first asked for.

use logpond_record::Value;
use logpond_segment::file::{Directory, Identities, ReadError, RowGroupReader};
use logpond_segment::rows::{Column, ColumnType, Rows, StringColumn, from_decimal};

/// The columns of a block.
pub(super) struct Block {
    number: usize,
    times: Option<Vec<i64>>,
    fields: Vec<Option<Column>>,
    more: Option<StringColumn>,
    shapes: Option<StringColumn>,
    all: Option<Rows>,
}

/// A value of a column without its column.
pub(super) fn column_value(column: &Column, kind: ColumnType, row: usize) -> Option<Value<'_>> {
    match column {
        Column::Strings(strings) => strings.get(row).map(|bytes| string_value(kind, bytes)),
        Column::Ints(numbers) => numbers.get(row).map(|int| number_value(kind, int)),
        Column::Floats(numbers) => numbers.get(row).map(Value::Float),
        Column::Bools(numbers) => numbers.get(row).map(Value::Bool),
        Column::Absent => None,
    }
}

/// A stored text as a value.
pub(super) fn string_value(kind: ColumnType, bytes: &[u8]) -> Value<'_> {
    match Value::text(bytes) {
        Value::Str(text) if kind == ColumnType::Json => Value::Json(text),
        value => value,
    }
}

/// A stored whole number as a value.
pub(super) fn number_value(kind: ColumnType, int: i64) -> Value<'static> {
    match kind {
        ColumnType::Decimal(scale) => Value::Float(from_decimal(int, scale)),
        _ => Value::Int(int),
    }
}

impl Block {
    pub(super) fn new(number: usize, directory: &Directory) -> Block {
        let fields = vec![None; directory.schema.columns.len()];
        Block {
            number,
            times: None,
            fields,
            more: None,
            shapes: None,
            all: None,
        }
    }

    /// Event times in nanoseconds.
    pub(super) fn times(&mut self, reader: &mut RowGroupReader<'_>) -> Result<&[i64], ReadError> {
        if let Some(all) = &self.all {
            return Ok(&all.time);
        }
        if self.times.is_none() {
            self.times = Some(reader.times(self.number)?);
        }
        Ok(self.times.as_deref().unwrap_or_default())
    }

    /// One field's column.
    pub(super) fn field(
        &mut self,
        column: usize,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<&Column, ReadError> {
        if self.all.is_none() && self.fields[column].is_none() {
            self.fields[column] = Some(reader.field(column, self.number)?);
        }
        Ok(match (&self.all, &self.fields[column]) {
            (Some(all), _) => &all.fields[column],
            (None, Some(column)) => column,
            (None, None) => &Column::Absent,
        })
    }

    /// The overflow column.
    pub(super) fn more(
        &mut self,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<&StringColumn, ReadError> {
        if let Some(all) = &self.all {
            return Ok(&all.more);
        }
        if self.more.is_none() {
            self.more = Some(reader.more(self.number)?);
        }
        // It was just put there.
        Ok(self.more.get_or_insert_default())
    }

    /// The shapes.
    pub(super) fn shapes(
        &mut self,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<&StringColumn, ReadError> {
        if let Some(all) = &self.all {
            return Ok(&all.shape);
        }
        if self.shapes.is_none() {
            self.shapes = Some(reader.shapes(self.number)?);
        }
        // They were just put there.
        Ok(self.shapes.get_or_insert_default())
    }

    /// The lines kept whole, and the texts of slots that render differently.
    pub(super) fn exceptions(
        &mut self,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<(StringColumn, StringColumn), ReadError> {
        match &self.all {
            Some(all) => Ok((all.whole.clone(), all.fix.clone())),
            None => reader.exceptions(self.number),
        }
    }

    /// The messages: those that are UTF-8, and those that are not.
    pub(super) fn messages(
        &mut self,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<(StringColumn, StringColumn), ReadError> {
        match &self.all {
            Some(all) => Ok((all.message.clone(), all.message_bytes.clone())),
            None => reader.messages(self.number),
        }
    }

    /// Receive times in microseconds, sources and numbers of the rows.
    pub(super) fn identities(
        &mut self,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<Identities, ReadError> {
        match &self.all {
            Some(all) => {
                let sources = all.source.iter().map(|s| i64::from(*s)).collect();
                Ok((all.received.clone(), sources, all.number.clone()))
            }
            None => reader.identities(self.number),
        }
    }

    /// All columns.
    pub(super) fn rows(&mut self, reader: &mut RowGroupReader<'_>) -> Result<&Rows, ReadError> {
        if self.all.is_none() {
            let read = |(column, known): (usize, &mut Option<Column>)| match known.take() {
                Some(known) => Ok(known),
                None => reader.field(column, self.number),
            };
            let fields: Vec<Column> = self
                .fields
                .iter_mut()
                .enumerate()
                .map(read)
                .collect::<Result<_, _>>()?;
            self.all = Some(reader.rows_with(self.number, fields)?);
        }
        // It was just put there.
        Ok(self.all.get_or_insert_default())
    }
}
