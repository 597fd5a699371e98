//! Records, messages and objects that an object without a message of its own holds.
//!
//! Services deliver many records as a list in one object: CloudTrail, Azure's diagnostic settings, subscriptions of
//! CloudWatch, lists of Kubernetes, files of the OpenTelemetry Collector. A line is one record and keeps its bytes, so
//! that the list stays one field. The object has the time and the message of the first record in it, and the gravest
//! level of the first [`RECORDS_MAX`], each where it says none itself. Listeners that know such bodies, as Firehose's,
//! make a record of each.
//!
//! Loggers of JavaScript write what they were called with as an array. Its texts are the message, with its other
//! values as JSON between them. Azure writes properties as JSON in a text, which is read for the same three.

use std::borrow::Cow;

use logpond_record::{
    Assumption, Entry, EntryKind, Message, Severity, Shape, TimeSource, Timestamp, Value,
    is_severity_field,
};

use super::super::json::{END_OF_LINE, JsonError, JsonReason, elements};
use super::{ParsedLine, Parser};

/// The most records of a list that are read.
const RECORDS_MAX: usize = 16;

/// The most values that a message is made of.
const VALUES_MAX: usize = 64;

/// The most bytes of a message that is made of values.
const MESSAGE_BYTES_MAX: usize = 32 << 10;

/// How deep lists within records of lists are read: OpenTelemetry's resources, scopes and records.
const LISTS_MAX: usize = 3;

/// The most fields of an object among which is looked.
const SLOTS_MAX: usize = 64;

/// A member that stands for the message and more.
struct Member {
    name: &'static str,
    /// A field that must be there, too; empty if none must.
    beside: &'static str,
    holds: MemberKind,
}

/// The content of a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberKind {
    /// Records.
    Records,
    /// The arguments that a logger was called with.
    Values,
    /// An object as text.
    Object,
}

const fn member(name: &'static str, beside: &'static str, holds: MemberKind) -> Member {
    Member {
        name,
        beside,
        holds,
    }
}

/// The members, the first that is there counts.
const MEMBERS: [Member; 20] = [
    member("message", "", MemberKind::Values),
    member("msg", "", MemberKind::Values),
    // log4js, consola.
    member("data", "categoryName", MemberKind::Values),
    member("args", "level", MemberKind::Values),
    member("args", "type", MemberKind::Values),
    // CloudTrail and notifications of S3; Azure; CloudWatch, its subscriptions and its answers.
    member("Records", "", MemberKind::Records),
    member("records", "", MemberKind::Records),
    member("logEvents", "", MemberKind::Records),
    member("events", "", MemberKind::Records),
    // Kubernetes, Microsoft Graph, Google.
    member("items", "kind", MemberKind::Records),
    member("items", "apiVersion", MemberKind::Records),
    member("value", "@odata.context", MemberKind::Records),
    member("value", "@odata.nextLink", MemberKind::Records),
    member("entries", "", MemberKind::Records),
    // OpenTelemetry.
    member("resourceLogs", "", MemberKind::Records),
    member("scopeLogs", "", MemberKind::Records),
    member("logRecords", "", MemberKind::Records),
    // Others.
    member("logs", "", MemberKind::Records),
    // Azure.
    member("properties", "category", MemberKind::Object),
    member("properties", "resourceId", MemberKind::Object),
];

/// The facts of a record that an object may lack.
#[derive(Default)]
struct RecordFacts {
    time: Option<(Timestamp, Assumption)>,
    level: Option<Severity>,
    message: Option<Value<'static>>,
}

