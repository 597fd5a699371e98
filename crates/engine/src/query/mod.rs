//! Answers questions over the journal and the segments.
//!
//! Invariants:
//! - Rows leave in the total order `(time, id)`, each exactly once; followed rows leave in the
//!   order of their arrival.
//! - All queries and what is kept for them share one budget of memory ([`logpond_host::memory::Budget`]): a query
//!   takes some of it to begin, asks for more before its tables and lines grow, and is refused where there
//!   is none; what waits for its reader is bounded beside.
//! - A slow reader makes the query wait, a reader that went away ends it.
//! - What could not be read is named in the trailer; it never ends the answer.
//!
//! Everything here blocks and runs on `lp-query-N` threads, which `lp-scan-N` threads help.

mod encode;
mod view;
mod retries;
mod progress;
mod journal_rows;
mod journal_grams;
mod journal_spans;
mod segment_rows;
mod segment_tables;
mod follow;
mod follow_stored;
mod kept;
mod bounded;
mod restricted;
mod spare_threads;
mod aggregates;
mod reads;
mod row_values;
mod rows;
mod neighbours;
mod entry;
mod line_rows;
mod logql;
mod maintenance;
mod columns;
mod copies;
#[cfg(feature = "sql")]
mod sql;
mod files;
mod pond;
mod question;
mod frames;
mod node;
mod next_keys;
mod node_follow;
mod positions;
mod scatter;
mod noted_batches;
mod output;
mod reader;
mod request;
mod surroundings;
mod threads;
mod window;

use std::fmt;

use logpond_record::limits::UNLISTED_FIELD;
use logpond_record::{TimeRange, Timestamp};
use logpond_search::hints::Hint;
use logpond_search::metric::Plan;
use logpond_segment::journal::Damages;

pub use aggregates::{
    AGGREGATES, Aggregate, AnswerColumn, AnyTable, Arguments, ColumnForm, Parameter, ParameterKind,
    Part, TOP_VALUES_MAX, ValueCount,
};
pub use bounded::BudgetedEngine;
pub use columns::{ColumnsQuery, TakeColumns};
pub use encode::{RowParts, write_row};
pub use entry::read_entry;
pub use logpond_search::context::CONTEXT_ROWS_MAX;
pub use logpond_search::order::{Direction, Key};
pub use logql::{Line, LineAnswer, LineQuery, NumberAnswer};
pub use maintenance::Maintenance;
pub use output::{
    CHUNK_BYTES, CHUNKS_MAX, Cancellation, Farewell, Output, Refuses, RewriteStatus, Tap,
};
pub use pond::LocalEngine;
pub use positions::{PositionError, Positions};
pub use question::{Question, QuestionError};
pub use reader::{Chunks, Reader};
pub use request::{CursorError, Scope, Search, cursor_text, parse_cursor};
pub use restricted::{
    AUDIT_STREAM, CONDITION_BYTES_MAX, ConditionError, RestrictedEngine, Restriction, is_plain_name,
};
pub use retries::{copies, originals};
pub use row_values::Visitor;
pub use scatter::{Cluster, Nodes, Unreachable};
pub use segment_rows::{Summary, SummaryKind};
#[cfg(feature = "sql")]
pub use sql::{SqlSource, spill_directory};
pub use threads::{
    FOLLOWERS_MAX, NoThread, QUERIES_MAX, QUERIES_WAITING_MAX, QUERY_WAIT_MAX, QueryPlace,
    QueryPool, Readers, STALLED_MIN,
};

