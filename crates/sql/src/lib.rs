//! Questions in SQL.
//!
//! DataFusion plans and computes; the records come from a [`Source`], which is given the columns, the
//! condition, the order and the number of rows that are wanted, so that next to nothing is read in
//! vain:
//!
//! ```text
//! text ─▶ statement (may it be run?) ─▶ plan ─▶ table ─▶ pushdown ─▶ Scan ─▶ Source
//!                                         ▲                                    │ Columns
//!          format ◀─ batches ◀─ engine ◀──┴────────── arrays ◀─────────────────┘
//! ```
//!
//! Invariants:
//! - Nothing is changed, and no file is opened but what is spilled: statements that do something else
//!   than ask are refused by their kind.
//! - Memory and spilled bytes are bounded for all statements together, scans and what functions make for
//!   each of them.
//! - A statement that nobody waits for ends soon, whatever it computes.
//! - A condition is left to the source alone only where both decide alike; elsewhere DataFusion decides
//!   again.
#![cfg(feature = "engine")]

mod source;
mod layout;
mod arrays;
mod pushdown;
mod summaries;
mod table;
mod scan;
mod statement;
mod shown;
mod similar;
mod sums;
mod texts_of_times;
mod turns;
mod mixed;
mod moving;
mod number_key;
mod postgres;
mod overflow;
mod percentiles;
mod bounded;
mod casts;
mod checkpoint;
mod copies;
mod durations;
mod encoding;
mod engine;
mod exchange;
mod format;
mod frames;
mod hints;
mod lists;
mod error;

pub use datafusion::arrow;
pub use datafusion::arrow::datatypes::SchemaRef;
pub use datafusion::arrow::record_batch::RecordBatch;
pub use encoding::Rewrite;
pub use engine::{
    Answer, Dialect, MEMORY_BYTES_MAX, Request, SILENCE_MAX, SPILL_BYTES_MAX, Sql, Stop,
};
pub use error::{Blame, SqlError};
pub use format::{Format, Writer};
pub use postgres::{
    DATABASE, PostgresSession, PostgresType, of_arrow as postgres_type, shown_name,
};
pub use source::{Memory, PatternRow, Scan, Source, Tables, Take, View, ViewField};
pub use statement::STATEMENT_BYTES_MAX;
pub use turns::{STATEMENT_WAIT_MAX, STATEMENTS_MAX, STATEMENTS_WAITING_MAX};

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/sql.md` says the limits that there are.
    #[test]
    fn the_page_has_the_limits() {
        let page = include_str!("../../../docs/sql.md");
        let rows = [
            (
                "length of a statement",
                format!("{} KiB", STATEMENT_BYTES_MAX >> 10),
            ),
            (
                "words and operators in it",
                statement::PARTS_MAX.to_string(),
            ),
            ("depth of its parts", statement::DEPTH_MAX.to_string()),
            ("tables that it reads", table::SCANS_MAX.to_string()),
            (
                "statements at a time; more wait",
                STATEMENTS_MAX.to_string(),
            ),
            (
                "statements that wait until one has ended",
                STATEMENTS_WAITING_MAX.to_string(),
            ),
            (
                "how long one waits",
                format!("{} s", STATEMENT_WAIT_MAX.as_secs()),
            ),
            (
                "time without a further row, but for that of a slow reader",
                format!("{} minutes", SILENCE_MAX.as_secs() / 60),
            ),
            (
                "memory of all of them for sorting, grouping and joining",
                format!("{} MiB", MEMORY_BYTES_MAX >> 20),
            ),
            (
                "results of all functions of a statement for 2048 rows; texts and lists count",
                format!("{} MiB", bounded::RESULT_BYTES_MAX >> 20),
            ),
            (
                "a list that a join copies with each row",
                format!("{} KiB", copies::LIST_BYTES_MAX >> 10),
            ),
            (
                "what they spill, below `sql-spill` in the data directory",
                format!("{} GiB", SPILL_BYTES_MAX >> 30),
            ),
        ];
        for (what, limit) in rows {
            let row = format!("| {what} | {limit} |");
            assert!(page.contains(&row), "docs/sql.md lacks {row}");
        }
    }
}
