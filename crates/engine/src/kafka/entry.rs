//! A message as an entry of the journal.
//!
//! The value is the line, whatever is in it. Beside it stand the offset, the key and the headers; topic
//! and partition are labels of the batch. The message's time is the record's where the line says none.

use std::borrow::Cow;
use std::collections::HashSet;

use krafka::consumer::ConsumerRecord;
use logpond_protocol::intake::declared::LINE_TIME_FIRST;
use logpond_record::limits::{FIELDS_MAX, LINE_BYTES_MAX, TRUNCATED_FIELD};
use logpond_record::{Batch, EntryKind, Labels, Timestamp, Value};

/// What the names of headers are put behind.
const HEADER_PREFIX: &str = "kafka_header_";

/// The field of a message's key.
const KEY_FIELD: &str = "kafka_key";

/// The longest key, and value of a header, that is taken whole, in bytes.
const FIELD_BYTES_MAX: usize = 64 << 10;

/// The most bytes of a message's headers that are taken; further ones are left out.
const HEADERS_BYTES_MAX: usize = 512 << 10;

/// What a line may have beside all fields, so that both fit a frame.
const LINE_BYTES_HARD_MAX: usize = LINE_BYTES_MAX - (1 << 20);

/// Times that a message may have, in milliseconds since 1970: up to 2200.
const TIMES_MS: std::ops::Range<i64> = 1..7_258_118_400_000;

/// The labels of a partition's batches.
pub(super) fn labels_of(topic: &str, partition: i32) -> Labels {
    vec![
        ("topic".into(), topic.into()),
        ("partition".into(), partition.to_string().into()),
        (LINE_TIME_FIRST.into(), "".into()),
    ]
}

/// An empty batch of a partition.
pub(super) fn batch_of(labels: &Labels) -> Batch {
    Batch::new(EntryKind::Enveloped, labels.clone())
}

/// What a message takes in a batch, about.
pub(super) fn size_of(message: &ConsumerRecord) -> usize {
    let bytes = |text: &Option<bytes::Bytes>| text.as_ref().map_or(0, bytes::Bytes::len);
    let headers = message.headers.iter();
    let headers: usize = headers.map(|(name, value)| name.len() + bytes(value)).sum();
    bytes(&message.value) + bytes(&message.key) + headers
}

/// What a message takes in memory as it was decoded, about: small ones take more for themselves than they say.
pub(super) fn decoded_size_of(message: &ConsumerRecord) -> usize {
    size_of(message) + std::mem::size_of::<ConsumerRecord>()
}

/// Appends a message that has a value to a batch; gives whether something of it was cut or left out.
pub(super) fn add(batch: &mut Batch, message: &ConsumerRecord, line_bytes_max: usize) -> bool {
    let whole: &[u8] = message.value.as_deref().unwrap_or_default();
    let line = &whole[..whole.len().min(line_bytes_max).min(LINE_BYTES_HARD_MAX)];
    let mut is_cut = line.len() < whole.len();
    let mut fields: Vec<(Cow<'_, str>, Value<'_>)> = Vec::new();
    if is_cut {
        let bytes = Value::Str(whole.len().to_string().into());
        fields.push((TRUNCATED_FIELD.into(), bytes));
    }
    fields.push(("offset".into(), Value::Int(message.offset)));
    if let Some(key) = &message.key {
        fields.push((KEY_FIELD.into(), value_of(key, &mut is_cut)));
    }
    let (mut bytes, mut names) = (0, HashSet::new());
    for (name, value) in message.headers.iter() {
        // A message may have any number of them, each as small as it likes.
        if fields.len() >= FIELDS_MAX {
            is_cut = true;
            break;
        }
        if !names.insert(&**name) {
            is_cut = true;
            continue;
        }
        let value = match value {
            Some(value) => value_of(value, &mut is_cut),
            None => Value::Null,
        };
        bytes += HEADER_PREFIX.len() + name.len() + bytes_of(&value);
        if bytes > HEADERS_BYTES_MAX {
            is_cut = true;
            break;
        }
        let name = format!("{HEADER_PREFIX}{name}");
        fields.push((name.into(), value));
    }
    let time = TIMES_MS.contains(&message.timestamp);
    let time = time.then(|| Timestamp(message.timestamp * 1_000_000));
    let fields = fields.iter().map(|(name, value)| (&**name, value));
    let left_out = batch.push_enveloped(EntryKind::Line, time, fields, line);
    is_cut || left_out > 0
}

