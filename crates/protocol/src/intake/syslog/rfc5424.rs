//! RFC 5424: `1 time host app procid msgid structured-data[ message]`, behind the priority.
//!
//! Kept where it is harmless: words longer than the RFC allows, more digits of a second, a space
//! between date and time, a time without an offset, names of any characters in the structured data, more
//! spaces there, a `]` in a value, and no space behind it. Where
//! the structured data is missing or wrong, it and what follows it is the message.
//!
//! A parameter that an element repeats is a list, as the RFC has it: a JSON array of texts. An element
//! that is there twice, which the RFC forbids, counts as JSON members do: the last one of a parameter.

use std::borrow::Cow;
use std::collections::HashMap;

use logpond_record::limits::FIELD_NAME_BYTES_MAX;
use logpond_record::{TimeSource, Value, write_json_string};
use memchr::memchr;

use super::rule::Context;
use super::{BYTE_ORDER_MARK, word};
use crate::intake::sketch::Sketch;

/// Parameters of a message whose shape rebuilds the line; with more it only lists them.
const PARAMETERS_MAX: usize = 256;

/// Bytes of structured data beside values in such a shape: half of a shape.
const LITERAL_BYTES_MAX: usize = 8 << 10;

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
    /// Number of the element.
    number: usize,
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
            let after = after.trim_ascii_start();
            if after.first() == Some(&b']') {
                rest = after;
                break;
            }
            let (name, after) = name(after)?;
            let value = after.strip_prefix(b"=\"")?;
            let start = text.len() - value.len();
            let end = start + value_length(value)?;
            std::str::from_utf8(&text[start..end]).ok()?;
            data.parameters.push(Parameter {
                element,
                number: elements,
                name,
                span: (start, end),
            });
            rest = &text[end + 1..];
        }
        rest = rest.strip_prefix(b"]")?;
    }
    data.length = text.len() - rest.len();
    // Some senders leave out the space before the message.
    let ends = matches!(rest.first(), None | Some(b' ')) || !data.parameters.is_empty();
    (elements > 0 && ends).then_some(data)
}

/// Whether slots can rebuild the data: they have names that slots may have, each one once.
fn is_regular(data: &StructuredData<'_>) -> bool {
    let parameters = &data.parameters;
    let values: usize = parameters.iter().map(|p| p.span.1 - p.span.0).sum();
    let names: usize = parameters
        .iter()
        .map(|p| p.element.len() + p.name.len())
        .sum();
    let is_short = |p: &Parameter<'_>| p.element.len() + p.name.len() < FIELD_NAME_BYTES_MAX;
    let is_plain = |p: &Parameter<'_>| p.element.is_ascii() && p.name.is_ascii();
    parameters.len() <= PARAMETERS_MAX
        && parameters.iter().all(is_plain)
        && data.length - values + names <= LITERAL_BYTES_MAX
        && parameters.iter().all(is_short)
        && !parameters.iter().any(|p| p.element.starts_with("_time:"))
        && no_name_twice(parameters)
}

/// Whether each field occurs once: two slots of one name would be one field.
fn no_name_twice(parameters: &[Parameter<'_>]) -> bool {
    parameters.iter().enumerate().all(|(index, one)| {
        !parameters[..index]
            .iter()
            .any(|other| other.name == one.name && other.element == one.element)
    })
}

fn name(text: &[u8]) -> Option<Name<'_>> {
    // Senders have longer ones than the 32 characters of the RFC, and other characters.
    let is_part = |b: &&u8| **b > b' ' && !matches!(b, b'=' | b']' | b'"' | 0x7f);
    let end = text.iter().take_while(is_part).count();
    if end == 0 {
        return None;
    }
    let name = std::str::from_utf8(&text[..end]).ok()?;
    Some((name, &text[end..]))
}

/// The bytes before the quote that closes a value. A bare `]` is wrong there, and taken as it is.
fn value_length(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        match text[at] {
            b'"' => break,
            _ if matches!(text.get(at + 1), Some(b'"' | b'\\' | b']')) => at += 2,
            _ => at += 1,
        }
    }
    matches!(text.get(at + 1), Some(b' ' | b']')).then_some(at)
}

/// Draws the structured data that `text` begins with; gives what follows it.
fn draw_structured_data<'a>(
    text: &'a [u8],
    data: &StructuredData<'_>,
    sketch: &mut Sketch<'_, 'a>,
) -> &'a [u8] {
    if !is_regular(data) {
        list_structured_data(text, data, sketch);
        return &text[data.length..];
    }
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

/// Lists the parameters of data that slots do not rebuild.
fn list_structured_data<'a>(
    text: &'a [u8],
    data: &StructuredData<'_>,
    sketch: &mut Sketch<'_, 'a>,
) {
    sketch.become_listing();
    let mut places = HashMap::new();
    let mut fields: Vec<Vec<&Parameter<'_>>> = Vec::new();
    for parameter in &data.parameters {
        let next = fields.len();
        let place = *places
            .entry((parameter.element, parameter.name))
            .or_insert(next);
        match fields.get_mut(place) {
            None => fields.push(vec![parameter]),
            Some(values) if values[0].number == parameter.number => values.push(parameter),
            Some(values) => *values = vec![parameter],
        }
    }
    for values in &fields {
        let name = format!("{}.{}", values[0].element, values[0].name);
        let value =
            |parameter: &Parameter<'_>| unescape(&text[parameter.span.0..parameter.span.1]).0;
        match &values[..] {
            [one] => sketch.list_slot(&name, "d", value(one)),
            all => sketch.list_slot(&name, "r", list_of(all.iter().map(|one| value(one)))),
        }
    }
}

/// A list of texts.
fn list_of<'a>(values: impl Iterator<Item = Value<'a>>) -> Value<'static> {
    let mut list = Vec::new();
    for value in values {
        list.push(if list.is_empty() { b'[' } else { b',' });
        write_json_string(&String::from_utf8_lossy(&value.to_text()), &mut list);
    }
    list.push(b']');
    Value::Json(Cow::Owned(String::from_utf8(list).unwrap_or_default()))
}

/// A parameter's value, and whether rendering it gives the text back: a backslash before any but
/// the three characters that need one is part of the value, and rendering doubles it; it also writes one
/// before a `]` that has none.
fn unescape(lexeme: &[u8]) -> (Value<'_>, bool) {
    if memchr(b'\\', lexeme).is_none() {
        let canonical = memchr(b']', lexeme).is_none();
        return (Value::text(lexeme), canonical);
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
                canonical &= !matches!(byte, b'\\' | b']');
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
