//! The loop of the thread `lp-journal`.
//!
//! Invariants:
//! - One sync serves every durable batch appended before it (group commit).
//! - A failed append or sync fails every batch that no earlier sync covered; none of them is
//!   acknowledged, and the journal has dropped them.
//! - Nothing is appended after a file was closed that was asked for after the gate was shut.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use logpond_record::Timestamp;
use logpond_segment::batches::BatchId;
use logpond_segment::disk::Space;
use logpond_segment::journal::WriteError;
use tokio::sync::oneshot;

use super::load::percent;
use super::{
    Acknowledgement, Gate, IngestError, Journal, LoadInputs, Message, News, Reply, Submission,
    UNSYNCED_TIME_MAX,
};
use logpond_host::telemetry::Metrics;

/// How much is appended before a sync although more is waiting: bounds the wait of the first.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// How often an open journal file is asked whether it is due for rotation. Rotation is counted in
/// tens of seconds.
const ROTATION_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How often the room on the disk is looked at while records come in, and while it is full.
const SPACE_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Room that must stay free for closing files and removing old ones: the smaller of this and one
/// fiftieth of the disk.
const RESERVE_BYTES_MAX: u64 = 16 << 20;

/// A durable batch that is written and waits for its sync.
struct PendingBatch {
    reply: Reply,
    accepted: Acknowledgement,
    mark: u64,
}

pub(super) struct Driver<J> {
    journal: J,
    receiver: Receiver<Message>,
    news: News,
    /// What was told of files.
    files_told: u64,
    metrics: Arc<Metrics>,
    clock: fn() -> Timestamp,
    waiting: Vec<PendingBatch>,
    unsynced_since: Option<Instant>,
    /// Mark and number of records of each batch that was acknowledged after its write.
    unsynced_fast: Vec<(u64, u64)>,
    unsynced_batches: u64,
    space_checked_at: Option<Instant>,
    full: Option<Arc<str>>,
    /// The notes on the room of the disk.
    load_inputs: Arc<LoadInputs>,
    gate: Gate,
}

enum Event {
    Batch(Box<Submission>),
    /// The open file is to be closed now; whoever asked waits for the answer.
    Close(oneshot::Sender<Result<(), String>>),
    /// So is the incarnation.
    End(mpsc::Sender<bool>),
    Due,
    Ended,
}

impl<J: Journal> Driver<J> {
    pub(super) fn new(
        journal: J,
        receiver: Receiver<Message>,
        news: News,
        metrics: Arc<Metrics>,
        clock: fn() -> Timestamp,
        (load_inputs, gate): (Arc<LoadInputs>, Gate),
    ) -> Driver<J> {
        let files_told = journal.visible().files_version();
        Driver {
            journal,
            receiver,
            news,
            files_told,
            metrics,
            clock,
            waiting: Vec::new(),
            unsynced_since: None,
            unsynced_fast: Vec::new(),
            unsynced_batches: 0,
            space_checked_at: None,
            full: None,
            load_inputs,
            gate,
        }
    }

    pub(super) fn run(mut self) -> Result<(), WriteError> {
        loop {
            match self.next() {
                Event::Batch(submission) => {
                    self.append_group(*submission);
                    let late = self
                        .unsynced_since
                        .is_some_and(|t| t.elapsed() >= UNSYNCED_TIME_MAX);
                    if late || !self.waiting.is_empty() {
                        self.sync();
                    }
                }
                Event::Close(done) => {
                    let _ = done.send(self.close_file());
                    continue;
                }
                Event::End(done) => {
                    let _ = done.send(self.end_incarnation());
                    continue;
                }
                Event::Due => self.sync(),
                Event::Ended => break,
            }
            self.rotate_if_due();
        }
        self.sync();
        let closed = self.journal.close();
        self.tell();
        closed
    }

    fn next(&self) -> Event {
        let received = match (self.unsynced_since, self.journal.needs_attention()) {
            (Some(since), _) => {
                let left = UNSYNCED_TIME_MAX.saturating_sub(since.elapsed());
                self.receiver.recv_timeout(left)
            }
            (None, true) => self.receiver.recv_timeout(ROTATION_CHECK_INTERVAL),
            // Nothing to look after: an idle process does not wake up.
            (None, false) => self
                .receiver
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(Message::Batch(submission)) => Event::Batch(Box::new(submission)),
            Ok(Message::Close(done)) => Event::Close(done),
            Ok(Message::End(done)) => Event::End(done),
            Err(RecvTimeoutError::Timeout) => Event::Due,
            Err(RecvTimeoutError::Disconnected) => Event::Ended,
        }
    }

