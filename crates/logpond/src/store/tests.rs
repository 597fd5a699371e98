//! Whatever is received comes back byte for byte from a segment and from a merge of segments.

use std::sync::Arc;

use logpond_protocol::intake::Parser;
use logpond_record::{Batch, EntryKind, Id, Incarnation, Timestamp};
use logpond_segment::build;
use logpond_segment::disk::Disk;
use logpond_segment::file::Profile;
use logpond_segment::journal::{self, Writer};
use logpond_segment::mem_disk::MemDisk;
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

proptest! {
    #[test]
    fn damaged_lines_come_back(lines in prop::collection::vec(line(), 1..40)) {
        check(&lines)?;
    }
}
