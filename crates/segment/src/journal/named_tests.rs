//! Batches with names: each counts once, however often it is sent and whatever fails between.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

use logpond_record::{Batch, EntryKind, Id, Incarnation, Labels, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::batches::{BatchId, RetryCopy, yielding};
use crate::disk::Disk;
use crate::mem_disk::{Fault, MemDisk};

const EPOCH: u128 = 0xfeed;
const BATCHES: usize = 6;

#[derive(Clone, Debug)]
enum Step {
    /// Send this batch, for the first time or again.
    Send(usize),
    /// Write records of no name.
    Append,
    Sync,
    /// Let this many seconds pass.
    Pass(i64),
    /// The disk call that comes this many calls later fails.
    FailLater(u64),
    /// A closed file goes elsewhere, with what it holds: into a segment.
    Consume,
    /// The machine crashes and starts again.
    Crash(u64),
    /// The process is killed and starts again.
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0..BATCHES).prop_map(Step::Send),
        2 => Just(Step::Append),
        4 => Just(Step::Sync),
        1 => (1i64..40).prop_map(Step::Pass),
        2 => (0u64..10).prop_map(Step::FailLater),
        2 => Just(Step::Consume),
        1 => any::<u64>().prop_map(Step::Crash),
        2 => Just(Step::Kill),
    ]
}

fn batch(text: &str) -> Batch {
    let mut batch = Batch::new(EntryKind::Line, Labels::new());
    batch.push(text.as_bytes());
    batch.push(text.as_bytes());
    batch
}

fn named(sequence: u64, attempt: u32) -> BatchId {
    BatchId {
        epoch: EPOCH,
        sequence,
        attempt,
        first_sent: Timestamp(sequence as i64),
        more: 0,
    }
}

/// How often the rows of each batch count in a journal and what was consumed of it.
#[derive(Default)]
struct BatchCounts {
    copies: Vec<RetryCopy>,
    originals: Vec<BatchId>,
}

impl BatchCounts {
    fn add(&mut self, disk: &MemDisk, file: &ClosedFile) {
        let journal = JournalFile::from_closed(disk, file).unwrap();
        let mut frames = journal.frames();
        let mut ids = Vec::new();
        while let Some(frame) = frames.next().unwrap() {
            ids.push(frame.batch_id());
        }
        let known = ids.iter().flatten();
        known.for_each(|id| assert!(file.batches.contains(id.epoch, id.sequence)));
        match file.batches.retry() {
            Some(id) => {
                assert_eq!(ids, [Some(id)], "a retry has a file to itself");
                let source = file.source;
                self.copies.push(RetryCopy { source, id });
            }
            None => {
                let ids = ids.into_iter().flatten();
                self.originals
                    .extend(ids.inspect(|id| assert!(!id.is_retry())));
            }
        }
    }

    fn count(&self, sequence: u64) -> usize {
        let originals = self.originals.iter();
        let out = yielding(&self.copies, |id| {
            self.originals.iter().any(|o| o.sequence == id.sequence)
        });
        let copies = self.copies.iter().filter(|copy| !out.contains(copy.source));
        originals.filter(|id| id.sequence == sequence).count()
            + copies.filter(|copy| copy.id.sequence == sequence).count()
    }
}

struct Model {
    disk: MemDisk,
    writer: Writer,
    now: Timestamp,
    life: u128,
    /// For each batch that was sent: attempts, and whether it was acknowledged.
    sent: BTreeMap<u64, (u32, bool)>,
    pending: Vec<(u64, u64)>,
    consumed: BatchCounts,
}

