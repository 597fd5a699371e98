//! The scan of columns decides as the matcher does, record by record.

mod apart;
mod beside_messages;
mod damage;
mod escapes;
mod id_parts;
mod large;
mod levels;
mod line_patterns;
mod mixed;
mod numbers;
mod overviews;
mod pattern_tables;
mod streams;
mod templated;

use std::io;
use std::sync::{Arc, Mutex};

use logpond_record::{
    Assumption, Fix, Id, Incarnation, Message, Record, Shape, ShapeTable, SlotKind, SourceId,
    TimeRange, TimeSource, Timestamp, Value,
};
use logpond_segment::disk::{AppendFile, ReadAt};
use logpond_segment::file::{Profile, SegmentFile, SegmentWriter, SourceEntry};
use logpond_segment::rows::{Column, RowsBuilder};
use logpond_segment::sources::SourceSet;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;
use crate::aggregate::{
    FieldStats, FieldTypes, Histogram, LabelValues, StreamRow, Streams, StreamsAnswer,
    StreamsRequest, Top,
};
use crate::columns::{ColumnKind, ColumnRequest, Columns, ColumnsBuilder};
use crate::query::{FieldTest, Filter, Pattern, parse};
use crate::{Matcher, Scratch};

const INCARNATION: Incarnation = Incarnation(77);
const START_NS: i64 = 1_772_409_600_000_000_000;
const STEP_NS: i64 = 500_000_000;

/// Room for some columns of a segment, and not for all.
const KEPT_BYTES: usize = 64 << 10;

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
        buffer.copy_from_slice(
            bytes
                .get(from..from + buffer.len())
                .ok_or(io::ErrorKind::UnexpectedEof)?,
        );
        Ok(())
    }
}

/// Numbers without a pattern, by Vigna's SplitMix64.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// Record number `n`, without labels.
fn unlabelled(n: u64) -> Record<'static> {
    let mut record = samples(1).remove(0);
    record.id = Id::new(1_772_409_600_000 + n, INCARNATION, n);
    record.time = Timestamp(START_NS + n as i64 * STEP_NS);
    record.received = Timestamp(START_NS + n as i64 * 1_000_000);
    record.labels.clear();
    record
}

fn samples(count: u64) -> Vec<Record<'static>> {
    let mut shapes = ShapeTable::new();
    let text = |s: String| Value::Str(s.into());
    (0..count)
        .map(|n| {
            let (shape, values): (&str, Vec<Value<'static>>) = match n % 7 {
                0 => (Shape::TEXT, vec![text(format!("plain connection refused by peer-{n}"))]),
                1 => (
                    r#"{"t":"⟨_time:%Y-%m-%dT%H:%M:%S.%6f%z[Z]⟩","msg":"⟨_msg:j⟩","status":⟨status:i⟩,"ms":⟨ms:f⟩,"user":⟨user:n⟩}"#,
                    vec![Value::Null, text(format!("said \"hi\"\nto {}", n % 50)), Value::Int(200 + (n % 7) as i64 * 50), Value::Float(n as f64 / 8.0), Value::Null],
                ),
                2 => (r#"{"status":"⟨status:j⟩","user":"⟨user:j⟩"}"#, vec![text("OK".into()), text(format!("u{}", n % 9))]),
                3 => ("⟨host:t⟩ \"GET ⟨path:t⟩\" ⟨status:i⟩", vec![text(format!("h{}", n % 3)), text(format!("/a/{}", n % 11)), Value::Int(404)]),
                4 => ("⟨_msg:t⟩", vec![Value::Bytes(vec![0xff, b'x', n as u8].into())]),
                5 => (
                    "<⟨facility:p⟩⟨severity:v⟩>⟨_time:%b %e %H:%M:%S⟩ ⟨host:t⟩ ⟨app:t⟩[⟨pid:i⟩]: ⟨_msg:t⟩",
                    vec![Value::Int(1), Value::Int((n % 8) as i64), Value::Null, text(format!("h{}", n % 3)), text(["sshd", "cron", ""][n as usize % 3].into()), Value::Int(n as i64), text(format!("port {} closed: ]{}", n % 100, n % 4))],
                ),
                _ => ("k=⟨ms:i⟩ ok=⟨ok:b⟩ list=⟨list:r⟩", vec![Value::Int(n as i64), Value::Bool(n % 2 == 0), Value::Json("[1,2]".into())]),
            };
            let shape = shapes.intern(shape.as_bytes()).unwrap();
            let message = match shape.message_slot() {
                Some(slot) => Message::Part(values[slot].clone()),
                None if shape.message_is_line() => Message::Line,
                None => Message::Absent,
            };
            let mut record = Record {
                id: Id::new(1_772_409_600_000 + n, INCARNATION, n),
                time: Timestamp(START_NS + n as i64 * STEP_NS),
                time_source: TimeSource::Line(Assumption::Nothing),
                received: Timestamp(START_NS + n as i64 * 1_000_000),
                message,
                shape,
                values,
                fixes: Vec::new(),
                labels: Vec::new(),
                whole: None,
            };
            if n % 7 == 1 && n % 5 == 0 {
                record.fixes.push(Fix { slot: 3, text: b"7.50e0".as_slice().into() });
            }
            if n % 7 == 2 && n % 4 == 0 {
                record.whole = Some(b"{ \"odd\":  \"white space\" }".as_slice().into());
            }
            if n % 10 == 0 {
                record.labels.push(("hostname".into(), text(format!("web-{}", n % 4))));
            }
            if n % 15 == 0 {
                record.labels.push(("web.host".into(), text(format!("w{}", n % 4))));
            }
            if n % 4 == 0 {
                record.labels.push(("web_host".into(), text(format!("w{}", n % 3))));
            }
            if n % 13 == 0 {
                let bytes = Value::Bytes(vec![0xff, b'c', b'r', b'o', n as u8].into());
                record.labels.push(("bin".into(), bytes));
            }
            if n % 9 == 0 {
                record.labels.push(("_TRANSPORT".into(), text("journal".into())));
                record.labels.push(("WEB_HOST".into(), text(format!("w{}", n % 2))));
            }
            if n % 6 < 2 {
                record.labels.push(("referer_host".into(), text(format!("r{}", n % 5))));
            }
            if n == 17 {
                record.labels.push(("rare".into(), text("needle".into())));
            }
            record
        })
        .collect()
}

