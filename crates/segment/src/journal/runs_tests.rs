//! Runs: who reads a log of numbered records that are kept elsewhere goes on behind the greatest number
//! that is here, and each record is here once, wherever the runs end and whatever fails between.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

use logpond_record::{Batch, EntryKind, Incarnation, Labels, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::batches::{BatchId, BatchSet};
use crate::disk::Disk;
use crate::mem_disk::{Fault, MemDisk};
use crate::sources::Interval;

const EPOCH: u128 = 0xfeed;

/// The log: its records have these numbers, with holes as of a topic that was compacted.
const NUMBERS: u64 = 60;

fn is_record(number: u64) -> bool {
    !number.is_multiple_of(7) && !(20..26).contains(&number)
}

#[derive(Clone, Debug)]
enum Step {
    /// Take so many numbers of the log in, or again what is not known to be durable.
    Read(u64),
    Sync,
    /// Let this many seconds pass.
    Pass(i64),
    /// The disk call that comes this many calls later fails.
    FailLater(u64),
    /// A closed file goes into a segment.
    Consume,
    /// The machine crashes and starts again.
    Crash(u64),
    /// The process is killed and starts again.
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (1u64..12).prop_map(Step::Read),
        6 => Just(Step::Sync),
        1 => (1i64..40).prop_map(Step::Pass),
        2 => (0u64..10).prop_map(Step::FailLater),
        2 => Just(Step::Consume),
        1 => any::<u64>().prop_map(Step::Crash),
        2 => Just(Step::Kill),
    ]
}

/// What was read and is not known to be durable: its name, its records, and its mark once written.
type Pending = (BatchId, Batch, Option<u64>);

struct Model {
    disk: MemDisk,
    writer: Writer,
    now: Timestamp,
    life: u128,
    /// The number to read next.
    next: u64,
    pending: Option<Pending>,
    /// What was said to be durable: everything below.
    durable: u64,
    /// Of segments: how often each record is there, and what they hold.
    stored: BTreeMap<u64, usize>,
    held: BatchSet,
}

