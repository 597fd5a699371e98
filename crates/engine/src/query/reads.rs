//! What an answer reads from: this node's files, or those of all nodes.
//!
//! An answer is made from these five readings in the same way whatever is read; what differs is
//! behind [`Reads`].

use std::any::Any;
use std::sync::Arc;

use logpond_record::{Record, TimeRange, Timestamp};
use logpond_search::Target;
use logpond_search::aggregate::{
    FieldStats, Histogram, HistogramSpec, Patterns, StreamsAsked, Top,
};
use logpond_search::metric::{KeptNumbers, LeafSpec, RangeTable};
use logpond_search::scan::{GroupScan, Selected};
use logpond_segment::file::ReadError;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::journal_rows::Row;
use super::output::Output;
use super::{QueryError, Scope, Search, Trailer};

/// Takes the next row of a search; says whether further ones are wanted.
pub(super) type Visit<'a> =
    &'a mut dyn FnMut(Row, &mut Output, &mut Trailer) -> Result<bool, QueryError>;

/// Something that answers can be read from, as it is at one moment.
pub(super) trait Reads {
    /// Hands over the rows of a search in order, until `visit` wants no more.
    fn each_row(
        &self,
        search: &Search,
        out: &mut Output,
        trailer: &mut Trailer,
        visit: Visit<'_>,
    ) -> Result<(), QueryError>;

