//! Entries with some of their values changed before they are kept: the line is written anew.
//!
//! Invariants:
//! - A value that an [`Edit`] changed stands neither in the record nor in its line, wherever its field
//!   is: in the line, also under a name that occurs twice, beside it, or among the labels.
//! - Parsing the new line gives the fields that were meant, which is checked; where no line in the form
//!   of the old one does, the new one is a JSON object of the fields, or the message with the fields
//!   beside it.
//! - Nothing else of a line changes that can stay.

mod derived;
mod fields;
mod lists;
mod pairs;
mod nested;
mod slots;
pub mod fuzz;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use logpond_record::limits::{LINE_BYTES_MAX, TRUNCATED_FIELD};
use logpond_record::{
    Batch, Entry, EntryKind, Envelope, Id, Labels, Message, Record, TimeSource, Timestamp, Value,
    cast, split_label_name,
};

use super::declared::{declarations_of, is_default};
use super::json;
use super::outline::MESSAGE_NAMES;
use super::parser::{Parser, holder_of};

/// The field that is a record's message.
pub const MESSAGE: &str = "_msg";

/// Keys of JSON and logfmt that may be the message.
pub const MESSAGE_KEYS: [&str; MESSAGE_NAMES.len()] = MESSAGE_NAMES;

/// More than an envelope takes, with the field that says that a line was cut.
const ENVELOPE_OVERHEAD_BYTES: usize = 128;

/// More than a field beside a line takes besides its name and its value.
const FIELD_OVERHEAD_BYTES: usize = 16;

/// What a value becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This text.
    Text(String),
    /// This JSON: a list with values changed within it.
    Json(String),
    /// Nothing: null in a line of JSON, `-` in any other, and beside a line the field is gone.
    Remove,
}

/// What stands in a line that is not JSON.
fn text_of(change: Change) -> String {
    match change {
        Change::Text(text) | Change::Json(text) => text,
        Change::Remove => "-".to_owned(),
    }
}

/// The value beside a line that a text of a change is; `None` if the field is gone.
fn value_of(change: Change) -> Option<Value<'static>> {
    match change {
        Change::Text(text) => Some(Value::Str(Cow::Owned(text))),
        Change::Json(text) => Some(Value::Json(Cow::Owned(text))),
        Change::Remove => None,
    }
}

/// Decides over values.
pub trait Edit {
    /// Names of the fields that it may change; the message is [`MESSAGE`].
    fn names(&self) -> Vec<&str>;

    /// Whether it may change a field of this name.
    fn wants(&self, name: &str) -> bool;

    /// What the value of such a field becomes; `None` if it stays.
    fn change(&mut self, name: &str, value: &Value<'_>) -> Option<Change>;
}

/// Changes the values of the fields of these names, all in the same way.
pub struct NamedFields<F> {
    names: Vec<String>,
    change: F,
}

impl<F: FnMut(&Value<'_>) -> Option<Change>> NamedFields<F> {
    /// `change` gives what a value becomes; `None` if it stays.
    pub fn new(names: Vec<String>, change: F) -> NamedFields<F> {
        NamedFields { names, change }
    }
}

impl<F: FnMut(&Value<'_>) -> Option<Change>> Edit for NamedFields<F> {
    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    fn wants(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    fn change(&mut self, _name: &str, value: &Value<'_>) -> Option<Change> {
        (self.change)(value)
    }
}

/// An entry that is being changed, and what is beside its line.
pub struct Draft<'a> {
    record: Record<'a>,
    kind: EntryKind,
    /// The time beside the line.
    time: Option<Timestamp>,
    /// How many of the record's labels are beside the line; those of the batch come next.
    own: usize,
    /// How many of the last labels are made of the line, which they stand in, too.
    derived: usize,
    /// Labels of the batch that say how the line is read.
    formats: Labels,
    /// The line, once it is another one.
    line: Option<Vec<u8>>,
    slots: slots::PendingChanges,
    is_changed: bool,
    are_labels_own: bool,
}

impl<'a> Draft<'a> {
    /// The entry as it is. Its labels have the names that they were sent with.
    pub fn new(entry: &Entry<'a>, parser: &mut Parser) -> Draft<'a> {
        let record = parser.parse_as_sent(entry);
        let own = entry.envelope.fields().count();
        let formats = declarations_of(entry.labels);
        let of_batch = entry.labels.len() - formats.len();
        Draft {
            derived: record.labels.len() - own - of_batch,
            record,
            kind: entry.kind,
            time: entry.envelope.time,
            own,
            formats,
            line: None,
            slots: slots::PendingChanges::default(),
            is_changed: false,
            are_labels_own: false,
        }
    }

    /// The record as it is now.
    pub fn record(&self) -> &Record<'a> {
        &self.record
    }

