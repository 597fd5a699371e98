//! Labels of an entry: what the sender said beside its line, under names that tell them from fields of the line.

use std::borrow::Cow;

use logpond_record::limits::UNLISTED_FIELD;
use logpond_record::{
    Entry, LABEL_SUFFIX, RULE_FIELD, Shape, Value, is_reserved_for_senders, split_label_name,
};

use crate::intake::declared::fields_of_batch;

/// The labels that the sender gave to the entry alone.
pub(super) fn own_labels<'a>(entry: &Entry<'a>) -> Vec<(Cow<'a, str>, Value<'a>)> {
    let own = entry.envelope.fields();
    own.map(|(name, value)| (Cow::Borrowed(name), value))
        .collect()
}

/// The labels of the entry, then those that were declared for all of its batch.
pub(super) fn labels_as_sent<'a>(entry: &Entry<'a>) -> Vec<(Cow<'a, str>, Value<'a>)> {
    let mut labels = own_labels(entry);
    labels.extend(labels_of_batch(entry));
    labels
}

/// The labels that were declared for all of its batch.
pub(super) fn labels_of_batch<'a>(
    entry: &Entry<'a>,
) -> impl Iterator<Item = (Cow<'a, str>, Value<'a>)> + use<'a> {
    let of_batch = fields_of_batch(entry.labels);
    of_batch.map(|(name, value)| (Cow::Borrowed(name), Value::Str(Cow::Borrowed(value))))
}

/// Gives labels other names where a field of the line has theirs, so that neither is lost. What only
/// stands in for a field of the line keeps its name: the line comes first. None keeps a reserved name.
pub(super) fn set_apart(
    labels: &mut [(Cow<'_, str>, Value<'_>)],
    shape: &Shape,
    stands_in: impl Fn(&str, &Value<'_>) -> bool,
) {
    let suffixed: Vec<usize> = labels
        .iter()
        .enumerate()
        .filter(|(_, (name, _))| split_label_name(name).1 > 0)
        .map(|(index, _)| index)
        .collect();
    // Most labels that share a name with a field of the line stand in for it: that is seen before another
    // name is made.
    for index in 0..labels.len() {
        let (name, value) = &mut labels[index];
        if *name == UNLISTED_FIELD {
            // It is not for senders to say.
            *name = Cow::Owned(UNLISTED_FIELD.to_owned() + LABEL_SUFFIX);
            continue;
        }
        let is_none = match value {
            Value::Null => true,
            Value::Str(text) => text.is_empty(),
            _ => false,
        };
        let stays = || is_none || !shape.may_have_field(name) || stands_in(name, value);
        let is_kept = match &**name {
            RULE_FIELD => stands_in(name, value),
            name => !is_reserved_for_senders(name) && stays(),
        };
        if !is_kept && let Some(other) = shape.label_name(name) {
            make_room(labels, &suffixed, &other);
            labels[index].0 = Cow::Owned(other);
        }
    }
}

/// Gives labels whose names have as many suffixes as a new name, or more, one more: of several values of a name the
/// order stays.
fn make_room(labels: &mut [(Cow<'_, str>, Value<'_>)], suffixed: &[usize], new: &str) {
    let (own, least) = split_label_name(new);
    for index in suffixed {
        let name = &mut labels[*index].0;
        let (known, suffixes) = split_label_name(name);
        if known == own && suffixes >= least {
            *name = Cow::Owned(format!("{name}{LABEL_SUFFIX}"));
        }
    }
}
