//! Shapes of objects together with those of their messages: lines of one program repeat them.
//!
//! Invariants:
//! - A pair is kept only if each of its slots renders what it renders in the object or in the message, whatever the
//!   value is. So no line of the pair has to be written to know its fixes.
//! - At most [`JOINTS_MAX`] pairs are kept.

use std::borrow::Cow;
use std::sync::Arc;

use logpond_record::{Fix, Shape, SlotKind, Timestamp, Value};

use super::ParsedLine;

/// Pairs that are kept. A server has some programs whose lines shippers put into objects.
const JOINTS_MAX: usize = 64;

/// The origin of a slot's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Outer(usize),
    Inner(usize),
    /// The text of the message's time, of which the object has one, too.
    Time(usize),
    /// The record's own time or message.
    Own,
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

/// True if nothing of the values decides what is drawn.
fn is_regular(outer: &ParsedLine<'_>, inner: &ParsedLine<'_>) -> bool {
    let message = outer.shape.message_slot();
    let mut fixes = outer.parts.fixes.iter();
    !outer.whole
        && !inner.whole
        && inner.parts.fixes.is_empty()
        && !fixes.any(|fix| Some(usize::from(fix.slot)) == message)
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
        for origin in &joint.slots {
            values.push(match *origin {
                Origin::Outer(index) => take(&mut outer.parts.values, index),
                Origin::Inner(index) => take(&mut inner.parts.values, index),
                Origin::Time(index) => {
                    let mut text = Vec::new();
                    let time = inner.parts.time.unwrap_or(Timestamp(0));
                    let value = &inner.parts.values[index];
                    joint.inner.render_slot(index, time, value, &mut text);
                    Value::text(&text).into_owned()
                }
                Origin::Own => Value::Null,
            });
        }
        let fixes = std::mem::take(&mut outer.parts.fixes).into_iter();
        let fixes = fixes.filter_map(|fix| {
            let origin = Origin::Outer(usize::from(fix.slot));
            let slot = joint.slots.iter().position(|slot| *slot == origin)?;
            Some(Fix {
                slot: slot as u16,
                text: fix.text,
            })
        });
        Some((Arc::clone(&joint.shape), values, fixes.collect()))
    }

    /// Keeps the shape of a pair that was drawn.
    pub(super) fn learn(
        &mut self,
        outer: &ParsedLine<'_>,
        inner: &ParsedLine<'_>,
        end: &str,
        shape: &Arc<Shape>,
    ) {
        // A value of another kind may be written otherwise than it is rendered.
        let is_plain = |kind: &SlotKind| {
            matches!(
                kind,
                SlotKind::Text
                    | SlotKind::Int
                    | SlotKind::Float
                    | SlotKind::Bool
                    | SlotKind::Time(_)
            )
        };
        let all_plain = inner.shape.slots().iter().all(|slot| is_plain(&slot.kind));
        if !all_plain || !is_regular(outer, inner) {
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
                _ if Some(index) == own => Origin::Own,
                SlotKind::Time(_) if facts.has_time => Origin::Time(index),
                SlotKind::Time(_) => Origin::Own,
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
