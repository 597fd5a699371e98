//! Segments from journal files and from segments, on a disk in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use logpond_record::{
    Assumption, Batch, EntryKind, Envelope, Message, ShapeTable, SourceId, TimeSource, Timestamp,
    Value,
};

use super::*;
use crate::file::{Directory, ROW_GROUP_ROWS_MAX, SegmentWriter};
use crate::journal::{self, Writer};
use crate::mem_disk::{Call, Fault, MemDisk};
use crate::rows::{Plans, RowsView};
use crate::sources::SourceSet;
use crate::verify;

const SECOND_NS: i64 = 1_000_000_000;

/// Closed journal files with so many rows each. Row *n* has its number as its text, and a time
/// that jumps back and forth within a minute.
pub(super) fn journals(disk: &MemDisk, rows: &[u64]) -> Vec<ClosedFile> {
    disk.create_directory(DIRECTORY).unwrap();
    let mut writer = Writer::new(Arc::new(disk.clone()), journal::Settings::default());
    let mut number = 0;
    for (file, count) in rows.iter().enumerate() {
        for first in (0..*count).step_by(10_000) {
            let mut batch = Batch::new(EntryKind::Line, Vec::new());
            for _ in first..(*count).min(first + 10_000) {
                batch.push(format!("{number}").as_bytes());
                number += 1;
            }
            let now = Timestamp((1000 + file as i64) * SECOND_NS);
            writer.append(&batch, now, || Incarnation(5)).unwrap();
        }
        writer.close().unwrap();
    }
    writer.visible().snapshot().closed.to_vec()
}

fn time_of(number: i64) -> Timestamp {
    Timestamp(1000 * SECOND_NS + number * 7919 % 60_000 * 1_000_000)
}

pub(super) fn decode<'e>(entry: &Entry<'e>) -> Record<'e> {
    let text = std::str::from_utf8(entry.raw).unwrap();
    Record {
        id: entry.id,
        time: time_of(text.parse().unwrap()),
        time_source: TimeSource::Line(Assumption::Nothing),
        received: entry.received,
        message: Message::Part(Value::Str(Cow::Borrowed(text))),
        shape: ShapeTable::new().text(),
        values: vec![Value::Null],
        fixes: Vec::new(),
        labels: Vec::new(),
        whole: None,
    }
}

pub(super) fn build(disk: &MemDisk, id: u128, files: &[ClosedFile]) -> SegmentFile {
    let built = from_journal(disk, Id(id), files, decode).unwrap();
    assert_eq!(built.damages.count, 0);
    open(disk, Id(id)).unwrap()
}

/// Writes a live segment of these rows, whatever its sources say of them.
fn write(
    disk: &MemDisk,
    id: Id,
    mut builder: RowsBuilder,
    sources: Vec<SourceEntry>,
) -> Result<FinishedFile, ParquetError> {
    let counts = builder.counts();
    let schema = counts.schema();
    let file = disk.create(&path(id, SUFFIX_LIVE)).unwrap();
    let mut writer =
        SegmentWriter::new(file, id, Profile::Hot, counts, schema.clone(), sources).unwrap();
    writer.write(&builder.take(&schema))?;
    writer.finish()
}

/// Hands over each row with its number in the block and the number that its line is; checks the segment and the
/// order of its row groups.
pub(super) fn each_row(segment: &SegmentFile, mut each: impl FnMut(&RowsView<'_>, usize, u64)) {
    assert_eq!(verify::deep(segment).unwrap(), []);
    let directory = segment.read_directory().unwrap();
    let mut plans = Plans::default();
    let mut reached = i64::MIN;
    for group in 0..directory.row_groups.len() {
        let (from, to) = directory.row_groups[group].time_bounds();
        assert!(reached <= from, "row groups are slices of time");
        reached = to;
        let mut reader = segment.row_group(&directory, group);
        for block in 0..directory.row_groups[group].blocks.len() {
            let rows = reader.rows(block).unwrap();
            let view = RowsView::new(&rows, &directory.schema, &mut plans);
            for row in 0..rows.len() {
                let mut line = Vec::new();
                view.write_line(row, &mut line);
                let number = String::from_utf8(line).unwrap().parse().unwrap();
                assert_eq!(rows.time[row], time_of(number as i64).0);
                each(&view, row, number);
            }
        }
    }
}

/// Every line with how often it is there.
pub(super) fn lines(segment: &SegmentFile) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    each_row(segment, |_, _, number| {
        *found.entry(number).or_insert(0) += 1
    });
    found
}

