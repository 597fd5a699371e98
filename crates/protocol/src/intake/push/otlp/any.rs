//! `AnyValue`: text, numbers, lists and maps, as fields and as JSON.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use logpond_record::limits::{FIELDS_MAX, JSON_DEPTH_MAX};
use logpond_record::{Value, write_json_string};

use super::{Body, Fields};

/// A value, from either encoding.
pub(super) enum Any<'a> {
    Absent,
    Text(Cow<'a, str>),
    Bool(bool),
    Int(i64),
    Float(f64),
    Bytes(Cow<'a, [u8]>),
    List(Vec<Any<'a>>),
    Map(Vec<(Cow<'a, str>, Any<'a>)>),
}

/// Values within lists and maps nest at most so deep; deeper ones are left out.
pub(super) const DEPTH_MAX: usize = JSON_DEPTH_MAX;

impl<'a> Any<'a> {
    /// Adds an attribute, as several fields if it is a map.
    ///
    /// One field more than a record may have is the last that is added: it is refused then.
    pub(super) fn flatten(self, name: Cow<'a, str>, fields: &mut Fields<'a>) {
        if fields.len() > FIELDS_MAX {
            return;
        }
        let value = match self {
            Any::Absent => Value::Null,
            Any::Text(text) => Value::Str(text),
            Any::Bool(value) => Value::Bool(value),
            Any::Int(value) => Value::Int(value),
            Any::Float(value) if value.is_finite() => Value::Float(value),
            Any::Float(value) => Value::Str(value.to_string().into()),
            Any::Bytes(bytes) => Value::Bytes(bytes),
            Any::Map(pairs) if !pairs.is_empty() => {
                for (inner, value) in pairs {
                    value.flatten(format!("{name}.{inner}").into(), fields);
                }
                return;
            }
            nested @ (Any::List(_) | Any::Map(_)) => Value::Json(nested.json().into()),
        };
        fields.push((name, value));
    }

    /// As what a record says.
    pub(super) fn into_body(self) -> Body<'a> {
        match self {
            Any::Absent => Body::Absent,
            Any::Text(text) => Body::Text(text),
            map @ Any::Map(_) => Body::Object(map.json().into_bytes()),
            other => Body::Other(other.json().into_bytes()),
        }
    }

    fn json(&self) -> String {
        let mut out = Vec::new();
        self.write_json(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Any::Absent => out.extend_from_slice(b"null"),
            Any::Text(text) => write_json_string(text, out),
            Any::Bool(value) => Value::Bool(*value).write_text(out),
            Any::Int(value) => Value::Int(*value).write_text(out),
            Any::Float(value) if value.is_finite() => Value::Float(*value).write_text(out),
            Any::Float(value) => write_json_string(&value.to_string(), out),
            Any::Bytes(bytes) => write_json_string(&STANDARD.encode(bytes), out),
            Any::List(values) => {
                out.push(b'[');
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    value.write_json(out);
                }
                out.push(b']');
            }
            Any::Map(pairs) => {
                out.push(b'{');
                for (index, (name, value)) in pairs.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_json_string(name, out);
                    out.push(b':');
                    value.write_json(out);
                }
                out.push(b'}');
            }
        }
    }
}