    /// Whether anything is not as it was.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Whether a label of the batch was changed: all of them are beside this entry's line then.
    pub fn are_labels_own(&self) -> bool {
        self.are_labels_own
    }

    /// Names of the fields in the line, the message among them, whose values are like that.
    pub fn names_in_line(&self, is_wanted: impl Fn(&Value<'_>) -> bool) -> Vec<String> {
        let slots = self.record.shape.slots().iter().zip(&self.record.values);
        let fields = slots.filter(|(slot, value)| slot.is_field() && is_wanted(value));
        let mut names: Vec<String> = fields.map(|(slot, _)| slot.name.to_string()).collect();
        if matches!(&self.record.message, Message::Part(value) if is_wanted(value)) {
            names.push(MESSAGE.to_owned());
        }
        names
    }

    /// Puts a field beside the line.
    pub fn add(&mut self, name: &str, value: Value<'static>) {
        let field = (Cow::Owned(name.to_owned()), value);
        self.record.labels.insert(self.own, field);
        self.own += 1;
        self.is_changed = true;
    }

    /// Replaces a field that stands beside the line, if it does, and gives whether it does.
    pub fn replace_added(
        &mut self,
        name: &str,
        value: impl FnOnce(&Value<'_>) -> Value<'static>,
    ) -> bool {
        let own = &mut self.record.labels[..self.own];
        let Some((_, old)) = own.iter_mut().find(|(known, _)| known == name) else {
            return false;
        };
        *old = value(old);
        self.is_changed = true;
        true
    }

    /// Has values changed. Gives whether one was.
    pub fn edit(&mut self, edit: &mut dyn Edit, parser: &mut Parser) -> bool {
        let is_derived_changed = self.edit_derived(edit, parser);
        let beside = self.edit_labels(edit) | is_derived_changed;
        let inside = self.edit_line_fields(edit, parser);
        self.is_changed |= beside | inside;
        beside | inside
    }

    fn edit_line_fields(&mut self, edit: &mut dyn Edit, parser: &mut Parser) -> bool {
        match &self.record.whole {
            None if self.record.shape.is_json() && !self.has_names_of_format() => {
                self.edit_json(edit, parser)
            }
            None if matches!(self.record.message, Message::Line) && edit.wants(MESSAGE) => {
                self.edit_slots(edit) | self.edit_line_message(edit, parser)
            }
            None => self.edit_slots(edit),
            Some(line) if line.trim_ascii_start().first() == Some(&b'{') => {
                self.edit_json(edit, parser)
            }
            Some(_) if matches!(self.record.message, Message::Line) && edit.wants(MESSAGE) => {
                self.edit_line_message(edit, parser) || self.edit_pairs(edit, parser)
            }
            Some(_) => self.edit_pairs(edit, parser),
        }
    }

    /// Has the line changed as a whole; `change` gives the new one, or `None` if it stays. Gives
    /// whether it was. What it says is read anew.
    pub fn edit_line(
        &mut self,
        parser: &mut Parser,
        change: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
    ) -> bool {
        self.settle(parser);
        let Some(line) = change(&self.current_line()) else {
            return false;
        };
        self.read_anew(line, parser);
        self.is_changed = true;
        true
    }

    /// Ends the changes: afterwards [`Draft::push_to`] can be called.
    pub fn settle(&mut self, parser: &mut Parser) {
        if !self.slots.is_empty() {
            self.settle_slots(parser);
        }
    }

    /// Appends the entry to a batch, which is of kind [`EntryKind::Enveloped`] if the entry needs one
    /// ([`Draft::needs_envelope`]); with the labels, if it is said so. Gives how many fields had to be
    /// left out.
    pub fn push_to(&self, batch: &mut Batch, with_labels: bool) -> usize {
        let line = self.current_line();
        if batch.kind != EntryKind::Enveloped {
            batch.push(&line[..line.len().min(LINE_BYTES_MAX)]);
            return 0;
        }
        let count = if with_labels {
            self.record.labels.len() - self.derived
        } else {
            self.own
        };
        let fields = self.record.labels[..count].iter().enumerate();
        let fields = fields.filter(|(index, (name, _))| *index < self.own || !self.yields(name));
        let fields = fields.map(|(_, (name, value))| (&**name, value));
        push_bounded(batch, self.kind, self.time, fields, &line)
    }

    /// Whether a label of the batch only stands in for a field that the line has. Beside the line it would
    /// be one that the sender gave this very entry.
    fn yields(&self, label: &str) -> bool {
        let mut slots = self.record.shape.slots().iter();
        is_default(label) && slots.any(|slot| slot.is_field() && *slot.name == *label)
    }

    /// Whether it cannot go into a batch of this kind as a line alone.
    pub fn needs_envelope(&self, kind: EntryKind) -> bool {
        self.kind != kind || self.own > 0 || self.time.is_some()
    }

    /// Bytes of the line.
    pub fn line_bytes(&self) -> usize {
        self.current_line().len()
    }

    /// Whether the line was read by a format that gives fields other names than stand in it.
    fn has_names_of_format(&self) -> bool {
        self.derived > 0 && !self.formats.is_empty()
    }

    fn current_line(&self) -> Cow<'_, [u8]> {
        if let Some(line) = self.line.as_deref().or(self.record.whole.as_deref()) {
            return Cow::Borrowed(line);
        }
        let mut line = Vec::new();
        self.record.write_line(&mut line);
        Cow::Owned(line)
    }

    fn edit_labels(&mut self, edit: &mut dyn Edit) -> bool {
        let mut is_changed = false;
        let mut index = 0;
        while index < self.record.labels.len() - self.derived {
            let (name, value) = &mut self.record.labels[index];
            // A further value of a name has the suffix, and is hidden like the first.
            let own = split_label_name(name).0;
            let meant = if edit.wants(name) { name } else { own };
            let change = lists::change(edit, meant, value);
            let is_own = index < self.own;
            is_changed |= change.is_some();
            self.are_labels_own |= change.is_some() && !is_own;
            match change.map(value_of) {
                None => index += 1,
                Some(Some(changed)) => {
                    *value = changed;
                    index += 1;
                }
                Some(None) => {
                    self.record.labels.remove(index);
                    self.own -= usize::from(is_own);
                }
            }
        }
        is_changed
    }

    fn edit_json(&mut self, edit: &mut dyn Edit, parser: &mut Parser) -> bool {
        let line = self.current_line().into_owned();
        let time = self.record.time;
        let record = &self.record;
        // A message that is in no field of its own is changed with all that holds it.
        let holder = self.holder_of_message();
        // Under its own name or as a field, too: the value tells.
        let is_message = |path: &str, value: &Value<'_>| {
            let is_key = MESSAGE_KEYS.contains(&path) && record.field(path).is_none();
            let says_it = |message: &Value<'_>| message.to_text() == value.to_text();
            is_key
                || holder.as_deref() == Some(path)
                || matches!(&record.message, Message::Part(message) if says_it(message))
        };
        let mut paths = Vec::new();
        let mut has_message = false;
        let decide = |path: &str, value: &Value<'_>| {
            paths.push(path.to_owned());
            let says_message = is_message(path, value);
            has_message |= says_message;
            let names = [Some(path), says_message.then_some(MESSAGE)];
            let mut wanted = names.into_iter().flatten().filter(|name| edit.wants(name));
            let name = wanted.next().unwrap_or(path);
            lists::change(edit, name, value).map(lists::json_change)
        };
        let edited = std::str::from_utf8(&line).map(|text| json::edit(text, decide));
        let is_edited = match edited {
            Ok(Ok(Some(text))) => {
                let text = text.into_bytes();
                self.read_anew(text.clone(), parser);
                if self.record.time != time {
                    // A field that was changed had it.
                    self.time = Some(time);
                    self.read_anew(text, parser);
                }
                true
            }
            Ok(Ok(None)) => false,
            // No JSON after all.
            _ => return self.edit_pairs(edit, parser),
        };
        is_edited | self.edit_nested(&paths, has_message, edit, parser)
    }

