//! Aggregates: tables that threads and nodes fill together.
//!
//! Each has one file: the table, its question to other nodes, and its answer. [`TABLES`] lists the numbers of
//! all tables. [`AGGREGATES`] lists those that have an endpoint and a command of their own, which follow from
//! the row.
//!
//! To add one, add its file and its lines in the two lists.

mod field_types;
mod fields;
mod histogram;
mod labels;
mod numbers;
mod patterns;
mod stats;
mod top;

use std::any::Any;
use std::sync::Arc;

use logpond_record::{Record, TimeRange, Timestamp};
use logpond_search::scan::{GroupScan, SelectedRows};
use logpond_segment::file::ReadError;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::output::Output;
use super::question::{decode_range, encode_range};
use super::segment_rows::{Summary, SummaryKind};
use super::{Engine, QueryError, Scope, Trailer};

pub use top::{VALUES_MAX as TOP_VALUES_MAX, ValueCount};

/// The longest name of a field, far above what records may have.
const FIELD_BYTES_MAX: usize = 64 << 10;

/// The part that a row group adds to a table.
pub type Part = Arc<dyn Any + Send + Sync>;

/// A table that many threads and nodes fill together.
pub(super) trait Table: Clone + Send + Sync + 'static {
    /// Adds a record.
    fn add(&mut self, record: &Record<'_>);

    /// Adds the selected rows of a block, column by column.
    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &SelectedRows,
    ) -> Result<(), ReadError>;

    /// The summary of a segment that may tell what it counts.
    fn told_by(&self) -> Option<SummaryKind> {
        None
    }

    /// Adds all records of a segment by its summary; `false` if that does not tell enough.
    fn add_summary(&mut self, _summary: &Summary) -> bool {
        false
    }

    /// True if it costs less where the newest row groups come first.
    fn wants_newest_first(&self) -> bool {
        false
    }

    /// Takes note that no more blocks of a row group come.
    fn end_group(&mut self) {}

    /// Adds the content of another table with the same question.
    fn merge(&mut self, other: Self);

    /// About the memory that it takes.
    fn bytes(&self) -> usize;

    /// True if it depends on names of fields, beside the conditions of the scope.
    fn looks_at_fields(&self) -> bool {
        false
    }

    /// The question to a row group with rows from one time to another, both included: a group adds the same
    /// if this and the filter are the same. `None` if nothing is kept of such tables.
    fn question(&self, _from: Timestamp, _to: Timestamp) -> Option<Vec<u8>> {
        None
    }

    /// The content of this table, to which a row group from that time on alone was added, as it is kept, with
    /// about the memory that it takes; the table itself if it cannot be kept. The row group has ended with it.
    fn into_part(self, _from: Timestamp) -> Result<(Part, usize), Box<Self>> {
        Err(Box::new(self))
    }

    /// Adds what [`Table::into_part`] gave of a table with the same question.
    fn add_part(&mut self, _part: &(dyn Any + Send + Sync)) {}

    /// Appends the number of [`TABLES`] to a question for other nodes, and the parameters.
    fn ask(&self, out: &mut Encoder);

    /// Appends the content to a message.
    fn encode(&self, out: &mut Encoder);

    /// Adds the content that another node has encoded.
    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError>;
}

/// Any table, as an engine fills it.
pub trait AnyTable: Any + Send + Sync {
    /// A copy of it.
    fn copied(&self) -> Box<dyn AnyTable>;

    /// The table itself.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;