/// Answers queries. Methods block; each call runs on a thread of a [`QueryPool`].
pub trait Engine: Send + Sync + 'static {
    /// Emits the rows of a search.
    ///
    /// # Errors
    /// See [`QueryError`]; rows may have been emitted before.
    fn search(&self, search: &Search, out: &mut Output) -> Result<Trailer, QueryError>;

    /// Fills a table with the records of a scope, and counts them in the trailer.
    ///
    /// # Errors
    /// See [`QueryError`].
    fn table(
        &self,
        scope: &Scope,
        empty: Box<dyn AnyTable>,
        out: &mut Output,
    ) -> Result<(Box<dyn AnyTable>, Trailer), QueryError>;

    /// The lines that a query of LogQL asks for.
    ///
    /// # Errors
    /// See [`QueryError`].
    fn lines(&self, query: &LineQuery, out: &mut Output) -> Result<LineAnswer, QueryError>;

    /// The numbers that a query of LogQL asks for.
    ///
    /// # Errors
    /// See [`QueryError`].
    fn numbers(&self, plan: &Plan, out: &mut Output) -> Result<NumberAnswer, QueryError>;

    /// Hands over rows column by column.
    ///
    /// # Errors
    /// See [`QueryError`]; rows may have been handed over before.
    fn columns(
        &self,
        query: &ColumnsQuery,
        take: TakeColumns<'_>,
        out: &mut Output,
    ) -> Result<Trailer, QueryError>;

    /// Event time of the newest record there is, as far as it is known without reading.
    fn newest(&self) -> Option<Timestamp>;

    /// Losses that no answer will ever have, in words, as far as they are known without asking other nodes. For forms of
    /// answers without a trailer, whose head is sent first.
    fn losses(&self) -> Vec<String>;
}

/// Why a query ended early.
#[derive(Debug)]
pub enum QueryError {
    /// Nobody reads the answer any more, or the process stops.
    Cancelled,
    /// This engine cannot do it; what to do instead.
    Unsupported(&'static str),
    /// What was asked cannot be answered; why, in words.
    Impossible(String),
    /// The disk failed; what was done, in words.
    Disk(String),
    /// There is no memory for it; how much there is and was asked for, in words.
    Memory(String),
}

impl From<Cancellation> for QueryError {
    fn from(_: Cancellation) -> QueryError {
        QueryError::Cancelled
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::Cancelled => f.write_str("the query was cancelled"),
            QueryError::Unsupported(what) => f.write_str(what),
            QueryError::Impossible(what) | QueryError::Disk(what) | QueryError::Memory(what) => {
                f.write_str(what)
            }
        }
    }
}

impl std::error::Error for QueryError {}

/// What is said at the end of an answer.
#[must_use = "an answer without its trailer looks complete"]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trailer {
    /// Rows of the answer; of a table, the records counted in it.
    pub rows: u64,
    /// Bytes read.
    pub bytes_scanned: u64,
    /// Requests to the bucket that the answer took.
    pub bucket_requests: u64,
    /// Bytes that came of them.
    pub bucket_bytes: u64,
    /// What could not be read, in words; the answer is complete if there is nothing.
    pub missing: Vec<String>,
    /// How many things were missing, listed or not.
    pub missing_count: u64,
    /// What is lost for good and no answer will have, in words; it makes no answer incomplete.
    pub lost: Vec<String>,
    /// Nodes that did not answer, or failed at their part. What only they hold is missing.
    pub silent: Vec<String>,
    /// Event time of the newest record there is.
    pub newest: Option<Timestamp>,
    /// Whether the limit kept further rows out.
    pub has_more: bool,
    /// Where the next page begins.
    pub cursor: Option<Key>,
    /// Where a follower may go on, if that was asked for.
    pub position: Option<String>,
    /// Whether the reader went away or the process stopped before the end.
    pub is_cancelled: bool,
    /// The event times that were searched, where the answer says it.
    pub range: Option<TimeRange>,
    /// What was probably meant, if nothing was found.
    pub hints: Vec<Hint>,
}

/// Things named in a trailer at most; further ones are counted.
pub const MISSING_MAX: usize = 100;

impl Trailer {
    /// Names something that could not be read.
    pub fn miss(&mut self, what: impl fmt::Display) {
        self.missing_count += 1;
        if self.missing.len() < MISSING_MAX {
            self.missing.push(what.to_string());
        }
    }

