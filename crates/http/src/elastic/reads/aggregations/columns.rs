//! The columns that aggregations read, and rows of them.

use logpond_record::cast;
use logpond_search::columns::{ColumnKind, ColumnRequest, Columns};
use logpond_segment::rows::Column;

use super::super::dates::MS_NS;
use super::super::json::{Object, bad, optional, unsupported};
use super::super::lists;
use super::super::names;
use crate::error::ApiError;

/// A field with its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    column: usize,
    /// True if it is an instant.
    pub(super) is_time: bool,
}

/// Columns, each once.
#[derive(Debug, Default)]
pub(super) struct ColumnList {
    list: Vec<ColumnRequest>,
}

impl ColumnList {
    /// The texts of the field of a name, as records have it.
    pub(super) fn of_record(&mut self, name: &str) -> Field {
        self.column(name, ColumnKind::Text)
    }

    fn column(&mut self, name: &str, kind: ColumnKind) -> Field {
        let is_time = matches!(name, "_time" | "_received");
        let asked = ColumnRequest {
            name: name.into(),
            kind: if is_time { ColumnKind::Time } else { kind },
        };
        let at = self.list.iter().position(|column| *column == asked);
        let column = at.unwrap_or_else(|| {
            self.list.push(asked);
            self.list.len() - 1
        });
        Field { column, is_time }
    }

    /// The field that the member `field` names, for its values as texts.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn field(&mut self, members: &Object, kind: &str) -> Result<Field, ApiError> {
        self.named(members, kind, ColumnKind::Text)
    }

    /// The field that the member `field` names, for its numbers.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn number_field(&mut self, members: &Object, kind: &str) -> Result<Field, ApiError> {
        self.named(members, kind, ColumnKind::Number)
    }

    fn named(
        &mut self,
        members: &Object,
        kind: &str,
        values: ColumnKind,
    ) -> Result<Field, ApiError> {
        if members.contains_key("script") {
            return Err(unsupported("script", "aggregate a field"));
        }
        let name = optional(members, "field")?;
        let name = name.ok_or_else(|| bad(format!("[{kind}] needs [field]")))?;
        if name == names::INDEX {
            return Ok(self.of_record(names::INDEX));
        }
        Ok(self.column(names::of_record(&name), values))
    }

    /// The columns to ask for.
    pub(super) fn finish(self) -> Vec<ColumnRequest> {
        self.list
    }
}

/// A row of some columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowView<'c> {
    pub(super) columns: &'c Columns,
    pub(super) at: usize,
}

impl<'c> RowView<'c> {
    fn column(&self, field: Field) -> Option<&'c Column> {
        self.columns.columns.get(field.column)
    }

    /// The text of a field.
    pub(super) fn text(&self, field: Field) -> Option<&'c [u8]> {
        match self.column(field)? {
            Column::Strings(texts) => texts.get(self.at),
            _ => None,
        }
    }

    /// The nanoseconds of an instant.
    pub(super) fn time_ns(&self, field: Field) -> Option<i64> {
        match self.column(field)? {
            Column::Ints(times) => times.get(self.at),
            _ => None,
        }
    }

    /// The milliseconds of an instant.
    pub(super) fn time_ms(&self, field: Field) -> Option<i64> {
        self.time_ns(field).map(|ns| ns.div_euclid(MS_NS))
    }

    /// Visits the numbers of a field, or the one for records without: of a list each, of an instant milliseconds.
    pub(super) fn each_number(
        &self,
        field: Field,
        missing: Option<f64>,
        visit: &mut dyn FnMut(f64),
    ) {
        let finite = |number: &f64| number.is_finite();
        let single = match self.column(field) {
            _ if field.is_time => self.time_ms(field).map(cast::float),
            Some(Column::Floats(numbers)) => numbers.get(self.at),
            _ => None,
        };
        let mut found = single.filter(finite).inspect(|number| visit(*number));
        lists::each_number(self.text(field), &mut |number| {
            found = Some(number);
            visit(number);
        });
        if let (None, Some(missing)) = (found, missing) {
            visit(missing);
        }
    }

    /// How many values of the field the record has.
    pub(super) fn values_count(&self, field: Field) -> u64 {
        let listed = self.text(field).map(lists::values_count);
        listed.unwrap_or_else(|| u64::from(self.has(field)))
    }

    /// True if the record has the field.
    pub(super) fn has(&self, field: Field) -> bool {
        match self.column(field) {
            Some(Column::Strings(texts)) => texts.get(self.at).is_some(),
            Some(Column::Ints(times)) => times.get(self.at).is_some(),
            Some(Column::Floats(numbers)) => numbers.get(self.at).is_some(),
            _ => false,
        }
    }
}
