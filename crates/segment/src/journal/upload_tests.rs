//! Uploads: what is written is read, and nothing else.

use std::sync::Arc;

use logpond_record::{Batch, EntryKind, Incarnation, Labels, SourceId, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::batches::BatchId;
use crate::disk::Disk;
use crate::mem_disk::MemDisk;

const SOURCE: SourceId = SourceId {
    incarnation: Incarnation(0xb0b),
    sequence: 3,
};

fn name(sequence: u64) -> BatchId {
    BatchId {
        epoch: 0xfeed,
        sequence,
        attempt: 1,
        first_sent: Timestamp(5_000_000),
        more: 0,
    }
}

fn batch(kind: EntryKind, labels: &[(&str, &str)], lines: &[&[u8]]) -> Batch {
    let labels: Labels = labels
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect();
    let mut batch = Batch::new(kind, labels);
    lines.iter().for_each(|line| batch.push(line));
    batch
}

fn small() -> Vec<(Batch, BatchId)> {
    vec![
        (
            batch(
                EntryKind::Line,
                &[("file", "/a")],
                &[b"one", b"", b"t\nwo\xff"],
            ),
            name(0),
        ),
        (batch(EntryKind::Json, &[], &[br#"{"a":1}"#]), name(1)),
    ]
}

type Batches = Vec<(Batch, BatchId)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndPosition {
    Behind,
    Within,
}

fn encode(batches: &[(Batch, BatchId)]) -> Vec<u8> {
    let (mut writer, header) = UploadWriter::begin(SOURCE, Timestamp(1));
    let mut bytes = header.to_vec();
    for (batch, id) in batches {
        bytes.extend_from_slice(writer.frame(batch, *id, Timestamp(2)).unwrap());
    }
    bytes.extend_from_slice(&writer.end());
    bytes
}

/// The batches of all complete uploads, and how the reading ended: by an error, behind an upload, or
/// within one.
fn decode(mut bytes: &[u8]) -> (Vec<Batches>, Result<EndPosition, UploadError>) {
    let mut reader = UploadReader::default();
    let (mut uploads, mut frames) = (Vec::new(), Vec::new());
    while let Some((part, rest)) = bytes.split_at_checked(reader.wanted_bytes()) {
        bytes = rest;
        match reader.take(part) {
            Ok(UploadPart::Header) => {}
            Ok(UploadPart::Frame(batch, id)) => frames.push((batch, id)),
            Ok(UploadPart::End) => uploads.push(std::mem::take(&mut frames)),
            Err(error) => return (uploads, Err(error)),
        }
    }
    let ended = if reader.is_between_uploads() && bytes.is_empty() {
        EndPosition::Behind
    } else {
        EndPosition::Within
    };
    (uploads, Ok(ended))
}

#[test]
fn uploads_follow_each_other() {
    let bytes = [encode(&small()), encode(&[]), encode(&small()[1..])].concat();
    let (uploads, ended) = decode(&bytes);
    assert_eq!(uploads, [small(), vec![], small()[1..].to_vec()]);
    assert_eq!(ended, Ok(EndPosition::Behind));
}

#[test]
fn an_upload_is_a_journal_file() {
    let disk = MemDisk::default();
    let path = super::path(SOURCE, SUFFIX_CLOSED);
    disk.create_directory(DIRECTORY).unwrap();
    let mut file = disk.create(&path).unwrap();
    file.append(&encode(&small())).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let scanned = JournalFile::open(&*disk, &path).unwrap().scan().unwrap();
    assert!(scanned.is_ended() && scanned.damages.count == 0);
}

/// Wherever a byte differs, the upload is not taken: at most the frames before it are.
#[test]
fn no_changed_byte_passes() {
    let good = encode(&small());
    for at in 0..good.len() {
        for bit in [1, 0x80] {
            let mut bytes = good.clone();
            bytes[at] ^= bit;
            let (uploads, ended) = decode(&bytes);
            assert!(uploads.is_empty(), "byte {at}");
            assert!(ended.is_err(), "byte {at}: {ended:?}");
        }
    }
    for at in 1..good.len() {
        let cut = decode(&good[..at]);
        assert_eq!(cut, (Vec::new(), Ok(EndPosition::Within)), "cut at {at}");
    }
}

#[test]
fn what_cannot_be_taken_is_named() {
    let good = encode(&small());
    let frames_swapped = {
        let first = 48 + FRAME_HEADER_BYTES;
        let mut bytes = good.clone();
        bytes[48..first].rotate_left(1);
        bytes
    };
    let one_missing = {
        let one = encode(&small()[..1]);
        let end = one.len() - END_MARK_BYTES;
        [&one[..end], &good[good.len() - END_MARK_BYTES..]].concat()
    };
    let table: [(&[u8], UploadError); 4] = [
        (
            b"Nov 22 10:00:00 ash app: a line that is long enough\n",
            UploadError::Header(FileHeaderError::Damaged),
        ),
        (
            &frames_swapped,
            UploadError::Frame {
                number: 1,
                reason: Reason::Marker,
            },
        ),
        (
            &one_missing,
            UploadError::Frame {
                number: 2,
                reason: Reason::EndMissing,
            },
        ),
        // A server's own journal: its first frame has no name.
        (
            include_bytes!("../../../../testdata/journal/v1.journal"),
            UploadError::Unnamed { number: 1 },
        ),
    ];
    for (bytes, error) in table {
        assert_eq!(decode(bytes).1, Err(error));
    }
}

#[test]
fn batches_beyond_a_frame_are_not_written() {
    let many = batch(EntryKind::Line, &[], &vec![&b""[..]; FRAME_ENTRIES_MAX + 1]);
    let (mut writer, _) = UploadWriter::begin(SOURCE, Timestamp(1));
    let error = writer.frame(&many, name(0), Timestamp(2)).unwrap_err();
    assert!(error.is_refusal());
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        batches in prop::collection::vec(
            (prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20), any::<u32>()),
            0..6,
        )
    ) {
        let batches: Vec<_> = batches
            .iter()
            .map(|(lines, attempt)| {
                let lines: Vec<&[u8]> = lines.iter().map(|line| &line[..]).collect();
                let id = BatchId { attempt: *attempt, ..name(7) };
                (batch(EntryKind::Syslog, &[("a", "b")], &lines), id)
            })
            .collect();
        let (uploads, ended) = decode(&encode(&batches));
        prop_assert_eq!(uploads, vec![batches]);
        prop_assert_eq!(ended, Ok(EndPosition::Behind));
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        fuzz_uploads(&bytes);
    }
}
