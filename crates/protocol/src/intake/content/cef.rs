//! ArcSight's Common Event Format: `CEF:0|vendor|product|version|id|name|severity|key=value …`.
//!
//! The header's fields are `cef.version`, `cef.vendor`, `cef.product`, `cef.product_version`,
//! `cef.id`, `cef.name` and `cef.severity`; those of the extension keep their keys. Values may hold
//! spaces: one ends where the next key begins. `\|`, `\=` and `\\` stand for themselves, `\n` and
//! `\r` for line ends.

use std::borrow::Cow;

use logpond_record::Value;
use memchr::{memchr, memchr_iter};

use crate::intake::logfmt;
use crate::intake::outline::Outline;
use crate::intake::sketch::Parts;

/// Fields of the header, in order.
const HEADER: [&str; 7] = [
    "cef.version",
    "cef.vendor",
    "cef.product",
    "cef.product_version",
    "cef.id",
    "cef.name",
    "cef.severity",
];

const START: &str = "CEF:";

/// Reads an event; `None` if it is none.
pub(super) fn read<'a>(text: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    outline.clear();
    let mut parts = Parts::new(24);
    // Some devices write a blank behind the colon.
    let after = text[START.len()..].trim_start_matches(' ');
    let mut at = text.len() - after.len();
    for name in HEADER {
        let length = header_length(&text.as_bytes()[at..])?;
        let span = (at, at + length);
        let read = value_of(&text[span.0..span.1]);
        outline.add(&mut parts, name.as_bytes(), text, span, read);
        at += length + 1;
    }
    extension(text, at, outline, &mut parts)?;
    Some(parts)
}

/// Bytes up to the next bar that no backslash precedes.
fn header_length(text: &[u8]) -> Option<usize> {
    memchr_iter(b'|', text).find(|at| !is_escaped(text, *at))
}

/// Whether an odd number of backslashes stands before a byte.
fn is_escaped(text: &[u8], at: usize) -> bool {
    let before = text[..at].iter().rev();
    before.take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Reads the pairs from `start` to the end; `None` if anything but spaces stands before the first.
fn extension<'a>(
    text: &'a str,
    start: usize,
    outline: &mut Outline,
    parts: &mut Parts<'a>,
) -> Option<()> {
    let bytes = text.as_bytes();
    let end = text.trim_end_matches(['\n', '\r', ' ', '\0']).len();
    if end <= start {
        return Some(());
    }
    let mut key = next_key(bytes, start, start, end)
        .filter(|key| bytes[start..key.0].iter().all(|byte| *byte == b' '))?;
    loop {
        let value = key.1 + 1;
        let next = next_key(bytes, value, value, end);
        // A space stands before each key but the first.
        let value_end = next.map_or(end.max(value), |(next, _)| next - 1);
        let (name, span) = (&text.as_bytes()[key.0..key.1], (value, value_end));
        let read = value_of(&text[span.0..span.1]);
        outline.add(parts, name, text, span, read);
        match next {
            Some(next) => key = next,
            None => return Some(()),
        }
    }
}

/// The next key that a `=` follows: where it begins and ends. It begins at `start` or behind a
/// space.
fn next_key(bytes: &[u8], start: usize, from: usize, end: usize) -> Option<(usize, usize)> {
    let mut at = from;
    while at < end {
        let equals = at + memchr(b'=', &bytes[at..end])?;
        let key = bytes[start..equals].iter().rev();
        let length = key.take_while(|byte| is_in_key(**byte)).count();
        let begin = equals - length;
        let is_first = begin == start && start == from && bytes[start - 1] == b'|';
        if length > 0 && (is_first || (begin > start && bytes[begin - 1] == b' ')) {
            return Some((begin, equals));
        }
        at = equals + 1;
    }
    None
}

fn is_in_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'[' | b']')
}

/// The value of a field: it, the letter of its slot's kind, and whether it is written as it would be
/// rendered.
fn value_of(written: &str) -> (Value<'_>, u8, bool) {
    match memchr(b'\\', written.as_bytes()) {
        None => logfmt::bare_value(written),
        Some(_) => unescape(written),
    }
}

fn unescape(written: &str) -> (Value<'_>, u8, bool) {
    let mut value = String::with_capacity(written.len());
    let mut letters = written.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some(escaped @ ('\\' | '|' | '=')) => value.push(escaped),
                Some(other) => value.extend(['\\', other]),
                None => value.push('\\'),
            },
            letter => value.push(letter),
        }
    }
    let is_same = value == written;
    (Value::Str(Cow::Owned(value)), b't', is_same)
}
