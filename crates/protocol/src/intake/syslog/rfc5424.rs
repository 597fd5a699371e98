//! RFC 5424: `1 time host app procid msgid structured-data[ message]`, behind the priority.
//!
//! Kept where it is harmless: words longer than the RFC allows, more digits of a second, a space
//! between date and time, and a time without an offset. Where
//! the structured data is missing or wrong, it and what follows it is the message.

use std::borrow::Cow;

use logpond_record::{TimeSource, Value};
use memchr::memchr;

use super::rule::Context;
use super::word;
use crate::intake::sketch::Sketch;

/// Elements and parameters of one message together; one with more is content.
const PARAMETERS_MAX: usize = 256;

/// The RFC's limit for names of elements and parameters.
const NAME_BYTES_MAX: usize = 32;

/// What some senders write before the message to say that it is UTF-8.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// An element's or a parameter's name, and what follows it.
type Name<'a> = (&'a str, &'a [u8]);

pub(super) fn draw<'a>(
    after: &'a [u8],
    context: Context<'_>,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<()> {
    let digits = after
        .iter()
        .take(4)
        .take_while(|b| b.is_ascii_digit())
        .count();
    if !(1..=3).contains(&digits) || after[0] == b'0' {
        return None;
    }
    let (version, rest) = word(after)?;
    if version.len() != digits {
        return None;
    }
    sketch.literal(version);
    sketch.literal(" ");
    let mut rest = draw_time(space(rest)?, context, sketch)?;
    for slot in ["hostname:t", "app:t", "procid:t", "msgid:t"] {
        let (value, after) = word(space(rest)?)?;
        sketch.literal(" ");
        match value {
            "-" => sketch.literal("-"),
            _ => sketch.text(slot, value),
        }
        rest = after;
    }
    if rest.is_empty() {
        sketch.message(b"");
        return Some(());
    }
    sketch.literal(" ");
    let rest = space(rest)?;
    let Some(parameters) = structured_data(rest) else {
        sketch.message(rest);
        return Some(());
    };
    let rest = draw_structured_data(rest, &parameters, sketch);
    draw_message(rest, sketch);
    Some(())
}

/// Draws the time or `-`; gives what follows.
fn draw_time<'a>(
    rest: &'a [u8],
    context: Context<'_>,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<&'a [u8]> {
    if let Some(after) = rest.strip_prefix(b"-") {
        sketch.literal("-");
        return Some(after);
    }
    let written = context.times.iso(rest, context.received)?;
    let (time, after) = rest.split_at(written.bytes);
    sketch.time(&written, time, TimeSource::Header);
    Some(after)
}

fn draw_message<'a>(rest: &'a [u8], sketch: &mut Sketch<'_, 'a>) {
    let Some(message) = rest.strip_prefix(b" ") else {
        return sketch.message(rest);
    };
    sketch.literal(" ");
    match message.strip_prefix(BYTE_ORDER_MARK.as_bytes()) {
        Some(message) => {
            sketch.literal(BYTE_ORDER_MARK);
            sketch.message(message);
        }
        None => sketch.message(message),
    }
}

fn space(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b" ")
}

/// A parameter in the structured data. Positions are bytes from the start of the data.
struct Parameter<'a> {
    element: &'a str,
    name: &'a str,
    span: (usize, usize),
}

/// What structured data holds.
struct StructuredData<'a> {
    parameters: Vec<Parameter<'a>>,
    length: usize,
}

/// Reads `-` or elements in brackets, up to a space or the end; `None` if it is neither.
fn structured_data(text: &[u8]) -> Option<StructuredData<'_>> {
    let mut data = StructuredData {
        parameters: Vec::new(),
        length: 0,
    };
    if text.first() == Some(&b'-') {
        data.length = 1;
        return matches!(text.get(1), None | Some(b' ')).then_some(data);
    }
    let mut elements = 0;
    let mut rest = text;
    while let Some(after) = rest.strip_prefix(b"[") {
        let (element, after) = name(after)?;
        rest = after;
        elements += 1;
        while let Some(after) = rest.strip_prefix(b" ") {
            let (name, after) = name(after)?;
            let value = after.strip_prefix(b"=\"")?;
            let start = text.len() - value.len();
            let end = start + value_length(value)?;
            std::str::from_utf8(&text[start..end]).ok()?;
            if data.parameters.len() + elements >= PARAMETERS_MAX {
                return None;
            }
            data.parameters.push(Parameter {
                element,
                name,
                span: (start, end),
            });
            rest = &text[end + 1..];
        }
        rest = rest.strip_prefix(b"]")?;
    }
    data.length = text.len() - rest.len();
    let ends =
        elements > 0 && elements < PARAMETERS_MAX && matches!(rest.first(), None | Some(b' '));
    (ends && no_name_twice(&data.parameters)).then_some(data)
}

/// Whether each field occurs once. Repeated parameters are allowed by the RFC; they are kept as
/// content, because two slots of one name would be one field.
fn no_name_twice(parameters: &[Parameter<'_>]) -> bool {
    parameters.iter().enumerate().all(|(index, one)| {
        !parameters[..index]
            .iter()
            .any(|other| other.name == one.name && other.element == one.element)
    })
}

fn name(text: &[u8]) -> Option<Name<'_>> {
    let end = text
        .iter()
        .take(NAME_BYTES_MAX + 1)
        .take_while(|b| b.is_ascii_graphic() && !matches!(b, b'=' | b']' | b'"'))
        .count();
    if end == 0 || end > NAME_BYTES_MAX {
        return None;
    }
    let name = std::str::from_utf8(&text[..end]).ok()?;
    Some((name, &text[end..]))
}

/// The bytes before the quote that closes a value. A bare `]` is wrong there.
fn value_length(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr3(b'"', b'\\', b']', text.get(at..)?)?;
        match text[at] {
            b'"' => return Some(at),
            b'\\' if matches!(text.get(at + 1), Some(b'"' | b'\\' | b']')) => at += 2,
            b'\\' => at += 1,
            _ => return None,
        }
    }
}

/// Draws the structured data that `text` begins with; gives what follows it.
fn draw_structured_data<'a>(
    text: &'a [u8],
    data: &StructuredData<'_>,
    sketch: &mut Sketch<'_, 'a>,
) -> &'a [u8] {
    let mut after = 0;
    for parameter in &data.parameters {
        let (start, end) = parameter.span;
        sketch.ascii(&text[after..start]);
        after = end;
        let lexeme = &text[start..end];
        let (value, canonical) = unescape(lexeme);
        sketch.named_slot(parameter.element, parameter.name, "d", value);
        if !canonical {
            sketch.fix(lexeme);
        }
    }
    sketch.ascii(&text[after..data.length]);
    &text[data.length..]
}

/// A parameter's value, and whether rendering it gives the text back: a backslash before any but
/// the three characters that need one is part of the value, and rendering doubles it.
fn unescape(lexeme: &[u8]) -> (Value<'_>, bool) {
    if memchr(b'\\', lexeme).is_none() {
        return (Value::text(lexeme), true);
    }
    let mut value = Vec::with_capacity(lexeme.len());
    let mut canonical = true;
    let mut rest = lexeme;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after.split_first()) {
            (b'\\', Some((&escaped @ (b'"' | b'\\' | b']'), after))) => {
                value.push(escaped);
                rest = after;
            }
            _ => {
                canonical &= byte != b'\\';
                value.push(byte);
            }
        }
    }
    let value = match String::from_utf8(value) {
        Ok(text) => Value::Str(Cow::Owned(text)),
        Err(error) => Value::Bytes(Cow::Owned(error.into_bytes())),
    };
    (value, canonical)
}
