//! The bytes of the format: golden file, damaged bytes, bounds.

use expect_test::expect;
use logpond_record::{Batch, EntryKind, Incarnation, SourceId, Timestamp};
use proptest::prelude::*;

use super::frame::{Encoder, FrameParts};
use super::*;
use crate::mem_disk::MemDisk;

/// The golden file of format version 1. It must never change: a change of the bytes that the
/// writer makes needs a new format version and a golden file of its own.
const GOLDEN: &[u8] = include_bytes!("../../../../testdata/journal/v1.journal");

const SOURCE: SourceId = SourceId {
    incarnation: Incarnation(0x0123_4567_89ab_cdef_0011_2233_4455_6677),
    sequence: 7,
};

fn labels(pairs: &[(&str, &str)]) -> logpond_record::Labels {
    pairs
        .iter()
        .map(|(n, v)| ((*n).into(), (*v).into()))
        .collect()
}

/// The parts of the golden file: every kind, labels, an empty entry, a long one, a batch id.
fn golden_batches() -> Vec<(Batch, Option<BatchId>)> {
    let mut lines = Batch::new(
        EntryKind::Line,
        labels(&[("hostname", "ash"), ("file", "/a b")]),
    );
    lines.push(b"first");
    lines.push(b"");
    lines.push(&[b'x'; 200]);
    let mut json = Batch::new(EntryKind::Json, labels(&[]));
    json.push(br#"{"a":1}"#);
    let mut syslog = Batch::new(EntryKind::Syslog, labels(&[]));
    syslog.push(b"<13>1 - - - - - - \xff\x00");
    let id = BatchId {
        epoch: 0xfeed,
        sequence: 3,
        attempt: 1,
    };
    vec![(lines, None), (json, Some(id)), (syslog, None)]
}

fn encode(batches: &[(Batch, Option<BatchId>)], codec: Codec) -> Vec<u8> {
    let header = FileHeader {
        source: SOURCE,
        created: Timestamp(1_700_000_000_000_000_000),
    };
    let mut file = header.encode().to_vec();
    let mut encoder = Encoder::new(codec);
    let mut frame = Vec::new();
    let mut number = 42;
    for (index, (batch, batch_id)) in batches.iter().enumerate() {
        let parts = FrameParts {
            kind: batch.kind,
            labels: &batch.labels,
            lengths: batch.lengths(),
            payload: batch.payload(),
            first_number: number,
            received: Timestamp(1_700_000_000_000_000_000 + index as i64),
            batch_id: *batch_id,
        };
        encoder.encode(SOURCE, file.len() as u64, &parts, &mut frame);
        file.extend_from_slice(&frame);
        number += batch.len() as u64;
    }
    file
}

/// Reads a file; gives its batches and its damages.
fn decode(bytes: &[u8]) -> (Vec<(Batch, Option<BatchId>)>, Damages) {
    let disk = MemDisk::new();
    let path = path(SOURCE, SUFFIX_CLOSED);
    disk.write(&path, bytes);
    let journal = JournalFile::open(&disk, &path).unwrap();
    let mut frames = journal.frames();
    let mut batches = Vec::new();
    while let Some(frame) = frames.next().unwrap() {
        batches.push((frame.to_batch(), frame.batch_id()));
    }
    (batches, frames.into_damages())
}

#[test]
fn the_writer_makes_the_golden_bytes() {
    let bytes = encode(&golden_batches(), Codec::None);
    if std::env::var_os("LOGPOND_BLESS").is_some() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../testdata/journal/v1.journal"
        );
        std::fs::write(path, &bytes).unwrap();
        return;
    }
    assert_eq!(
        FORMAT_VERSION, 1,
        "a new version needs a golden file of its own"
    );
    assert!(bytes == GOLDEN, "the bytes of version 1 have changed");
}

#[test]
fn the_golden_bytes_are_read() {
    let (batches, damages) = decode(GOLDEN);
    assert_eq!(batches, golden_batches());
    assert_eq!(damages, Damages::default());
    let header = FileHeader::decode(GOLDEN).unwrap();
    assert_eq!(header.source, SOURCE);
}

