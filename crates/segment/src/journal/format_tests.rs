//! The bytes of the format: golden file, damaged bytes, bounds.

use expect_test::expect;
use logpond_record::{Batch, EntryKind, Incarnation, SourceId, Timestamp};
use proptest::prelude::*;

use super::frame::{Encoder, EndMark, FrameParts};
use super::*;
use crate::batches::BatchId;
use crate::mem_disk::MemDisk;
use crate::verify::Finding;

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
        first_sent: Timestamp(1_690_000_000_000_000_000),
        more: 0,
    };
    vec![(lines, None), (json, Some(id)), (syslog, None)]
}

/// A closed file. Each frame was written when all but the one before it was synced.
fn encode(batches: &[(Batch, Option<BatchId>)], codec: Codec) -> Vec<u8> {
    let header = FileHeader {
        source: SOURCE,
        created: Timestamp(1_700_000_000_000_000_000),
    };
    let mut file = header.encode().to_vec();
    let mut encoder = Encoder::new(codec);
    let mut frame = Vec::new();
    let mut number = 42;
    let (mut synced_bytes, mut entries) = (0, 0);
    for (index, (batch, batch_id)) in batches.iter().enumerate() {
        let parts = FrameParts {
            kind: batch.kind,
            labels: &batch.labels,
            lengths: batch.lengths(),
            payload: batch.payload(),
            first_number: number,
            received: Timestamp(1_700_000_000_000_000_000 + index as i64),
            batch_id: *batch_id,
            synced_bytes,
        };
        let offset = file.len() as u64;
        encoder.encode(SOURCE, offset, &parts, &mut frame);
        file.extend_from_slice(&frame);
        number += batch.len() as u64;
        entries += batch.len() as u64;
        synced_bytes = offset;
    }
    let mark = EndMark {
        frames: batches.len() as u64,
        entries,
        synced_bytes,
    };
    file.extend_from_slice(&mark.encode(SOURCE, file.len() as u64));
    file
}

