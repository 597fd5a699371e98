//! The log intake of Datadog: an array of JSON objects, or one of them.
//!
//! ```text
//! [{"message":"started","ddsource":"nginx","ddtags":"env:prod,web","hostname":"web-1","service":"shop",
//!   "status":"info","timestamp":1763805600123}]
//! ```
//!
//! `message` is the line, whose form is recognised as anywhere else. `status` is the field `level`, or `severity` if
//! it is a number of syslog. Each tag `NAME:VALUE` is a field, a tag without a value is part of the field `ddtags`;
//! values of one name are joined by commas. `timestamp` or `date` is the time. Other members keep their names.
//!
//! Invariants: a bad object takes no other with it; a body that is no JSON takes all, and nothing was taken then.

use std::borrow::Cow;
use std::fmt;

use logpond_record::limits::FIELDS_MAX;
use logpond_record::{EntryKind, Labels, Value, json_on_one_line};
use serde_json::value::RawValue;

use super::members::{Fields, Members, flatten, keep_last, text_of};
use super::{DecodedBody, Lines, RejectReason, Shipment, TooLarge, moments, without_cr};

/// The field of tags without a value.
const TAGS_FIELD: &str = "ddtags";

/// Why a body is refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatadogError {
    /// It is no JSON of objects.
    Body(String),
    /// More than can be taken at once.
    TooLarge(TooLarge),
}