#[test]
fn ids_count_on_and_hits_find_their_rows() {
    let disk = MemDisk::new();
    let path = path(SOURCE, SUFFIX_CLOSED);
    disk.write(&path, GOLDEN);
    let journal = JournalFile::open(&disk, &path).unwrap();
    let mut frames = journal.frames();
    let frame = frames.next().unwrap().unwrap();
    assert_eq!(frame.ends(), [5, 5, 205]);
    let rows: Vec<usize> = [0, 4, 5, 204, 205]
        .into_iter()
        .map(|at| frame.row_at(at))
        .collect();
    assert_eq!(rows, [0, 0, 2, 2, 3]);
    let ids: Vec<String> = frame.entries().map(|entry| entry.id.to_string()).collect();
    expect![[r#"
        [
            "01HF7YAT009QQG04926D25ASN1",
            "01HF7YAT009QQG04926D25ASN2",
            "01HF7YAT009QQG04926D25ASN3",
        ]
    "#]]
    .assert_debug_eq(&ids);
    assert_eq!(frame.entry(3).map(|entry| entry.raw), None);
}

#[test]
fn payloads_are_compressed_where_it_pays() {
    let mut text = Batch::new(EntryKind::Line, labels(&[]));
    (0..500).for_each(|i| text.push(format!("GET /page/{i} 200").as_bytes()));
    let mut small = Batch::new(EntryKind::Line, labels(&[]));
    small.push(&[b'x'; 4095]);
    let mut random = Batch::new(EntryKind::Line, labels(&[]));
    let mut numbers = crate::mem_disk::Seeded::new(1);
    (0..1000).for_each(|_| random.push(&numbers.draw().to_le_bytes()));
    let batches = vec![(text, None), (small, None), (random, None)];
    let plain = encode(&batches, Codec::None);
    let compressed = encode(&batches, Codec::Zstd);
    assert!(compressed.len() < plain.len() - 4000);
    assert!(
        compressed.len() > 12_000,
        "what does not pay is stored as it is"
    );
    assert_eq!(decode(&plain).0, batches);
    assert_eq!(decode(&compressed).0, batches);
}

#[test]
fn names_are_read_back() {
    let name = "0123456789abcdef0011223344556677-0000000000000007";
    for suffix in [
        SUFFIX_OPEN,
        SUFFIX_CLOSED,
        SUFFIX_SALVAGE,
        SUFFIX_QUARANTINED,
    ] {
        assert_eq!(path(SOURCE, suffix), format!("journal/{name}{suffix}"));
        assert_eq!(
            parse_name(&format!("{name}{suffix}")),
            Some((SOURCE, suffix))
        );
    }
    let last = SourceId {
        sequence: u64::MAX,
        ..SOURCE
    };
    let long = path(last, SUFFIX_OPEN);
    assert_eq!(
        parse_name(&long["journal/".len()..]),
        Some((last, SUFFIX_OPEN))
    );
    for wrong in [
        "",
        ".open",
        "0123456789abcdef0011223344556677-0000000000000007",
        "0123456789abcdef0011223344556677-0000000000000007.tmp",
        "0123456789abcdef0011223344556677-7.open",
        "0123456789abcdef0011223344556677-00000000000000007.open",
        "0123456789ABCDEF0011223344556677-0000000000000007.open",
        "+123456789abcdef0011223344556677-0000000000000007.open",
        "0123456789abcdef0011223344556677-+000000000000007.open",
        "0123456789abcdef001122334455667-0000000000000007.open",
        "0123456789abcdef0011223344556677-99999999999999999999.open",
    ] {
        assert_eq!(parse_name(wrong), None, "{wrong}");
    }
}

#[test]
fn a_frame_is_good_only_at_its_place() {
    // A log of a journal file: the payload of a damaged frame holds whole frames.
    let inner = encode(&golden_batches(), Codec::None);
    let mut outer = Batch::new(EntryKind::Line, labels(&[]));
    outer.push(&inner);
    let mut file = encode(&[(outer, None), golden_batches().remove(1)], Codec::None);
    let marker_of_second = file.len() - 200;
    file[FILE_HEADER_BYTES + 5] ^= 1;
    let (batches, damages) = decode(&file);
    assert_eq!(batches, [golden_batches().remove(1)]);
    assert_eq!(damages.count, 1);
    assert!(damages.listed[0].to > marker_of_second as u64);
}

#[test]
fn a_payload_full_of_markers_is_searched_in_linear_time() {
    let mut batch = Batch::new(EntryKind::Line, labels(&[]));
    batch.push(&FRAME_MARKER.repeat(1 << 20));
    let mut file = encode(&[(batch, None), golden_batches().remove(0)], Codec::None);
    file[FILE_HEADER_BYTES] ^= 1;
    let (batches, damages) = decode(&file);
    assert_eq!(batches, [golden_batches().remove(0)]);
    assert_eq!(damages.count, 1);
}

#[test]
fn damages_say_what_is_lost() {
    let mut file = encode(&golden_batches(), Codec::None);
    file[FILE_HEADER_BYTES + FRAME_HEADER_BYTES + 3] ^= 1;
    file.truncate(file.len() - 1);
    let (_, damages) = decode(&file);
    let texts: Vec<String> = damages.listed.iter().map(Damage::to_string).collect();
    expect![[r#"
        [
            "journal/0123456789abcdef0011223344556677-0000000000000007.journal: bytes 48..348: the frame's checksum is wrong (3 rows)",
            "journal/0123456789abcdef0011223344556677-0000000000000007.journal: bytes 440..516: the frame is cut off (1 rows)",
        ]
    "#]]
    .assert_debug_eq(&texts);
}

#[test]
fn newer_versions_are_named_not_guessed() {
    let mut file = encode(&golden_batches(), Codec::None);
    file[8] = 2;
    let checksum = crc32c::crc32c(&file[..44]);
    file[44..48].copy_from_slice(&checksum.to_le_bytes());
    let disk = MemDisk::new();
    let path = path(SOURCE, SUFFIX_OPEN);
    disk.write(&path, &file);
    let Err(OpenError::Version { version: 2, .. }) = JournalFile::open(&disk, &path) else {
        panic!("opened");
    };
    // It is left where it is, whatever its name.
    let recovered = recover(&disk).unwrap();
    assert_eq!(recovered.unusable.len(), 1);
    assert_eq!(disk.read(&path).unwrap(), file);
}

/// A file of many small frames and where each of them lies.
fn many_frames() -> (Vec<u8>, Vec<(u64, u64, Batch)>) {
    let batches: Vec<_> = (0..40u8)
        .map(|i| {
            let mut batch = Batch::new(EntryKind::Line, labels(&[("n", &i.to_string())]));
            (0..=i % 5).for_each(|j| batch.push(&vec![i + j; usize::from(i) * 7]));
            (batch, None)
        })
        .collect();
    let file = encode(&batches, Codec::None);
    let disk = MemDisk::new();
    let path = path(SOURCE, SUFFIX_CLOSED);
    disk.write(&path, &file);
    let mut frames = JournalFile::open(&disk, &path).unwrap().frames();
    let mut places = Vec::new();
    while let Some(frame) = frames.next().unwrap() {
        places.push((
            frame.offset(),
            frame.offset() + frame.bytes(),
            frame.to_batch(),
        ));
    }
    assert_eq!(places.len(), 40);
    (file, places)
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    Flip,
    Zero,
    Random(u64),
    CutOff,
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        Just(Harm::Flip),
        Just(Harm::Zero),
        any::<u64>().prop_map(Harm::Random),
        Just(Harm::CutOff),
    ]
}

proptest! {
    #[test]
    fn undamaged_frames_are_read_whatever_happens_to_the_others(
        from in 0usize..7000,
        length in 1usize..600,
        harm in harm(),
    ) {
        let (mut file, places) = many_frames();
        let from = from.min(file.len() - 1);
        let to = (from + length).min(file.len());
        let original = file.clone();
        let to = match harm {
            Harm::Flip => { file[from..to].iter_mut().for_each(|b| *b ^= 0x40); to }
            Harm::Zero => { file[from..to].fill(0); to }
            Harm::Random(seed) => {
                let mut random = crate::mem_disk::Seeded::new(seed);
                file[from..to].iter_mut().for_each(|b| *b = random.draw() as u8);
                to
            }
            Harm::CutOff => { file.truncate(from); original.len() }
        };
        let changed = file.len() != original.len() || file[from..to] != original[from..to];
        let (batches, damages) = decode(&file);
        let expected: Vec<_> = places
            .iter()
            .filter(|(a, b, _)| {
                let same = file.get(*a as usize..*b as usize) == original.get(*a as usize..*b as usize);
                same || *b <= from as u64 || *a >= to as u64 && *b <= file.len() as u64
            })
            .map(|(_, _, batch)| (batch.clone(), None))
            .collect();
        let rows: u64 = expected.iter().map(|(batch, _)| batch.len() as u64).sum();
        prop_assert_eq!(batches, expected);
        // A start on such a file works and gives the same rows, closed before or not.
        for suffix in [SUFFIX_OPEN, SUFFIX_CLOSED] {
            let disk = MemDisk::new();
            disk.write(&path(SOURCE, suffix), &file);
            let recovered = recover(&disk).unwrap();
            prop_assert_eq!(recovered.closed.iter().map(|f| f.summary.rows()).sum::<u64>(), rows);
        }
        // A file cut off between two frames cannot be told from a shorter one.
        let between = places.iter().any(|(a, _, _)| *a == file.len() as u64);
        let told = damages.count > 0 || (matches!(harm, Harm::CutOff) && (between || file.is_empty()));
        prop_assert_eq!(told || !changed, true);
    }

    #[test]
    fn any_bytes_are_fine(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        fuzz_frames(&bytes);
    }

    #[test]
    fn any_bytes_with_a_good_beginning_are_fine(
        at in 0usize..500,
        bytes in prop::collection::vec(any::<u8>(), 1..20),
        from in 0usize..3,
    ) {
        // Starting at a frame gets past the header when its checksums are taken for right.
        let (file, places) = many_frames();
        let mut file = file[places[from].0 as usize..].to_vec();
        file.splice(at..at + bytes.len(), bytes.iter().copied());
        fuzz_frames(&file);
    }
}
