//! The writer, recovery and the reader against a model that knows every acknowledged row.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::Arc;

use logpond_record::{Batch, EntryKind, Id, Incarnation, Labels, SourceId, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::disk::Disk;
use crate::mem_disk::{Call, Fault, MemDisk};

const SECOND_NS: i64 = 1_000_000_000;

/// Small files, so that few operations see many of them.
const SETTINGS: Settings = Settings {
    rotate_age_ns: 30 * SECOND_NS,
    rotate_bytes: 3000,
    rotate_rows: FILE_ROWS_MAX,
    codec: Codec::None,
};

#[derive(Clone, Debug)]
enum Step {
    /// Append a batch of this many entries of this length.
    Append(usize, usize),
    Sync,
    Close,
    /// Let this many seconds pass (or step back) and do what is due.
    Pass(i64),
    /// The disk call that comes this many calls later fails.
    FailLater(u64),
    /// The power goes away during the call that comes this many calls later.
    PowerLossLater(u64),
    /// The disk takes no more than so many further bytes; `None` takes the limit away.
    Capacity(Option<u64>),
    /// The machine crashes and starts again.
    Crash(u64),
    /// The process is killed and starts again.
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1usize..5, 0usize..900).prop_map(|(count, bytes)| Step::Append(count, bytes)),
        5 => Just(Step::Sync),
        1 => Just(Step::Close),
        2 => (-5i64..40).prop_map(Step::Pass),
        2 => (0u64..12).prop_map(Step::FailLater),
        1 => (0u64..12).prop_map(Step::PowerLossLater),
        1 => prop::option::weighted(0.6, 0u64..4000).prop_map(Step::Capacity),
        1 => any::<u64>().prop_map(Step::Crash),
        1 => Just(Step::Kill),
    ]
}

/// What must and what may be on the disk.
struct Model {
    disk: MemDisk,
    writer: Writer,
    now: Timestamp,
    incarnation_next: u128,
    number_next: u64,
    /// Rows that were handed over, by their bytes, which are unique.
    attempted: BTreeSet<Vec<u8>>,
    /// Rows of successful appends that are not acknowledged yet: mark, id, bytes.
    pending: Vec<(u64, Id, Vec<u8>)>,
    /// Rows that must be there.
    acknowledged: BTreeMap<Vec<u8>, Id>,
    /// Closed files that were shown: they never change.
    closed: BTreeMap<SourceId, Summary>,
}

impl Model {
    fn new() -> Model {
        let disk = MemDisk::new();
        Model {
            writer: Writer::new(Arc::new(disk.clone()), SETTINGS),
            disk,
            now: Timestamp(1_700_000_000 * SECOND_NS),
            incarnation_next: 1,
            number_next: 0,
            attempted: BTreeSet::new(),
            pending: Vec::new(),
            acknowledged: BTreeMap::new(),
            closed: BTreeMap::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Append(count, bytes) => self.append(count, bytes),
            Step::Sync => {
                let result = self.writer.sync();
                self.settle(result.is_ok());
            }
            Step::Close => {
                let result = self.writer.close();
                self.settle(result.is_ok());
            }
            Step::Pass(seconds) => {
                self.now = self.now.saturating_add(seconds * SECOND_NS);
                let result = self.writer.rotate_if_due(self.now);
                self.settle(result.is_ok());
            }
            Step::FailLater(calls) => {
                let fault = Fault::Error(ErrorKind::Other);
                self.disk.fail_at(self.disk.calls_count() + calls, fault);
            }
            Step::PowerLossLater(calls) => {
                self.disk
                    .fail_at(self.disk.calls_count() + calls, Fault::PowerLoss);
            }
            Step::Capacity(more) => {
                self.disk.set_capacity(None);
                let used = (1u64 << 40) - self.disk.space().unwrap().free_bytes;
                self.disk.set_capacity(more.map(|more| used + more));
            }
            Step::Crash(seed) => {
                self.disk.crash(seed);
                self.restart();
            }
            Step::Kill => {
                self.disk.end_process();
                self.restart();
            }
        }
        if self.disk.is_powered_off() {
            self.disk.crash(self.number_next);
            self.restart();
        }
        self.note_closed();
    }

