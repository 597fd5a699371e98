//! Rows of segments in their order, however many are of one time.

use logpond_protocol::intake::Parser;
use logpond_record::{Batch, EntryKind, Incarnation};
use logpond_segment::build;
use logpond_segment::disk::Disk;
use logpond_segment::journal::{ClosedFile, Settings, Visible, Writer};
use logpond_segment::mem_disk::MemDisk;

use super::*;
use crate::store::LiveSet;

/// Rows of each batch.
const ROWS: usize = 500;

const NOW: i64 = 1_772_409_600_000_000_000;

/// Segments whose rows are all of one event time, two for each of these incarnations: what they were
/// given came in by turns, so that their rows are mixed in the order of rows.
fn of_one_instant(disk: &MemDisk, incarnations: &[u128]) -> LiveSet {
    disk.create_directory(build::DIRECTORY).unwrap();
    let live = LiveSet::default();
    for (number, incarnation) in incarnations.iter().enumerate() {
        let mut writer = Writer::new(Arc::new(disk.clone()), Settings::default());
        for turn in 0..8 {
            let mut batch = Batch::new(EntryKind::Json, Vec::new());
            for row in 0..ROWS {
                let line = format!("{{\"time\":\"2026-03-02T00:00:00Z\",\"n\":{row}}}");
                batch.push(line.as_bytes());
            }
            let came_in = turn * incarnations.len() as i64 + number as i64;
            let now = Timestamp(NOW + came_in * 1_000_000);
            writer
                .append(&batch, now, || Incarnation(*incarnation))
                .unwrap();
            if turn == 3 {
                writer.close().unwrap();
            }
        }
        writer.close().unwrap();
        let closed: Vec<ClosedFile> = writer.visible().snapshot().closed.to_vec();
        for file in closed {
            let id = Id(1 + live.snapshot().len() as u128);
            let mut parser = Parser::new();
            build::from_journal(disk, id, &[file], |entry| parser.parse(entry)).unwrap();
            let segment = LiveSegment::new(build::open(disk, id).unwrap());
            live.replace(&[], Some(Arc::new(segment)));
        }
    }
    live
}

/// The answer to a search, and its cost.
#[derive(Default)]
struct Answer {
    keys: Vec<Key>,
    rows: Vec<Box<[u8]>>,
    /// The most places of rows that were held.
    held_max: usize,
    /// The most bytes of decoded blocks that were kept between two rows.
    blocks_bytes_max: usize,
    bytes_read: u64,
}

/// The keys of a search's rows, and the most places of rows that were held.
fn read(disk: &MemDisk, live: &LiveSet, search: &Search, keys_max: usize) -> (Vec<Key>, usize) {
    let answer = read_within(disk, live, search, keys_max, KEPT_BYTES_MAX);
    (answer.keys, answer.held_max)
}

fn read_within(
    disk: &MemDisk,
    live: &LiveSet,
    search: &Search,
    keys_max: usize,
    kept_bytes_max: usize,
) -> Answer {
    let view = View::take(disk, &Visible::default(), live).unwrap();
    let (_stopper, shutdown) = logpond_host::shutdown::pair();
    let (mut out, _receiver) = Output::new(shutdown);
    let (mut trailer, mut progress) = (Trailer::default(), Progress::new(false, 0));
    let opened = OpenSegments::new(&view, search.scope.range, &mut trailer);
    let evaluator = SegmentRows::evaluator(search).unwrap();
    let scans = opened.scans(&evaluator);
    let threads = ScanPool::new();
    let mut rows = SegmentRows::new(&threads, &opened, &scans, search, &mut out).unwrap();
    (rows.keys_max, rows.kept_bytes_max) = (keys_max, kept_bytes_max);
    let mut answer = Answer::default();
    let limit = search.limit.unwrap_or(u64::MAX) as usize;
    while answer.keys.len() < limit
        && let Some(key) = rows.peek(&mut out, &mut trailer, &mut progress).unwrap()
    {
        let held = rows.active.iter().map(|a| a.keys.len()).sum();
        answer.held_max = answer.held_max.max(held);
        let (popped, row, _) = rows.pop(&mut out, &mut trailer).unwrap().unwrap();
        assert_eq!(popped, key);
        answer.keys.push(key);
        answer.rows.push(row);
        let kept = rows.active.iter().map(|a| a.scan.kept_bytes() as usize);
        answer.blocks_bytes_max = answer.blocks_bytes_max.max(kept.sum());
    }
    rows.finish(&mut trailer);
    assert_eq!(trailer.missing_count, 0, "{:?}", trailer.missing);
    answer.bytes_read = trailer.bytes_scanned;
    answer
}

#[test]
fn rows_of_one_instant_are_read_in_order_within_bounds() {
    let disk = MemDisk::new();
    let live = of_one_instant(&disk, &[7 << 64, 3 << 64, 9 << 64]);
    let all = 3 * 8 * ROWS;
    for direction in [Direction::Forward, Direction::Backward] {
        let mut search = Search::new(Scope::all(TimeRange::ALL));
        search.direction = direction;
        let (expected, _) = read(&disk, &live, &search, usize::MAX);
        assert_eq!(expected.len(), all);
        let is_sorted = |pair: &[Key]| is_before(direction, pair[0], pair[1]);
        assert!(expected.windows(2).all(is_sorted));
        for keys_max in [600, 2_000, 5_000] {
            let (keys, held) = read(&disk, &live, &search, keys_max);
            assert!(keys == expected, "{direction:?} {keys_max}");
            // A row group is read by blocks, of which one comes on top.
            assert!(held <= keys_max + 4 * ROWS, "{held} of {keys_max}");
        }
        // A page, and the next one.
        search.limit = Some(100);
        let (page, _) = read(&disk, &live, &search, 600);
        assert_eq!(page, expected[..100]);
        search.behind = page.last().copied();
        let (page, _) = read(&disk, &live, &search, 600);
        assert_eq!(page, expected[100..200]);
    }
}

#[test]
fn little_memory_for_blocks_does_not_have_them_read_for_each_row() {
    let disk = MemDisk::new();
    let live = of_one_instant(&disk, &[7 << 64, 3 << 64, 9 << 64]);
    for direction in [Direction::Forward, Direction::Backward] {
        let mut search = Search::new(Scope::all(TimeRange::ALL));
        search.direction = direction;
        let expected = read_within(&disk, &live, &search, KEYS_MAX, KEPT_BYTES_MAX);
        // Room for some of the blocks that are open at a time, and for a part of their rows.
        let least = expected.blocks_bytes_max / 3;
        for limit in [None, Some(100), Some(5_000)] {
            search.limit = limit;
            let answer = read_within(&disk, &live, &search, KEYS_MAX, least);
            let count = limit.map_or(expected.keys.len(), |limit| limit as usize);
            assert_eq!(answer.keys, expected.keys[..count], "{direction:?}");
            assert_eq!(answer.rows, expected.rows[..count], "{direction:?}");
            let read = (answer.bytes_read, expected.bytes_read);
            assert!(read.0 <= 4 * read.1, "{direction:?} {limit:?}: {read:?}");
            assert!(answer.blocks_bytes_max <= least, "{direction:?} {limit:?}");
        }
    }
}
