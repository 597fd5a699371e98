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

/// The known word that is nearest to what was written, if it is near enough to be meant.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    /// Words longer than this are not compared.
    const WORD_BYTES_MAX: usize = 40;
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let near = |known: &&str| distance(&word, known);
    let best = known.into_iter().min_by_key(near)?;
    (distance(&word, best) <= (word.len() / 3).max(1)).then_some(best)
}

/// How many letters must be changed, added or removed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
