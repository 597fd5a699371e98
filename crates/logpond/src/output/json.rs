//! `-o json`: one object a line: `_time`, `_id`, `_msg`, then the fields.
//!
//! Bytes that are not UTF-8 become U+FFFD; a message that has any is also given exactly, in base
//! 64, as `_msg_bin`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use logpond_record::Value;

use super::{Render, Row};

/// See the module.
pub(super) struct Json;

impl Render for Json {
    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) {
        write_row(row, out);
        out.push(b'\n');
    }

    /// Answers carry gaps in this form, too.
    fn gap(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"_gap\":true}\n");
    }
}

/// Appends the object of a row, without a line end.
pub fn write_row(row: &Row<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    if let Some(time) = row.time {
        out.extend_from_slice(format!("\"_time\":\"{time}\",").as_bytes());
    }
    out.extend_from_slice(format!("\"_id\":\"{}\"", row.id).as_bytes());
    if let Some(message) = &row.message {
        out.extend_from_slice(b",\"_msg\":");
        write_string(&String::from_utf8_lossy(message), out);
        if std::str::from_utf8(message).is_err() {
            out.extend_from_slice(b",\"_msg_bin\":\"");
            out.extend_from_slice(STANDARD.encode(message).as_bytes());
            out.push(b'"');
        }
    }
    for (at, (name, value)) in row.fields.iter().enumerate() {
        let is_repeated = row.fields[..at].iter().any(|(earlier, _)| earlier == name);
        if is_repeated || matches!(&**name, "_time" | "_id" | "_msg" | "_msg_bin") {
            continue;
        }
        out.push(b',');
        write_string(name, out);
        out.push(b':');
        write_value(value, out);
    }
    out.push(b'}');
}

/// Appends the fields as one object.
pub(super) fn write_object<'a>(
    fields: impl Iterator<Item = (&'a str, &'a Value<'a>)>,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    for (at, (name, value)) in fields.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        write_value(value, out);
    }
    out.push(b'}');
}

/// Appends a value; a number that JSON cannot write becomes null.
pub(super) fn write_value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Str(text) => write_string(text, out),
        Value::Bytes(bytes) => write_string(&String::from_utf8_lossy(bytes), out),
        Value::Float(number) if !number.is_finite() => out.extend_from_slice(b"null"),
        other => other.write_text(out),
    }
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    // Writing a string to a vector cannot fail.
    let _ = serde_json::to_writer(out, text);
}
