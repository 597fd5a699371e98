//! The labels that a record comes with.

use logpond_record::{Record, Value};

use super::labels::{Labels, Origin};
use crate::label::{
    self, DETECTED_LEVEL, LEVEL_LABELS, SERVICE_LABELS, SERVICE_NAME, UNKNOWN_LEVEL,
    UNKNOWN_SERVICE,
};
use crate::logql::NamedLabels;

/// Adds the labels of a record: what its sender declared beside the line, the fields that a query
/// names, and the service and the level that every record has.
pub fn add_base_labels(record: &Record<'_>, named: &NamedLabels, labels: &mut Labels) {
    for (name, value) in label::declared(record) {
        add(&name, &value.to_text(), labels);
    }
    add_named_labels(record, &named.selected, labels);
    if labels.get(SERVICE_NAME).is_none() {
        add_service(record, labels);
    }
    if labels.get(DETECTED_LEVEL).is_none() {
        add_level(record, labels);
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
        match &**name {
            SERVICE_NAME => add_service(record, labels),
            DETECTED_LEVEL => add_level(record, labels),
            name => {
                if let Some(value) = label::value(record, name) {
                    add(name, &value.to_text(), labels);
                }
            }
        }
    }
}

fn add(name: &str, value: &[u8], labels: &mut Labels) {
    // A label without a value is none; the level is computed.
    if !value.is_empty() && name != DETECTED_LEVEL {
        labels.add_base(Origin::Stream, name, &String::from_utf8_lossy(value));
    }
}

fn add_service(record: &Record<'_>, labels: &mut Labels) {
    let service = first(record, SERVICE_NAME, &SERVICE_LABELS);
    let service = service.as_deref().unwrap_or(UNKNOWN_SERVICE);
    labels.add_base(Origin::Stream, SERVICE_NAME, service);
}

fn add_level(record: &Record<'_>, labels: &mut Labels) {
    let word = first(record, DETECTED_LEVEL, &LEVEL_LABELS);
    let level = word.map_or(UNKNOWN_LEVEL, |word| label::level_of(&word));
    labels.add_base(Origin::Metadata, DETECTED_LEVEL, level);
}

/// The text of the first label that has one.
fn first(record: &Record<'_>, name: &str, others: &[&str]) -> Option<String> {
    let names = std::iter::once(name).chain(others.iter().copied());
    let values = names.filter_map(|name| label::value(record, name));
    let mut texts = values.map(|value| String::from_utf8_lossy(&value.to_text()).into_owned());
    texts.find(|text| !text.is_empty())
}
