//! The bytes of the format, as `testdata/segment/v1.parquet` keeps them.
//!
//! If a test here fails because the layout has changed, raise the format version, keep the old
//! file for the reader's test, and write a new one. If only a compressor or this program's name in
//! the footer has changed, `LOGPOND_BLESS=1` writes the file anew.

use std::path::PathBuf;

use super::*;
use crate::verify;

const ROWS: u64 = 140;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/segment/v1.parquet")
}

/// Hot, in two row groups, so that dictionaries, offsets and times restart.
fn written() -> Vec<u8> {
    let (file, _) = write(&samples(ROWS), Profile::Hot, 90);
    file.0.lock().unwrap().clone()
}

fn golden() -> Vec<u8> {
    if std::env::var_os("LOGPOND_BLESS").is_some() {
        std::fs::create_dir_all(path().parent().unwrap()).unwrap();
        std::fs::write(path(), written()).unwrap();
    }
    std::fs::read(path()).unwrap()
}

fn in_memory(bytes: Vec<u8>) -> Memory {
    Memory(Arc::new(Mutex::new(bytes)))
}

#[test]
fn the_golden_file_is_read() {
    let file = in_memory(golden());
    let checked = verify::file(Arc::new(file.clone())).unwrap();
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
    let directory = SegmentFile::open(Arc::new(file))
        .unwrap()
        .read_directory()
        .unwrap();
    assert_eq!(directory.row_groups.len(), 2);
}

/// Everything up to the footer is ours, byte for byte. The footer is Parquet's; what it says must
/// be the same, but for the name of the program that wrote it.
#[test]
fn the_same_rows_give_the_same_bytes() {
    let (golden, now) = (golden(), written());
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