    /// Says that a condition on fields may have missed some of these records: their shapes do not list all
    /// fields of their lines.
    pub(super) fn miss_unlisted(&mut self, records: u64, place: impl fmt::Display) {
        if records > 0 {
            self.miss(format_args!(
                "fields of {records} records in {place} that have too many names to be listed (with {UNLISTED_FIELD}): \
                 look for their text instead"
            ));
        }
    }

    /// Ends an answer of rows: what was sent counts, also if it ended early.
    ///
    /// # Errors
    /// The one given, if nothing was sent.
    pub(super) fn end(&mut self, outcome: Result<(), QueryError>) -> Result<(), QueryError> {
        match outcome {
            Err(error) if self.rows > 0 => {
                self.is_cancelled = matches!(error, QueryError::Cancelled);
                self.miss(error);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Names damaged parts of a journal file.
    pub(super) fn miss_damages(&mut self, damages: &Damages) {
        damages.listed.iter().for_each(|damage| self.miss(damage));
        self.missing_count += damages.count - damages.listed.len() as u64;
    }

    /// Adds what a part of the work counted and could not read.
    pub(super) fn add(&mut self, part: Trailer) {
        self.rows += part.rows;
        self.bytes_scanned += part.bytes_scanned;
        self.miss_too(part);
    }

    /// Names what another trailer misses and this one does not name yet.
    pub(super) fn miss_too(&mut self, other: Trailer) {
        let unlisted = other.missing_count - other.missing.len() as u64;
        for what in other.missing {
            if !self.missing.contains(&what) {
                self.miss(what);
            }
        }
        self.missing_count += unlisted;
    }

    /// The trailer as a line of JSON.
    pub fn to_json(&self, elapsed_ms: f64) -> serde_json::Value {
        let elapsed_ms = (elapsed_ms * 1000.0).round() / 1000.0;
        let mut trailer = serde_json::json!({
            "rows": self.rows,
            "bytes_scanned": self.bytes_scanned,
            "elapsed_ms": elapsed_ms,
            "complete": self.missing_count == 0,
            "missing": self.missing,
            "newest": self.newest.map(|t| t.to_string()),
        });
        if self.missing_count > self.missing.len() as u64 {
            trailer["missing_count"] = self.missing_count.into();
        }
        if self.bucket_requests > 0 {
            trailer["bucket_requests"] = self.bucket_requests.into();
            trailer["bucket_bytes"] = self.bucket_bytes.into();
        }
        if !self.lost.is_empty() {
            trailer["lost"] = self.lost.as_slice().into();
        }
        if !self.silent.is_empty() {
            trailer["silent"] = self.silent.as_slice().into();
        }
        if self.has_more {
            trailer["more"] = true.into();
        }
        if let Some(cursor) = self.cursor {
            trailer["cursor"] = cursor_text(cursor).into();
        }
        if let Some(position) = &self.position {
            trailer["position"] = position.as_str().into();
        }
        if let Some(range) = self.range {
            let bound = |time: Timestamp, open| (time != open).then(|| time.to_string());
            trailer["from"] = bound(range.from, Timestamp::MIN).into();
            trailer["to"] = bound(range.to, Timestamp::MAX).into();
        }
        if !self.hints.is_empty() {
            trailer["hints"] = self.hints.iter().map(hint_json).collect();
        }
        serde_json::json!({ "_trailer": trailer })
    }
}

/// A hint without what it does not have.
fn hint_json(hint: &Hint) -> serde_json::Value {
    let mut json = serde_json::json!({ "message": hint.message });
    let members = [
        ("query", hint.query.clone()),
        ("command", hint.command.clone()),
        ("from", hint.from.map(|time| time.to_string())),
        ("to", hint.to.map(|time| time.to_string())),
    ];
    for (name, text) in members {
        if let Some(text) = text {
            json[name] = text.into();
        }
    }
    json
}
