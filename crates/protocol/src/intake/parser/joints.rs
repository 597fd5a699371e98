//! Shapes of objects together with those of their messages: lines of one program repeat them.
//!
//! Invariants:
//! - The shape of a pair depends on both shapes and on [`Facts`] only. Values decide no more than the fixes.
//! - A fix is written only for a value with a byte that is escaped, or for one that has a fix in its own line.
//! - At most [`JOINTS_MAX`] pairs are kept.

use std::borrow::Cow;
use std::sync::Arc;

use logpond_record::{Fix, Message, Shape, SlotKind, Timestamp, Value, cast};

use super::ParsedLine;
use super::nested::escape;

/// Pairs that are kept. A server has some programs whose lines shippers put into objects.
const JOINTS_MAX: usize = 64;

/// The origin of a slot's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Outer(usize),
    Inner(usize),
    /// The text of the message's time, of which the object has one, too.
    Time(usize),
    /// The message's time as the record's.
    OwnTime(usize),
    /// The message's message as the record's.
    OwnMessage(usize),
}

/// The facts that the shape of both depends on.
#[derive(PartialEq, Eq)]
struct Facts {
    has_time: bool,
    has_level: bool,
    level: Option<&'static str>,
}

struct Joint {
    outer: Arc<Shape>,
    inner: Arc<Shape>,
    facts: Facts,
    /// The line end that the message had.
    end: Box<str>,
    shape: Arc<Shape>,
    slots: Box<[Origin]>,
}

/// The pairs that were met.
#[derive(Default)]
pub(super) struct Joints {
    known: Vec<Joint>,
}

/// A shape with its values and fixes.
pub(super) type Joined<'a> = (Arc<Shape>, Vec<Value<'a>>, Vec<Fix<'a>>);

fn facts(outer: &ParsedLine<'_>) -> Facts {
    Facts {
        has_time: outer.parts.time.is_some(),
        has_level: outer.has_level,
        level: outer.level,
    }
}

/// True if both lines are rendered from their shapes, and the message as it is written.
fn is_regular(outer: &ParsedLine<'_>, inner: &ParsedLine<'_>) -> bool {
    let message = outer.shape.message_slot();
    let mut fixes = outer.parts.fixes.iter();
    !outer.whole && !inner.whole && !fixes.any(|fix| Some(usize::from(fix.slot)) == message)
}

/// The text of a slot of the message as the object has it, if the slot of the pair does not render it.
fn inner_fix(inner: &ParsedLine<'_>, index: usize, is_message: bool) -> Option<Vec<u8>> {
    let kind = &inner.shape.slots()[index].kind;
    let value = match &inner.parts.message {
        Message::Part(value) if is_message => value,
        _ => inner.parts.values.get(index)?,
    };
    let own = own_fix(inner, index);
    let is_string = matches!(
        kind,
        SlotKind::JsonString | SlotKind::Quoted | SlotKind::StructuredData
    );
    let is_rendered = match (kind, value) {
        (SlotKind::Json, _) => false,
        (_, Value::Str(text)) => !is_string || is_plain(text),
        _ => !is_string,
    };
    if own.is_none() && is_rendered {
        return None;
    }
    let mut text = Vec::new();
    match own {
        Some(fix) => text.extend_from_slice(fix),
        None => inner
            .shape
            .render_slot(index, Timestamp(0), value, &mut text),
    }
    let escaped = escaped(&text);
    let rendered = if is_string || *kind == SlotKind::Text {
        self::escaped(&value.to_text())
    } else {
        let mut rendered = Vec::new();
        inner
            .shape
            .render_slot(index, Timestamp(0), value, &mut rendered);
        rendered
    };
    (rendered != escaped).then_some(escaped)
}

/// The fix that a slot of the message has in its own line.
fn own_fix<'p>(inner: &'p ParsedLine<'_>, index: usize) -> Option<&'p [u8]> {
    let mut fixes = inner.parts.fixes.iter();
    let own = fixes.find(|fix| usize::from(fix.slot) == index);
    own.map(|fix| &*fix.text)
}

/// The inside of a JSON string with this text.
fn escaped(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    escape(text, &mut escaped);
    escaped
}

