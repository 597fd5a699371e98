//! Quoted strings of the query language.

use std::ops::Range;

use logpond_record::cast;

/// A quoted string that was read.
pub(super) struct QuotedString {
    /// What it stands for.
    pub(super) text: Vec<u8>,
    /// First byte after the closing quote.
    pub(super) end: usize,
}

/// Why a quoted string cannot be read.
pub(super) enum QuotedError {
    /// There is no closing quote.
    Unclosed,
    /// The escape at these bytes is not known.
    Escape(Range<usize>),
}

/// Reads the quoted string whose opening quote is at byte `open`.
pub(super) fn read(query: &[u8], open: usize) -> Result<QuotedString, QuotedError> {
    debug_assert_eq!(query[open], b'"');
    let mut text = Vec::new();
    let mut at = open + 1;
    loop {
        match query.get(at) {
            None => return Err(QuotedError::Unclosed),
            Some(b'"') => return Ok(QuotedString { text, end: at + 1 }),
            Some(b'\\') => {
                let (byte, length) = escape(&query[at + 1..]).ok_or_else(|| match query.len() {
                    length if length <= at + 1 => QuotedError::Unclosed,
                    _ => QuotedError::Escape(at..at + 2),
                })?;
                text.push(byte);
                at += 1 + length;
            }
            Some(&byte) => {
                text.push(byte);
                at += 1;
            }
        }
    }
}

/// The byte that an escape stands for, and the escape's length without the backslash.
fn escape(rest: &[u8]) -> Option<(u8, usize)> {
    let byte = match rest.first()? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        &same @ (b'"' | b'\\' | b'/') => same,
        b'x' => {
            let digit = |at: usize| char::from(*rest.get(at)?).to_digit(16);
            return Some((cast::low_u8(digit(1)? * 16 + digit(2)?), 3));
        }
        _ => return None,
    };
    Some((byte, 1))
}
