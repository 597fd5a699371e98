//! Pairs `key=value` behind a message, as console loggers of Go and Python write them.
//!
//! | logger | text |
//! | --- | --- |
//! | zerolog, slog, charm's log | `refused order=77 error="no stock"` |
//! | logrus on a terminal | `refused                 order=77` |
//! | structlog | `refused                 [shop.cart] order=77` |
//! | logfmt behind a time | `level=error msg="no stock" order=77` |
//! | Rust's tracing | `refused order=77 user="ann"`; the message stays whole, and the fields are made beside it |
//!
//! Pairs count from the first place on from which all of the line is pairs. All else is the message, traces included.

use logpond_record::{SEVERITY_LABELS, Value, is_severity_field};
use memchr::{memchr, memchr_iter};

use super::Pen;
use super::tails::{draw_pairs, is_of_key, values};
use crate::intake::access::closing_quote;
use crate::intake::logfmt;

/// The most places where pairs are tried to begin.
const STARTS_MAX: usize = 16;

/// The most pairs that become fields beside a message.
const PAIRS_MAX: usize = 32;

/// Draws a message and the pairs behind it, or a message that is no more.
pub(super) fn draw<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    // A text of pairs alone has no message before them.
    if is_pair(text.as_bytes()) {
        return pen.sketch.message(text.as_bytes());
    }
    for start in starts(text) {
        let message = text[..start].trim_end_matches(' ');
        let between = &text[message.len()..=start];
        if draw_pairs(message, between, &text[start + 1..], pen).is_some() {
            return;
        }
    }
    pen.sketch.message(text.as_bytes());
}

/// The same where the name of a logger in brackets may stand before the pairs.
pub(super) fn structlog<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    let first = starts(text).next();
    let mark = pen.sketch.mark();
    if with_logger(text, first, pen).is_none() {
        pen.sketch.rewind(mark);
        draw(text, pen);
    }
}

/// Draws a message, the name of a logger, and pairs if there are any.
fn with_logger<'a>(text: &'a str, first: Option<usize>, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    let head = text[..first.unwrap_or(text.len())].trim_end_matches(' ');
    let (ahead, name) = head.strip_suffix(']')?.rsplit_once(" [")?;
    let message = ahead.trim_end_matches(' ');
    let is_name = !name.is_empty() && !name.contains(' ');
    if message.is_empty() || message.contains('\n') || !is_name {
        return None;
    }
    pen.sketch.message(message.as_bytes());
    pen.sketch
        .literal(&text[message.len()..ahead.len() + " [".len()]);
    pen.text("logger", name);
    pen.sketch.literal("]");
    match first {
        Some(first) => {
            pen.sketch.literal(&text[head.len()..=first]);
            values(&text[first + 1..], pen)
        }
        None => {
            pen.sketch.literal(&text[head.len()..]);
            Some(())
        }
    }
}

/// The fewest pairs of a text that is nothing else.
const KEYED_MIN: usize = 2;

/// Names of the message among pairs.
const MESSAGES: [&str; 2] = ["msg", "message"];

/// Draws a text that is nothing but pairs, as logfmt behind a time.
pub(super) fn keyed<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    let count = starts(text).take(KEYED_MIN - 1).count();
    if !is_pair(text.as_bytes()) || count + 1 < KEYED_MIN {
        return None;
    }
    values(text, pen)?;
    let mut known = SEVERITY_LABELS.iter();
    pen.has_level_field = known.any(|name| pen.sketch.has_slot(name.as_bytes()));
    Some(())
}

/// True for the key of the message, where none is drawn yet.
pub(super) fn is_message(key: &str, pen: &Pen<'_, '_, '_>) -> bool {
    MESSAGES.contains(&key) && !pen.sketch.has_slot(b"_msg")
}

/// Draws a message with the pairs that end it, which are fields, too.
pub(super) fn beside<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    pen.sketch.message(text.as_bytes());
    let mut found = starts(text).filter_map(|start| read(&text[start + 1..]));
    for (key, value) in found.next().unwrap_or_default() {
        let is_made = pen.beside.fields.iter().any(|(known, _)| *known == key);
        let is_other = key.starts_with('_') || is_severity_field(key);
        if !is_made && !is_other && !pen.sketch.has_slot(key.as_bytes()) {
            pen.beside.fields.push((key.into(), value));
        }
    }
}

/// The pairs that a text is made of; `None` if anything else stands in it.
fn read(text: &str) -> Option<Vec<(&str, Value<'_>)>> {
    let mut pairs = Vec::new();
    let mut rest = text;
    while pairs.len() < PAIRS_MAX {
        let (key, behind) = rest.split_once('=').filter(|_| is_pair(rest.as_bytes()))?;
        let (value, after) = match behind.strip_prefix('"') {
            Some(inside) => {
                let (value, after) = inside.split_at(closing_quote(inside)?);
                (Value::Str(value.into()), &after[1..])
            }
            None => {
                let end = memchr(b' ', behind.as_bytes()).unwrap_or(behind.len());
                let (value, after) = behind.split_at(end);
                let is_bare = !value.is_empty() && !value.contains(['"', '\n']);
                (is_bare.then(|| logfmt::bare_value(value).0)?, after)
            }
        };
        pairs.push((key, value));
        if after.is_empty() {
            return Some(pairs);
        }
        rest = after.strip_prefix(' ')?;
    }
    None
}

/// True for a text that begins with a key and its sign.
fn is_pair(text: &[u8]) -> bool {
    let key = text.iter().take_while(|byte| is_of_key(byte)).count();
    key > 0 && text.get(key) == Some(&b'=')
}

/// The blanks of the first line behind which a key and its sign stand.
fn starts(text: &str) -> impl Iterator<Item = usize> + '_ {
    let line = &text.as_bytes()[..memchr(b'\n', text.as_bytes()).unwrap_or(text.len())];
    let blanks = memchr_iter(b' ', line).filter(|at| is_pair(&line[at + 1..]));
    blanks.filter(|at| *at > 0).take(STARTS_MAX)
}
