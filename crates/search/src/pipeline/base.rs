//! The labels that a record comes with.

use logpond_record::{Record, Value};

use super::labels::{Labels, Origin};
use crate::label::{self, ComputedLabel, DETECTED_LEVEL};
use crate::logql::NamedLabels;

/// Adds the labels of a record: what its sender declared beside the line, the fields that a query
/// names, and the service and the level that every record has.
pub fn add_base_labels(record: &Record<'_>, named: &NamedLabels, labels: &mut Labels) {
    for (name, value) in label::declared(record) {
        add(&name, &value.to_text(), labels);
    }
    add_named_labels(record, &named.selected, labels);
    for label in [ComputedLabel::Service, ComputedLabel::Level] {
        if labels.wants(label.name()) && labels.get(label.name()).is_none() {
            add_computed(label, record, labels);
        }
    }
    for name in &named.referred {
        let value = label::value(record, name).map(Value::to_text);
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            labels.refer(name, &String::from_utf8_lossy(&value));
        }
    }
}

/// Adds some labels of a record, whatever field each is.
pub fn add_named_labels(record: &Record<'_>, named: &[Box<str>], labels: &mut Labels) {
    for name in named {
        if !labels.wants(name) {
            continue;
        }
        if let Some(label) = ComputedLabel::named(name) {
            add_computed(label, record, labels);
        } else if let Some(value) = label::value(record, name) {
            add(name, &value.to_text(), labels);
        }
    }
}

fn add(name: &str, value: &[u8], labels: &mut Labels) {
    // A label without a value is none; the level is computed.
    if !value.is_empty() && name != DETECTED_LEVEL {
        labels.add_base(Origin::Stream, name, &String::from_utf8_lossy(value));
    }
}

fn add_computed(label: ComputedLabel, record: &Record<'_>, labels: &mut Labels) {
    let origin = match label {
        ComputedLabel::Service => Origin::Stream,
        ComputedLabel::Level | ComputedLabel::Severity | ComputedLabel::SeverityNumber => {
            Origin::Metadata
        }
    };
    let text = label.of(record);
    labels.add_base(origin, label.name(), &String::from_utf8_lossy(&text));
}
