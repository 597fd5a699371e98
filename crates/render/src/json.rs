//! `-o json`: one object a line: `_time`, `_id`, `_msg`, then the fields. Servers answer so, too:
//! the members that need care are written here for both.
//!
//! Invariants: what is written is valid JSON whatever bytes a record holds; no name occurs twice; a field has
//! none of the names that mean something else in answers, so it passes for no part of one.
//!
//! Bytes that are not UTF-8 become U+FFFD; a message that has any is also given exactly, in base
//! 64, as `_msg_bin`.

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use logpond_record::{Value, unreserved, write_json_string};

use super::{Render, Row};

/// Up to so many fields, comparing all pairs is faster than hashing.
const PAIRWISE_MAX: usize = 24;

/// See the module.
pub(super) struct Json;

impl Render for Json {
    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) {
        out.push(b'{');
        if let Some(time) = row.time {
            out.extend_from_slice(format!("\"_time\":\"{time}\",").as_bytes());
        }
        out.extend_from_slice(format!("\"_id\":\"{}\"", row.id).as_bytes());
        if let Some(message) = &row.message {
            write_message(message, out);
        }
        write_fields(row.fields.iter().map(|(name, value)| (&**name, value)), out);
        out.extend_from_slice(b"}\n");
    }

    /// Answers carry gaps in this form, too.
    fn gap(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"_gap\":true}\n");
    }
}

/// Appends the message as the next member, and exactly as another one where it is not UTF-8.
pub fn write_message(message: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"_msg\":");
    write_json_string(&String::from_utf8_lossy(message), out);
    if std::str::from_utf8(message).is_err() {
        write_bytes("_msg_bin", message, out);
    }
}

/// Appends bytes in base 64 as the next member.
pub fn write_bytes(name: &str, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b',');
    write_json_string(name, out);
    out.extend_from_slice(b":\"");
    out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    out.push(b'"');
}

/// Appends the fields that [`each_field`] hands over as the next members.
pub fn write_fields<'a>(fields: impl Iterator<Item = (&'a str, &'a Value<'a>)>, out: &mut Vec<u8>) {
    each_field(fields, |name, value| write_field(name, value, out));
}

/// Appends a field as the next member.
pub fn write_field(name: &str, value: &Value<'_>, out: &mut Vec<u8>) {
    out.push(b',');
    write_json_string(name, out);
    out.push(b':');
    value.write_json(out);
}

/// Hands over the fields of a row; of several with one name the first one counts. None has a reserved name,
/// whoever stored it.
pub fn each_field<'a>(
    fields: impl Iterator<Item = (&'a str, &'a Value<'a>)>,
    mut take: impl FnMut(&'a str, &'a Value<'a>),
) {
    let mut seen_few: [&str; PAIRWISE_MAX] = [""; PAIRWISE_MAX];
    let mut seen_many: HashSet<&str> = HashSet::new();
    let mut count = 0;
    for (name, value) in fields {
        let name = unreserved(name).unwrap_or(name);
        let is_new = match count {
            0..PAIRWISE_MAX => !seen_few[..count].contains(&name),
            _ => {
                if seen_many.is_empty() {
                    seen_many.extend(seen_few);
                }
                seen_many.insert(name)
            }
        };
        if !is_new {
            continue;
        }
        if count < PAIRWISE_MAX {
            seen_few[count] = name;
        }
        count += 1;
        take(name, value);
    }
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
        write_json_string(name, out);
        out.push(b':');
        value.write_json(out);
    }
    out.push(b'}');
}
