//! What the formats for people have in common, and `cat`.

use super::{Entry, Style};
use logpond_host::terminal::text::write_safe;

/// Fields of so many bytes are not shown in the head of a line.
const HEAD_BYTES_MAX: usize = 300;

pub(super) const NORMAL: &str = "\x1b[0m";
pub(super) const BRIGHT: &str = "\x1b[0;1;39m";
pub(super) const UNDERLINE: &str = "\x1b[0;4m";
const BRIGHT_RED: &str = "\x1b[0;1;31m";
const BRIGHT_YELLOW: &str = "\x1b[0;1;38;5;185m";
const GREY: &str = "\x1b[0;38;5;245m";

/// The colour of a level, and that of what is searched for in it.
pub(super) fn colours(level: Option<u8>) -> (&'static str, &'static str) {
    match level {
        Some(0..=3) => (BRIGHT_RED, BRIGHT),
        Some(4) => (BRIGHT_YELLOW, BRIGHT_RED),
        Some(5) => (BRIGHT, BRIGHT_RED),
        Some(7) => (GREY, BRIGHT_RED),
        _ => ("", BRIGHT_RED),
    }
}

/// Appends text of a record.
pub(super) fn put(text: &[u8], style: &Style, out: &mut Vec<u8>) {
    if style.escapes {
        write_safe(text, true, out)
    } else {
        out.extend_from_slice(text)
    }
}

/// `-o cat`: messages, or the fields that were chosen, a line each, as they are.
pub(super) fn cat(entry: &Entry, style: &Style, out: &mut Vec<u8>) {
    let message = ["MESSAGE".to_owned()];
    let names = if style.only.is_empty() {
        &message[..]
    } else {
        &style.only
    };
    for name in names {
        let Some(value) = value_of(entry, name) else {
            continue;
        };
        let is_coloured = style.colour && name == "MESSAGE";
        let (on, highlight) = if is_coloured {
            colours(entry.level())
        } else {
            ("", "")
        };
        let spans = style.spans.as_ref().filter(|_| is_coloured);
        let spans = spans.map_or(Vec::new(), |spans| spans(&value));
        painted(&value, 0, (on, highlight), &spans, style, out);
        out.push(b'\n');
    }
}

/// The first value of a field, those of the entry's address included.
fn value_of(entry: &Entry, name: &str) -> Option<Vec<u8>> {
    match name {
        "_BOOT_ID" => entry.boot_id.clone().map(String::into_bytes),
        name => entry.values(name).next().map(<[u8]>::to_vec),
    }
}

/// Appends a part of a text that begins at `start` in it, in its colour, with spans of the text
/// highlighted.
pub(super) fn painted(
    part: &[u8],
    start: usize,
    (on, highlight): (&str, &str),
    spans: &[std::ops::Range<usize>],
    style: &Style,
    out: &mut Vec<u8>,
) {
    let off = NORMAL.as_bytes();
    out.extend_from_slice(on.as_bytes());
    let mut done = 0;
    let mut is_painted = !on.is_empty();
    for span in spans {
        let from = span.start.saturating_sub(start).clamp(done, part.len());
        let to = span.end.saturating_sub(start).clamp(from, part.len());
        if from == to {
            continue;
        }
        put(&part[done..from], style, out);
        out.extend_from_slice(highlight.as_bytes());
        put(&part[from..to], style, out);
        out.extend_from_slice(if on.is_empty() { off } else { on.as_bytes() });
        is_painted |= !on.is_empty();
        done = to;
    }
    put(&part[done..], style, out);
    if is_painted {
        out.extend_from_slice(off);
    }
}

/// Whether a terminal shows it as it is: text without control characters but tabs and line ends.
pub(super) fn is_printable(text: &[u8]) -> bool {
    match std::str::from_utf8(text) {
        Ok(text) => !text
            .chars()
            .any(|c| c.is_control() && !matches!(c, '\t' | '\n')),
        Err(_) => false,
    }
}

/// Whether a field may stand in the head of a line.
pub(super) fn is_for_head(value: &[u8], style: &Style) -> bool {
    style.all || (value.len() < HEAD_BYTES_MAX && is_printable(value))
}

/// `[1.9K blob data]`: what stands for bytes that are not shown.
pub(super) fn blob(length: usize) -> String {
    const UNITS: [(&str, u64); 4] = [
        ("T", 1 << 40),
        ("G", 1 << 30),
        ("M", 1 << 20),
        ("K", 1 << 10),
    ];
    let length = length as u64;
    let text = match UNITS.iter().find(|(_, unit)| length >= *unit) {
        Some((name, unit)) => {
            format!(
                "{}.{}{name}",
                length / unit,
                (length % unit) * 10 / unit % 10
            )
        }
        None => format!("{length}B"),
    };
    format!("[{text} blob data]")
}

/// A message as it is shown: tabs are spaces; sequences that only choose colours or name links, and
/// carriage returns in front of line ends are gone.
pub(super) fn shown(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len());
    let mut rest = message;
    let mut returns = 0;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'\r' => {
                returns += 1;
                continue;
            }
            b'\n' => returns = 0,
            _ => {}
        }
        out.resize(out.len() + std::mem::take(&mut returns), b'\r');
        match byte {
            b'\t' => out.extend_from_slice(b"        "),
            b'\x1b' => match sequence(after) {
                Some(length) => rest = &after[length..],
                None => out.push(byte),
            },
            byte => out.push(byte),
        }
    }
    out
}

/// The length of the sequence behind an escape, if it is one that changes nothing but the looks.
fn sequence(text: &[u8]) -> Option<usize> {
    let (kind, body) = text.split_first()?;
    match kind {
        b'[' => {
            let length = body
                .iter()
                .position(|b| !matches!(b, b'0'..=b'9' | b':' | b';'))?;
            (body[length] == b'm').then_some(length + 2)
        }
        b']' => {
            let length = body.iter().position(|b| !(32..=126).contains(b))?;
            (body[length] == b'\x07').then_some(length + 2)
        }
        _ => None,
    }
}

/// Appends lines behind a head of `indent` columns: all but the first are indented. An empty text is an
/// empty line.
pub(super) fn lines(
    text: &[u8],
    indent: usize,
    mut line: impl FnMut(&[u8], usize, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    if text.is_empty() {
        out.push(b'\n');
    }
    let mut start = 0;
    while start < text.len() {
        let length = memchr::memchr(b'\n', &text[start..]).unwrap_or(text.len() - start);
        if start > 0 {
            out.resize(out.len() + indent, b' ');
        }
        line(&text[start..start + length], start, out);
        out.push(b'\n');
        start += length + 1;
    }
}