    fn append(&mut self, count: usize, bytes: usize) {
        let labels: Labels = vec![("hostname".into(), "ash".into())];
        let mut batch = Batch::new(EntryKind::Line, labels);
        for _ in 0..count {
            let mut raw = format!("{:08} ", self.number_next).into_bytes();
            raw.resize(raw.len() + bytes, b'x');
            self.number_next += 1;
            batch.push(&raw);
            self.attempted.insert(raw);
        }
        let incarnation = Incarnation(self.incarnation_next << 64);
        let result = self.writer.append(&batch, self.now, || incarnation);
        if let Ok(appended) = &result {
            assert_eq!(appended.count, count as u64);
            let rows = batch.iter().enumerate().map(|(index, raw)| {
                (
                    appended.mark,
                    Id(appended.first_id.0 + index as u128),
                    raw.to_vec(),
                )
            });
            self.pending.extend(rows);
        }
        // Rotation inside the append may have made earlier batches durable; no more is known.
        self.settle(result.is_ok());
    }

    /// Moves rows from pending to acknowledged; after an error the others have failed.
    fn settle(&mut self, ok: bool) {
        let mark = self.writer.durable_mark();
        for (_, id, raw) in self.pending.extract_if(.., |(m, _, _)| *m <= mark) {
            self.acknowledged.insert(raw, id);
        }
        if !ok {
            self.pending.clear();
        }
    }

    fn note_closed(&mut self) {
        for file in self.writer.visible().snapshot().closed.iter() {
            let known = self.closed.insert(file.source, file.summary);
            assert!(
                known.is_none_or(|known| known == file.summary),
                "{file:?} changed"
            );
        }
    }

    /// Starts a new life; everything that must be there is there.
    fn restart(&mut self) {
        self.disk.clear_faults();
        self.disk.set_capacity(None);
        self.pending.clear();
        self.incarnation_next += 1;
        let recovered = self.recover();
        self.check(&recovered);
        self.writer = Writer::new(Arc::new(self.disk.clone()), SETTINGS);
        self.writer.visible().add_closed(recovered.closed);
    }

    /// Recovers with a power loss at one of its calls, and then again without.
    fn recover(&mut self) -> RecoveryReport {
        let at = self.disk.calls_count() + self.number_next % 17;
        self.disk.fail_at(at, Fault::PowerLoss);
        let first = recover(&self.disk);
        self.disk.clear_faults();
        if self.disk.is_powered_off() {
            self.disk.crash(at);
            recover(&self.disk).unwrap()
        } else {
            first.unwrap()
        }
    }

    fn check(&mut self, recovered: &RecoveryReport) {
        let mut found: BTreeMap<Vec<u8>, Id> = BTreeMap::new();
        let mut last: BTreeMap<Incarnation, Id> = BTreeMap::new();
        let mut sequences: BTreeMap<Incarnation, u64> = BTreeMap::new();
        for file in &recovered.closed {
            let journal = JournalFile::from_closed(&self.disk, file).unwrap();
            let scanned = journal.scan().unwrap();
            assert_eq!(scanned.summary, file.summary);
            assert!(scanned.is_ended(), "{file:?}");
            assert_eq!(journal.limit(), file.bytes);
            let known = self.closed.insert(file.source, file.summary);
            assert!(
                known.is_none_or(|known| known == file.summary),
                "{file:?} changed"
            );
            let incarnation = file.source.incarnation;
            let sequence = sequences.entry(incarnation).or_default();
            assert_eq!(*sequence, file.source.sequence, "numbers are dense");
            *sequence += 1;
            let mut frames = journal.frames();
            while let Some(frame) = frames.next().unwrap() {
                for entry in frame.entries() {
                    let before = last.insert(incarnation, entry.id);
                    assert!(
                        before.is_none_or(|before| before < entry.id),
                        "ids increase"
                    );
                    assert!(self.attempted.contains(entry.raw), "invented");
                    let twice = found.insert(entry.raw.to_vec(), entry.id);
                    assert_eq!(twice, None, "a row is there twice");
                }
            }
        }
        for (raw, id) in &self.acknowledged {
            assert_eq!(
                found.get(raw),
                Some(id),
                "{:?}",
                String::from_utf8_lossy(raw)
            );
        }
        // Crashes and failing calls take what was not synced; they damage nothing.
        assert_eq!(recovered.damages, []);
        assert_eq!(recovered.unusable, []);
        for entry in self.disk.list(DIRECTORY).unwrap() {
            assert!(entry.name.ends_with(SUFFIX_CLOSED), "{entry:?}");
        }
    }

