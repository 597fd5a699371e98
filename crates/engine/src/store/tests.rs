//! Whatever is received comes back byte for byte from a segment and from a merge of segments.

use std::sync::Arc;

use logpond_protocol::intake::Parser;
use logpond_protocol::intake::push::loki;
use logpond_record::{Batch, EntryKind, Id, Incarnation, Record, TimeRange, Timestamp};
use logpond_search::aggregate::{StreamRow, Streams, StreamsRequest};
use logpond_search::logql::{self, LogQuery, NamedLabels};
use logpond_search::pipeline::{Pipeline, Work, add_base_labels};
use logpond_search::scan::{Evaluator, GroupScan, SegmentScan};
use logpond_search::{Matcher, Scratch};
use logpond_segment::build;
use logpond_segment::disk::Disk;
use logpond_segment::file::{Profile, SegmentFile};
use logpond_segment::journal::{self, JournalFile, Writer};
use logpond_segment::mem_disk::MemDisk;
use logpond_segment::sources::SourceSet;
use logpond_segment::verify;
use proptest::prelude::*;

/// Lines of every form, each to be damaged.
const LINES: [(EntryKind, &[u8]); 12] = [
    (EntryKind::Line, b"127.0.0.1 - frank [02/Mar/2026:00:00:01 +0000] \"GET /a?b=c HTTP/1.1\" 200 23 \"http://r/\" \"curl/8\""),
    (EntryKind::Line, b"127.0.0.1 - fr\xffnk [02/Mar/2026:00:00:01 +0000] \"GET /\xe9 HTTP/1.1\" 404 0 \"-\" \"\xfe\\x22\""),
    (EntryKind::Syslog, b"<34>1 2026-03-02T00:00:01.5Z host app 12 ID [x@1 a=\"1\" b=\"t\\\"wo\"] hello"),
    (EntryKind::Syslog, b"<34>1 2026-03-02T00:00:01.5Z ho\xffst app - - [x@1 a=\"\xff1\" a=\"2\" c=\"\\n\"] hel\xfflo"),
    (EntryKind::Syslog, b"<13>Mar  2 00:00:01 host app[77]: text \xff"),
    (EntryKind::Line, b"time=2026-03-02T00:00:01Z level=info a=1 a=2 b=\"x \\\"y\\\"\" c= d=2.70 e=1e5"),
    (EntryKind::Line, b"{\"a\":1,\"a\":2,\"b\":{\"c\":null,\"d\":[1,2.50]},\"_msg\":5,\"msg\":\"\\u00e9\\/\",\"x\":1.0}"),
    (EntryKind::Line, b"{\"time\":\"2026-03-02T00:00:01Z\",\"_id\":\"x\",\"a.b\":1,\"a\":{\"b\":2},\"\":true,\"n\":-0.0}"),
    (EntryKind::Json, b"{\"a\":12345678901234567890,\"b\":1e400,\"c\":\"\\ud83d\\ude00\"}"),
    (EntryKind::Line, b"2026-03-02 00:00:01,123 plain text \xe2\x9f\xa8x:t\xe2\x9f\xa9 of a shape"),
    (EntryKind::Line, b"\0\x01\xff\r"),
    (EntryKind::Line, b""),
];

fn line() -> impl Strategy<Value = (EntryKind, Vec<u8>)> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0u8..4);
    let changes = prop::collection::vec(change, 0..3);
    (0..LINES.len(), changes).prop_map(|(which, changes)| {
        let (mut kind, line) = LINES[which];
        let mut line = line.to_vec();
        for (at, byte, how) in changes.into_iter().filter(|_| which + 1 < LINES.len()) {
            let at = at.index(line.len().max(1)).min(line.len());
            match how {
                0 if at < line.len() => line[at] = byte,
                1 if at < line.len() => drop(line.remove(at)),
                2 => line.insert(at, b"\"\\ =]}0"[usize::from(byte) % 7]),
                _ => line.insert(at, byte),
            }
        }
        // A pushed object is known to be valid.
        if kind == EntryKind::Json && serde_json::from_slice::<serde_json::Value>(&line).is_err() {
            kind = EntryKind::Line;
        }
        (kind, line)
    })
}

