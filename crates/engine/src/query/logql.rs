//! LogQL: lines through pipelines, and numbers of them.
//!
//! What a query requires of records is a filter, so that it is answered from indexes and columns; lines
//! that are left come in order, and the stages run where the answer is put together. Numbers come from
//! tables that all nodes fill.

use std::borrow::Cow;
use std::collections::BTreeMap;

use logpond_record::{TimeRange, Timestamp};
use logpond_search::logql::{LogQuery, NamedLabels, filter_of};
use logpond_search::metric::{Answer, EvaluationError, Plan, RangeTable};
use logpond_search::order::{Direction, Key};
use logpond_search::pipeline::{ERROR, ERROR_DETAILS, LABELS_MAX, Origin, Pipeline, Work};
use logpond_search::{Filter, allocated};

use super::journal_rows::Row;
use super::output::Output;
use super::reads::Reads;
use super::restricted::Restriction;
use super::{QueryError, Scope, Search, Trailer, line_rows};
use logpond_host::memory::Charge;

/// The most memory that the lines of an answer take.
const LINES_BYTES_MAX: usize = 256 << 20;

/// Lines that are wanted.
#[derive(Debug)]
pub struct LineQuery {
    /// Which lines, and what is done with them.
    pub log: LogQuery,
    /// Their times.
    pub range: TimeRange,
    /// How many at most.
    pub limit: u64,
    /// In which order.
    pub direction: Direction,
    /// Only lines behind this place.
    pub behind: Option<Key>,
    /// How far apart in time the lines of the answer are at least, in nanoseconds; those between are
    /// passed over.
    pub interval_ns: u64,
    /// The time of the query, for templates.
    pub now: Timestamp,
    /// The condition that lines have to meet beside; [`Filter::All`] if there is none.
    pub only: Filter,
}

impl LineQuery {
    /// The same query for lines that may be read.
    pub(super) fn within(&self, restriction: &Restriction) -> LineQuery {
        let filter = filter_of(&self.log);
        LineQuery {
            log: self.log.clone(),
            only: Filter::and([
                self.only.clone(),
                restriction.beside(filter.names_rule_results()),
            ]),
            ..*self
        }
    }
}

/// A line of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its place in the order of all lines.
    pub key: Key,
    /// The line, as the pipeline made it.
    pub line: Vec<u8>,
    /// Its labels with where they come from, in the order of their names; errors are among them.
    pub labels: Vec<(Box<str>, Box<str>, Origin)>,
}

impl Line {
    /// A line as a pipeline made it.
    pub fn of(key: Key, work: &Work<'_>) -> Line {
        let errors = [ERROR, ERROR_DETAILS].into_iter();
        let errors = errors.filter_map(|name| Some((name, work.labels.get(name)?, Origin::Parsed)));
        let labels = work.labels.iter().chain(errors);
        let mut labels: Vec<(Box<str>, Box<str>, Origin)> = labels
            .map(|(name, value, origin)| (name.into(), value.into(), origin))
            .collect();
        labels.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Line {
            key,
            line: work.line.to_vec(),
            labels,
        }
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        let labels = self.labels.iter();
        let texts: usize = labels
            .map(|(name, value, _)| allocated(name.len()) + allocated(value.len()))
            .sum();
        let list = allocated(self.labels.capacity() * size_of::<(Box<str>, Box<str>, Origin)>());
        // The list of lines grows to twice as many.
        2 * size_of::<Line>() + allocated(self.line.capacity()) + texts + list
    }
}

/// The answer to a query for lines.
#[derive(Clone, Debug, Default)]
pub struct LineAnswer {
    /// Lines in the order that was asked for.
    pub lines: Vec<Line>,
    /// What users should know.
    pub warnings: Vec<String>,
    /// How the answer was made and what it lacks. Its cursor is that of the last line.
    pub trailer: Trailer,
}

/// The answer to a query for numbers.
#[derive(Clone, Debug)]
pub struct NumberAnswer {
    /// The numbers.
    pub answer: Answer,
    /// What users should know.
    pub warnings: Vec<String>,
    /// How the answer was made and what it lacks.
    pub trailer: Trailer,
}

/// Answers a query for lines.
pub(super) fn lines(
    reads: &impl Reads,
    query: &LineQuery,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<LineAnswer, QueryError> {
    let pipeline = Pipeline::new(&query.log.stages, query.now.0);
    let pipeline = pipeline.map_err(QueryError::Impossible)?;
    let filter = Filter::and([filter_of(&query.log), query.only.clone()]);
    let scope = scope_of(&filter, query.range)?;
    let mut search = Search::new(scope);
    search.direction = query.direction;
    search.behind = query.behind;
    search.labels = Some(Box::new(NamedLabels::of(&query.log)));
    if pipeline.is_empty() && query.interval_ns == 0 {
        // One more tells whether there are more.
        search.limit = Some(query.limit.saturating_add(1));
    }
    let mut run = Run {
        query,
        pipeline: &pipeline,
        answer: LineAnswer::default(),
        bytes: 0,
        charge: out.charge(),
        labels: Work::new(),
        errors: BTreeMap::new(),
        cut_lines: 0,
    };
    reads.each_row(&search, out, trailer, &mut |row, out, trailer| {
        out.check()?;
        let goes_on = run.take(row, trailer)?;
        out.take(&mut run.charge, run.bytes)?;
        Ok(goes_on)
    })?;
    // Until they have been sent.
    run.charge.leave();
    run.answer.warnings = warnings(run.errors.iter().map(|(error, count)| (*error, *count)));
    run.answer.warnings.extend(warning_of_cut(run.cut_lines));
    Ok(run.answer)
}

struct Run<'q> {
    query: &'q LineQuery,
    pipeline: &'q Pipeline,
    answer: LineAnswer,
    bytes: usize,
    charge: Charge,
    /// Memory that is used again for each line.
    labels: Work<'static>,
    errors: BTreeMap<&'static str, u64>,
    /// Lines with labels that were left out, those of no use to the query among them.
    cut_lines: u64,
}

