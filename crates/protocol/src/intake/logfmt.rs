//! logfmt: `key=value` pairs with single spaces between them, and nothing else.
//!
//! A bare value is typed where it is written as a number or a boolean would be rendered; a quoted
//! one may hold any character, with `\"`, `\\`, `\n`, `\r` and `\t` for the ones that it cannot.
//! Pairs of Python have values as its `repr` writes them: text in single quotes, and lists and
//! dictionaries in brackets, which are one text. Source: structlog, `KeyValueRenderer`.
//! Two products put another sign between pairs: Check Point's exporter a bar, FortiWeb a comma.
//! A line in which anything else stands is plain text.

use std::borrow::Cow;

use logpond_record::Value;
use memchr::{memchr, memchr2};

use super::json::number_value;
use super::outline::Outline;
use super::sketch::Parts;

/// Fewer pairs than this are more likely prose.
const PAIRS_MIN: usize = 2;

/// Starts of lines whose pairs another sign parts, and that sign, which stands behind a value of ten bytes.
const SEPARATED: [(&[u8], u8); 2] = [(b"time=", b'|'), (b"date=", b',')];

/// The place of that sign.
const SEPARATOR_AT: usize = 15;

/// The sign between the pairs of a line.
fn separator(line: &[u8]) -> u8 {
    // Barracuda.
    if line.starts_with(b"type=") && memchr2(b'|', b' ', line).is_some_and(|at| line[at] == b'|') {
        return b'|';
    }
    let Some(sign @ (b'|' | b',')) = line.get(SEPARATOR_AT).copied() else {
        return b' ';
    };
    let mut known = SEPARATED.iter();
    let is_it = known.any(|(start, known)| sign == *known && line.starts_with(start));
    if is_it { sign } else { b' ' }
}

/// Whether `line` may be logfmt: it begins with a key.
pub(crate) fn is_candidate(line: &[u8]) -> bool {
    key_length(line).is_some()
}

/// Reads the pairs of `line`: the fields go to `outline`, their values to the parts.
pub(crate) fn read<'a>(line: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    outline.clear();
    let mut parts = Parts::new(12);
    let end = line.trim_ascii_end().len();
    let bytes = line.as_bytes();
    let separator = separator(bytes);
    let mut at = 0;
    let mut pairs = 0;
    // Each round takes a pair.
    while at < end {
        let key_bytes = key_length(&bytes[at..end])?;
        let key = &bytes[at..at + key_bytes];
        at += key_bytes + 1;
        let (span, read) = value(line, at, end, separator)?;
        outline.add(&mut parts, key, line, span, read);
        pairs += 1;
        // Behind the quote that the value stands before.
        at = span.1 + usize::from(span.0 > at);
        if at < end {
            if bytes[at] != separator {
                return None;
            }
            at += 1;
            if at == end {
                // Some end each pair so.
                return (separator == b'|' && pairs >= PAIRS_MIN).then_some(parts);
            }
        }
    }
    (pairs >= PAIRS_MIN).then_some(parts)
}

/// The length of the key that `text` begins with and a `=` follows. It may be as long as the line: the
/// outline keeps lines with long names whole.
fn key_length(text: &[u8]) -> Option<usize> {
    let first = *text.first()?;
    if !first.is_ascii_alphabetic() && !matches!(first, b'_' | b'@') {
        return None;
    }
    let length = text
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/' | b'@'))
        .count();
    (text.get(length) == Some(&b'=')).then_some(length)
}

/// The value at `at`: its place without quotes, it, the letter of its slot's kind, and whether it is
/// written as it would be rendered.
fn value(
    line: &str,
    at: usize,
    end: usize,
    separator: u8,
) -> Option<((usize, usize), ReadValue<'_>)> {
    let text = &line.as_bytes()[at..end];
    let ends = |length: usize| text.get(length).is_none_or(|byte| *byte == separator);
    match text.first() {
        Some(b'"') => {
            let span = (at + 1, at + 1 + closing_quote(&text[1..], b'"')?);
            return Some((span, quoted_value(&line[span.0..span.1])?));
        }
        Some(b'\'') => {
            let length = closing_quote(&text[1..], b'\'').filter(|length| ends(length + 2));
            if let Some(length) = length {
                let span = (at + 1, at + 1 + length);
                return Some((span, python_text(&line[span.0..span.1])?));
            }
        }
        Some(b'{' | b'[' | b'(') => {
            if let Some(length) = bracketed_length(text).filter(|length| ends(*length)) {
                let span = (at, at + length);
                let value = Value::Str(Cow::Borrowed(&line[span.0..span.1]));
                return Some((span, (value, b't', true)));
            }
        }
        _ => {}
    }
    let span = (at, at + bare_length(text, separator)?);
    Some((span, bare_value(&line[span.0..span.1])))
}

