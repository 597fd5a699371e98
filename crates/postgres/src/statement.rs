//! A statement that runs: its work on a thread of queries, and its answer as messages on the way to the client.
//!
//! Invariant: a chunk of an answer has whole messages. The last one is an error, or the end of the command; an answer that
//! ends without either was broken off.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, Bytes};
use logpond_engine::audit::AuditedEngine;
use logpond_engine::query::{Chunks, Engine, QueryError, Scope, SqlSource, Trailer};
use logpond_http::StatementRun;
use logpond_record::TimeRange;
use logpond_sql::arrow::datatypes::DataType;
use logpond_sql::arrow::error::ArrowError;
use logpond_sql::{
    Answer, Blame, Dialect, Memory, PostgresSession, RecordBatch, Request, SchemaRef, Source,
    SqlError, Stop, postgres_type,
};

use crate::encoding::{RowEncoder, columns};
use crate::failure::{Code, Failure};
use crate::settings::Incompleteness;
use crate::values::TEXT_OID;
use crate::wire::{self, ColumnDescription};

/// Things that an error lists which are missing; others are counted.
const LISTED_MAX: usize = 10;

/// A statement as it is to be run.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) text: String,
    /// The forms of the columns.
    pub(crate) formats: Vec<i16>,
    pub(crate) session: Arc<PostgresSession>,
    pub(crate) incompleteness: Incompleteness,
    /// The types of the columns that the client was told of before.
    pub(crate) expected: Option<Vec<u32>>,
    /// True if only columns and parameters are wanted.
    pub(crate) describes: bool,
}

/// Runs a statement, and sends its answer.
pub(crate) fn work(run: StatementRun, question: Question) {
    let mut reply = Reply {
        run,
        formats: question.formats.clone(),
        expected: question.expected.clone(),
        columns: Vec::new(),
        failure: None,
    };
    let end = reply.answer(&question);
    let out = reply.run.output();
    // A client that is gone needs no end.
    let _ = out.append(|chunk| chunk.extend_from_slice(&end));
    let _ = out.flush();
}

/// An answer on its way out.
struct Reply {
    run: StatementRun,
    formats: Vec<i16>,
    expected: Option<Vec<u32>>,
    columns: Vec<ColumnDescription>,
    /// Why there are no more rows, if the answer itself is the reason.
    failure: Option<Failure>,
}

impl Reply {
    /// Runs a statement; gives the last messages of its answer.
    fn answer(&mut self, question: &Question) -> Vec<u8> {
        let started = Instant::now();
        let app = Arc::clone(self.run.app());
        let trail = app.trail_of_statement(&question.text);
        let engine: Arc<dyn Engine> = match &trail {
            Some(trail) => Arc::new(AuditedEngine::new(app.engine.clone(), Arc::clone(trail))),
            None => app.engine.clone(),
        };
        let shutdown = app.shutdown.clone();
        let scope = Scope::all(TimeRange::ALL);
        let source = Arc::new(SqlSource::new(engine, scope, &question.text, shutdown));
        let result = match self.run.begin() {
            Ok(()) => self.run_by(&app, question, source.clone()),
            Err(error) => Err(refusal(&error)),
        };
        app.metrics.query_ns.observe_duration(started.elapsed());
        let trailer = source.trailer();
        app.metrics.query_bytes.add(trailer.bytes_scanned);
        if let Some(trail) = &trail {
            trail.answered(if result.is_ok() { 200 } else { 400 });
        }
        let mut end = Vec::new();
        match result {
            Ok(()) => put_end(&trailer, question, &mut end),
            Err(failure) => {
                let is_cancelled = failure.code == Code::Cancelled;
                app.metrics.queries_cancelled.add(u64::from(is_cancelled));
                failure.put(&mut end, false);
            }
        }
        end
    }

    fn run_by(
        &mut self,
        app: &logpond_http::App,
        question: &Question,
        source: Arc<dyn Source>,
    ) -> Result<(), Failure> {
        let Some(sql) = &app.sql else {
            let message = "this server does not answer SQL";
            return Err(Failure::new(Code::FeatureNotSupported, message));
        };
        let request = Request {
            text: question.text.clone(),
            dialect: Dialect::Postgres(Arc::clone(&question.session)),
            describes: question.describes,
        };
        let result = sql.answer(request, source, self);
        result.map_err(|error| self.explained(error, &question.text))
    }

    /// An error, or its reason if the statement was only cancelled for it.
    fn explained(&mut self, mut error: SqlError, text: &str) -> Failure {
        if let Some(failure) = self.failure.take() {
            return failure;
        }
        if let (Blame::Cancelled, Some(want)) = (error.blame, self.run.want_of_memory()) {
            error.blame = Blame::Memory;
            error.message = want;
        }
        Failure::of_engine(&error, text)
    }