fn bytes_of(value: &Value<'_>) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

/// Text if it is some, else bytes, at most so many.
fn value_of<'a>(bytes: &'a [u8], is_cut: &mut bool) -> Value<'a> {
    let kept = &bytes[..bytes.len().min(FIELD_BYTES_MAX)];
    *is_cut |= kept.len() < bytes.len();
    match std::str::from_utf8(kept) {
        Ok(text) => Value::Str(text.into()),
        // A character that was cut in two does not make bytes of a text.
        Err(error) if error.error_len().is_none() && kept.len() < bytes.len() => {
            let text = std::str::from_utf8(&kept[..error.valid_up_to()]).unwrap_or_default();
            Value::Str(text.into())
        }
        Err(_) => Value::Bytes(kept.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use logpond_record::line_of;

    fn message(value: &[u8]) -> ConsumerRecord {
        let value = Some(Bytes::copy_from_slice(value));
        let mut message = ConsumerRecord::new("logs", 3, 41, None, value);
        message.timestamp = 1_700_000_000_123;
        message
    }

    fn read(batch: &Batch) -> (Option<Timestamp>, Vec<(String, String)>, Vec<u8>) {
        let held = batch.iter().next().unwrap();
        let (kind, envelope, line) = line_of(EntryKind::Enveloped, held);
        assert_eq!(kind, EntryKind::Line);
        let fields = envelope
            .fields()
            .map(|(n, v)| (n.to_owned(), format!("{v:?}")));
        (envelope.time, fields.collect(), line.to_vec())
    }

    #[test]
    fn a_message_is_its_value_with_what_kafka_says_of_it() {
        let mut sent = message(b"{\"a\":1}\n\xff");
        sent.key = Some(Bytes::from_static(b"k\xc3\xa9y"));
        sent.headers = [
            ("trace", Some(Bytes::from_static(b"t1"))),
            ("raw", Some(Bytes::from_static(b"\xff"))),
            ("none", None),
            ("trace", Some(Bytes::from_static(b"t2"))),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        let mut batch = batch_of(&labels_of("logs", 3));
        assert!(add(&mut batch, &sent, 1 << 20), "a header is there twice");
        let (time, fields, line) = read(&batch);
        assert_eq!(time, Some(Timestamp(1_700_000_000_123_000_000)));
        assert_eq!(line, b"{\"a\":1}\n\xff");
        let expected = [
            ("offset", "Int(41)"),
            ("kafka_key", "Str(\"kéy\")"),
            ("kafka_header_trace", "Str(\"t1\")"),
            ("kafka_header_raw", "Bytes([255])"),
            ("kafka_header_none", "Null"),
        ];
        let expected = expected.map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(fields, expected);
    }

    #[test]
    fn what_is_too_long_is_cut_and_marked() {
        let mut sent = message(b"0123456789");
        sent.timestamp = -1;
        sent.key = Some(Bytes::from("é".repeat(FIELD_BYTES_MAX)));
        let mut batch = batch_of(&labels_of("logs", 3));
        assert!(add(&mut batch, &sent, 4));
        let (time, fields, line) = read(&batch);
        assert_eq!((time, &line[..]), (None, &b"0123"[..]));
        assert_eq!(
            fields[0],
            ("_truncated_bytes".to_owned(), "Str(\"10\")".to_owned())
        );
        assert_eq!(fields[2].1.len(), FIELD_BYTES_MAX + "Str(\"\")".len());
        let mut large = message(&vec![b'x'; LINE_BYTES_MAX]);
        large.headers = (0..20)
            .map(|n| {
                (
                    n.to_string(),
                    Some(Bytes::from(vec![b'h'; 2 * FIELD_BYTES_MAX])),
                )
            })
            .collect();
        let mut batch = batch_of(&labels_of("logs", 3));
        assert!(add(&mut batch, &large, LINE_BYTES_MAX));
        assert!(batch.payload().len() <= LINE_BYTES_MAX);
    }

    #[test]
    fn of_more_headers_than_a_record_has_fields_the_first_are_taken() {
        let mut many = message(b"{}");
        many.headers = (0..50_000)
            .map(|n| (n.to_string(), Some(Bytes::from_static(b"v"))))
            .collect();
        let mut batch = batch_of(&labels_of("logs", 3));
        assert!(add(&mut batch, &many, LINE_BYTES_MAX));
        let (_, fields, line) = read(&batch);
        assert_eq!(fields.len(), FIELDS_MAX);
        let last = format!("{HEADER_PREFIX}{}", FIELDS_MAX - 2);
        assert_eq!(fields.last().unwrap().0, last);
        assert_eq!(line, b"{}");
    }
}
