//! Fields that are made of a line (`referer_host`): their values are changed where they stand in it.

use std::borrow::Cow;

use logpond_record::{Message, Value};
use memchr::memmem;

use super::pairs::{replace_all, text_of};
use super::{Change, Draft, Edit, MESSAGE};
use crate::intake::parser::Parser;

/// How often a field is changed in what it is made of: then there may be another word that makes it.
const TRIES_MAX: usize = 4;

/// Replaces a text within the values of fields.
struct Within {
    names: Vec<String>,
    old: Vec<u8>,
    new: String,
}

impl Edit for Within {
    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    fn wants(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    fn change(&mut self, _name: &str, value: &Value<'_>) -> Option<Change> {
        let text = value.to_text();
        memmem::find(&text, &self.old)?;
        let replaced = replace_all(&text, &self.old, self.new.as_bytes());
        Some(Change::Text(
            String::from_utf8_lossy(&replaced).into_owned(),
        ))
    }
}

impl Draft<'_> {
    pub(super) fn edit_derived(&mut self, edit: &mut dyn Edit, parser: &mut Parser) -> bool {
        let first = self.record.labels.len() - self.derived;
        let derived = &self.record.labels[first..];
        let wanted = derived.iter().filter(|(name, _)| edit.wants(name));
        let wanted: Vec<String> = wanted.map(|(name, _)| name.to_string()).collect();
        let mut is_changed = false;
        for name in wanted {
            is_changed |= self.change_derived(&name, edit, parser);
        }
        is_changed
    }

    /// Changes what a field is made of until it is what it should be, or is no more.
    fn change_derived(&mut self, name: &str, edit: &mut dyn Edit, parser: &mut Parser) -> bool {
        let mut put: Option<String> = None;
        for _ in 0..TRIES_MAX {
            let Some(at) = self.derived_field(name) else {
                break;
            };
            let value = &self.record.labels[at].1;
            let old = value.to_text().into_owned();
            let Some(change) = edit.change(name, value) else {
                break;
            };
            let new = put.get_or_insert_with(|| text_of(change)).clone();
            if old.is_empty() || old == new.as_bytes() {
                break;
            }
            let names = self.names_with(&old);
            let mut within = Within { names, old, new };
            self.edit_line_fields(&mut within, parser);
            self.settle(parser);
        }
        let Some(put) = put else {
            return false;
        };
        let put = Value::Str(Cow::Owned(put));
        if let Some(at) = self.derived_field(name)
            && self.record.labels[at].1 != put
        {
            // It is worked out of something else.
            self.record.labels[at].1 = put;
            self.become_fields(b"-", parser);
        }
        true
    }

    /// The number of the label that is this field, if it is made of the line.
    fn derived_field(&self, name: &str) -> Option<usize> {
        let first = self.record.labels.len() - self.derived;
        let mut derived = self.record.labels[first..].iter();
        let at = derived.position(|(known, _)| known == name)?;
        Some(first + at)
    }

    /// Names of the fields in the line in whose values this text is.
    fn names_with(&self, text: &[u8]) -> Vec<String> {
        let has = |value: &Value<'_>| memmem::find(&value.to_text(), text).is_some();
        let record = &self.record;
        let slots = record.shape.slots().iter().zip(&record.values);
        let fields = slots.filter(|(slot, value)| slot.is_field() && has(value));
        let mut names: Vec<String> = fields.map(|(slot, _)| slot.name.to_string()).collect();
        if matches!(&record.message, Message::Part(value) if has(value)) {
            names.push(MESSAGE.to_owned());
        }
        names
    }
}
