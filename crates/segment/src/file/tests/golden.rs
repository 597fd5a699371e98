//! The bytes of the format, as `testdata/segment/v4.parquet` keeps them. `v3.parquet`, `v2.parquet` and `v1.parquet` have
//! the same rows in earlier versions, and `v1-interleaved.parquet` with each token index behind its row group.
//! `v4-wide.parquet` and the others of this name have lines with more fields than a shape that rebuilds them may
//! have, and numbers that no integer and no float is; `v1-wide-earlier.parquet` are the same rows of writers that
//! did not count whole numbers beside lines.
//!
//! If a test here fails because the layout has changed, raise the format version, keep the old
//! file for the reader's test, and write a new one. If only a compressor or this program's name in
//! the footer has changed, `LOGPOND_BLESS=1` writes the file anew.

use std::path::PathBuf;

use super::*;
use crate::verify;

const ROWS: u64 = 140;

fn path(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/segment");
    directory.join(name)
}

/// Hot, in two row groups, so that dictionaries, offsets and times restart.
fn written() -> Vec<u8> {
    let (file, _) = write(&samples(ROWS), Profile::Hot, 90);
    file.0.lock().unwrap().clone()
}

/// Lines of three thousand fields, some with names that slots do not have as they are.
fn wide() -> Vec<Record<'static>> {
    let mut shapes = ShapeTable::new();
    let names: Vec<String> = (0..3000)
        .map(|n| format!("attribute_number_{n:04}_x"))
        .collect();
    let odd = ["⟨a⟩", "_time:%Y", "\u{fdd0}<"].map(str::to_owned);
    let names = [names, odd.to_vec()].concat();
    let mut text = b"{".to_vec();
    let mut line = String::from("{\"attribute_number_0000_x\":\"first\"");
    for (at, name) in names.iter().enumerate() {
        text.extend_from_slice("⟨".as_bytes());
        Shape::write_listed_name(name, &mut text);
        text.extend_from_slice(":i⟩".as_bytes());
        line += &format!(",\"{name}\":{at}");
    }
    text.push(b'}');
    line.push('}');
    let shape = Arc::new(Shape::new(std::str::from_utf8(&text).unwrap()).unwrap());
    let listed = |n: u64| {
        let mut record = record(&mut shapes, n, "{⟨a:n⟩}", vec![Value::Null]);
        record.shape = Arc::clone(&shape);
        record.values = (0..names.len() as i64).map(Value::Int).collect();
        record.whole = Some(line.clone().into_bytes().into());
        record.labels = vec![("_unlisted_fields".into(), Value::Int(n as i64 + 1))];
        record
    };
    let mut records: Vec<Record<'static>> = (0..3).map(listed).collect();
    let large = [
        "18446744073709551615",
        "-9223372036854775809",
        "0.1234567890123456789",
    ];
    for (n, digits) in large.into_iter().enumerate() {
        let values = vec![
            Value::Json(digits.into()),
            Value::Json(format!("{digits}1").into()),
        ];
        records.push(record(
            &mut shapes,
            3 + n as u64,
            "{\"id\":⟨id:r⟩,\"k\":⟨status:r⟩}",
            values,
        ));
    }
    records
}

fn golden() -> Vec<u8> {
    kept("v4.parquet", &written())
}

/// The bytes of a file in `testdata`; with `LOGPOND_BLESS` those that are written now.
fn kept(name: &str, now: &[u8]) -> Vec<u8> {
    if std::env::var_os("LOGPOND_BLESS").is_some() {
        std::fs::write(path(name), now).unwrap();
    }
    std::fs::read(path(name)).unwrap()
}

#[test]
fn wide_lines_are_read() {
    let records = wide();
    let (file, _) = write(&records, Profile::Hot, 90);
    let now = file.0.lock().unwrap().clone();
    let golden = kept("v4-wide.parquet", &now);
    check_same(golden.clone(), now);
    check_wide(&records, golden, 3);
    for earlier in ["v3-wide.parquet", "v2-wide.parquet", "v1-wide.parquet"] {
        check_wide(&records, std::fs::read(path(earlier)).unwrap(), 3);
    }
    let earlier = std::fs::read(path("v1-wide-earlier.parquet")).unwrap();
    check_wide(&records, earlier, 0);
}

