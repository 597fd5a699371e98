//! A record as one line of JSON.
//!
//! Invariants: the line is valid JSON whatever bytes the record holds; no name occurs twice; the
//! reserved names win over fields that are called so.

use std::collections::HashSet;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use logpond_record::{Message, Record, Value};

/// Names that are given by the record itself.
const RESERVED: [&str; 5] = ["_time", "_id", "_msg", "_line", "_line_b64"];

/// Up to so many fields, comparing all pairs is faster than hashing.
const PAIRWISE_MAX: usize = 24;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Which parts of a record an answer has beside its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowParts {
    /// `_line`, or `_line_b64` where the line is not UTF-8.
    pub line: bool,
    /// `_received` and `_time_source`.
    pub origin: bool,
}

/// Appends the record as a JSON object, without a line end.
pub fn write_row(record: &Record<'_>, parts: RowParts, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail, here and below.
    let _ = write!(
        out,
        "{{\"_time\":\"{}\",\"_id\":\"{}\"",
        record.time, record.id
    );
    let mut scratch = Vec::new();
    match &record.message {
        Message::Absent => {}
        Message::Part(Value::Str(text)) => {
            out.extend_from_slice(b",\"_msg\":");
            write_string(text, out);
        }
        _ => {
            record.write_message(&mut scratch);
            write_bytes("_msg", "_msg_bin", &scratch, true, out);
        }
    }
    if parts.origin {
        let (received, source) = (record.received, record.time_source.as_str());
        let _ = write!(
            out,
            ",\"_received\":\"{received}\",\"_time_source\":\"{source}\""
        );
    }
    write_fields(record, parts, out);
    if parts.line {
        scratch.clear();
        record.write_line(&mut scratch);
        write_bytes("_line", "_line_b64", &scratch, false, out);
    }
    out.push(b'}');
}

fn write_fields(record: &Record<'_>, parts: RowParts, out: &mut Vec<u8>) {
    let mut seen_few: [&str; PAIRWISE_MAX] = [""; PAIRWISE_MAX];
    let mut seen_many: HashSet<&str> = HashSet::new();
    let mut count = 0;
    for (name, value) in record.fields() {
        let is_reserved = name.starts_with('_')
            && (RESERVED.contains(&name)
                || (parts.origin && matches!(name, "_received" | "_time_source"))
                || name == "_msg_bin");
        let is_new = match count {
            0..PAIRWISE_MAX => !seen_few[..count].contains(&name),
            _ => {
                if seen_many.is_empty() {
                    seen_many.extend(seen_few);
                }
                seen_many.insert(name)
            }
        };
        if is_reserved || !is_new {
            continue;
        }
        if count < PAIRWISE_MAX {
            seen_few[count] = name;
        }
        count += 1;
        out.push(b',');
        write_string(name, out);
        out.push(b':');
        write_value(value, out);
    }
}

/// Appends a value as JSON. Bytes that are not UTF-8 become replacement characters: only the line
/// and the message promise more.
pub fn write_value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Str(text) => write_string(text, out),
        Value::Bytes(bytes) => write_string(&String::from_utf8_lossy(bytes), out),
        // JSON has no such numbers.
        Value::Float(f) if !f.is_finite() => write_string(&f.to_string(), out),
        other => other.write_text(out),
    }
}

fn write_bytes(name: &str, name_exact: &str, bytes: &[u8], also_lossy: bool, out: &mut Vec<u8>) {
    let text = std::str::from_utf8(bytes);
    if text.is_ok() || also_lossy {
        let _ = write!(out, ",\"{name}\":");
        match text {
            Ok(text) => write_string(text, out),
            Err(_) => write_string(&String::from_utf8_lossy(bytes), out),
        }
    }
    if text.is_err() {
        let _ = write!(out, ",\"{name_exact}\":\"");
        write_base64(bytes, out);
        out.push(b'"');
    }
}

/// Appends text as a JSON string.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[copied..at]);
        copied = at + 1;
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            _ => {
                let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use logpond_record::{Id, Shape, TimeSource, Timestamp};

    use super::*;

    fn record(
        shape: &str,
        values: Vec<Value<'static>>,
        message: Message<'static>,
    ) -> Record<'static> {
        Record {
            id: Id(1),
            time: Timestamp(0),
            time_source: TimeSource::Received,
            received: Timestamp(1),
            message,
            shape: Arc::new(Shape::new(shape).unwrap()),
            values,
            fixes: Vec::new(),
            labels: vec![("a".into(), Value::Int(9)), ("_id".into(), Value::Int(9))],
            whole: None,
        }
    }

    fn row(record: &Record<'_>, parts: RowParts) -> String {
        let mut out = Vec::new();
        write_row(record, parts, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_valid_json_without_repeated_names() {
        let text = Value::Str("q\"\\\n\u{1}é".into());
        let r = record(
            "a=⟨a:t⟩ b=⟨b:i⟩",
            vec![text, Value::Int(-1)],
            Message::Absent,
        );
        assert_eq!(
            row(&r, RowParts::default()),
            r#"{"_time":"1970-01-01T00:00:00.000000000Z","_id":"00000000000000000000000001","a":"q\"\\\n\u0001é","b":-1}"#
        );
    }

    #[test]
    fn bytes_that_are_no_text_come_exactly_beside_it() {
        let bytes = Value::Bytes(b"a\xff".as_slice().into());
        let r = record("⟨_msg:t⟩", vec![Value::Null], Message::Part(bytes));
        let json = row(
            &r,
            RowParts {
                line: true,
                origin: true,
            },
        );
        let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(parsed["_msg"], "a\u{fffd}");
        assert_eq!(parsed["_msg_bin"], "Yf8=");
        assert_eq!(parsed["_line_b64"], "Yf8=");
        assert_eq!(parsed["_time_source"], "received");
        assert!(parsed.get("_line").is_none());
    }

    #[test]
    fn base64_is_padded() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            let mut out = Vec::new();
            write_base64(bytes.as_bytes(), &mut out);
            assert_eq!(out, text.as_bytes());
        }
    }
}