/// The most brackets within each other.
const NESTING_MAX: u32 = 32;

/// The length of a list or a dictionary that `text` begins with, up to the bracket that closes it;
/// brackets in texts do not count.
fn bracketed_length(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0);
    // Each round takes a byte or a text.
    while let Some(&byte) = text.get(at) {
        match byte {
            b'{' | b'[' | b'(' if depth < NESTING_MAX => depth += 1,
            b'{' | b'[' | b'(' => return None,
            b'}' | b']' | b')' => depth -= 1,
            b'"' | b'\'' => at += 1 + closing_quote(&text[at + 1..], byte)?,
            ..b' ' => return None,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The length of a value without quotes: up to a separator or the end, without a quote in it.
fn bare_length(text: &[u8], separator: u8) -> Option<usize> {
    let end = memchr2(separator, b'"', text).unwrap_or(text.len());
    let clean = text.get(end) != Some(&b'"') && !text[..end].iter().any(|b| *b < b' ');
    clean.then_some(end)
}

/// The first quote that no backslash escapes.
fn closing_quote(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr2(quote, b'\\', &text[at..])?;
        if text[at] == quote {
            return Some(at);
        }
        at += 2;
        if at > text.len() {
            return None;
        }
    }
}

/// A value, the letter of its slot's kind, and whether it is written as it would be rendered.
type ReadValue<'a> = (Value<'a>, u8, bool);

/// A value without quotes.
pub(crate) fn bare_value(text: &str) -> ReadValue<'_> {
    let as_text = (Value::Str(Cow::Borrowed(text)), b't', true);
    match text.as_bytes() {
        b"true" => (Value::Bool(true), b'b', true),
        b"false" => (Value::Bool(false), b'b', true),
        [b'-' | b'0'..=b'9', ..] => {
            let Some(is_float) = number_form(text.as_bytes()) else {
                return as_text;
            };
            match number_value(text, is_float) {
                (value @ Value::Int(_), true) => (value, b'i', true),
                (value @ Value::Float(_), true) => (value, b'f', true),
                _ => as_text,
            }
        }
        _ => as_text,
    }
}

/// Whether `text` is `-?digits` or `-?digits.digits` without superfluous leading zeros, and which.
fn number_form(text: &[u8]) -> Option<bool> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    if whole == 0 || (whole > 1 && digits[0] == b'0') {
        return None;
    }
    match &digits[whole..] {
        [] => Some(false),
        [b'.', fraction @ ..] if !fraction.is_empty() => {
            fraction.iter().all(u8::is_ascii_digit).then_some(true)
        }
        _ => None,
    }
}

/// The inside of single quotes. Source: the Python Language Reference, escape sequences.
fn python_text(inside: &str) -> Option<ReadValue<'_>> {
    if inside.bytes().any(|b| b < b' ' && b != b'\t') {
        return None;
    }
    if memchr(b'\\', inside.as_bytes()).is_none() {
        return Some((Value::Str(Cow::Borrowed(inside)), b't', true));
    }
    let mut value = String::with_capacity(inside.len());
    let mut rest = inside;
    // Each round takes an escape and the text before it.
    while let Some((before, after)) = rest.split_once('\\') {
        value.push_str(before);
        let letter = after.chars().next()?;
        rest = &after[letter.len_utf8()..];
        let digits = match letter {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        let code = rest.get(..digits).filter(|_| digits > 0);
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
        match (letter, code.and_then(char::from_u32)) {
            (_, Some(character)) => {
                value.push(character);
                rest = &rest[digits..];
            }
            ('\'' | '"' | '\\', _) => value.push(letter),
            ('n', _) => value.push('\n'),
            ('r', _) => value.push('\r'),
            ('t', _) => value.push('\t'),
            _ => value.extend(['\\', letter]),
        }
    }
    value.push_str(rest);
    Some((Value::Str(Cow::Owned(value)), b't', false))
}

fn quoted_value(inside: &str) -> Option<ReadValue<'_>> {
    if inside.bytes().any(|b| b < b' ' && b != b'\t') {
        return None;
    }
    if memchr(b'\\', inside.as_bytes()).is_none() {
        return Some((Value::Str(Cow::Borrowed(inside)), b'q', true));
    }
    let mut value = String::with_capacity(inside.len());
    let mut canonical = true;
    let mut letters = inside.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            value.push(letter);
            continue;
        }
        match letters.next()? {
            escaped @ ('"' | '\\') => {
                value.push(escaped);
                continue;
            }
            'n' => value.push('\n'),
            'r' => value.push('\r'),
            't' => value.push('\t'),
            other => {
                value.push('\\');
                value.push(other);
            }
        }
        canonical = false;
    }
    Some((Value::Str(Cow::Owned(value)), b'q', canonical))
}

#[cfg(test)]
mod tests;
