//! Segment files as a whole: written, read back, read by others, damaged.

mod golden;
mod verified;

use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use logpond_record::{
    Assumption, Fix, Id, Incarnation, Message, Record, Shape, ShapeTable, SourceId, TimeSource,
    Timestamp, Value,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use proptest::prelude::*;

use super::*;
use crate::disk::{AppendFile, ReadAt};
use crate::rows::{Plans, Rows, RowsBuilder, RowsView};
use crate::tally::Tally;
use crate::tokens::tokens;

const INCARNATION: Incarnation = Incarnation(0x1234_5678_9abc_def0_1122_3344_5566_7788);

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl AppendFile for Memory {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ReadAt for Memory {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.lock().unwrap();
        let from = usize::try_from(offset).unwrap();
        let part = bytes
            .get(from..from + buffer.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(part);
        Ok(())
    }
}

fn record(
    shapes: &mut ShapeTable,
    n: u64,
    shape: &str,
    values: Vec<Value<'static>>,
) -> Record<'static> {
    let shape = shapes.intern(shape.as_bytes()).unwrap();
    let message = match shape.message_slot() {
        Some(slot) => Message::Part(values[slot].clone()),
        None if shape.message_is_line() => Message::Line,
        None => Message::Absent,
    };
    Record {
        id: Id::new(1_772_409_600_000 + n, INCARNATION, n),
        time: Timestamp(1_772_409_600_000_000_000 + n as i64 * 1_000_500),
        time_source: TimeSource::Line(Assumption::Nothing),
        received: Timestamp(1_772_409_600_000_000_000 + n as i64 * 1_000_000),
        message,
        shape,
        values,
        fixes: Vec::new(),
        labels: Vec::new(),
        whole: None,
    }
}

/// Records of several kinds, with everything that a record can have.
fn samples(count: u64) -> Vec<Record<'static>> {
    let mut shapes = ShapeTable::new();
    let text = |s: String| Value::Str(s.into());
    (0..count)
        .map(|n| match n % 7 {
            0 => record(&mut shapes, n, Shape::TEXT, vec![text(format!("plain text number {n} Grüße"))]),
            1 => {
                let shape = r#"{"t":"⟨_time:%Y-%m-%dT%H:%M:%S.%6f%z[Z]⟩","m":"⟨_msg:j⟩","s":⟨status:i⟩,"l":⟨ms:f⟩,"ok":⟨ok:b⟩,"x":⟨x:n⟩}"#;
                let mut r = record(
                    &mut shapes,
                    n,
                    shape,
                    vec![
                        Value::Null,
                        text(format!("a\n\"b\" request{n}")),
                        Value::Int(200 + (n % 5) as i64),
                        Value::Float(n as f64 / 4.0 + 0.25),
                        Value::Bool(n % 2 == 0),
                        Value::Null,
                    ],
                );
                r.fixes.push(Fix { slot: 3, text: format!("{}.2500", n / 4).into_bytes().into() });
                r
            }
            2 => record(
                &mut shapes,
                n,
                "<⟨facility:p⟩⟨severity:v⟩>1 ⟨_time:%Y-%m-%dT%H:%M:%S.%3f%z[+01:00]⟩ ⟨hostname:t⟩ - ⟨_msg:t⟩",
                vec![
                    Value::Int(3),
                    Value::Int((n % 8) as i64),
                    Value::Null,
                    text(format!("web-{}", n % 3)),
                    text(format!("session {:x}", n * 7919)),
                ],
            ),
            3 => {
                let mut r = record(&mut shapes, n, Shape::TEXT, vec![Value::Bytes(vec![0xff, b'a', 0, n as u8].into())]);
                r.labels.push(("hostname".into(), text("web-9".into())));
                r.labels.push(("rare".into(), text(format!("r{n}"))));
                r
            }
            4 => {
                let mut r = record(&mut shapes, n, "⟨status:t⟩ ⟨list:r⟩", vec![text("OK".into()), Value::Json("[1,2]".into())]);
                r.whole = Some(format!("kept whole {n}").into_bytes().into());
                r
            }
            5 => record(&mut shapes, n, "⟨ip:t⟩ [⟨_time:%d/%b/%Y:%H:%M:%S %z[+0000]⟩] glued⟨k:i⟩", vec![
                text(format!("10.0.0.{}", n % 200)),
                Value::Null,
                Value::Int(n as i64),
            ]),
            _ => record(&mut shapes, n, r#"{"_id":"⟨_id:j⟩","big":⟨big:i⟩,"status":"⟨status:j⟩"}"#, vec![
                text(format!("u{n}")),
                Value::Int(i64::MAX - n as i64),
                text("teapot".into()),
            ]),
        })
        .collect()
}