/// True if no byte of a text is escaped, in strings of JSON, of logfmt or of structured data.
fn is_plain(text: &str) -> bool {
    let is_escaped = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\' | b']');
    // Without an early end the loop takes many bytes at a time.
    let count = |sum: usize, byte: &u8| sum + usize::from(is_escaped(byte));
    text.as_bytes().iter().fold(0, count) == 0
}

impl Joints {
    /// The object with the fields of its message, if the pair is known. Takes the values of both then.
    pub(super) fn join<'a>(
        &mut self,
        outer: &mut ParsedLine<'a>,
        inner: &mut ParsedLine<'static>,
        end: &str,
    ) -> Option<Joined<'a>> {
        if !is_regular(outer, inner) {
            return None;
        }
        let facts = facts(outer);
        let place = self.known.iter().position(|joint| {
            Arc::ptr_eq(&joint.outer, &outer.shape)
                && Arc::ptr_eq(&joint.inner, &inner.shape)
                && joint.facts == facts
                && *joint.end == *end
        })?;
        let joint = &self.known[place];
        let mut values = Vec::with_capacity(joint.slots.len());
        let mut fixes = Vec::new();
        for (slot, origin) in joint.slots.iter().enumerate() {
            let fix = match *origin {
                Origin::Inner(index) => inner_fix(inner, index, false),
                Origin::OwnMessage(index) => inner_fix(inner, index, true),
                Origin::OwnTime(index) => own_fix(inner, index).map(escaped),
                Origin::Outer(_) | Origin::Time(_) => None,
            };
            if let Some(text) = fix {
                let (slot, text) = (cast::low_u16(slot), Cow::Owned(text));
                fixes.push(Fix { slot, text });
            }
            values.push(match *origin {
                Origin::Outer(index) => take(&mut outer.parts.values, index),
                Origin::Inner(index) => take(&mut inner.parts.values, index),
                Origin::Time(index) => text_of_time(joint, inner, index),
                Origin::OwnTime(_) | Origin::OwnMessage(_) => Value::Null,
            });
        }
        for fix in std::mem::take(&mut outer.parts.fixes) {
            let origin = Origin::Outer(usize::from(fix.slot));
            if let Some(slot) = joint.slots.iter().position(|slot| *slot == origin) {
                let (slot, text) = (cast::low_u16(slot), fix.text);
                fixes.push(Fix { slot, text });
            }
        }
        fixes.sort_by_key(|fix| fix.slot);
        Some((Arc::clone(&joint.shape), values, fixes))
    }

    /// Keeps the shape of a pair that was drawn.
    pub(super) fn learn(
        &mut self,
        outer: &ParsedLine<'_>,
        inner: &ParsedLine<'_>,
        end: &str,
        shape: &Arc<Shape>,
    ) {
        if !is_regular(outer, inner) {
            return;
        }
        let facts = facts(outer);
        let message = outer.shape.message_slot();
        let own = inner.shape.message_slot();
        let mut slots = Vec::with_capacity(shape.slots().len());
        for index in 0..outer.shape.slots().len() {
            if Some(index) != message {
                slots.push(Origin::Outer(index));
                continue;
            }
            let each = inner.shape.slots().iter().enumerate();
            slots.extend(each.map(|(index, slot)| match slot.kind {
                _ if Some(index) == own => Origin::OwnMessage(index),
                SlotKind::Time(_) if facts.has_time => Origin::Time(index),
                SlotKind::Time(_) => Origin::OwnTime(index),
                _ => Origin::Inner(index),
            }));
        }
        if slots.len() != shape.slots().len() {
            return;
        }
        if self.known.len() >= JOINTS_MAX {
            self.known.clear();
        }
        self.known.push(Joint {
            outer: Arc::clone(&outer.shape),
            inner: Arc::clone(&inner.shape),
            facts,
            end: end.into(),
            shape: Arc::clone(shape),
            slots: slots.into(),
        });
    }
}

/// The text of the message's time as it is written.
fn text_of_time<'a>(joint: &Joint, inner: &ParsedLine<'_>, index: usize) -> Value<'a> {
    if let Some(fix) = own_fix(inner, index) {
        return Value::text(fix).into_owned();
    }
    let mut text = Vec::new();
    let time = inner.parts.time.unwrap_or(Timestamp(0));
    joint
        .inner
        .render_slot(index, time, &Value::Null, &mut text);
    Value::text(&text).into_owned()
}

