//! Errors and notices as clients get them, and their codes (SQLSTATE).

use logpond_listen::tokens::Refusal;
use logpond_sql::{Blame, SqlError};

use crate::wire::{put, put_text};

/// The code of an error or a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Warning,
    ProtocolViolation,
    FeatureNotSupported,
    ConfigurationLimit,
    NumericOutOfRange,
    DivisionByZero,
    InvalidParameter,
    InvalidText,
    InvalidBinary,
    ReadOnly,
    FailedTransaction,
    NoSuchStatement,
    NoSuchCursor,
    NotAuthorized,
    BadPassword,
    Syntax,
    NoColumn,
    NoFunction,
    NoTable,
    NoParameter,
    DuplicateStatement,
    DuplicateCursor,
    OutOfMemory,
    TooManyConnections,
    TooComplex,
    Cancelled,
    Shutdown,
    Internal,
    Incomplete,
    General,
}

/// The codes of statements.
const OF_STATEMENTS: [Code; 14] = [
    Code::FeatureNotSupported,
    Code::NumericOutOfRange,
    Code::DivisionByZero,
    Code::InvalidText,
    Code::ReadOnly,
    Code::Syntax,
    Code::NoColumn,
    Code::NoFunction,
    Code::NoTable,
    Code::OutOfMemory,
    Code::TooManyConnections,
    Code::TooComplex,
    Code::Cancelled,
    Code::Internal,
];

impl Code {
    /// The code of an error of a statement.
    fn of(text: &str) -> Code {
        let found = OF_STATEMENTS.into_iter().find(|code| code.as_str() == text);
        found.unwrap_or(Code::General)
    }

    /// The five characters.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Code::Warning => "01000",
            Code::ProtocolViolation => "08P01",
            Code::FeatureNotSupported => "0A000",
            Code::NumericOutOfRange => "22003",
            Code::DivisionByZero => "22012",
            Code::InvalidParameter => "22023",
            Code::InvalidText => "22P02",
            Code::InvalidBinary => "22P03",
            Code::ReadOnly => "25006",
            Code::FailedTransaction => "25P02",
            Code::NoSuchStatement => "26000",
            Code::NotAuthorized => "28000",
            Code::BadPassword => "28P01",
            Code::NoSuchCursor => "34000",
            Code::General => "42000",
            Code::Syntax => "42601",
            Code::NoColumn => "42703",
            Code::NoParameter => "42704",
            Code::NoFunction => "42883",
            Code::NoTable => "42P01",
            Code::DuplicateStatement => "42P05",
            Code::DuplicateCursor => "42P03",
            Code::OutOfMemory => "53200",
            Code::TooManyConnections => "53300",
            Code::ConfigurationLimit => "53400",
            Code::TooComplex => "54001",
            Code::Cancelled => "57014",
            Code::Shutdown => "57P01",
            Code::Internal => "XX000",
            // A class of our own: classes from I on are free for products.
            Code::Incomplete => "LP001",
        }
    }
}

/// The reason why a message of a client has no answer, or the session ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The place in the statement, in characters from 1 on.
    pub(crate) position: Option<usize>,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
            hint: None,
            position: None,
        }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Failure {
        let hint = Some(hint.into());
        Failure { hint, ..self }
    }

    /// The error of a token that does not suffice, or does no more.
    pub(crate) fn of_refusal(refusal: &Refusal) -> Failure {
        let code = match refusal {
            Refusal::Missing | Refusal::Unknown => Code::BadPassword,
            Refusal::Revoked { .. }
            | Refusal::Changed { .. }
            | Refusal::Expired { .. }
            | Refusal::Role { .. } => Code::NotAuthorized,
        };
        Failure::new(code, refusal.to_string()).hint(
            "the password is a token of the role read: `logpond token create --role read` at the server makes one; \
             a token without `scram-sha-256` in the file of tokens is taken over TLS or from the same machine only",
        )
    }

    /// Why the engine has no answer to a statement.
    pub(crate) fn of_engine(error: &SqlError, text: &str) -> Failure {
        let code = match error.blame {
            Blame::Statement => of_message(&error.message),
            Blame::Busy => Code::TooManyConnections,
            Blame::Memory => Code::OutOfMemory,
            Blame::Cancelled => Code::Cancelled,
            Blame::Server => Code::Internal,
        };
        Failure {
            code,
            message: error.message.clone(),
            hint: None,
            position: error.place.and_then(|place| position(text, place)),
        }
    }

    /// Reads the message of an error again. Its code stays among those that are known here.
    pub(crate) fn of_message(message: &[u8]) -> Failure {
        // A letter and a length are before the fields, each a letter and a text.
        let fields = message.get(5..).unwrap_or_default();
        let mut failure = Failure::new(Code::General, "");
        for field in fields.split(|byte| *byte == 0) {
            let Some((kind, text)) = field.split_first() else {
                continue;
            };
            let text = String::from_utf8_lossy(text).into_owned();
            match kind {
                b'C' => failure.code = Code::of(&text),
                b'M' => failure.message = text,
                b'H' => failure.hint = Some(text),
                b'P' => failure.position = text.parse().ok(),
                _ => {}
            }
        }
        failure
    }

    /// Appends the message of an error, which ends the session or not.
    pub(crate) fn put(&self, out: &mut Vec<u8>, is_fatal: bool) {
        let severity = if is_fatal { "FATAL" } else { "ERROR" };
        self.put_as(out, b'E', severity);
    }

    /// Appends the message of a notice.
    pub(crate) fn put_notice(&self, out: &mut Vec<u8>, severity: &str) {
        self.put_as(out, b'N', severity);
    }

    fn put_as(&self, out: &mut Vec<u8>, kind: u8, severity: &str) {
        put(out, kind, |out| {
            for (field, text) in [
                (b'S', severity),
                (b'V', severity),
                (b'C', self.code.as_str()),
                (b'M', &self.message),
            ] {
                out.push(field);
                put_text(out, text);
            }
            if let Some(hint) = &self.hint {
                out.push(b'H');
                put_text(out, hint);
            }
            if let Some(position) = self.position {
                out.push(b'P');
                put_text(out, &position.to_string());
            }
            out.push(0);
        });
    }
}

