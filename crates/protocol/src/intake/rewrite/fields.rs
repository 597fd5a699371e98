//! A record as its fields, where its line can have no other form.

use std::borrow::Cow;

use logpond_record::{EntryKind, Message, Record, TimeSource, Value, write_json_string};

use super::{Draft, MESSAGE};
use crate::intake::parser::Parser;

impl Draft<'_> {
    /// Makes the line an object of the record's fields; where reading that gives others, the message,
    /// with the fields beside it. `line` is what the message becomes if it was the line.
    pub(super) fn become_fields(&mut self, line: &[u8], parser: &mut Parser) {
        // Other lines have no such fields of themselves.
        let first = self.record.labels.len() - self.derived;
        let derived = self.record.labels.split_off(first);
        self.record.labels.splice(self.own..self.own, derived);
        self.own += std::mem::take(&mut self.derived);
        let record = &self.record;
        let message = match &record.message {
            Message::Absent => None,
            Message::Line => Some(Value::text(line)),
            Message::Part(value) => Some(value.clone()),
        };
        let message = message.map(Value::into_owned);
        let fields: Vec<(String, Value<'static>)> = fields_of(record)
            .map(|(name, value)| (name.to_owned(), value.clone().into_owned()))
            .collect();
        if record.time_source != TimeSource::Received {
            self.time = Some(record.time);
        }
        self.kind = EntryKind::Json;
        let object = object(message.as_ref(), &fields);
        let read = self.parsed(&object, parser);
        let is_told = fields_of(&read).eq(fields.iter().map(|(name, value)| (&**name, value)))
            && read.message == message.clone().map_or(Message::Absent, Message::Part)
            && read.labels.is_empty();
        if is_told {
            return self.read_anew(object, parser);
        }
        self.kind = EntryKind::Text;
        let text = message.map_or_else(Vec::new, |message| message.to_text().into_owned());
        self.read_anew(text, parser);
        self.own += fields.len();
        let fields = fields.into_iter();
        let fields = fields.map(|(name, value)| (Cow::Owned(name), value));
        self.record.labels.splice(0..0, fields);
    }
}

/// The fields in a record's line.
fn fields_of<'r>(record: &'r Record<'_>) -> impl Iterator<Item = (&'r str, &'r Value<'r>)> {
    let slots = record.shape.slots().iter().zip(&record.values);
    let fields = slots.filter(|(slot, _)| slot.is_field());
    fields.map(|(slot, value)| (&*slot.name, value))
}

fn object(message: Option<&Value<'_>>, fields: &[(String, Value<'static>)]) -> Vec<u8> {
    let mut out = b"{".to_vec();
    let message = message.map(|value| (MESSAGE, value));
    let fields = fields.iter().map(|(name, value)| (&**name, value));
    for (name, value) in message.into_iter().chain(fields) {
        if out.len() > 1 {
            out.push(b',');
        }
        write_json_string(name, &mut out);
        out.push(b':');
        value.write_json(&mut out);
    }
    out.push(b'}');
    out
}
