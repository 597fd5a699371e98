//! Tables of the catalog: columns by a line of text, rows by the columns that are not empty.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float32Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    StringArray, new_null_array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::MemTable;
use datafusion::error::Result;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Number(i64),
    Text(String),
    Flag(bool),
}

impl From<i64> for Cell {
    fn from(number: i64) -> Cell {
        Cell::Number(number)
    }
}

impl From<i32> for Cell {
    fn from(number: i32) -> Cell {
        Cell::Number(i64::from(number))
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Cell {
        Cell::Number(i64::from(number))
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Cell {
        Cell::Flag(flag)
    }
}

/// A row: the columns that have a value.
pub(super) type Row = Vec<(&'static str, Cell)>;

/// A table: its name, its columns, and its rows. Columns are `name kind`, joined by commas. A kind is `o` (a number
/// of an object), `2`, `4` and `8` (whole numbers of so many bytes), `f` (a fraction), `b` (a truth value), `t` (text,
/// empty if there is none), `n` (text, null if there is none) `l` (lists of numbers, always null) or `a` (lists of texts, always null).
pub(super) struct Sheet {
    pub(super) name: &'static str,
    pub(super) columns: &'static str,
    pub(super) rows: Vec<Row>,
}

impl Sheet {
    /// A table without rows.
    pub(super) fn empty(name: &'static str, columns: &'static str) -> Sheet {
        Sheet {
            name,
            columns,
            rows: Vec::new(),
        }
    }

    /// The table as the engine reads it.
    pub(super) fn table(self) -> Result<MemTable> {
        let mut fields = Vec::new();
        let mut arrays = Vec::new();
        let rows: Vec<HashMap<&str, Cell>> = self
            .rows
            .into_iter()
            .map(|row| row.into_iter().collect())
            .collect();
        for column in self.columns.split(',').map(str::trim) {
            let (name, kind) = column.split_once(' ').unwrap_or((column, "n"));
            let cells = rows
                .iter()
                .map(|row| row.get(name).cloned().unwrap_or(Cell::Null));
            let array = array(kind, cells.collect());
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        MemTable::try_new(schema, vec![vec![batch]])
    }
}

fn number(cell: Cell) -> i64 {
    match cell {
        Cell::Number(number) => number,
        _ => 0,
    }
}

fn text(cell: Cell) -> Option<String> {
    match cell {
        Cell::Text(text) => Some(text),
        _ => None,
    }
}

fn array(kind: &str, cells: Vec<Cell>) -> ArrayRef {
    let cells = cells.into_iter();
    match kind {
        "2" => {
            let numbers = cells.map(|cell| i16::try_from(number(cell)).unwrap_or(i16::MAX));
            Arc::new(numbers.collect::<Int16Array>())
        }
        "4" => {
            let numbers = cells.map(|cell| i32::try_from(number(cell)).unwrap_or(i32::MAX));
            Arc::new(numbers.collect::<Int32Array>())
        }
        "o" | "8" => Arc::new(cells.map(number).collect::<Int64Array>()),
        "f" => Arc::new(
            cells
                .map(|cell| if cell == Cell::Null { 0.0 } else { -1.0 })
                .collect::<Float32Array>(),
        ),
        "b" => {
            let flags = cells.map(|cell| Some(cell == Cell::Flag(true)));
            Arc::new(flags.collect::<BooleanArray>())
        }
        "t" => {
            let texts = cells.map(|cell| Some(text(cell).unwrap_or_default()));
            Arc::new(texts.collect::<StringArray>())
        }
        "l" => no_lists(DataType::Int64, cells.len()),
        "a" => no_lists(DataType::Utf8, cells.len()),
        _ => Arc::new(cells.map(text).collect::<StringArray>()),
    }
}

/// Lists that are all null.
fn no_lists(item: DataType, count: usize) -> ArrayRef {
    let item = Arc::new(Field::new("item", item, true));
    new_null_array(&DataType::List(item), count)
}