/// The place of a line and a column, both from 1 on, in characters from 1 on.
fn position(text: &str, (line, column): (u64, u64)) -> Option<usize> {
    let line = usize::try_from(line).ok()?.checked_sub(1)?;
    let column = usize::try_from(column).ok()?;
    let before = text.split_inclusive('\n').take(line);
    let before: usize = before.map(|line| line.chars().count()).sum();
    (column > 0).then_some(before + column)
}

/// The code of an error of a statement. The engine tells errors by their words only.
fn of_message(message: &str) -> Code {
    let begins = |text: &str| message.starts_with(text);
    let has = |text: &str| message.contains(text);
    if has("is no question") {
        Code::ReadOnly
    } else if begins("no column") || has("No field named") {
        Code::NoColumn
    } else if begins("no table") || (begins("table '") && has("not found")) {
        Code::NoTable
    } else if begins("no function") || has("Invalid function") || has("No function matches") {
        Code::NoFunction
    } else if has("Expected: ")
        || has("Expected ")
        || has("Unterminated")
        || has("there is no statement")
    {
        Code::Syntax
    } else if has("ivide by zero") || has("ivision by zero") {
        Code::DivisionByZero
    } else if has("verflow") || has("out of range") || has("larger than a BIGINT") {
        Code::NumericOutOfRange
    } else if has("Cannot cast")
        || has("Error parsing")
        || has("is no number")
        || has("TRY_CAST(… AS")
    {
        Code::InvalidText
    } else if has("has computed for") {
        Code::Cancelled
    } else if has("longer than") || has("words and operators") || has("recursion limit") {
        Code::TooComplex
    } else if has("not supported") || has("not implemented") || has("Unsupported") {
        Code::FeatureNotSupported
    } else {
        Code::General
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_codes() {
        for (message, code) in [
            ("INSERT is no question: nothing can be changed", "25006"),
            ("no column hots: did you mean host?", "42703"),
            ("no table lgs; there are logs", "42P01"),
            ("no function foo; did you mean floor?", "42883"),
            (
                "Expected: an expression, found: , at Line: 1, Column: 9",
                "42601",
            ),
            ("Divide by zero error", "22012"),
            (
                "'a' is no Int32: TRY_CAST(… AS Int32) has a null for such values",
                "22P02",
            ),
            ("a number is larger than a BIGINT can be", "22003"),
            ("the statement is longer than 64 KiB", "54001"),
        ] {
            assert_eq!(of_message(message).as_str(), code, "{message}");
        }
    }

    #[test]
    fn errors_are_read_again() {
        let failure = Failure {
            position: Some(8),
            ..Failure::new(Code::NoTable, "no table x").hint("there is logs")
        };
        let mut message = Vec::new();
        failure.put(&mut message, false);
        assert_eq!(Failure::of_message(&message), failure);
    }

    #[test]
    fn places_are_counted_in_characters() {
        assert_eq!(position("SELECT 'ä',\n x", (2, 2)), Some(14));
        assert_eq!(position("SELECT 1", (1, 1)), Some(1));
        assert_eq!(position("SELECT 1", (0, 1)), None);
    }
}
