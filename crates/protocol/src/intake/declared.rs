//! Labels of a batch that say how its lines are read: formats of access logs, and a zone for times
//! without one. They stay with the batch, so that whoever reads its lines reads the same, and are no
//! fields of its records.

use logpond_record::Labels;

use super::{access_format, timezone};

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
    name.starts_with(access_format::LABEL_PREFIX) || name == timezone::LABEL
}
