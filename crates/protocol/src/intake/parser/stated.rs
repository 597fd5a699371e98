//! Severities that senders state beside a line: of OpenTelemetry and of GELF.
//!
//! A logger states the severity of its call there. A level in the line is what a program wrote into its data, or the level
//! of another record that this one carries. So the sender's counts, and the line's stays a field of its name.
//! A journal's priority is none of these: programs mostly leave it as it is.

use logpond_record::{Entry, Severity, Shape, Value, is_severity_field};

/// The priority of a journal's entry.
const PRIORITY: &str = "PRIORITY";

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
