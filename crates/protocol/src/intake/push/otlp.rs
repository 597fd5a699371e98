//! Logs of OpenTelemetry (OTLP 1.x): `ExportLogsServiceRequest`, as Protocol Buffers or as JSON.
//!
//! A body that is text is the line, and its form is recognised as anywhere else; any other body is
//! the line as JSON. The record's time is when it happened, else when it was observed. Attributes
//! are fields under their own names, maps in them flattened with dots: first those of the record,
//! then its severity, trace and span, then those of its scope and resource.
//!
//! Invariants: a record that cannot be taken takes no other with it, also if it is no message, has a text
//! that is not UTF-8 or ids of other lengths; a resource or a scope that is none takes its records. A body
//! that is no request takes all, and nothing was taken then.

mod any;
mod ids;
mod json;
mod protobuf;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use logpond_record::{EntryKind, Severity, Timestamp, Value, cast};

use super::{RejectReason, Shipment, TooLarge};

pub use json::decode as decode_json;
pub use protobuf::{decode as decode_protobuf, write_failure, write_status, write_success};

/// Names and values.
type Fields<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// The longest encoding of a record that is looked at, unless lines may be longer.
const RECORD_BYTES_MAX: usize = 4 << 20;

/// Names of the levels, four numbers each, from 1.
const LEVELS: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

/// The field that comes before all others that say a level, as Loki names it.
const DETECTED_LEVEL: &str = "detected_level";

/// Why a body is refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OtlpError {
    /// It is no request.
    Body(String),
    /// More than can be taken at once.
    TooLarge(TooLarge),
}

impl fmt::Display for OtlpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OtlpError::Body(reason) => write!(f, "the body is no request to export logs: {reason}"),
            OtlpError::TooLarge(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for OtlpError {}

/// A record, from either encoding.
#[derive(Default)]
struct LogRecord<'a> {
    /// Nanoseconds since 1970; 0 is not known.
    time: u64,
    observed: u64,
    severity_number: u64,
    severity_text: Cow<'a, str>,
    body: Body<'a>,
    attributes: Fields<'a>,
    /// In hexadecimal digits; empty if there is none.
    trace_id: String,
    span_id: String,
    event_name: Cow<'a, str>,
}

/// What a record says.
#[derive(Default)]
enum Body<'a> {
    #[default]
    Absent,
    Text(Cow<'a, str>),
    /// A map.
    Object(Vec<u8>),
    /// Anything else, as text.
    Other(Vec<u8>),
}

/// A record, its scope or its resource is no message, or has a text that is not UTF-8.
struct NoRecord(String);

impl From<NoRecord> for RejectReason {
    fn from(reason: NoRecord) -> RejectReason {
        RejectReason::Malformed(reason.0)
    }
}

impl From<TooLarge> for OtlpError {
    fn from(error: TooLarge) -> OtlpError {
        OtlpError::TooLarge(error)
    }
}

/// Takes a record in; `shared` are the fields of its scope and resource. What could not be read takes the
/// record with it.
fn add(
    shipment: &mut Shipment,
    record: Result<LogRecord<'_>, NoRecord>,
    shared: Result<&Fields<'_>, &NoRecord>,
) -> Result<(), OtlpError> {
    let (record, shared) = match (record, shared) {
        (Ok(record), Ok(shared)) => (record, shared),
        (Err(reason), _) => {
            shipment.reject(reason.into());
            return Ok(());
        }
        (_, Err(reason)) => {
            shipment.reject(RejectReason::Malformed(reason.0.clone()));
            return Ok(());
        }
    };
    let (kind, line) = match &record.body {
        Body::Absent => (EntryKind::Line, &b""[..]),
        Body::Text(text) => (EntryKind::Line, text.as_bytes()),
        Body::Object(json) => (EntryKind::Json, &json[..]),
        Body::Other(text) => (EntryKind::Line, &text[..]),
    };
    let own = own_fields(&record);
    let all = record.attributes.iter().chain(&own).chain(shared);
    let fields = all.map(|(name, value)| (&**name, value));
    let time = [record.time, record.observed];
    let time = time.into_iter().find(|time| *time > 0);
    let time = time.map(|time| Timestamp(i64::try_from(time).unwrap_or(i64::MAX)));
    Ok(shipment.add(kind, Ok(time), fields, line)?)
}

/// Whether a record whose encoding has so many bytes is looked at; otherwise it is rejected. What is
/// read of one takes a multiple of its length.
fn has_room_for(shipment: &mut Shipment, bytes: usize) -> bool {
    let bytes_max = RECORD_BYTES_MAX.max(2 * shipment.line_bytes_max);
    if bytes > bytes_max {
        shipment.reject(RejectReason::TooLong { bytes, bytes_max });
    }
    bytes <= bytes_max
}

/// What a record says beside its attributes.
fn own_fields<'r>(record: &'r LogRecord<'_>) -> Fields<'r> {
    let text = |name, text: &'r str| (Cow::Borrowed(name), Value::Str(Cow::Borrowed(text)));
    let level = match (&*record.severity_text, record.severity_number) {
        ("", number @ 1..=24) => LEVELS[(cast::to_usize(number) - 1) / 4],
        (given, _) => given,
    };
    let texts = [
        ("severity_text", level),
        ("trace_id", &record.trace_id),
        ("span_id", &record.span_id),
        ("event_name", &record.event_name),
    ];
    let given = texts.into_iter().filter(|(_, value)| !value.is_empty());
    let mut fields: Fields<'r> = given.map(|(name, value)| text(name, value)).collect();
    if let number @ 1..=24 = record.severity_number {
        fields.push(("severity_number".into(), Value::Int(cast::signed(number))));
        // The number counts where nobody knows the words.
        let is_known = Severity::of_word(level.as_bytes()).is_some();
        let severity = Severity::of_opentelemetry(cast::low_u32(number)).filter(|_| !is_known);
        fields.extend(severity.map(|severity| text(DETECTED_LEVEL, severity.name())));
    }
    fields
}

/// The fields of a scope.
fn scope_fields<'a>(
    name: Cow<'a, str>,
    version: Cow<'a, str>,
    attributes: Fields<'a>,
) -> Fields<'a> {
    let mut fields = attributes;
    for (field, value) in [("scope.name", name), ("scope.version", version)] {
        if !value.is_empty() {
            fields.push((field.into(), Value::Str(value)));
        }
    }
    fields
}
