//! A record as the values of a row, for answers in other forms than lines of JSON: what they are made of is not
//! written as JSON and read again.
//!
//! ```text
//! time, id (wide)
//! whether there is a message; the message (bytes)
//! for each field: 1, name (bytes), kind of value (0 null, 1 false, 2 true, 3 whole number, 4 float, 5 text,
//!   6 JSON), with kinds 3 and 4 eight bytes (little-endian), with 5 and 6 the text (bytes); then 0
//! whether there is a line; the line (bytes)
//! ```
//!
//! Invariant: a row has what the line of JSON has ([`super::encode`]): the same names and the same values.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use logpond_record::{Id, Message, Record, Value};
use logpond_render::Row;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::encode::Clip;
use super::output::{Output, RewriteStatus};
use super::{Engine, QueryError, RowParts, Search, Trailer};

/// The longest name or value that is taken from another node; a record is shorter.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// Takes the rows of an answer, and may append to it; says whether further ones are wanted.
pub type Visitor = Box<dyn FnMut(&Row<'_>, &mut Vec<u8>) -> RewriteStatus + Send>;

impl dyn Engine + '_ {
    /// Hands the rows of a search to a visitor. What that appends is the answer, which has no trailer of its own.
    ///
    /// # Errors
    /// See [`QueryError`]; rows may have been handed over before.
    pub fn visit(
        &self,
        search: &Search,
        mut visitor: Visitor,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        let unread = Arc::new(AtomicU64::new(0));
        let unread_there = Arc::clone(&unread);
        out.leave_out_trailer();
        out.rewrite(Box::new(move |row, out| {
            let Ok(row) = read(row) else {
                unread_there.fetch_add(1, Ordering::Relaxed);
                return RewriteStatus::GoOn;
            };
            visitor(&row, out)
        }));
        let answer = self.search(&search.for_values(), out);
        out.end_rewrite();
        let mut trailer = answer?;
        let unread = unread.load(Ordering::Relaxed);
        if unread > 0 {
            trailer.miss(format_args!("{unread} rows that cannot be read"));
        }
        Ok(trailer)
    }
}

/// Appends a record.
pub(super) fn write(record: &Record<'_>, parts: RowParts, out: &mut Vec<u8>) {
    let mut clip = Clip::new(parts.clip_bytes);
    let mut row = Encoder::onto(std::mem::take(out));
    row.time(record.time);
    row.wide(record.id.0);
    let mut scratch = Vec::new();
    row.flag(!matches!(record.message, Message::Absent));
    match &record.message {
        Message::Absent => {}
        Message::Part(Value::Str(text)) => row.bytes(clip.text("_msg", text).as_bytes()),
        _ => {
            record.write_message(&mut scratch);
            row.bytes(clip.bytes("_msg", &scratch));
        }
    }
    if parts.origin {
        let received = Value::Str(record.received.to_string().into());
        add_field("_received", &received, &mut row);
        let source = Value::Str(record.time_source.as_str().into());
        add_field("_time_source", &source, &mut row);
    }
    clip.each_field(record, &mut |name, value| add_field(name, value, &mut row));
    scratch.clear();
    if parts.line {
        record.write_line(&mut scratch);
    }
    let is_text = std::str::from_utf8(&scratch).is_ok();
    let line = clip.bytes(if is_text { "_line" } else { "_line_b64" }, &scratch);
    if let Some(clipped) = clip.clipped() {
        add_field("_clipped", &Value::Json(clipped.into()), &mut row);
    }
    row.flag(false);
    row.flag(parts.line);
    if parts.line {
        row.bytes(line);
    }
    *out = row.finish();
}

fn add_field(name: &str, value: &Value<'_>, row: &mut Encoder) {
    row.flag(true);
    row.bytes(name.as_bytes());
    match value {
        Value::Null => row.number(0),
        Value::Bool(is_true) => row.number(1 + u64::from(*is_true)),
        Value::Int(number) => {
            row.number(3);
            row.raw(&number.to_le_bytes());
        }
        Value::Float(number) => {
            row.number(4);
            row.raw(&number.to_le_bytes());
        }
        Value::Str(text) => {
            row.number(5);
            row.bytes(text.as_bytes());
        }
        Value::Json(text) => {
            row.number(6);
            row.bytes(text.as_bytes());
        }
        // As in a line of JSON, which has no other place for it.
        Value::Bytes(bytes) => {
            row.number(5);
            row.bytes(String::from_utf8_lossy(bytes).as_bytes());
        }
    }
}

