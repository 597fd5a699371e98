//! Real logs with each of their fields changed in turn: the old value is nowhere, and the other fields
//! are as before.

mod real_logs;

use std::collections::BTreeMap;

use logpond_protocol::intake::Parser;
use logpond_protocol::intake::json::validate;
use logpond_protocol::intake::rewrite::{Change, Draft, Edit, MESSAGE};
use logpond_record::{
    Batch, Entry, EntryKind, Envelope, Id, Labels, Message, Record, Timestamp, Value, line_of,
};
use memchr::memmem;

use real_logs::{files_below, shared};

/// 2026-03-10T00:00:00Z: behind all that the fixtures hold.
const RECEIVED: Timestamp = Timestamp(1_773_100_800_000_000_000);

/// Lines of a file that are tried.
const LINES_MAX: usize = 60;

/// Longer lines take long, with a hundred fields each.
const LINE_BYTES_MAX: usize = 3_000;

/// Fields of a line that are tried.
const FIELDS_MAX: usize = 25;

/// A value so short stands in a line by chance.
const VALUE_BYTES_MIN: usize = 5;

/// Changes one field.
struct One<'n>(&'n str, Option<&'n str>);

impl Edit for One<'_> {
    fn names(&self) -> Vec<&str> {
        vec![self.0]
    }

    fn wants(&self, name: &str) -> bool {
        name == self.0
    }

    fn change(&mut self, _name: &str, _value: &Value<'_>) -> Option<Change> {
        Some(match self.1 {
            Some(text) => Change::Text(text.to_owned()),
            None => Change::Remove,
        })
    }
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

/// The fields but one, the message among them, by name.
fn others(record: &Record<'_>, but: &str) -> BTreeMap<String, Value<'static>> {
    let message = match &record.message {
        Message::Part(value) => Some((MESSAGE, value)),
        _ => None,
    };
    // A name that occurs twice counts once.
    let all: Vec<(&str, &Value<'_>)> = message.into_iter().chain(record.fields()).collect();
    let all = all.into_iter().rev().filter(|(name, _)| *name != but);
    all.map(|(name, value)| (name.to_owned(), value.clone().into_owned()))
        .collect()
}

#[derive(Default)]
struct TrialCounts {
    edits: usize,
    searched: usize,
    as_fields: usize,
}

impl TrialCounts {
    fn line(&mut self, kind: EntryKind, raw: &[u8], parser: &mut Parser) {
        let labels = Labels::new();
        let before = parser.parse(&entry(kind, Envelope::default(), &labels, raw));
        let message = match &before.message {
            Message::Part(value) => Some((MESSAGE, value)),
            _ => None,
        };
        let fields = message.into_iter().chain(before.fields());
        let fields: Vec<(String, Vec<u8>)> = fields
            .map(|(name, value)| (name.to_owned(), value.to_text().into_owned()))
            .take(FIELDS_MAX)
            .collect();
        for (index, (name, old)) in fields.iter().enumerate() {
            let put = [Some("REDACTED"), None, Some("with spaces")][index % 3];
            self.edit(kind, raw, &before, (name, old), put, parser);
        }
    }

    fn edit(
        &mut self,
        kind: EntryKind,
        raw: &[u8],
        before: &Record<'_>,
        (name, old): (&str, &[u8]),
        put: Option<&str>,
        parser: &mut Parser,
    ) {
        let labels = Labels::new();
        let mut draft = Draft::new(&entry(kind, Envelope::default(), &labels, raw), parser);
        assert!(
            draft.edit(&mut One(name, put), parser),
            "{name} of {}",
            raw.escape_ascii()
        );
        draft.settle(parser);
        let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
        draft.push_to(&mut batch, true);
        let (new_kind, envelope, line) = line_of(EntryKind::Enveloped, batch.payload());
        let after = parser.parse(&entry(new_kind, envelope, &labels, line));
        let told = || {
            format!(
                "{name} of {} is {}",
                raw.escape_ascii(),
                line.escape_ascii()
            )
        };
        self.edits += 1;
        self.as_fields += usize::from(new_kind != kind);
        if old.len() >= VALUE_BYTES_MIN && memmem::find_iter(raw, old).count() == 1 {
            self.searched += 1;
            assert!(memmem::find(line, old).is_none(), "{}", told());
        }
        if let Some(value) = after.field(name) {
            let expected = put.unwrap_or("-").as_bytes();
            let is_put = *value == Value::Null || *value.to_text() == *expected;
            assert!(is_put, "{value:?}: {}", told());
        }
        let is_in_line = before.shape.slots().iter().any(|slot| *slot.name == *name);
        if name == MESSAGE || !is_in_line || before.whole.is_some() {
            // What is made of others is changed in these.
            return;
        }
        // What is made of the line may be another one; a line as a message becomes one of its own.
        let made = before.labels.iter().chain(&after.labels);
        let made: Vec<&str> = made.map(|(name, _)| &**name).collect();
        let is_kept = |known: &String| !made.contains(&known.as_str()) && *known != MESSAGE;
        let (mut was, mut is) = (others(before, name), others(&after, name));
        was.retain(|known, _| is_kept(known));
        is.retain(|known, _| is_kept(known));
        assert_eq!(was, is, "{}", told());
        // A message that is no part of its own is made of fields, or is one.
        if before.shape.message_slot().is_some() {
            assert_eq!(before.message, after.message, "{}", told());
        }
        assert_eq!(before.time, after.time, "{}", told());
    }
}

#[test]
fn every_field_of_the_fixtures_can_be_changed() {
    let Some(folder) = shared("every_field_of_the_fixtures_can_be_changed") else {
        return;
    };
    let mut files = Vec::new();
    files_below(&folder.join("fixtures"), &mut files);
    let mut tried = TrialCounts::default();
    for path in files {
        let data = std::fs::read(&path).unwrap();
        let mut parser = Parser::new();
        let lines = data.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| (1..LINE_BYTES_MAX).contains(&line.len()));
        for raw in lines.take(LINES_MAX) {
            tried.line(EntryKind::Line, raw, &mut parser);
            tried.line(EntryKind::Syslog, raw, &mut parser);
            if validate(raw).is_ok() {
                tried.line(EntryKind::Json, raw, &mut parser);
            }
        }
    }
    let TrialCounts {
        edits,
        searched,
        as_fields,
    } = tried;
    println!("{edits} fields changed, {searched} searched for, {as_fields} lines became fields");
    assert!(edits > 50_000 && searched > 20_000, "{edits} {searched}");
}
