//! A spool: batches that are durable on this machine before they are sent.
//!
//! ```text
//! lines ─▶ named, appended, synced ─▶ journal files in DIR ─▶ lp-spool: sends in order ─▶ server
//!              └ full: waits, or drops and counts                └ acknowledged: removed
//! ```
//!
//! Invariants:
//! - A batch is sent under the name that its frame has, and is durable under it before its first
//!   sending. So a forwarder that was killed sends the same batch again, and it counts once.
//! - Which batches may have been sent is noted, durably, before they are; what may have been is sent
//!   again as a retry, what was not as new.
//! - How far a followed file was read is in the frames, and in the marks before they go: lines that
//!   reached the spool are not read again, also if the position was not remembered elsewhere.
//! - A file is removed when all of it is replicated: until then it is the other copy. With one copy
//!   configured that is when a server has acknowledged it. Batches leave in the order in which
//!   they came, one at a time.
//! - A spool is used by one process at a time, and never larger than it may be by more than a batch.

mod drain;
mod marks;

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use logpond_record::{Batch, EntryKind, Labels};
use logpond_segment::batches::BatchId;
use logpond_segment::disk::Disk;
use logpond_segment::journal::{self, ClosedFile, Snapshot, Visible, WriteError, Writer};

use super::answer::BatchAnswer;
use super::position::Position;
use super::producer::Producer;
use super::records::Records;
use super::sender::{Origin, Outlet, SendError, Sender, labels_of};
use super::{FileZones, ForwardError, Pause, Settings, SpoolSettings, Totals};
use drain::Drain;
use logpond_host::clock;
use logpond_host::disk::{DataLock, RealDisk};
use logpond_host::terminal::note;
use logpond_render::quantity;
use marks::Marks;

/// The largest file of a spool. A file is removed as a whole, so the room that is taken by what was
/// acknowledged is at most this.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A spool has room for this many files, so that some go while others come.
const FILES_MIN: u64 = 4;

/// A file is ended after this time, so that what was acknowledged goes.
const FILE_AGE_NS: i64 = 60_000_000_000;

/// How often a wait for room looks whether it is over.
const ROOM_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The label of a frame that says how far a file was read with it. It stays in the spool.
const POSITION_LABEL: &str = "_position";

/// What the writing and the sending side know of each other.
#[derive(Default)]
struct Progress {
    /// When the last batch was written; nothing follows.
    ended_at: Option<Instant>,
    /// Whether the sending side has ended.
    is_over: bool,
}

/// The part of a spool that both sides use.
struct SpoolState {
    disk: Arc<dyn Disk>,
    visible: Arc<Visible>,
    progress: Mutex<Progress>,
    changed: Condvar,
}

impl SpoolState {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress());
        self.changed.notify_all();
    }

    /// Waits for a change, or for a bounded time.
    fn wait(&self, time_max: Duration) {
        let progress = self.progress();
        if !progress.is_over {
            // Whoever waits looks at the state again, whyever it woke up.
            drop(self.changed.wait_timeout(progress, time_max));
        }
    }
}

/// The writing side of a spool.
pub(super) struct Spool {
    shared: Arc<SpoolState>,
    writer: Writer,
    producer: Producer,
    settings: SpoolSettings,
    labels: Vec<(String, String)>,
    zones: FileZones,
    pause: Pause,
    /// How far files were read by earlier runs.
    positions: Vec<Position>,
    /// Records dropped since the log was last told of it, and in all.
    dropped_unsaid: u64,
    dropped: u64,
    drain: Option<JoinHandle<(Totals, Result<(), SendError>)>>,
    /// Held as long as this process uses the spool.
    _lock: DataLock,
}

/// The result of draining a spool at the end.
pub(super) struct DrainReport {
    /// What was sent.
    pub(super) sent: Totals,
    /// Records that found no room.
    pub(super) dropped: u64,
    /// Records that are still in the spool, and their bytes.
    pub(super) rest: (u64, u64),
    /// Why the sending ended before everything was sent.
    pub(super) outcome: Result<(), SendError>,
}

