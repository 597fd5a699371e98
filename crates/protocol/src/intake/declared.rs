//! Labels of a batch that say how its lines are read: formats of access logs, a zone for times without
//! one, whose time counts, and the names of the fields with the time and the message. They stay with the
//! batch, so that whoever reads its lines reads the same, and are no fields of its records.

use std::sync::Arc;

use logpond_record::Labels;

use super::{access_format, timezone};

/// The label with the names of the fields that may have the time, with commas between them: the first one that
/// is an instant counts, and comes before all that have known names.
pub const TIME_FIELDS: &str = "_time_field";

/// The label with the names of the fields that may have the message, with commas between them: the first one
/// that is text counts, and comes before all that have known names.
pub const MESSAGE_FIELDS: &str = "_message_field";

/// The most names of each that count: people name a few.
pub const NAMES_MAX: usize = 16;

/// The names of fields that a batch declares to have the time or the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeclaredNames {
    times: Box<str>,
    messages: Box<str>,
}

impl DeclaredNames {
    fn new(labels: &Labels) -> Option<DeclaredNames> {
        let find = |wanted: &str| labels.iter().find(|(name, _)| **name == *wanted);
        let (times, messages) = (find(TIME_FIELDS), find(MESSAGE_FIELDS));
        if times.is_none() && messages.is_none() {
            return None;
        }
        let text = |found: Option<&(Box<str>, Box<str>)>| match found {
            Some((_, names)) => names.clone(),
            None => Box::default(),
        };
        Some(DeclaredNames {
            times: text(times),
            messages: text(messages),
        })
    }

    /// The rank of a name among those of the time; below [`NAMES_MAX`].
    pub(crate) fn time_rank(&self, name: &[u8]) -> Option<usize> {
        rank(&self.times, name)
    }

    /// The same among those of the message.
    pub(crate) fn message_rank(&self, name: &[u8]) -> Option<usize> {
        rank(&self.messages, name)
    }
}

fn rank(names: &str, name: &[u8]) -> Option<usize> {
    let mut names = names.split(',').take(NAMES_MAX);
    names.position(|known| !name.is_empty() && known.trim().as_bytes() == name)
}

/// The declared names of the last batch, so that they are taken out of its labels once.
#[derive(Default)]
pub(super) struct LastNames {
    names: Option<Arc<DeclaredNames>>,
}

impl LastNames {
    /// The names that a batch with these labels declares, and whether they are others than those before.
    pub(super) fn of(&mut self, labels: &Labels) -> (Option<Arc<DeclaredNames>>, bool) {
        let is_one = |name: &str| name == TIME_FIELDS || name == MESSAGE_FIELDS;
        // Most batches declare none.
        let names = if labels.iter().any(|(name, _)| is_one(name)) {
            DeclaredNames::new(labels)
        } else {
            None
        };
        let is_other = self.names.as_deref() != names.as_ref();
        if is_other {
            self.names = names.map(Arc::new);
        }
        (self.names.clone(), is_other)
    }
}

/// The label of a batch whose lines' own times come before those that its sender gives: a queue between
/// them knows when it was given a line, and not when something happened.
pub const LINE_TIME_FIRST: &str = "_line_time_first";

/// Whether the label above is there.
pub(super) fn is_line_time_first(labels: &Labels) -> bool {
    labels.iter().any(|(name, _)| &**name == LINE_TIME_FIRST)
}

/// Labels of a batch that say how its lines are read.
pub fn declarations_of(labels: &Labels) -> Labels {
    let declared = labels.iter().filter(|(name, _)| is_declaration(name));
    declared.cloned().collect()
}

/// Labels of a batch that are fields of its records.
pub fn fields_of_batch(labels: &Labels) -> impl Iterator<Item = (&str, &str)> {
    let fields = labels.iter().filter(|(name, _)| !is_declaration(name));
    fields.map(|(name, value)| (&**name, &**value))
}

/// Whether a label of a batch says what holds unless a line says it itself: a forwarder names its machine,
/// and a listener the peer, for whatever they pass on.
pub(super) fn is_default(name: &str) -> bool {
    name == "hostname"
}

fn is_declaration(name: &str) -> bool {
    name.starts_with(access_format::LABEL_PREFIX)
        || name == timezone::LABEL
        || [LINE_TIME_FIRST, TIME_FIELDS, MESSAGE_FIELDS].contains(&name)
}
