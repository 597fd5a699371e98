//! Prefixes of PostgreSQL's lines (`log_line_prefix`), which each server sets as it likes.
//!
//! ```text
//!  [77-1] lena@shop [psql] 192.0.2.7(41000) ERROR:  relation "cart" does not exist
//!  pid=77,user=lena,db=shop LOG:  …
//! ```
//!
//! Invariants:
//! - The label behind the prefix says whose line it is. It is the first text that a colon and two blanks follow.
//! - Every part of the prefix has a form or a name that tells what it is, or the line is none of these.
//!
//! Source: PostgreSQL, "Error Reporting and Logging", whose names of columns the fields have.

use logpond_record::Value;

use super::Pen;
use super::pattern::{POSTGRES_LABELS, find};
use super::sentences::is_address;
use crate::intake::access::canonical_int;

/// The longest prefix.
const PREFIX_BYTES_MAX: usize = 256;

/// The most parts of a prefix.
const PARTS_MAX: usize = 16;

/// Names that stand before values, and the fields that they are.
const NAMES: [(&str, &str); 22] = [
    ("user", "user"),
    ("usr", "user"),
    ("u", "user"),
    ("db", "dbname"),
    ("database", "dbname"),
    ("d", "dbname"),
    ("app", "application_name"),
    ("application", "application_name"),
    ("a", "application_name"),
    ("client", "remote_host"),
    ("host", "remote_host"),
    ("h", "remote_host"),
    ("remote", "remote_host"),
    ("pid", "pid"),
    ("p", "pid"),
    ("line", "line_num"),
    ("l", "line_num"),
    ("session", "session_id"),
    ("sid", "session_id"),
    ("vxid", "vxid"),
    ("txid", "txid"),
    ("xid", "txid"),
];

/// False for a text that no label ends: a cheap test.
pub(super) fn may_fit(text: &str) -> bool {
    let head = &text.as_bytes()[..text.len().min(PREFIX_BYTES_MAX)];
    find(head, b":  ").is_some_and(|end| end > 0 && head[end - 1].is_ascii_alphanumeric())
}

/// Draws the prefix behind the time, the label and the message.
pub(super) fn draw<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    draw_by(text, pen, parts)
}

/// Draws a prefix with the time in it, the label and the message: `shop 2026-11-27 00:51:25 UTC [77] ERROR:  …`.
pub(super) fn draw_prefixed<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    draw_by(text, pen, |prefix, pen| {
        let start = time_in(prefix)?;
        let (ahead, behind) = prefix.split_at(start);
        let written = pen
            .times
            .reader
            .program(behind.as_bytes(), pen.times.received)?;
        let (time, rest) = behind.split_at_checked(written.bytes)?;
        // The name of a database, of a server.
        let word = ahead.strip_suffix(' ').filter(|word| is_name(word));
        match word {
            Some(word) => {
                pen.text("prefix", word);
                pen.sketch.literal(" ");
            }
            None => parts(ahead, pen)?,
        }
        pen.time(&written, time);
        parts(rest, pen)
    })
}

fn is_name(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        && word.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// The place of a date within a prefix.
fn time_in(prefix: &str) -> Option<usize> {
    let bytes = prefix.as_bytes();
    let is_date = |at: &usize| {
        let ends = *at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        ends && matches!(
            bytes[*at..],
            [
                b'2',
                b'0',
                b'0'..=b'9',
                b'0'..=b'9',
                b'-',
                b'0'..=b'9',
                b'0'..=b'9',
                b'-',
                ..
            ]
        )
    };
    memchr::memchr_iter(b'2', bytes).find(is_date)
}

fn draw_by<'p, 's, 'a>(
    text: &'a str,
    pen: &mut Pen<'p, 's, 'a>,
    draw_prefix: impl FnOnce(&'a str, &mut Pen<'p, 's, 'a>) -> Option<()>,
) -> Option<()> {
    let head = &text.as_bytes()[..text.len().min(PREFIX_BYTES_MAX)];
    let end = find(head, b":  ")?;
    let (before, message) = text.split_at_checked(end)?;
    let message = message.strip_prefix(":  ")?;
    let start = before.rfind(is_separator).map_or(0, |at| at + 1);
    let (prefix, label) = before.split_at(start);
    if message.is_empty() || !POSTGRES_LABELS.contains(&label) {
        return None;
    }
    draw_prefix(prefix, pen)?;
    pen.sketch.literal(label);
    pen.sketch.literal(":  ");
    pen.sketch.message(message.as_bytes());
    Some(())
}

