//! Lines that no shape gives back, such as those with a name twice: values are looked for in the text.

use std::borrow::Cow;

use logpond_record::{Message, Value};
use memchr::memmem;

use super::{Change, Draft, Edit, MESSAGE, MESSAGE_KEYS, text_of};
use crate::intake::parser::Parser;

/// A value shorter than this is looked for behind its name only: it stands everywhere.
const VALUE_BYTES_MIN: usize = 4;

/// What a value was, and what it becomes.
struct ChangedPair {
    name: String,
    old: Vec<u8>,
    new: String,
    is_removed: bool,
}

impl Draft<'_> {
    pub(super) fn edit_pairs(&mut self, edit: &mut dyn Edit, parser: &mut Parser) -> bool {
        let mut line = self.current_line().into_owned();
        let changed = self.changed_fields(edit);
        let mut is_changed = !changed.is_empty();
        for name in names(edit) {
            if let Some(replaced) = replace_behind(&line, &name, edit) {
                line = replaced;
                is_changed = true;
            }
        }
        for ChangedPair { old, new, .. } in &changed {
            if old.len() >= VALUE_BYTES_MIN {
                line = replace_all(&line, old, new.as_bytes());
            }
        }
        if !is_changed {
            return false;
        }
        let is_gone = |one: &ChangedPair| {
            one.old.len() < VALUE_BYTES_MIN
                || one.new.as_bytes() == one.old
                || memmem::find(&line, &one.old).is_none()
        };
        let read = self.parsed(&line, parser);
        let says = |one: &ChangedPair| {
            let found = match (&*one.name, &read.message) {
                (MESSAGE, Message::Part(value)) => Some(value),
                (name, _) => read.field(name),
            };
            found.map_or(one.is_removed, |value| {
                value.to_text() == one.new.as_bytes()
            })
        };
        if changed.iter().all(|one| is_gone(one) && says(one)) {
            self.read_anew(line, parser);
            return true;
        }
        self.set_fields(&changed);
        self.become_fields(b"-", parser);
        true
    }

    /// The fields of the record that are changed.
    fn changed_fields(&self, edit: &mut dyn Edit) -> Vec<ChangedPair> {
        let record = &self.record;
        let message = match &record.message {
            Message::Part(value) => Some((MESSAGE, value)),
            _ => None,
        };
        let slots = record.shape.slots().iter().zip(&record.values);
        let fields = slots.filter(|(slot, _)| slot.is_field());
        let fields = fields.map(|(slot, value)| (&*slot.name, value));
        let all = message.into_iter().chain(fields);
        all.filter_map(|(name, value)| {
            let change = edit.wants(name).then(|| edit.change(name, value))??;
            Some(ChangedPair {
                name: name.to_owned(),
                old: value.to_text().into_owned(),
                is_removed: change == Change::Remove,
                new: text_of(change),
            })
        })
        .collect()
    }

    fn set_fields(&mut self, changed: &[ChangedPair]) {
        let record = &mut self.record;
        for one in changed {
            let value = || Value::Str(Cow::Owned(one.new.clone()));
            if one.name == MESSAGE
                && let Message::Part(_) = record.message
            {
                record.message = Message::Part(value());
                continue;
            }
            let slots = record.shape.slots().iter().zip(&mut record.values);
            for (slot, old) in slots.filter(|(slot, _)| slot.is_field()) {
                if *slot.name == *one.name {
                    *old = value();
                }
            }
        }
    }
}

/// The names to look for; of the message those that it may have in a line.
fn names(edit: &dyn Edit) -> Vec<String> {
    let mut names: Vec<String> = edit.names().into_iter().map(str::to_owned).collect();
    if names.iter().any(|name| name == MESSAGE) {
        names.extend(MESSAGE_KEYS.map(str::to_owned));
    }
    names.sort();
    names.dedup();
    names
}

/// The line with the values changed that stand behind `name=` or `name:`; `None` if there are none.
fn replace_behind(line: &[u8], name: &str, edit: &mut dyn Edit) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut copied = 0;
    let asked = if edit.wants(name) { name } else { MESSAGE };
    for at in memmem::find_iter(line, name) {
        let is_name_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-/@".contains(byte);
        let is_begun = at > 0 && is_name_byte(&line[at - 1]);
        if at < copied || is_begun {
            continue;
        }
        let Some(span) = value_behind(line, at + name.len()) else {
            continue;
        };
        if let Some(change) = edit.change(asked, &Value::text(&line[span.clone()])) {
            out.extend_from_slice(&line[copied..span.start]);
            out.extend_from_slice(text_of(change).replace(['"', '\\', ' '], "_").as_bytes());
            copied = span.end;
        }
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(&line[copied..]);
    Some(out)
}

/// Where the value stands whose `=` or `:` is here, behind a quote that ends its name at most.
fn value_behind(line: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    let mut at = at + usize::from(line.get(at) == Some(&b'"'));
    if !matches!(line.get(at), Some(b'=' | b':')) {
        return None;
    }
    at += 1;
    at += line[at..].iter().take_while(|byte| **byte == b' ').count()
        * usize::from(line[at - 1] == b':');
    let is_quoted = line.get(at) == Some(&b'"');
    let start = at + usize::from(is_quoted);
    let mut end = start;
    while let Some(byte) = line.get(end) {
        match byte {
            b'\\' if is_quoted => end += 1,
            b'"' if is_quoted => break,
            b' ' | b'\t' | b',' | b';' | b'|' | b'}' | b']' if !is_quoted => break,
            _ => {}
        }
        end += 1;
    }
    let end = end.min(line.len());
    (start < end).then_some(start..end)
}

pub(super) fn replace_all(line: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut copied = 0;
    for at in memmem::find_iter(line, old) {
        out.extend_from_slice(&line[copied..at]);
        out.extend_from_slice(new);
        copied = at + old.len();
    }
    out.extend_from_slice(&line[copied..]);
    out
}
