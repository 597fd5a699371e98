//! One block of a row group, its columns read when they are first asked for.

use logpond_record::Shape;
use logpond_segment::file::{Directory, ReadError, RowGroupReader};
use logpond_segment::rows::{Column, Rows, StringColumn};

use super::kept_columns::KeptGroup;

/// The columns of a block.
///
/// Invariant: a part of `rows` holds one place per row if it is marked as known, and nothing
/// otherwise. Lengths of lines are never known.
pub(super) struct Block<'k> {
    number: usize,
    kept: Option<KeptGroup<'k>>,
    rows: Rows,
    templates: Option<StringColumn>,
    known: LoadedParts,
}

/// The parts of a block that were read.
#[derive(Default)]
struct LoadedParts {
    times: bool,
    identities: bool,
    sources: bool,
    time_sources: bool,
    shapes: bool,
    messages: bool,
    exceptions: bool,
    more: bool,
    fields: Vec<bool>,
}

/// Whether a row has a value; an empty text is none.
pub(super) fn has_value(column: &Column, row: usize) -> bool {
    match column {
        Column::Strings(strings) => strings.get(row).is_some_and(|text| !text.is_empty()),
        Column::Ints(numbers) => numbers.get(row).is_some(),
        Column::Floats(numbers) => numbers.get(row).is_some(),
        Column::Bools(numbers) => numbers.get(row).is_some(),
        Column::Absent => false,
    }
}

impl<'k> Block<'k> {
    pub(super) fn new(
        number: usize,
        directory: &Directory,
        kept: Option<KeptGroup<'k>>,
    ) -> Block<'k> {
        let columns = directory.schema.columns.len();
        Block {
            number,
            kept,
            rows: Rows {
                fields: vec![Column::Absent; columns],
                ..Rows::default()
            },
            templates: None,
            known: LoadedParts {
                fields: vec![false; columns],
                ..LoadedParts::default()
            },
        }
    }

    /// Event times in nanoseconds.
    pub(super) fn times(&mut self, reader: &mut RowGroupReader<'_>) -> Result<&[i64], ReadError> {
        if !self.known.times {
            self.rows.time = match &self.kept {
                Some(kept) => kept.times(self.number, reader)?,
                None => reader.times(self.number)?,
            };
            self.known.times = true;
        }
        Ok(&self.rows.time)
    }

    /// One field's column.
    pub(super) fn field(
        &mut self,
        column: usize,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<&Column, ReadError> {
        if !self.known.fields[column] {
            self.rows.fields[column] = match &self.kept {
                Some(kept) => kept.field(column, self.number, reader)?,
                None => reader.field(column, self.number)?,
            };
            self.known.fields[column] = true;
        }
        Ok(&self.rows.fields[column])
    }

    /// The overflow column.
    pub(super) fn more(
        &mut self,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<&StringColumn, ReadError> {
        if !self.known.more {
            self.rows.more = reader.more(self.number)?;
            self.known.more = true;
        }
        Ok(&self.rows.more)
    }

    /// The shapes.
    pub(super) fn shapes(
        &mut self,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<&StringColumn, ReadError> {
        if !self.known.shapes {
            self.rows.shape = reader.shapes(self.number)?;
            self.known.shapes = true;
        }
        Ok(&self.rows.shape)
    }

    /// The lines kept whole, and the texts of slots that render differently.
    pub(super) fn exceptions(
        &mut self,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<(&StringColumn, &StringColumn), ReadError> {
        if !self.known.exceptions {
            (self.rows.whole, self.rows.fix) = reader.exceptions(self.number)?;
            self.known.exceptions = true;
        }
        Ok((&self.rows.whole, &self.rows.fix))
    }

    /// The messages: those that are UTF-8, and those that are not.
    pub(super) fn messages(
        &mut self,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<[&StringColumn; 2], ReadError> {
        if !self.known.messages {
            (self.rows.message, self.rows.message_bytes) = reader.messages(self.number)?;
            self.known.messages = true;
        }
        Ok([&self.rows.message, &self.rows.message_bytes])
    }

    /// The number of the block in its row group.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// The templates of the messages.
    pub(super) fn templates(
        &mut self,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<&StringColumn, ReadError> {
        let templates = match self.templates.take() {
            Some(templates) => templates,
            None => reader.templates(self.number)?,
        };
        Ok(self.templates.insert(templates))
    }

    /// The places of the rows' sources in the segment's list.
    pub(super) fn sources(&mut self, reader: &mut RowGroupReader<'_>) -> Result<&[u32], ReadError> {
        if !self.known.sources {
            self.rows.source = reader.sources(self.number)?;
            self.known.sources = true;
        }
        Ok(&self.rows.source)
    }

    /// Makes receive times in microseconds, sources and numbers of the rows known.
    pub(super) fn read_identities(
        &mut self,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<(), ReadError> {
        if !self.known.identities {
            self.sources(reader)?;
            (self.rows.received, self.rows.number) = reader.received(self.number)?;
            self.known.identities = true;
        }
        Ok(())
    }

    /// What lines of these shapes are rendered from.
    pub(super) fn lines<'s>(
        &mut self,
        shapes: impl Iterator<Item = &'s Shape>,
        directory: &Directory,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<&Rows, ReadError> {
        for slot in shapes.flat_map(Shape::slots) {
            if let Some(column) = directory.schema.column(&slot.name) {
                self.field(column, reader)?;
            }
        }
        self.times(reader)?;
        self.shapes(reader)?;
        self.messages(reader)?;
        self.exceptions(reader)?;
        self.more(reader)?;
        Ok(&self.rows)
    }

    /// What was read so far.
    pub(super) fn known_rows(&self) -> &Rows {
        &self.rows
    }

    /// All columns.
    pub(super) fn rows(&mut self, reader: &mut RowGroupReader<'_>) -> Result<&Rows, ReadError> {
        for column in 0..self.known.fields.len() {
            self.field(column, reader)?;
        }
        if !self.known.time_sources {
            self.rows.time_source = reader.time_sources(self.number)?;
            self.known.time_sources = true;
        }
        self.times(reader)?;
        self.read_identities(reader)?;
        self.shapes(reader)?;
        self.messages(reader)?;
        self.exceptions(reader)?;
        self.more(reader)?;
        Ok(&self.rows)
    }
}
