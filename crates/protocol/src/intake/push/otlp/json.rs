//! The JSON encoding: names in lowerCamelCase, ids in hexadecimal digits, 64-bit numbers as texts or
//! numbers, unknown names ignored.
//!
//! Resources and scopes are read twice, once for what their records share: it may stand behind them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use logpond_record::Labels;
use logpond_record::limits::FIELDS_MAX;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::any::{Any, DEPTH_MAX};
use super::ids::{self, SPAN_BYTES, TRACE_BYTES};
use super::{Fields, LogRecord, NoRecord, OtlpError, add, has_room_for, scope_fields};
use crate::intake::push::bounded::{AtMost, FirstOf};
use crate::intake::push::members::keep_last;
use crate::intake::push::{BATCH_RECORDS_MAX, DecodedBody, Shipment};

/// The most values of a list or a map within a value: each takes some hundred bytes, however short it is.
const VALUES_MAX: usize = 65_536;

/// Attributes: one more than a record may have is the last that is held, so that it is refused.
type Attributes<'a> = FirstOf<KeyValue<'a>, { FIELDS_MAX + 1 }>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow, default)]
    resource_logs: AtMost<&'a RawValue, BATCH_RECORDS_MAX>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceLogs<'a> {
    #[serde(borrow)]
    resource: Option<Resource<'a>>,
    #[serde(borrow, default)]
    scope_logs: AtMost<&'a RawValue, BATCH_RECORDS_MAX>,
}

#[derive(Deserialize)]
struct Resource<'a> {
    #[serde(borrow, default)]
    attributes: Attributes<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScopeLogs<'a> {
    #[serde(borrow)]
    scope: Option<Scope<'a>>,
    #[serde(borrow, default)]
    log_records: AtMost<&'a RawValue, BATCH_RECORDS_MAX>,
}

#[derive(Deserialize)]
struct Scope<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    version: Cow<'a, str>,
    #[serde(borrow, default)]
    attributes: Attributes<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonRecord<'a> {
    #[serde(default)]
    time_unix_nano: Number,
    #[serde(default)]
    observed_time_unix_nano: Number,
    #[serde(default)]
    severity_number: Number,
    #[serde(borrow, default)]
    severity_text: Cow<'a, str>,
    #[serde(borrow)]
    body: Option<AnyValue<'a>>,
    #[serde(borrow, default)]
    attributes: Attributes<'a>,
    #[serde(borrow, default)]
    trace_id: Cow<'a, str>,
    #[serde(borrow, default)]
    span_id: Cow<'a, str>,
    #[serde(borrow, default)]
    event_name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct KeyValue<'a> {
    #[serde(borrow, default)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    value: Option<AnyValue<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnyValue<'a> {
    #[serde(borrow)]
    string_value: Option<Cow<'a, str>>,
    bool_value: Option<bool>,
    int_value: Option<Number>,
    double_value: Option<Double>,
    #[serde(borrow)]
    array_value: Option<Values<'a>>,
    #[serde(borrow)]
    kvlist_value: Option<Pairs<'a>>,
    #[serde(borrow)]
    bytes_value: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Values<'a> {
    #[serde(borrow, default)]
    values: AtMost<AnyValue<'a>, VALUES_MAX>,
}

#[derive(Deserialize)]
struct Pairs<'a> {
    #[serde(borrow, default)]
    values: AtMost<KeyValue<'a>, VALUES_MAX>,
}

/// A 64-bit number, as a number or as text.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(try_from = "serde_json::Value")]
struct Number(i128);

impl TryFrom<serde_json::Value> for Number {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Number, String> {
        let number = match &value {
            serde_json::Value::Number(number) => {
                let signed = number.as_i64().map(i128::from);
                signed.or_else(|| number.as_u64().map(i128::from))
            }
            serde_json::Value::String(text) => {
                text.parse::<i64>().ok().map(i128::from).or_else(|| {
                    let unsigned = text.parse::<u64>();
                    unsigned.ok().map(i128::from)
                })
            }
            _ => None,
        };
        number
            .map(Number)
            .ok_or(format!("{value} is no 64-bit number"))
    }
}

impl Number {
    fn unsigned(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }
}

/// A double, as a number or as one of the texts for what JSON has no number for.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "serde_json::Value")]
struct Double(f64);

impl TryFrom<serde_json::Value> for Double {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Double, String> {
        let number = match &value {
            serde_json::Value::Number(number) => number.as_f64(),
            serde_json::Value::String(text) => match &**text {
                "Infinity" => Some(f64::INFINITY),
                "-Infinity" => Some(f64::NEG_INFINITY),
                text => text.parse().ok(),
            },
            _ => None,
        };
        number.map(Double).ok_or(format!("{value} is no number"))
    }
}

