//! An entry point for fuzzing.

use logpond_record::{
    Entry, EntryKind, Envelope, Id, Labels, Message, Record, Timestamp, Value, line_of,
};

use super::{Change, Draft, Edit, MESSAGE};
use crate::intake::parser::{Parser, rebuilds};

/// 2026-03-02T00:00:00Z.
const RECEIVED: Timestamp = Timestamp(1_772_409_600_000_000_000);

/// What changed values become; no field of a name that is not to be changed is told by it.
const PUT: &str = "REDACTED";

/// Changes the fields whose names' bytes add up to an even number, among them `_msg` or not.
struct Even {
    wants_message: bool,
}

impl Edit for Even {
    fn names(&self) -> Vec<&str> {
        if self.wants_message {
            vec![MESSAGE]
        } else {
            Vec::new()
        }
    }

    fn wants(&self, name: &str) -> bool {
        match name {
            MESSAGE => self.wants_message,
            name => name.bytes().map(u64::from).sum::<u64>() % 2 == 0,
        }
    }

    fn change(&mut self, _name: &str, _value: &Value<'_>) -> Option<Change> {
        Some(Change::Text(PUT.to_owned()))
    }
}

/// Any bytes as a line of each kind, with fields changed.
///
/// # Panics
/// If the new line is none that is given back, a field that was to be changed has its old value, or one
/// that was not has another.
pub fn fuzz_rewrite(data: &[u8]) {
    let is_json = std::str::from_utf8(data).is_ok_and(crate::intake::json::is_object);
    for (kind, wants_message) in [
        (EntryKind::Line, false),
        (EntryKind::Syslog, true),
        (EntryKind::Line, true),
        (EntryKind::Text, true),
        (EntryKind::Json, false),
    ] {
        if kind != EntryKind::Json || is_json {
            check(kind, data, Even { wants_message });
        }
    }
}

fn check(kind: EntryKind, raw: &[u8], mut edit: Even) {
    let mut parser = Parser::new();
    let labels: Labels = vec![("hostname".into(), "web-1".into())];
    let received = RECEIVED;
    let mut draft = Draft::new(&entry(kind, Envelope::default(), &labels, raw), &mut parser);
    let before = fields(draft.record());
    let is_changed = draft.edit(&mut edit, &mut parser);
    draft.settle(&mut parser);
    assert_eq!(is_changed, draft.is_changed());
    let mut batch = logpond_record::Batch::new(EntryKind::Enveloped, Labels::new());
    draft.push_to(&mut batch, true);
    let held = batch.iter().next().unwrap_or_default();
    let (kind, envelope, line) = line_of(EntryKind::Enveloped, held);
    let none = Labels::new();
    let record = parser.parse(&Entry {
        received,
        ..entry(kind, envelope, &none, line)
    });
    assert!(rebuilds(&record, line));
    if !is_changed {
        assert_eq!(fields(&record), before);
        assert!(line == raw);
    }
    for (name, value) in record.fields().filter(|(name, _)| edit.wants(name)) {
        // A field that is made of others may have more of the new line around it, as a host has a port.
        let is_made = record.labels.iter().any(|(label, _)| *label == *name);
        let is_put = match value {
            Value::Str(text) if is_made => text.contains(PUT),
            value => *value == Value::Str(PUT.into()),
        };
        assert!(is_put, "{name} is {value:?} in {}", line.escape_ascii());
    }
    if let (Message::Part(value), true) = (&record.message, edit.wants_message) {
        assert_eq!(*value, Value::Str(PUT.into()), "{}", line.escape_ascii());
    }
    assert_eq!(parser.take_met().panicked, 0, "{}", raw.escape_ascii());
}

/// The fields that count: of several with a name the first.
fn fields(record: &Record<'_>) -> Vec<(String, Value<'static>)> {
    let mut fields: Vec<(String, Value<'static>)> = Vec::new();
    for (name, value) in record.fields() {
        if !fields.iter().any(|(known, _)| known == name) {
            fields.push((name.to_owned(), value.clone().into_owned()));
        }
    }
    fields
}

fn entry<'a>(
    kind: EntryKind,
    envelope: Envelope<'a>,
    labels: &'a Labels,
    raw: &'a [u8],
) -> Entry<'a> {
    Entry {
        id: Id::MIN,
        received: RECEIVED,
        kind,
        labels,
        envelope,
        raw,
    }
}
