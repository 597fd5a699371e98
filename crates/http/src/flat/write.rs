//! Pages of flat objects, in the forms in which they are asked for.

use std::io;

use logpond_record::write_json_string;

use crate::coding::{AnswerEncoder, gone};
use crate::logql::found::QueryResult;
use crate::logql::table::{Cell, Column, columns, each_row};
use logpond_engine::query::Cancellation;
use logpond_render::Cells;

/// In which form a page is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An array of objects.
    Json,
    /// An object a line.
    JsonLines,
    /// RFC 4180.
    Csv,
    /// An object with the rows, and what else there is to say.
    Page,
}

impl Form {
    pub(super) fn parse(name: &str) -> Option<Form> {
        Some(match name {
            "json" => Form::Json,
            "ndjson" => Form::JsonLines,
            "csv" => Form::Csv,
            "page" => Form::Page,
            _ => return None,
        })
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Form::Json | Form::Page => "application/json",
            Form::JsonLines => "application/x-ndjson",
            Form::Csv => "text/csv; charset=utf-8",
        }
    }
}

/// What is sent.
pub(super) struct Page {
    pub(super) found: QueryResult,
    /// Where the next one begins, if there is one.
    pub(super) cursor: Option<String>,
    /// Whether all that was asked for could be read.
    pub(super) is_complete: bool,
    /// Records that no answer will ever have, in words.
    pub(super) lost: Vec<String>,
    /// What users should know.
    pub(super) warnings: Vec<String>,
}

/// Writes a page.
pub(super) fn page(
    page: &Page,
    form: Form,
    cells: Cells,
    out: &mut AnswerEncoder<'_>,
) -> io::Result<()> {
    let columns = columns(&page.found, true);
    let written = match form {
        Form::Csv => csv(page, &columns, cells, out),
        form => json(page, &columns, form, out),
    };
    written.map_err(gone)
}

fn json(
    page: &Page,
    columns: &[Column],
    form: Form,
    out: &mut AnswerEncoder<'_>,
) -> Result<(), Cancellation> {
    let names: Vec<Vec<u8>> = columns
        .iter()
        .map(|column| {
            let mut name = Vec::new();
            write_json_string(&column.name, &mut name);
            name
        })
        .collect();
    let (begin, between, end): (&[u8], &[u8], &[u8]) = match form {
        Form::Json => (b"[", b",\n", b"]\n"),
        Form::Page => (b"{\"rows\":[", b",\n", b"]"),
        Form::JsonLines | Form::Csv => (b"", b"\n", b""),
    };
    out.append(|chunk| chunk.extend_from_slice(begin))?;
    let mut is_first = true;
    each_row(&page.found, columns, |cells| {
        out.append(|chunk| {
            if !is_first {
                chunk.extend_from_slice(between);
            }
            for (at, (name, cell)) in names.iter().zip(cells).enumerate() {
                chunk.push(if at == 0 { b'{' } else { b',' });
                chunk.extend_from_slice(name);
                chunk.push(b':');
                write_cell(cell, chunk);
            }
            chunk.push(b'}');
        })?;
        is_first = false;
        Ok(())
    })?;
    out.append(|chunk| {
        if form == Form::JsonLines && !is_first {
            chunk.push(b'\n');
        }
        chunk.extend_from_slice(end);
        if form == Form::Page {
            let rest = serde_json::json!({
                "cursor": page.cursor,
                "complete": page.is_complete,
                "lost": page.lost,
                "warnings": page.warnings,
            });
            let rest = rest.to_string();
            chunk.push(b',');
            chunk.extend_from_slice(&rest.as_bytes()[1..]);
            chunk.push(b'\n');
        }
    })
}

fn write_cell(cell: &Cell<'_>, out: &mut Vec<u8>) {
    match cell {
        Cell::Nothing => out.extend_from_slice(b"null"),
        Cell::Time(time) => write_json_string(&time.to_string(), out),
        Cell::Text(text) => write_json_string(text, out),
        Cell::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
    }
}

fn csv(
    page: &Page,
    columns: &[Column],
    csv: Cells,
    out: &mut AnswerEncoder<'_>,
) -> Result<(), Cancellation> {
    out.append(|chunk| {
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                chunk.push(b',');
            }
            write_text(&column.name, csv, chunk);
        }
        chunk.extend_from_slice(b"\r\n");
    })?;
    each_row(&page.found, columns, |cells| {
        out.append(|chunk| {
            for (at, cell) in cells.iter().enumerate() {
                if at > 0 {
                    chunk.push(b',');
                }
                match cell {
                    Cell::Nothing => {}
                    Cell::Time(time) => chunk.extend_from_slice(time.to_string().as_bytes()),
                    Cell::Text(text) => write_text(text, csv, chunk),
                    Cell::Number(number) => {
                        chunk.extend_from_slice(number.to_string().as_bytes());
                    }
                }
            }
            chunk.extend_from_slice(b"\r\n");
        })
    })
}

/// A text as a cell; an empty one is not a missing one.
fn write_text(text: &str, csv: Cells, out: &mut Vec<u8>) {
    match text {
        "" => out.extend_from_slice(b"\"\""),
        text => csv.write_text(text.as_bytes(), out),
    }
}