impl Run<'_> {
    /// Runs a line through the pipeline; says whether further ones are wanted.
    fn take(&mut self, (key, row, _): Row, trailer: &mut Trailer) -> Result<bool, QueryError> {
        let mut work = Work {
            time_ns: key.time.0,
            line: Cow::Borrowed(&b""[..]),
            labels: std::mem::take(&mut self.labels.labels),
            scratch: std::mem::take(&mut self.labels.scratch),
        };
        let line = line_rows::read(&row, &mut work.labels);
        let line = line.map_err(|error| QueryError::Impossible(error.to_string()))?;
        work.line = Cow::Borrowed(line);
        let is_wanted = !self.is_too_near(key.time) && self.pipeline.run(&mut work);
        self.cut_lines += u64::from(work.labels.is_cut());
        let goes_on = if !is_wanted {
            true
        } else if self.answer.lines.len() as u64 == self.query.limit {
            trailer.has_more = true;
            false
        } else {
            self.keep(key, &work)?;
            trailer.rows += 1;
            trailer.cursor = Some(key);
            true
        };
        (self.labels.labels, self.labels.scratch) = (work.labels, work.scratch);
        Ok(goes_on)
    }

    /// Whether a line follows the last one of the answer too soon, or of the page before.
    fn is_too_near(&self, time: Timestamp) -> bool {
        let last = self.answer.lines.last().map(|line| line.key);
        last.or(self.query.behind)
            .is_some_and(|last| last.time.0.abs_diff(time.0) < self.query.interval_ns)
    }

    fn keep(&mut self, key: Key, work: &Work<'_>) -> Result<(), QueryError> {
        if let Some((error, _)) = work.labels.error()
            && !work.labels.is_cut()
        {
            *self.errors.entry(error.as_str()).or_default() += 1;
        }
        let line = Line::of(key, work);
        self.bytes += line.bytes();
        if self.bytes > LINES_BYTES_MAX {
            return Err(QueryError::Impossible(format!(
                "the lines of the answer need more than {} MiB of memory: take a smaller limit",
                LINES_BYTES_MAX >> 20
            )));
        }
        self.answer.lines.push(line);
        Ok(())
    }
}

/// Answers a query for numbers.
pub(super) fn numbers(
    reads: &impl Reads,
    plan: &Plan,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<NumberAnswer, QueryError> {
    let mut tables = Vec::new();
    let mut errors: BTreeMap<&'static str, u64> = BTreeMap::new();
    for (leaf, filter) in plan.leaves().iter().zip(plan.filters()) {
        let scope = scope_of(filter, leaf.range())?;
        let empty = RangeTable::new(std::sync::Arc::clone(leaf));
        let table = reads.table(&scope, &empty, out, trailer)?;
        for (error, count) in table.errors() {
            *errors.entry(error).or_default() += count;
        }
        tables.push(table);
    }
    let answer = plan.evaluate(tables, || out.check().is_ok());
    Ok(NumberAnswer {
        answer: answer.map_err(|error| match error {
            EvaluationError::Unwanted => QueryError::Cancelled,
            error => QueryError::Impossible(error.to_string()),
        })?,
        warnings: warnings(errors.into_iter()),
        trailer: Trailer::default(),
    })
}

fn scope_of(filter: &Filter, range: TimeRange) -> Result<Scope, QueryError> {
    Scope::of_filter(filter, range).map_err(|error| QueryError::Impossible(error.to_string()))
}

/// That labels of some lines were left out.
fn warning_of_cut(lines: u64) -> Option<String> {
    let (subject, verb) = match lines {
        0 => return None,
        1 => ("line", "has"),
        _ => ("lines", "have"),
    };
    Some(format!(
        "{lines} {subject} {verb} more than {LABELS_MAX} labels; the others are left out, and conditions on them \
         find nothing: name labels in the parser, such as | json a=\"a\""
    ))
}

/// What stages could not do with some lines.
fn warnings(errors: impl Iterator<Item = (&'static str, u64)>) -> Vec<String> {
    let described = errors.filter(|(_, count)| *count > 0).map(|(error, count)| {
        let lines = if count == 1 { "line" } else { "lines" };
        let advice = match error {
            "SampleExtractionErr" => " left out: add | __error__=\"\" to do so without a warning",
            _ => ": add | __error__=\"\" to leave them out, or | drop __error__ to take them as they are",
        };
        format!("{count} {lines} with __error__=\"{error}\"{advice}")
    });
    described.collect()
}
