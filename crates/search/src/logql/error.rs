//! What is wrong with a query, where, and what was meant.

use std::fmt;

use super::Span;

/// Why a text is not a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The bytes at fault; none where something is missing.
    pub span: Span,
    /// The line of the first one, counted from 1.
    pub line: usize,
    /// The character of the line, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead, if there is a good guess.
    pub suggestion: Option<String>,
}

impl ParseError {
    /// An error at these bytes of `text`.
    pub(super) fn new(text: &str, span: Span, message: impl Into<String>) -> ParseError {
        let start = text.floor_char_boundary(span.start.min(text.len()));
        let end = text.ceil_char_boundary(span.end.min(text.len())).max(start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        ParseError {
            span: Span { start, end },
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
            suggestion: None,
        }
    }

    pub(super) fn suggest(mut self, suggestion: impl Into<String>) -> ParseError {
        self.suggestion = Some(suggestion.into());
        self
    }

    pub(super) fn maybe_suggest(mut self, suggestion: Option<String>) -> ParseError {
        self.suggestion = suggestion;
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.line, self.column);
        write!(
            f,
            "parse error at line {line}, col {column}: {}",
            self.message
        )?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; {suggestion}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ParseError {}
