//! Answers as bytes.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::json;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::encoding::{self, Rewrite};

/// Rows of a row group of a Parquet file, as in files that others write.
const ROW_GROUP_ROWS: usize = 128 << 10;

/// Bytes that a row group may take in memory before it is written, however few rows it has.
const ROW_GROUP_BYTES_MAX: usize = 32 << 20;

/// A form of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A JSON object on each line, nulls included; numbers that JSON does not have are texts.
    Json,
    /// Comma-separated values below a line of names (RFC 4180); lists, structs and maps are JSON.
    Csv,
    /// A stream of Arrow's IPC format.
    Arrow,
    /// A Parquet file.
    Parquet,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 4] = [Format::Json, Format::Csv, Format::Arrow, Format::Parquet];

    /// The name that people write.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Arrow => "arrow",
            Format::Parquet => "parquet",
        }
    }

    /// The media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Json => "application/x-ndjson",
            Format::Csv => "text/csv; charset=utf-8",
            Format::Arrow => "application/vnd.apache.arrow.stream",
            Format::Parquet => "application/vnd.apache.parquet",
        }
    }
}

/// Bytes on their way out.
#[derive(Clone, Debug, Default)]
struct Pipe(Arc<Mutex<Vec<u8>>>);

impl Pipe {
    fn take(&self, out: &mut Vec<u8>) {
        out.append(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut pipe = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pipe.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Kind {
    Json(json::LineDelimitedWriter<Pipe>),
    Csv(Box<csv::Writer<Pipe>>, SchemaRef, Option<Rewrite>),
    Arrow(StreamWriter<Pipe>),
    Parquet(Box<ArrowWriter<Pipe>>),
}

/// Writes an answer.
pub struct Writer {
    kind: Kind,
    pipe: Pipe,
}

impl Writer {
    /// An answer with these columns; its first bytes go to `out`.
    ///
    /// # Errors
    /// When the form has no way to write a column's type; what it is, in words.
    pub fn new(format: Format, schema: &SchemaRef, out: &mut Vec<u8>) -> Result<Writer, String> {
        let pipe = Pipe::default();
        let kind = match format {
            Format::Json => {
                let builder = json::WriterBuilder::new()
                    .with_explicit_nulls(true)
                    .with_encoder_factory(Arc::new(encoding::Floats));
                Kind::Json(builder.build(pipe.clone()))
            }
            Format::Csv => csv_kind(&pipe, schema, None)?,
            Format::Arrow => {
                Kind::Arrow(StreamWriter::try_new(pipe.clone(), schema).map_err(of_arrow)?)
            }
            Format::Parquet => {
                if let Some(field) = encoding::foreign_to_parquet(schema) {
                    let name = field.name();
                    return Err(format!(
                        "a Parquet file has no type for column {name}, an interval: \
                         write CAST({name} AS VARCHAR)"
                    ));
                }
                let level = ZstdLevel::try_new(3).map_err(of_parquet)?;
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(level))
                    .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
                    .set_created_by("logpond".into())
                    .build();
                let schema = Arc::clone(schema);
                let writer = ArrowWriter::try_new(pipe.clone(), schema, Some(properties));
                Kind::Parquet(Box::new(writer.map_err(of_parquet)?))
            }
        };
        pipe.take(out);
        Ok(Writer { kind, pipe })
    }

    /// The same as CSV whose names and texts are rewritten.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn of_cells(
        schema: &SchemaRef,
        rewrite: Rewrite,
        out: &mut Vec<u8>,
    ) -> Result<Writer, String> {
        let pipe = Pipe::default();
        let kind = csv_kind(&pipe, schema, Some(rewrite))?;
        pipe.take(out);
        Ok(Writer { kind, pipe })
    }

    /// Appends rows to `out`, or keeps them for the next row group.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn write(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), String> {
        match &mut self.kind {
            Kind::Json(writer) => writer.write(batch).map_err(of_arrow)?,
            Kind::Csv(writer, schema, rewrite) => {
                let flat = encoding::flat(batch, schema, *rewrite).map_err(of_arrow)?;
                writer.write(&flat).map_err(of_arrow)?;
            }
            Kind::Arrow(writer) => writer.write(batch).map_err(of_arrow)?,
            Kind::Parquet(writer) => {
                writer.write(batch).map_err(of_parquet)?;
                if writer.in_progress_size() > ROW_GROUP_BYTES_MAX {
                    writer.flush().map_err(of_parquet)?;
                }
            }
        }
        self.pipe.take(out);
        Ok(())
    }

    /// Appends what stands at the end to `out`.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), String> {
        match &mut self.kind {
            Kind::Json(writer) => writer.finish().map_err(of_arrow)?,
            Kind::Csv(..) => {}
            Kind::Arrow(writer) => writer.finish().map_err(of_arrow)?,
            Kind::Parquet(writer) => _ = writer.finish().map_err(of_parquet)?,
        }
        self.pipe.take(out);
        Ok(())
    }
}

fn csv_kind(pipe: &Pipe, schema: &SchemaRef, rewrite: Option<Rewrite>) -> Result<Kind, String> {
    let builder = csv::WriterBuilder::new().with_header(true);
    let mut writer = builder.build(pipe.clone());
    let schema = encoding::flat_schema(schema, rewrite);
    // The names stand there also if no row does.
    writer
        .write(&RecordBatch::new_empty(Arc::clone(&schema)))
        .map_err(of_arrow)?;
    Ok(Kind::Csv(Box::new(writer), schema, rewrite))
}

fn of_arrow(error: ArrowError) -> String {
    error.to_string()
}

fn of_parquet(error: ParquetError) -> String {
    error.to_string()
}