fn line(record: &Record<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    record.write_line(&mut out);
    out
}

fn write(
    records: &[Record<'_>],
    profile: Profile,
    rows_per_group: usize,
) -> (Memory, FinishedFile) {
    write_by(records, profile, rows_per_group, RowsBuilder::new)
}

/// The same by these builders.
fn write_by(
    records: &[Record<'_>],
    profile: Profile,
    rows_per_group: usize,
    new_builder: impl Fn() -> RowsBuilder,
) -> (Memory, FinishedFile) {
    let mut builder = RowsBuilder::new();
    let push = |builder: &mut RowsBuilder, r: &Record<'_>| {
        let number = (r.id.0 & ((1 << 79) - 1)) - INCARNATION.entropy_base();
        builder.push(r, number as u64, 0, line(r).len());
    };
    records.iter().for_each(|r| push(&mut builder, r));
    let counts = builder.counts();
    let schema = counts.schema();
    let file = Memory::default();
    let mut tally = Tally::default();
    records.iter().for_each(|r| tally.add_row(r.id, &line(r)));
    let source = SourceEntry {
        source: SourceId {
            incarnation: INCARNATION,
            sequence: 3,
        },
        rows: tally.rows,
        hash: tally.hash_sum,
        retry: None,
    };
    let retry = SourceEntry {
        source: SourceId {
            incarnation: INCARNATION,
            sequence: 4,
        },
        rows: 0,
        hash: 0,
        retry: Some(Retry {
            id: format!("{:032x}-17-1@1763780000000", 0xfeed)
                .parse()
                .unwrap(),
            is_shadowed: true,
        }),
    };
    let mut writer = SegmentWriter::new(
        Box::new(file.clone()),
        Id(9),
        profile,
        counts,
        schema.clone(),
        vec![source, retry],
    )
    .unwrap();
    writer.set_batches([(0xfeed, 16), (0xfeed, 17)].into_iter().collect());
    for group in records.chunks(rows_per_group) {
        let mut builder = new_builder();
        group.iter().for_each(|r| push(&mut builder, r));
        writer.write(&builder.take(&schema)).unwrap();
    }
    let written = writer.finish().unwrap();
    (file, written)
}

/// Rows are the same whatever was expected.
#[test]
fn what_was_expected_changes_nothing() {
    let records = samples(20_000);
    let (plain, _) = write(&records, Profile::Hot, 20_000);
    for (rows, bytes) in [(20_000, 1_000_000), (1, 1), (u64::MAX, 1 << 20)] {
        let expecting = || RowsBuilder::expecting(rows, bytes);
        let (file, _) = write_by(&records, Profile::Hot, 20_000, expecting);
        assert!(
            *file.0.lock().unwrap() == *plain.0.lock().unwrap(),
            "{rows} rows of {bytes} bytes"
        );
    }
}

/// All rows of a file as (id, line, record), in the order of their numbers.
fn read_all(file: &Memory) -> Result<Vec<(Vec<u8>, Record<'static>)>, ReadError> {
    let segment = SegmentFile::open(Arc::new(file.clone()))?;
    let directory = segment.read_directory()?;
    let mut plans = Plans::default();
    let mut found = Vec::new();
    for group in 0..directory.row_groups.len() {
        let mut reader = segment.row_group(&directory, group);
        for block in 0..directory.row_groups[group].blocks.len() {
            let rows: Rows = reader.rows(block)?;
            let view = RowsView::new(&rows, &directory.schema, &mut plans);
            for row in 0..rows.len() {
                let number = rows.number[row] as u64;
                let id = Id::new((rows.received[row] / 1000) as u64, INCARNATION, number);
                let mut bytes = Vec::new();
                view.write_line(row, &mut bytes);
                found.push((bytes, view.record(row, id).into_owned()));
            }
        }
    }
    found.sort_by_key(|(_, r)| r.id);
    Ok(found)
}

fn fields(record: &Record<'_>) -> Vec<(String, Value<'static>)> {
    let mut fields: Vec<_> = record
        .fields()
        .map(|(n, v)| (n.to_owned(), v.clone().into_owned()))
        .collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields
}

/// Bytes of a field that are no text are what they were, beside values of any other type.
#[test]
fn bytes_of_fields_come_back() {
    let mut records = samples(4000);
    for (n, record) in records.iter_mut().enumerate() {
        let bytes = Value::Bytes(vec![0xff, n as u8, 0, b'"'].into());
        let text = |n: usize| Value::Str(format!("base64:{n}").into());
        let mostly_text = if n % 3 == 0 { bytes.clone() } else { text(n) };
        let mostly_numbers = if n % 5 == 0 {
            bytes.clone()
        } else {
            Value::Int(n as i64)
        };
        for (name, value) in [
            ("a_all", bytes),
            ("a_text", mostly_text),
            ("a_int", mostly_numbers),
        ] {
            record.labels.push((name.into(), value));
        }
    }
    let (file, _) = write(&records, Profile::Cold, 700);
    let found = read_all(&file).unwrap();
    assert_eq!(found.len(), records.len());
    for ((bytes, read), record) in found.iter().zip(&records) {
        assert_eq!(*bytes, line(record));
        assert_eq!(fields(read), fields(record));
    }
}

#[test]
fn records_come_back_byte_for_byte() {
    for (profile, rows_per_group) in [(Profile::Hot, 5000), (Profile::Cold, 700)] {
        let records = samples(3000);
        let (file, written) = write(&records, profile, rows_per_group);
        assert_eq!(written.bytes, file.bytes().unwrap());
        assert_eq!(written.manifest.rows, 3000);
        let found = read_all(&file).unwrap();
        assert_eq!(found.len(), records.len());
        for (expected, (bytes, got)) in records.iter().zip(&found) {
            assert_eq!(
                String::from_utf8_lossy(bytes),
                String::from_utf8_lossy(&line(expected))
            );
            assert_eq!(line(got), line(expected));
            assert_eq!(
                (got.id, got.time, got.received),
                (expected.id, expected.time, expected.received)
            );
            assert_eq!(got.time_source, expected.time_source);
            assert_eq!(got.message, expected.message);
            assert_eq!(fields(got), fields(expected), "{:?}", expected.shape);
        }
    }
}

#[test]
fn the_token_index_misses_no_block() {
    let records = samples(4000);
    let (file, _) = write(&records, Profile::Hot, 4000);
    let segment = SegmentFile::open(Arc::new(file)).unwrap();
    let directory = segment.read_directory().unwrap();
    let mut plans = Plans::default();
    let mut reader = segment.row_group(&directory, 0);
    for block in 0..directory.row_groups[0].blocks.len() {
        let rows = reader.rows(block).unwrap();
        let view = RowsView::new(&rows, &directory.schema, &mut plans);
        for row in (0..rows.len()).step_by(17) {
            let mut bytes = Vec::new();
            view.write_line(row, &mut bytes);
            view.record(row, Id(0)).fields().for_each(|(_, value)| {
                bytes.push(b' ');
                value.write_text(&mut bytes);
            });
            for token in tokens(&bytes).filter(|t| !crate::tokens::may_be_time_fraction(t)) {
                let found = reader.look_up(token).unwrap();
                assert!(
                    found.contains(block),
                    "{:?}",
                    String::from_utf8_lossy(token)
                );
            }
        }
    }
}

/// The Parquet library's own reader sees the same rows: the file is ordinary Parquet.
#[test]
fn another_reader_agrees() {
    let records = samples(2000);
    let (file, _) = write(&records, Profile::Hot, 900);
    let bytes = Bytes::from(file.0.lock().unwrap().clone());
    let reader = SerializedFileReader::new(bytes).unwrap();
    let names: Vec<String> = reader
        .metadata()
        .file_metadata()
        .schema()
        .get_fields()
        .iter()
        .map(|f| f.name().to_owned())
        .collect();
    let column = |name: &str| names.iter().position(|n| n == name).unwrap();
    let (n, k, status) = (column("_n"), column("k"), column("status"));
    let mut rows = 0;
    let mut k_sum = 0;
    let mut statuses = 0;
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let expected = &records[row.get_long(n).unwrap() as usize];
        assert_eq!(
            row.get_timestamp_micros(0).unwrap(),
            expected.time.0.div_euclid(1000)
        );
        k_sum += row.get_long(k).unwrap_or(0);
        statuses += usize::from(row.get_string(status).is_ok());
        rows += 1;
    }
    let k = |r: &Record<'_>| r.field("k").and_then(Value::as_number).unwrap_or(0.0) as i64;
    let text_status = |r: &Record<'_>| matches!(r.field("status"), Some(Value::Str(_)));
    assert_eq!(rows, records.len());
    assert_eq!(k_sum, records.iter().map(k).sum::<i64>());
    assert_eq!(statuses, records.iter().filter(|r| text_status(r)).count());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Damage anywhere is noticed: what is still read is what was written.
    #[test]
    fn damage_is_never_taken_for_data(
        place in 0.0..1.0f64,
        length in 1usize..5000,
        how in 0u8..3,
        flip in 1u8..=255,
    ) {
        let records = samples(800);
        let (file, _) = write(&records, Profile::Hot, 300);
        {
            let mut bytes = file.0.lock().unwrap();
            let from = (place * bytes.len() as f64) as usize;
            let to = (from + length).min(bytes.len());
            match how {
                0 => bytes[from] ^= flip,
                1 => bytes[from..to].fill(0),
                _ => bytes.truncate(from),
            }
        }
        let Ok(segment) = SegmentFile::open(Arc::new(file)) else { return Ok(()) };
        let Ok(directory) = segment.read_directory() else { return Ok(()) };
        let mut plans = Plans::default();
        for group in 0..directory.row_groups.len() {
            let mut reader = segment.row_group(&directory, group);
            for block in 0..directory.row_groups[group].blocks.len() {
                let Ok(rows) = reader.rows(block) else { continue };
                let view = RowsView::new(&rows, &directory.schema, &mut plans);
                for row in 0..rows.len() {
                    let mut bytes = Vec::new();
                    view.write_line(row, &mut bytes);
                    prop_assert_eq!(bytes, line(&records[rows.number[row] as usize]));
                }
            }
        }
    }
}