impl From<serde_json::Error> for OtlpError {
    fn from(error: serde_json::Error) -> OtlpError {
        OtlpError::Body(error.to_string())
    }
}

/// Decodes a body.
///
/// # Errors
/// See [`OtlpError`].
pub fn decode(
    body: &[u8],
    labels: Labels,
    line_bytes_max: usize,
) -> Result<DecodedBody, OtlpError> {
    let mut shipment = Shipment::new(labels, line_bytes_max);
    let text = String::from_utf8_lossy(body);
    // In a body that is not UTF-8 these are the records that are not.
    let is_bad = |json: &str| matches!(text, Cow::Owned(_)) && json.contains('\u{fffd}');
    let request: Request<'_> = serde_json::from_str(&text)?;
    for of_resource in request.resource_logs.0 {
        let of_resource: ResourceLogs<'_> = serde_json::from_str(of_resource.get())?;
        let resource = of_resource.resource.map(|resource| resource.attributes);
        let resource = attributes(resource.unwrap_or_default());
        for of_scope in of_resource.scope_logs.0 {
            let of_scope: ScopeLogs<'_> = serde_json::from_str(of_scope.get())?;
            let mut shared = match of_scope.scope {
                None => Fields::new(),
                Some(scope) => {
                    scope_fields(scope.name, scope.version, attributes(scope.attributes))
                }
            };
            shared.extend(resource.iter().cloned());
            for record in of_scope.log_records.0 {
                if !has_room_for(&mut shipment, record.get().len()) {
                    continue;
                }
                let read = if is_bad(record.get()) {
                    Err(NoRecord("it has a text that is not UTF-8".to_owned()))
                } else {
                    read_record(record.get())
                };
                add(&mut shipment, read, Ok(&shared))?;
            }
        }
    }
    Ok(shipment.finish())
}

fn attributes(pairs: Attributes<'_>) -> Fields<'_> {
    let mut fields = Fields::new();
    for pair in pairs.0 {
        let value = pair.value.map_or(Any::Absent, |value| value.into_any(0));
        value.flatten(pair.key, &mut fields);
    }
    keep_last(&mut fields, 0);
    fields
}

fn read_record(json: &str) -> Result<LogRecord<'_>, NoRecord> {
    let read = serde_json::from_str::<JsonRecord<'_>>(json);
    let record = read.map_err(|error| NoRecord(error.to_string()))?;
    record.into_record()
}

impl<'a> JsonRecord<'a> {
    fn into_record(self) -> Result<LogRecord<'a>, NoRecord> {
        let body = self.body.map_or(Any::Absent, |body| body.into_any(0));
        Ok(LogRecord {
            time: self.time_unix_nano.unsigned(),
            observed: self.observed_time_unix_nano.unsigned(),
            severity_number: self.severity_number.unsigned(),
            severity_text: self.severity_text,
            body: body.into_body(),
            attributes: attributes(self.attributes),
            trace_id: ids::of_text::<TRACE_BYTES>(self.trace_id.as_bytes())?,
            span_id: ids::of_text::<SPAN_BYTES>(self.span_id.as_bytes())?,
            event_name: self.event_name,
        })
    }
}

impl<'a> AnyValue<'a> {
    fn into_any(self, depth: usize) -> Any<'a> {
        let is_deep = depth >= DEPTH_MAX;
        if let Some(text) = self.string_value {
            Any::Text(text)
        } else if let Some(value) = self.bool_value {
            Any::Bool(value)
        } else if let Some(Number(value)) = self.int_value {
            i64::try_from(value).map_or(Any::Text(value.to_string().into()), Any::Int)
        } else if let Some(Double(value)) = self.double_value {
            Any::Float(value)
        } else if let Some(text) = self.bytes_value {
            match STANDARD.decode(text.as_bytes()) {
                Ok(bytes) => Any::Bytes(bytes.into()),
                Err(_) => Any::Text(text),
            }
        } else if let Some(list) = self.array_value.filter(|_| !is_deep) {
            let values = list.values.0.into_iter();
            Any::List(values.map(|value| value.into_any(depth + 1)).collect())
        } else if let Some(map) = self.kvlist_value.filter(|_| !is_deep) {
            let pairs = map.values.0.into_iter().map(|pair| {
                let value = pair
                    .value
                    .map_or(Any::Absent, |value| value.into_any(depth + 1));
                (pair.key, value)
            });
            Any::Map(pairs.collect())
        } else {
            Any::Absent
        }
    }
}
