//! Snare's Windows events: `MSWinEventLog` and fourteen fields, with tabs between them.

use std::borrow::Cow;

use logpond_record::Value;

use crate::intake::outline::Outline;
use crate::intake::sketch::Parts;

const START: &str = "MSWinEventLog\t";

/// The fields' names, in order.
const NAMES: [&str; 14] = [
    "snare.criticality",
    "snare.log",
    "snare.counter",
    "snare.time",
    "snare.event_id",
    "snare.source",
    "snare.user",
    "snare.sid_type",
    "snare.event_type",
    "snare.computer",
    "snare.category",
    "snare.data",
    "snare.text",
    "snare.checksum",
];

/// Fewer fields than this are no event: all up to its number are always there.
const FIELDS_MIN: usize = 5;

/// Reads an event; `None` if it is none. What follows the last field belongs to it.
pub(super) fn read<'a>(text: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    outline.clear();
    let mut parts = Parts::new(NAMES.len());
    let fields = text.strip_prefix(START)?;
    let mut at = START.len();
    for (name, value) in NAMES.iter().zip(fields.splitn(NAMES.len(), '\t')) {
        let span = (at, at + value.len());
        let read = (Value::Str(Cow::Borrowed(value)), b't', true);
        outline.add(&mut parts, name.as_bytes(), text, span, read);
        at = span.1 + 1;
    }
    (parts.values.len() >= FIELDS_MIN).then_some(parts)
}