/// Records the hints for later reads, and the regions that are read.
#[derive(Default)]
struct HintRecorder {
    file: Memory,
    hints: Mutex<Vec<(u64, u64)>>,
    regions: Mutex<Vec<(u64, u64)>>,
}

impl ReadAt for HintRecorder {
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        self.hints.lock().unwrap().push((offset, bytes));
    }

    fn regions(&self, regions: &[(u64, u64)]) {
        *self.regions.lock().unwrap() = regions.to_vec();
    }
}

/// Row groups, token indexes, words and directory follow each other, and readers say so.
#[test]
fn indexes_lie_together_and_are_announced() {
    let (file, _) = write(&samples(2000), Profile::Hot, 300);
    let hinted = Arc::new(HintRecorder {
        file,
        ..HintRecorder::default()
    });
    let segment = SegmentFile::open(hinted.clone()).unwrap();
    let directory = segment.read_directory().unwrap();
    let regions = hinted.regions.lock().unwrap().clone();
    assert_eq!((regions.len(), regions[0].0), (7, 4));
    for (number, group) in directory.row_groups.iter().enumerate() {
        let mut reader = segment.row_group(&directory, number);
        reader.look_up(b"plain").unwrap();
        reader.look_up(b"text").unwrap();
        let (offset, bytes) = regions[number];
        let end = regions
            .get(number + 1)
            .map_or(directory.row_groups[0].tokens.offset, |r| r.0);
        assert_eq!(offset + bytes, end);
        assert!(group.tokens.offset >= end);
    }
    segment.words(&directory, 0).unwrap();
    let (tokens, words) = (
        directory.tokens_range().unwrap(),
        directory.words_range().unwrap(),
    );
    assert_eq!(tokens.0 + tokens.1, words.0);
    let mut expected = vec![tokens; 7];
    expected.push(words);
    assert_eq!(*hinted.hints.lock().unwrap(), expected);
}
