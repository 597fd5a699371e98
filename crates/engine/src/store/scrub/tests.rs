//! The scrub over a disk in memory, with a clock that stands still unless it is set.

use std::cell::Cell;

use logpond_protocol::intake::Parser;
use logpond_record::{Batch, EntryKind, Id, Incarnation};
use logpond_segment::build;
use logpond_segment::journal::{self, Writer};
use logpond_segment::mem_disk::MemDisk;

use super::*;

const DAY: Duration = Duration::from_secs(86_400);

const START: Timestamp = Timestamp(1_772_409_600_000_000_000);

thread_local! {
    static NOW: Cell<Timestamp> = const { Cell::new(START) };
}

fn now() -> Timestamp {
    NOW.get()
}

/// Has so many days pass.
fn pass(days: i64) {
    NOW.set(now().saturating_add(days * DAY.as_nanos() as i64));
}

/// A disk with three segments, in their files only.
fn disk_with_segments() -> MemDisk {
    let disk = MemDisk::new();
    disk.create_directory(build::DIRECTORY).unwrap();
    let mut writer = Writer::new(Arc::new(disk.clone()), journal::Settings::default());
    for number in 0..3 {
        let mut batch = Batch::new(EntryKind::Line, Vec::new());
        for line in 0..500 {
            batch.push(format!("line {line} of {number}").as_bytes());
        }
        writer.append(&batch, START, || Incarnation(3)).unwrap();
        writer.close().unwrap();
    }
    let mut parser = Parser::new();
    for (number, file) in writer.visible().snapshot().closed.iter().enumerate() {
        let files = [file.clone()];
        build::from_journal(&disk, id(number), &files, |entry| parser.parse(entry)).unwrap();
    }
    disk
}

fn id(number: usize) -> Id {
    Id::new(START.unix_ms() as u64, Incarnation(8), 1 + number as u64)
}

/// Flips a bit in the middle of a segment's file. Who has opened it goes on reading the old one.
fn flip(disk: &MemDisk, number: usize) {
    let path = build::path(id(number), build::SUFFIX_LIVE);
    let mut bytes = disk.read(&path).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 0x10;
    disk.write(&path, &bytes);
}

/// What a process that starts on a disk has of it.
fn start_on(disk: &MemDisk) -> Scrub {
    let live = LiveSet::default();
    for number in 0..3 {
        let file = build::open(disk, id(number)).unwrap();
        live.replace(&[], Some(Arc::new(LiveSegment::new(file))));
    }
    let parts = Parts {
        disk: Arc::new(disk.clone()),
        live,
        clock: now,
        metrics: Arc::new(Metrics::default()),
        is_store_at_work: Arc::default(),
    };
    let mut scrub = Scrub::new(parts, DAY, Arc::default(), Arc::default());
    scrub.read_state();
    scrub
}

/// Does all that is due.
fn rounds(scrub: &mut Scrub) {
    while scrub.round().is_zero() {}
}

fn counted(scrub: &Scrub) -> [i64; 3] {
    let Counters {
        segments,
        damaged,
        failures,
        ..
    } = &*scrub.counters;
    [segments, damaged, failures].map(Counter::get)
}

/// The numbers of the segments that are known to be damaged.
fn damaged(scrub: &Scrub) -> Vec<usize> {
    let segments = scrub.parts.live.snapshot();
    let known = segments.iter().enumerate().filter(|(_, s)| s.is_damaged());
    known.map(|(number, _)| number).collect()
}