pub(super) fn once(numbers: impl Iterator<Item = u64>) -> BTreeMap<u64, u64> {
    numbers.map(|number| (number, 1)).collect()
}

pub(super) fn names(disk: &MemDisk) -> Vec<String> {
    let entries = disk.list(DIRECTORY).unwrap();
    entries.into_iter().map(|entry| entry.name).collect()
}

#[test]
fn what_is_left_of_a_journal_file_that_was_damaged_later_becomes_a_segment() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[25_000]);
    let mut bytes = disk.read(&files[0].path).unwrap();
    // Within the first of three frames.
    bytes[1000] ^= 1;
    disk.write(&files[0].path, &bytes);
    let built = from_journal(&disk, Id(1), &files, decode).unwrap();
    assert_eq!(built.damages.count, 1);
    let segment = open(&disk, Id(1)).unwrap();
    assert_eq!(segment.manifest().sources[0].rows, 15_000);
    assert_eq!(lines(&segment), once(10_000..25_000));
}

#[test]
fn a_segment_lists_what_the_journal_files_held() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[300, 1, 200]);
    // The order of the files does not matter.
    let shuffled = [files[2].clone(), files[0].clone(), files[1].clone()];
    let segment = build(&disk, 1, &shuffled);
    let manifest = segment.manifest();
    let listed: Vec<_> = manifest
        .sources
        .iter()
        .map(|s| (s.source, s.rows, s.hash))
        .collect();
    let expected: Vec<_> = files
        .iter()
        .map(|f| (f.source, f.summary.tally.rows, f.summary.tally.hash_sum))
        .collect();
    assert_eq!(listed, expected);
    assert_eq!(lines(&segment), once(0..501));
    assert_eq!(names(&disk), [format!("{}.parquet", Id(1))]);
}

#[test]
fn a_shared_source_is_taken_once() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[100, 50, 70]);
    let inputs = [
        build(&disk, 1, &files[..2]),
        build(&disk, 2, &files[1..]),
        build(&disk, 3, &files[1..2]),
    ];
    let written = merge(&disk, Id(9), &inputs, Profile::Cold, &|| false).unwrap();
    assert_eq!((written.manifest.rows, written.manifest.cold), (220, true));
    let sources: Vec<SourceId> = written.manifest.sources.iter().map(|s| s.source).collect();
    assert_eq!(sources, files.iter().map(|f| f.source).collect::<Vec<_>>());
    assert_eq!(lines(&open(&disk, Id(9)).unwrap()), once(0..220));
}

#[test]
fn merging_in_any_grouping_gives_the_same_rows() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[40, 40, 40, 40]);
    let each: Vec<SegmentFile> = files
        .iter()
        .enumerate()
        .map(|(n, file)| build(&disk, 1 + n as u128, std::slice::from_ref(file)))
        .collect();
    let merged = |id, inputs: &[SegmentFile]| {
        merge(&disk, Id(id), inputs, Profile::Hot, &|| false).unwrap();
        open(&disk, Id(id)).unwrap()
    };
    let pairs = [merged(11, &each[..2]), merged(12, &each[2..])];
    let (twice, at_once) = (merged(13, &pairs), merged(14, &each));
    assert_eq!(lines(&twice), once(0..160));
    assert_eq!(lines(&at_once), once(0..160));
    assert_eq!(twice.manifest().sources, at_once.manifest().sources);
}