    /// The name of the field that holds the message among others.
    fn holder_of_message(&self) -> Option<String> {
        let Record { shape, values, .. } = &self.record;
        let is_made = matches!(self.record.message, Message::Part(_))
            && shape.message_slot().is_none()
            && self.field_of_message().is_none();
        let slot = is_made.then(|| holder_of(shape, values)).flatten()?;
        Some(shape.slots()[slot].name.to_string())
    }

    /// The message is the line: then all of it is changed.
    fn edit_line_message(&mut self, edit: &mut dyn Edit, parser: &mut Parser) -> bool {
        self.settle(parser);
        let line = self.current_line().into_owned();
        let Some(change) = edit.change(MESSAGE, &Value::text(&line)) else {
            return false;
        };
        self.read_anew(text_of(change).into_bytes(), parser);
        true
    }

    /// Takes another line, and what it says.
    fn read_anew(&mut self, line: Vec<u8>, parser: &mut Parser) {
        let had_time = self.record.time_source != TimeSource::Received;
        let time_before = self.record.time;
        if self.kind == EntryKind::Json && json::validate(&line).is_err() {
            self.kind = EntryKind::Line;
        }
        let mut record = self.parsed(&line, parser).into_owned();
        if had_time && record.time_source == TimeSource::Received && self.time.is_none() {
            // It stood in what is no more.
            self.time = Some(time_before);
            record = self.parsed(&line, parser).into_owned();
        }
        let derived = std::mem::take(&mut record.labels);
        record.labels = std::mem::take(&mut self.record.labels);
        self.record = record;
        self.line = Some(line);
        self.set_derived(derived);
    }