impl Model {
    fn new() -> Model {
        let disk = MemDisk::new();
        Model {
            writer: Writer::new(Arc::new(disk.clone()), Settings::default()),
            disk,
            now: Timestamp(1_700_000_000_000_000_000),
            life: 1,
            next: 0,
            pending: None,
            durable: 0,
            stored: BTreeMap::new(),
            held: BatchSet::default(),
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Read(numbers) => self.read(numbers),
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
            Step::Consume => self.consume(),
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

    /// One run is under way at a time: it is offered again, as it was, until it is durable.
    fn read(&mut self, numbers: u64) {
        let end = (self.next + numbers).min(NUMBERS);
        if self.pending.is_none() && end > self.next {
            let mut batch = Batch::new(EntryKind::Line, Labels::new());
            let records = (self.next..end).filter(|number| is_record(*number));
            records.for_each(|number| batch.push(number.to_string().as_bytes()));
            let id = BatchId {
                epoch: EPOCH,
                sequence: self.next,
                attempt: 0,
                first_sent: Timestamp(0),
                more: end - 1 - self.next,
            };
            if batch.is_empty() {
                self.next = end;
            } else {
                self.pending = Some((id, batch, None));
            }
        }
        let Some((id, batch, mark)) = &mut self.pending else {
            return;
        };
        let incarnation = Incarnation(self.life << 64);
        let done = self
            .writer
            .append_identified(batch, Some(*id), self.now, || incarnation);
        match &done {
            Ok(appended) => *mark = Some(appended.mark),
            Err(WriteError::Run { id }) => panic!("{id} is there in part"),
            // Refusals touch nothing else; here is nothing else.
            Err(_) => {}
        }
        self.settle(done.is_ok());
    }

    fn settle(&mut self, ok: bool) {
        let Some((id, _, mark)) = &mut self.pending else {
            return;
        };
        if mark.is_some_and(|mark| mark <= self.writer.durable_mark()) {
            self.next = id.run().to + 1;
            self.durable = self.next;
            self.pending = None;
        } else if !ok {
            *mark = None;
        }
    }

    fn consume(&mut self) {
        self.disk.clear_faults();
        let visible = self.writer.visible();
        let Some(file) = visible.snapshot().closed.first().cloned() else {
            return;
        };
        let mut stored = std::mem::take(&mut self.stored);
        count(&self.disk, &file, &mut stored);
        self.stored = stored;
        file.batches.add_to(&mut self.held);
        visible.remove_closed(file.source).unwrap();
        self.disk.remove(&file.path).unwrap();
        self.disk.sync_directory(DIRECTORY).unwrap();
    }

    /// What a start does: it forgets all but the files, and goes on behind what they hold.
    fn restart(&mut self) {
        self.disk.clear_faults();
        self.pending = None;
        self.life += 1;
        let recovered = recover(&self.disk).unwrap();
        assert_eq!(recovered.damages, []);
        self.writer = Writer::new(Arc::new(self.disk.clone()), Settings::default());
        let mut all = self.stored.clone();
        let mut held = self.held.clone();
        for file in &recovered.closed {
            count(&self.disk, file, &mut all);
            file.batches.add_to(&mut held);
        }
        self.writer.visible().add_closed(recovered.closed);
        self.next = held.of_epoch(EPOCH).last().map_or(0, |run| run.to + 1);
        assert!(
            self.next >= self.durable,
            "what is durable is not forgotten"
        );
        for number in 0..NUMBERS {
            let expected = usize::from(is_record(number) && number < self.next);
            let counted = all.get(&number).copied().unwrap_or(0);
            assert_eq!(counted, expected, "record {number}");
        }
    }
}

/// Counts the records of a file, each of which is in the run that its frame names.
fn count(disk: &MemDisk, file: &ClosedFile, counted: &mut BTreeMap<u64, usize>) {
    let journal = JournalFile::from_closed(disk, file).unwrap();
    let mut frames = journal.frames();
    while let Some(frame) = frames.next().unwrap() {
        let run = frame.batch_id().unwrap().run();
        for line in frame.to_batch().iter() {
            let number: u64 = std::str::from_utf8(line).unwrap().parse().unwrap();
            assert!((run.from..=run.to).contains(&number));
            *counted.entry(number).or_default() += 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn every_record_of_a_log_counts_once(steps in prop::collection::vec(step(), 1..80)) {
        let mut model = Model::new();
        steps.iter().for_each(|step| model.step(step));
        model.disk.end_process();
        model.restart();
        // Whatever happened, the rest can be read.
        while model.next < NUMBERS {
            model.step(&Step::Read(5));
            model.step(&Step::Sync);
        }
        model.disk.end_process();
        model.restart();
    }
}

fn run(sequence: u64, more: u64) -> BatchId {
    BatchId {
        epoch: EPOCH,
        sequence,
        attempt: 0,
        first_sent: Timestamp(0),
        more,
    }
}

#[test]
fn a_run_is_new_or_there_and_nothing_between() {
    let disk = MemDisk::new();
    let mut writer = Writer::new(Arc::new(disk.clone()), Settings::default());
    let mut batch = Batch::new(EntryKind::Line, Labels::new());
    batch.push(b"x");
    let mut send = |id| writer.append_identified(&batch, Some(id), Timestamp(1), || Incarnation(5));
    assert!(!send(run(10, 5)).unwrap().is_known);
    assert!(send(run(10, 5)).unwrap().is_known);
    assert!(send(run(11, 2)).unwrap().is_known, "all of it is there");
    assert!(send(run(12, 0)).unwrap().is_known);
    assert!(send(run(8, 3)).unwrap_err().is_refusal());
    assert!(send(run(15, 1)).unwrap_err().is_refusal());
    let retry = BatchId {
        attempt: 1,
        ..run(30, 1)
    };
    assert!(send(retry).unwrap_err().is_refusal());
    assert!(!send(run(16, 4)).unwrap().is_known);
    writer.close().unwrap();
    let closed = writer.visible().snapshot().closed;
    let mut held = BatchSet::default();
    closed[0].batches.add_to(&mut held);
    let all: Vec<Interval> = held.of_epoch(EPOCH).collect();
    assert_eq!(all, [Interval { from: 10, to: 20 }], "neighbours are one");
}

#[test]
fn the_frame_of_a_run_says_how_far_it_goes() {
    let disk = MemDisk::new();
    let mut writer = Writer::new(Arc::new(disk.clone()), Settings::default());
    let mut batch = Batch::new(EntryKind::Line, Labels::new());
    batch.push(b"x");
    let wide = run(u64::MAX - 3, 3);
    for id in [run(1, 0), run(10, 7), wide] {
        let appended = writer.append_identified(&batch, Some(id), Timestamp(1), || Incarnation(5));
        assert!(!appended.unwrap().is_known);
    }
    writer.close().unwrap();
    let closed = writer.visible().snapshot().closed;
    let journal = JournalFile::from_closed(&disk, &closed[0]).unwrap();
    let mut frames = journal.frames();
    let mut ids = Vec::new();
    while let Some(frame) = frames.next().unwrap() {
        ids.push(frame.batch_id().unwrap());
    }
    assert_eq!(ids, [run(1, 0), run(10, 7), wide]);
    // The same file after a restart.
    let recovered = recover(&disk).unwrap();
    assert_eq!(recovered.closed[0].batches, closed[0].batches);
}
