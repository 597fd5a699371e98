//! Fields with the types of their values.

use logpond_record::Record;
use logpond_search::aggregate::FieldTypes;
use logpond_search::scan::{GroupScan, SelectedRows};
use logpond_segment::file::ReadError;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::super::output::Output;
use super::super::{Engine, QueryError, Scope, Trailer};
use super::{AnyTable, Table};

impl dyn Engine + '_ {
    /// The fields that a scope's records have, with the types of their values; with `of_lines` only
    /// those that stand in lines.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn field_types(
        &self,
        scope: &Scope,
        of_lines: bool,
        out: &mut Output,
    ) -> Result<(FieldTypes, Trailer), QueryError> {
        self.filled(scope, FieldTypes::new(of_lines), out)
    }
}

pub(super) fn read(from: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    Ok(Box::new(FieldTypes::new(from.flag("which fields")?)))
}

/// Reads the question for fields of the records alone.
pub(super) fn read_exact(from: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    let types = FieldTypes::new(from.flag("which fields")?);
    Ok(Box::new(types.exact()))
}

impl Table for FieldTypes {
    fn add(&mut self, record: &Record<'_>) {
        FieldTypes::add(self, record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &SelectedRows,
    ) -> Result<(), ReadError> {
        scan.add_to_field_types(selected, self)
    }

    fn merge(&mut self, other: FieldTypes) {
        FieldTypes::merge(self, other);
    }

    fn bytes(&self) -> usize {
        FieldTypes::bytes(self)
    }

    fn looks_at_fields(&self) -> bool {
        true
    }

    fn ask(&self, out: &mut Encoder) {
        out.number(if self.is_exact() { 11 } else { 8 });
        out.flag(self.is_of_lines());
    }

    fn encode(&self, out: &mut Encoder) {
        FieldTypes::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        FieldTypes::merge_encoded(self, from)
    }
}
