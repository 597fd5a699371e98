//! Which columns a table has, and what they are called.
//!
//! Invariant: a name of a column means the same whatever fields there are: columns of records have
//! theirs, and a field that is called like one of them stands behind `field.`.
//!
//! A field that the statement names has a column, however many fields there are.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use logpond_search::aggregate::FieldTypes;
use logpond_search::columns::{ColumnKind, ColumnRequest};
use logpond_search::label;

use crate::source::ViewField;

/// The time zone of times.
pub(crate) const ZONE: &str = "+00:00";

/// Columns that every table has before its fields: their names, and what the query language calls
/// them.
const FIRST: [(&str, &str); 2] = [("time", "_time"), ("message", "_msg")];

/// Columns that every table has behind its fields.
const LAST: [(&str, &str); 8] = [
    ("service_name", "_logpond_label.service_name"),
    ("detected_level", "_logpond_label.detected_level"),
    (label::SEVERITY, label::SEVERITY),
    (label::SEVERITY_NUMBER, label::SEVERITY_NUMBER),
    ("received", "_received"),
    ("_time_source", "_time_source"),
    ("_id", "_id"),
    ("line", "_raw"),
];

/// Fields that have a column even if no record has them: what people ask for first.
const ALWAYS: [&str; 2] = ["hostname", "level"];

/// What stands before the name of a field that is called like a column of every table.
pub(crate) const FIELD_PREFIX: &str = "field.";

/// The most columns of fields that the statement does not name: planning takes time for each.
pub(crate) const FIELDS_MAX: usize = 2048;

/// The columns of a table, in order.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) schema: SchemaRef,
    /// What is asked for to fill each column. Invariant: it has the column's type, or is text.
    pub(crate) columns: Vec<ColumnRequest>,
}

impl Layout {
    /// The columns of all records with these fields, of which the statement names some; and the number of
    /// fields that have none. The most frequent fields have columns.
    pub(crate) fn of_all(types: &FieldTypes, named: &HashSet<String>) -> (Layout, usize) {
        let mut fields: Vec<(&str, u64)> = types.counts().collect();
        let known: HashSet<&str> = fields.iter().map(|(name, _)| *name).collect();
        let is_known = |name: &str| known.contains(name);
        let always = ALWAYS.iter().copied().filter(|name| !is_known(name));
        let always: Vec<&str> = always.collect();
        // Of more fields than are kept, a named one may be missing.
        let missing = named.iter().map(|name| &**name).filter(|name| {
            types.is_cut() && !is_known(name) && !ALWAYS.contains(name) && !is_of_all(name)
        });
        let missing: Vec<&str> = missing.collect();
        let is_named = |name: &str| ALWAYS.contains(&name) || named.contains(name);
        fields.sort_by_key(|(name, count)| (!is_named(name), Reverse(*count), *name));
        let of_statement = fields.iter().take_while(|(name, _)| is_named(name)).count();
        let left_out = fields.len().saturating_sub(FIELDS_MAX.max(of_statement));
        fields.truncate(fields.len() - left_out);
        let names = fields.into_iter().map(|(name, _)| name);
        let mut names: Vec<&str> = names.chain(always).chain(missing).collect();
        names.sort_unstable();
        let layout = Layout::of(names.into_iter().map(|name| (name, name, None)), types);
        (layout, left_out)
    }

    /// The columns of a table of some of the records. They hold their kind also where other records have something else.
    pub(crate) fn of_view<'f>(
        fields: impl Iterator<Item = &'f ViewField>,
        types: &FieldTypes,
    ) -> Layout {
        Layout::of(
            fields.map(|field| (&*field.name, &*field.field, Some(field.kind))),
            types,
        )
    }

    /// The columns of records in this order: a name, the field that it has, and the kind if it is decided.
    fn of<'n>(
        fields: impl Iterator<Item = (&'n str, &'n str, Option<ColumnKind>)>,
        types: &FieldTypes,
    ) -> Layout {
        let kinds: std::collections::HashMap<&str, ColumnKind> = types
            .fields()
            .map(|(name, types)| (name, ColumnKind::of(types)))
            .collect();
        let mut layout = Vec::new();
        for (name, reserved) in FIRST {
            layout.push((name.to_owned(), of_all(column(reserved))));
        }
        for (name, field, kind) in fields {
            if field == "_time" {
                // Seconds are made of the time, see `arrays`.
                let kind = kind.unwrap_or(ColumnKind::Time);
                layout.push((name_of(name), (kind, column(field))));
                continue;
            }
            let found = kinds.get(field).copied();
            let kind = kind.or(found).unwrap_or(ColumnKind::Text);
            // A text is there for every value, whatever it is.
            let asked = found.filter(|found| *found == kind);
            let asked = ColumnRequest {
                name: field.into(),
                kind: asked.unwrap_or(ColumnKind::Text),
            };
            layout.push((name_of(name), (kind, asked)));
        }
        for (name, reserved) in LAST {
            layout.push((name.to_owned(), of_all(column(reserved))));
        }
        let fields: Vec<Field> = layout
            .iter()
            .map(|(name, (kind, _))| Field::new(name, data_type(*kind), true))
            .collect();
        Layout {
            schema: Arc::new(Schema::new(fields)),
            columns: layout.into_iter().map(|(_, (_, asked))| asked).collect(),
        }
    }

    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Option<&ColumnRequest> {
        let (number, _) = self.schema.column_with_name(name)?;
        self.columns.get(number)
    }
}

