//! Values in the slots of a shape, and the line that is rendered with them.

use std::borrow::Cow;

use logpond_record::{Fix, Message, Piece, Record, Shape, SlotKind, Value, cast};

use super::{Change, Draft, Edit, MESSAGE, lists, text_of, value_of};
use crate::intake::logfmt;
use crate::intake::parser::Parser;

/// Fields that are made of a line.
type Derived = Vec<(Cow<'static, str>, Value<'static>)>;

/// What was changed and is not rendered yet.
#[derive(Default)]
pub(super) struct PendingChanges {
    slots: Vec<u16>,
    /// Slots whose text was put into quotes as logfmt does.
    quoted: Vec<u16>,
    /// Names of fields that were taken away: `-` may be read as their absence.
    removed: Vec<Box<str>>,
}

impl PendingChanges {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

impl Draft<'_> {
    pub(super) fn edit_slots(&mut self, edit: &mut dyn Edit) -> bool {
        let shape = self.record.shape.clone();
        let before = self.slots.slots.len();
        let of_message = self.field_of_message();
        for (index, slot) in shape.slots().iter().enumerate() {
            let is_message = Some(index) == shape.message_slot();
            let is_also = Some(index) == of_message && !edit.wants(&slot.name);
            let name = if is_message || is_also {
                MESSAGE
            } else {
                &*slot.name
            };
            if !(is_message || slot.is_field()) {
                continue;
            }
            let value = match (&self.record.message, is_message) {
                (Message::Part(value), true) => value,
                _ => &self.record.values[index],
            };
            if let Some(change) = lists::change(edit, name, value) {
                self.set_slot(&shape, index, change);
                if Some(index) == of_message {
                    self.record.message = Message::Part(self.record.values[index].clone());
                }
            }
        }
        self.slots.slots.len() > before
    }

    /// The slot of the field that is the record's message, too.
    pub(super) fn field_of_message(&self) -> Option<usize> {
        let shape = &self.record.shape;
        let Message::Part(message) = &self.record.message else {
            return None;
        };
        if shape.message_slot().is_some() {
            return None;
        }
        let mut slots = shape.slots().iter().zip(&self.record.values);
        slots.position(|(slot, value)| slot.is_field() && value == message)
    }

    fn set_slot(&mut self, shape: &Shape, index: usize, change: Change) {
        let slot = cast::low_u16(index);
        self.line = None;
        if change == Change::Remove {
            self.slots.removed.push(shape.slots()[index].name.clone());
        }
        let value = value_of(change.clone()).unwrap_or(Value::Str(Cow::Borrowed("-")));
        let is_json = matches!(change, Change::Json(_));
        let text = text_of(change);
        self.record.fixes.retain(|fix| fix.slot != slot);
        self.slots.quoted.retain(|quoted| *quoted != slot);
        let fix = match shape.slots()[index].kind {
            // It stands there as it is.
            SlotKind::Json if is_json => None,
            _ => fixed(shape, index, &text),
        };
        if let Some((fix, is_quoted)) = fix {
            if is_quoted {
                self.slots.quoted.push(slot);
            }
            self.put_fix(slot, fix);
        }
        if Some(index) == shape.message_slot() {
            self.record.message = Message::Part(value)
        } else {
            self.record.values[index] = value
        }
        self.slots.slots.push(slot);
    }

    fn put_fix(&mut self, slot: u16, text: Vec<u8>) {
        let fixes = &mut self.record.fixes;
        let at = fixes.partition_point(|fix| fix.slot < slot);
        let text = Cow::Owned(text);
        fixes.insert(at, Fix { slot, text });
    }

    /// Renders the line, and sees that it says what it should.
    pub(super) fn settle_slots(&mut self, parser: &mut Parser) {
        let pending = std::mem::take(&mut self.slots);
        let mut line = Vec::new();
        self.record.write_line(&mut line);
        if let Some(derived) = self.says(&line, &pending, parser) {
            self.line = Some(line);
            return self.set_derived(derived);
        }
        if !pending.quoted.is_empty() {
            let fixes = &mut self.record.fixes;
            fixes.retain(|fix| !pending.quoted.contains(&fix.slot));
            let mut plain = Vec::new();
            self.record.write_line(&mut plain);
            if let Some(derived) = self.says(&plain, &pending, parser) {
                self.line = Some(plain);
                return self.set_derived(derived);
            }
        }
        self.become_fields(&line, parser);
    }

    /// Whether reading this line gives the record's fields, message and time: then the fields that
    /// are made of it.
    fn says(&self, line: &[u8], pending: &PendingChanges, parser: &mut Parser) -> Option<Derived> {
        let read = self.parsed(line, parser);
        let is_told = |name: &str, value: &Value<'_>| {
            *value != Value::Str(Cow::Borrowed("-"))
                || !pending.removed.iter().any(|removed| **removed == *name)
        };
        fn told<'r>(
            record: &'r Record<'_>,
            is_told: &impl Fn(&str, &Value<'_>) -> bool,
        ) -> Vec<(&'r str, &'r Value<'r>)> {
            let slots = record.shape.slots().iter().zip(&record.values);
            slots
                .filter(|(slot, value)| slot.is_field() && is_told(&slot.name, value))
                .map(|(slot, value)| (&*slot.name, value))
                .collect()
        }
        let is_said = read.time == self.record.time
            && read.message == self.record.message
            && told(&read, &is_told) == told(&self.record, &is_told);
        is_said.then(|| read.into_owned().labels)
    }
}

/// The text of a slot where rendering would not give what is read as `text`, and whether it is in
/// quotes of logfmt.
fn fixed(shape: &Shape, index: usize, text: &str) -> Option<(Vec<u8>, bool)> {
    let before = before(shape, index);
    let is_pair = before.ends_with('=');
    match &shape.slots()[index].kind {
        SlotKind::JsonString | SlotKind::StructuredData | SlotKind::Time(_) => None,
        SlotKind::Quoted => text
            .bytes()
            .any(|byte| byte < b' ')
            .then(|| (in_quotes(text), false)),
        SlotKind::Text if !is_pair => None,
        _ if is_pair && !is_plain(text) => {
            Some(([b"\"", &in_quotes(text)[..], b"\""].concat(), true))
        }
        SlotKind::Text => None,
        _ if before.trim_ascii_end().ends_with("\":") => {
            let mut json = Vec::new();
            logpond_record::write_json_string(text, &mut json);
            Some((json, false))
        }
        _ => Some((text.as_bytes().to_vec(), false)),
    }
}

/// The literal before a slot.
fn before(shape: &Shape, index: usize) -> &str {
    let mut last = "";
    for piece in shape.pieces() {
        match piece {
            Piece::Slot(slot) if *slot == index => return last,
            Piece::Slot(_) => last = "",
            Piece::Literal(text) => last = text,
        }
    }
    last
}

/// Whether logfmt reads this text as it is, and as text.
fn is_plain(text: &str) -> bool {
    let ends = |byte: u8| byte <= b' ' || byte == b'"' || byte == b'\\';
    !text.bytes().any(ends) && matches!(logfmt::bare_value(text).0, Value::Str(_))
}

/// The inside of a value in quotes of logfmt.
fn in_quotes(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            other => out.push(other),
        }
    }
    out
}
