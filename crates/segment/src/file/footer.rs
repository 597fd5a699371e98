//! What the Parquet footer says about a segment beyond Parquet, and the checksum of the footer.

use std::io::Write;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

use super::page::Physical;
use crate::disk::AppendFile;
use crate::rows::{ColumnType, Schema};

/// Key of the manifest in the footer.
pub(super) const KEY_MANIFEST: &str = "logpond.manifest";
/// Key of the directory's place: `offset length plain-length crc32c`, numbers in decimal.
pub(super) const KEY_DIRECTORY: &str = "logpond.directory";
/// Key of the checksum of all bytes after the directory, its own digits taken as zeros.
pub(super) const KEY_TAIL: &str = "logpond.tail";
/// What the checksum's place holds while it is computed.
pub(super) const CRC_PLACEHOLDER: &str = "crc32c:00000000";

/// The place of `_time_source` among the fixed columns; its codes are read without their names.
pub(super) const TIME_SOURCE: usize = 5;

/// The fixed columns, in the order of the file; the columns of fields follow.
pub(super) const FIXED: [(&str, ColumnType, bool); 11] = [
    ("_time", ColumnType::Int, false),
    ("_time_rest", ColumnType::Int, true),
    ("_received", ColumnType::Int, false),
    ("_n", ColumnType::Int, false),
    ("_source", ColumnType::Int, false),
    ("_time_source", ColumnType::Text, false),
    ("_shape", ColumnType::Text, false),
    ("_msg", ColumnType::Text, true),
    ("_msg_bin", ColumnType::Bytes, true),
    ("_raw", ColumnType::Bytes, true),
    ("_fix", ColumnType::Bytes, true),
];

/// Index of the overflow column `_more`: after the fixed ones.
pub(super) const MORE: usize = FIXED.len();

/// Index of the first column of a field.
pub(super) const FIELDS_FROM: usize = MORE + 1;

/// The last column, behind those of fields.
pub(super) const TEMPLATE: &str = "_template";

/// How values of a type are stored.
pub(super) fn physical(kind: ColumnType) -> Physical {
    match kind {
        ColumnType::Text | ColumnType::Json | ColumnType::Bytes => Physical::Strings,
        ColumnType::Int | ColumnType::Decimal(_) => Physical::Ints,
        ColumnType::Float => Physical::Floats,
        ColumnType::Bool => Physical::Bools,
    }
}

/// The Parquet schema of a segment.
pub(super) fn parquet_schema(schema: &Schema) -> Result<TypePtr, ParquetError> {
    let mut fields = Vec::new();
    for (name, kind, optional) in FIXED {
        let time = matches!(name, "_time" | "_received");
        fields.push(parquet_column(name, kind, optional, time)?);
    }
    fields.push(parquet_column("_more", ColumnType::Text, true, false)?);
    for column in &schema.columns {
        fields.push(parquet_column(&column.name, column.kind, true, false)?);
    }
    fields.push(parquet_column(TEMPLATE, ColumnType::Text, true, false)?);
    Ok(Type::group_type_builder("logpond")
        .with_fields(fields)
        .build()?
        .into())
}

fn parquet_column(
    name: &str,
    kind: ColumnType,
    optional: bool,
    time: bool,
) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match kind {
        ColumnType::Text | ColumnType::Json => {
            (PhysicalType::BYTE_ARRAY, Some(LogicalType::String))
        }
        ColumnType::Bytes => (PhysicalType::BYTE_ARRAY, None),
        ColumnType::Int if time => (
            PhysicalType::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
        ),
        ColumnType::Int => (PhysicalType::INT64, None),
        ColumnType::Decimal(scale) => (
            PhysicalType::INT64,
            Some(LogicalType::decimal(i32::from(scale), 18)),
        ),
        ColumnType::Float => (PhysicalType::DOUBLE, None),
        ColumnType::Bool => (PhysicalType::BOOLEAN, None),
    };
    let repetition = if optional {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    let mut builder = Type::primitive_type_builder(name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical);
    if let ColumnType::Decimal(scale) = kind {
        builder = builder.with_precision(18).with_scale(i32::from(scale));
    }
    Ok(builder.build()?.into())
}

/// Where the bytes of a segment go: to the file, and from the footer on to memory, so that the
/// footer's checksum can be put into it.
pub(super) struct Sink {
    file: Box<dyn AppendFile>,
    buffer: Vec<u8>,
    keep_tail: bool,
    bytes: u64,
}

/// Bytes collected before a write.
const SINK_BUFFER_BYTES: usize = 256 << 10;

impl Sink {
    pub(super) fn new(file: Box<dyn AppendFile>) -> Sink {
        Sink {
            file,
            buffer: Vec::new(),
            keep_tail: false,
            bytes: 0,
        }
    }

    /// Everything written from here on stays in memory until [`Sink::finish`].
    pub(super) fn start_tail(&mut self) -> std::io::Result<()> {
        self.flush()?;
        self.keep_tail = true;
        Ok(())
    }

    /// Puts the checksum into the tail, writes it and syncs the file; gives the file's length.
    pub(super) fn finish(mut self) -> std::io::Result<u64> {
        if let Some(at) = find_crc(&self.buffer) {
            let crc = crc32c::crc32c(&self.buffer);
            let digits = format!("{crc:08x}");
            self.buffer[at..at + 8].copy_from_slice(digits.as_bytes());
        }
        self.keep_tail = false;
        self.flush()?;
        self.file.sync()?;
        Ok(self.bytes)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        self.bytes += bytes.len() as u64;
        if !self.keep_tail && self.buffer.len() >= SINK_BUFFER_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.keep_tail || self.buffer.is_empty() {
            return Ok(());
        }
        self.file.append(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Where the digits of the checksum are in the last bytes of a file.
fn find_crc(tail: &[u8]) -> Option<usize> {
    let prefix = CRC_PLACEHOLDER.split_at(7).0.as_bytes();
    let at = memchr::memmem::rfind(tail, prefix)? + prefix.len();
    (at + 8 <= tail.len()).then_some(at)
}

/// Whether the bytes after the directory have the checksum that they name.
pub(super) fn tail_is_whole(tail: &[u8]) -> bool {
    let Some(at) = find_crc(tail) else {
        return false;
    };
    let crc = crc32c::crc32c(&tail[..at]);
    let crc = crc32c::crc32c_append(crc, b"00000000");
    let crc = crc32c::crc32c_append(crc, &tail[at + 8..]);
    format!("{crc:08x}").as_bytes() == &tail[at..at + 8]
}
