//! Why a statement has no answer, in few words.

use std::error::Error;
use std::fmt;

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

use crate::hints;

/// Who is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The statement: it is not SQL, names what is not there, or cannot be computed.
    Statement,
    /// Too many statements run already.
    Busy,
    /// The statement needs more memory than there is for it.
    Memory,
    /// Nobody waits for the answer any more.
    Cancelled,
    /// The disk, or a mistake of the program.
    Server,
}

/// A statement has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// Who is to blame.
    pub blame: Blame,
    /// What is wrong, in words.
    pub message: String,
    /// Where in the statement, as line and column from 1 on, if that is known.
    pub place: Option<(u64, u64)>,
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for SqlError {}

impl SqlError {
    /// An error whose place is not known.
    pub fn new(blame: Blame, message: impl Into<String>) -> SqlError {
        SqlError {
            blame,
            message: message.into(),
            place: None,
        }
    }

    /// What an error of the engine says, without what only its makers understand.
    pub(crate) fn of(error: &DataFusionError) -> SqlError {
        let root = error.find_root();
        let (blame, message) = match root {
            DataFusionError::SchemaError(schema, _) => (Blame::Statement, of_schema(schema)),
            DataFusionError::SQL(parser, _) => (Blame::Statement, parser.to_string()),
            DataFusionError::NotImplemented(what)
            | DataFusionError::Plan(what)
            | DataFusionError::Configuration(what)
            | DataFusionError::Execution(what) => (Blame::Statement, what.clone()),
            DataFusionError::ArrowError(error, _) => (Blame::Statement, error.to_string()),
            DataFusionError::ResourcesExhausted(what) => (
                Blame::Memory,
                format!(
                    "the statement needs more memory or disk than there is for statements: {what}; \
                     ask for fewer columns or groups, or a shorter time"
                ),
            ),
            DataFusionError::External(error) => match error.downcast_ref::<SqlError>() {
                Some(known) => return known.clone(),
                None => (Blame::Server, error.to_string()),
            },
            other => (Blame::Server, other.strip_backtrace()),
        };
        let span = error.diagnostic().and_then(|diagnostic| diagnostic.span);
        let place = span.map(|span| (span.start.line, span.start.column));
        let place = place
            .filter(|(line, _)| *line > 0)
            .or_else(|| place_in(&message));
        SqlError {
            blame,
            message: shortened(&message),
            place,
        }
    }
}

fn of_schema(error: &SchemaError) -> String {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => hints::no_column(field, valid_fields),
        other => other.to_string(),
    }
}

/// The place that the parser of SQL names in its words.
fn place_in(message: &str) -> Option<(u64, u64)> {
    let (_, rest) = message.split_once("Line: ")?;
    let (line, rest) = rest.split_once(", Column: ")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    Some((line.parse().ok()?, rest[..digits].parse().ok()?))
}

/// The first lines of a message, without the names of errors that stand before it.
fn shortened(message: &str) -> String {
    let mut text = message.trim();
    for name in [
        "sql parser error: ",
        "ParserError(\"",
        "Error during planning: ",
        "Internal error: ",
    ] {
        text = text.strip_prefix(name).unwrap_or(text);
    }
    let text = text.split("\n\nbacktrace").next().unwrap_or_default();
    let end = "This issue was likely caused by a bug";
    text.split(end).next().unwrap_or_default().trim().to_owned()
}
