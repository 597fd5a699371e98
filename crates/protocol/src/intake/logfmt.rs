//! logfmt: `key=value` pairs with single spaces between them, and nothing else.
//!
//! A bare value is typed where it is written as a number or a boolean would be rendered; a quoted
//! one may hold any character, with `\"`, `\\`, `\n`, `\r` and `\t` for the ones that it cannot.
//! A line in which anything else stands is plain text.

use std::borrow::Cow;

use logpond_record::Value;
use memchr::{memchr, memchr2};

use super::json::number_value;
use super::outline::Outline;
use super::sketch::Parts;

/// Fewer pairs than this are more likely prose.
const PAIRS_MIN: usize = 2;

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
    let mut at = 0;
    let mut pairs = 0;
    // Each round takes a pair.
    while at < end {
        let key_bytes = key_length(&bytes[at..end])?;
        let key = &bytes[at..at + key_bytes];
        at += key_bytes + 1;
        let quoted = bytes.get(at) == Some(&b'"') && at < end;
        let (start, stop) = match quoted {
            true => (at + 1, at + 1 + closing_quote(&bytes[at + 1..end])?),
            false => (at, at + bare_length(&bytes[at..end])?),
        };
        let inside = &line[start..stop];
        let read = match quoted {
            true => quoted_value(inside)?,
            false => bare_value(inside),
        };
        outline.add(&mut parts, key, line, (start, stop), read);
        pairs += 1;
        at = stop + usize::from(quoted);
        if at < end {
            if bytes[at] != b' ' {
                return None;
            }
            at += 1;
            if at == end {
                return None;
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

/// The length of a value without quotes: up to a space or the end, without a quote in it.
fn bare_length(text: &[u8]) -> Option<usize> {
    let end = memchr2(b' ', b'"', text).unwrap_or(text.len());
    let clean = text.get(end) != Some(&b'"') && !text[..end].iter().any(|b| *b < b' ');
    clean.then_some(end)
}

/// The first quote that no backslash escapes.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', &text[at..])?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
        if at > text.len() {
            return None;
        }
    }
}

/// A value without quotes: it, the letter of its slot's kind, and whether it is written as it would
/// be rendered.
pub(crate) fn bare_value(text: &str) -> (Value<'_>, u8, bool) {
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

fn quoted_value(inside: &str) -> Option<(Value<'_>, u8, bool)> {
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
