//! A record as formats see it: from a server's answer or from a record read here.

use std::borrow::Cow;
use std::fmt;

use logpond_record::{Decimal, Message, Record, Timestamp, Value};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::header;

/// Members of a row that are no fields; text formats do not print them.
const ORIGIN: [&str; 2] = ["_received", "_time_source"];

/// A message that shows so many fields, and so many times more than it does not show, is taken for
/// the line that they stand in: labels such as `file` are never in it.
const SHOWN_MIN: usize = 3;
const SHOWN_RATIO: usize = 3;

/// One record to print.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row<'a> {
    /// Event time; absent only if a server's answer lacks it.
    pub time: Option<Timestamp>,
    /// The id's text.
    pub id: Cow<'a, str>,
    /// The message.
    pub message: Option<Cow<'a, [u8]>>,
    /// Fields in order; a name may occur twice.
    pub fields: Vec<(Cow<'a, str>, Value<'a>)>,
    /// The original line, where it was asked for.
    pub line: Option<Cow<'a, [u8]>>,
}

/// Why a line of an answer is not a row.
#[derive(Debug)]
pub enum RowError {
    /// It is not a JSON object.
    Json(serde_json::Error),
    /// A value that should be base 64 is not.
    Base64,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowError::Json(_) => f.write_str("the server sent a line that is no JSON object"),
            RowError::Base64 => f.write_str("the server sent bytes that are not base 64"),
        }
    }
}

impl std::error::Error for RowError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RowError::Json(source) => Some(source),
            RowError::Base64 => None,
        }
    }
}

impl<'a> Row<'a> {
    /// The row of a record; its line is rendered only if it is wanted.
    pub fn from_record(record: &'a Record<'a>, with_line: bool) -> Row<'a> {
        let written = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            Cow::Owned(out)
        };
        let message = match record.message {
            Message::Absent => None,
            _ => Some(written(&|out| record.write_message(out))),
        };
        Row {
            time: Some(record.time),
            id: Cow::Owned(record.id.to_string()),
            message,
            fields: record
                .fields()
                .map(|(name, value)| (Cow::Borrowed(name), borrowed(value)))
                .collect(),
            line: with_line.then(|| written(&|out| record.write_line(out))),
        }
    }

    /// The row of one line of a server's answer.
    pub fn from_json(text: &'a [u8]) -> Result<Row<'a>, RowError> {
        let mut parser = serde_json::Deserializer::from_slice(text);
        let members = parser.deserialize_map(Members).map_err(RowError::Json)?;
        parser.end().map_err(RowError::Json)?;
        let mut row = Row::default();
        for (name, value) in members {
            match &*name {
                "_time" => row.time = parse_time(&value),
                "_id" => row.id = into_text(value),
                "_msg" if row.message.is_none() => row.message = Some(into_bytes(value)),
                "_msg" => {}
                "_msg_bin" => row.message = Some(Cow::Owned(base64_of(&value)?)),
                "_line" => row.line = Some(into_bytes(value)),
                "_line_b64" => row.line = Some(Cow::Owned(base64_of(&value)?)),
                _ => row.fields.push((name, value)),
            }
        }
        Ok(row)
    }

    /// The first field with this name.
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        self.fields
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value)
    }

    /// Leaves only the named fields, in the order of the names; the message only if it is named.
    pub fn keep_only(&mut self, names: &[String]) {
        let mut kept = Vec::with_capacity(names.len());
        for name in names {
            if let Some(at) = self.fields.iter().position(|(n, _)| n == name) {
                kept.push(self.fields.swap_remove(at));
            }
        }
        self.fields = kept;
        if !names.iter().any(|name| name == "_msg") {
            self.message = None;
        }
    }

    /// The same row without borrowed parts.
    pub fn into_owned(self) -> Row<'static> {
        let owned = |bytes: Cow<'_, [u8]>| Cow::Owned(bytes.into_owned());
        Row {
            time: self.time,
            id: Cow::Owned(self.id.into_owned()),
            message: self.message.map(owned),
            fields: self
                .fields
                .into_iter()
                .map(|(name, value)| (Cow::Owned(name.into_owned()), value.into_owned()))
                .collect(),
            line: self.line.map(owned),
        }
    }

    /// About how much memory the row takes beside itself.
    pub fn bytes(&self) -> usize {
        let length = |bytes: &Option<Cow<'_, [u8]>>| bytes.as_ref().map_or(0, |b| b.len());
        let field = |(name, value): &(Cow<'_, str>, Value<'_>)| {
            size_of::<(Cow<'_, str>, Value<'_>)>() + name.len() + value_bytes(value)
        };
        size_of::<Row<'_>>()
            + self.id.len()
            + length(&self.message)
            + length(&self.line)
            + self.fields.iter().map(field).sum::<usize>()
    }

    /// The bytes of its texts: about the length of its line of JSON.
    pub fn text_bytes(&self) -> usize {
        self.bytes() - self.fields.len() * size_of::<(Cow<'_, str>, Value<'_>)>()
    }

    /// The fields that text formats print.
    pub(super) fn plain_fields(&self) -> impl Iterator<Item = (&str, &Value<'a>)> {
        self.fields
            .iter()
            .map(|(name, value)| (&**name, value))
            .filter(|(name, _)| !ORIGIN.contains(name))
    }

    /// The message as it is shown behind these fields: without a header of syslog that says them again.
    pub(super) fn message_behind(&self, head: &[&str]) -> &[u8] {
        let message = self.message.as_deref().unwrap_or_default();
        let said = head.iter().filter_map(|name| self.field(name));
        let said: Vec<_> = said.map(Value::to_text).collect();
        let said: Vec<&[u8]> = said.iter().map(|text| &**text).collect();
        header::behind(message, &said)
    }

    /// The fields that text formats print behind the message: all but `skipped`, and but those
    /// that a message shows which is the line that they were taken from, as an access log's is.
    pub(super) fn fields_behind(
        &self,
        message: &[u8],
        skipped: &[&str],
    ) -> Vec<(&str, &Value<'a>)> {
        let all: Vec<_> = (self.plain_fields())
            .filter(|(name, _)| !skipped.contains(name))
            .collect();
        let shown = |(_, value): &(&str, &Value<'a>)| {
            memchr::memmem::find(message, &value.to_text()).is_some()
        };
        let hidden: Vec<_> = all.iter().copied().filter(|field| !shown(field)).collect();
        let shown_count = all.len() - hidden.len();
        let is_line = hidden.is_empty()
            || (shown_count >= SHOWN_MIN && shown_count >= hidden.len() * SHOWN_RATIO);
        if is_line { hidden } else { all }
    }
}