fn check(lines: &[(EntryKind, Vec<u8>)]) -> Result<(), TestCaseError> {
    let disk = MemDisk::new();
    disk.create_directory(build::DIRECTORY).unwrap();
    let mut writer = Writer::new(Arc::new(disk.clone()), journal::Settings::default());
    for (number, (kind, line)) in lines.iter().enumerate() {
        let mut batch = Batch::new(*kind, vec![("hostname".into(), "ash".into())]);
        batch.push(line);
        let now = Timestamp(1_772_409_600_000_000_000 + number as i64 * 1_000_000);
        writer.append(&batch, now, || Incarnation(3)).unwrap();
        if number == lines.len() / 2 {
            writer.close().unwrap();
        }
    }
    writer.close().unwrap();
    let mut parser = Parser::new();
    let mut inputs = Vec::new();
    for (number, file) in writer.visible().snapshot().closed.iter().enumerate() {
        let id = Id(1 + number as u128);
        let files = [file.clone()];
        build::from_journal(&disk, id, &files, |entry| parser.parse(entry)).unwrap();
        let segment = build::open(&disk, id).unwrap();
        prop_assert_eq!(verify::deep(&segment).unwrap(), vec![]);
        inputs.push(segment);
    }
    build::merge(&disk, Id(99), &inputs, Profile::Cold, &|| false).unwrap();
    let merged = build::open(&disk, Id(99)).unwrap();
    prop_assert_eq!(verify::deep(&merged).unwrap(), vec![]);
    Ok(())
}

/// A number that no float holds, in a field that has a column for something else.
#[test]
fn numbers_without_a_value_come_back_from_the_overflow() {
    let lines: [&[u8]; 3] = [b"{\"b\":1e400}", b"{\"b\":\"x\"}", b"{\"b\":\"y\"}"];
    check(&lines.map(|line| (EntryKind::Line, line.to_vec()))).unwrap();
}

#[test]
fn every_form_of_line_comes_back() {
    for (kind, line) in LINES {
        let lines = [(kind, line.to_vec()), (kind, line.to_vec())];
        check(&lines).unwrap_or_else(|error| panic!("{}: {error}", line.escape_ascii()));
    }
}

/// Two streams of Loki: most lines have a field that is called as a label of their stream.
const PUSH: &str = r#"{"streams":[
    {"stream":{"app":"a","env":"prod"},"values":[
        ["1772409600000000001","{\"app\":\"y\",\"n\":1}"],
        ["1772409600000000002","{\"app\":\"a\",\"n\":2}"],
        ["1772409600000000003","app=z n=3"],
        ["1772409600000000004","plain"],
        ["1772409600000000005","{\"app@label\":\"y\"}"],
        ["1772409600000000006","{\"app\":null}"]]},
    {"stream":{"app":"y"},"values":[["1772409600000000007","{\"app\":\"a\",\"env\":\"dev\"}"]]}]}"#;