fn segment_of(records: &[Record<'_>]) -> SegmentFile {
    segment_of_sources(records, 1)
}

fn source(sequence: u64) -> SourceId {
    SourceId {
        incarnation: INCARNATION,
        sequence,
    }
}

/// A segment whose rows come from so many sources in turn.
fn segment_of_sources(records: &[Record<'_>], count: u64) -> SegmentFile {
    segment_of_blocks(records, count, 1)
}

/// The same, whose lines count as so many times as long where rows are cut into blocks.
fn segment_of_blocks(records: &[Record<'_>], count: u64, factor: usize) -> SegmentFile {
    SegmentFile::open(Arc::new(file_of_blocks(records, count, factor))).unwrap()
}

/// The file of such a segment.
fn file_of_blocks(records: &[Record<'_>], count: u64, factor: usize) -> Memory {
    let mut builder = RowsBuilder::new();
    for (n, record) in records.iter().enumerate() {
        let mut line = Vec::new();
        record.write_line(&mut line);
        builder.push(
            record,
            n as u64,
            (n as u64 % count) as u32,
            line.len() * factor,
        );
    }
    let counts = builder.counts();
    let schema = counts.schema();
    let file = Memory::default();
    let entry = |sequence| SourceEntry {
        source: source(sequence),
        rows: (records.len() as u64 + count - 1 - sequence) / count,
        hash: 0,
        retry: None,
    };
    let mut writer = SegmentWriter::new(
        Box::new(file.clone()),
        Id(1),
        Profile::Hot,
        counts,
        schema.clone(),
        (0..count).map(entry).collect(),
    )
    .unwrap();
    writer.write(&builder.take(&schema)).unwrap();
    writer.finish().unwrap();
    file
}

const QUERIES: [&str; 94] = [
    "_level>=warn",
    "level>=warn AND refused",
    "level=error",
    "level!=error",
    "level<notice",
    "\"level\"=error",
    "_level_number>=13 OR _level=odd",
    "_level:*",
    "NOT _level:*",
    "_logpond_label.service_name=sshd",
    "_logpond_label.service_name!=sshd AND _logpond_label.service_name!=unknown_service",
    "_logpond_label.service_name~/^unknown/",
    "_logpond_label.service_name:sh",
    "_logpond_label.detected_level=error",
    "_logpond_label.detected_level!=unknown",
    "_logpond_label.detected_level~/^(crit|un)/ AND status:*",
    "",
    "refused",
    "connection refused",
    "\"peer-12\"",
    "\"said \\\"hi\\\"\"",
    "\"hi\\\\\\\"\\\\nto\"",
    "hi",
    "i\"CONNECTION\"",
    "/peer-[0-9]+2$/",
    "/^plain/",
    "/^said/",
    "NOT refused",
    "status=404",
    "status>=400",
    "status<300 OR status=OK",
    "status!=404",
    "status:*",
    "user:*",
    "user=null",
    "NOT user:*",
    "user=u3 AND NOT \"white space\"",
    "ms>5 AND ms<9.5",
    "ms=7.5",
    "ms~/^5$/",
    "ok=true",
    "list=\"[1,2]\"",
    "hostname=web-2",
    "hostname=web-2 OR rare=needle",
    "rare=needle",
    "path~/^.a.[12]$/",
    "_msg=\"plain connection refused by peer-6\"",
    "_raw~/white/",
    "\"7.50e0\"",
    "\"\\xff\"",
    "\"00:01:0\"",
    r#"404"#,
    r#"7"#,
    r#"null"#,
    r#"true"#,
    r#"Mar"#,
    r#"2026-03"#,
    r#"00:0"#,
    r#""\"status\":2""#,
    r#"nto"#,
    r#""\\nto""#,
    r#"/[0-9]{3}[a-z]/"#,
    r#"/peer-[0-9]+/"#,
    r#"/u[0-9]/"#,
    r#""1,2""#,
    r#""ok=""#,
    r#""<13>""#,
    r#"13"#,
    r#"2"#,
    r#"/[0-9]{2}>1/"#,
    r#"50e0"#,
    r#""7.5""#,
    r#"web"#,
    r#"needle"#,
    r#"NOT 7"#,
    r#"white"#,
    r#"i"OK""#,
    r#"i"HI""#,
    r#"/(?i)REFUSED/"#,
    r#""said \"hi""#,
    r#""\"hi\" ""#,
    "_logpond_label.web_host=w1",
    "_logpond_label.web_host!=w1",
    "_logpond_label.web_host~/^(?s:w[02])$/ AND \"40\"",
    "_logpond_label.hostname=web-2 OR _logpond_label.rare:*",
    "_logpond_label.user:*",
    "_logpond_label.user=null OR _logpond_label.status~/^4/",
    "_logpond_label.ms~/^5$/",
    "_logpond_entry.WEB_HOST=w1",
    "_logpond_entry.WEB_HOST!=w0 AND _logpond_entry._TRANSPORT!=journal",
    "_logpond_entry.SYSLOG_IDENTIFIER=sshd OR _logpond_entry.SYSLOG_IDENTIFIER~/^c/",
    "_logpond_entry.SYSLOG_IDENTIFIER:*",
    "_logpond_entry.USER=null OR _logpond_entry.STATUS~/^4/",
    "_logpond_entry.MS~/^5$/ OR _logpond_entry.RARE:*",
];

#[test]
fn columns_decide_as_records_do() {
    let records = samples(5000);
    let segment = segment_of(&records);
    let directory = segment.read_directory().unwrap();
    let whole = TimeRange::ALL;
    let part = TimeRange {
        from: Timestamp(START_NS + 100 * STEP_NS),
        to: Timestamp(START_NS + 1234 * STEP_NS),
    };
    // Some columns are kept from one query to the next, and some find no room.
    let kept = ColumnCache::new(KEPT_BYTES);
    for (query, range) in QUERIES.iter().flat_map(|q| [(q, whole), (q, part)]) {
        let filter = parse(query).unwrap();
        let matcher = Matcher::new(&filter).unwrap();
        let mut scratch = Scratch::new();
        let expected: Vec<Id> = records
            .iter()
            .filter(|r| range.contains(r.time) && matcher.matches(r, &mut scratch))
            .map(|r| r.id)
            .collect();
        let evaluator = Evaluator::new(&filter, range).unwrap();
        let mut keys = Vec::new();
        let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
        let shared = shared.keeping(&kept);
        let mut scan = GroupScan::new(&shared, 0);
        scan.for_each_block(|scan, selected| scan.keys(&selected, &mut keys).map(|()| true))
            .unwrap();
        assert!(scan.damages().is_empty());
        keys.sort_unstable();
        assert_eq!(
            keys.iter().map(|k| k.id).collect::<Vec<_>>(),
            expected,
            "{query}"
        );
        if let Some(key) = keys.last() {
            let id = scan.record(*key, |record| record.id).unwrap();
            assert_eq!(id, Some(key.id));
        }
    }
    assert!((KEPT_BYTES / 2..=KEPT_BYTES).contains(&kept.bytes()));
}

/// Rows of excluded sources are in no answer, whatever is asked; nor is anything else missing.
#[test]
fn excluded_sources_are_left_out() {
    let (records, count) = (samples(3000), 5);
    let segment = segment_of_sources(&records, count);
    let directory = segment.read_directory().unwrap();
    let other = SourceId {
        incarnation: Incarnation(78),
        sequence: 1,
    };
    let tables: [&[SourceId]; 5] = [
        &[],
        &[other],
        &[source(1)],
        &[source(0), source(4), other],
        &[source(0), source(1), source(2), source(3), source(4)],
    ];
    for (excluded, query) in tables.iter().flat_map(|t| QUERIES.map(|query| (t, query))) {
        let filter = parse(query).unwrap();
        let (matcher, mut scratch) = (Matcher::new(&filter).unwrap(), Scratch::new());
        let numbered = records.iter().enumerate();
        let is_in = |n: usize| !excluded.contains(&source(n as u64 % count));
        let expected: Vec<_> = numbered
            .filter(|(n, record)| is_in(*n) && matcher.matches(record, &mut scratch))
            .map(|(_, record)| record)
            .collect();
        let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
        let set = excluded.iter().copied().collect();
        let shared = SegmentScan::new(&segment, &directory, &evaluator, &set);
        let mut scan = GroupScan::new(&shared, 0);
        if let Some(rows) = scan.rows_known() {
            assert_eq!(rows, expected.len() as u64);
        }
        let (mut keys, mut top) = (Vec::new(), Top::new("status"));
        scan.for_each_block(|scan, selected| {
            scan.add_to_top("status", &selected, &mut top)?;
            scan.keys(&selected, &mut keys).map(|()| true)
        })
        .unwrap();
        keys.sort_unstable();
        let ids: Vec<Id> = keys.iter().map(|key| key.id).collect();
        assert!(
            ids.iter().eq(expected.iter().map(|r| &r.id)),
            "{excluded:?} {query}"
        );
        let mut expected_top = Top::new("status");
        expected.iter().for_each(|record| expected_top.add(record));
        let tops = [top, expected_top].map(|top| format!("{:?}", top.finish(0)));
        assert_eq!(tops[0], tops[1], "{excluded:?} {query}");
    }
}

/// Sources are not read where nothing is excluded, and not where nothing is wanted.
#[test]
fn sources_are_read_where_they_matter() {
    let records = samples(3000);
    let segment = segment_of_sources(&records, 5);
    let directory = segment.read_directory().unwrap();
    let read = |query: &str, excluded: &[SourceId]| {
        let evaluator = Evaluator::new(&parse(query).unwrap(), TimeRange::ALL).unwrap();
        let set = excluded.iter().copied().collect();
        let shared = SegmentScan::new(&segment, &directory, &evaluator, &set);
        let mut scan = GroupScan::new(&shared, 0);
        scan.for_each_block(|_, _| Ok(true)).unwrap();
        scan.bytes_read()
    };
    let elsewhere = source(5);
    for (query, is_found) in [("status=404", true), ("status=405", false)] {
        assert_eq!(read(query, &[]), read(query, &[elsewhere]));
        assert_eq!(
            read(query, &[]) < read(query, &[source(1)]),
            is_found,
            "{query}"
        );
    }
}

#[test]
fn tables_count_as_records_do() {
    let records = samples(3000);
    let segment = segment_of(&records);
    let directory = segment.read_directory().unwrap();
    let filter = parse("NOT \"peer-12\"").unwrap();
    let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
    let wanted = wanted(&records, &filter);
    for field in [
        "status",
        "user",
        "hostname",
        "ms",
        "rare",
        "none",
        "_msg",
        "ok",
        "_level",
        "_level_number",
    ] {
        let (mut expected, mut found) = (Top::new(field), Top::new(field));
        wanted.iter().for_each(|r| expected.add(r));
        let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
        let mut scan = GroupScan::new(&shared, 0);
        scan.for_each_block(|scan, s| scan.add_to_top(field, &s, &mut found).map(|()| true))
            .unwrap();
        assert_eq!(
            format!("{:?}", found.finish(0)),
            format!("{:?}", expected.finish(0)),
            "{field}"
        );
    }
}

#[test]
fn histograms_and_fields_count_as_records_do() {
    let records = samples(3000);
    let segment = segment_of(&records);
    let directory = segment.read_directory().unwrap();
    let filter = parse("NOT \"peer-12\"").unwrap();
    let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
    let wanted = wanted(&records, &filter);
    let range = TimeRange {
        from: Timestamp(START_NS),
        to: Timestamp(START_NS + 3000 * STEP_NS),
    };
    let new = || Histogram::new(range, 60_000_000_000, 0).unwrap();
    let (mut expected, mut found) = (new(), new());
    wanted.iter().for_each(|r| expected.add(r));
    // None of them has more values than there are series.
    let fields = [
        "_level", "status", "user", "hostname", "ok", "app", "list", "none",
    ];
    let mut split: Vec<[Histogram; 2]> = fields
        .map(|field| [new().split_by(field), new().split_by(field)])
        .into();
    for [expected, _] in &mut split {
        wanted.iter().for_each(|r| expected.add(r));
    }
    let (mut expected_fields, mut found_fields) = (FieldStats::new(), FieldStats::new());
    wanted.iter().for_each(|r| expected_fields.add(r));
    let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
    let mut scan = GroupScan::new(&shared, 0);
    scan.for_each_block(|scan, s| {
        scan.add_to_histogram(&s, &mut found)?;
        for [_, found] in &mut split {
            scan.add_to_histogram(&s, found)?;
        }
        scan.add_to_fields(&s, &mut found_fields)?;
        Ok(true)
    })
    .unwrap();
    assert_eq!(
        format!("{:?}", found.finish()),
        format!("{:?}", expected.finish())
    );
    for ([expected, found], field) in split.into_iter().zip(fields) {
        assert_eq!(found.finish(), expected.finish(), "{field}");
    }
    assert_eq!(
        format!("{:?}", found_fields.finish()),
        format!("{:?}", expected_fields.finish())
    );
}

/// What a row of columns shows.
fn shown(columns: &Columns, row: usize) -> Vec<Option<String>> {
    let show = |column: &Column| match column {
        Column::Strings(texts) => texts.get(row).map(|text| text.escape_ascii().to_string()),
        Column::Ints(numbers) => numbers.get(row).map(|n| n.to_string()),
        Column::Floats(numbers) => numbers.get(row).map(|n| n.to_string()),
        Column::Bools(numbers) => numbers.get(row).map(|n| n.to_string()),
        Column::Absent => None,
    };
    columns.columns.iter().map(show).collect()
}

/// Each column that some records may have, as each kind.
fn all_columns(records: &[Record<'_>]) -> Vec<ColumnRequest> {
    let mut types = FieldTypes::new(false);
    records.iter().for_each(|record| types.add(record));
    let reserved = [
        "_time_source",
        "_id",
        "_msg",
        "_raw",
        "_logpond_label.service_name",
        "none",
    ];
    let names = types.fields().map(|(name, _)| name).chain(reserved);
    let kinds = [
        ColumnKind::Text,
        ColumnKind::Int,
        ColumnKind::Float,
        ColumnKind::Bool,
    ];
    let mut asked: Vec<ColumnRequest> = Vec::new();
    for name in names {
        asked.extend(kinds.map(|kind| ColumnRequest {
            name: name.into(),
            kind,
        }));
    }
    for name in ["_time", "_received"] {
        asked.push(ColumnRequest {
            name: name.into(),
            kind: ColumnKind::Time,
        });
    }
    asked
}

#[test]
fn columns_are_those_of_records() {
    let records = labelled(3000);
    let segment = segment_of(&records);
    let directory = segment.read_directory().unwrap();
    let asked = all_columns(&records);
    for query in [
        "",
        "NOT \"peer-12\"",
        "status=404 OR said",
        "hostname=web-2 AND user:*",
    ] {
        let filter = parse(query).unwrap();
        let matcher = Matcher::new(&filter).unwrap();
        let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
        let mut scratch = Scratch::new();
        let wanted = records.iter().filter(|r| matcher.matches(r, &mut scratch));
        let wanted: std::collections::BTreeMap<_, _> = wanted.map(|r| (r.id, r)).collect();
        // Each alone, too: what is read for one must not serve another.
        let alone = asked.iter().map(|one| vec![one.clone()]);
        for asked in alone.chain([asked.clone()]) {
            let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
            let mut scan = GroupScan::new(&shared, 0);
            let mut rows = 0;
            scan.for_each_block(|scan, selected| {
                let columns = scan.columns(&asked, &selected)?;
                let mut keys = Vec::new();
                scan.keys(&selected, &mut keys)?;
                let mut builder = ColumnsBuilder::new(asked.clone().into());
                keys.iter().for_each(|key| builder.add(wanted[&key.id]));
                let expected = builder.take();
                assert_eq!(
                    (columns.rows, columns.unfit),
                    (expected.rows, expected.unfit)
                );
                for row in 0..columns.rows {
                    let names: Vec<_> = asked.iter().map(|a| (&a.name, a.kind)).collect();
                    assert_eq!(
                        shown(&columns, row),
                        shown(&expected, row),
                        "{query} {names:?}"
                    );
                }
                rows += columns.rows;
                Ok(true)
            })
            .unwrap();
            assert_eq!((rows, scan.damages().len()), (wanted.len(), 0), "{query}");
        }
    }
}

#[test]
fn numbers_come_as_floats_or_as_texts() {
    let records = labelled(3000);
    let segment = segment_of(&records);
    let directory = segment.read_directory().unwrap();
    let evaluator = Evaluator::new(&Filter::All, TimeRange::ALL).unwrap();
    let asked = |kind| -> Vec<ColumnRequest> {
        let mut names: Vec<Box<str>> = all_columns(&records).into_iter().map(|a| a.name).collect();
        names.dedup();
        let fields = names.into_iter().filter(|name| !name.starts_with('_'));
        fields.map(|name| ColumnRequest { name, kind }).collect()
    };
    let number = |column: &Column, row| match column {
        Column::Floats(numbers) => numbers.get(row),
        Column::Strings(texts) => Some(crate::Number::parse(texts.get(row)?)?.to_float()),
        _ => None,
    };
    let by_id: std::collections::BTreeMap<_, _> = records.iter().map(|r| (r.id, r)).collect();
    let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
    let mut scan = GroupScan::new(&shared, 0);
    let (mut floats, mut values) = (0, 0);
    scan.for_each_block(|scan, selected| {
        let columns = scan.columns(&asked(ColumnKind::Number), &selected)?;
        let mut keys = Vec::new();
        scan.keys(&selected, &mut keys)?;
        let mut builder = ColumnsBuilder::new(asked(ColumnKind::Text).into());
        keys.iter().for_each(|key| builder.add(by_id[&key.id]));
        let texts = builder.take();
        for (given, expected) in columns.columns.iter().zip(&texts.columns) {
            floats += usize::from(matches!(given, Column::Floats(_)));
            for row in 0..columns.rows {
                let wanted = number(expected, row);
                assert_eq!(number(given, row), wanted);
                values += usize::from(wanted.is_some());
            }
        }
        Ok(true)
    })
    .unwrap();
    assert!(floats > 0 && values > 1000, "{floats} {values}");
}

#[test]
fn columns_that_nobody_asks_for_are_not_read() {
    let segment = segment_of(&samples(5000));
    let directory = segment.read_directory().unwrap();
    let evaluator = Evaluator::new(&Filter::All, TimeRange::ALL).unwrap();
    let read = |names: &[&str]| {
        let asked: Vec<_> = names
            .iter()
            .map(|name| ColumnRequest {
                name: (*name).into(),
                kind: ColumnKind::Text,
            })
            .collect();
        let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
        let mut scan = GroupScan::new(&shared, 0);
        scan.for_each_block(|scan, s| scan.columns(&asked, &s).map(|_| true))
            .unwrap();
        scan.bytes_read()
    };
    assert_eq!(read(&[]), 0);
    let (host, all) = (read(&["host"]), read(&["_raw"]));
    assert!(host > 0 && host * 10 < all, "{host} {all}");
}

#[test]
fn types_of_fields_are_those_of_records() {
    let records = labelled(3000);
    let segment = segment_of(&records);
    let directory = segment.read_directory().unwrap();
    for (query, of_lines) in [("", false), ("", true), ("plain", true)] {
        let filter = parse(query).unwrap();
        let matcher = Matcher::new(&filter).unwrap();
        let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
        let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
        let (mut found, mut expected) = (FieldTypes::new(of_lines), FieldTypes::new(of_lines));
        let mut scan = GroupScan::new(&shared, 0);
        scan.for_each_block(|scan, s| scan.add_to_field_types(&s, &mut found).map(|()| true))
            .unwrap();
        let mut scratch = Scratch::new();
        let wanted = records.iter().filter(|r| matcher.matches(r, &mut scratch));
        wanted.for_each(|record| expected.add(record));
        let names = |types: &FieldTypes| -> Vec<_> {
            types
                .fields()
                .map(|(name, types)| (name.to_owned(), types.bits()))
                .collect()
        };
        assert_eq!(names(&found), names(&expected), "{query} {of_lines}");
    }
}

/// Samples with labels, also such that have a column with values of lines, that mean the same as
/// others, and that are rare or of several types.
fn labelled(count: u64) -> Vec<Record<'static>> {
    let text = |text: String| Value::Str(text.into());
    let mut records = samples(count);
    for (n, record) in records.iter_mut().enumerate() {
        let mut label = |name: &'static str, value| record.labels.push((name.into(), value));
        if n % 2 == 0 {
            label("cluster", text(format!("c{}", n / 500)));
        }
        if n % 3 == 0 {
            label("app", text(format!("a{}", n % 4)));
            label("k8s.pod", text(format!("p{}", n % 2)));
        }
        if n % 6 == 0 {
            label("k8s-pod", text("other".into()));
            label("user", text("beside".into()));
        }
        if n % 50 == 0 {
            label("zone", Value::Int(7));
        }
        if n % 400 == 0 {
            label("service.name", text("declared".into()));
            label("empty", text(String::new()));
        }
        if n % 1000 == 0 {
            label("zone2", Value::Null);
        }
    }
    records
}

/// Whether columns and records give the same values of a label.
fn check_label_values(shared: &SegmentScan<'_>, wanted: &[&Record<'_>], name: &str, query: &str) {
    let mut expected = LabelValues::new(name);
    let mut found = expected.clone();
    wanted.iter().for_each(|record| expected.add(record));
    let mut scan = GroupScan::new(shared, 0);
    scan.for_each_block(|scan, s| scan.add_to_label_values(&s, &mut found).map(|()| true))
        .unwrap();
    assert_eq!(found.finish(), expected.finish(), "{query} {name}");
}

/// Whether columns and records give the same streams.
fn check_streams(
    shared: &SegmentScan<'_>,
    wanted: &[&Record<'_>],
    asked: StreamsRequest,
    query: &str,
) {
    let is_whole = query.is_empty() && asked.steps.is_none();
    let mut expected = Streams::new(asked);
    let mut found = expected.clone();
    wanted.iter().for_each(|record| expected.add(record));
    let mut scan = GroupScan::new(shared, 0);
    scan.for_each_block(|scan, s| scan.add_to_streams(&s, &mut found).map(|()| true))
        .unwrap();
    let [expected, found] = [expected, found].map(Streams::finish);
    let rows = |answer: &StreamsAnswer| -> Vec<_> {
        let texts = |row: &StreamRow| {
            let labels = row.labels.iter();
            let labels = labels.map(|(name, value)| format!("{name}={value}"));
            (row.step, labels.collect::<Vec<_>>(), row.tally.rows)
        };
        answer.streams.iter().map(texts).collect()
    };
    assert_eq!(rows(&found), rows(&expected), "{query}");
    let bytes = |answer: &StreamsAnswer| -> u64 {
        answer.streams.iter().map(|stream| stream.tally.bytes).sum()
    };
    let (found, expected) = (bytes(&found), bytes(&expected));
    assert!(
        !is_whole || found.abs_diff(expected) < expected / 10,
        "{found} {expected}"
    );
}

#[test]
fn labels_of_columns_are_those_of_records() {
    let records = labelled(3000);
    let segment = segment_of(&records);
    let directory = segment.read_directory().unwrap();
    let steps = Some((Timestamp(START_NS + 5), 200 * STEP_NS));
    let by = |names: &[&str]| Some(names.iter().map(|name| (*name).into()).collect());
    let asked = [
        (None, None),
        (None, steps),
        (by(&["app", "status"]), None),
        (by(&["service_name"]), steps),
        (by(&["detected_level", "k8s_pod"]), None),
        (by(&["rare", "none"]), None),
        (by(&[]), None),
    ];
    for query in [
        "",
        "status>=400",
        "cluster=c2",
        "rare=needle OR /peer-[0-9]+2$/",
    ] {
        let filter = parse(query).unwrap();
        let matcher = Matcher::new(&filter).unwrap();
        let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
        let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
        let mut scratch = Scratch::new();
        let wanted = records.iter().filter(|r| matcher.matches(r, &mut scratch));
        let wanted: Vec<_> = wanted.collect();
        for (by, steps) in asked.clone() {
            check_streams(&shared, &wanted, StreamsRequest { by, steps }, query);
        }
        let (mut expected, mut found) = (FieldStats::new(), FieldStats::new());
        expected.add_rows(wanted.len() as u64);
        wanted.iter().for_each(|record| expected.add_labels(record));
        let mut scan = GroupScan::new(&shared, 0);
        scan.for_each_block(|scan, s| scan.add_to_labels(&s, &mut found).map(|()| true))
            .unwrap();
        assert_eq!(found.finish(), expected.finish(), "{query}");
        for name in [
            "service_name",
            "app",
            "k8s_pod",
            "user",
            "zone",
            "status",
            "none",
            "empty",
        ] {
            check_label_values(&shared, &wanted, name, query);
        }
    }
}

/// Lines whose fields are too rare for columns, with values that lines show in another form than objects of the
/// overflow column.
fn spilled(count: u64) -> Vec<Record<'static>> {
    let mut shapes = ShapeTable::new();
    let texts = [
        "name of it\nname",
        "tab\tand \u{1}control",
        "C:\\new\\file",
        "a \"quoted\" b]c",
        "base64:AAEC",
        "plain error text",
    ];
    (0..count)
        .map(|n| {
            let text = |offset: u64| {
                let text = texts[((n + offset) % texts.len() as u64) as usize];
                Value::Str(format!("{text} {n}").into())
            };
            let nested = Value::Json(format!(r#"{{"new":"line\nname {n}","at":[{n},1.50]}}"#).into());
            let bytes = Value::Bytes(vec![0xff, b'n', b'a', b'm', b'e', b'0' + (n % 10) as u8].into());
            let fields = format!(
                r#"{{"a":"⟨a{0}:j⟩","b":⟨b{0}:r⟩,"c":⟨c{0}:f⟩}} d="⟨d{0}:q⟩" [x e="⟨e{0}:d⟩"] ⟨g{0}:t⟩"#,
                n % 200
            );
            let number = Value::Float([7.5, 1e21, -0.25][n as usize % 3]);
            let last = if n % 4 == 0 { bytes } else { text(3) };
            let values = vec![text(0), nested, number, text(1), text(2), last];
            let shape = shapes.intern(fields.as_bytes()).unwrap();
            let mut record = samples(1).remove(0);
            record.id = Id::new(1_772_409_600_000 + n, INCARNATION, n);
            record.time = Timestamp(START_NS + n as i64 * STEP_NS);
            record.received = Timestamp(START_NS + n as i64 * 1_000_000);
            (record.shape, record.values, record.message) = (shape, values, Message::Absent);
            if n % 5 == 0 {
                record.fixes.push(Fix { slot: 2, text: b"7.50e0".as_slice().into() });
            }
            record
        })
        .collect()
}

#[test]
fn parts_of_lines_are_found_where_they_are() {
    find_parts(&samples(700));
}

#[test]
fn parts_of_rare_values_are_found_where_they_are() {
    let records = spilled(600);
    let directory = segment_of(&records).read_directory().unwrap();
    let columns = directory.schema.columns.iter();
    assert!(columns.filter(|column| column.name.len() > 1).count() < 20);
    find_parts(&records);
}

/// A header before JSON is no message, and neither is the line.
#[test]
fn lines_of_json_behind_a_header_have_no_message() {
    let header = "<⟨facility:p⟩⟨severity:v⟩>1 - ⟨hostname:t⟩ - - - ";
    let bodies = [
        r#"{"code":⟨code:i⟩}"#,
        r#"@cee: {"code":⟨code:i⟩}"#,
        "code=⟨code:i⟩",
    ];
    let mut records = samples(bodies.len() as u64);
    for (record, body) in records.iter_mut().zip(bodies) {
        let shape = Shape::new(&format!("{header}{body}")).unwrap();
        record.message = if body.starts_with("code") {
            Message::Line
        } else {
            Message::Absent
        };
        record.values = vec![
            Value::Int(1),
            Value::Int(5),
            Value::Str("h".into()),
            Value::Int(5),
        ];
        record.shape = Arc::new(shape);
        record.labels.clear();
    }
    let segment = segment_of(&records);
    for (query, expected) in [
        ("_msg:*", &records[2..]),
        ("NOT _msg:*", &records[..2]),
        ("_msg:code", &records[2..]),
        ("code=5", &records),
    ] {
        let expected: Vec<Id> = expected.iter().map(|record| record.id).collect();
        assert_eq!(
            found_by(&segment, &parse(query).unwrap()),
            expected,
            "{query}"
        );
    }
    let directory = segment.read_directory().unwrap();
    let evaluator = Evaluator::new(&Filter::All, TimeRange::ALL).unwrap();
    let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
    let (mut found, mut expected) = (Top::new("_msg"), Top::new("_msg"));
    records.iter().for_each(|record| expected.add(record));
    let mut scan = GroupScan::new(&shared, 0);
    scan.for_each_block(|scan, s| scan.add_to_top("_msg", &s, &mut found).map(|()| true))
        .unwrap();
    let [found, expected] = [found, expected].map(|top| format!("{:?}", top.finish(0)));
    assert_eq!(found, expected);
}

/// The records that a filter wants.
fn wanted<'r>(records: &'r [Record<'static>], filter: &Filter) -> Vec<&'r Record<'static>> {
    let matcher = Matcher::new(filter).unwrap();
    let mut scratch = Scratch::new();
    let wanted = records.iter().filter(|r| matcher.matches(r, &mut scratch));
    wanted.collect()
}

/// The ids of what the scan finds.
fn found_by(segment: &SegmentFile, filter: &Filter) -> Vec<Id> {
    let directory = segment.read_directory().unwrap();
    let evaluator = Evaluator::new(filter, TimeRange::ALL).unwrap();
    let mut keys = Vec::new();
    let shared = SegmentScan::new(segment, &directory, &evaluator, &SourceSet::new());
    for group in 0..directory.row_groups.len() {
        let mut scan = GroupScan::new(&shared, group);
        scan.for_each_block(|scan, selected| scan.keys(&selected, &mut keys).map(|()| true))
            .unwrap();
    }
    keys.sort_unstable();
    keys.iter().map(|key| key.id).collect()
}

/// A text of a record: its line, its message, or the value of a field.
fn text_of(record: &Record<'_>, source: u8) -> Vec<u8> {
    let mut text = Vec::new();
    match source {
        0 => record.write_message(&mut text),
        1 => record
            .field("user")
            .into_iter()
            .for_each(|value| value.write_text(&mut text)),
        _ => {}
    }
    if text.is_empty() {
        record.write_line(&mut text);
    }
    text
}

/// An expression that finds a text by its ends, with a class between them.
fn with_class(text: &str) -> String {
    let ends = |from: usize, to: usize| {
        let chars: String = text.chars().skip(from).take(to - from).collect();
        regex_syntax::escape(&chars)
    };
    let count = text.chars().count();
    let middle = count.div_ceil(2);
    let class = if count.is_multiple_of(2) {
        "[a-z 0-9:]*"
    } else {
        "[^ ]*"
    };
    ends(0, middle) + class + &ends(middle.max(count.saturating_sub(2)), count)
}

/// Parts of lines are what crosses from values into what stands beside them. Parts of messages and fields are
/// found however lines spell them.
fn find_parts(records: &[Record<'_>]) {
    find_parts_in(&segment_of(records), records);
}

fn find_parts_in(segment: &SegmentFile, records: &[Record<'_>]) {
    let mut runner = TestRunner::new(ProptestConfig::with_cases(1500));
    let strategy = (
        (0..records.len(), 0u8..5),
        0usize..200,
        1usize..24,
        any::<bool>(),
        0u8..10,
        (0u8..8, any::<bool>()),
    );
    let outcome = runner.run(&strategy, |(at, from, length, any_case, change, place)| {
        let ((at, source), (place, is_negated)) = (at, place);
        let line = text_of(&records[at], source);
        if line.is_empty() {
            return Ok(());
        }
        let from = from.min(line.len() - 1);
        let mut part = line[from..line.len().min(from + length)].to_vec();
        match change {
            // A part that is nearly there, and one as an expression.
            0 => *part.last_mut().unwrap() ^= 1,
            1 | 2 => part.make_ascii_uppercase(),
            _ => {}
        }
        let pattern = match (change, std::str::from_utf8(&part)) {
            (3, Ok(text)) => Pattern::regex(&regex_syntax::escape(text), any_case),
            (4, Ok(text)) => Pattern::regex(&(regex_syntax::escape(text) + ".*[0-9]"), any_case),
            (5..7, Ok(text)) => Pattern::regex(&with_class(text), any_case && change == 5),
            _ => Pattern::substring(&part, any_case),
        };
        let filter = match place {
            0..3 => Filter::Text(pattern),
            3 => Filter::field("_msg", FieldTest::Contains(pattern)),
            4 => Filter::field("user", FieldTest::Contains(pattern)),
            _ => Filter::field("_raw", FieldTest::Contains(pattern)),
        };
        let filter = if is_negated {
            Filter::negate(filter)
        } else {
            filter
        };
        let matcher = Matcher::new(&filter).unwrap();
        let mut scratch = Scratch::new();
        let wanted: Vec<_> = records
            .iter()
            .filter(|r| matcher.matches(r, &mut scratch))
            .collect();
        for record in matcher.raw_prefilter().map_or(&[][..], |_| &wanted) {
            let may_match = matcher
                .raw_prefilter()
                .unwrap()
                .may_match(&text_of(record, 2));
            prop_assert!(may_match, "{:?} {:?}", filter, record);
        }
        let expected: Vec<Id> = wanted.iter().map(|r| r.id).collect();
        prop_assert_eq!(found_by(segment, &filter), expected, "{:?}", filter);
        Ok(())
    });
    outcome.unwrap();
}
