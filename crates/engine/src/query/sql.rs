//! What SQL asks: the records of an engine, whatever nodes they are on.

mod views;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use logpond_record::TimeRange;
use logpond_search::Filter;
use logpond_search::aggregate::Pattern;
use logpond_search::columns::ColumnKind;
use logpond_search::hints::Hint;
use logpond_search::query::{Comparison, FieldTest, SyntaxError};
use logpond_sql::{Blame, PatternRow, Scan, Source, SqlError, Tables, Take, View, ViewField};

use super::{ColumnsQuery, Engine, Output, QueryError, Scope, Trailer};
use logpond_host::shutdown::Shutdown;
use views::{COMPUTED_FIELDS, FORMAT_FIELD, NUMBER_FIELDS, view_field, view_name};

/// Where statements spill, below the data directory.
const SPILL_DIRECTORY: &str = "sql-spill";

/// The rows of the table of patterns.
const PATTERNS_MAX: usize = 10_000;

/// The directory in which statements spill; what a crash has left there is removed.
pub fn spill_directory(data: &Path) -> PathBuf {
    let directory = data.join(SPILL_DIRECTORY);
    // What cannot be removed is in nobody's way: files have names of their own.
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

/// The records of an engine, for one statement.
pub struct SqlSource {
    engine: Arc<dyn Engine>,
    /// Which records there are at all.
    filter: Filter,
    range: TimeRange,
    /// The statement, in lower case.
    statement: String,
    shutdown: Shutdown,
    /// What was read and what could not be, in all scans.
    trailer: Mutex<Trailer>,
}

impl fmt::Debug for SqlSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlSource").finish_non_exhaustive()
    }
}

impl SqlSource {
    /// The records of this engine that are in a scope, for a statement.
    pub fn new(
        engine: Arc<dyn Engine>,
        scope: Scope,
        statement: &str,
        shutdown: Shutdown,
    ) -> SqlSource {
        SqlSource {
            statement: statement.to_ascii_lowercase(),
            engine,
            // The statement may name results of recording rules where this does not.
            filter: logpond_search::query::parse(&scope.text).unwrap_or(scope.filter),
            range: scope.range,
            shutdown,
            trailer: Mutex::default(),
        }
    }

    /// What was read and what could not be, so far.
    pub fn trailer(&self) -> Trailer {
        let trailer = self.trailer.lock();
        trailer.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The tables of access logs: of the well-known formats, and of each that was declared for some
    /// record.
    fn views(&self, out: &mut Output) -> Result<Vec<View>, QueryError> {
        let mut views = vec![views::combined()];
        let everything = Scope::all(TimeRange::ALL);
        let (formats, trailer) = self.engine.label_values(&everything, FORMAT_FIELD, out)?;
        self.add(trailer);
        for format in formats {
            let is_format = FieldTest::Compare(Comparison::Equal, format.as_bytes().into());
            let filter = Filter::field(FORMAT_FIELD, is_format);
            let scope = Scope::of_filter(&filter, TimeRange::ALL);
            let scope = scope.map_err(|error| QueryError::Impossible(error.message))?;
            let (types, trailer) = self.engine.field_types(&scope, true, out)?;
            self.add(trailer);
            let name = view_name(&format, &views);
            // What records beside them have in a field is among the types, too.
            let kind = |name, types| {
                if NUMBER_FIELDS.contains(&name) {
                    ColumnKind::Int
                } else {
                    ColumnKind::of(types)
                }
            };
            let of_lines = types
                .fields()
                .map(|(name, types)| (name, kind(name, types)));
            let mut fields: Vec<ViewField> = of_lines.map(view_field).collect();
            let computed = COMPUTED_FIELDS.into_iter();
            let computed =
                computed.filter(|field| types.fields().all(|(known, _)| known != field.0));
            fields.extend(computed.map(view_field));
            views.push(View {
                name,
                filter,
                fields,
            });
        }
        Ok(views)
    }

    fn add(&self, part: Trailer) {
        let trailer = self.trailer.lock();
        let mut trailer = trailer.unwrap_or_else(PoisonError::into_inner);
        trailer.newest = trailer.newest.max(part.newest);
        trailer.bytes_scanned += part.bytes_scanned;
        for lost in &part.lost {
            if !trailer.lost.contains(lost) {
                trailer.lost.push(lost.clone());
            }
        }
        for silent in &part.silent {
            if !trailer.silent.contains(silent) {
                trailer.silent.push(silent.clone());
            }
        }
        // What two scans could not read is missing once.
        trailer.miss_too(part);
    }
}

impl Source for SqlSource {
    fn tables(&self) -> Result<Tables, SqlError> {
        let (mut out, _reader) = Output::new(self.shutdown.clone());
        let everything = Scope::all(TimeRange::ALL);
        let types = self.engine.field_types(&everything, false, &mut out);
        let (fields, trailer) = types.map_err(failed)?;
        self.add(trailer);
        let mut views = if views::may_mean_formats(&self.statement) {
            self.views(&mut out).map_err(failed)?
        } else {
            Vec::new()
        };
        for view in views::fixed(&self.statement) {
            // A format that somebody declared may have the name.
            if views.iter().all(|known| known.name != view.name) {
                views.push(view);
            }
        }
        Ok(Tables { fields, views })
    }

