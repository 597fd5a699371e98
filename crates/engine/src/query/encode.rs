//! A record as one line of JSON.
//!
//! Invariants: the line is valid JSON whatever bytes the record holds; no name occurs twice; no field has a
//! reserved name, so that no record forges another part of an answer; a value that is cut is named with its length.

use std::borrow::Cow;
use std::io::Write;

use logpond_record::{Message, Record, Value, unreserved, write_json_string};

use logpond_render::json::{each_field, write_bytes, write_field, write_message};

/// Which parts of a record an answer has beside its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowParts {
    /// `_line`, or `_line_b64` where the line is not UTF-8.
    pub line: bool,
    /// `_received` and `_time_source`.
    pub origin: bool,
    /// Bytes of a message, a line or a text after which it is cut; 0 cuts nothing. Cut values are named in
    /// `_clipped`, with their lengths.
    pub clip_bytes: usize,
}

/// Cuts long values of a row.
pub(super) struct Clip {
    bytes_max: usize,
    /// Names of cut values, and the bytes that they have.
    cut: Vec<(String, usize)>,
}

impl Clip {
    pub(super) fn new(bytes_max: usize) -> Clip {
        Clip {
            bytes_max: if bytes_max == 0 {
                usize::MAX
            } else {
                bytes_max
            },
            cut: Vec::new(),
        }
    }

    pub(super) fn text<'a>(&mut self, name: &str, text: &'a str) -> &'a str {
        if text.len() <= self.bytes_max {
            return text;
        }
        self.cut.push((name.to_owned(), text.len()));
        &text[..text.floor_char_boundary(self.bytes_max)]
    }

    /// A text that is not UTF-8 is cut at any byte.
    pub(super) fn bytes<'a>(&mut self, name: &str, bytes: &'a [u8]) -> &'a [u8] {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.text(name, text).as_bytes(),
            Err(_) if bytes.len() <= self.bytes_max => bytes,
            Err(_) => {
                self.cut.push((name.to_owned(), bytes.len()));
                &bytes[..self.bytes_max]
            }
        }
    }

    /// Hands over the fields of a record, cut.
    pub(super) fn each_field(
        &mut self,
        record: &Record<'_>,
        take: &mut dyn FnMut(&str, &Value<'_>),
    ) {
        if self.bytes_max == usize::MAX {
            return each_field(record.fields(), take);
        }
        let fields: Vec<(&str, &Value<'_>)> = record.fields().collect();
        let mut shown: Vec<(&str, Cow<'_, Value<'_>>)> = Vec::with_capacity(fields.len());
        for (at, (name, value)) in fields.iter().enumerate() {
            let is_long = match value {
                Value::Str(text) | Value::Json(text) => text.len() > self.bytes_max,
                Value::Bytes(bytes) => bytes.len() > self.bytes_max,
                _ => false,
            };
            // Of several fields with one name the first one counts.
            if !is_long || fields[..at].iter().any(|(before, _)| before == name) {
                shown.push((name, Cow::Borrowed(value)));
                continue;
            }
            let public = unreserved(name).unwrap_or(name);
            let cut = match value {
                Value::Str(text) | Value::Json(text) => {
                    Value::Str(Cow::Borrowed(self.text(public, text)))
                }
                Value::Bytes(bytes) => Value::Bytes(Cow::Borrowed(self.bytes(public, bytes))),
                value => (*value).clone(),
            };
            shown.push((name, Cow::Owned(cut)));
        }
        each_field(shown.iter().map(|(name, value)| (*name, &**value)), take);
    }

    /// The lengths of the values that were cut, as an object of JSON.
    pub(super) fn clipped(self) -> Option<String> {
        if self.cut.is_empty() {
            return None;
        }
        let mut out = vec![b'{'];
        for (at, (name, bytes)) in self.cut.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_json_string(name, &mut out);
            out.extend_from_slice(format!(":{bytes}").as_bytes());
        }
        out.push(b'}');
        String::from_utf8(out).ok()
    }
}

/// Appends the record as a JSON object, without a line end.
pub fn write_row(record: &Record<'_>, parts: RowParts, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail, here and below.
    let _ = write!(
        out,
        "{{\"_time\":\"{}\",\"_id\":\"{}\"",
        record.time, record.id
    );
    let mut clip = Clip::new(parts.clip_bytes);
    let mut scratch = Vec::new();
    match &record.message {
        Message::Absent => {}
        Message::Part(Value::Str(text)) => {
            out.extend_from_slice(b",\"_msg\":");
            write_json_string(clip.text("_msg", text), out);
        }
        _ => {
            record.write_message(&mut scratch);
            write_message(clip.bytes("_msg", &scratch), out);
        }
    }
    if parts.origin {
        let (received, source) = (record.received, record.time_source.as_str());
        let _ = write!(
            out,
            ",\"_received\":\"{received}\",\"_time_source\":\"{source}\""
        );
    }
    clip.each_field(record, &mut |name, value| write_field(name, value, out));
    if parts.line {
        scratch.clear();
        record.write_line(&mut scratch);
        match std::str::from_utf8(&scratch) {
            Ok(line) => {
                out.extend_from_slice(b",\"_line\":");
                write_json_string(clip.text("_line", line), out);
            }
            Err(_) => write_bytes("_line_b64", clip.bytes("_line_b64", &scratch), out),
        }
    }
    if let Some(clipped) = clip.clipped() {
        out.extend_from_slice(b",\"_clipped\":");
        out.extend_from_slice(clipped.as_bytes());
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
    fn long_values_are_cut_between_characters_and_named() {
        let text = |text: &'static str| Value::Str(text.into());
        let r = record(
            "a=⟨a:t⟩ b=⟨b:t⟩ _id=⟨_id:t⟩",
            vec![text("ééé"), text("1234"), text("12345")],
            Message::Part(text("message")),
        );
        let clip_bytes = 4;
        let parts = RowParts {
            line: true,
            clip_bytes,
            ..RowParts::default()
        };
        let json: serde_json::Value = serde_json::from_str(&row(&r, parts)).unwrap();
        assert_eq!(json["_msg"], "mess");
        assert_eq!((&json["a"], &json["b"]), (&"éé".into(), &"1234".into()));
        assert_eq!(json["_line"], "a=é");
        let mut line = Vec::new();
        r.write_line(&mut line);
        let cut = serde_json::json!({"_msg": 7, "a": 6, "_id@label": 5, "_line": line.len()});
        assert_eq!(json["_clipped"], cut);
        let whole = row(&r, RowParts::default());
        assert!(!whole.contains("_clipped"), "{whole}");
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
                clip_bytes: 0,
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