impl Spool {
    /// Opens a spool and begins to send what is in it.
    pub(super) fn open(
        settings: &SpoolSettings,
        all: &Settings,
        sender: Sender,
        producer: Producer,
    ) -> Result<Spool, ForwardError> {
        let failed = |what: String| ForwardError::Spool {
            path: settings.path.clone(),
            what,
        };
        let disk = RealDisk::create(&settings.path).map_err(|e| failed(e.to_string()))?;
        let lock = disk.lock().map_err(|e| failed(e.to_string()))?;
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let recovered = journal::recover(&*disk).map_err(|e| failed(with_source(&e)))?;
        for damage in &recovered.damages {
            note(&format!("logpond: records in the spool are lost: {damage}"));
        }
        for file in &recovered.unusable {
            let (path, reason) = (&file.path, &file.reason);
            note(&format!(
                "logpond: records in the spool are not sent: {path}: {reason}"
            ));
        }
        let mut files = recovered.closed;
        files.sort_by_key(age_order);
        let records: u64 = files.iter().map(|file| file.summary.rows()).sum();
        let marks = Marks::load(&*disk, &files).map_err(|e| failed(e.to_string()))?;
        let mut positions = marks.positions.clone();
        let found = drain::positions(&*disk, &files).map_err(|e| failed(e.to_string()))?;
        positions.extend(found);
        let journal_settings = journal::Settings {
            rotate_age_ns: FILE_AGE_NS,
            rotate_bytes: FILE_BYTES_MAX.min(settings.bytes_max / FILES_MIN),
            codec: journal::Codec::None,
            ..journal::Settings::default()
        };
        let writer = Writer::new(Arc::clone(&disk), journal_settings);
        writer.visible().add_closed(files);
        let shared = Arc::new(SpoolState {
            disk,
            visible: writer.visible(),
            progress: Mutex::default(),
            changed: Condvar::new(),
        });
        let pause = sender.pause().clone();
        if records > 0 {
            let records = quantity::counted(records, "record");
            let path = settings.path.display();
            note(&format!(
                "logpond: {records} of an earlier run are in the spool {path}"
            ));
        }
        let waits = all.waits_for_replication;
        let drain = Drain::new(Arc::clone(&shared), sender, marks, waits);
        let drain = std::thread::Builder::new()
            .name("lp-spool".to_owned())
            .spawn(move || drain.run())
            .map_err(|e| failed(e.to_string()))?;
        Ok(Spool {
            shared,
            writer,
            producer,
            settings: settings.clone(),
            labels: all.labels.clone(),
            zones: all.zones.clone(),
            pause,
            positions,
            dropped_unsaid: 0,
            dropped: 0,
            drain: Some(drain),
            _lock: lock,
        })
    }

    /// Writes what is to be said, and waits until everything is sent or cannot be.
    pub(super) fn finish(mut self) -> Result<DrainReport, ForwardError> {
        let said = self.say_dropped();
        let closed = self.writer.close();
        self.shared.change(|p| p.ended_at = Some(Instant::now()));
        let joined = self.drain.take().map(JoinHandle::join);
        let (sent, outcome) = match joined {
            Some(Ok(ended)) => ended,
            // It has no reason to panic; what it had not sent is in the spool.
            _ => (Totals::default(), Err(SendError::Stopped)),
        };
        said.map_err(ForwardError::Send)?;
        closed.map_err(|e| ForwardError::Send(self.failed(&e)))?;
        let snapshot = self.shared.visible.snapshot();
        let files = snapshot.closed.iter();
        let rest = files.fold((0, 0), |(records, bytes), file| {
            (
                records + file.summary.rows(),
                bytes + file.summary.tally.bytes,
            )
        });
        Ok(DrainReport {
            sent,
            dropped: self.dropped,
            rest,
            outcome,
        })
    }

