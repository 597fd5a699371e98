//! Events of Windows as XML: `<Event xmlns='…'><System>…</System><EventData>…</EventData></Event>`.
//!
//! Elements of `System` are fields by their names, and attributes by theirs (`Provider`, `ProcessID`). Values of
//! `EventData` and of `UserData` have the names that the provider gave them; values without one have `Data` and a
//! number. The rendered message is the message.
//! Source: Microsoft, Windows Event Log, "Event Schema".

use std::borrow::Cow;

use logpond_record::Value;
use memchr::memmem;

use crate::intake::logfmt;
use crate::intake::outline::Outline;
use crate::intake::sketch::Parts;

/// Start of all events.
pub(super) const START: &[u8] = b"<Event";

/// The longest event that is taken apart.
const EVENT_BYTES_MAX: usize = 64 << 10;

/// The most elements of an event.
const ELEMENTS_MAX: usize = 256;

/// Elements whose text is a field.
const TEXTS: [&str; 8] = [
    "EventID",
    "Version",
    "Task",
    "Opcode",
    "Keywords",
    "EventRecordID",
    "Channel",
    "Computer",
];

/// Attributes that are fields, by element: the name of the attribute, and that of the field.
const ATTRIBUTES: [(&str, &str, &str); 6] = [
    ("Provider", "Name", "Provider"),
    ("Provider", "Guid", "ProviderGuid"),
    ("Execution", "ProcessID", "ProcessID"),
    ("Execution", "ThreadID", "ThreadID"),
    ("Correlation", "ActivityID", "ActivityID"),
    ("Security", "UserID", "UserID"),
];

/// Characters that are written as entities.
const ENTITIES: [(&str, &str); 9] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&apos;", "'"),
    ("&#13;", "\r"),
    ("&#10;", "\n"),
    ("&#xD;", "\r"),
    ("&#xA;", "\n"),
    ("&amp;", "&"),
];

/// True for a line that begins as an event.
pub(super) fn is_candidate(line: &[u8]) -> bool {
    line.starts_with(START) && line.len() <= EVENT_BYTES_MAX && matches!(line[6], b' ' | b'>')
}

/// An element that is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    None,
    System,
    Data,
    Rendering,
}

/// Reads an event.
pub(super) fn read<'a>(text: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    outline.clear();
    let mut parts = Parts::new(32);
    let (mut place, mut at, mut unnamed) = (Place::None, 0, 0);
    for _ in 0..ELEMENTS_MAX {
        let Some(open) = memchr::memchr(b'<', &text.as_bytes()[at..]) else {
            break;
        };
        let start = at + open + 1;
        let end = start + memchr::memchr(b'>', &text.as_bytes()[start..])?;
        at = end + 1;
        let tag = &text[start..end];
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        place = match name {
            "System" => Place::System,
            "EventData" | "UserData" => Place::Data,
            "RenderingInfo" => Place::Rendering,
            _ => place,
        };
        if tag.starts_with('/') || tag.ends_with('/') && place == Place::Data {
            continue;
        }
        let closing = memchr::memchr(b'<', &text.as_bytes()[at..])?;
        let span = (at, at + closing);
        let is_last = text[span.1..].starts_with("</");
        match place {
            Place::System => {
                for (element, attribute, field) in ATTRIBUTES {
                    if element == name
                        && let Some(span) = value_of(text, start, end, attribute)
                    {
                        add(outline, &mut parts, text, field, span);
                    }
                }
                if TEXTS.contains(&name) {
                    add(outline, &mut parts, text, name, span);
                }
            }
            Place::Data if is_last && name == "Data" => match value_of(text, start, end, "Name") {
                Some(named) => add(outline, &mut parts, text, &text[named.0..named.1], span),
                None => {
                    unnamed += 1;
                    add(outline, &mut parts, text, &format!("Data{unnamed}"), span);
                }
            },
            Place::Data if is_last => add(outline, &mut parts, text, name, span),
            Place::Rendering if name == "Message" => {
                add(outline, &mut parts, text, "message", span);
            }
            _ => {}
        }
    }
    (!parts.values.is_empty()).then_some(parts)
}

/// Adds a field, unless it is empty.
fn add<'a>(
    outline: &mut Outline,
    parts: &mut Parts<'a>,
    text: &'a str,
    name: &str,
    span: (usize, usize),
) {
    let written = &text[span.0..span.1];
    if written.trim_ascii().is_empty() || name.is_empty() {
        return;
    }
    let read = if written.contains('&') {
        let mut value = written.to_owned();
        for (entity, letter) in ENTITIES {
            if value.contains(entity) {
                value = value.replace(entity, letter);
            }
        }
        (Value::Str(Cow::Owned(value)), b't', false)
    } else {
        logfmt::bare_value(written)
    };
    outline.add(parts, name.as_bytes(), text, span, read);
}

/// The place of the value of an attribute within a tag.
fn value_of(text: &str, start: usize, end: usize, name: &str) -> Option<(usize, usize)> {
    let tag = &text[start..end];
    let mut places = memmem::find_iter(tag.as_bytes(), name.as_bytes());
    let at = places.find(|at| {
        let behind = &tag[at + name.len()..];
        tag[..*at].ends_with(' ') && (behind.starts_with("=\"") || behind.starts_with("='"))
    })?;
    let value = at + name.len() + 2;
    let quote = &tag[value - 1..value];
    let length = tag[value..].find(quote)?;
    Some((start + value, start + value + length))
}
