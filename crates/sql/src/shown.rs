//! Answers as they are shown: names that are unique, and types by the words of SQL.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use logpond_search::columns::ColumnKind;

use crate::casts::type_name;
use crate::layout::data_type;

/// The column of a description that has types.
const TYPES: &str = "data_type";

/// The schema of rows in the output.
#[derive(Debug)]
pub(crate) struct DisplaySchema {
    /// The columns, each with a name of its own.
    pub(crate) schema: SchemaRef,
    /// The column that has the engine's names of types.
    types: Option<usize>,
}

impl DisplaySchema {
    /// Rows with these columns; of a description types are called as SQL does.
    pub(crate) fn new(schema: &SchemaRef, is_description: bool) -> DisplaySchema {
        let types = schema.index_of(TYPES).ok().filter(|_| is_description);
        let mut taken: HashSet<String> = HashSet::new();
        let mut fields: Vec<Field> = Vec::new();
        for (at, field) in schema.fields().iter().enumerate() {
            let name = unique(field.name(), &taken);
            taken.insert(name.clone());
            let field = Field::clone(field).with_name(name);
            fields.push(if types == Some(at) {
                field.with_data_type(DataType::Utf8)
            } else {
                field
            });
        }
        DisplaySchema {
            schema: Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
            types,
        }
    }

    pub(crate) fn rows(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let columns = batch.columns().iter().enumerate();
        let columns = columns.map(|(at, column)| {
            if self.types == Some(at) {
                called(column)
            } else {
                Arc::clone(column)
            }
        });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns.collect(), &options)
    }
}

/// The first of `name`, `name:1`, `name:2` and so on that no other column has.
fn unique(name: &str, taken: &HashSet<String>) -> String {
    let mut unique = name.to_owned();
    let mut number = 0_u32;
    while taken.contains(&unique) {
        number += 1;
        unique = format!("{name}:{number}");
    }
    unique
}

fn called(column: &ArrayRef) -> ArrayRef {
    let Some(names) = column.as_string_opt::<i32>() else {
        return Arc::clone(column);
    };
    let names = names.iter().map(|name| name.map(sql_name));
    Arc::new(names.collect::<StringArray>())
}

/// What SQL calls a type that the engine calls so.
fn sql_name(engine: &str) -> String {
    let kinds = [
        ColumnKind::Time,
        ColumnKind::Int,
        ColumnKind::Float,
        ColumnKind::Bool,
        ColumnKind::Text,
    ];
    let mut kinds = kinds.into_iter().map(data_type).chain([DataType::Utf8]);
    let known = kinds.find(|kind| kind.to_string() == engine);
    known.map_or_else(|| engine.to_owned(), |kind| type_name(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_has_a_name_of_its_own() {
        let field = |name: &&str| Field::new(*name, DataType::Int64, true);
        let names = ["n", "n", "n:1", "a", "n"];
        let schema: SchemaRef = Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()));
        let shown = DisplaySchema::new(&schema, false);
        let found: Vec<&str> = shown
            .schema
            .fields()
            .iter()
            .map(|field| &**field.name())
            .collect();
        assert_eq!(found, ["n", "n:1", "n:1:1", "a", "n:2"]);
    }

    #[test]
    fn types_have_the_words_of_sql() {
        for (engine, expected) in [
            ("Int64", "BIGINT"),
            ("Float64", "DOUBLE"),
            ("Boolean", "BOOLEAN"),
            ("Utf8View", "VARCHAR"),
            ("Timestamp(ns, \"+00:00\")", "TIMESTAMP WITH TIME ZONE"),
            ("Struct(a)", "Struct(a)"),
        ] {
            assert_eq!(sql_name(engine), expected);
        }
    }
}
