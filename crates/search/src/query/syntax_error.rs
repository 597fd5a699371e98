//! What is wrong with a query, and where.

use std::fmt;
use std::ops::Range;

/// Why a text is not a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// First byte at fault.
    pub start: usize,
    /// First byte after what is at fault; equal to `start` where something is missing.
    pub end: usize,
    /// `start` counted in characters (Unicode scalar values).
    pub start_char: usize,
    /// `end` counted in characters.
    pub end_char: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead, if there is a good guess.
    pub hint: Option<String>,
}

impl SyntaxError {
    /// An error at these bytes of `text`; the span is widened to whole characters.
    pub(crate) fn new(text: &str, span: Range<usize>, message: String) -> SyntaxError {
        let start = floor_char(text, span.start);
        let end = ceil_char(text, span.end).max(start);
        let start_char = text[..start].chars().count();
        SyntaxError {
            start,
            end,
            start_char,
            end_char: start_char + text[start..end].chars().count(),
            message,
            hint: None,
        }
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> SyntaxError {
        self.hint = Some(hint.into());
        self
    }

    /// The query with a line of carets below what is at fault, for a terminal.
    ///
    /// `query` must be the text that gave the error. Line ends and tabs in it are shown as spaces.
    pub fn underline(&self, query: &str) -> String {
        let shown: String = query
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let carets = "^".repeat((self.end_char - self.start_char).max(1));
        format!("{shown}\n{}{carets}", " ".repeat(self.start_char))
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at character {})", self.message, self.start_char + 1)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for SyntaxError {}

fn floor_char(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

fn ceil_char(text: &str, at: usize) -> usize {
    text.ceil_char_boundary(at.min(text.len()))
}