fn take<'a>(values: &mut [Value<'a>], index: usize) -> Value<'a> {
    let value = values.get_mut(index);
    value.map_or(Value::Null, |value| {
        std::mem::replace(value, Value::Str(Cow::Borrowed("")))
    })
}

#[cfg(test)]
mod tests {
    use logpond_record::{Entry, EntryKind, Envelope, Id, Labels, Record};

    use super::*;
    use crate::intake::Parser;

    const ACCESS: &str = r#"192.0.2.7 - - [27/Nov/2026:00:51:25 +0000] \"GET /a\" 200"#;

    fn described(record: &Record<'_>) -> String {
        let text = |value: &Value<'_>| String::from_utf8_lossy(&value.to_text()).into_owned();
        let fields: Vec<String> = record
            .fields()
            .map(|(name, value)| format!("{name}={}", text(value)))
            .collect();
        let (mut line, mut message) = (Vec::new(), Vec::new());
        record.write_line(&mut line);
        record.write_message(&mut message);
        format!(
            "{:?} {:?} {fields:?} {} {}",
            record.time,
            record.time_source,
            String::from_utf8_lossy(&line),
            String::from_utf8_lossy(&message)
        )
    }

    /// A parser that knows a pair reads a line as one that knows none.
    #[test]
    fn known_pairs_change_nothing() {
        let request =
            r#"192.0.2.7 - - [27/Nov/2026:00:51:25 +0000] \"GET /%s HTTP/1.1\" 200 5 \"-\" \"a\""#;
        let messages = [
            ACCESS.to_owned(),
            request.replace("%s", "cart"),
            request.replace("%s", r#"c\u00e4rt\\x"#),
            request.replace("%s", "cart") + r"\n",
            r#"2026/11/27 00:51:25 [error] 41#42: *7 refused, client: 192.0.2.7, server: a"#.into(),
            r#"level=info msg=\"a b\" n=7"#.into(),
            r#"{\"level\":\"info\",\"msg\":\"a\\nb\",\"n\":7}"#.into(),
            r#"{\"level\":\"info\",\"msg\":\"a b\",\"n\":7}"#.into(),
            r#"{\"ts\":\"2026-11-27T00:51:25Z\",\"msg\":\"a\",\"tags\":[\"x]\"],\"f\":2.50,\"no\":null}"#.into(),
            r#"{\"ts\":\"2026-11-27T00:51:25Z\",\"msg\":\"a\",\"tags\":[7],\"f\":2.5,\"no\":null}"#.into(),
            r#"{\"time\":1795740685.50,\"msg\":\"a\\u0062\",\"user\":\"\\u00e4\"}"#.into(),
            r#"{\"time\":1795740685.50,\"msg\":\"ab\",\"user\":\"ann\"}"#.into(),
            r#"time=\"2026-11-27T00:51:25Z\" level=warn msg=\"a \\\"b\\\"\" n=07"#.into(),
            r#"time=\"2026-11-27T00:51:25Z\" level=warn msg=\"a b\" n=7"#.into(),
            r#"<13>1 2026-11-27T00:51:25Z h app 7 - [x@1 k=\"a]\"] refused"#.into(),
            "<13>Nov 27 00:51:25 h app[7]: refused".into(),
        ];
        let objects = [
            r#"{"time":"2026-11-27T00:51:26Z","message":"MSG","n":1.50}"#,
            r#"{"level":"warn","message":"MSG","host":"w"}"#,
            r#"{"log":"MSG"}"#,
        ];
        let labels = Labels::new();
        let mut warm = Parser::new();
        for _ in 0..3 {
            for (object, message) in objects
                .iter()
                .flat_map(|object| messages.iter().map(move |message| (object, message)))
            {
                let line = object.replace("MSG", message);
                let entry = Entry {
                    id: Id::MIN,
                    received: Timestamp(1_795_780_800_000_000_000),
                    kind: EntryKind::Line,
                    labels: &labels,
                    envelope: Envelope::default(),
                    raw: line.as_bytes(),
                };
                let known = described(&warm.parse(&entry));
                let new = described(&Parser::new().parse(&entry));
                assert_eq!(known, new);
                assert!(known.contains(&line), "{known}");
            }
        }
    }
}
