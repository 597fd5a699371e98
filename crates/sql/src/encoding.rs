//! Values that a form of answers has no way of its own to write.
//!
//! Invariant: a value that is not null is written as something else than a null.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Float32Type, Float64Type, IntervalUnit, Schema, SchemaRef,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::EncoderOptions;
use datafusion::arrow::json::writer::{Encoder, EncoderFactory, NullableEncoder, make_encoder};

static PLAIN: LazyLock<EncoderOptions> = LazyLock::new(EncoderOptions::default);

static TOLD: LazyLock<EncoderOptions> = LazyLock::new(|| {
    EncoderOptions::default()
        .with_explicit_nulls(true)
        .with_encoder_factory(Arc::new(Floats))
});

/// Writes numbers that JSON does not have as texts, called as in CSV.
#[derive(Debug)]
pub(crate) struct Floats;

impl EncoderFactory for Floats {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        _: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let names: Vec<Option<&'static str>> = match array.data_type() {
            DataType::Float64 => {
                let values = array.as_primitive::<Float64Type>().values();
                values.iter().map(|value| name(*value)).collect()
            }
            DataType::Float32 => {
                let values = array.as_primitive::<Float32Type>().values();
                values.iter().map(|value| name(f64::from(*value))).collect()
            }
            _ => return Ok(None),
        };
        if names.iter().all(Option::is_none) {
            return Ok(None);
        }
        let others = make_encoder(field, array, &PLAIN)?;
        let encoder = Box::new(NamedFloats { names, others });
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

struct NamedFloats<'a> {
    names: Vec<Option<&'static str>>,
    others: NullableEncoder<'a>,
}

impl Encoder for NamedFloats<'_> {
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        match self.names[index] {
            Some(name) => {
                out.push(b'"');
                out.extend_from_slice(name.as_bytes());
                out.push(b'"');
            }
            None => self.others.encode(index, out),
        }
    }
}

fn name(value: f64) -> Option<&'static str> {
    match value {
        value if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("inf"),
        f64::NEG_INFINITY => Some("-inf"),
        _ => None,
    }
}

/// Rewrites a text before it is a cell of CSV.
pub type Rewrite = fn(&str) -> Cow<'_, str>;

/// The columns as CSV has them: lists, structs and maps are JSON; names and texts are rewritten.
pub(crate) fn flat_schema(schema: &SchemaRef, rewrite: Option<Rewrite>) -> SchemaRef {
    let flat = |field: &FieldRef| {
        let name = rewrite.map_or(Cow::Borrowed(field.name().as_str()), |to| to(field.name()));
        let is_text = rewrite.is_some() && is_text(field.data_type());
        if field.data_type().is_nested() || is_text {
            Arc::new(Field::new(name, DataType::Utf8, true))
        } else {
            Arc::new(field.as_ref().clone().with_name(name))
        }
    };
    Arc::new(Schema::new(
        schema.fields().iter().map(flat).collect::<Vec<_>>(),
    ))
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// The rows in these columns.
pub(crate) fn flat(
    batch: &RecordBatch,
    schema: &SchemaRef,
    rewrite: Option<Rewrite>,
) -> Result<RecordBatch, ArrowError> {
    let fields = batch.schema();
    let columns = fields.fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| {
        let flat = if field.data_type().is_nested() {
            texts(field, column)?
        } else {
            Arc::clone(column)
        };
        match rewrite {
            Some(rewrite) if is_text(flat.data_type()) => rewritten(&flat, rewrite),
            _ => Ok(flat),
        }
    });
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
}

fn rewritten(column: &ArrayRef, rewrite: Rewrite) -> Result<ArrayRef, ArrowError> {
    let column = cast(column, &DataType::Utf8)?;
    let mut texts = StringBuilder::new();
    for text in column.as_string::<i32>() {
        texts.append_option(text.map(rewrite));
    }
    Ok(Arc::new(texts.finish()))
}

fn texts(field: &FieldRef, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let mut encoder = make_encoder(field, column, &TOLD)?;
    let mut texts = StringBuilder::new();
    let mut text = Vec::new();
    for row in 0..column.len() {
        if encoder.is_null(row) {
            texts.append_null();
            continue;
        }
        text.clear();
        encoder.encode(row, &mut text);
        texts.append_value(String::from_utf8_lossy(&text));
    }
    Ok(Arc::new(texts.finish()))
}

/// The first column with a type that Parquet files do not have.
pub(crate) fn foreign_to_parquet(schema: &Schema) -> Option<&FieldRef> {
    schema.fields().iter().find(|field| has_interval(field))
}

fn has_interval(field: &Field) -> bool {
    match field.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => true,
        DataType::List(inner) | DataType::LargeList(inner) | DataType::Map(inner, _) => {
            has_interval(inner)
        }
        DataType::ListView(inner) | DataType::FixedSizeList(inner, _) => has_interval(inner),
        DataType::Struct(fields) => fields.iter().any(|field| has_interval(field)),
        _ => false,
    }
}