    /// Adds a record.
    fn add_record(&mut self, record: &Record<'_>);

    /// Adds the selected rows of a block.
    ///
    /// # Errors
    /// When the block cannot be read.
    fn add_selected(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &SelectedRows,
    ) -> Result<(), ReadError>;

    /// The summary of a segment that may tell what it counts.
    fn summary_kind(&self) -> Option<SummaryKind>;

    /// Adds all records of a segment by its summary, if that tells enough.
    fn add_segment(&mut self, summary: &Summary) -> bool;

    /// True if it costs less where the newest row groups come first.
    fn is_for_newest_first(&self) -> bool;

    /// Takes note that no more blocks of a row group come.
    fn note_group_end(&mut self);

    /// Adds the content of a copy of it.
    fn merge_copy(&mut self, other: Box<dyn AnyTable>);

    /// About the memory that it takes.
    fn memory_bytes(&self) -> usize;

    /// True if it depends on names of fields.
    fn depends_on_fields(&self) -> bool;

    /// The question to a row group, if what it adds may be kept.
    fn group_question(&self, from: Timestamp, to: Timestamp) -> Option<Vec<u8>>;

    /// The content as it is kept, or the table if it cannot be kept.
    ///
    /// # Errors
    /// The table.
    fn kept(self: Box<Self>, from: Timestamp) -> Result<(Part, usize), Box<dyn AnyTable>>;

    /// Adds what was kept.
    fn add_kept(&mut self, part: &(dyn Any + Send + Sync));

    /// Appends the question to a message.
    fn write_question(&self, out: &mut Encoder);

    /// Appends the content to a message.
    fn write_content(&self, out: &mut Encoder);

    /// Adds the content of a message.
    ///
    /// # Errors
    /// When the message is malformed.
    fn merge_content(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError>;
}

impl<T: Table> AnyTable for T {
    fn copied(&self) -> Box<dyn AnyTable> {
        Box::new(self.clone())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn add_record(&mut self, record: &Record<'_>) {
        self.add(record);
    }

    fn add_selected(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &SelectedRows,
    ) -> Result<(), ReadError> {
        self.add_block(scan, selected)
    }

    fn summary_kind(&self) -> Option<SummaryKind> {
        self.told_by()
    }

    fn add_segment(&mut self, summary: &Summary) -> bool {
        self.add_summary(summary)
    }

    fn is_for_newest_first(&self) -> bool {
        self.wants_newest_first()
    }

    fn note_group_end(&mut self) {
        self.end_group();
    }

    fn merge_copy(&mut self, other: Box<dyn AnyTable>) {
        self.merge(same(other));
    }

    fn memory_bytes(&self) -> usize {
        self.bytes()
    }

    fn depends_on_fields(&self) -> bool {
        self.looks_at_fields()
    }

    fn group_question(&self, from: Timestamp, to: Timestamp) -> Option<Vec<u8>> {
        self.question(from, to)
    }

    fn kept(self: Box<Self>, from: Timestamp) -> Result<(Part, usize), Box<dyn AnyTable>> {
        self.into_part(from)
            .map_err(|table| table as Box<dyn AnyTable>)
    }

    fn add_kept(&mut self, part: &(dyn Any + Send + Sync)) {
        self.add_part(part);
    }

    fn write_question(&self, out: &mut Encoder) {
        self.ask(out);
    }

    fn write_content(&self, out: &mut Encoder) {
        self.encode(out);
    }

    fn merge_content(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.merge_encoded(from)
    }
}

/// The table in a box.
fn same<T: Table>(table: Box<dyn AnyTable>) -> T {
    let table = table.into_any().downcast::<T>();
    *table.expect("a table is merged with its copies only, and filled as the table that it is")
}

impl Clone for Box<dyn AnyTable> {
    fn clone(&self) -> Box<dyn AnyTable> {
        (**self).copied()
    }
}

impl Table for Box<dyn AnyTable> {
    fn add(&mut self, record: &Record<'_>) {
        (**self).add_record(record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &SelectedRows,
    ) -> Result<(), ReadError> {
        (**self).add_selected(scan, selected)
    }

    fn told_by(&self) -> Option<SummaryKind> {
        (**self).summary_kind()
    }

    fn add_summary(&mut self, summary: &Summary) -> bool {
        (**self).add_segment(summary)
    }

    fn wants_newest_first(&self) -> bool {
        (**self).is_for_newest_first()
    }

    fn end_group(&mut self) {
        (**self).note_group_end();
    }

    fn merge(&mut self, other: Box<dyn AnyTable>) {
        (**self).merge_copy(other);
    }

    fn bytes(&self) -> usize {
        (**self).memory_bytes()
    }

    fn looks_at_fields(&self) -> bool {
        (**self).depends_on_fields()
    }

    fn question(&self, from: Timestamp, to: Timestamp) -> Option<Vec<u8>> {
        (**self).group_question(from, to)
    }

    fn into_part(self, from: Timestamp) -> Result<(Part, usize), Box<Self>> {
        <dyn AnyTable>::kept(self, from).map_err(Box::new)
    }

    fn add_part(&mut self, part: &(dyn Any + Send + Sync)) {
        (**self).add_kept(part);
    }

    fn ask(&self, out: &mut Encoder) {
        (**self).write_question(out);
    }

    fn encode(&self, out: &mut Encoder) {
        (**self).write_content(out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        (**self).merge_content(from)
    }
}

/// Reads the parameters of a table, and makes it.
type Read = fn(&mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError>;

/// The tables that another node may ask for, by their numbers in messages. A number is never used again.
const TABLES: [(u64, Read); 14] = [
    (0, top::read),
    (1, histogram::read),
    (2, fields::read),
    (3, labels::read),
    (4, labels::read_values),
    (5, labels::read_streams),
    (6, numbers::read),
    (7, patterns::read),
    (8, field_types::read),
    (9, histogram::read_first_split),
    (10, stats::read_first),
    (11, field_types::read_exact),
    (12, histogram::read_split),
    (13, stats::read),
];

/// Reads what [`Table::ask`] wrote.
pub(super) fn read(from: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    let number = from.number("the kind of table")?;
    let mut tables = TABLES.iter();
    let found = tables.find(|(known, _)| *known == number);
    let (_, read) = found.ok_or(DecodeError::Malformed("the kind of table"))?;
    read(from)
}

impl dyn Engine + '_ {
    /// Fills a table with the records of a scope.
    fn filled<T: Table>(
        &self,
        scope: &Scope,
        empty: T,
        out: &mut Output,
    ) -> Result<(T, Trailer), QueryError> {
        let (table, trailer) = self.table(scope, Box::new(empty), out)?;
        Ok((same(table), trailer))
    }
}

fn read_field(from: &mut Decoder<'_>) -> Result<String, DecodeError> {
    Ok(from.text(FIELD_BYTES_MAX, "a field")?.to_owned())
}

fn ask_steps(range: TimeRange, step_ns: i64, out: &mut Encoder) {
    encode_range(range, out);
    out.number(step_ns.unsigned_abs());
}

fn read_steps(from: &mut Decoder<'_>) -> Result<(TimeRange, i64), DecodeError> {
    let range = decode_range(from)?;
    let step_ns = i64::try_from(from.number("a step")?);
    Ok((
        range,
        step_ns.map_err(|_| DecodeError::Malformed("a step"))?,
    ))
}

/// The kind of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// The name of a field, which must be given. The words before it say what a record needs to count.
    Field(&'static str),
    /// The name of a field by whose values the records are told apart, if it is given.
    By,
    /// A number of rows; 0 is as many as there may be.
    Limit {
        /// The number if none is given, in digits.
        default: &'static str,
        /// The largest number.
        max: u64,
    },
}

/// A parameter of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name in requests.
    pub name: &'static str,
    /// The meaning, in the help of the command and in errors.
    pub help: &'static str,
    /// The kind.
    pub kind: ParameterKind,
}

/// The parameters that were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The field; empty if the aggregate has none.
    pub field: String,
    /// The field by whose values the records are told apart.
    pub by: Option<String>,
    /// The most rows.
    pub limit: usize,
}

/// The form of a column of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnForm {
    /// Text.
    Text,
    /// Words, with spaces between them.
    Words,
    /// A number as it is; nothing if there is none.
    Number,
    /// A count.
    Count,
    /// A count that is an estimate if the member of this name is false.
    Estimate(&'static str),
    /// A share of all records, or that of the count in the member of this name.
    Share(&'static str),
}

/// A column of the answer as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerColumn {
    /// The heading.
    pub heading: &'static str,
    /// The member of a row.
    pub member: &'static str,
    /// The form.
    pub form: ColumnForm,
}

const fn column(heading: &'static str, member: &'static str, form: ColumnForm) -> AnswerColumn {
    AnswerColumn {
        heading,
        member,
        form,
    }
}

/// An aggregate with an endpoint and a command of its own.
#[derive(Debug)]
pub struct Aggregate {
    /// The name of the command.
    pub name: &'static str,
    /// The path of the endpoint.
    pub path: &'static str,
    /// The meaning, as the help of the command has it.
    pub help: &'static str,
    /// The parameters beside those of every query.
    pub parameters: &'static [Parameter],
    /// The columns of its answer as text.
    pub columns: &'static [AnswerColumn],
    answer: Answer,
}

type Answer = fn(&dyn Engine, &Scope, &Arguments, &mut Output) -> Result<Trailer, QueryError>;

impl Aggregate {
    /// Emits the answer, an object a line.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn answer(
        &self,
        engine: &dyn Engine,
        scope: &Scope,
        arguments: &Arguments,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        let answered = (self.answer)(engine, scope, arguments, out);
        answered.map_err(|error| out.explained(error))
    }

    /// True if it is of one field.
    pub fn has_field(&self) -> bool {
        let mut parameters = self.parameters.iter();
        parameters.any(|parameter| matches!(parameter.kind, ParameterKind::Field(_)))
    }
}

/// The aggregates that have an endpoint and a command.
pub const AGGREGATES: [Aggregate; 3] = [top::AGGREGATE, fields::AGGREGATE, stats::AGGREGATE];