#[test]
fn many_rows_become_slices_of_time() {
    let disk = MemDisk::new();
    let count = ROW_GROUP_ROWS_MAX as u64 + 20_000;
    let files = journals(&disk, &[count / 2, count - count / 2]);
    let segment = build(&disk, 1, &files);
    let directory = segment.read_directory().unwrap();
    assert!(directory.row_groups.len() > 1);
    let rows = directory.row_groups.iter().map(|group| group.rows());
    assert!(rows.clone().all(|rows| rows <= ROW_GROUP_ROWS_MAX));
    assert_eq!(rows.sum::<usize>() as u64, count);
    assert_eq!(lines(&segment), once(0..count));
}

/// A writer that is given other rows than its sources have must not make a file of them (R4).
#[test]
fn rows_that_do_not_add_up_end_the_writing() {
    let source = |sequence, rows| SourceEntry {
        source: SourceId {
            incarnation: Incarnation(5),
            sequence,
        },
        rows,
        hash: 0,
        retry: None,
    };
    let table = [
        (vec![source(0, 2), source(1, 1)], true),
        (vec![source(0, 1), source(1, 2)], false),
        (vec![source(0, 3), source(1, 1)], false),
        (vec![source(0, 3)], false),
    ];
    for (number, (sources, is_fine)) in table.into_iter().enumerate() {
        let disk = MemDisk::new();
        disk.create_directory(DIRECTORY).unwrap();
        let mut builder = RowsBuilder::new();
        for (row, source) in [0, 0, 1].into_iter().enumerate() {
            let entry = Entry {
                id: Id::new(1, Incarnation(5), row as u64),
                received: Timestamp(1_000_000),
                kind: EntryKind::Line,
                labels: &Vec::new(),
                envelope: Envelope::default(),
                raw: b"7",
            };
            builder.push(&decode(&entry), row as u64, source, 1);
        }
        let result = write(&disk, Id(1), builder, sources);
        assert_eq!(result.is_ok(), is_fine, "case {number}: {result:?}");
    }
}

/// However many rows a journal file has, only so many are held at a time; the segment is the same.
#[test]
fn rows_beyond_the_memory_are_put_in_order_by_parts() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[50_000, 1, 30_000]);
    let whole = build(&disk, 1, &files);
    for (id, memory_bytes_max) in [(2, 1), (3, 3 << 20), (4, 6 << 20)] {
        let within = BuildLimits {
            memory_bytes_max,
            ..BuildLimits::default()
        };
        let built = from_journal_within(&disk, Id(id), &files, within, decode).unwrap();
        assert_eq!(built.written.manifest.sources, whole.manifest().sources);
        let segment = open(&disk, Id(id)).unwrap();
        assert_eq!(
            lines(&segment),
            once(0..80_001),
            "within {memory_bytes_max}"
        );
        purge(&disk, &[Id(id)]).unwrap();
        assert_eq!(names(&disk), [format!("{}.parquet", Id(1))]);
    }
}

/// Files that do not fit into memory with those before wait for the next segment: their rows are written
/// once and not in parts.
#[test]
fn files_that_fit_go_together() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[10_000; 6]);
    let mut taken = Vec::new();
    let mut left = files.clone();
    while !left.is_empty() {
        let id = taken.len() as u64 + 1;
        let within = BuildLimits {
            memory_bytes_max: 3 << 20,
            takes: FileSelection::Fitting,
            ..BuildLimits::default()
        };
        disk.take_calls();
        let built = from_journal_within(&disk, Id(id.into()), &left, within, decode).unwrap();
        let calls = disk.take_calls();
        // Its own file, and no part.
        assert_eq!(
            calls.iter().filter(|call| **call == Call::Create).count(),
            1
        );
        let sources = built.written.manifest.sources;
        left.retain(|file| sources.iter().all(|entry| entry.source != file.source));
        taken.push(sources.len());
    }
    assert_eq!(taken.iter().sum::<usize>(), 6);
    assert!(taken.len() > 1 && taken[0] > 1, "{taken:?}");
    let segments = (1..=taken.len() as u64).map(|id| open(&disk, Id(id.into())).unwrap());
    let rows: usize = segments.map(|segment| lines(&segment).len()).sum();
    assert_eq!(rows, 60_000);
}

