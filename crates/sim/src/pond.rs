//! A pond under a random workload, on a disk with faults.

use std::sync::Arc;

use logpond_record::{Batch, EntryKind, Id, Incarnation, Labels, Timestamp};
use logpond_segment::disk::Disk;
use logpond_segment::journal::{
    Codec, DIRECTORY, JournalFile, RecoveryReport, Settings, Writer, recover,
};
use logpond_segment::mem_disk::{Fault, MemDisk, SeededRandom};

use crate::ledger::{Ledger, Row};
use crate::report::Report;
use crate::segments::{Segments, Step};

const SECOND_NS: i64 = 1_000_000_000;

/// Small files, so that a short run has many of them.
const JOURNAL: Settings = Settings {
    rotate_age_ns: 30 * SECOND_NS,
    rotate_bytes: 8 << 10,
    rotate_rows: 100,
    codec: Codec::None,
};

/// How likely things go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// One in so many steps ends with a power loss at some later call; 0 is never.
    pub power_loss_one_in: u64,
    /// One in so many steps ends the process; 0 is never.
    pub kill_one_in: u64,
    /// One in so many disk calls fails; 0 is none.
    pub error_one_in: u64,
    /// One in so many steps makes the disk nearly full or gives it room again; 0 is never.
    pub full_one_in: u64,
}

impl Faults {
    /// Nothing goes wrong.
    pub const NONE: Faults = Faults {
        power_loss_one_in: 0,
        kill_one_in: 0,
        error_one_in: 0,
        full_one_in: 0,
    };

    /// Everything goes wrong now and then.
    pub const ALL: Faults = Faults {
        power_loss_one_in: 30,
        kill_one_in: 60,
        error_one_in: 80,
        full_one_in: 50,
    };
}

/// A journal with its disk, its workload and its judge.
pub struct SimulatedJournal {
    disk: MemDisk,
    random: SeededRandom,
    faults: Faults,
    writer: Writer,
    segments: Segments,
    now: Timestamp,
    rows: u64,
    ledger: Ledger,
    report: Report,
}

impl SimulatedJournal {
    /// An empty pond whose whole life follows from the seed.
    pub fn new(seed: u64, faults: Faults) -> SimulatedJournal {
        let disk = MemDisk::new();
        let mut pond = SimulatedJournal {
            writer: Writer::new(Arc::new(disk.clone()), JOURNAL),
            segments: Segments::open(&disk).expect("without faults"),
            disk,
            random: SeededRandom::new(seed),
            faults,
            now: Timestamp(1_700_000_000 * SECOND_NS),
            rows: 0,
            ledger: Ledger::default(),
            report: Report::default(),
        };
        pond.arm();
        pond
    }

    /// The disk, to place faults.
    pub fn disk(&self) -> &MemDisk {
        &self.disk
    }

