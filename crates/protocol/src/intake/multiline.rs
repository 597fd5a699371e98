//! Rules that say which lines belong to one record: traces, statements, documents, messages of several
//! lines.
//!
//! A rule gets the lines of a stream one after the other. Its knowledge of a record is [`Progress`], which
//! depends on the record's own lines and on the evidence before it only. So reading may begin again at any
//! record.

use std::fmt;
use std::sync::Arc;

use super::timestamps::TimeReader;

mod auto;
mod leads;
mod traces;

use auto::AutoState;
pub use auto::{Choice, EVIDENCE_BYTES_MAX, Evidence};
use leads::{begins_with_time, lead};
use traces::Step as TraceStep;

/// The lines that belong together.
#[derive(Clone)]
pub struct Rule(Kind);

#[derive(Clone)]
enum Kind {
    Auto(Arc<TimeReader>),
    StackTrace(Arc<TimeReader>),
    Indent,
    Sql(Arc<TimeReader>),
    Timestamp(Arc<TimeReader>),
    Start(Start),
}

/// A test: true if a line begins a record.
type Start = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// State of a record that is not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// A record whose rule needs no state.
    #[default]
    Plain,
    /// Of a record that may have a trace.
    Trace(traces::State),
    /// Of a record whose rule is decided by the file.
    Auto(AutoState),
    /// The time that an entry of MySQL's log of slow statements begins with.
    SlowTime,
}

/// A line and its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It belongs to the record, which then is in this state.
    Take(Progress),
    /// It belongs to the record if a later line does. The record then is in this state.
    Hold(Progress),
    /// It begins another record.
    Refuse(Hint),
}

/// A part of the work of [`Rule::begin`] that was done for a line before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint(Option<Option<leads::Lead>>);

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Auto(_) => "Auto",
            Kind::StackTrace(_) => "StackTrace",
            Kind::Indent => "Indent",
            Kind::Sql(_) => "Sql",
            Kind::Timestamp(_) => "Timestamp",
            Kind::Start(_) => "Start",
        })
    }
}

impl Rule {
    /// Known shapes, and all lines behind a time or a level if the lines of the file show that records
    /// begin so.
    pub fn auto() -> Rule {
        Rule(Kind::Auto(Arc::new(TimeReader::new())))
    }

    /// Stack traces, and the line before one; documents of several lines; indented lines.
    pub fn stacktrace() -> Rule {
        Rule(Kind::StackTrace(Arc::new(TimeReader::new())))
    }

    /// Lines that begin with a space or a tab belong to the one before.
    pub fn indent() -> Rule {
        Rule(Kind::Indent)
    }

    /// A record begins with a time, or as an entry of MySQL's log of slow statements does.
    pub fn sql() -> Rule {
        Rule(Kind::Sql(Arc::new(TimeReader::new())))
    }

    /// A record begins with a time, in any form that times are read in.
    pub fn timestamp() -> Rule {
        Rule(Kind::Timestamp(Arc::new(TimeReader::new())))
    }

    /// A record begins with a line for which this is true.
    pub fn starting(start: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Rule {
        Rule(Kind::Start(Arc::new(start)))
    }

    /// True if the rule is decided by the lines of the file.
    pub fn is_auto(&self) -> bool {
        matches!(self.0, Kind::Auto(_))
    }

    /// Adds a line to the evidence for a rule that is decided by it.
    pub(super) fn learn(&self, evidence: &mut Evidence, line: &[u8]) {
        if let Kind::Auto(times) = &self.0 {
            evidence.add(times, line);
        }
    }

    /// State of a record from its first line, and the evidence before it.
    pub fn begin(&self, evidence: &Evidence, line: &[u8], hint: Hint) -> Progress {
        match &self.0 {
            Kind::Auto(times) => {
                let lead = hint.0.unwrap_or_else(|| lead(times, line));
                Progress::Auto(auto::begin(evidence, line, lead))
            }
            Kind::StackTrace(_) => Progress::Trace(traces::begin(line)),
            Kind::Sql(_) if line.starts_with(b"# Time:") => Progress::SlowTime,
            _ => Progress::Plain,
        }
    }

    /// Effect of a line on the record before it, which is in this state.
    pub fn continued(&self, progress: Progress, line: &[u8]) -> Step {
        let is_more = match (&self.0, progress) {
            (Kind::Auto(times), Progress::Auto(state)) => {
                return auto::continued(times, state, line);
            }
            (Kind::StackTrace(times), Progress::Trace(state)) => {
                return match traces::continued(state, line) {
                    TraceStep::Take(state) if !begins_with_time(times, line) => {
                        Step::Take(Progress::Trace(state))
                    }
                    TraceStep::Hold(state) if lead(times, line).is_none() => {
                        Step::Hold(Progress::Trace(state))
                    }
                    _ => Step::Refuse(Hint::default()),
                };
            }
            (Kind::StackTrace(_) | Kind::Auto(_) | Kind::Indent, _) => is_indented(line),
            (Kind::Sql(_), Progress::SlowTime) if line.starts_with(b"# User@Host:") => true,
            (Kind::Sql(times), _) => {
                let is_slow = line.starts_with(b"# Time:") || line.starts_with(b"# User@Host:");
                !is_slow && !begins_with_time(times, line)
            }
            (Kind::Timestamp(times), _) => !begins_with_time(times, line),
            (Kind::Start(start), _) => !start(line),
        };
        if is_more {
            Step::Take(Progress::Plain)
        } else {
            Step::Refuse(Hint::default())
        }
    }
}

fn is_indented(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

#[cfg(test)]
mod tests;