/// A file that does not fit goes alone, in parts.
#[test]
fn a_file_beyond_the_memory_goes_alone() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[50_000, 10, 10]);
    let within = BuildLimits {
        memory_bytes_max: 1,
        takes: FileSelection::Fitting,
        ..BuildLimits::default()
    };
    let built = from_journal_within(&disk, Id(1), &files, within, decode).unwrap();
    assert_eq!(built.written.manifest.sources.len(), 1);
    let segment = open(&disk, Id(1)).unwrap();
    assert_eq!(lines(&segment), once(0..50_000));
}

/// Whatever ends the work in parts, all of them go.
#[test]
fn parts_of_a_segment_that_was_not_made_are_removed() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[50_000]);
    let asked = std::cell::Cell::new(0);
    for stop_at in [1, 3, 5] {
        asked.set(0);
        let within = BuildLimits {
            memory_bytes_max: 1,
            is_stopped: &|| {
                asked.set(asked.get() + 1);
                asked.get() >= stop_at
            },
            ..BuildLimits::default()
        };
        let built = from_journal_within(&disk, Id(1), &files, within, decode);
        assert!(matches!(built, Err(BuildError::Stopped)), "at {stop_at}");
        assert!(stop_at == 1 || !names(&disk).is_empty());
        match stop_at {
            3 => assert!(open_all(&disk).unwrap().live.is_empty()),
            _ => discard(&disk, Id(1)).unwrap(),
        }
        assert_eq!(names(&disk), [""; 0], "at {stop_at}");
    }
}

/// Row groups of one instant are opened one at a time of each input.
#[test]
fn rows_of_one_instant_are_merged_without_being_held_together() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[9_000, 7_000]);
    let at_once = |entry: &Entry<'_>| {
        let mut record = decode(entry).into_owned();
        record.time = Timestamp(0);
        record
    };
    let mut inputs = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let mut builder = RowsBuilder::new();
        let journal = JournalFile::from_closed(&disk, file).unwrap();
        let mut frames = journal.frames();
        let mut groups = Vec::new();
        while let Some(frame) = frames.next().unwrap() {
            for entry in frame.entries() {
                let row = number_of(entry.id, file.source.incarnation);
                builder.push(&at_once(&entry), row, 0, entry.raw.len());
                if builder.len() == 1_000 {
                    groups.push(std::mem::take(&mut builder));
                }
            }
        }
        let source = SourceEntry {
            source: file.source,
            rows: file.summary.tally.rows,
            hash: file.summary.tally.hash_sum,
            retry: None,
        };
        let counts = groups[0].counts();
        let schema = counts.schema();
        let id = Id(1 + number as u128);
        let to = disk.create(&path(id, SUFFIX_LIVE)).unwrap();
        let mut writer =
            SegmentWriter::new(to, id, Profile::Hot, counts, schema.clone(), vec![source]).unwrap();
        for group in &mut groups {
            writer.write(&group.take(&schema)).unwrap();
        }
        writer.finish().unwrap();
        inputs.push(open(&disk, id).unwrap());
    }
    let open_max = merger::most_open(&inputs);
    assert_eq!(open_max, 2, "of 16 row groups");
    let merged = merge(&disk, Id(9), &inputs, Profile::Hot, &|| false).unwrap();
    assert_eq!(merged.manifest.rows, 16_000);
}

/// What is written must hold what it was made of, line by line (R4).
#[test]
fn lines_that_differ_make_no_segment() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[40]);
    let alter = |entry: &Entry<'_>| {
        let mut record = decode(entry).into_owned();
        if entry.raw == b"17" {
            record.message = Message::Part(Value::Str("71".into()));
        }
        record
    };
    let built = from_journal(&disk, Id(1), &files, |entry| alter(entry));
    assert!(matches!(built, Err(BuildError::Differs(_))));
    discard(&disk, Id(1)).unwrap();
    assert_eq!(names(&disk), [""; 0]);
}

