//! Fields that are made of a line (`referer_host`): their values are changed where they stand in it.

use std::borrow::Cow;

use logpond_record::Value;
use memchr::memmem;

use super::pairs::replace_all;
use super::{Change, Draft, Edit, NamedFields, text_of};
use crate::intake::parser::Parser;

/// How often a field is changed in what it is made of: then there may be another word that makes it.
const TRIES_MAX: usize = 4;

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
            let names = self.names_in_line(|value| memmem::find(&value.to_text(), &old).is_some());
            let mut within = NamedFields::new(names, |value| replaced_within(value, &old, &new));
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
}

/// A value with a text in it replaced; `None` if it has none.
fn replaced_within(value: &Value<'_>, old: &[u8], new: &str) -> Option<Change> {
    let text = value.to_text();
    memmem::find(&text, old)?;
    let replaced = replace_all(&text, old, new.as_bytes());
    let replaced = String::from_utf8_lossy(&replaced).into_owned();
    Some(Change::Text(replaced))
}