impl fmt::Display for DatadogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatadogError::Body(reason) => write!(f, "the body is no array of logs: {reason}"),
            DatadogError::TooLarge(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for DatadogError {}

impl From<TooLarge> for DatadogError {
    fn from(error: TooLarge) -> DatadogError {
        DatadogError::TooLarge(error)
    }
}

/// Decodes an array of objects, or one object; `labels` are fields of all.
///
/// # Errors
/// See [`DatadogError`].
pub fn decode(
    body: &[u8],
    labels: Labels,
    line_bytes_max: usize,
) -> Result<DecodedBody, DatadogError> {
    let bad = |error: serde_json::Error| DatadogError::Body(error.to_string());
    let mut shipment = Shipment::new(labels, line_bytes_max);
    if body.trim_ascii_start().starts_with(b"{") {
        let log: Members<'_> = serde_json::from_slice(body).map_err(bad)?;
        add(log, &mut shipment)?;
    } else {
        let logs: Vec<&RawValue> = serde_json::from_slice(body).map_err(bad)?;
        for log in logs {
            match serde_json::from_str(log.get()) {
                Ok(log) => add(log, &mut shipment)?,
                Err(error) => shipment.reject(RejectReason::Malformed(format!(
                    "it is no JSON object of a log: {error}"
                ))),
            }
        }
    }
    Ok(shipment.finish())
}

/// Decodes lines of text; blank ones are none.
///
/// # Errors
/// See [`DatadogError`].
pub fn decode_text(
    body: &[u8],
    labels: Labels,
    line_bytes_max: usize,
) -> Result<DecodedBody, DatadogError> {
    let mut shipment = Shipment::new(labels, line_bytes_max);
    let lines = Lines(body).map(without_cr);
    for line in lines.filter(|line| !line.trim_ascii().is_empty()) {
        shipment.add(EntryKind::Line, Ok(None), std::iter::empty(), line)?;
    }
    Ok(shipment.finish())
}

fn add(log: Members<'_>, shipment: &mut Shipment) -> Result<(), TooLarge> {
    let (mut fields, mut tags) = (Fields::new(), Fields::new());
    let (mut message, mut time) = (None, None);
    for (name, value) in log.0 {
        match &*name {
            "message" => message = Some(value),
            "timestamp" | "date" if time.is_none() => match moments::of_json(value.get()) {
                Some(given) => time = Some(given),
                None => flatten(name, value, &mut fields),
            },
            "status" => fields.push(level(value)),
            TAGS_FIELD => {
                if let Some(given) = text_of(value) {
                    let given = tags_of(&given).into_iter();
                    tags.extend(given.map(|(name, value)| (name.into(), Value::Str(value.into()))));
                }
            }
            _ => flatten(name, value, &mut fields),
        }
    }
    keep_last(&mut fields, 0);
    keep_last(&mut tags, 0);
    let (kind, line) = match message {
        Some(message) if message.get().starts_with('{') => {
            (EntryKind::Json, json_on_one_line(message.get()))
        }
        message => {
            let text = message.and_then(text_of);
            (EntryKind::Line, text.unwrap_or_default())
        }
    };
    let each = fields.iter().chain(&tags);
    let each = each.map(|(name, value)| (&**name, value));
    shipment.add(kind, Ok(time), each, line.as_bytes())
}

/// The field of a status.
fn level(value: &RawValue) -> (Cow<'static, str>, Value<'_>) {
    let text = text_of(value).unwrap_or_default();
    match text.parse::<i64>() {
        Ok(severity @ 0..=7) => ("severity".into(), Value::Int(severity)),
        _ => ("level".into(), Value::Str(text)),
    }
}

/// The fields of tags, in the order of their names' first tags.
pub fn tags_of(tags: &str) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for tag in tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
        let (name, value) = match tag.split_once(':') {
            Some((name, value)) if !name.is_empty() => (name, value),
            _ => (TAGS_FIELD, tag),
        };
        // More names than a record may have are refused, so further ones are not kept apart.
        let is_full = fields.len() > FIELDS_MAX;
        match fields
            .iter_mut()
            .find(|(known, _)| known == name || is_full)
        {
            Some((_, values)) => {
                values.push(',');
                values.push_str(value);
            }
            None => fields.push((name.to_owned(), value.to_owned())),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::super::tests::records;
    use super::*;

    #[test]
    fn members_are_what_they_are_called() {
        let body = r#"[{"message":"started","ddsource":"nginx","ddtags":"env:prod, web,a:b:c,env:eu,:x","hostname":"web-1",
            "service":"shop","status":"warn","timestamp":1763805600123,"http":{"status_code":200}},
            {"message":{"n":1},"status":3,"date":"2025-11-22T10:00:00Z"},
            {"message":"","status":"3x","timestamp":"noon"},{"service":"alone"}]"#;
        let pushed = decode(body.as_bytes(), vec![("team".into(), "a".into())], 100).unwrap();
        assert_eq!(pushed.rejected, []);
        assert_eq!(
            records(&pushed),
            [
                "Line Some(1763805600123000000) ddsource=nginx hostname=web-1 service=shop level=warn \
                 http.status_code=200 env=prod,eu ddtags=web,:x a=b:c | started",
                "Json Some(1763805600000000000) severity=3 | {\"n\":1}",
                "Line None level=3x timestamp=noon | ",
                "Line None service=alone | ",
            ]
        );
        let one = decode(br#" {"message":"one"}"#, Labels::new(), 100).unwrap();
        assert_eq!(records(&one), ["Line None | one"]);
    }

    #[test]
    fn a_bad_object_costs_no_other() {
        let body = r#"[{"message":"longer than ten bytes"},{"message":"good"},{"":1}]"#;
        let pushed = decode(body.as_bytes(), Labels::new(), 10).unwrap();
        assert_eq!((pushed.accepted, pushed.rejected_total), (1, 2));
        let wide: String = (0..1100).map(|n| format!(",\"w{n}\":{n}")).collect();
        let body = format!(
            r#"[{{"message":"a"}},7,{{"message":"w"{wide}}},{{"\ud800":1}},{{"message":"b"}}]"#
        );
        let pushed = decode(body.as_bytes(), Labels::new(), 100).unwrap();
        assert_eq!(records(&pushed), ["Line None | a", "Line None | b"]);
        assert_eq!(pushed.rejected_total, 3);
        for bad in ["", "x", "[{}", "{\"message\":}", "\"text\""] {
            let refused = decode(bad.as_bytes(), Labels::new(), 10);
            assert!(matches!(refused, Err(DatadogError::Body(_))), "{bad}");
        }
        assert_eq!(decode(b"[]", Labels::new(), 10).unwrap().accepted, 0);
    }

    #[test]
    fn a_tag_beside_a_member_of_its_name_is_kept() {
        let body = r#"{"message":"x","service":"shop","ddtags":"service:tag,env:eu"}"#;
        let pushed = decode(body.as_bytes(), Labels::new(), 100).unwrap();
        let expected = "Line None service=shop service@label=tag env=eu | x";
        assert_eq!(records(&pushed), [expected]);
    }

    #[test]
    fn text_is_a_log_a_line() {
        let pushed = decode_text(b"one\r\n\r\ntwo", Labels::new(), 10).unwrap();
        assert_eq!(records(&pushed), ["Line None | one", "Line None | two"]);
    }

    #[test]
    fn very_many_tags_are_refused_in_time() {
        let tags: String = (0..200_000).map(|n| format!("t{n}:1,")).collect();
        let body = format!(r#"{{"message":"x","ddtags":"{tags}"}}"#);
        let pushed = decode(body.as_bytes(), Labels::new(), 100).unwrap();
        assert_eq!((pushed.accepted, pushed.rejected_total), (0, 1));
    }
}