/// Selectors with the numbers of the lines that they want.
const SELECTED: [(&str, &[i64]); 9] = [
    (r#"{app="a"}"#, &[1, 2, 3, 4, 5, 6]),
    (r#"{app="y"}"#, &[7]),
    (r#"{app!="a"}"#, &[7]),
    (r#"{app=~"y|z"}"#, &[7]),
    (r#"{app!~"y|z"}"#, &[1, 2, 3, 4, 5, 6]),
    (r#"{app=""}"#, &[]),
    (r#"{service_name="a"}"#, &[1, 2, 3, 4, 5, 6]),
    (r#"{env="dev"}"#, &[7]),
    (r#"{app="a"} | json | app_extracted="y""#, &[1]),
];

/// The numbers of the lines of a segment that a query wants, and what streams they are of.
fn of_segment(segment: &SegmentFile, log: &LogQuery) -> (Vec<i64>, Vec<StreamRow>) {
    let directory = segment.read_directory().unwrap();
    let filter = logql::filter_of(log);
    let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
    let shared = SegmentScan::new(segment, &directory, &evaluator, &SourceSet::new());
    let pipeline = Pipeline::new(&log.stages, 0).unwrap();
    let (mut found, mut streams) = (Vec::new(), Streams::new(StreamsRequest::default()));
    for group in 0..directory.row_groups.len() {
        let mut scan = GroupScan::new(&shared, group);
        scan.for_each_block(|scan, selected| {
            scan.each_record(&selected, |record| {
                found.extend(number(record, log, &pipeline))
            })?;
            scan.add_to_streams(&selected, &mut streams)?;
            Ok(true)
        })
        .unwrap();
    }
    found.sort_unstable();
    (found, rows(streams))
}

/// The same of records.
fn of_records(records: &[Record<'_>], log: &LogQuery) -> (Vec<i64>, Vec<StreamRow>) {
    let matcher = Matcher::new(&logql::filter_of(log)).unwrap();
    let pipeline = Pipeline::new(&log.stages, 0).unwrap();
    let (mut scratch, mut streams) = (Scratch::new(), Streams::new(StreamsRequest::default()));
    let mut found = Vec::new();
    for record in records.iter().filter(|r| matcher.matches(r, &mut scratch)) {
        found.extend(number(record, log, &pipeline));
        streams.add(record);
    }
    (found, rows(streams))
}

/// The number of a record's line, if the stages want it.
fn number(record: &Record<'_>, log: &LogQuery, pipeline: &Pipeline) -> Option<i64> {
    let mut work = Work::new();
    let mut line = Vec::new();
    record.write_line(&mut line);
    work.line = line.into();
    add_base_labels(record, &NamedLabels::of(log), &mut work.labels);
    assert!(work.labels.iter().all(|(name, ..)| !name.contains("label")));
    pipeline
        .run(&mut work)
        .then_some(record.time.0 % 1_000_000_000)
}

/// Streams without the bytes of their lines, which segments know on average only.
fn rows(streams: Streams) -> Vec<StreamRow> {
    let mut rows = streams.finish().streams;
    rows.iter_mut().for_each(|row| row.tally.bytes = 0);
    rows
}

/// What a sender calls a stream finds its lines, whatever these say themselves: in the journal, in a
/// segment and after a merge.
#[test]
fn streams_keep_labels_that_lines_have_too() {
    let disk = MemDisk::new();
    disk.create_directory(build::DIRECTORY).unwrap();
    let mut writer = Writer::new(Arc::new(disk.clone()), journal::Settings::default());
    let peer = vec![("hostname".into(), "ash".into())];
    let pushed = loki::decode_json(PUSH.as_bytes(), peer, 1 << 20).unwrap();
    assert_eq!((pushed.accepted, pushed.rejected_total), (7, 0));
    let now = Timestamp(1_772_409_700_000_000_000);
    writer
        .append(&pushed.batch, now, || Incarnation(3))
        .unwrap();
    writer.close().unwrap();
    let closed = writer.visible().snapshot().closed;
    let mut parser = Parser::new();
    let mut records = Vec::new();
    let mut frames = JournalFile::open(&disk, &closed[0].path).unwrap().frames();
    while let Some(frame) = frames.next().unwrap() {
        let entries = frame.entries();
        records.extend(entries.map(|entry| parser.parse(&entry).into_owned()));
    }
    build::from_journal(&disk, Id(1), &closed, |entry| parser.parse(entry)).unwrap();
    let segment = build::open(&disk, Id(1)).unwrap();
    build::merge(
        &disk,
        Id(2),
        &[build::open(&disk, Id(1)).unwrap()],
        Profile::Cold,
        &|| false,
    )
    .unwrap();
    let merged = build::open(&disk, Id(2)).unwrap();
    for (query, expected) in SELECTED {
        let log = logql::parse_log(query).unwrap();
        let found = of_records(&records, &log);
        assert_eq!(found.0, expected, "{query}");
        assert_eq!(of_segment(&segment, &log), found, "{query}");
        assert_eq!(of_segment(&merged, &log), found, "{query}");
    }
    let all = of_records(&records, &logql::parse_log("{}").unwrap()).1;
    let labels = |row: &StreamRow| row.labels.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let shown: Vec<Vec<String>> = all.iter().map(labels).collect();
    let expected = [
        vec!["app=a", "env=prod", "hostname=ash", "service_name=a"],
        vec!["app=y", "hostname=ash", "service_name=y"],
    ];
    assert_eq!(shown, expected);
}

proptest! {
    #[test]
    fn damaged_lines_come_back(lines in prop::collection::vec(line(), 1..40)) {
        check(&lines)?;
    }
}