fn value_bytes(value: &Value<'_>) -> usize {
    match value {
        Value::Str(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

fn borrowed<'a>(value: &'a Value<'a>) -> Value<'a> {
    match value {
        Value::Null => Value::Null,
        Value::Bool(b) => Value::Bool(*b),
        Value::Int(i) => Value::Int(*i),
        Value::Float(f) => Value::Float(*f),
        Value::Str(s) => Value::Str(Cow::Borrowed(s)),
        Value::Json(s) => Value::Json(Cow::Borrowed(s)),
        Value::Bytes(b) => Value::Bytes(Cow::Borrowed(b)),
    }
}

/// RFC 3339 as a server writes it.
fn parse_time(value: &Value<'_>) -> Option<Timestamp> {
    let Value::Str(text) = value else { return None };
    let time: jiff::Timestamp = text.parse().ok()?;
    i64::try_from(time.as_nanosecond()).ok().map(Timestamp)
}

fn into_text<'a>(value: Value<'a>) -> Cow<'a, str> {
    match value {
        Value::Str(text) | Value::Json(text) => text,
        other => Cow::Owned(String::from_utf8_lossy(&other.to_text()).into_owned()),
    }
}

fn into_bytes<'a>(value: Value<'a>) -> Cow<'a, [u8]> {
    match into_text(value) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn base64_of(value: &Value<'_>) -> Result<Vec<u8>, RowError> {
    decode_base64(&value.to_text()).ok_or(RowError::Base64)
}

/// Decodes base 64 of RFC 4648 with or without padding; `None` if it is none.
pub fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text
        .strip_suffix(b"==")
        .or(text.strip_suffix(b"="))
        .unwrap_or(text);
    if text.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.chunks(4) {
        let mut bits: u32 = 0;
        for &character in group {
            let six = match character {
                b'A'..=b'Z' => character - b'A',
                b'a'..=b'z' => character - b'a' + 26,
                b'0'..=b'9' => character - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = (bits << 6) | u32::from(six);
        }
        bits <<= 6 * (4 - group.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

/// Reads an object's members in their order, which a map would lose.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(Cow<'de, str>, Value<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
            members.push((name.0, member(value.get())));
        }
        Ok(members)
    }
}

/// A member's name, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// The value of valid JSON text.
fn member(text: &str) -> Value<'_> {
    match text.as_bytes().first() {
        Some(b'"') => {
            let inside = &text[1..text.len() - 1];
            if memchr::memchr(b'\\', inside.as_bytes()).is_none() {
                return Value::Str(Cow::Borrowed(inside));
            }
            serde_json::from_str(text).map_or(Value::Json(text.into()), |s: String| {
                Value::Str(Cow::Owned(s))
            })
        }
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'n') => Value::Null,
        Some(b'{' | b'[') | None => Value::Json(Cow::Borrowed(text)),
        Some(_) if memchr::memchr3(b'.', b'e', b'E', text.as_bytes()).is_none() => {
            // A whole number beyond 64 bits keeps all of its digits as text.
            text.parse()
                .map_or(Value::Json(Cow::Borrowed(text)), Value::Int)
        }
        Some(_) => match (Decimal::parse(text.as_bytes()), text.parse()) {
            (Some(decimal), Ok(float)) if decimal.is_written_float(float) => Value::Float(float),
            _ => Value::Json(Cow::Borrowed(text)),
        },
    }
}