    fn fail(&mut self, error: &ArrowError) -> Stop {
        let message = format!("a value has no form of Postgres: {error}");
        self.failure = Some(Failure::new(Code::FeatureNotSupported, message));
        Stop
    }
}

fn refusal(error: &QueryError) -> Failure {
    let code = match error {
        QueryError::Memory(_) => Code::OutOfMemory,
        QueryError::Cancelled => Code::Cancelled,
        _ => Code::Internal,
    };
    Failure::new(code, error.to_string())
}

/// Appends what is to be said of an answer, and its end.
fn put_end(trailer: &Trailer, question: &Question, end: &mut Vec<u8>) {
    for hint in &trailer.hints {
        Failure::new(Code::Warning, hint.message.clone()).put_notice(end, "NOTICE");
    }
    for lost in trailer.lost.iter().take(LISTED_MAX) {
        let message = format!("lost for good: {lost}");
        Failure::new(Code::Incomplete, message).put_notice(end, "WARNING");
    }
    if trailer.missing_count > 0 {
        let failure = incomplete(trailer);
        if question.incompleteness == Incompleteness::Error {
            let hint = "SET logpond.incomplete = 'warning' to have the rows with a warning";
            return failure.hint(hint).put(end, false);
        }
        failure.put_notice(end, "WARNING");
    }
    wire::put_complete(end, "");
}

/// The words for an answer that is not complete.
fn incomplete(trailer: &Trailer) -> Failure {
    let listed: Vec<&str> = trailer
        .missing
        .iter()
        .take(LISTED_MAX)
        .map(String::as_str)
        .collect();
    let mut message = format!("the answer is not complete: {}", listed.join("; "));
    let listed = u64::try_from(listed.len()).unwrap_or(u64::MAX);
    let others = trailer.missing_count.saturating_sub(listed);
    if others > 0 {
        message.push_str(&format!("; and {others} more"));
    }
    Failure::new(Code::Incomplete, message)
}

impl Answer for Reply {
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Stop> {
        self.columns = columns(schema, &self.formats);
        let found = self.columns.iter().map(|column| column.oid);
        let expected = self.expected.as_ref();
        if expected.is_some_and(|expected| !expected.iter().copied().eq(found)) {
            let message = "cached plan must not change result type";
            self.failure = Some(Failure::new(Code::FeatureNotSupported, message));
            return Err(Stop);
        }
        let columns = &self.columns;
        let out = self.run.output();
        let sent = out.append(|chunk| wire::put_columns(chunk, columns));
        // The client waits for the columns.
        sent.and_then(|()| out.flush()).map_err(|_| Stop)
    }

    fn parameters(&mut self, types: Vec<(String, Option<DataType>)>) -> Result<(), Stop> {
        let number = |name: &str| name.trim_start_matches('$').parse::<usize>().ok();
        let numbered = types
            .iter()
            .filter_map(|(name, kind)| Some((number(name)?, kind)));
        let numbered: Vec<(usize, &Option<DataType>)> = numbered.collect();
        let count = numbered
            .iter()
            .map(|(number, _)| *number)
            .max()
            .unwrap_or(0);
        let mut oids = vec![TEXT_OID; count.min(wire::FORMATS_MAX)];
        for (number, kind) in numbered {
            let place = number.checked_sub(1).and_then(|at| oids.get_mut(at));
            if let (Some(place), Some(kind)) = (place, kind) {
                let (found, is_list) = postgres_type(kind);
                *place = if is_list { found.list_oid } else { found.oid };
            }
        }
        let sent = self.run.output();
        let sent = sent.append(|chunk| wire::put_parameter_types(chunk, &oids));
        sent.map_err(|_| Stop)
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Stop> {
        let encoder = RowEncoder::new(batch, &self.columns);
        let encoder = encoder.map_err(|error| self.fail(&error))?;
        for row in 0..encoder.rows() {
            let mut encoded = Ok(());
            let out = self.run.output();
            let sent = out.append(|chunk| {
                let before = chunk.len();
                encoded = encoder.put(row, chunk);
                if encoded.is_err() {
                    chunk.truncate(before);
                }
            });
            encoded.map_err(|error| self.fail(&error))?;
            sent.map_err(|_| Stop)?;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), Stop> {
        self.run.output().check().map_err(|_| Stop)
    }

    fn wait(&mut self) -> Result<(), Stop> {
        self.run.wait().map_err(|_| Stop)
    }

    fn memory(&self) -> Option<Arc<dyn Memory>> {
        self.run.memory()
    }
}

/// A part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AnswerPart {
    /// The types of parameters.
    Parameters(Bytes),
    /// The columns.
    Columns(Bytes),
    /// Rows, and their number.
    Rows(Bytes, u64),
    /// A notice.
    Notice(Bytes),
    /// The error that ends the answer.
    Failed(Bytes),
    /// The end of an answer with all its rows.
    Complete,
}

/// The answer of a statement, on the side of the client. Dropped, it ends the statement.
#[derive(Debug)]
pub(crate) struct RunningStatement {
    pub(crate) chunks: Chunks,
    pending: Bytes,
}

impl RunningStatement {
    pub(crate) fn new(chunks: Chunks) -> RunningStatement {
        RunningStatement {
            chunks,
            pending: Bytes::new(),
        }
    }