/// A segment whose rows are not what its manifest says does not get into a merge unnoticed.
#[test]
fn a_merge_of_other_rows_than_the_sources_say_is_not_kept() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[30, 1]);
    let whole = build(&disk, 1, &files[1..]);
    let mut builder = RowsBuilder::new();
    let journal = JournalFile::from_closed(&disk, &files[0]).unwrap();
    let mut frames = journal.frames();
    while let Some(frame) = frames.next().unwrap() {
        for entry in frame.entries() {
            let row = number_of(entry.id, files[0].source.incarnation);
            builder.push(&decode(&entry), row, 0, entry.raw.len());
        }
    }
    let source = SourceEntry {
        source: files[0].source,
        rows: 30,
        hash: files[0].summary.tally.hash_sum ^ 1,
        retry: None,
    };
    write(&disk, Id(2), builder, vec![source]).unwrap();
    let other = open(&disk, Id(2)).unwrap();
    let merged = merge(&disk, Id(9), &[other, whole], Profile::Hot, &|| false);
    assert!(matches!(merged, Err(BuildError::Differs(_))));
    discard(&disk, Id(9)).unwrap();
    assert_eq!(names(&disk).len(), 2);
}

#[test]
fn a_damaged_input_ends_a_merge_and_stays_as_it_is() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[500, 500]);
    build(&disk, 1, &files[..1]);
    build(&disk, 2, &files[1..]);
    let damaged = path(Id(2), SUFFIX_LIVE);
    let whole = disk.read(&damaged).unwrap();
    let segment = open(&disk, Id(2)).unwrap();
    let directory = segment.read_directory().unwrap();
    let page = directory.row_groups[0].columns[0].pages[0];
    let mut bytes = whole.clone();
    bytes[page.offset as usize + page.header_bytes as usize] ^= 1;
    disk.write(&damaged, &bytes);
    let inputs = [open(&disk, Id(1)).unwrap(), open(&disk, Id(2)).unwrap()];
    let before: Vec<_> = [1, 2]
        .map(|id| disk.read(&path(Id(id), SUFFIX_LIVE)))
        .into();
    let result = merge(&disk, Id(9), &inputs, Profile::Hot, &|| false);
    let Err(BuildError::Input(ReadError::Damaged(damage))) = result else {
        panic!("a damaged input must end the merge");
    };
    assert_eq!(
        (damage.offset, damage.bytes),
        (page.offset, u64::from(page.bytes))
    );
    discard(&disk, Id(9)).unwrap();
    let after: Vec<_> = [1, 2]
        .map(|id| disk.read(&path(Id(id), SUFFIX_LIVE)))
        .into();
    assert_eq!(before, after);
    assert_eq!(names(&disk).len(), 2);
    // Damage in the directory is found before anything is written.
    let mut bytes = whole;
    let end = segment.footer_from() as usize;
    bytes[end - 8..end].fill(0x55);
    disk.write(&damaged, &bytes);
    let inputs = [open(&disk, Id(1)).unwrap(), open(&disk, Id(2)).unwrap()];
    let result = merge(&disk, Id(9), &inputs, Profile::Hot, &|| false);
    assert!(matches!(result, Err(BuildError::Input(_))));
    assert_eq!(names(&disk).len(), 2);
}

