//! What the store makes of a segment that is superfluous in part.

use std::sync::atomic::AtomicBool;

use logpond_protocol::intake::Parser;
use logpond_record::{Batch, EntryKind, Incarnation, SourceId, Timestamp};
use logpond_search::size::Size;
use logpond_segment::disk::Disk;
use logpond_segment::journal::{self, ClosedFile, Visible, Writer};
use logpond_segment::mem_disk::{Fault, MemDisk};
use logpond_segment::{compact, retain, verify};

use super::*;
use crate::ingest::{Changes, Closer};
use crate::resends::Resends;
use crate::store::{Counters, LiveSet, LoadedInventory, Local, Parts, Policy};
use logpond_host::telemetry::Metrics;
use logpond_settings::AtStart;

const ROWS: usize = 100;

/// A disk with one journal file for each of so many sources.
fn journals(count: usize) -> (MemDisk, Vec<ClosedFile>) {
    let disk = MemDisk::new();
    disk.create_directory(build::DIRECTORY).unwrap();
    let mut writer = Writer::new(Arc::new(disk.clone()), journal::Settings::default());
    for number in 0..count {
        let mut batch = Batch::new(EntryKind::Line, Vec::new());
        (0..ROWS).for_each(|row| batch.push(format!("{number} {row}").as_bytes()));
        let now = Timestamp(1_772_409_600_000_000_000 + number as i64 * 1_000_000);
        writer.append(&batch, now, || Incarnation(3)).unwrap();
        writer.close().unwrap();
    }
    let closed = writer.visible().snapshot().closed.to_vec();
    (disk, closed)
}

fn build_of(disk: &MemDisk, id: u128, files: &[ClosedFile]) -> Arc<LiveSegment> {
    let mut parser = Parser::new();
    build::from_journal(disk, Id(id), files, |entry| parser.parse(entry)).unwrap();
    Arc::new(LiveSegment::new(build::open(disk, Id(id)).unwrap()))
}

fn worker(disk: &MemDisk, live: &LiveSet) -> Worker {
    disk.create_directory("").unwrap();
    let parts = Parts {
        scrub_every: None,
        memory_bytes: u64::MAX,
        disk: Arc::new(disk.clone()),
        visible: Arc::new(Visible::default()),
        changes: Changes::default(),
        live: live.clone(),
        trash: Vec::new(),
        listed: LoadedInventory::default(),
        resends: Arc::new(Resends::open(Arc::new(disk.clone()), false)),
        salvaged: Vec::new(),
        closer: Closer::of_nobody(),
        clock: || Timestamp(1_772_409_700_000_000_000),
        metrics: Arc::new(Metrics::default()),
        cluster: None,
        bucket: None,
    };
    let policy = Policy {
        at_start: AtStart::default(),
        retain: retain::Settings::default(),
        keep_free: Size::Bytes(0),
        compact: compact::Settings::default(),
        local: Local::default(),
    };
    let counters = Arc::new(Counters::default());
    Worker::new(
        parts,
        None,
        policy,
        counters,
        Arc::new(AtomicBool::new(false)),
    )
}

fn set(files: &[ClosedFile]) -> SourceSet {
    files.iter().map(|file| file.source).collect()
}

/// The sources and rows of what counts at a start.
fn at_start(disk: &MemDisk) -> (SourceSet, u64) {
    let settled = build::settle(disk, build::open_all(disk).unwrap().live);
    let mut rows = 0;
    let mut sources: Vec<SourceId> = Vec::new();
    for segment in &settled.live {
        assert_eq!(verify::deep(segment).unwrap(), []);
        rows += segment.manifest().rows;
        sources.extend(segment.manifest().sources.iter().map(|entry| entry.source));
    }
    let count = sources.len() as u64;
    let all: SourceSet = sources.into_iter().collect();
    assert_eq!(all.len(), count, "a source counts twice");
    (all, rows)
}

#[test]
fn only_what_was_confirmed_is_left_out() {
    let (disk, files) = journals(5);
    let live = LiveSet::default();
    live.replace(&[], Some(build_of(&disk, 1, &files[..4])));
    live.replace(&[], Some(build_of(&disk, 2, &files[4..])));
    let mut worker = worker(&disk, &live);
    // Others say that they have something that is in another segment, too.
    let confirmed = set(&[files[0].clone(), files[2].clone(), files[4].clone()]);
    let before = live.snapshot();
    let trimmed = worker.trim(Id(1), &confirmed).unwrap().unwrap();
    assert_eq!(trimmed.sources, 2);
    assert!(trimmed.bytes > 0);
    let kept = set(&[files[1].clone(), files[3].clone(), files[4].clone()]);
    let now = live.snapshot();
    assert_eq!(SourceSet::union_of(now.iter().map(|s| s.sources())), kept);
    assert_eq!((now.len(), at_start(&disk)), (2, (kept, 3 * ROWS as u64)));
    // Who began to read before goes on to read what there was then.
    let rows = |segments: &[Arc<LiveSegment>]| -> u64 {
        segments.iter().map(|s| s.file().manifest().rows).sum()
    };
    assert_eq!(rows(&before), 5 * ROWS as u64);
    assert_eq!(verify::deep(before[0].file()).unwrap(), []);
}

#[test]
fn what_cannot_be_trimmed_stays() {
    let (disk, files) = journals(2);
    let live = LiveSet::default();
    live.replace(&[], Some(build_of(&disk, 1, &files)));
    let mut worker = worker(&disk, &live);
    let both = set(&files);
    let one = set(&files[..1]);
    assert_eq!(worker.trim(Id(7), &one), Ok(None), "it is not there");
    assert_eq!(worker.trim(Id(1), &both), Ok(None), "nothing would be left");
    assert_eq!(worker.trim(Id(1), &SourceSet::new()), Ok(None));
    live.snapshot()[0].note_damage();
    assert_eq!(worker.trim(Id(1), &one), Ok(None), "it is damaged");
    assert_eq!(at_start(&disk), (both, 2 * ROWS as u64));
}

/// Wherever the power fails, or a call does: at the next start there is all, or all but what others
/// have confirmed, each source once.
#[test]
fn a_fault_at_every_call_loses_and_doubles_nothing() {
    for fault in [
        Fault::PowerLoss,
        Fault::Error(std::io::ErrorKind::StorageFull),
    ] {
        let mut outcomes = [0, 0];
        for call in 0.. {
            let (disk, files) = journals(3);
            let live = LiveSet::default();
            live.replace(&[], Some(build_of(&disk, 1, &files)));
            let mut worker = worker(&disk, &live);
            let out = set(&files[..2]);
            disk.fail_at(disk.calls_count() + call, fault);
            let trimmed = worker.trim(Id(1), &out);
            let listed = SourceSet::union_of(live.snapshot().iter().map(|s| s.sources()));
            disk.clear_faults();
            disk.crash(call);
            let (sources, rows) = at_start(&disk);
            let all = set(&files);
            let kept = set(&files[2..]);
            assert!(
                sources == all || sources == kept,
                "{fault:?} at call {call}"
            );
            assert!(listed == all || listed == kept);
            assert_eq!(rows, sources.len() * ROWS as u64);
            outcomes[usize::from(sources == kept)] += 1;
            if let Ok(trimmed) = trimmed {
                assert_eq!((trimmed.map(|t| t.sources), sources), (Some(2), kept));
                break;
            }
        }
        assert!(
            outcomes[0] > 5 && outcomes[1] > 0,
            "{fault:?}: {outcomes:?}"
        );
    }
}