/// Reads what [`write`] wrote.
fn read(row: &[u8]) -> Result<Row<'_>, DecodeError> {
    let mut from = Decoder::bare(row);
    let time = from.time("the time of a row")?;
    let id = Id(from.wide("the id of a row")?);
    let message = read_text(&mut from)?;
    let mut fields = Vec::new();
    while from.flag("whether there is a field")? {
        let name = from.text(TEXT_BYTES_MAX, "the name of a field")?;
        fields.push((Cow::Borrowed(name), read_value(&mut from)?));
    }
    let line = read_text(&mut from)?;
    from.finish()?;
    Ok(Row {
        time: Some(time),
        id: Cow::Owned(id.to_string()),
        message,
        fields,
        line,
    })
}

fn read_text<'r>(from: &mut Decoder<'r>) -> Result<Option<Cow<'r, [u8]>>, DecodeError> {
    if !from.flag("whether there is a text")? {
        return Ok(None);
    }
    let text = from.bytes(TEXT_BYTES_MAX, "a text of a row")?;
    Ok(Some(Cow::Borrowed(text)))
}

fn read_value<'r>(from: &mut Decoder<'r>) -> Result<Value<'r>, DecodeError> {
    let kind = from.number("the kind of a value")?;
    let bits = |from: &mut Decoder<'r>| -> Result<[u8; 8], DecodeError> {
        let bytes = from.raw(size_of::<u64>(), "a number of a row")?;
        bytes
            .try_into()
            .map_err(|_| DecodeError::Malformed("a number of a row"))
    };
    let text = |from: &mut Decoder<'r>| from.text(TEXT_BYTES_MAX, "a value of a row");
    Ok(match kind {
        0 => Value::Null,
        1 => Value::Bool(false),
        2 => Value::Bool(true),
        3 => Value::Int(i64::from_le_bytes(bits(from)?)),
        4 => Value::Float(f64::from_le_bytes(bits(from)?)),
        5 => Value::Str(text(from)?.into()),
        6 => Value::Json(text(from)?.into()),
        _ => return Err(DecodeError::Malformed("the kind of a value")),
    })
}

#[cfg(test)]
mod tests {
    use logpond_record::{Shape, TimeSource, Timestamp};
    use proptest::prelude::*;

    use super::super::encode;
    use super::*;

    fn value() -> impl Strategy<Value = Value<'static>> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            // Others are no floats in a record.
            (-1e15..1e15).prop_map(|number: f64| Value::Float(number + 0.5)),
            "[a-z\"\\\\\n\u{1}é]{0,12}".prop_map(|text: String| Value::Str(text.into())),
            Just(Value::Json("[1,{\"a\":2}]".into())),
            Just(Value::Json("18446744073709551615".into())),
            Just(Value::Json("0.1234567890123456789".into())),
            prop::collection::vec(any::<u8>(), 1..6)
                .prop_filter("it is text", |bytes| std::str::from_utf8(bytes).is_err())
                .prop_map(|bytes| Value::Bytes(bytes.into())),
        ]
    }

    fn name() -> impl Strategy<Value = String> {
        prop_oneof!["[ab]", Just("_id".to_owned()), Just("a\"é".to_owned())]
    }

    prop_compose! {
        fn record()(
            id: u128,
            time: i64,
            message in prop_oneof![
                Just(Message::Absent),
                "[a-z \"é\n]{0,20}".prop_map(|text| Message::Part(Value::Str(text.into()))),
                Just(Message::Part(Value::Bytes(b"a\xff".as_slice().into()))),
            ],
            labels in prop::collection::vec((name(), value()), 0..12),
        ) -> Record<'static> {
            Record {
                id: Id(id),
                time: Timestamp(time),
                time_source: TimeSource::Received,
                received: Timestamp(1),
                message,
                shape: Arc::new(Shape::text()),
                values: vec![Value::Null],
                fixes: Vec::new(),
                labels: labels.into_iter().map(|(name, value)| (name.into(), value)).collect(),
                whole: None,
            }
        }
    }

    proptest! {
        #[test]
        fn a_row_is_what_its_line_of_json_says(
            record in record(),
            line: bool,
            origin: bool,
            clip_bytes in prop_oneof![Just(0_usize), 1..8_usize],
        ) {
            let parts = RowParts { line, origin, clip_bytes };
            let (mut json, mut bytes) = (Vec::new(), b"before".to_vec());
            encode::write_row(&record, parts, &mut json);
            write(&record, parts, &mut bytes);
            prop_assert_eq!(&bytes[..6], b"before");
            let row = read(&bytes[6..]).unwrap();
            prop_assert_eq!(&row, &Row::from_json(&json).unwrap());
            for length in 6..bytes.len() {
                prop_assert!(read(&bytes[6..length]).is_err());
            }
        }
    }
}
