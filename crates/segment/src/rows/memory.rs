//! About how much memory rows take as columns: enough to choose how many are held at a time.

use super::schema::{ColumnType, Schema};

/// Memory of a row without its line and its fields: numbers, codes of texts, and its places in the
/// orders in which rows are sorted. Measured at 60 to 110 bytes, more while columns grow.
const ROW_BYTES: u64 = 128;

/// The most fields that are counted by [`memory_of_fields`]: those that become columns.
const FIELDS_COUNTED_MAX: usize = 256;

/// About the memory of so many rows, which take `row_bytes` each beside their lines of together
/// `line_bytes` ([`Schema::row_bytes`]).
pub fn memory_bytes(rows: u64, row_bytes: u64, line_bytes: u64) -> u64 {
    line_bytes.saturating_add(rows.saturating_mul(row_bytes))
}

/// The same of rows that are being collected and have so many different fields.
pub(super) fn memory_of_fields(rows: u64, fields: usize, line_bytes: u64) -> u64 {
    let columns = fields.min(FIELDS_COUNTED_MAX) as u64;
    let of_text = column_bytes(ColumnType::Text);
    memory_bytes(rows, ROW_BYTES + columns * of_text, line_bytes)
}

/// A place in a column: the code of a text, or a number and whether it is there.
fn column_bytes(kind: ColumnType) -> u64 {
    match kind {
        ColumnType::Text | ColumnType::Json | ColumnType::Bytes => 4,
        ColumnType::Bool => 2,
        ColumnType::Int | ColumnType::Float | ColumnType::Decimal(_) => 9,
    }
}

impl Schema {
    /// About the memory of a row beside its line.
    pub fn row_bytes(&self) -> u64 {
        let columns = self.columns.iter();
        ROW_BYTES + columns.map(|column| column_bytes(column.kind)).sum::<u64>()
    }
}