impl Parser {
    /// Reads what an object holds, and its message as a line is.
    pub(super) fn read_held<'a>(
        &mut self,
        entry: &Entry<'a>,
        mut parsed: ParsedLine<'a>,
    ) -> ParsedLine<'a> {
        if !matches!(parsed.parts.message, Message::Absent) {
            return self.nest(entry, parsed);
        }
        let Some((slot, holds)) = member_of(&parsed.shape, &parsed.parts.values) else {
            return parsed;
        };
        let text = match &parsed.parts.values[slot] {
            Value::Json(text) | Value::Str(text) => text.clone(),
            _ => return parsed,
        };
        if holds == MemberKind::Values {
            let Some(message) = message_of(&text) else {
                return parsed;
            };
            parsed.parts.message = Message::Part(Value::Str(Cow::Owned(message)));
            return self.nest(entry, parsed);
        }
        if self.lists == LISTS_MAX {
            return parsed;
        }
        self.lists += 1;
        let said = if holds == MemberKind::Records {
            self.first_of(entry, &text)
        } else {
            self.said_by(entry, &text)
        };
        self.lists -= 1;
        complete(&mut parsed, said);
        parsed
    }

    /// An object with lines of text behind it, as of a trace: the record has the object's fields, and is kept whole.
    pub(super) fn object_before<'a>(
        &mut self,
        entry: &Entry<'a>,
        error: &JsonError,
    ) -> Option<ParsedLine<'a>> {
        let behind = JsonReason::Expected(END_OF_LINE);
        let head = entry
            .raw
            .get(..error.at)
            .filter(|_| error.reason == behind)?;
        let raw = head.trim_ascii_end();
        if !head[raw.len()..].contains(&b'\n') {
            return None;
        }
        let parsed = self.json(&Entry { raw, ..*entry })?;
        // Without a message of its own the message is the whole line, which rules change as a whole.
        let has_message = matches!(parsed.parts.message, Message::Part(_));
        has_message.then_some(ParsedLine {
            whole: true,
            ..parsed
        })
    }

    /// A line that is a list of objects: a text with the time and the level of a list's records.
    pub(super) fn list<'a>(&mut self, entry: &Entry<'a>) -> Option<ParsedLine<'a>> {
        let text = std::str::from_utf8(entry.raw).ok()?;
        if self.lists > 0 || !text.trim_ascii_end().ends_with(']') {
            return None;
        }
        self.lists += 1;
        let said = self.first_of(entry, text);
        self.lists -= 1;
        said.time?;
        let mut parsed = self.unread(entry);
        complete(
            &mut parsed,
            RecordFacts {
                message: None,
                ..said
            },
        );
        Some(parsed)
    }

    /// The facts of the records of a list: the first one says its time and its message, the gravest its level.
    fn first_of(&mut self, entry: &Entry<'_>, list: &str) -> RecordFacts {
        let mut first: Option<RecordFacts> = None;
        for element in elements(list, RECORDS_MAX) {
            let said = self.said_by(entry, element);
            match &mut first {
                None => first = Some(said),
                Some(first) => first.level = first.level.max(said.level),
            }
        }
        first.unwrap_or_default()
    }

    /// The facts that an object says.
    fn said_by(&mut self, entry: &Entry<'_>, text: &str) -> RecordFacts {
        if !text.starts_with('{') {
            return RecordFacts::default();
        }
        let inner = Entry {
            kind: EntryKind::Json,
            raw: text.as_bytes(),
            ..*entry
        };
        let Some(read) = self.recognise(&inner) else {
            return RecordFacts::default();
        };
        let own = read.parts.time.map(|time| {
            let assumed = match read.parts.time_source {
                TimeSource::Field(assumed)
                | TimeSource::Line(assumed)
                | TimeSource::Header(assumed) => assumed,
                _ => Assumption::Nothing,
            };
            (time, assumed)
        });
        let message = match &read.parts.message {
            Message::Part(value) => Some(value.clone().into_owned()),
            _ => None,
        };
        RecordFacts {
            time: read.time.or(own),
            level: level_of(&read),
            message,
        }
    }
}

/// The slot of the member that the message of a record is in, if it is in no field of its own.
pub(crate) fn holder_of(shape: &Shape, values: &[Value<'_>]) -> Option<usize> {
    member_of(shape, values).map(|(slot, _)| slot)
}

/// The slot of the member that counts.
fn member_of(shape: &Shape, values: &[Value<'_>]) -> Option<(usize, MemberKind)> {
    let may_be = |value: &Value<'_>| match value {
        Value::Json(text) => text.starts_with('['),
        Value::Str(text) => text.starts_with('{'),
        _ => false,
    };
    // Most objects have none.
    let first = values.iter().take(SLOTS_MAX);
    if !first.into_iter().any(may_be) {
        return None;
    }
    MEMBERS.iter().find_map(|member| {
        let slot = shape.field_slot(member.name)?;
        let is_list = matches!(values.get(slot)?, Value::Json(_));
        let is_it = may_be(&values[slot])
            && is_list == (member.holds != MemberKind::Object)
            && (member.beside.is_empty() || shape.field_slot(member.beside).is_some());
        is_it.then_some((slot, member.holds))
    })
}

/// The level of a record.
fn level_of(read: &ParsedLine<'_>) -> Option<Severity> {
    let said = read
        .level
        .and_then(|level| Severity::of_word(level.as_bytes()));
    if said.is_some() {
        return said;
    }
    let mut slots = read.shape.slots().iter().zip(&read.parts.values);
    slots.find_map(|(slot, value)| {
        let is_one = slot.is_field() && is_severity_field(&slot.name);
        is_one.then(|| Severity::of_field(&slot.name, &value.to_text()))?
    })
}

/// Gives an object what it lacks.
fn complete(parsed: &mut ParsedLine<'_>, said: RecordFacts) {
    if parsed.parts.time.is_none()
        && parsed.time.is_none()
        && let Some((time, assumed)) = said.time
    {
        parsed.parts.time = Some(time);
        parsed.parts.time_source = TimeSource::Field(assumed);
    }
    if !parsed.has_level && parsed.level.is_none() {
        parsed.level = said.level.map(Severity::name);
    }
    if let Some(message) = said.message {
        parsed.parts.message = Message::Part(message);
    }
}

/// The texts of an array with its other values between them; `None` if it has no text.
fn message_of(list: &str) -> Option<String> {
    let mut message = String::new();
    let mut has_text = false;
    for element in elements(list, VALUES_MAX) {
        let text = serde_json::from_str::<String>(element).ok();
        has_text |= text.is_some();
        let text = text.as_deref().unwrap_or(element);
        if message.len() + text.len() > MESSAGE_BYTES_MAX {
            break;
        }
        if !message.is_empty() {
            message.push(' ');
        }
        message.push_str(text);
    }
    has_text.then_some(message)
}