/// A column of every table.
fn column(reserved: &str) -> ColumnRequest {
    ColumnRequest {
        name: reserved.into(),
        kind: match reserved {
            "_time" | "_received" => ColumnKind::Time,
            label::SEVERITY_NUMBER => ColumnKind::Int,
            _ => ColumnKind::Text,
        },
    }
}

/// What a column holds, and what is asked for to fill it.
fn of_all(column: ColumnRequest) -> (ColumnKind, ColumnRequest) {
    (column.kind, column)
}

/// True if every table has a column of this name.
fn is_of_all(name: &str) -> bool {
    FIRST.iter().chain(&LAST).any(|(known, _)| *known == name)
}

/// The name of a field's column. Of two fields that would have the same one, the second gets one
/// more prefix.
fn name_of(field: &str) -> String {
    let mut bare = field;
    while let Some(rest) = bare.strip_prefix(FIELD_PREFIX) {
        bare = rest;
    }
    if is_of_all(bare) {
        format!("{FIELD_PREFIX}{field}")
    } else {
        field.to_owned()
    }
}

/// The type of a column's values.
pub(crate) fn data_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some(ZONE.into())),
        ColumnKind::Int => DataType::Int64,
        ColumnKind::Float => DataType::Float64,
        ColumnKind::Bool => DataType::Boolean,
        ColumnKind::Text | ColumnKind::Number => DataType::Utf8View,
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::Value;

    use super::*;

    #[test]
    fn a_view_has_its_types_whatever_other_records_hold() {
        let mut types = FieldTypes::new(false);
        types.add_value("status", &Value::Int(1));
        types.add_value("status", &Value::Str("OK".into()));
        types.add_value("bytes", &Value::Int(1));
        types.add_value("user", &Value::Int(1));
        let fields = [
            ("epoch", "_time", ColumnKind::Int),
            ("status", "status", ColumnKind::Int),
            ("bytes", "bytes", ColumnKind::Int),
            ("remote_user", "user", ColumnKind::Text),
            ("absent", "absent", ColumnKind::Float),
        ];
        let fields = fields.map(|(name, field, kind)| ViewField {
            name: name.into(),
            field: field.into(),
            kind,
        });
        let layout = Layout::of_view(fields.iter(), &types);
        let table = [
            ("epoch", DataType::Int64, ColumnKind::Time),
            ("status", DataType::Int64, ColumnKind::Text),
            ("bytes", DataType::Int64, ColumnKind::Int),
            ("remote_user", DataType::Utf8View, ColumnKind::Text),
            ("absent", DataType::Float64, ColumnKind::Text),
        ];
        for (name, kind, asked) in table {
            let field = layout.schema.field_with_name(name).unwrap();
            assert_eq!(*field.data_type(), kind, "{name}");
            assert_eq!(layout.column(name).unwrap().kind, asked, "{name}");
        }
    }

    #[test]
    fn names_mean_the_same_whatever_fields_there_are() {
        let mut types = FieldTypes::new(false);
        types.add_value("time", &Value::Int(1));
        types.add_value("field.time", &Value::Int(1));
        types.add_value("status", &Value::Int(1));
        types.add_value("level", &Value::Int(1));
        let (layout, _) = Layout::of_all(&types, &HashSet::new());
        let told = |name: &str| {
            let column = layout.column(name);
            column.map(|column| format!("{} {:?}", column.name, column.kind))
        };
        let table = [
            ("time", Some("_time Time")),
            ("field.time", Some("time Int")),
            ("field.field.time", Some("field.time Int")),
            ("status", Some("status Int")),
            ("level", Some("level Int")),
            ("hostname", Some("hostname Text")),
            ("line", Some("_raw Text")),
            ("_level", Some("_level Text")),
            ("_level_number", Some("_level_number Int")),
            ("other", None),
        ];
        for (name, expected) in table {
            assert_eq!(told(name).as_deref(), expected, "{name}");
        }
        let names: HashSet<_> = layout
            .schema
            .fields()
            .iter()
            .map(|field| field.name())
            .collect();
        assert_eq!(names.len(), layout.columns.len());
    }
}
