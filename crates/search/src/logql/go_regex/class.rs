//! Classes in brackets: `[a-z]`, `[^[:space:]]`.

use std::fmt::Write as _;

use super::error;
use super::escape::{escaped_char, perl_class, push_literal, unicode_class};
use crate::pattern::RegexError;

/// A class that holds no character.
pub(super) const NOTHING: &str = r"[^\x00-\x{10ffff}]";

/// A class that holds every character.
const EVERYTHING: &str = r"[\x00-\x{10ffff}]";

/// Names that may stand in `[:…:]`.
const NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// The first and the last character that are halves of UTF-16's pairs, and in no text.
const HALVES: (u32, u32) = (0xd800, 0xdfff);

/// Appends the class that begins at a place; where it ends.
pub(super) fn translate(
    written: &str,
    start: usize,
    out: &mut String,
) -> Result<usize, RegexError> {
    let mut at = start + 1;
    let is_negated = written[at..].starts_with('^');
    at += usize::from(is_negated);
    let mut members = String::new();
    let first = at;
    loop {
        let rest = &written[at..];
        if rest.is_empty() {
            return Err(error(start..written.len(), "a [ is not closed"));
        }
        if rest.starts_with(']') && at > first {
            break;
        }
        at = member(written, at, &mut members)?;
    }
    match (members.is_empty(), is_negated) {
        (true, false) => out.push_str(NOTHING),
        (true, true) => out.push_str(EVERYTHING),
        (false, false) => {
            let _ = write!(out, "[{members}]");
        }
        (false, true) => {
            let _ = write!(out, "[^{members}]");
        }
    }
    Ok(at + 1)
}

/// Appends one member: a named class, a character, a range. Where it ends.
fn member(written: &str, at: usize, out: &mut String) -> Result<usize, RegexError> {
    let rest = &written[at..];
    if let Some(name) = named(rest) {
        let end = at + "[::]".len() + name.len();
        if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            let message = format!("there is no such class: `{}`", &written[at..end]);
            return Err(error(at..end, message));
        }
        let _ = write!(out, "[:{name}:]");
        return Ok(end);
    }
    if let Some(class) = perl_class(rest) {
        out.push_str(class.inside);
        return Ok(at + 2);
    }
    if let Some(class) = unicode_class(written, at)? {
        out.push_str(&class.text);
        return Ok(class.end);
    }
    let (low, mut end) = character(written, at)?;
    let mut high = low;
    let behind = &written[end..];
    if behind.starts_with('-') && !behind.starts_with("-]") && behind.len() > 1 {
        (high, end) = character(written, end + 1)?;
    }
    if high < low {
        let message = format!("a range is the wrong way round: `{}`", &written[at..end]);
        return Err(error(at..end, message));
    }
    push_range(low, high, out);
    Ok(end)
}

/// The name of a text that begins with `[:name:]`.
fn named(text: &str) -> Option<&str> {
    let behind = text.strip_prefix("[:")?;
    let is_part = |b: &u8| b.is_ascii_alphabetic() || *b == b'^';
    let (name, behind) = behind.split_at(behind.bytes().take_while(is_part).count());
    behind.starts_with(":]").then_some(name)
}

/// A character or an escape that stands for one, and where it ends.
fn character(written: &str, at: usize) -> Result<(u32, usize), RegexError> {
    match written[at..].chars().next() {
        Some('\\') => escaped_char(written, at),
        Some(c) => Ok((u32::from(c), at + c.len_utf8())),
        None => Err(error(at..at, "a [ is not closed")),
    }
}

fn push_range(low: u32, high: u32, out: &mut String) {
    let (first_half, last_half) = HALVES;
    let is_half = |c: &u32| (first_half..=last_half).contains(c);
    let low = if is_half(&low) { last_half + 1 } else { low };
    let high = if is_half(&high) { first_half - 1 } else { high };
    let (Some(low), Some(high)) = (char::from_u32(low), char::from_u32(high)) else {
        return;
    };
    if low > high {
        return;
    }
    push_literal(low, out);
    if low < high {
        out.push('-');
        push_literal(high, out);
    }
}