impl Model {
    fn new() -> Model {
        let disk = MemDisk::new();
        Model {
            writer: Writer::new(Arc::new(disk.clone()), Settings::default()),
            disk,
            now: Timestamp(1_700_000_000_000_000_000),
            life: 1,
            sent: BTreeMap::new(),
            pending: Vec::new(),
            consumed: BatchCounts::default(),
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Send(at) => self.send(at as u64),
            Step::Append => {
                let incarnation = Incarnation(self.life << 64);
                let text = batch("nameless");
                let done = self.writer.append(&text, self.now, || incarnation);
                self.settle(done.is_ok());
            }
            Step::Sync => {
                let done = self.writer.sync();
                self.settle(done.is_ok());
                let done = self.writer.rotate_if_due(self.now);
                self.settle(done.is_ok());
            }
            Step::Pass(seconds) => {
                self.now = self.now.saturating_add(seconds * 1_000_000_000);
                let done = self.writer.rotate_if_due(self.now);
                self.settle(done.is_ok());
            }
            Step::FailLater(calls) => {
                let fault = Fault::Error(ErrorKind::Other);
                self.disk.fail_at(self.disk.calls_count() + calls, fault);
            }
            Step::Consume => {
                self.disk.clear_faults();
                let visible = self.writer.visible();
                if let Some(file) = visible.snapshot().closed.first() {
                    self.consumed.add(&self.disk, file);
                    visible.remove_closed(file.source).unwrap();
                    self.disk.remove(&file.path).unwrap();
                    self.disk.sync_directory(DIRECTORY).unwrap();
                }
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
    }

    fn send(&mut self, sequence: u64) {
        let (attempts, _) = self.sent.entry(sequence).or_default();
        let id = named(sequence, *attempts);
        *attempts += 1;
        let incarnation = Incarnation(self.life << 64);
        let text = batch(&sequence.to_string());
        let done = self
            .writer
            .append_identified(&text, Some(id), self.now, || incarnation);
        if let Ok(appended) = &done {
            assert_eq!(appended.count, 2);
            assert_eq!(appended.is_known, appended.first_id == Id::MIN);
            self.pending.push((appended.mark, sequence));
        }
        self.settle(done.is_ok());
    }

    fn settle(&mut self, ok: bool) {
        let mark = self.writer.durable_mark();
        for (_, sequence) in self.pending.extract_if(.., |(m, _)| *m <= mark) {
            self.sent.entry(sequence).or_default().1 = true;
        }
        if !ok {
            self.pending.clear();
        }
    }

    fn restart(&mut self) {
        self.disk.clear_faults();
        self.pending.clear();
        self.life += 1;
        let recovered = recover(&self.disk).unwrap();
        assert_eq!(recovered.damages, []);
        self.writer = Writer::new(Arc::new(self.disk.clone()), Settings::default());
        self.writer.visible().add_closed(recovered.closed);
        self.check();
    }

    fn check(&mut self) {
        let mut all = BatchCounts {
            copies: self.consumed.copies.clone(),
            originals: self.consumed.originals.clone(),
        };
        let closed = self.writer.visible().snapshot().closed;
        closed.iter().for_each(|file| all.add(&self.disk, file));
        for (sequence, (_, is_acknowledged)) in &self.sent {
            let counted = all.count(*sequence);
            assert!(counted <= 1, "batch {sequence} counts {counted} times");
            assert!(counted == 1 || !is_acknowledged, "batch {sequence} is lost");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn every_batch_counts_once(steps in prop::collection::vec(step(), 1..60)) {
        let mut model = Model::new();
        steps.iter().for_each(|step| model.step(step));
        model.disk.end_process();
        model.restart();
    }
}

fn writer(disk: &MemDisk) -> Writer {
    Writer::new(Arc::new(disk.clone()), Settings::default())
}

/// A second sending joins the first one's sync; it fails if that does.
#[test]
fn a_batch_that_is_being_written_is_not_written_again() {
    let disk = MemDisk::new();
    let mut writer = writer(&disk);
    let (text, now) = (batch("x"), Timestamp(1));
    let send = |writer: &mut Writer, attempt| {
        let id = Some(named(0, attempt));
        writer
            .append_identified(&text, id, now, || Incarnation(5))
            .unwrap()
    };
    let first = send(&mut writer, 0);
    let second = send(&mut writer, 1);
    assert_eq!((first.is_known, second.is_known), (false, true));
    assert!(second.mark > writer.durable_mark());
    disk.fail_at(disk.calls_count(), Fault::Error(ErrorKind::Other));
    assert!(writer.sync().is_err());
    disk.clear_faults();
    assert!(second.mark > writer.durable_mark());
    let third = send(&mut writer, 2);
    assert!(!third.is_known, "what failed is not there");
    writer.sync().unwrap();
    assert!(send(&mut writer, 3).mark <= writer.durable_mark());
    writer.close().unwrap();
    let closed = writer.visible().snapshot().closed;
    assert_eq!(closed.len(), 1);
    assert_eq!(closed[0].batches.retry(), Some(named(0, 2)));
    assert!(send(&mut writer, 4).is_known);
}

#[test]
fn a_batch_with_a_name_is_one_frame() {
    let disk = MemDisk::new();
    let mut writer = writer(&disk);
    let mut large = Batch::new(EntryKind::Line, Labels::new());
    (0..FRAME_ENTRIES_MAX).for_each(|_| large.push(&[b'x'; 100]));
    let mut send = |batch: &Batch, id| {
        let now = Timestamp(1);
        writer
            .append_identified(batch, Some(id), now, || Incarnation(5))
            .map(|_| ())
    };
    send(&large, named(0, 0)).unwrap();
    large.push(b"one more");
    let error = send(&large, named(1, 0)).unwrap_err();
    assert!(error.is_refusal(), "{error}");
    let mut wide = Batch::new(EntryKind::Line, Labels::new());
    (0..3).for_each(|_| wide.push(&vec![b'x'; FRAME_PAYLOAD_BYTES_MAX / 2]));
    assert!(send(&wide, named(1, 0)).unwrap_err().is_refusal());
    writer.close().unwrap();
    let closed = writer.visible().snapshot().closed;
    let journal = JournalFile::from_closed(&disk, &closed[0]).unwrap();
    let mut frames = journal.frames();
    let frame = frames.next().unwrap().unwrap();
    assert_eq!(
        (frame.count(), frame.batch_id()),
        (FRAME_ENTRIES_MAX, Some(named(0, 0)))
    );
    assert!(frames.next().unwrap().is_none());
}