    fn append(&mut self, batch: &Batch, id: BatchId) -> Result<(), SendError> {
        loop {
            let fits = self.has_room(batch)?;
            if !fits && self.settings.drops_when_full {
                self.dropped += batch.len() as u64;
                self.dropped_unsaid += batch.len() as u64;
                return Ok(());
            }
            if !fits {
                self.shared.wait(ROOM_CHECK_INTERVAL);
                continue;
            }
            match self.write(batch, id) {
                Ok(()) => return Ok(()),
                // As if the spool were full. The name stays: what of this attempt comes back after
                // a crash is the same batch.
                Err(error) if error.is_full() && !self.settings.drops_when_full => {
                    note(&format!("logpond: the spool has no room: {error}"));
                    self.shared.wait(ROOM_CHECK_INTERVAL);
                }
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }

    fn write(&mut self, batch: &Batch, id: BatchId) -> Result<(), WriteError> {
        let minted = clock::mint_incarnation();
        let incarnation = match (self.writer.incarnation(), minted) {
            (Some(known), _) => known,
            (None, Ok(minted)) => minted,
            (None, Err(error)) => {
                return Err(WriteError::Disk {
                    operation: "get random bytes for",
                    path: journal::DIRECTORY.to_owned(),
                    error: io::Error::other(error.to_string()),
                });
            }
        };
        self.writer
            .append_identified(batch, Some(id), clock::now(), || incarnation)?;
        self.writer.sync()?;
        self.writer.rotate_if_due(clock::now())?;
        self.shared.change(|_| ());
        Ok(())
    }

    /// Whether a batch may be written now.
    fn has_room(&mut self, batch: &Batch) -> Result<bool, SendError> {
        if self.pause.is_stopped() || self.shared.progress().is_over {
            return Err(SendError::Stopped);
        }
        let snapshot = self.shared.visible.snapshot();
        let taken = bytes(&snapshot);
        let fits = taken + batch.payload().len() as u64 <= self.settings.bytes_max;
        if !fits && snapshot.closed.is_empty() && !snapshot.open.is_empty() {
            // What was acknowledged of the open file goes only with it.
            self.writer.close().map_err(|error| self.failed(&error))?;
            self.shared.change(|_| ());
        }
        Ok(fits || taken == 0)
    }

    /// Tells the log what was dropped, as soon as there is room.
    fn say_dropped(&mut self) -> Result<(), SendError> {
        if self.dropped_unsaid == 0 {
            return Ok(());
        }
        let mut batch = Batch::new(
            EntryKind::Line,
            labels(&self.labels, &self.zones, &Origin::default()),
        );
        let count = self.dropped_unsaid;
        batch.push(
            format!("logpond: {count} records dropped because the spool was full").as_bytes(),
        );
        if self.settings.drops_when_full && !self.has_room(&batch)? {
            return Ok(());
        }
        self.dropped_unsaid = 0;
        let id = self.producer.name();
        self.append(&batch, id)
    }

    fn failed(&self, error: &WriteError) -> SendError {
        SendError::Spool {
            path: self.settings.path.clone(),
            what: with_source(error),
        }
    }
}

impl Outlet for Spool {
    /// Makes records durable in the spool; they count when a server has them.
    fn send(
        &mut self,
        records: Records<'_>,
        origin: &Origin<'_>,
    ) -> Result<BatchAnswer, SendError> {
        self.say_dropped()?;
        let batch = records.to_batch(labels(&self.labels, &self.zones, origin));
        let id = self.producer.name();
        self.append(&batch, id)?;
        Ok(BatchAnswer::default())
    }

    fn pause(&self) -> &Pause {
        &self.pause
    }

    fn positions(&self) -> Vec<Position> {
        self.positions.clone()
    }
}

/// The order in which files were written, over all runs.
fn age_order(file: &ClosedFile) -> (logpond_record::Timestamp, logpond_record::SourceId) {
    (file.summary.received_min, file.source)
}

/// Bytes that a spool takes.
fn bytes(snapshot: &Snapshot) -> u64 {
    let closed: u64 = snapshot.closed.iter().map(|file| file.bytes).sum();
    closed
        + snapshot
            .open
            .iter()
            .map(|file| file.synced_bytes)
            .sum::<u64>()
}

fn labels(own: &[(String, String)], zones: &FileZones, origin: &Origin<'_>) -> Labels {
    let mut labels = labels_of(own, zones, origin);
    // A position that cannot be written is one that is read again.
    if let Some(Ok(text)) = origin.position.map(serde_json::to_string) {
        labels.push((POSITION_LABEL.into(), text.into()));
    }
    labels
}

fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Says where the data directory of a spool is to be found in messages.
pub(super) fn rest_text(path: &Path, (records, bytes): (u64, u64)) -> String {
    format!(
        "{} ({}) are in the spool {} and are sent by the next run",
        quantity::counted(records, "record"),
        quantity::bytes(bytes),
        path.display()
    )
}

#[cfg(test)]
mod tests;