    /// Where the context of these matches lies; `None` is everywhere. Names nothing that
    /// [`Reads::each_row`] names, too.
    fn surroundings(
        &self,
        search: &Search,
        matches: &[Timestamp],
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<Option<Vec<TimeRange>>, QueryError>;

    /// Counts the rows of a search.
    fn count(
        &self,
        search: &Search,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<u64, QueryError>;

    /// Adds every record of a scope to a table that begins as `empty`, and counts them in the
    /// trailer.
    fn table<T: Table>(
        &self,
        scope: &Scope,
        empty: &T,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<T, QueryError>;
}

/// What a row group adds to a table.
pub(super) type Part = Arc<dyn Any + Send + Sync>;

/// A table that many threads and nodes fill together.
pub(super) trait Table: Clone + Send + Sync {
    /// Adds a record.
    fn add(&mut self, record: &Record<'_>);

    /// Adds the selected rows of a block, column by column.
    fn add_block(&mut self, scan: &mut GroupScan<'_>, selected: &Selected)
    -> Result<(), ReadError>;

    /// Takes note that no more blocks of a row group come.
    fn end_group(&mut self) {}

    /// Adds what another has.
    fn merge(&mut self, other: Self);

    /// About the memory that it takes.
    fn bytes(&self) -> usize;

    /// True if it depends on names of fields, beside the conditions of the scope.
    fn looks_at_fields(&self) -> bool {
        false
    }

    /// What is asked of a row group with rows from one time to another, both included: where this is the
    /// same, for the same filter, the group adds the same. `None` if nothing is kept of such tables.
    fn question(&self, _from: Timestamp, _to: Timestamp) -> Option<Vec<u8>> {
        None
    }

    /// What this table has, which a row group from that time on alone was added to, as it is kept, with
    /// about the memory that it takes; the table itself if it cannot be. The row group has ended with it.
    fn into_part(self, _from: Timestamp) -> Result<(Part, usize), Box<Self>> {
        Err(Box::new(self))
    }

    /// Adds what [`Table::into_part`] gave of a table with the same question.
    fn add_part(&mut self, _part: &(dyn Any + Send + Sync)) {}

    /// Which table this is, for other nodes.
    fn kind(&self) -> TableKind;

    /// Appends what was added to a message.
    fn encode(&self, out: &mut Encoder);

    /// Adds what another node has encoded.
    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError>;
}

/// Which table to fill.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TableKind {
    /// Values of a field.
    Top(String),
    /// Records of each step of a range.
    Histogram(HistogramSpec),
    /// Fields.
    Fields,
    /// Labels.
    Labels,
    /// Values of a label.
    LabelValues(String),
    /// Streams.
    Streams(StreamsAsked),
    /// Numbers of lines.
    Numbers(Box<LeafSpec>),
    /// Fields with the types of their values; whether only those of lines.
    FieldTypes(bool),
    /// Patterns of messages, with counts for each step of a range.
    Patterns(TimeRange, i64),
}

impl Table for Top {
    fn add(&mut self, record: &Record<'_>) {
        Top::add(self, record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &Selected,
    ) -> Result<(), ReadError> {
        let field = self.field().to_owned();
        scan.add_to_top(&field, selected, self)
    }

    fn merge(&mut self, other: Top) {
        Top::merge(self, other);
    }

    fn bytes(&self) -> usize {
        Top::bytes(self)
    }

    fn looks_at_fields(&self) -> bool {
        Target::new(self.field()).is_of_fields()
    }

    fn kind(&self) -> TableKind {
        TableKind::Top(self.field().to_owned())
    }

    fn encode(&self, out: &mut Encoder) {
        Top::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        Top::merge_encoded(self, from)
    }
}

impl Table for Histogram {
    fn add(&mut self, record: &Record<'_>) {
        Histogram::add(self, record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &Selected,
    ) -> Result<(), ReadError> {
        scan.add_to_histogram(selected, self)
    }

    fn merge(&mut self, other: Histogram) {
        Histogram::merge(self, other);
    }

    fn bytes(&self) -> usize {
        Histogram::bytes(self)
    }

    fn kind(&self) -> TableKind {
        TableKind::Histogram(self.spec())
    }

    fn encode(&self, out: &mut Encoder) {
        Histogram::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        Histogram::merge_encoded(self, from)
    }
}

impl Table for Patterns {
    fn add(&mut self, record: &Record<'_>) {
        Patterns::add(self, record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &Selected,
    ) -> Result<(), ReadError> {
        scan.add_to_patterns(selected, self)
    }

    fn merge(&mut self, other: Patterns) {
        Patterns::merge(self, other);
    }

    fn bytes(&self) -> usize {
        Patterns::bytes(self)
    }

    fn kind(&self) -> TableKind {
        TableKind::Patterns(self.range(), self.step_ns())
    }

    fn encode(&self, out: &mut Encoder) {
        Patterns::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        Patterns::merge_encoded(self, from)
    }
}

impl Table for FieldStats {
    fn add(&mut self, record: &Record<'_>) {
        FieldStats::add(self, record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &Selected,
    ) -> Result<(), ReadError> {
        scan.add_to_fields(selected, self)
    }

    fn merge(&mut self, other: FieldStats) {
        FieldStats::merge(self, other);
    }

    fn bytes(&self) -> usize {
        FieldStats::bytes(self)
    }

    fn looks_at_fields(&self) -> bool {
        true
    }

    fn kind(&self) -> TableKind {
        TableKind::Fields
    }

    fn encode(&self, out: &mut Encoder) {
        FieldStats::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        FieldStats::merge_encoded(self, from)
    }
}

impl Table for RangeTable {
    fn add(&mut self, record: &Record<'_>) {
        RangeTable::add(self, record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &Selected,
    ) -> Result<(), ReadError> {
        RangeTable::add_block(self, scan, selected)
    }

    fn end_group(&mut self) {
        RangeTable::end_group(self);
    }

    fn merge(&mut self, other: RangeTable) {
        RangeTable::merge(self, other);
    }

    fn bytes(&self) -> usize {
        RangeTable::bytes(self)
    }

    fn question(&self, from: Timestamp, to: Timestamp) -> Option<Vec<u8>> {
        RangeTable::question(self, from, to)
    }

    fn into_part(self, from: Timestamp) -> Result<(Part, usize), Box<RangeTable>> {
        let kept = self.keep(from)?;
        let bytes = kept.bytes();
        Ok((Arc::new(kept), bytes))
    }

    fn add_part(&mut self, part: &(dyn Any + Send + Sync)) {
        if let Some(kept) = part.downcast_ref::<KeptNumbers>() {
            self.add_kept(kept);
        }
    }

    fn kind(&self) -> TableKind {
        TableKind::Numbers(Box::new(self.leaf().spec().clone()))
    }

    fn encode(&self, out: &mut Encoder) {
        RangeTable::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        RangeTable::merge_encoded(self, from)
    }
}
