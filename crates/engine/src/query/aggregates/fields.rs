//! The fields that occur, and about how many values each has.

use logpond_record::Record;
use logpond_search::aggregate::{FieldRow, FieldStats};
use logpond_search::scan::{GroupScan, SelectedRows};
use logpond_segment::file::ReadError;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};
use serde_json::json;

use super::super::output::Output;
use super::super::segment_rows::{Summary, SummaryKind};
use super::super::{Engine, QueryError, Scope, Trailer};
use super::{Aggregate, AnyTable, ColumnForm, Table, column};

pub(super) const AGGREGATE: Aggregate = Aggregate {
    name: "fields",
    path: "/api/v1/fields",
    help: "List the fields of the records that match",
    parameters: &[],
    columns: &[
        column("field", "field", ColumnForm::Text),
        column("records", "rows", ColumnForm::Count),
        column("share", "share", ColumnForm::Share("rows")),
        column(
            "distinct",
            "distinct",
            ColumnForm::Estimate("distinct_is_exact"),
        ),
        column("types", "types", ColumnForm::Words),
    ],
    answer: |engine, scope, _, out| engine.fields(scope, out),
};

impl dyn Engine + '_ {
    /// Emits one object for each field that occurs.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn fields(&self, scope: &Scope, out: &mut Output) -> Result<Trailer, QueryError> {
        let (fields, trailer) = self.field_list(scope, out)?;
        for field in &fields {
            let types: Vec<_> = field.types.iter().map(|t| t.as_str()).collect();
            out.json(&json!({
                "field": field.name,
                "rows": field.rows,
                "share": field.share,
                "types": types,
                "distinct": field.distinct,
                "distinct_is_exact": field.distinct_is_exact,
            }))?;
        }
        Ok(trailer)
    }

    /// The fields that occur, those of most records first.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn field_list(
        &self,
        scope: &Scope,
        out: &mut Output,
    ) -> Result<(Vec<FieldRow>, Trailer), QueryError> {
        let (stats, mut trailer) = self.filled(scope, FieldStats::new(), out)?;
        let answer = stats.finish();
        if answer.unlisted > 0 {
            let unlisted = answer.unlisted;
            trailer.miss(format_args!(
                "{unlisted} values of fields beyond the number that is listed"
            ));
        }
        Ok((answer.fields, trailer))
    }
}

pub(super) fn read(_: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    Ok(Box::new(FieldStats::new()))
}

impl Table for FieldStats {
    fn add(&mut self, record: &Record<'_>) {
        FieldStats::add(self, record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &SelectedRows,
    ) -> Result<(), ReadError> {
        scan.add_to_fields(selected, self)
    }

    fn told_by(&self) -> Option<SummaryKind> {
        Some(SummaryKind::Overview)
    }

    fn add_summary(&mut self, summary: &Summary) -> bool {
        let Summary::Overview(overview) = summary else {
            return false;
        };
        FieldStats::add_overview(self, overview);
        true
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

    fn ask(&self, out: &mut Encoder) {
        out.number(2);
    }

    fn encode(&self, out: &mut Encoder) {
        FieldStats::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        FieldStats::merge_encoded(self, from)
    }
}
