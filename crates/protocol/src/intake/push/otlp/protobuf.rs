//! The binary encoding.
//!
//! ```text
//! ExportLogsServiceRequest  1: ResourceLogs*
//! ResourceLogs              1: Resource  2: ScopeLogs*
//! Resource                  1: KeyValue*
//! ScopeLogs                 1: Scope  2: LogRecord*
//! Scope                     1: name  2: version  3: KeyValue*
//! LogRecord                 1: time  2: severity_number  3: severity_text  5: body  6: KeyValue*
//!                           9: trace_id  10: span_id  11: observed_time  12: event_name
//! KeyValue                  1: key  2: AnyValue
//! AnyValue                  1: string  2: bool  3: int  4: double  5: list  6: map  7: bytes
//! ```

use std::borrow::Cow;

use logpond_record::{Labels, cast};

use super::any::{Any, DEPTH_MAX};
use super::ids::{self, SPAN_BYTES, TRACE_BYTES};
use super::{
    Fields, LogRecord, NoRecord, OtlpError, RECORD_BYTES_MAX, add, has_room_for, scope_fields,
};
use crate::intake::protobuf::{Field, WireError, fields, write};
use crate::intake::push::members::keep_last;
use crate::intake::push::{DecodedBody, Shipment};

impl From<WireError> for OtlpError {
    fn from(_: WireError) -> OtlpError {
        OtlpError::Body("it is not encoded as Protocol Buffers".to_owned())
    }
}

impl From<WireError> for NoRecord {
    fn from(_: WireError) -> NoRecord {
        NoRecord("it is no message of Protocol Buffers, or has a text that is not UTF-8".to_owned())
    }
}

/// Decodes a body that is decompressed.
///
/// # Errors
/// See [`OtlpError`].
pub fn decode(
    body: &[u8],
    labels: Labels,
    line_bytes_max: usize,
) -> Result<DecodedBody, OtlpError> {
    let mut shipment = Shipment::new(labels, line_bytes_max);
    for field in fields(body) {
        if let (1, Field::Bytes(of_resource)) = field? {
            take_resource(of_resource, &mut shipment)?;
        }
    }
    Ok(shipment.finish())
}

/// Encodes an `ExportLogsServiceResponse`: empty if nothing was rejected, else with how many records
/// were, and why.
pub fn write_success(rejected: u64, message: &str) -> Vec<u8> {
    let mut out = Vec::new();
    if rejected > 0 {
        let mut partial = Vec::new();
        write::number(1, rejected, &mut partial);
        write::bytes(2, message.as_bytes(), &mut partial);
        write::bytes(1, &partial, &mut out);
    }
    out
}

/// Encodes a `google.rpc.Status`.
pub fn write_status(code: u64, message: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write::number(1, code, &mut out);
    write::bytes(2, message.as_bytes(), &mut out);
    out
}

/// Encodes a `google.rpc.Status`, with the seconds after which the same request may pass as
/// `google.rpc.RetryInfo`.
pub fn write_failure(code: u64, message: &str, retry_after_s: Option<u32>) -> Vec<u8> {
    let mut out = write_status(code, message);
    if let Some(seconds) = retry_after_s {
        let (mut delay, mut info, mut any) = (Vec::new(), Vec::new(), Vec::new());
        write::number(1, seconds.into(), &mut delay);
        write::bytes(1, &delay, &mut info);
        write::bytes(1, RETRY_INFO.as_bytes(), &mut any);
        write::bytes(2, &info, &mut any);
        write::bytes(3, &any, &mut out);
    }
    out
}

/// How a message of any type says that it is this one.
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

fn take_resource(of_resource: &[u8], shipment: &mut Shipment) -> Result<(), OtlpError> {
    let mut resource = Ok(Fields::new());
    // A resource may stand behind its records.
    for field in fields(of_resource) {
        if let (1, Field::Bytes(message)) = field? {
            check_shared(message)?;
            resource = resource.and_then(|fields| read_resource(message, fields));
        }
    }
    for field in fields(of_resource).flatten() {
        if let (2, Field::Bytes(of_scope)) = field {
            take_scope(of_scope, resource.as_ref(), shipment)?;
        }
    }
    Ok(())
}

fn read_resource<'a>(message: &'a [u8], mut resource: Fields<'a>) -> Result<Fields<'a>, NoRecord> {
    for field in fields(message) {
        if let (1, Field::Bytes(pair)) = field? {
            attribute(pair, &mut resource)?;
        }
    }
    keep_last(&mut resource, 0);
    Ok(resource)
}

