//! Fields of an object's message, which are no members of the object: they are changed where they stand in the
//! message.
//!
//! Invariant: the message says no value that was changed.

use logpond_record::{Message, Value};
use memchr::memmem;

use super::pairs::replace_all;
use super::{Change, Draft, Edit, MESSAGE, lists, value_of};
use crate::intake::parser::Parser;

/// Changes the values of the fields of these names only.
struct Among<'e> {
    names: Vec<String>,
    edit: &'e mut dyn Edit,
}

impl Edit for Among<'_> {
    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    fn wants(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    fn change(&mut self, name: &str, value: &Value<'_>) -> Option<Change> {
        lists::change(self.edit, name, value)
    }
}

impl Draft<'_> {
    /// Changes fields that are none of the object's members, whose `paths` these are, and the message unless a member
    /// says it.
    pub(super) fn edit_nested(
        &mut self,
        paths: &[String],
        has_message: bool,
        edit: &mut dyn Edit,
        parser: &mut Parser,
    ) -> bool {
        let slots = self.record.shape.slots().iter().zip(&self.record.values);
        let fields = slots
            .filter(|(slot, value)| slot.is_field() && lists::may_change(edit, &slot.name, value));
        let nested = fields.filter(|(slot, _)| !paths.iter().any(|path| **path == *slot.name));
        let mut names: Vec<String> = nested.map(|(slot, _)| slot.name.to_string()).collect();
        let is_part = matches!(self.record.message, Message::Part(_));
        if is_part && !has_message && self.record.whole.is_some() && edit.wants(MESSAGE) {
            names.push(MESSAGE.to_owned());
        }
        if names.is_empty() {
            return false;
        }
        let mut within = Among { names, edit };
        match &self.record.whole {
            None => self.edit_drawn(&mut within, parser),
            Some(_) => self.edit_listed(&mut within, parser),
        }
    }

    /// The fields are parts of the line.
    fn edit_drawn(&mut self, within: &mut Among<'_>, parser: &mut Parser) -> bool {
        if !self.edit_slots(within) {
            return false;
        }
        // A message that is no part of its own is made of them.
        if self.record.shape.message_slot().is_none() {
            let mut line = Vec::new();
            self.record.write_line(&mut line);
            let read = self.parsed(&line, parser).into_owned();
            self.record.message = match read.message {
                part @ Message::Part(_) => part,
                Message::Absent | Message::Line => Message::Absent,
            };
        }
        true
    }

    /// The line is kept whole: it becomes its fields, and what has a value that was changed within has the
    /// new one.
    fn edit_listed(&mut self, within: &mut Among<'_>, parser: &mut Parser) -> bool {
        let mut changed = Vec::new();
        let shape = self.record.shape.clone();
        for (slot, value) in shape.slots().iter().zip(&mut self.record.values) {
            if !slot.is_field() || !within.wants(&slot.name) {
                continue;
            }
            if let Some(change) = within.change(&slot.name, value) {
                let old = value.to_text().into_owned();
                let new = value_of(change).unwrap_or(Value::Str("-".into()));
                let text = String::from_utf8_lossy(&new.to_text()).into_owned();
                *value = new;
                changed.push((old, text));
            }
        }
        let message = match &self.record.message {
            Message::Part(message) => message.to_text().into_owned(),
            _ => Vec::new(),
        };
        if within.wants(MESSAGE)
            && let Message::Part(value) = &self.record.message
            && let Some(change) = within.change(MESSAGE, value)
        {
            let text = value_of(change).unwrap_or(Value::Str("-".into()));
            let text = String::from_utf8_lossy(&text.to_text()).into_owned();
            changed.push((message.clone(), text));
        }
        if changed.is_empty() {
            return false;
        }
        let replaced = |value: &Value<'_>| {
            let mut text = value.to_text().into_owned();
            for (old, new) in changed.iter().filter(|(old, _)| !old.is_empty()) {
                if memmem::find(&text, old).is_some() {
                    text = replace_all(&text, old, new.as_bytes());
                }
            }
            Value::Str(String::from_utf8_lossy(&text).into_owned().into())
        };
        // A member that holds more than the message has what was changed, too.
        let holds = |value: &Value<'_>| match value {
            Value::Str(text) => {
                text.len() > message.len() && memmem::find(text.as_bytes(), &message).is_some()
            }
            _ => false,
        };
        if !message.is_empty() {
            for value in self.record.values.iter_mut().filter(|value| holds(value)) {
                *value = replaced(value);
            }
        }
        let of_message = self.field_of_message();
        if let Message::Part(message) = &self.record.message {
            let message = replaced(message);
            if let Some(slot) = of_message {
                self.record.values[slot] = message.clone();
            }
            self.record.message = Message::Part(message);
        }
        self.become_fields(b"-", parser);
        true
    }
}