/// Checks that a file holds these records, and how many whole numbers beside lines it counts.
fn check_wide(records: &[Record<'static>], bytes: Vec<u8>, labels: u64) {
    let file = in_memory(bytes);
    let checked = verify::file(Arc::new(file.clone()), None).unwrap();
    assert_eq!((checked.damages, checked.rows), (vec![], 6));
    let found = read_all(&file).unwrap();
    for (expected, (bytes, got)) in records.iter().zip(&found) {
        assert_eq!(*bytes, line(expected));
        assert_eq!(fields(got), fields(expected));
    }
    assert_eq!(found[0].1.field("⟨a⟩"), Some(&Value::Int(3000)));
    assert_eq!(
        found[2].1.field("attribute_number_2999_x"),
        Some(&Value::Int(2999))
    );
    let segment = SegmentFile::open(Arc::new(file)).unwrap();
    let counts = segment.read_directory().unwrap().counts;
    assert_eq!(counts.fields["_unlisted_fields"].label_int, labels);
}

fn in_memory(bytes: Vec<u8>) -> Memory {
    Memory(Arc::new(Mutex::new(bytes)))
}

#[test]
fn the_golden_file_is_read() {
    let directory = check_samples(golden());
    assert!(directory.tokens_range().is_some());
}

#[test]
fn files_of_earlier_writers_are_read() {
    for earlier in ["v3.parquet", "v2.parquet", "v1.parquet"] {
        let directory = check_samples(std::fs::read(path(earlier)).unwrap());
        assert!(directory.tokens_range().is_some());
    }
    let directory = check_samples(std::fs::read(path("v1-interleaved.parquet")).unwrap());
    assert!(directory.tokens_range().is_none());
    assert!(directory.words_range().is_some(), "there is one list");
}

/// Checks that a file holds the samples and that words are found in it.
fn check_samples(bytes: Vec<u8>) -> Directory {
    let file = in_memory(bytes);
    let checked = verify::file(Arc::new(file.clone()), None).unwrap();
    assert_eq!((checked.damages, checked.rows), (vec![], ROWS));
    let found = read_all(&file).unwrap();
    for (expected, (bytes, got)) in samples(ROWS).iter().zip(&found) {
        assert_eq!(*bytes, line(expected));
        assert_eq!(
            (got.id, got.time, got.received, got.time_source),
            (
                expected.id,
                expected.time,
                expected.received,
                expected.time_source
            )
        );
        assert_eq!(got.message, expected.message);
        assert_eq!(fields(got), fields(expected));
    }
    let segment = SegmentFile::open(Arc::new(file)).unwrap();
    let directory = segment.read_directory().unwrap();
    assert_eq!(directory.row_groups.len(), 2);
    for (token, is_there) in [("Grüße", true), ("nowhere", false)] {
        let found = segment.row_group(&directory, 1).look_up(token.as_bytes());
        assert_eq!(!found.unwrap().is_empty(), is_there, "{token}");
    }
    let words = segment.words(&directory, 0).unwrap();
    assert!(
        words
            .holding("üß".as_bytes(), false, false, false)
            .is_some_and(|w| !w.is_empty())
    );
    directory
}

/// Everything up to the footer is ours, byte for byte. The footer is Parquet's; what it says must
/// be the same, but for the name of the program that wrote it.
#[test]
fn the_same_rows_give_the_same_bytes() {
    check_same(golden(), written());
}

fn check_same(golden: Vec<u8>, now: Vec<u8>) {
    let footer = |bytes: &[u8]| {
        let file = in_memory(bytes.to_vec());
        SegmentFile::open(Arc::new(file)).unwrap().footer_from() as usize
    };
    let (end, end_now) = (footer(&golden), footer(&now));
    let same = golden[..end]
        .iter()
        .zip(&now[..end_now])
        .take_while(|(a, b)| a == b);
    let same = same.count();
    assert!(
        same == end && end == end_now,
        "bytes differ from {same} on: see the top of this file"
    );
    let said = |bytes: Vec<u8>| {
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let metadata = reader.metadata();
        let keys = metadata.file_metadata().key_value_metadata().unwrap();
        let keys: Vec<_> = keys
            .iter()
            .filter(|k| k.key != "logpond.tail")
            .cloned()
            .collect();
        let schema = metadata.file_metadata().schema().clone();
        (keys, schema, metadata.row_groups().to_vec())
    };
    assert_eq!(said(golden), said(now));
}
