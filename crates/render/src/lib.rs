//! How records are printed: one file a format, all of them functions from a [`Row`] to bytes.
//!
//! Invariants: nothing here reads or writes anything but its arguments; the same row gives the
//! same bytes, whether a server sent it or a file was read; only `raw`, `json` and `csv` may hand
//! control characters of a record through, every other format escapes them; [`logpond_host::terminal::guard`] lets none
//! of either onto a terminal.

mod row;
mod header;
pub mod journal;
pub mod json;
mod line;
mod pretty;
mod raw;
mod logfmt;
mod cell;
mod csv;
pub mod html;
mod table;
mod bars;
mod sparkline;
pub mod quantity;

use clap::ValueEnum;

pub use bars::{Bar, Bars};
pub use cell::Cells;
#[cfg(feature = "sql")]
pub use cell::defused;
pub use csv::Csv;
pub use pretty::{Spans, Style};
pub use row::{Row, RowError, decode_base64};
pub use sparkline::sparkline;
pub use table::Table;

/// How records are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Local time, level, message, fields; for people.
    Pretty,
    /// UTC time, hostname, app, message, fields; one line a record.
    Line,
    /// The original bytes of the line; control characters are escaped on a terminal.
    #[value(alias = "cat")]
    Raw,
    /// One JSON object a line.
    Json,
    /// key=value pairs.
    Logfmt,
    /// Comma separated values with a header.
    Csv,
    /// One page for a browser: the query, its histogram and its rows.
    Html,
}

/// Turns rows into one format.
pub trait Render {
    /// Appends a row.
    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>);

    /// Appends what separates groups of context.
    fn gap(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"--\n");
    }

    /// Takes what is said of the answer beside its rows, once all of them are there.
    fn conclude(&mut self, _facts: html::Facts) {}

    /// Appends what was held back.
    fn end(&mut self, _out: &mut Vec<u8>) {}
}

/// The renderer of a format; `columns` are the fields of which rows were left with, if any.
pub fn renderer(format: Format, style: Style, columns: &[String]) -> Box<dyn Render> {
    match format {
        Format::Pretty => Box::new(pretty::Pretty::new(style)),
        Format::Line => Box::new(line::Line),
        Format::Raw => Box::new(raw::Raw),
        Format::Json => Box::new(json::Json),
        Format::Logfmt => Box::new(logfmt::Logfmt),
        Format::Html => Box::new(html::Html::new(style.zone)),
        Format::Csv => {
            let are_defused = style.defuses_formulas;
            Box::new(Csv::new(columns, Cells { are_defused }))
        }
    }
}

#[cfg(test)]
mod tests;
