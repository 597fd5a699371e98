//! Access-log formats as web servers are told them: nginx's `log_format`, Apache's `LogFormat`; and as files tell
//! them themselves, see [`listed`].
//!
//! ```text
//! $remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent
//! %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\" %D
//! ```
//!
//! A definition is compiled once into steps; a line is read by taking one step after the other, with
//! nothing allocated on the way. Both languages name what is logged, so fields have types and the
//! names that they have in lines of the formats that need no definition (see [`super::access`]).
//!
//! Invariants:
//! - A line fits a format only as a whole, with a time that is one and numbers that are some.
//! - Steps and their texts are bounded, whatever the definition.
//! - No two slots of a format have the same name.

mod apache;
mod compile;
pub(crate) mod flow;
pub(crate) mod listed;
mod line;
mod nginx;
mod quoting;

use std::fmt;

use logpond_record::limits::FIELD_NAME_BYTES_MAX;

pub(crate) use line::{DerivedFields, Times, host_of};

/// The longest definition in bytes; real ones have a few hundred.
pub const DEFINITION_BYTES_MAX: usize = 4 << 10;

/// The most variables of a format; it bounds the work for a line.
pub const VARIABLES_MAX: usize = 128;

/// A batch's labels of this name, followed by the name of a format, define formats for its lines.
/// They are no fields of records.
pub const LABEL_PREFIX: &str = "_access_log.";

/// A format that lines are read by.
#[derive(Debug)]
pub struct AccessFormat {
    steps: Box<[Step]>,
    escape: Escape,
    /// Whether its lines are JSON objects.
    is_json: bool,
    /// The columns that a file lists itself, instead of steps.
    listed: Option<listed::ColumnList>,
}

/// How a server writes a value that holds a quote or a control character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    /// With a backslash before it, or as `\x22`. The text is kept as it was written.
    Backslash,
    /// As in a JSON string.
    Json,
    /// As it is.
    None,
}

/// What is next in a line.
#[derive(Debug, PartialEq)]
enum Step {
    /// This text.
    Literal(Box<str>),
    /// A value.
    Variable(Variable),
}

/// A value of a line.
#[derive(Debug, PartialEq)]
struct Variable {
    meaning: FieldMeaning,
    end: End,
}

/// What a value is.
#[derive(Debug, PartialEq)]
enum FieldMeaning {
    /// Text; `-` says that there is none.
    Text(Box<str>),
    /// Text; a `-` is its value.
    Plain(Box<str>),
    /// A whole number, or `-`.
    Number(Box<str>),
    /// Text with the time that a request took, as a number of this many nanoseconds.
    Duration(Box<str>, u64),
    /// The record's time, and the slot for it where the record has one already.
    Time(Clock, Box<str>),
    /// Method, target and protocol.
    Request,
    /// Path and query.
    Target,
}

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// `02/Mar/2026:00:00:06 +0000`
    Access,
    /// `2026-03-02T00:00:06+00:00`
    Iso,
    /// In another form that is recognised.
    Other,
}

/// Where a value ends.
#[derive(Debug, PartialEq)]
enum End {
    /// Before the next quote that nothing escapes.
    Quote,
    /// Before this text.
    Text(Box<str>),
    /// Before this text, unless it stands within a list (`a, b : c`).
    List(Box<str>),
    /// With the line.
    Line,
}

/// Why a definition is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// Byte of the definition.
    pub at: usize,
    /// What is wrong there.
    pub reason: FormatReason,
}

/// What is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatReason {
    /// It is longer than [`DEFINITION_BYTES_MAX`].
    TooLong,
    /// It has more than [`VARIABLES_MAX`] variables.
    TooMany,
    /// It names nothing that is logged.
    NoVariables,
    /// It has no time.
    NoTime,
    /// A field that it names would have a name longer than fields may have, or an empty one.
    Name(String),
    /// Nothing stands between two variables, so that none can tell where the first one ends.
    Adjacent(String, String),
    /// A directive of Apache's that is not known.
    Directive(String),
    /// A time format that is not known.
    TimeFormat(String),
    /// A quote or a brace is not closed.
    Unclosed(char),
    /// A character that lines are stored without.
    Mark,
    /// `escape=` with something that nginx does not know.
    EscapeName(String),
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            FormatReason::TooLong => {
                return write!(f, "the format is longer than {DEFINITION_BYTES_MAX} bytes");
            }
            FormatReason::TooMany => {
                return write!(f, "the format has more than {VARIABLES_MAX} variables");
            }
            FormatReason::NoVariables => {
                return f.write_str(
                    "the format has neither variables of nginx ($status) nor directives of \
                     Apache (%s)",
                );
            }
            FormatReason::NoTime => {
                return f.write_str(
                    "the format has no time: add $time_iso8601, $time_local or $msec for nginx, \
                     %t for Apache",
                );
            }
            FormatReason::Name(text) => write!(
                f,
                "{text} names a field of no letters, or of more than {FIELD_NAME_BYTES_MAX} bytes"
            ),
            FormatReason::Adjacent(first, second) => write!(
                f,
                "nothing stands between {first} and {second}, so a line does not say where one \
                 ends: put a space between them"
            ),
            FormatReason::Directive(text) => write!(f, "Apache has no directive {text}"),
            FormatReason::TimeFormat(text) => write!(
                f,
                "times written as {text} are not understood; use %t or %{{%Y-%m-%dT%H:%M:%S%z}}t"
            ),
            FormatReason::Unclosed(mark) => write!(f, "a {mark} is not closed"),
            FormatReason::Mark => f.write_str("⟨ and ⟩ cannot be part of a format"),
            FormatReason::EscapeName(name) => write!(
                f,
                "escape={name} is none of escape=default, escape=json and escape=none"
            ),
        }?;
        write!(f, " (at byte {})", self.at)
    }
}

impl std::error::Error for FormatError {}

impl AccessFormat {
    /// Compiles a definition: the text of a format, or what stands behind the name in
    /// `log_format NAME …;` or `LogFormat …`, quotes and `escape=…` included; or a line `#Fields: …` of W3C's
    /// format, or Zeek's `#fields` with `#types` behind it.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn new(definition: &str) -> Result<AccessFormat, FormatError> {
        if definition.len() > DEFINITION_BYTES_MAX {
            let reason = FormatReason::TooLong;
            return Err(FormatError { at: 0, reason });
        }
        match listed::ColumnList::new(definition) {
            Some(listed) => Ok(AccessFormat {
                steps: Box::default(),
                escape: Escape::None,
                is_json: false,
                listed: Some(listed?),
            }),
            None => compile::compile(definition),
        }
    }

    /// The number of values of its lines, if a file lists them.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.listed.as_ref().map(listed::ColumnList::count)
    }
}

#[cfg(test)]
mod tests;
