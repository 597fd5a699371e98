//! Tables that are not of records, but of all of them together: their fields, and the patterns of their messages.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::MemTable;
use datafusion::error::Result;
use logpond_search::aggregate::FieldTypes;
use logpond_search::columns::ColumnKind;

use crate::layout::ZONE;
use crate::source::PatternRow;

/// The table of fields.
pub(crate) const FIELDS: &str = "fields";

/// The table of patterns.
pub(crate) const PATTERNS: &str = "patterns";

/// The fields of records: name, type as a column, and number of values.
pub(crate) fn fields(types: &FieldTypes) -> Result<MemTable> {
    let type_name = |kind| match kind {
        ColumnKind::Int => "BIGINT",
        ColumnKind::Float => "DOUBLE",
        ColumnKind::Bool => "BOOLEAN",
        ColumnKind::Time => "TIMESTAMP",
        ColumnKind::Text | ColumnKind::Number => "VARCHAR",
    };
    let names = types.fields().map(|(name, _)| Some(name));
    let kinds = types.fields();
    let kinds = kinds.map(|(_, types)| Some(type_name(ColumnKind::of(types))));
    let counts = types.counts().map(|(_, count)| number(count));
    table(vec![
        ("name", Arc::new(names.collect::<StringArray>())),
        ("type", Arc::new(kinds.collect::<StringArray>())),
        ("count", Arc::new(counts.collect::<Int64Array>())),
    ])
}

/// Patterns of messages: the pattern, its level, number of records, and the newest message with its time.
pub(crate) fn patterns(rows: &[PatternRow]) -> Result<MemTable> {
    let texts = rows.iter().map(|row| Some(row.pattern.as_str()));
    let levels = rows.iter().map(|row| row.level.as_deref());
    let counts = rows.iter().map(|row| number(row.count));
    let samples = || rows.iter().map(|row| row.sample.as_ref());
    let times = samples().map(|sample| sample.map(|(time, _)| *time));
    let messages = samples().map(|sample| sample.map(|(_, message)| message.as_str()));
    let times = times.collect::<TimestampNanosecondArray>();
    table(vec![
        ("pattern", Arc::new(texts.collect::<StringArray>())),
        ("level", Arc::new(levels.collect::<StringArray>())),
        ("count", Arc::new(counts.collect::<Int64Array>())),
        ("newest", Arc::new(times.with_timezone(ZONE))),
        ("sample", Arc::new(messages.collect::<StringArray>())),
    ])
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn table(columns: Vec<(&str, ArrayRef)>) -> Result<MemTable> {
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    MemTable::try_new(schema, vec![vec![batch]])
}