#[test]
fn a_full_disk_ends_it_and_nothing_is_left() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[2000, 2000]);
    let inputs = [build(&disk, 1, &files[..1]), build(&disk, 2, &files[1..])];
    let space = disk.space().unwrap();
    let used = space.total_bytes - space.free_bytes;
    for free in [0, 1, 1000, 10_000] {
        disk.set_capacity(Some(used + free));
        let built = from_journal(&disk, Id(8), &files, decode).map(|_| ());
        let merged = merge(&disk, Id(9), &inputs, Profile::Hot, &|| false).map(|_| ());
        for (id, result) in [(8, built), (9, merged)] {
            assert!(
                matches!(result, Err(BuildError::Write(_) | BuildError::Disk(_))),
                "{free} bytes free: {result:?}"
            );
            discard(&disk, Id(id)).unwrap();
        }
        assert_eq!(names(&disk).len(), 2);
        let space = disk.space().unwrap();
        assert_eq!(space.free_bytes, free, "all room is given back");
    }
    disk.set_capacity(None);
    merge(&disk, Id(9), &inputs, Profile::Hot, &|| false).unwrap();
    assert_eq!(lines(&open(&disk, Id(9)).unwrap()), once(0..4000));
}

#[test]
fn stopping_ends_a_merge() {
    let disk = MemDisk::new();
    let count = ROW_GROUP_ROWS_MAX as u64 + 1;
    let files = journals(&disk, &[count]);
    let inputs = [build(&disk, 1, &files)];
    let result = merge(&disk, Id(9), &inputs, Profile::Hot, &|| true);
    assert!(matches!(result, Err(BuildError::Stopped)));
    discard(&disk, Id(9)).unwrap();
    assert_eq!(names(&disk).len(), 1);
}

/// An error at any call: either there is a segment, or after [`discard`] nothing new.
#[test]
fn an_error_at_every_call_leaves_all_or_nothing() {
    let mut failures = 0;
    for call in 0.. {
        let disk = MemDisk::new();
        let files = journals(&disk, &[50, 50]);
        let inputs = [build(&disk, 1, &files[..1]), build(&disk, 2, &files[1..])];
        let first = disk.calls_count();
        disk.fail_at(first + call, Fault::Error(io::ErrorKind::Other));
        let result = merge(&disk, Id(9), &inputs, Profile::Hot, &|| false);
        let calls = disk.calls_count() - first;
        disk.clear_faults();
        if result.is_ok() {
            assert!(call >= calls, "the error was ignored");
            break;
        }
        failures += 1;
        discard(&disk, Id(9)).unwrap();
        let found = open_all(&disk).unwrap();
        assert_eq!((found.live.len(), found.quarantined.len()), (2, 0));
        assert_eq!(names(&disk).len(), 2);
    }
    assert!(failures > 10, "only {failures} calls");
}

#[test]
fn a_start_puts_damaged_files_aside_and_counts_merges_once() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[30, 30, 30]);
    let each: Vec<SegmentFile> = (0..3)
        .map(|n| build(&disk, 1 + n as u128, &files[n..=n]))
        .collect();
    merge(&disk, Id(9), &each[..2], Profile::Hot, &|| false).unwrap();
    let cut = disk.read(&path(Id(3), SUFFIX_LIVE)).unwrap();
    disk.write(&path(Id(3), SUFFIX_LIVE), &cut[..cut.len() - 1]);
    disk.write(&path(Id(7), SUFFIX_TEMPORARY), b"half");
    for start in 0..2 {
        let found = open_all(&disk).unwrap();
        let aside = path(Id(3), SUFFIX_QUARANTINED);
        let quarantined: Vec<&str> = found.quarantined.iter().map(|(p, _)| &**p).collect();
        assert_eq!(quarantined, [&*aside]);
        assert_eq!(found.trash.len(), 2 * start);
        let settled = settle(&disk, found.live);
        assert!(settled.error.is_none());
        let live: Vec<Id> = settled.live.iter().map(|s| s.manifest().id).collect();
        assert_eq!(live, [Id(9)]);
        assert_eq!(settled.covered.len(), 2 * (1 - start));
    }
    purge(&disk, &[Id(1), Id(2)]).unwrap();
    // Again, as after an error half-way.
    purge(&disk, &[Id(1), Id(2)]).unwrap();
    assert_eq!(names(&disk).len(), 2);
}