#[test]
fn damage_that_nobody_asks_for_is_found_once() {
    let disk = disk_with_segments();
    flip(&disk, 1);
    let mut scrub = start_on(&disk);
    rounds(&mut scrub);
    assert_eq!(counted(&scrub), [0, 0, 0], "nothing is due yet");
    pass(1);
    rounds(&mut scrub);
    assert_eq!(counted(&scrub), [3, 1, 0]);
    assert_eq!(damaged(&scrub), [1]);
    let bytes = |disk: &MemDisk, number| {
        let path = build::path(id(number), build::SUFFIX_LIVE);
        disk.read(&path).unwrap().len() as i64
    };
    let all: i64 = (0..3).map(|number| bytes(&disk, number)).sum();
    assert!(scrub.counters.bytes.get() >= all - 3 * 4, "all was read");
    for _ in 0..5 {
        pass(1);
        rounds(&mut scrub);
    }
    assert_eq!(counted(&scrub), [3 + 5 * 2, 1, 0], "it is said once");
    // After a start it is known at once.
    scrub.save();
    let mut again = start_on(&disk);
    rounds(&mut again);
    assert_eq!(damaged(&again), [1]);
    assert_eq!(counted(&again), [1, 1, 0]);
}

#[test]
fn what_was_checked_is_known_after_a_start() {
    let disk = disk_with_segments();
    let mut scrub = start_on(&disk);
    rounds(&mut scrub);
    pass(1);
    rounds(&mut scrub);
    assert_eq!(counted(&scrub), [3, 0, 0]);
    scrub.save();
    let mut again = start_on(&disk);
    rounds(&mut again);
    assert_eq!(counted(&again), [0, 0, 0]);
    assert_eq!(again.schedule, scrub.schedule);
    let oldest = again.counters.oldest_ms.load(Ordering::Relaxed);
    assert_eq!(oldest, now().unix_ms());
}

#[test]
fn a_state_that_is_damaged_is_put_aside() {
    let disk = disk_with_segments();
    start_on(&disk).save();
    assert!(disk.read(PATH).unwrap().starts_with(b"logpond scrub 1\n"));
    disk.write(PATH, b"logpond scrub 7\n");
    let mut scrub = start_on(&disk);
    assert_eq!(disk.read(ASIDE).unwrap(), b"logpond scrub 7\n");
    assert_eq!(disk.read(PATH), None);
    rounds(&mut scrub);
    assert_eq!(disk.read(PATH).unwrap(), scrub.schedule.encode().as_bytes());
}

#[test]
fn a_disk_that_gives_nothing_is_asked_again_before_it_is_believed() {
    let disk = disk_with_segments();
    let mut scrub = start_on(&disk);
    rounds(&mut scrub);
    pass(1);
    disk.fail_one_in(1, 1);
    rounds(&mut scrub);
    assert_eq!(damaged(&scrub), [0usize; 0]);
    assert_eq!(counted(&scrub)[0], 0);
    disk.clear_faults();
    pass(1);
    rounds(&mut scrub);
    assert_eq!(damaged(&scrub), [0usize; 0]);
    assert_eq!(counted(&scrub)[0], 3);
    disk.fail_one_in(1, 1);
    pass(1);
    rounds(&mut scrub);
    pass(1);
    rounds(&mut scrub);
    assert_eq!(damaged(&scrub), [0, 1, 2]);
}

#[test]
fn a_stop_ends_it_wherever_it_is() {
    let disk = disk_with_segments();
    flip(&disk, 1);
    let mut scrub = start_on(&disk);
    rounds(&mut scrub);
    pass(1);
    scrub.is_stopping.store(true, Ordering::Relaxed);
    // Nothing comes of what was not read to its end.
    let segments = scrub.parts.live.snapshot();
    segments.iter().for_each(|s| scrub.check(s, 1));
    scrub.pause_until(Instant::now() + DAY);
    assert_eq!(counted(&scrub), [0, 0, 0]);
    assert_eq!(damaged(&scrub), [0usize; 0]);
    let parts = Parts {
        disk: Arc::new(disk.clone()),
        live: scrub.parts.live.clone(),
        clock: now,
        metrics: Arc::new(Metrics::default()),
        is_store_at_work: Arc::new(AtomicBool::new(true)),
    };
    start(parts, DAY).unwrap().stop();
}
