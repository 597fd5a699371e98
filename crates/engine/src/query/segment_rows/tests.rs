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

/// The keys of a search's rows, and the most places of rows that were held.
fn read(disk: &MemDisk, live: &LiveSet, search: &Search, keys_max: usize) -> (Vec<Key>, usize) {
    let view = View::take(disk, &Visible::default(), live).unwrap();
    let (_stopper, shutdown) = logpond_host::shutdown::pair();
    let (mut out, _receiver) = Output::new(shutdown);
    let (mut trailer, mut progress) = (Trailer::default(), Progress::new(false, 0));
    let opened = OpenSegments::new(&view, search.scope.range, &mut trailer);
    let evaluator = SegmentRows::evaluator(search).unwrap();
    let scans = opened.scans(&evaluator);
    let threads = ScanPool::new();
    let mut rows = SegmentRows::new(&threads, &opened, &scans, search, &out);
    rows.keys_max = keys_max;
    let (mut keys, mut held_max) = (Vec::new(), 0);
    let limit = search.limit.unwrap_or(u64::MAX) as usize;
    while keys.len() < limit
        && let Some(key) = rows.peek(&mut out, &mut trailer, &mut progress).unwrap()
    {
        held_max = held_max.max(rows.active.iter().map(|a| a.keys.len()).sum());
        let (popped, ..) = rows.pop(&mut out, &mut trailer).unwrap().unwrap();
        assert_eq!(popped, key);
        keys.push(key);
    }
    rows.finish(&mut trailer);
    assert_eq!(trailer.missing_count, 0, "{:?}", trailer.missing);
    (keys, held_max)
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