#[test]
fn what_a_merge_holds_open_is_what_overlaps_in_time() {
    use crate::file::{BlockEntry, RowGroupEntry};
    /// Earliest and latest time of a row group, and the bytes of its lines.
    type Group = (i64, i64, u32);
    let directory = |groups: &[Group]| {
        let group = |&(time_min, time_max, line_bytes): &Group| RowGroupEntry {
            blocks: vec![BlockEntry {
                rows: 1,
                line_bytes,
                time_min,
                time_max,
            }],
            ..RowGroupEntry::default()
        };
        Arc::new(Directory {
            row_groups: groups.iter().map(group).collect(),
            ..Directory::default()
        })
    };
    // A row costs something beside its line.
    let row = Schema::default().row_bytes();
    let table: [(&[&[Group]], u64); 4] = [
        (&[], 0),
        (&[&[(0, 9, 5), (10, 19, 5)], &[(20, 29, 5)]], 5 + row),
        (&[&[(0, 9, 5), (9, 19, 5)], &[(5, 9, 7)]], 12 + 2 * row),
        (
            &[&[(0, 100, 1)], &[(0, 100, 2)], &[(50, 60, 4)]],
            7 + 3 * row,
        ),
    ];
    for (inputs, expected) in table {
        let directories: Vec<_> = inputs.iter().map(|groups| directory(groups)).collect();
        assert_eq!(open_memory_bytes_max(&directories), expected, "{inputs:?}");
    }
}

#[test]
fn trimming_leaves_sources_out_and_keeps_the_others_whole() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[300, 1, 200, 40]);
    let segment = build(&disk, 1, &files);
    let all = &segment.manifest().sources;
    for (at, left_out) in [(2, vec![1]), (3, vec![0, 3]), (4, vec![0, 1, 2])] {
        let out: SourceSet = left_out.iter().map(|n: &usize| all[*n].source).collect();
        trim(&disk, Id(at), &segment, &out, Profile::Cold, &|| false).unwrap();
        let trimmed = open(&disk, Id(at)).unwrap();
        let kept = all.iter().filter(|entry| !out.contains(entry.source));
        let kept: Vec<SourceEntry> = kept.copied().collect();
        assert_eq!(trimmed.manifest().sources, kept);
        let ranges = [0..300, 300..301, 301..501, 501..541];
        let left = (0..4).filter(|n| !left_out.contains(n));
        let expected = left.flat_map(|n| ranges[n].clone());
        assert_eq!(lines(&trimmed), once(expected), "without {left_out:?}");
    }
}

/// A trimmed segment whose forerunner comes back is covered by it, and merging brings them together.
#[test]
fn a_crash_in_trimming_leaves_everything_once() {
    let (mut early, mut late) = (0, 0);
    for call in 0.. {
        let disk = MemDisk::new();
        let files = journals(&disk, &[50, 50]);
        let segment = build(&disk, 1, &files);
        let out: SourceSet = [files[0].source].into_iter().collect();
        let first = disk.calls_count();
        disk.fail_at(first + call, Fault::PowerLoss);
        let made = trim(&disk, Id(9), &segment, &out, Profile::Hot, &|| false);
        let done = made.is_ok() && retire(&disk, &[Id(1)]).is_ok();
        disk.clear_faults();
        disk.crash(call);
        let settled = settle(&disk, open_all(&disk).unwrap().live);
        let [live] = &settled.live[..] else {
            panic!(
                "{} segments after a crash at call {call}",
                settled.live.len()
            );
        };
        match live.manifest().id {
            Id(9) => {
                late += 1;
                assert!(made.is_ok(), "it was durable before the other one went");
                assert_eq!(lines(live), once(50..100));
            }
            id => {
                early += 1;
                assert!(id == Id(1) && !done, "what was retired does not come back");
                assert_eq!(lines(live), once(0..100));
            }
        }
        if done {
            break;
        }
    }
    assert!(early > 10 && late > 0, "{early} and {late}");
}