/// Where the end mark of a whole file is.
fn end_mark_at(file: &[u8]) -> usize {
    file.len() - END_MARK_BYTES
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
    let mut numbers = crate::mem_disk::SeededRandom::new(1);
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
    let marker_of_second = end_mark_at(&file) - 200;
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
    file.truncate(end_mark_at(&file) - 1);
    let (_, damages) = decode(&file);
    let texts: Vec<String> = damages.listed.iter().map(Damage::to_string).collect();
    expect![[r#"
        [
            "journal/0123456789abcdef0011223344556677-0000000000000007.journal: bytes 48..348: the frame's checksum is wrong (3 rows)",
            "journal/0123456789abcdef0011223344556677-0000000000000007.journal: bytes 448..524: the frame is cut off (1 rows)",
            "journal/0123456789abcdef0011223344556677-0000000000000007.journal: bytes 524..524: the end mark is missing; whatever else was there is lost",
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

/// What a start makes of a file.
struct Start {
    disk: MemDisk,
    recovered: RecoveryReport,
}

impl std::ops::Deref for Start {
    type Target = RecoveryReport;

    fn deref(&self) -> &RecoveryReport {
        &self.recovered
    }
}

impl Start {
    fn rows(&self) -> u64 {
        self.closed.iter().map(|file| file.summary.rows()).sum()
    }

    /// The batches of the closed file.
    fn batches(&self) -> Vec<Batch> {
        let journal = JournalFile::from_closed(&self.disk, &self.closed[0]).unwrap();
        let mut frames = journal.frames();
        let mut batches = Vec::new();
        while let Some(frame) = frames.next().unwrap() {
            batches.push(frame.to_batch());
        }
        batches
    }
}

/// Damages and remarks.
fn verify(disk: &MemDisk) -> (u64, u64) {
    let mut remarks = 0;
    let totals = crate::verify::data_directory(disk, &mut |finding| {
        remarks += u64::from(matches!(finding, Finding::Remark { .. }));
    });
    (totals.unwrap().damages, remarks)
}

fn recover_as(suffix: &str, file: &[u8]) -> Start {
    let disk = MemDisk::new();
    disk.write(&path(SOURCE, suffix), file);
    let recovered = recover(&disk).unwrap();
    Start { disk, recovered }
}

#[test]
fn a_closed_file_that_was_cut_anywhere_is_told_from_a_whole_one() {
    let (file, places) = many_frames();
    for length in 0..file.len() {
        let (batches, damages) = decode(&file[..length]);
        let whole = places.iter().filter(|(_, end, _)| *end <= length as u64);
        assert_eq!(batches.len(), whole.count(), "{length}");
        let last = damages.listed.last().unwrap();
        assert_eq!(last.to, length as u64);
        assert!(last.rows.is_none(), "nobody knows how much is lost");
        let start = places
            .iter()
            .position(|(start, ..)| *start == length as u64);
        if start.is_some() || length == end_mark_at(&file) {
            let only = (last.reason, last.from, damages.count);
            assert_eq!(only, (Reason::EndMissing, last.to, 1), "{length}");
        }
    }
    assert_eq!(decode(&file).1, Damages::default());
}

#[test]
fn bytes_behind_the_end_mark_are_damage_and_frames_there_are_none() {
    let (mut file, places) = many_frames();
    let end = file.len() as u64;
    file.extend_from_slice(b"more");
    let (batches, damages) = decode(&file);
    assert_eq!(batches.len(), places.len());
    let damage = &damages.listed[..];
    assert!(
        matches!(damage, [d] if d.reason == Reason::AfterEnd && (d.from, d.to) == (end, end + 4))
    );
    // Behind a file that was not closed they are nothing that ever was acknowledged.
    let recovered = recover_as(SUFFIX_OPEN, &file);
    assert_eq!(recovered.damages, []);
    assert_eq!(recovered.cuts.len(), 1);
    assert_eq!(recovered.rows(), 120);
}

#[test]
fn the_end_mark_tells_how_much_is_lost() {
    let (mut file, places) = many_frames();
    // Headers and all of three frames.
    file[places[7].0 as usize..places[9].1 as usize].fill(0);
    let lost: usize = places[7..10].iter().map(|(.., batch)| batch.len()).sum();
    let (_, damages) = decode(&file);
    assert_eq!(damages.count, 1);
    assert_eq!(damages.listed[0].rows, Some(lost as u64));
    // Two such ranges cannot be told apart.
    file[places[20].0 as usize..places[20].1 as usize].fill(0);
    let (_, damages) = decode(&file);
    let rows: Vec<_> = damages.listed.iter().map(|damage| damage.rows).collect();
    assert_eq!(rows, [None, None]);
}

#[test]
fn an_end_mark_that_counts_otherwise_is_damage() {
    let (mut file, _) = many_frames();
    let at = end_mark_at(&file);
    let mark = EndMark {
        frames: 41,
        entries: 123,
        synced_bytes: 0,
    };
    file[at..].copy_from_slice(&mark.encode(SOURCE, at as u64));
    let (_, damages) = decode(&file);
    assert_eq!(damages.count, 1);
    assert_eq!(damages.listed[0].reason, Reason::EndWrong);
    assert_eq!(damages.listed[0].rows, Some(3));
}

#[test]
fn what_was_synced_and_is_lost_is_damage_and_what_was_not_is_cut() {
    let (whole, places) = many_frames();
    let batch = |index: usize| places[index].2.clone();
    let all_but = |lost: std::ops::Range<usize>| -> Vec<Batch> {
        let kept = (0..40).filter(|index| !lost.contains(index));
        kept.map(batch).collect()
    };
    let mut file = whole[..end_mark_at(&whole)].to_vec();
    // Frame 39 states that everything up to frame 38 was synced, so 38 itself is not covered.
    let range = |index: usize| places[index].0 as usize..places[index].1 as usize;
    file[range(38)].fill(0);
    let recovered = recover_as(SUFFIX_OPEN, &file);
    assert_eq!(recovered.damages, []);
    let (from, to, _) = places[38];
    assert!(matches!(&recovered.cuts[..], [cut] if (cut.from, cut.to) == (from, to)));
    assert_eq!(recovered.batches(), all_but(38..39));
    // The frame that moved is where its own header says.
    let scanned = JournalFile::from_closed(&recovered.disk, &recovered.closed[0]).unwrap();
    assert!(scanned.scan().unwrap().is_ended());
    // Together with 37, which is covered: only that is damage.
    file[range(37)].fill(0);
    let recovered = recover_as(SUFFIX_OPEN, &file);
    let damages = &recovered.damages[..];
    let (from, to, _) = places[37];
    assert!(
        matches!(damages, [d] if (d.from, d.to) == (from, to)),
        "{damages:?}"
    );
    assert_eq!(recovered.cuts.len(), 1);
    assert_eq!(recovered.batches(), all_but(37..39));
    // Who only looks says the same, before and afterwards.
    let disk = MemDisk::new();
    disk.write(&path(SOURCE, SUFFIX_OPEN), &file);
    assert_eq!(verify(&disk), (1, 1));
    assert_eq!(verify(&recovered.disk), (1, 0));
    // The last frame without anything behind it: nobody says that it was ever synced.
    let mut file = whole[..end_mark_at(&whole)].to_vec();
    file[places[39].0 as usize + 60] ^= 1;
    let recovered = recover_as(SUFFIX_OPEN, &file);
    assert_eq!((recovered.damages.len(), recovered.cuts.len()), (0, 1));
}

#[test]
fn whole_frames_of_a_newer_version_are_kept_though_they_were_not_synced() {
    let (whole, places) = many_frames();
    // Only the first three, all written when nothing was synced.
    let mut file = whole[..places[2].1 as usize].to_vec();
    for (index, place) in places[..3].iter().enumerate() {
        let header = &mut file[place.0 as usize..][..FRAME_HEADER_BYTES];
        header[16] += u8::from(index == 2);
        frame::place(SOURCE, place.0, 0, header);
    }
    for has_hole in [false, true] {
        if has_hole {
            file[places[1].0 as usize..places[1].1 as usize].fill(0);
        }
        let recovered = recover_as(SUFFIX_OPEN, &file);
        let newer = recovered.damages.last().unwrap();
        assert_eq!(
            (newer.from, newer.reason),
            (places[2].0, Reason::Unsupported)
        );
        assert_eq!(recovered.damages.len(), 1 + usize::from(has_hole));
        let bytes = recovered.disk.read(&recovered.closed[0].path).unwrap();
        assert_eq!(bytes[..file.len()], file);
        let again = recover(&recovered.disk).unwrap();
        assert_eq!(again, recovered.recovered);
    }
}

#[test]
fn the_last_frame_is_known_to_be_synced_once_the_end_mark_says_so() {
    let (mut file, places) = many_frames();
    let at = end_mark_at(&file);
    let mark = EndMark {
        frames: 40,
        entries: 120,
        synced_bytes: at as u64,
    };
    file[at..].copy_from_slice(&mark.encode(SOURCE, at as u64));
    file[at - 1] ^= 1;
    let recovered = recover_as(SUFFIX_OPEN, &file);
    assert_eq!((recovered.damages.len(), recovered.cuts.len()), (1, 0));
    assert_eq!(recovered.damages[0].rows, Some(places[39].2.len() as u64));
    assert_eq!(recovered.closed[0].bytes, file.len() as u64);
    // The closed file has the damage, and a next start says the same of it.
    let again = recover(&recovered.disk).unwrap();
    assert_eq!(again.damages, recovered.damages);
    assert_eq!(again.closed, recovered.closed);
}

#[test]
fn a_file_header_that_was_never_synced_is_made_anew() {
    let (whole, places) = many_frames();
    // Only the first frame, which was written when nothing was synced.
    let mut file = whole[..places[0].1 as usize].to_vec();
    file[..places[0].0 as usize].fill(0);
    let recovered = recover_as(SUFFIX_OPEN, &file);
    assert_eq!(recovered.damages, []);
    assert_eq!(recovered.batches().len(), 1);
    let bytes = recovered.disk.read(&recovered.closed[0].path).unwrap();
    assert_eq!(FileHeader::decode(&bytes), FileHeader::decode(&whole));
    assert_eq!(
        bytes[FILE_HEADER_BYTES..file.len()],
        whole[FILE_HEADER_BYTES..file.len()]
    );
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
                let mut random = crate::mem_disk::SeededRandom::new(seed);
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
        prop_assert_eq!(damages.count > 0, changed, "{:?}", damages);
        // A start on such a file works and gives the same rows, closed before or not.
        let recovered = recover_as(SUFFIX_CLOSED, &file);
        prop_assert_eq!(recovered.rows(), rows);
        prop_assert_eq!(recovered.damages_count > 0, changed && rows > 0);
        let recovered = recover_as(SUFFIX_OPEN, &file);
        prop_assert_eq!(recovered.rows(), rows);
        // Not closed before, so that what is behind all that is known to be synced is no damage.
        let states = |at: usize| {
            let same = file.get(at..at + FRAME_HEADER_BYTES);
            same.is_some() && same == original.get(at..at + FRAME_HEADER_BYTES)
        };
        let starts: Vec<u64> = places.iter().map(|(a, ..)| *a).collect();
        let mark = end_mark_at(&original) as u64;
        let synced = (1..=starts.len())
            .filter(|i| states(*starts.get(*i).unwrap_or(&mark) as usize))
            .map(|i| starts[i - 1])
            .max()
            .unwrap_or(0);
        let is_damaged = changed && (from as u64) < synced;
        prop_assert_eq!(recovered.damages_count > 0, is_damaged && rows > 0);
        if let Some(closed) = recovered.closed.first() {
            let read = JournalFile::from_closed(&recovered.disk, closed).unwrap().scan().unwrap();
            prop_assert_eq!(&read.damages.listed, &recovered.damages);
            prop_assert_eq!(read.summary, closed.summary);
            prop_assert!(read.is_ended());
        }
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
