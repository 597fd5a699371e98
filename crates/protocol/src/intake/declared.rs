//! Labels of a batch that say how its lines are read: formats of access logs, a zone for times without
//! one, and whose time counts. They stay with the batch, so that whoever reads its lines reads the same,
//! and are no fields of its records.

use logpond_record::Labels;

use super::{access_format, timezone};

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
        || name == LINE_TIME_FIRST
}