    /// Syncs and closes the open file. What fails is tried again with the next rotation.
    fn close_file(&mut self) -> Result<(), String> {
        self.sync();
        let closed = self.journal.close();
        let closed = closed.map_err(|error| format!("a journal file could not be closed: {error}"));
        if let Err(what) = &closed {
            logpond_host::telemetry::warn(what);
        }
        self.tell();
        closed
    }

    /// Closes the open file and ends the incarnation; gives whether it has.
    fn end_incarnation(&mut self) -> bool {
        self.sync();
        let ended = self.journal.end_incarnation();
        if let Err(error) = &ended {
            logpond_host::telemetry::warn(&format!("a journal file could not be closed: {error}"));
        }
        self.tell();
        ended.is_ok()
    }

    /// Appends the batch and all that wait behind it, up to the group's size.
    fn append_group(&mut self, first: Submission) {
        let mut bytes = first.batch.payload().len();
        self.append(first);
        while bytes < GROUP_BYTES_MAX {
            match self.receiver.try_recv() {
                Ok(Message::Batch(submission)) => {
                    bytes += submission.batch.payload().len();
                    self.append(submission);
                }
                Ok(Message::Close(done)) => {
                    let _ = done.send(self.close_file());
                }
                Ok(Message::End(done)) => {
                    let _ = done.send(self.end_incarnation());
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
    }

    fn append(&mut self, submission: Submission) {
        let Submission {
            batch,
            id,
            durable,
            queued_at,
            reply,
            room,
        } = submission;
        self.metrics
            .queue_wait_ns
            .observe_duration(queued_at.elapsed());
        if let Err(refused) = self.gate.check() {
            reply.send(Err(refused));
            return;
        }
        self.check_space();
        if let Some(what) = &self.full {
            reply.send(Err(IngestError::Full(what.clone())));
            return;
        }
        let started = Instant::now();
        let appended = self
            .journal
            .append(&batch, id, in_whole_micros((self.clock)()));
        self.metrics.write_ns.observe_duration(started.elapsed());
        drop(room);
        let appended = match appended {
            Ok(appended) => appended,
            Err(error) => {
                reply.send(Err((&error).into()));
                // A refusal is the sender's mistake and touches no other batch.
                if !error.is_refusal() {
                    self.fail_unsynced(&error);
                }
                return;
            }
        };
        let accepted = Acknowledgement {
            first_id: appended.first_id,
            count: appended.count,
            source: appended.source,
        };
        self.note_resend(id, appended.is_known);
        if appended.is_known && (!durable || appended.mark <= self.journal.durable_mark()) {
            reply.send(Ok(accepted));
            return;
        }
        self.unsynced_since.get_or_insert(started);
        if !appended.is_known {
            self.metrics
                .batch_bytes
                .observe(batch.payload().len() as u64);
            self.unsynced_batches += 1;
        }
        if durable {
            self.waiting.push(PendingBatch {
                reply,
                accepted,
                mark: appended.mark,
            });
        } else {
            self.unsynced_fast.push((appended.mark, appended.count));
            reply.send(Ok(accepted));
        }
    }

    fn note_resend(&self, id: Option<BatchId>, is_known: bool) {
        let Some(id) = id else {
            return;
        };
        self.metrics.resends.add(u64::from(id.is_retry()));
        self.metrics.resends_known.add(u64::from(is_known));
    }

    fn sync(&mut self) {
        if self.unsynced_since.is_none() {
            return;
        }
        let started = Instant::now();
        let synced = self.journal.sync();
        self.metrics.sync_ns.observe_duration(started.elapsed());
        match synced {
            Ok(()) => self.settle(),
            Err(error) => self.fail_unsynced(&error),
        }
    }

    fn rotate_if_due(&mut self) {
        match self.journal.rotate_if_due((self.clock)()) {
            // A rotation syncs; then whoever waits has waited long enough.
            Ok(()) if !self.is_settled() => self.settle(),
            Ok(()) => self.tell_of_files(),
            Err(error) => self.fail_unsynced(&error),
        }
    }

    /// Whether nobody waits for what the journal has made durable.
    fn is_settled(&self) -> bool {
        let durable = self.journal.durable_mark();
        self.waiting.iter().all(|w| w.mark > durable)
    }

    /// Tells those who read the journal, and those who wait for files.
    fn tell(&mut self) {
        self.news.grown.notify();
        self.tell_of_files();
    }

    /// Tells those who wait for files, if some were closed.
    fn tell_of_files(&mut self) {
        let files = self.journal.visible().files_version();
        if files != self.files_told {
            self.files_told = files;
            self.news.closed.notify();
        }
    }

    /// Tells everybody whose batch is durable.
    fn settle(&mut self) {
        let durable = self.journal.durable_mark();
        self.metrics.group_batches.observe(self.unsynced_batches);
        self.tell();
        for PendingBatch {
            reply, accepted, ..
        } in self.waiting.extract_if(.., |w| w.mark <= durable)
        {
            reply.send(Ok(accepted));
        }
        self.unsynced_fast.retain(|(mark, _)| *mark > durable);
        if self.waiting.is_empty() && self.unsynced_fast.is_empty() {
            self.unsynced_since = None;
        }
        self.unsynced_batches = 0;
    }

    fn fail_unsynced(&mut self, error: &WriteError) {
        // An earlier sync may have covered some of those that wait.
        self.settle();
        if error.is_full() {
            self.set_full(Some(error.to_string().into()));
            self.space_checked_at = Some(Instant::now());
        }
        let lost: u64 = self.unsynced_fast.drain(..).map(|(_, count)| count).sum();
        self.metrics.unsynced_lost.add(lost);
        for PendingBatch { reply, .. } in self.waiting.drain(..) {
            reply.send(Err(error.into()));
        }
        self.unsynced_since = None;
        self.unsynced_batches = 0;
    }

    /// Notes whether the disk is full, and says it when that changes.
    fn set_full(&mut self, full: Option<Arc<str>>) {
        match (&self.full, &full) {
            (None, Some(what)) => logpond_host::telemetry::warn(&format!(
                "records are refused because the disk is full: {what}"
            )),
            (Some(_), None) => {
                logpond_host::telemetry::warn("records are taken again: the disk has room");
            }
            _ => {}
        }
        self.full = full;
    }

    /// Notices a full disk before the journal does, and the end of it.
    fn check_space(&mut self) {
        let fresh = |at: Instant| at.elapsed() < SPACE_CHECK_INTERVAL;
        if self.space_checked_at.is_some_and(fresh) {
            return;
        }
        self.space_checked_at = Some(Instant::now());
        // A file system that does not answer is found out by the append itself.
        let space = self.journal.space().ok();
        self.set_full(space.and_then(missing));
        if let Some(space) = space {
            let percent = fill_percent(space);
            self.load_inputs
                .disk_percent
                .store(percent, Ordering::Relaxed);
        }
    }
}

/// How much is gone of the room that should stay free, a fifth of the disk: retention keeps about
/// that much free unless it is told otherwise, so a disk in use counts as empty here.
fn fill_percent(space: Space) -> u8 {
    let headroom = space.total_bytes / 5;
    percent(headroom.saturating_sub(space.free_bytes), headroom)
}

/// What is missing, in words, if the disk counts as full.
fn missing(space: Space) -> Option<Arc<str>> {
    let reserve = RESERVE_BYTES_MAX.min(space.total_bytes / 50);
    (space.free_bytes < reserve).then(|| {
        format!(
            "{} bytes are free, {reserve} must stay so",
            space.free_bytes
        )
        .into()
    })
}
/// A receive time as segments keep it: an answer must not change when a record moves into one.
fn in_whole_micros(time: Timestamp) -> Timestamp {
    Timestamp(time.0 - time.0.rem_euclid(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_fills_up_when_less_is_free_than_should_be() {
        for (free_bytes, percent) in [(1000, 0), (200, 0), (150, 25), (50, 75), (0, 100)] {
            let total_bytes = 1000;
            let space = Space {
                free_bytes,
                total_bytes,
            };
            assert_eq!(fill_percent(space), percent);
        }
    }

    #[test]
    fn receive_times_are_whole_microseconds() {
        for (time, kept) in [(0, 0), (1_999, 1_000), (2_000, 2_000), (-1, -1_000)] {
            assert_eq!(in_whole_micros(Timestamp(time)), Timestamp(kept));
        }
    }
}