/// Refuses a resource or a scope longer than a record may be: what is read of one takes a multiple of its
/// length.
fn check_shared(message: &[u8]) -> Result<(), OtlpError> {
    if message.len() > RECORD_BYTES_MAX {
        Err(OtlpError::Body(format!(
            "a resource or a scope is longer than {RECORD_BYTES_MAX} bytes"
        )))
    } else {
        Ok(())
    }
}

fn take_scope(
    of_scope: &[u8],
    resource: Result<&Fields<'_>, &NoRecord>,
    shipment: &mut Shipment,
) -> Result<(), OtlpError> {
    let mut shared = Ok(Fields::new());
    for field in fields(of_scope) {
        if let (1, Field::Bytes(message)) = field? {
            check_shared(message)?;
            shared = read_scope(message);
        }
    }
    let shared = match (shared, resource) {
        (Ok(mut shared), Ok(resource)) => {
            shared.extend(resource.iter().cloned());
            Ok(shared)
        }
        (Err(reason), _) => Err(reason),
        (_, Err(reason)) => Err(NoRecord(reason.0.clone())),
    };
    for field in fields(of_scope).flatten() {
        if let (2, Field::Bytes(record)) = field
            && has_room_for(shipment, record.len())
        {
            add(shipment, read_record(record), shared.as_ref())?;
        }
    }
    Ok(())
}

fn read_scope(message: &[u8]) -> Result<Fields<'_>, NoRecord> {
    let (mut name, mut version, mut attributes) = ("", "", Fields::new());
    for field in fields(message) {
        match field? {
            (1, field) => name = field.text().ok_or(WireError)?,
            (2, field) => version = field.text().ok_or(WireError)?,
            (3, Field::Bytes(pair)) => attribute(pair, &mut attributes)?,
            _ => {}
        }
    }
    keep_last(&mut attributes, 0);
    Ok(scope_fields(name.into(), version.into(), attributes))
}

fn read_record(message: &[u8]) -> Result<LogRecord<'_>, NoRecord> {
    let mut record = LogRecord::default();
    for field in fields(message) {
        match field? {
            (1, Field::Fixed64(time)) => record.time = time,
            (2, Field::Varint(number)) => record.severity_number = number,
            (3, field) => record.severity_text = field.text().ok_or(WireError)?.into(),
            (5, Field::Bytes(any)) => record.body = read_any(any, 0)?.into_body(),
            (6, Field::Bytes(pair)) => attribute(pair, &mut record.attributes)?,
            (9, Field::Bytes(id)) => record.trace_id = ids::of_bytes::<TRACE_BYTES>(id)?,
            (10, Field::Bytes(id)) => record.span_id = ids::of_bytes::<SPAN_BYTES>(id)?,
            (11, Field::Fixed64(time)) => record.observed = time,
            (12, field) => record.event_name = field.text().ok_or(WireError)?.into(),
            _ => {}
        }
    }
    keep_last(&mut record.attributes, 0);
    Ok(record)
}

fn attribute<'a>(pair: &'a [u8], to: &mut Fields<'a>) -> Result<(), WireError> {
    let (name, value) = read_pair(pair, 0)?;
    value.flatten(name, to);
    Ok(())
}

fn read_pair(pair: &[u8], depth: usize) -> Result<(Cow<'_, str>, Any<'_>), WireError> {
    let (mut name, mut value) = ("", Any::Absent);
    for field in fields(pair) {
        match field? {
            (1, field) => name = field.text().ok_or(WireError)?,
            (2, Field::Bytes(any)) => value = read_any(any, depth)?,
            _ => {}
        }
    }
    Ok((name.into(), value))
}

fn read_any(message: &[u8], depth: usize) -> Result<Any<'_>, WireError> {
    let mut value = Any::Absent;
    for field in fields(message) {
        value = match field? {
            (1, field) => Any::Text(field.text().ok_or(WireError)?.into()),
            (2, Field::Varint(truth)) => Any::Bool(truth != 0),
            (3, Field::Varint(int)) => Any::Int(cast::signed(int)),
            (4, Field::Fixed64(bits)) => Any::Float(f64::from_bits(bits)),
            (7, Field::Bytes(bytes)) => Any::Bytes(bytes.into()),
            (5, Field::Bytes(list)) if depth < DEPTH_MAX => {
                let mut values = Vec::new();
                for field in fields(list) {
                    if let (1, Field::Bytes(any)) = field? {
                        values.push(read_any(any, depth + 1)?);
                    }
                }
                Any::List(values)
            }
            (6, Field::Bytes(map)) if depth < DEPTH_MAX => {
                let mut pairs = Vec::new();
                for field in fields(map) {
                    if let (1, Field::Bytes(pair)) = field? {
                        pairs.push(read_pair(pair, depth + 1)?);
                    }
                }
                Any::Map(pairs)
            }
            _ => value,
        };
    }
    Ok(value)
}