fn is_separator(letter: char) -> bool {
    matches!(
        letter,
        ' ' | '[' | ']' | '(' | ')' | ',' | '|' | '<' | '>' | ';' | ':'
    )
}

fn parts<'a>(prefix: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    let mut rest = prefix;
    for _ in 0..PARTS_MAX {
        let length = rest
            .find(|letter| !is_separator(letter))
            .unwrap_or(rest.len());
        let (between, behind) = rest.split_at(length);
        pen.sketch.literal(between);
        if behind.is_empty() {
            return Some(());
        }
        let is_bracketed = between.ends_with('[');
        // Addresses of version 6 have colons.
        let length = behind
            .find(|letter| is_separator(letter) && letter != ':')
            .unwrap_or(behind.len());
        let whole = &behind[..length];
        let value = whole.rsplit('=').next().unwrap_or_default();
        let part = if is_host(value) {
            whole
        } else {
            whole.split(':').next().unwrap_or(whole)
        };
        rest = &behind[part.len()..];
        self::part(part, is_bracketed, between.ends_with('('), pen)?;
    }
    None
}

/// Draws a part by its name or its form.
fn part<'a>(
    part: &'a str,
    is_bracketed: bool,
    is_port: bool,
    pen: &mut Pen<'_, '_, 'a>,
) -> Option<()> {
    if let Some((key, value)) = part.split_once('=') {
        let (_, name) = NAMES.iter().find(|(known, _)| *known == key)?;
        pen.sketch.literal(key);
        pen.sketch.literal("=");
        return maybe(name, value, pen);
    }
    if let Some((user, database)) = part.split_once('@') {
        maybe("user", user, pen)?;
        pen.sketch.literal("@");
        return maybe("dbname", database, pen);
    }
    if let Some((pid, line)) = part.split_once('-')
        && canonical_int(pid).is_some()
        && canonical_int(line).is_some()
    {
        field("pid", pid, pen)?;
        pen.sketch.literal("-");
        return field("line_num", line, pen);
    }
    let name = if is_host(part) {
        "remote_host"
    } else if is_state(part) {
        "state_code"
    } else if canonical_int(part).is_some() {
        // The port of the client, the process, and the number of the line, in this order.
        let names = if is_port {
            ["remote_port"; 2]
        } else {
            ["pid", "line_num"]
        };
        names
            .into_iter()
            .find(|name| !pen.sketch.has_slot(name.as_bytes()))?
    } else if is_session(part) {
        "session_id"
    } else if part
        .split_once('/')
        .is_some_and(|(a, b)| is_number(a) && is_number(b))
    {
        "vxid"
    } else if is_bracketed {
        "application_name"
    } else {
        return None;
    };
    field(name, part, pen)
}

/// Draws a field that is not there yet, if it has a value.
fn maybe<'a>(name: &str, value: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    value
        .is_empty()
        .then_some(())
        .or_else(|| field(name, value, pen))
}

/// Draws a field that is not there yet.
fn field<'a>(name: &str, value: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    if pen.sketch.has_slot(name.as_bytes()) {
        return None;
    }
    let is_number = matches!(name, "pid" | "line_num" | "remote_port" | "txid");
    match canonical_int(value).filter(|_| is_number) {
        Some(number) => pen.slot(name, "i", Value::Int(number)),
        None => pen.text(name, value),
    }
    Some(())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// An address, or the word for a socket of the machine.
fn is_host(text: &str) -> bool {
    text == "local"
        || is_address(text) && (text.matches('.').count() == 3 || text.matches(':').count() >= 2)
}

/// `42P01`, `00000`
fn is_state(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    text.len() == 5
        && text.bytes().all(is_part)
        && text.starts_with(|first: char| first.is_ascii_digit() || "FHPX".contains(first))
        && (text.contains(|letter: char| letter.is_ascii_uppercase()) || text == "00000")
}

/// `65e0f3b1.4d`: the start of the session and its process, in hexadecimal digits.
fn is_session(text: &str) -> bool {
    text.split_once('.').is_some_and(|(start, process)| {
        let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
        start.len() == 8 && is_hex(start) && is_hex(process)
    })
}