    /// What readers see now: all that is acknowledged, and nothing that a crash could take away.
    fn check_visible(&mut self) {
        self.disk.clear_faults();
        let snapshot = self.writer.visible().snapshot();
        let closed = snapshot.closed.iter();
        let closed = closed.map(|file| JournalFile::from_closed(&self.disk, file).unwrap());
        let open = snapshot
            .open
            .iter()
            .map(|state| JournalFile::from_open(state).unwrap());
        let mut seen = BTreeMap::new();
        for journal in closed.chain(open) {
            let mut frames = journal.frames();
            while let Some(frame) = frames.next().unwrap() {
                for entry in frame.entries() {
                    assert_eq!(seen.insert(entry.raw.to_vec(), entry.id), None);
                }
            }
            assert_eq!(frames.damages().listed, [], "nothing was damaged");
        }
        for (raw, id) in &self.acknowledged {
            assert_eq!(
                seen.get(raw),
                Some(id),
                "{:?}",
                String::from_utf8_lossy(raw)
            );
        }
        self.acknowledged.extend(seen);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn acknowledged_rows_survive_anything(steps in prop::collection::vec(step(), 1..60), seed: u64) {
        let mut model = Model::new();
        for step in &steps {
            model.step(step);
        }
        model.check_visible();
        model.disk.crash(seed);
        model.restart();
    }

    #[test]
    fn a_compressed_journal_reads_the_same(sizes in prop::collection::vec(0usize..9000, 1..20)) {
        let read = |codec| {
            let mut model = Model::new();
            model.writer = Writer::new(
                Arc::new(model.disk.clone()),
                Settings { codec, ..SETTINGS },
            );
            sizes.iter().for_each(|bytes| model.append(2, *bytes));
            model.writer.close().unwrap();
            model.settle(true);
            model.restart();
            model.acknowledged
        };
        prop_assert_eq!(read(Codec::None), read(Codec::Zstd));
    }
}

fn batch(rows: &[&[u8]]) -> Batch {
    let mut batch = Batch::new(EntryKind::Line, Labels::new());
    rows.iter().for_each(|row| batch.push(row));
    batch
}

fn writer(disk: &MemDisk) -> Writer {
    Writer::new(Arc::new(disk.clone()), SETTINGS)
}

const AT: Timestamp = Timestamp(5 * SECOND_NS);

fn mint() -> Incarnation {
    Incarnation(9)
}

#[test]
fn each_call_may_fail_once_and_the_next_batch_is_taken() {
    // Every disk call of a run fails in turn; afterwards the writer works again.
    let script = |disk: &MemDisk, writer: &mut Writer| {
        let mut failures = 0;
        for round in 0..6 {
            let row = vec![b'a' + round; 1200];
            let done = writer
                .append(&batch(&[&row]), AT, mint)
                .and_then(|_| writer.sync());
            failures += u32::from(done.is_err());
        }
        let _ = writer.close();
        (failures, disk.calls_count())
    };
    let disk = MemDisk::new();
    let (failures, calls) = script(&disk, &mut writer(&disk));
    assert_eq!(failures, 0);
    for call in 0..calls {
        let disk = MemDisk::new();
        disk.fail_at(call, Fault::Error(ErrorKind::Other));
        let mut writer = writer(&disk);
        let (failures, _) = script(&disk, &mut writer);
        assert!(
            failures <= 1,
            "call {call}: one error costs one batch at most"
        );
        writer.close().unwrap();
        let snapshot = writer.visible().snapshot();
        assert!(snapshot.open.is_empty(), "call {call}");
        let rows: u64 = snapshot.closed.iter().map(|file| file.summary.rows()).sum();
        assert_eq!(rows, 6 - u64::from(failures), "call {call}");
        let recovered = recover(&disk).unwrap();
        assert_eq!(&recovered.closed, &*snapshot.closed, "call {call}");
    }
}

#[test]
fn a_file_is_never_synced_again_after_a_failed_sync() {
    let disk = MemDisk::new();
    let mut writer = writer(&disk);
    writer.append(&batch(&[b"kept"]), AT, mint).unwrap();
    writer.sync().unwrap();
    writer.append(&batch(&[b"lost"]), AT, mint).unwrap();
    disk.take_calls();
    disk.fail_at(disk.calls_count(), Fault::Error(ErrorKind::Other));
    let error = writer.sync().unwrap_err();
    assert!(!error.is_full());
    assert_eq!(writer.durable_mark(), 1);
    let calls = disk.take_calls();
    assert!(
        !calls.contains(&Call::Truncate),
        "{calls:?}: shortening syncs the old file"
    );
    let copied = calls.iter().position(|call| *call == Call::Create).unwrap();
    assert_eq!(
        calls[..copied]
            .iter()
            .filter(|call| **call == Call::Sync)
            .count(),
        1
    );
    disk.crash(3);
    let recovered = recover(&disk).unwrap();
    assert_eq!(recovered.closed.len(), 1);
    assert_eq!(recovered.closed[0].summary.rows(), 1);
}

#[test]
fn a_full_disk_keeps_the_batches_before_and_takes_more_when_there_is_room() {
    let disk = MemDisk::new();
    let mut writer = writer(&disk);
    let first = writer.append(&batch(&[b"one"]), AT, mint).unwrap();
    disk.set_capacity(Some(200));
    let error = writer.append(&batch(&[&[0; 500]]), AT, mint).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert_eq!(
        writer.durable_mark(),
        first.mark,
        "the batch before was saved"
    );
    assert!(
        writer
            .append(&batch(&[&[0; 500]]), AT, mint)
            .unwrap_err()
            .is_full()
    );
    disk.set_capacity(None);
    let last = writer.append(&batch(&[b"two"]), AT, mint).unwrap();
    writer.close().unwrap();
    assert_eq!(writer.durable_mark(), last.mark);
    let closed = writer.visible().snapshot().closed;
    let sequences: Vec<u64> = closed.iter().map(|file| file.source.sequence).collect();
    assert_eq!(sequences, [0, 1]);
}

#[test]
fn a_full_file_is_closed_by_the_sync_of_its_last_batch() {
    let disk = MemDisk::new();
    let mut writer = writer(&disk);
    let mut sync = |now| {
        writer.append(&batch(&[&[b'x'; 1200]]), AT, mint).unwrap();
        writer.sync().unwrap();
        writer.rotate_if_due(now).unwrap();
        writer.visible().snapshot().closed.len()
    };
    let closed: Vec<usize> = (0..7).map(|_| sync(AT)).collect();
    assert_eq!(closed, [0, 0, 1, 1, 1, 2, 2]);
    let syncs = |disk: &MemDisk| {
        let calls = disk.take_calls().into_iter();
        calls.filter(|call| *call == Call::Sync).count()
    };
    assert_eq!(syncs(&disk), 7);
    // One that is old, and synced already, takes another one.
    assert_eq!(sync(Timestamp(35 * SECOND_NS)), 3);
    assert_eq!(syncs(&disk), 2);
}

#[test]
fn an_ended_file_that_was_not_renamed_is_recovered() {
    for power_loss in [true, false] {
        let disk = MemDisk::new();
        let mut writer = writer(&disk);
        writer.append(&batch(&[&[b'x'; 3000]]), AT, mint).unwrap();
        writer.sync().unwrap();
        let open = disk.read(&path(source_of(0), SUFFIX_OPEN)).unwrap();
        if power_loss {
            disk.crash(1)
        } else {
            disk.end_process()
        }
        let recovered = recover(&disk).unwrap();
        assert_eq!(
            (&recovered.cuts[..], &recovered.damages[..]),
            (&[][..], &[][..])
        );
        assert_eq!(recovered.closed[0].summary.rows(), 1);
        let closed = disk.read(&recovered.closed[0].path).unwrap();
        let content = closed.len() - END_MARK_BYTES;
        assert_eq!(closed[..content], open[..content]);
        assert_eq!(closed[content..][..4], END_MARKER);
    }
}

/// A file that was left open with three synced batches and a torn tail.
fn left_open(disk: &MemDisk) -> String {
    let mut writer = writer(disk);
    for row in [b"one", b"two", b"ten"] {
        writer.append(&batch(&[row]), AT, mint).unwrap();
        writer.sync().unwrap();
    }
    let open = path(source_of(0), SUFFIX_OPEN);
    let mut bytes = disk.read(&open).unwrap();
    bytes.extend_from_slice(b"torn");
    disk.write(&open, &bytes);
    open
}

#[test]
fn a_start_on_a_full_disk_closes_files_in_place_or_leaves_them_readable() {
    for (room, suffix) in [(100, SUFFIX_CLOSED), (20, SUFFIX_OPEN)] {
        let disk = MemDisk::new();
        let open = left_open(&disk);
        let used = disk.read(&open).unwrap().len() as u64;
        disk.set_capacity(Some(used + room));
        let recovered = recover(&disk).unwrap();
        let closed = &recovered.closed[..];
        assert_eq!(closed[0].path, path(source_of(0), suffix));
        assert_eq!(closed[0].summary.rows(), 3);
        assert_eq!((recovered.damages_count, recovered.cuts.len()), (0, 1));
        let journal = JournalFile::from_closed(&disk, &closed[0]).unwrap();
        let scanned = journal.scan().unwrap();
        assert_eq!(
            (scanned.summary, scanned.damages.count),
            (closed[0].summary, 0)
        );
        // With room, the next start has them all closed.
        disk.set_capacity(None);
        let again = recover(&disk).unwrap();
        assert_eq!(again.closed[0].path, path(source_of(0), SUFFIX_CLOSED));
        assert_eq!(again.closed[0].summary, closed[0].summary);
        assert_eq!(again.damages_count, 0);
        assert_eq!(disk.list(DIRECTORY).unwrap().len(), 1);
    }
}

#[test]
fn a_torn_copy_without_its_original_is_no_damage() {
    // A file without a durable name was copied; the power failed before the copy was synced.
    let disk = MemDisk::new();
    let mut writer = writer(&disk);
    writer.append(&batch(&[b"one"]), AT, mint).unwrap();
    writer.append(&batch(&[b"two"]), AT, mint).unwrap();
    let open = path(source_of(0), SUFFIX_OPEN);
    let mut bytes = disk.read(&open).unwrap();
    bytes[..FILE_HEADER_BYTES + FRAME_HEADER_BYTES + 3].fill(0);
    disk.remove(&open).unwrap();
    disk.write(&path(source_of(0), SUFFIX_SALVAGE), &bytes);
    let recovered = recover(&disk).unwrap();
    assert_eq!(recovered.damages, []);
    assert_eq!(recovered.closed[0].summary.rows(), 1);
    assert_eq!(recovered.cuts.len(), 1);
    let again = recover(&disk).unwrap();
    assert_eq!((again.closed, again.damages), (recovered.closed, vec![]));
}

#[test]
fn the_original_of_a_copy_is_removed_though_it_was_damaged() {
    let disk = MemDisk::new();
    let open = left_open(&disk);
    let mut bytes = disk.read(&open).unwrap();
    bytes[FILE_HEADER_BYTES + FRAME_HEADER_BYTES] ^= 1;
    disk.write(&open, &bytes);
    let first = recover(&disk).unwrap();
    assert_eq!(
        (first.damages.len(), first.closed[0].summary.rows()),
        (1, 2)
    );
    // The crash came before the removal was durable.
    disk.write(&open, &bytes);
    let second = recover(&disk).unwrap();
    assert_eq!(
        (second.closed, second.damages),
        (first.closed.clone(), first.damages)
    );
    assert_eq!(second.unusable, []);
    assert_eq!(disk.read(&open), None);
    // A copy without its end is none.
    let closed = disk.read(&first.closed[0].path).unwrap();
    disk.write(
        &first.closed[0].path,
        &closed[..closed.len() - END_MARK_BYTES],
    );
    disk.write(&open, &bytes);
    let third = recover(&disk).unwrap();
    assert_eq!(third.unusable.len(), 1);
    assert!(third.damages.iter().any(|d| d.reason == Reason::EndMissing));
}

#[test]
fn only_synced_bytes_are_visible() {
    let disk = MemDisk::new();
    let mut writer = writer(&disk);
    let visible = writer.visible();
    writer.append(&batch(&[b"one"]), AT, mint).unwrap();
    assert!(visible.snapshot().open.is_empty());
    writer.sync().unwrap();
    let version = visible.version();
    writer.append(&batch(&[b"two"]), AT, mint).unwrap();
    let state = visible.snapshot().open.remove(0);
    assert_eq!(state.summary.rows(), 1);
    let first = JournalFile::from_open(&state).unwrap();
    assert_eq!(first.scan().unwrap().summary, state.summary);
    // The file grows, is closed, and can still be followed through the old handle.
    writer.close().unwrap();
    assert!(visible.version() > version);
    let snapshot = visible.snapshot();
    assert!(snapshot.open.is_empty());
    let closed = JournalFile::from_closed(&disk, &snapshot.closed[0]).unwrap();
    let mut frames = closed.frames_from(state.synced_bytes);
    assert_eq!(frames.next().unwrap().unwrap().payload(), b"two");
    assert!(frames.next().unwrap().is_none());
    assert!(first.scan().is_ok());
    let source = snapshot.closed[0].source;
    assert_eq!(
        visible.remove_closed(source).map(|file| file.source),
        Some(source)
    );
    assert_eq!(visible.remove_closed(source), None);
}

#[test]
fn large_batches_are_split_and_entries_are_not() {
    let disk = MemDisk::new();
    let mut writer = Writer::new(Arc::new(disk.clone()), Settings::default());
    let long = vec![b'l'; 3 << 20];
    let mut rows: Vec<&[u8]> = vec![b""; 70_000];
    rows.push(&long);
    rows.extend([&long[..600_000]; 3]);
    let appended = writer.append(&batch(&rows), AT, mint).unwrap();
    writer.close().unwrap();
    let file = writer.visible().snapshot().closed[0].clone();
    assert_eq!(file.summary.rows(), rows.len() as u64);
    let journal = JournalFile::from_closed(&disk, &file).unwrap();
    let mut frames = journal.frames();
    let mut counts = Vec::new();
    let mut next = appended.first_id.0;
    while let Some(frame) = frames.next().unwrap() {
        counts.push(frame.count());
        for entry in frame.entries() {
            assert_eq!(entry.id.0, next);
            next += 1;
        }
    }
    assert_eq!(counts, [65_536, 4464, 1, 1, 1, 1]);
}

#[test]
fn time_rotates_and_never_steps_back() {
    let disk = MemDisk::new();
    let mut writer = writer(&disk);
    let first = writer.append(&batch(&[b"one"]), AT, mint).unwrap();
    let earlier = Timestamp(AT.0 - SECOND_NS);
    let second = writer.append(&batch(&[b"two"]), earlier, mint).unwrap();
    assert!(first.first_id < second.first_id);
    assert_eq!(second.first_id.received_ms(), 5000);
    writer.rotate_if_due(Timestamp(34 * SECOND_NS)).unwrap();
    assert!(writer.visible().snapshot().closed.is_empty());
    writer.rotate_if_due(Timestamp(35 * SECOND_NS)).unwrap();
    assert_eq!(writer.visible().snapshot().closed.len(), 1);
    assert_eq!(writer.durable_mark(), second.mark);
    // Nothing was appended since, so there is nothing to close and no empty file.
    writer.rotate_if_due(Timestamp(99 * SECOND_NS)).unwrap();
    writer.close().unwrap();
    assert_eq!(disk.list(DIRECTORY).unwrap().len(), 1);
}

#[test]
fn too_many_labels_harm_nobody_else() {
    let disk = MemDisk::new();
    let mut writer = writer(&disk);
    let first = writer.append(&batch(&[b"one"]), AT, mint).unwrap();
    let labels = vec![("a".into(), "x".repeat(LABELS_BYTES_MAX).into())];
    let mut large = Batch::new(EntryKind::Line, labels);
    large.push(b"two");
    let error = writer.append(&large, AT, mint).unwrap_err();
    assert!(
        matches!(error, WriteError::Labels { count: 1, .. }),
        "{error}"
    );
    writer.sync().unwrap();
    assert_eq!(writer.durable_mark(), first.mark);
    let empty = writer
        .append(&Batch::new(EntryKind::Line, Labels::new()), AT, mint)
        .unwrap();
    assert_eq!((empty.count, empty.mark), (0, first.mark));
}

#[test]
fn recovery_quarantines_what_it_cannot_read_and_removes_what_holds_nothing() {
    let disk = MemDisk::new();
    disk.create_directory(DIRECTORY).unwrap();
    let source = |sequence| SourceId {
        incarnation: Incarnation(1),
        sequence,
    };
    let header = FileHeader {
        source: source(2),
        created: AT,
    };
    disk.write(&path(source(0), SUFFIX_OPEN), b"");
    disk.write(&path(source(1), SUFFIX_OPEN), &[0; 4096]);
    disk.write(&path(source(2), SUFFIX_OPEN), &header.encode());
    disk.write(&path(source(3), SUFFIX_OPEN), &b"garbage ".repeat(100));
    disk.write(&path(source(4), SUFFIX_CLOSED), &b"garbage ".repeat(100));
    disk.write(&path(source(5), SUFFIX_CLOSED), &header.encode());
    disk.write("journal/notes.txt", b"mine");
    // Its only frame has lost a sector, as in a crash before the first sync, or other bytes.
    for (number, is_crash) in [(6u128, true), (7, false)] {
        let mut writer = Writer::new(Arc::new(disk.clone()), SETTINGS);
        let incarnation = Incarnation(number);
        writer
            .append(&batch(&[&[b'x'; 2000]]), AT, || incarnation)
            .unwrap();
        let written = path(
            SourceId {
                incarnation,
                sequence: 0,
            },
            SUFFIX_OPEN,
        );
        let mut bytes = disk.read(&written).unwrap();
        if is_crash {
            bytes[512..1024].fill(0)
        } else {
            bytes[700] ^= 1
        }
        disk.write(&written, &bytes);
    }
    let recovered = recover(&disk).unwrap();
    assert_eq!(recovered.closed, []);
    let cut: Vec<&str> = recovered.cuts.iter().map(|cut| &*cut.path).collect();
    let lost = |incarnation| SourceId {
        incarnation: Incarnation(incarnation),
        sequence: 0,
    };
    assert_eq!(
        cut,
        [path(source(1), SUFFIX_OPEN), path(lost(6), SUFFIX_OPEN)]
    );
    let unusable: Vec<String> = recovered
        .unusable
        .iter()
        .map(|file| file.path.clone())
        .collect();
    let quarantined = |sequence| path(source(sequence), SUFFIX_QUARANTINED);
    let expected = [
        quarantined(3),
        quarantined(4),
        quarantined(5),
        path(lost(7), SUFFIX_QUARANTINED),
        "journal/notes.txt".into(),
    ];
    assert_eq!(unusable, expected);
    let again = recover(&disk).unwrap();
    assert_eq!(again.unusable.len(), 5);
    assert_eq!(disk.list(DIRECTORY).unwrap().len(), 5);
}

#[test]
fn recovery_keeps_files_with_a_damaged_header() {
    // The second frame states that the header was synced.
    for frames in [1, 2] {
        let disk = MemDisk::new();
        let mut writer = writer(&disk);
        for _ in 0..frames {
            writer.append(&batch(&[b"one"]), AT, mint).unwrap();
            writer.sync().unwrap();
        }
        let open = path(source_of(0), SUFFIX_OPEN);
        let mut bytes = disk.read(&open).unwrap();
        bytes[3] ^= 1;
        bytes.extend_from_slice(b"torn");
        disk.write(&open, &bytes);
        let recovered = recover(&disk).unwrap();
        assert_eq!(recovered.closed[0].summary.rows(), frames);
        let reasons: Vec<Reason> = recovered.damages.iter().map(|d| d.reason).collect();
        let is_synced = frames == 2;
        assert_eq!(reasons, [Reason::FileHeader][usize::from(!is_synced)..]);
        let torn = recovered.cuts.last().unwrap();
        assert_eq!(torn.to - torn.from, 4);
        assert_eq!(recovered.cuts.len(), if is_synced { 1 } else { 2 });
    }
}

fn source_of(sequence: u64) -> SourceId {
    SourceId {
        incarnation: mint(),
        sequence,
    }
}

/// Whichever of two random names is the greater.
#[test]
fn an_incarnation_ends_and_another_one_begins_at_0() {
    for (first, second) in [(5, 9), (9, 5)] {
        let disk = MemDisk::new();
        let mut writer = writer(&disk);
        let append = |writer: &mut Writer, name: u128| {
            let appended = writer.append(&batch(&[b"row"]), Timestamp(1), || Incarnation(name));
            appended.unwrap().first_id
        };
        append(&mut writer, first);
        writer.sync().unwrap();
        // It is not over before its last file has its name.
        let next = disk.calls_count();
        (next..next + 20).for_each(|call| disk.fail_at(call, Fault::Error(ErrorKind::Other)));
        assert!(writer.end_incarnation().is_err());
        assert_eq!(writer.incarnation(), Some(Incarnation(first)));
        disk.clear_faults();
        writer.end_incarnation().unwrap();
        let visible = writer.visible();
        let latest = |sequence, name| {
            let incarnation = Incarnation(name);
            Some(SourceId {
                incarnation,
                sequence,
            })
        };
        assert_eq!(visible.snapshot().latest, latest(0, first));
        append(&mut writer, second);
        writer.sync().unwrap();
        assert_eq!(visible.snapshot().latest, latest(0, second));
        writer.close().unwrap();
        append(&mut writer, second);
        writer.sync().unwrap();
        assert_eq!(visible.snapshot().latest, latest(1, second));
    }
}

/// However short lines are: a file has no more rows than it is allowed, unless a batch by itself has.
#[test]
fn files_end_before_they_have_too_many_rows() {
    let disk = MemDisk::new();
    let settings = Settings {
        rotate_bytes: 1 << 30,
        rotate_rows: 100,
        ..SETTINGS
    };
    let mut writer = Writer::new(Arc::new(disk.clone()), settings);
    let mut append = |rows: usize| {
        let mut batch = Batch::new(EntryKind::Line, Labels::new());
        (0..rows).for_each(|_| batch.push(b""));
        let appended = writer.append(&batch, Timestamp(0), || Incarnation(5));
        appended.unwrap().source.unwrap().sequence
    };
    // The file that each batch is in.
    let files = [60, 40, 1, 70, 30, 99, 2, 250, 1].map(&mut append);
    assert_eq!(files, [0, 0, 1, 1, 2, 3, 4, 5, 6]);
    writer.close().unwrap();
    let closed = writer.visible().snapshot().closed;
    let rows: Vec<u64> = closed.iter().map(|file| file.summary.rows()).collect();
    assert_eq!(rows, [100, 71, 30, 99, 2, 250, 1]);
}

/// A large batch does not make a file of nearly its full size twice as large.
#[test]
fn a_large_batch_begins_a_file() {
    let disk = MemDisk::new();
    let settings = Settings {
        rotate_bytes: 3 << 20,
        ..SETTINGS
    };
    let mut writer = Writer::new(Arc::new(disk.clone()), settings);
    for bytes in [2 << 20, 1 << 20, 2 << 20, 8 << 20, 1] {
        let mut batch = Batch::new(EntryKind::Line, Labels::new());
        (0..bytes / 1024 + 1).for_each(|_| batch.push(&[b'x'; 1024]));
        writer
            .append(&batch, Timestamp(0), || Incarnation(5))
            .unwrap();
    }
    writer.close().unwrap();
    let closed = writer.visible().snapshot().closed;
    let mib: Vec<u64> = closed.iter().map(|file| file.bytes >> 20).collect();
    assert_eq!(mib, [3, 2, 8, 0]);
}

#[test]
fn frames_of_what_came_before_are_passed_over() {
    let disk = MemDisk::new();
    let settings = Settings {
        rotate_bytes: 1 << 20,
        ..SETTINGS
    };
    let mut writer = Writer::new(Arc::new(disk.clone()), settings);
    let first_ids: Vec<Id> = (0..4)
        .map(|second| {
            let mut batch = Batch::new(EntryKind::Line, Labels::new());
            ["a", "b"]
                .iter()
                .for_each(|line| batch.push(line.as_bytes()));
            let now = Timestamp(second * SECOND_NS);
            let appended = writer.append_identified(&batch, None, now, || Incarnation(7));
            appended.unwrap().first_id
        })
        .collect();
    writer.close().unwrap();
    let closed = writer.visible().snapshot().closed[0].clone();
    let file = JournalFile::from_closed(&disk, &closed).unwrap();
    let read = |up_to: Option<Id>| {
        let mut frames = file.frames();
        frames.pass_over(up_to);
        let mut found = Vec::new();
        while let Some(frame) = frames.next().unwrap() {
            found.push(frame.id(0));
        }
        // The end mark counts all of them.
        assert_eq!(frames.into_damages().count, 0);
        found
    };
    assert_eq!(read(None), first_ids);
    assert_eq!(read(Some(Id::MIN)), first_ids);
    // A frame with a wanted row is read whole.
    assert_eq!(read(Some(first_ids[1])), first_ids[1..]);
    assert_eq!(read(Some(Id(first_ids[2].0 - 1))), first_ids[2..]);
    assert_eq!(read(Some(Id::MAX)), []);
}
