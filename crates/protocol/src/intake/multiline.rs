//! Rules that say which lines belong to one record: stack traces, statements, whatever follows a line
//! that begins one.
//!
//! A rule sees the lines of a stream one after the other. What it knows of a record is its
//! [`Progress`], which depends on the record's own lines only: so reading may begin again at any
//! record.

use std::fmt;
use std::sync::Arc;

use logpond_record::Timestamp;

use super::timestamps::TimeReader;

mod stacktrace;

/// The receive time that lines without a year are read with; whether they begin with a time is all
/// that is asked.
const RECEIVED: Timestamp = Timestamp(1_772_409_600_000_000_000);

/// Which lines belong together.
#[derive(Clone)]
pub struct Rule(Kind);

#[derive(Clone)]
enum Kind {
    StackTrace,
    Indent,
    Sql(Arc<TimeReader>),
    Timestamp(Arc<TimeReader>),
    Start(Start),
}

/// Whether a line begins a record.
type Start = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// What is known of a record that is not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// Nothing that matters.
    #[default]
    Plain,
    /// Of a stack trace.
    Trace(stacktrace::State),
    /// The time that an entry of MySQL's log of slow statements begins with.
    SlowTime,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::StackTrace => "StackTrace",
            Kind::Indent => "Indent",
            Kind::Sql(_) => "Sql",
            Kind::Timestamp(_) => "Timestamp",
            Kind::Start(_) => "Start",
        })
    }
}

impl Rule {
    /// Stack traces, and the line before one, of Java, .NET, Python, Go, Ruby, Node.js, PHP and Rust.
    pub fn stacktrace() -> Rule {
        Rule(Kind::StackTrace)
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

    /// What is known of a record from its first line.
    pub fn begin(&self, line: &[u8]) -> Progress {
        match &self.0 {
            Kind::StackTrace => Progress::Trace(stacktrace::begin(line)),
            Kind::Sql(_) if line.starts_with(b"# Time:") => Progress::SlowTime,
            _ => Progress::Plain,
        }
    }

    /// Whether a line belongs to the record so far, which then is this far.
    pub fn continued(&self, progress: Progress, line: &[u8]) -> Option<Progress> {
        let is_more = match (&self.0, progress) {
            (Kind::StackTrace, Progress::Trace(state)) => {
                return stacktrace::continued(state, line).map(Progress::Trace);
            }
            (Kind::StackTrace | Kind::Indent, _) => is_indented(line),
            (Kind::Sql(_), Progress::SlowTime) if line.starts_with(b"# User@Host:") => true,
            (Kind::Sql(times), _) => {
                let is_slow = line.starts_with(b"# Time:") || line.starts_with(b"# User@Host:");
                !is_slow && !begins_with_time(times, line)
            }
            (Kind::Timestamp(times), _) => !begins_with_time(times, line),
            (Kind::Start(start), _) => !start(line),
        };
        is_more.then_some(Progress::Plain)
    }
}

fn begins_with_time(times: &TimeReader, line: &[u8]) -> bool {
    !is_indented(line) && times.is_at_start(line, RECEIVED)
}

fn is_indented(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

#[cfg(test)]
mod tests;