    /// Takes so many steps, restarting whenever the power fails.
    pub fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.step();
            if self.disk.is_powered_off() {
                self.crash();
            }
        }
    }

    /// Ends with a last power loss and a last check; gives what happened.
    pub fn finish(mut self) -> Report {
        self.look();
        self.crash();
        self.report
    }

    fn step(&mut self) {
        let faults = self.faults;
        let strikes = |random: &mut SeededRandom, n| n > 0 && random.one_in(n);
        if strikes(&mut self.random, faults.power_loss_one_in) {
            let call = self.disk.calls_count() + self.random.below(20);
            self.disk.fail_at(call, Fault::PowerLoss);
        }
        if strikes(&mut self.random, faults.kill_one_in) {
            self.note("kill");
            self.report.kills += 1;
            self.disk.end_process();
            self.restart();
        }
        if strikes(&mut self.random, faults.full_one_in) {
            self.fill_or_free();
        }
        match self.random.below(25) {
            0..10 => self.append(),
            10..14 => self.sync(),
            14..16 => self.close(),
            16..18 => self.pass(),
            18..20 => self.consume(),
            20..23 => self.compact(),
            23 => self.purge(),
            _ => self.look(),
        }
    }

    /// Hands over a batch; half of them are durable, that is, synced at once.
    fn append(&mut self) {
        let count = 1 + self.random.below(6);
        let labels: Labels = vec![("hostname".into(), "ash".into())];
        let mut batch = Batch::new(EntryKind::Line, labels);
        for _ in 0..count {
            let mut raw = format!("row {} ", self.rows).into_bytes();
            raw.resize(raw.len() + self.random.below(700) as usize, b'x');
            self.rows += 1;
            self.report.rows += 1;
            self.ledger.attempt(&raw);
            batch.push(&raw);
        }
        let incarnation = (u128::from(self.random.draw()) << 64) | u128::from(self.random.draw());
        let durable = self.random.one_in(2);
        match self
            .writer
            .append(&batch, self.now, || Incarnation(incarnation))
        {
            Ok(appended) => {
                for (index, raw) in batch.iter().enumerate() {
                    let row = Row {
                        id: Id(appended.first_id.0 + index as u128),
                        raw: raw.to_vec(),
                    };
                    self.ledger.taken(appended.mark, row);
                }
                self.note(&format!("append {count} as {}", appended.first_id));
                self.after(true);
                if durable {
                    self.sync();
                }
            }
            Err(error) => {
                self.note(&format!("append {count}: {error}"));
                self.after(false);
            }
        }
    }

    fn sync(&mut self) {
        let result = self.writer.sync();
        self.note(&format!("sync: {}", result.is_ok()));
        self.after(result.is_ok());
    }

    fn close(&mut self) {
        let result = self.writer.close();
        self.note(&format!("close: {}", result.is_ok()));
        self.after(result.is_ok());
    }

    /// Lets time pass, now and then backwards.
    fn pass(&mut self) {
        let seconds = self.random.below(25) as i64 - 3;
        self.now = self.now.saturating_add(seconds * SECOND_NS);
        let result = self.writer.rotate_if_due(self.now);
        self.note(&format!("pass {seconds} s: {}", result.is_ok()));
        self.after(result.is_ok());
    }

    /// Notes what the writer promises after a call.
    fn after(&mut self, ok: bool) {
        self.report.acknowledgements += self.ledger.promise(self.writer.durable_mark());
        if !ok {
            self.report.errors += 1;
            self.ledger.give_up_pending();
        }
        for file in self.writer.visible().snapshot().closed.iter() {
            self.ledger.closed(file.source, file.summary.tally);
        }
    }

    /// Does what the store does: puts the oldest closed files into a segment, then removes them.
    fn consume(&mut self) {
        let visible = self.writer.visible();
        let step = self.segments.consume(&visible, &mut self.random);
        self.after_store("consume", &step);
    }

    fn compact(&mut self) {
        let step = self.segments.compact(self.now, &mut self.random);
        self.after_store("compact", &step);
    }

    fn purge(&mut self) {
        let step = self.segments.purge();
        self.after_store("purge", &step);
    }

    fn after_store(&mut self, what: &str, step: &Step) {
        self.note(&format!("{what}: {step:?}"));
        match step {
            Step::Consumed(files) => self.report.files_consumed += files,
            Step::Merged(inputs) => self.report.segments_merged += inputs,
            Step::Failed(_) => self.report.segment_errors += 1,
            Step::Retired | Step::Nothing => {}
        }
        for manifest in self.segments.manifests() {
            manifest.sources.iter().for_each(|s| self.ledger.listed(s));
        }
    }

    /// Reads what readers may read; all of it must be there for ever after.
    fn look(&mut self) {
        self.disk.fail_one_in(0, 0);
        let snapshot = self.writer.visible().snapshot();
        // Like a query: the journal first, and of it what no segment holds.
        let Some(mut seen) = self.segments.rows() else {
            return self.note("look: cannot read");
        };
        let closed = snapshot.closed.iter();
        let closed = closed.filter(|file| !self.segments.holds(file.source));
        let closed = closed.map(|file| JournalFile::from_closed(&self.disk, file));
        let open = snapshot.open.iter().map(JournalFile::from_open);
        for journal in closed.chain(open) {
            match journal.ok().and_then(|journal| rows_of(&journal)) {
                Some(rows) => seen.extend(rows),
                // A fault that was placed at a call has struck here.
                None => return self.note("look: cannot read"),
            }
        }
        self.check(&seen);
        seen.into_iter().for_each(|row| self.ledger.shown(row));
        self.arm();
    }

    fn fill_or_free(&mut self) {
        self.disk.set_capacity(None);
        if self.random.one_in(2) {
            let space = self.disk.space().expect("space is never refused");
            let used = space.total_bytes - space.free_bytes;
            let more = self.random.below(4000);
            self.note(&format!("{more} bytes are free"));
            self.disk.set_capacity(Some(used + more));
        }
    }

    fn crash(&mut self) {
        let seed = self.random.draw();
        self.note("power loss");
        self.report.crashes += 1;
        self.disk.crash(seed);
        self.restart();
    }

    /// Starts again: recovers, with further power losses on the way, and checks.
    fn restart(&mut self) {
        self.ledger.give_up_pending();
        self.disk.set_capacity(None);
        self.disk.clear_faults();
        let recovered = self.recover();
        self.note(&format!(
            "recovered {} files, {} cuts, {} damages",
            recovered.closed.len(),
            recovered.cuts.len(),
            recovered.damages_count
        ));
        // A crash takes what no sync had returned for, which is neither damage nor a riddle.
        assert_eq!(recovered.damages, [], "a crash damages no journal file");
        assert_eq!(recovered.unusable, [], "a crash leaves nothing unusable");
        self.report.cuts += recovered.cuts.len() as u64;
        self.segments = self.reopen();
        self.segments.verify();
        let mut rows = self.segments.rows().expect("without faults");
        let mut closed = Vec::new();
        for file in recovered.closed {
            self.ledger.closed(file.source, file.summary.tally);
            if self.segments.holds(file.source) {
                // The removal was lost in a crash; the next consumption removes it again.
                closed.push(file);
                continue;
            }
            let journal = JournalFile::from_closed(&self.disk, &file);
            let found = journal.ok().and_then(|journal| rows_of(&journal));
            rows.extend(found.expect("what was recovered is readable"));
            closed.push(file);
        }
        self.check(&rows);
        // All of it is shown to readers from now on.
        rows.into_iter().for_each(|row| self.ledger.shown(row));
        self.writer = Writer::new(Arc::new(self.disk.clone()), JOURNAL);
        self.writer.visible().add_closed(closed);
        self.arm();
    }

    /// Opens the segments, with power losses on the way.
    fn reopen(&mut self) -> Segments {
        if self.faults.power_loss_one_in > 0 && self.random.one_in(3) {
            let call = self.disk.calls_count() + self.random.below(20);
            self.disk.fail_at(call, Fault::PowerLoss);
            let _ = Segments::open(&self.disk);
            self.disk.clear_faults();
            let seed = self.random.draw();
            if self.disk.is_powered_off() {
                self.report.crashes += 1;
                self.disk.crash(seed);
            }
        }
        Segments::open(&self.disk).expect("without faults")
    }

    fn recover(&mut self) -> RecoveryReport {
        let tries = if self.faults.power_loss_one_in > 0 {
            self.random.below(3)
        } else {
            0
        };
        for _ in 0..tries {
            let call = self.disk.calls_count() + self.random.below(12);
            self.disk.fail_at(call, Fault::PowerLoss);
            let _ = recover(&self.disk);
            self.disk.clear_faults();
            let seed = self.random.draw();
            if self.disk.is_powered_off() {
                self.report.crashes += 1;
                self.disk.crash(seed);
            }
        }
        let recovered = recover(&self.disk).expect("without faults recovery works");
        let names = self.disk.list(DIRECTORY).expect("without faults");
        let left = names.iter().find(|entry| entry.name.ends_with(".open"));
        assert_eq!(left, None, "recovery closes everything");
        recovered
    }

    fn check(&mut self, journal: &[Row]) {
        self.report.checks += 1;
        self.report.rows_checked += self.ledger.check(journal);
    }

    /// Puts the random IO errors back after a time without.
    fn arm(&mut self) {
        let seed = self.random.draw();
        self.disk.fail_one_in(self.faults.error_one_in, seed);
    }

    fn note(&mut self, line: &str) {
        let calls = self.disk.calls_count();
        self.report.trace.push(format!("{calls}: {line}"));
    }
}

/// The rows of a journal file; `None` if the disk fails.
fn rows_of(journal: &JournalFile) -> Option<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    let mut frames = journal.frames();
    while let Some(frame) = frames.next().ok()? {
        for entry in frame.entries() {
            let row = Row {
                id: entry.id,
                raw: entry.raw.to_vec(),
            };
            assert!(
                rows.last().is_none_or(|last| last.id < row.id),
                "ids increase"
            );
            rows.push(row);
        }
    }
    let damages = frames.into_damages();
    assert_eq!(damages.listed, [], "a crash damages no journal file");
    Some(rows)
}