    /// Takes a chunk of the answer.
    pub(crate) fn add(&mut self, chunk: Bytes) {
        self.pending = chunk;
    }

    /// The next part, with at most so many rows; `None` if a chunk is needed.
    pub(crate) fn next(&mut self, rows_max: u64) -> Option<AnswerPart> {
        part(&mut self.pending, rows_max)
    }
}

/// Takes the next part of some messages.
fn part(pending: &mut Bytes, rows_max: u64) -> Option<AnswerPart> {
    let kind = *pending.first()?;
    if kind == b'D' {
        let (mut end, mut count) = (0, 0);
        while count < rows_max && pending.get(end) == Some(&b'D') {
            end += length(pending, end)?;
            count += 1;
        }
        return Some(AnswerPart::Rows(
            pending.split_to(end.min(pending.len())),
            count,
        ));
    }
    let whole = length(pending, 0)?.min(pending.len());
    let message = pending.split_to(whole);
    Some(match kind {
        b't' => AnswerPart::Parameters(message),
        b'T' => AnswerPart::Columns(message),
        b'N' => AnswerPart::Notice(message),
        b'E' => AnswerPart::Failed(message),
        _ => AnswerPart::Complete,
    })
}

/// The length of the message at a place, with its letter.
fn length(bytes: &Bytes, at: usize) -> Option<usize> {
    let length: [u8; 4] = bytes.get(at + 1..at + 5)?.try_into().ok()?;
    Some(usize::try_from(u32::from_be_bytes(length)).ok()? + 1)
}

/// The types in a message of parameters.
pub(crate) fn parameter_types(message: &Bytes) -> Vec<u32> {
    let mut rest = message.clone();
    // A letter, a length and a count are before them.
    if rest.len() < 7 {
        return Vec::new();
    }
    rest.advance(7);
    let mut types = Vec::with_capacity(rest.len() / 4);
    while rest.len() >= 4 {
        types.push(rest.get_u32());
    }
    types
}

/// The types in a message of columns.
pub(crate) fn column_types(message: &Bytes) -> Vec<u32> {
    /// Bytes of a column behind its name and before its type.
    const BEFORE: usize = 6;
    /// Bytes behind its type.
    const BEHIND: usize = 8;
    let mut rest = message.clone();
    let mut types = Vec::new();
    if rest.len() < 7 {
        return types;
    }
    rest.advance(7);
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        if rest.len() < end + 1 + BEFORE + 4 + BEHIND {
            break;
        }
        rest.advance(end + 1 + BEFORE);
        types.push(rest.get_u32());
        rest.advance(BEHIND);
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_by_number() {
        let mut bytes = Vec::new();
        for row in 0..5_u8 {
            wire::put(&mut bytes, b'D', |out| out.push(row));
        }
        wire::put_complete(&mut bytes, "");
        let mut pending = Bytes::from(bytes);
        let mut counts = Vec::new();
        while let Some(AnswerPart::Rows(rows, count)) = part(&mut pending, 2) {
            assert_eq!(rows.len() as u64, count * 6);
            counts.push(count);
        }
        assert_eq!(counts, [2, 2, 1]);
        assert_eq!(part(&mut pending, 2), None);
    }

    #[test]
    fn types_are_read_again() {
        let mut bytes = Vec::new();
        wire::put_parameter_types(&mut bytes, &[20, 25]);
        assert_eq!(parameter_types(&Bytes::from(bytes)), [20, 25]);
        let column = |name: &str, oid| ColumnDescription {
            name: name.to_owned(),
            oid,
            bytes: -1,
            is_binary: false,
        };
        let mut bytes = Vec::new();
        wire::put_columns(&mut bytes, &[column("time", 1184), column("n", 20)]);
        assert_eq!(column_types(&Bytes::from(bytes)), [1184, 20]);
    }
}
