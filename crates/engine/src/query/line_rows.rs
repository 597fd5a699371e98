//! A record as a line with its labels: what LogQL's pipelines take.
//!
//! ```text
//! count of labels, for each: where it comes from (0 the stream, 1 the sender, 2 a field), name, value (bytes)
//! line (bytes)
//! ```

use logpond_record::Record;
use logpond_search::logql::NamedLabels;
use logpond_search::pipeline::{Labels, Origin, add_base_labels};
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

/// The longest name, value or line that is taken from another node; a record is shorter.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// Appends a record with the labels that it comes with, and those of these names.
pub(super) fn write(record: &Record<'_>, names: &NamedLabels, out: &mut Vec<u8>) {
    let mut labels = Labels::new();
    add_base_labels(record, names, &mut labels);
    let mut row = Encoder::default();
    row.count(labels.iter().count());
    for (name, value, origin) in labels.iter() {
        row.number(match origin {
            Origin::Stream => 0,
            Origin::Metadata => 1,
            Origin::Field | Origin::Parsed => 2,
        });
        row.bytes(name.as_bytes());
        row.bytes(value.as_bytes());
    }
    let mut line = Vec::new();
    record.write_line(&mut line);
    row.bytes(&line);
    out.extend_from_slice(&row.finish());
}

/// Reads what [`write`] wrote: puts the labels into `labels`, and returns the line.
pub(super) fn read<'r>(row: &'r [u8], labels: &mut Labels) -> Result<&'r [u8], DecodeError> {
    let mut from = Decoder::bare(row);
    labels.clear();
    for _ in 0..from.count(3, "the labels")? {
        let origin = from.number("a label")?;
        let name = from.text(TEXT_BYTES_MAX, "a label's name")?;
        let value = from.text(TEXT_BYTES_MAX, "a label's value")?;
        match origin {
            0 => labels.add_base(Origin::Stream, name, value),
            1 => labels.add_base(Origin::Metadata, name, value),
            2 => labels.refer(name, value),
            _ => return Err(DecodeError::Malformed("a label")),
        }
    }
    let line = from.bytes(TEXT_BYTES_MAX, "a line")?;
    from.finish()?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use logpond_record::{Id, Message, Shape, TimeSource, Timestamp, Value};

    use super::*;

    #[test]
    fn lines_come_back_with_their_labels() {
        let record = Record {
            id: Id(1),
            time: Timestamp(0),
            time_source: TimeSource::Received,
            received: Timestamp(1),
            message: Message::Absent,
            shape: Arc::new(Shape::new("{\"status\":⟨status:i⟩}").unwrap()),
            values: vec![Value::Int(500)],
            fixes: Vec::new(),
            labels: vec![
                ("k8s.pod".into(), Value::Str("p".into())),
                ("app".into(), Value::Str("shop".into())),
                ("level".into(), Value::Str("WARNING".into())),
                ("none".into(), Value::Null),
            ],
            whole: None,
        };
        let mut row = Vec::new();
        let named = NamedLabels {
            selected: vec!["k8s_pod".into()],
            referred: vec!["status".into(), "app".into(), "absent".into()],
        };
        write(&record, &named, &mut row);
        let mut labels = Labels::new();
        assert_eq!(read(&row, &mut labels).unwrap(), br#"{"status":500}"#);
        let found: Vec<_> = labels
            .iter()
            .map(|(n, v, o)| format!("{n}={v} {o:?}"))
            .collect();
        let expected = [
            "app=shop Stream",
            "k8s_pod=p Stream",
            "level=WARNING Stream",
            "service_name=shop Stream",
            "detected_level=warn Metadata",
            "status=500 Field",
        ];
        assert_eq!(found, expected);
        for length in 0..row.len() {
            assert!(read(&row[..length], &mut labels).is_err(), "{length}");
        }
    }
}
