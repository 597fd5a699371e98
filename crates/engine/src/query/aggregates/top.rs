//! The most frequent values of a field.

use logpond_record::Record;
use logpond_search::Target;
use logpond_search::aggregate::{Top, TopRow, ValueType};
use logpond_search::scan::{GroupScan, SelectedRows};
use logpond_segment::file::ReadError;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::output::Output;
use super::super::segment_rows::{Summary, SummaryKind};
use super::super::{Engine, QueryError, Scope, Trailer};
use super::{Aggregate, AnyTable, ColumnForm, Parameter, ParameterKind, Table, column, read_field};

/// Values in an answer at most.
pub const VALUES_MAX: u64 = 100_000;

pub(super) const AGGREGATE: Aggregate = Aggregate {
    name: "top",
    path: "/api/v1/top",
    help: "Count the most frequent values of a field",
    parameters: &[
        Parameter {
            name: "field",
            help: "The field whose values are counted",
            kind: ParameterKind::Field("a field"),
        },
        Parameter {
            name: "n",
            help: "How many values; 0 is no limit",
            kind: ParameterKind::Limit {
                default: "10",
                max: VALUES_MAX,
            },
        },
    ],
    columns: &[
        column("count", "count", ColumnForm::Count),
        column("share", "share", ColumnForm::Share("count")),
        column("value", "value", ColumnForm::Text),
    ],
    answer: |engine, scope, arguments, out| {
        engine.top(scope, &arguments.field, arguments.limit, out)
    },
};

impl dyn Engine + '_ {
    /// Emits `{"value":…,"count":…}` for the `count_max` most frequent values of a field.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn top(
        &self,
        scope: &Scope,
        field: &str,
        count_max: usize,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        let (values, trailer) = self.top_values(scope, field, count_max, out)?;
        for found in &values {
            // The value first, as people read it; a JSON map would sort the names.
            let (value, count) = (found.to_json(), found.count);
            let text = format!(r#"{{"value":{value},"count":{count}}}"#);
            out.line(|chunk| chunk.extend_from_slice(text.as_bytes()))?;
        }
        Ok(trailer)
    }

    /// The `count_max` most frequent values of a field, the most frequent first; 0 is no limit.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn top_values(
        &self,
        scope: &Scope,
        field: &str,
        count_max: usize,
        out: &mut Output,
    ) -> Result<(Vec<ValueCount>, Trailer), QueryError> {
        let (top, mut trailer) = self.filled(scope, Top::new(field), out)?;
        let answer = top.finish(count_max);
        let values = answer.rows.iter().map(ValueCount::of).collect();
        if !answer.is_exact() {
            let uncounted = answer.uncounted;
            trailer.miss(format_args!(
                "{uncounted} records with values that found no room"
            ));
        }
        Ok((values, trailer))
    }
}

/// A value of a field, and how many records have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueCount {
    /// The value as it is written.
    pub text: String,
    /// True if it is no text, but a number, a truth value or null.
    pub is_bare: bool,
    /// Records with it.
    pub count: u64,
}

pub(super) fn read(from: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    Ok(Box::new(Top::new(&read_field(from)?)))
}

impl Table for Top {
    fn add(&mut self, record: &Record<'_>) {
        Top::add(self, record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &SelectedRows,
    ) -> Result<(), ReadError> {
        let field = self.field().to_owned();
        scan.add_to_top(&field, selected, self)
    }

    fn told_by(&self) -> Option<SummaryKind> {
        Some(SummaryKind::Overview)
    }

    fn add_summary(&mut self, summary: &Summary) -> bool {
        matches!(summary, Summary::Overview(overview) if self.add_overview(overview))
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

    fn ask(&self, out: &mut Encoder) {
        out.number(0);
        out.bytes(self.field().as_bytes());
    }

    fn encode(&self, out: &mut Encoder) {
        Top::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        Top::merge_encoded(self, from)
    }
}

impl ValueCount {
    /// Numbers and truth values as they are written, all else as text.
    fn of(row: &TopRow) -> ValueCount {
        let text = String::from_utf8_lossy(&row.value);
        let is_number = |kind| matches!(kind, ValueType::Int | ValueType::Float | ValueType::Json);
        let has_digit = text
            .trim_start_matches('-')
            .starts_with(|c: char| c.is_ascii_digit());
        let may_be_bare = row.types.is_bare_json() || has_digit && row.types.iter().all(is_number);
        let is_bare = may_be_bare && serde_json::from_str::<&RawValue>(&text).is_ok();
        ValueCount {
            text: text.into_owned(),
            is_bare,
            count: row.count,
        }
    }

    fn to_json(&self) -> String {
        if self.is_bare {
            self.text.clone()
        } else {
            Value::from(self.text.as_str()).to_string()
        }
    }

    /// True if it is null.
    pub fn is_null(&self) -> bool {
        self.is_bare && self.text == "null"
    }
}