    fn set_derived(&mut self, derived: Vec<(Cow<'a, str>, Value<'a>)>) {
        let labels = &mut self.record.labels;
        labels.truncate(labels.len() - self.derived);
        self.derived = derived.len();
        labels.extend(derived);
    }

    /// The record that this line would be; its labels are those that are made of the line.
    fn parsed<'l>(&'l self, line: &'l [u8], parser: &mut Parser) -> Record<'l> {
        parser.parse(&Entry {
            id: Id::MIN,
            received: self.record.received,
            kind: self.kind,
            labels: &self.formats,
            envelope: self.time.map_or(Envelope::default(), Envelope::of_time),
            raw: line,
        })
    }
}

/// Appends an entry to a batch of kind [`EntryKind::Enveloped`]. Where it would be longer than any may be,
/// its line is cut, is text then, and says how long it was. Gives how many fields had to be left out.
pub fn push_bounded<'f>(
    batch: &mut Batch,
    kind: EntryKind,
    time: Option<Timestamp>,
    fields: impl Iterator<Item = (&'f str, &'f Value<'f>)> + Clone,
    line: &[u8],
) -> usize {
    let sizes = fields
        .clone()
        .map(|(name, value)| FIELD_OVERHEAD_BYTES + name.len() + value.to_text().len());
    let beside = sizes.sum::<usize>() + ENVELOPE_OVERHEAD_BYTES;
    if beside + line.len() <= LINE_BYTES_MAX {
        return batch.push_enveloped(kind, time, fields, line);
    }
    let sent = (TRUNCATED_FIELD, Value::Int(cast::low_i64(line.len())));
    let all: Vec<(&str, Value<'_>)> = fields
        .map(|(name, value)| (name, value.clone()))
        .chain([sent])
        .collect();
    let fields = all.iter().map(|(name, value)| (*name, value));
    let line = &line[..LINE_BYTES_MAX.saturating_sub(beside).min(line.len())];
    batch.push_enveloped(EntryKind::Text, time, fields, line)
}
