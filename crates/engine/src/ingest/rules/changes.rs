//! What a rule does to values.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_lc_rs::hmac;
use logpond_protocol::intake::Parser;
use logpond_protocol::intake::rewrite::{Change, Draft, Edit, NamedFields};
use logpond_record::Value;
use logpond_record::limits::LINE_BYTES_DEFAULT;
use logpond_search::{Finder, Replacement};

use super::{address, ansi};

/// What a redacted value becomes.
pub(super) const REDACTED: &str = "REDACTED";

/// The field that is all of the line.
pub(super) const LINE: &str = "_raw";

/// Bytes of a hash that are kept, as twice as many digits: two of a billion values are alike by chance
/// with a probability of a few percent.
const HASH_BYTES: usize = 8;

/// The longest text that replacing makes of a shorter one; the rest is cut off. A pattern that fits
/// everywhere would make a thousand lines of one.
const REPLACED_BYTES_MAX: usize = LINE_BYTES_DEFAULT;

/// The way to hide the value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Redaction {
    Redact,
    Hash,
    Anonymise,
    Remove,
}

/// Hides values of some fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Redactor {
    pub(super) fields: BTreeMap<Box<str>, Redaction>,
    /// There is one where something is hashed.
    pub(super) key: Option<Arc<hmac::Key>>,
}

impl Redactor {
    /// How a field is hidden: by its own name; by that of an object around it, which covers all that is in it; or
    /// by a name without dots that it or an object around it has.
    fn how(&self, path: &str) -> Option<Redaction> {
        if let Some(how) = self.fields.get(path) {
            return Some(*how);
        }
        let mut dots = path.rmatch_indices('.').peekable();
        dots.peek()?;
        // From within: what is nearest to the value counts.
        let around = dots.find_map(|(dot, _)| self.fields.get(&path[..dot]));
        let named = || path.rsplit('.').find_map(|name| self.fields.get(name));
        around.or_else(named).copied()
    }

    fn hashed(&self, value: &Value<'_>) -> String {
        let Some(key) = &self.key else {
            return REDACTED.to_owned();
        };
        let tag = hmac::sign(key, &value.to_text());
        let bytes = &tag.as_ref()[..HASH_BYTES];
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Edit for &Redactor {
    fn names(&self) -> Vec<&str> {
        self.fields.keys().map(|name| &**name).collect()
    }

    fn wants(&self, name: &str) -> bool {
        self.how(name).is_some()
    }

    fn change(&mut self, name: &str, value: &Value<'_>) -> Option<Change> {
        let text = match (self.how(name)?, value) {
            (Redaction::Remove, _) => return Some(Change::Remove),
            (Redaction::Redact, _) => REDACTED.to_owned(),
            // Nothing is no address and nobody's name.
            (_, Value::Null) => return None,
            (Redaction::Hash, value) => self.hashed(value),
            (Redaction::Anonymise, value) => match &*String::from_utf8_lossy(&value.to_text()) {
                "" | "-" => return None,
                text => address::anonymised(text).unwrap_or_else(|| REDACTED.to_owned()),
            },
        };
        (value.to_text() != text.as_bytes()).then_some(Change::Text(text))
    }
}

/// Replaces what a pattern finds in a field.
#[derive(Clone, Debug)]
pub(super) struct Replace {
    pub(super) field: Box<str>,
    pub(super) finder: Finder,
    pub(super) with: Replacement,
}

impl Replace {
    /// The text with all matches replaced; `None` if there are none.
    fn replaced(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let (mut copied, mut from) = (0, 0);
        while let Some(found) = self.finder.find(text, from) {
            from = found.end.max(found.start + usize::from(found.is_empty()));
            if found.is_empty() {
                continue;
            }
            out.extend_from_slice(&text[copied..found.start]);
            copied = found.end;
            self.with.write(text, found, &mut out);
            if out.len() > REPLACED_BYTES_MAX.max(text.len()) {
                return Some(out);
            }
        }
        if copied == 0 {
            return None;
        }
        out.extend_from_slice(&text[copied..]);
        Some(out)
    }

    /// Changes an entry. Gives whether anything was found.
    pub(super) fn run(&self, draft: &mut Draft<'_>, parser: &mut Parser) -> bool {
        if *self.field != *LINE {
            return draft.edit(&mut InField(self), parser);
        }
        let is_changed = draft.edit_line(parser, |line| self.replaced(line));
        // What is written with escapes.
        let names = draft.names_in_line(|value| replace_in(self, value).is_some());
        let mut replacing = NamedFields::new(names, |value| replace_in(self, value));
        is_changed | draft.edit(&mut replacing, parser)
    }
}

fn replace_in(replace: &Replace, value: &Value<'_>) -> Option<Change> {
    if matches!(value, Value::Null | Value::Bool(_)) {
        return None;
    }
    let replaced = replace.replaced(&value.to_text())?;
    Some(Change::Text(
        String::from_utf8_lossy(&replaced).into_owned(),
    ))
}

/// Replaces in one field.
struct InField<'r>(&'r Replace);

impl Edit for InField<'_> {
    fn names(&self) -> Vec<&str> {
        vec![&self.0.field]
    }

    fn wants(&self, name: &str) -> bool {
        *name == *self.0.field
    }

    fn change(&mut self, _name: &str, value: &Value<'_>) -> Option<Change> {
        replace_in(self.0, value)
    }
}

/// Takes escape sequences out of an entry's line. Gives whether there were any.
pub(super) fn strip_ansi(draft: &mut Draft<'_>, parser: &mut Parser) -> bool {
    let is_changed = draft.edit_line(parser, ansi::without_sequences);
    let has_any = |value: &Value<'_>| matches!(value, Value::Str(text) if text.contains('\u{1b}'));
    let names = draft.names_in_line(has_any);
    if names.is_empty() {
        return is_changed;
    }
    is_changed | draft.edit(&mut NamedFields::new(names, stripped), parser)
}

fn stripped(value: &Value<'_>) -> Option<Change> {
    let stripped = ansi::without_sequences(&value.to_text())?;
    let stripped = String::from_utf8_lossy(&stripped).into_owned();
    Some(Change::Text(stripped))
}
