//! A record as one line of JSON.
//!
//! Invariants: the line is valid JSON whatever bytes the record holds; no name occurs twice; no field has a
//! reserved name, so that no record forges another part of an answer.

use std::io::Write;

use logpond_record::{Message, Record, Value, write_json_string};

use logpond_render::json::{write_bytes, write_fields, write_message};

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
            write_json_string(text, out);
        }
        _ => {
            record.write_message(&mut scratch);
            write_message(&scratch, out);
        }
    }
    if parts.origin {
        let (received, source) = (record.received, record.time_source.as_str());
        let _ = write!(
            out,
            ",\"_received\":\"{received}\",\"_time_source\":\"{source}\""
        );
    }
    write_fields(record.fields(), out);
    if parts.line {
        scratch.clear();
        record.write_line(&mut scratch);
        match std::str::from_utf8(&scratch) {
            Ok(line) => {
                out.extend_from_slice(b",\"_line\":");
                write_json_string(line, out);
            }
            Err(_) => write_bytes("_line_b64", &scratch, out),
        }
    }
    out.push(b'}');
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
            r#"{"_time":"1970-01-01T00:00:00.000000000Z","_id":"00000000000000000000000001","a":"q\"\\\n\u0001é","b":-1,"_id@label":9}"#
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
}
