//! `-o csv`, RFC 4180: a header, then one record a line with CRLF.
//!
//! Columns are `_time`, `_id`, `_msg`, the fields of the first [`SAMPLE_ROWS`] records in the
//! order they appear, and `_more`: a JSON object of whatever else a record has. The header depends
//! on the records only, never on how fast they came; so nothing is printed before the sample is
//! full or the answer ends. With columns of the reader's choice, these and `_time` and `_id` are all
//! there is.

use logpond_record::Value;

use super::cell::Cells;
use super::json::write_object;
use super::{Render, Row};

/// Records that are held back to learn their fields: enough for logs of one kind to show them.
const SAMPLE_ROWS: usize = 1000;
/// Bytes of text after which the sample ends early, so that it stays small in memory.
const SAMPLE_BYTES_MAX: usize = 8 << 20;
/// Most columns; further fields go to `_more`.
const COLUMNS_MAX: usize = 256;

/// See the module.
#[derive(Default)]
pub struct Csv {
    cells: Cells,
    columns: Vec<String>,
    sample: Vec<Row<'static>>,
    sample_bytes: usize,
    is_begun: bool,
    /// Whether the reader chose the columns.
    is_chosen: bool,
}

impl Csv {
    /// With these columns, or with those that the records have if there are none.
    pub fn new(chosen: &[String], cells: Cells) -> Csv {
        let always = ["_time", "_id"];
        let mut columns: Vec<String> = Vec::new();
        for name in chosen
            .iter()
            .filter(|name| !always.contains(&name.as_str()))
        {
            if !columns.contains(name) {
                columns.push(name.clone());
            }
        }
        Csv {
            cells,
            columns,
            is_chosen: !chosen.is_empty(),
            ..Csv::default()
        }
    }
}

impl Render for Csv {
    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) {
        if self.is_chosen {
            self.end(out);
        }
        if self.is_begun {
            self.write(row, out);
            return;
        }
        self.learn(row);
        if self.sample.len() == SAMPLE_ROWS || self.sample_bytes > SAMPLE_BYTES_MAX {
            self.end(out);
        }
    }

    /// Groups of context are not marked: every line of a table is a record.
    fn gap(&mut self, _out: &mut Vec<u8>) {}

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.is_begun {
            return;
        }
        self.is_begun = true;
        let (first, last): (&[u8], &[u8]) = if self.is_chosen {
            (b"_time,_id", b"\r\n")
        } else {
            (b"_time,_id,_msg", b",_more\r\n")
        };
        out.extend_from_slice(first);
        for column in &self.columns {
            out.push(b',');
            self.cells.write_text(column.as_bytes(), out);
        }
        out.extend_from_slice(last);
        for row in std::mem::take(&mut self.sample) {
            self.write(&row, out);
        }
    }
}

impl Csv {
    fn learn(&mut self, row: &Row<'_>) {
        for (name, value) in row.plain_fields() {
            self.sample_bytes += name.len() + value.to_text().len();
            if self.columns.len() < COLUMNS_MAX && !self.columns.iter().any(|c| c == name) {
                self.columns.push(name.to_string());
            }
        }
        self.sample_bytes += row.message.as_ref().map_or(0, |m| m.len());
        self.sample.push(
            Row {
                line: None,
                ..row.clone()
            }
            .into_owned(),
        );
    }

    fn write(&self, row: &Row<'_>, out: &mut Vec<u8>) {
        let time = row.time.map(|t| t.to_string()).unwrap_or_default();
        self.cells.write(time.as_bytes(), out);
        out.push(b',');
        self.cells.write(row.id.as_bytes(), out);
        let message = row.message.as_deref().unwrap_or_default();
        if !self.is_chosen {
            out.push(b',');
            self.cells.write_text(message, out);
        }
        for column in &self.columns {
            out.push(b',');
            match row.field(column) {
                None if self.is_chosen && column == "_msg" => self.cells.write_text(message, out),
                None | Some(Value::Null) => {}
                // An empty text is not a missing one.
                Some(Value::Str(text)) if text.is_empty() => out.extend_from_slice(b"\"\""),
                Some(value @ (Value::Int(_) | Value::Float(_) | Value::Bool(_))) => {
                    self.cells.write(&value.to_text(), out);
                }
                Some(value) => self.cells.write_text(&value.to_text(), out),
            }
        }
        if self.is_chosen {
            out.extend_from_slice(b"\r\n");
            return;
        }
        out.push(b',');
        let more = |name: &str| !self.columns.iter().any(|column| column == name);
        if row.plain_fields().any(|(name, _)| more(name)) {
            let mut object = Vec::new();
            write_object(
                row.plain_fields().filter(|(name, _)| more(name)),
                &mut object,
            );
            self.cells.write_text(&object, out);
        }
        out.extend_from_slice(b"\r\n");
    }
}
