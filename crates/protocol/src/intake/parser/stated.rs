//! Severities that senders state beside a line: of OpenTelemetry and of GELF.
//!
//! A logger states the severity of its call there. A level in the line is what a program wrote into its data, or the level
//! of another record that this one carries. So the sender's counts, and the line's stays a field of its name.
//! A journal's priority is none of these: programs mostly leave it as it is.

use logpond_record::{Entry, Severity, Shape, Value, is_severity_field};
use memchr::{memchr, memmem};

use super::super::sketch::Sketch;

/// The priority of a journal's entry.
const PRIORITY: &str = "PRIORITY";

/// Structured data of products that state their own level there, with the field of it: VMware's NSX. The priority of
/// their messages is the same for many levels.
const OF_PRODUCTS: [(&str, &str); 1] = [("[nsx@6876 ", "nsx@6876.level")];

/// The most bytes of a header of RFC 5424 that structured data is looked for behind.
const HEADER_BYTES_MAX: usize = 512;

/// The most bytes of a priority.
const PRIORITY_BYTES_MAX: usize = 5;

/// The level that a message of RFC 5424 states in its structured data, if its priority says another one.
pub(super) fn of_product(raw: &[u8], sketch: &Sketch<'_, '_>) -> Option<&'static str> {
    let end = memchr(b'>', &raw[..raw.len().min(PRIORITY_BYTES_MAX)])?;
    if !raw[end..].starts_with(b">1 ") {
        return None;
    }
    let head = &raw[..raw.len().min(HEADER_BYTES_MAX)];
    // Each message comes here, and few have structured data of an enterprise.
    memchr(b'@', sketch.shape())?;
    let word = OF_PRODUCTS.iter().find_map(|(id, field)| {
        let Some(Value::Str(word)) = sketch.value(field.as_bytes()) else {
            return None;
        };
        memmem::find(head, id.as_bytes()).map(|_| word)
    })?;
    let level = Severity::of_word(word.as_bytes())?;
    let of_priority = match sketch.value(b"severity") {
        Some(Value::Int(number)) => u8::try_from(*number).ok().and_then(Severity::of_syslog),
        _ => None,
    };
    (of_priority != Some(level)).then(|| level.name())
}

/// The severity that a sender states, if a field of the line would be read as another one.
pub(super) fn overruling(
    entry: &Entry<'_>,
    shape: &Shape,
    values: &[Value<'_>],
) -> Option<Severity> {
    let stated = stated(entry)?;
    let slots = shape.slots().iter().zip(values);
    let mut of_line = slots.filter(|(slot, _)| slot.is_field() && is_severity_field(&slot.name));
    let is_other = |name: &str, value: &Value<'_>| {
        let severity = Severity::of_field(name, &value.to_text());
        severity.is_some_and(|severity| severity != stated)
    };
    of_line
        .any(|(slot, value)| is_other(&slot.name, value))
        .then_some(stated)
}

fn stated(entry: &Entry<'_>) -> Option<Severity> {
    let mut stated = None;
    for (name, value) in entry.envelope.fields() {
        match name {
            PRIORITY => return None,
            "severity_number" | "severity_text" => {
                let severity = Severity::of_field(name, &value.to_text());
                stated = stated.or(severity);
            }
            "severity" if matches!(value, Value::Int(0..=7)) => {
                stated = Severity::of_field(name, &value.to_text());
            }
            _ => {}
        }
    }
    stated
}