    fn patterns(&self) -> Result<Vec<PatternRow>, SqlError> {
        let (mut out, _reader) = Output::new(self.shutdown.clone());
        let scope = Scope::of_filter(&self.filter, self.range).map_err(too_long)?;
        // One step has all records.
        let steps = (self.range, i64::MAX);
        let found = self.engine.patterns(&scope, steps, PATTERNS_MAX, &mut out);
        let (answer, trailer) = found.map_err(failed)?;
        self.add(trailer);
        let left_out = answer.distinct.saturating_sub(answer.patterns.len() as u64);
        if left_out > 0 {
            self.note(format!(
                "the table of patterns has the {PATTERNS_MAX} most frequent ones, and not {left_out} others"
            ));
        }
        Ok(answer.patterns.into_iter().map(pattern_row).collect())
    }

    fn note(&self, message: String) {
        let hint = Hint {
            message,
            query: None,
            command: None,
            from: None,
            to: None,
        };
        let trailer = self.trailer.lock();
        let mut trailer = trailer.unwrap_or_else(PoisonError::into_inner);
        trailer.hints.push(hint);
    }

    fn scan(&self, scan: &Scan, take: Arc<dyn Take>) -> Result<(), SqlError> {
        let filter = Filter::and([self.filter.clone(), scan.filter.clone()]);
        let range = TimeRange {
            from: scan.range.from.max(self.range.from),
            to: scan.range.to.min(self.range.to),
        };
        if range.from >= range.to {
            return Ok(());
        }
        let scope = Scope::of_filter(&filter, range).map_err(too_long)?;
        let query = ColumnsQuery {
            scope,
            columns: Arc::clone(&scan.columns),
            order: scan.order,
            limit: scan.limit,
        };
        let (mut out, _reader) = Output::new(self.shutdown.clone());
        let wanted = Arc::clone(&take);
        out.wanted_while(move || wanted.is_wanted());
        let rows = |columns| take.take(columns);
        match self.engine.columns(&query, &rows, &mut out) {
            Ok(trailer) => self.add(trailer),
            // What was wanted is there, or nobody wants it any more.
            Err(QueryError::Cancelled) if !take.is_wanted() => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(())
    }
}

fn failed(error: QueryError) -> SqlError {
    let blame = match &error {
        QueryError::Memory(_) => Blame::Memory,
        _ => Blame::Server,
    };
    SqlError::new(blame, error.to_string())
}

/// Conditions that are more than a filter may be.
fn too_long(error: SyntaxError) -> SqlError {
    SqlError::new(Blame::Server, error.message)
}

/// A pattern as a row of its table.
fn pattern_row(pattern: Pattern) -> PatternRow {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let sample = pattern.samples.first();
    PatternRow {
        pattern: text(&pattern.text),
        level: (!pattern.level.is_empty()).then(|| text(&pattern.level)),
        count: pattern.count,
        sample: sample.map(|sample| (sample.time.0, text(&sample.text))),
    }
}
