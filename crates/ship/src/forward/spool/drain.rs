//! The sending side of a spool: the thread `lp-spool`.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use logpond_record::{EntryKind, SourceId};
use logpond_segment::batches::{BatchId, BatchSet};
use logpond_segment::disk::Disk;
use logpond_segment::journal::{self, ClosedFile, Frame, JournalFile};

use super::marks::{Marks, SENT_AHEAD};
use super::{POSITION_LABEL, SpoolState};
use crate::forward::Totals;
use crate::forward::position::Position;
use crate::forward::records::Body;
use crate::forward::sender::{OutgoingBatch, Outlet, SendError, Sender};
use logpond_host::terminal::note;

/// How long the sending side sleeps when there is nothing to send; it is woken by news.
const IDLE_WAIT: Duration = Duration::from_secs(1);

/// How often servers are asked what has become of batches.
const ASK_INTERVAL: Duration = Duration::from_millis(500);

/// The sending side of a spool.
pub(super) struct Drain {
    shared: Arc<SpoolState>,
    sender: Sender,
    marks: Marks,
    /// What of the marked file may have been sent by an earlier run.
    sent_before: u64,
    /// Batches of the file at hand that are not replicated yet.
    unreplicated: BatchSet,
    /// Files that servers have, and that are kept until there are copies.
    kept: Vec<AcknowledgedFile>,
    asked_at: Instant,
    /// Whether the end waits for copies.
    waits_for_replication: bool,
    totals: Totals,
}

/// A file all of whose batches were acknowledged.
struct AcknowledgedFile {
    source: SourceId,
    path: String,
    /// Batches of it that are not replicated yet.
    unreplicated: BatchSet,
}

/// A file of the spool, as far as it can be read now.
struct Next {
    journal: JournalFile,
    /// The path of a file to which nothing is added.
    closed: Option<String>,
}

impl Drain {
    pub(super) fn new(
        shared: Arc<SpoolState>,
        sender: Sender,
        marks: Marks,
        waits_for_replication: bool,
    ) -> Drain {
        Drain {
            unreplicated: BatchSet::default(),
            kept: Vec::new(),
            asked_at: Instant::now(),
            waits_for_replication,
            shared,
            sender,
            sent_before: marks.sent,
            marks,
            totals: Totals::default(),
        }
    }

    /// Sends until everything is sent and nothing follows, or until it cannot go on.
    pub(super) fn run(mut self) -> (Totals, Result<(), SendError>) {
        let outcome = self.send_all();
        if outcome.is_err() && self.unreplicated.is_empty() {
            // What was acknowledged needs not be sent again, and what was not sent is new; if this
            // fails, it is a retry.
            let marks = &mut self.marks;
            let sent = marks.acknowledged + u64::from(self.sender.may_be_there());
            let sent = self.sent_before.max(sent);
            marks.sent = marks.sent.min(sent);
            let _ = self.marks.save(&*self.shared.disk);
        }
        self.shared.change(|progress| progress.is_over = true);
        (self.totals, outcome)
    }

    fn send_all(&mut self) -> Result<(), SendError> {
        // How far the file at hand was read, and its batches up to there.
        let mut at: Option<(SourceId, u64, u64)> = None;
        loop {
            // Before the files, so that what was written last is among them.
            let is_ended = self.shared.progress().ended_at.is_some();
            self.settle_kept().map_err(|e| self.unreadable(&e))?;
            let Some(next) = self.next().map_err(|e| self.unreadable(&e))? else {
                if is_ended && (self.kept.is_empty() || !self.waits_for_replication) {
                    return Ok(());
                }
                self.give_up_waiting()?;
                self.wait()?;
                continue;
            };
            let source = next.journal.source();
            let (mut offset, mut index) = match at {
                Some((known, offset, index)) if known == source => (offset, index),
                _ => (0, 0),
            };
            if offset == 0 {
                self.unreplicated = BatchSet::default();
            }
            self.send_file(&next, &mut offset, &mut index)?;
            at = Some((source, offset, index));
            match next.closed {
                Some(path) => {
                    self.release(source, path)
                        .map_err(|e| self.unreadable(&e))?;
                    at = None;
                }
                None if offset >= next.journal.limit() => self.wait()?,
                None => {}
            }
        }
    }

    /// The oldest file.
    fn next(&self) -> io::Result<Option<Next>> {
        let snapshot = self.shared.visible.snapshot();
        let is_kept = |source| self.kept.iter().any(|kept| kept.source == source);
        let closed = snapshot
            .closed
            .iter()
            .filter(|file| !is_kept(file.source))
            .min_by_key(|file| super::age_order(file));
        if let Some(file) = closed {
            let journal = JournalFile::from_closed(&*self.shared.disk, file);
            return Ok(Some(Next {
                journal: journal.map_err(io::Error::other)?,
                closed: Some(file.path.clone()),
            }));
        }
        let Some(open) = snapshot.open.first() else {
            return Ok(None);
        };
        Ok(Some(Next {
            journal: JournalFile::from_open(open).map_err(io::Error::other)?,
            closed: None,
        }))
    }

    fn wait(&self) -> Result<(), SendError> {
        if self.sender.pause().is_stopped() {
            return Err(SendError::Stopped);
        }
        self.shared.wait(IDLE_WAIT);
        Ok(())
    }

    /// Sends what of a file was not sent yet.
    fn send_file(
        &mut self,
        next: &Next,
        offset: &mut u64,
        index: &mut u64,
    ) -> Result<(), SendError> {
        let source = next.journal.source();
        let mut frames = match *offset {
            0 => next.journal.frames(),
            offset => next.journal.frames_from(offset),
        };
        loop {
            let frame = frames.next().map_err(|e| self.unreadable(&e))?;
            let Some(frame) = frame else {
                break;
            };
            let is_done = self.marks.source == Some(source) && *index < self.marks.acknowledged;
            if !is_done {
                self.send_frame(source, *index, &frame)?;
            }
            if let Some(position) = position_of(&frame) {
                self.marks.add_position(position);
            }
            *index += 1;
            *offset = frame.offset() + frame.bytes();
        }
        *offset = frames.offset();
        for damage in &frames.into_damages().listed {
            note(&format!("logpond: records in the spool are lost: {damage}"));
        }
        Ok(())
    }

    fn send_frame(
        &mut self,
        source: SourceId,
        index: u64,
        frame: &Frame<'_>,
    ) -> Result<(), SendError> {
        // A frame without a name is none that a spool has written.
        let Some(named) = frame.batch_id() else {
            return Ok(());
        };
        let is_marked = self.marks.source == Some(source);
        let was_sent = if is_marked {
            index < self.sent_before
        } else {
            false
        };
        let id = BatchId {
            attempt: u32::from(was_sent || self.marks.unknown.contains(&source)),
            ..named
        };
        if !is_marked || index >= self.marks.sent {
            self.mark(source, index).map_err(|e| self.unreadable(&e))?;
        }
        let body = body_of(frame);
        let mut labels = frame.labels().clone();
        labels.retain(|(name, _)| &**name != POSITION_LABEL);
        let shared = Arc::clone(&self.shared);
        let started = Instant::now();
        let waited = move || {
            shared
                .progress()
                .ended_at
                .map(|at| at.max(started).elapsed())
        };
        let outgoing = OutgoingBatch {
            body: &body,
            labels: &labels,
            id,
        };
        let taken = self.sender.deliver(&outgoing, &waited)?;
        if !taken.is_replicated {
            self.unreplicated.insert(id.epoch, id.sequence);
        }
        let file = frame.labels().iter().find(|(name, _)| &**name == "file");
        let file = file.map_or("standard input", |(_, value)| value);
        let input = format!("a batch of {file}");
        self.totals.add(&taken, body.bytes.len(), &input, 1);
        self.note_replicated(index + 1);
        Ok(())
    }

    /// Notes that the batches before `index` need not be sent again, if they need not.
    fn note_replicated(&mut self, index: u64) {
        if self.unreplicated.is_empty() {
            self.marks.acknowledged = index;
        }
    }

    /// Notes that the batches from `index` on may be sent from now on.
    fn mark(&mut self, source: SourceId, index: u64) -> io::Result<()> {
        if self.marks.source != Some(source) {
            // There is one mark: of the file that has it no longer, nothing is known after a crash.
            self.marks.unknown.extend(self.marks.source);
            self.sent_before = 0;
            self.marks.source = Some(source);
            self.marks.acknowledged = 0;
        }
        self.note_replicated(index);
        self.marks.sent = index + SENT_AHEAD;
        self.marks.save(&*self.shared.disk)
    }

    /// Removes a file of which everything was acknowledged, or keeps it until there are copies.
    fn release(&mut self, source: SourceId, path: String) -> io::Result<()> {
        let unreplicated = std::mem::take(&mut self.unreplicated);
        if unreplicated.is_empty() {
            return self.remove(source, &path);
        }
        // If it is sent again, it is as a retry. The mark goes on to the next file.
        self.marks.unknown.insert(source);
        self.forget_mark(source);
        self.marks.save(&*self.shared.disk)?;
        self.kept.push(AcknowledgedFile {
            source,
            path,
            unreplicated,
        });
        Ok(())
    }

    /// Asks from time to time what has become of kept files; removes those that have copies, and
    /// has those sent again that nobody knows any more.
    fn settle_kept(&mut self) -> io::Result<()> {
        if self.kept.is_empty() || self.asked_at.elapsed() < ASK_INTERVAL {
            return Ok(());
        }
        let mut wanted = BatchSet::default();
        let kept = self.kept.iter();
        kept.for_each(|kept| wanted.union_with(&kept.unreplicated));
        let known = self.sender.ask(&wanted);
        self.asked_at = Instant::now();
        for mut kept in std::mem::take(&mut self.kept) {
            let is_lost = known.is_whole && !kept.unreplicated.without(&known.durable).is_empty();
            kept.unreplicated = kept.unreplicated.without(&known.replicated);
            if kept.unreplicated.is_empty() {
                self.remove(kept.source, &kept.path)?;
            } else if !is_lost {
                self.kept.push(kept);
            }
        }
        Ok(())
    }

    /// Ends the wait for copies after the end of the input when it takes too long.
    fn give_up_waiting(&self) -> Result<(), SendError> {
        let ended_at = self.shared.progress().ended_at;
        let after = self.sender.give_up_after();
        match (ended_at, after) {
            (Some(at), Some(after)) if at.elapsed() >= after => {
                let last = "records are durable but not replicated".to_owned();
                Err(SendError::GaveUp { after, last })
            }
            _ => Ok(()),
        }
    }

    /// Removes a file of which everything was acknowledged, for good.
    fn remove(&mut self, source: SourceId, path: &str) -> io::Result<()> {
        if !self.marks.positions.is_empty() {
            self.marks.save(&*self.shared.disk)?;
        }
        self.shared.disk.remove(path)?;
        self.shared.disk.sync_directory(journal::DIRECTORY)?;
        self.marks.unknown.remove(&source);
        self.forget_mark(source);
        self.shared.visible.remove_closed(source);
        self.shared.change(|_| ());
        Ok(())
    }

    /// Takes the mark off a file.
    fn forget_mark(&mut self, source: SourceId) {
        if self.marks.source == Some(source) {
            self.marks.source = None;
            (self.marks.acknowledged, self.marks.sent) = (0, 0);
            self.sent_before = 0;
        }
    }

    fn unreadable(&self, error: &io::Error) -> SendError {
        SendError::Spool {
            path: "the spool".into(),
            what: error.to_string(),
        }
    }
}

/// How far followed files were read in these files.
pub(super) fn positions(disk: &dyn Disk, files: &[ClosedFile]) -> io::Result<Vec<Position>> {
    let mut positions = Vec::new();
    for file in files {
        let journal = JournalFile::from_closed(disk, file).map_err(io::Error::other)?;
        let mut frames = journal.frames();
        let mut of_file: Vec<Position> = Vec::new();
        while let Some(frame) = frames.next()? {
            if let Some(position) = position_of(&frame) {
                of_file.retain(|known| known.identity != position.identity);
                of_file.push(position);
            }
        }
        positions.append(&mut of_file);
    }
    Ok(positions)
}

fn position_of(frame: &Frame<'_>) -> Option<Position> {
    let mut labels = frame.labels().iter();
    let (_, text) = labels.find(|(name, _)| &**name == POSITION_LABEL)?;
    serde_json::from_str(text).ok()
}

/// The records of a frame, in the form that they came in.
fn body_of(frame: &Frame<'_>) -> Body<'static> {
    if frame.kind() == EntryKind::Enveloped {
        let mut from = 0;
        return Body::of_entries(frame.ends().iter().map(|end| {
            let held = &frame.payload()[from..*end as usize];
            from = *end as usize;
            held
        }));
    }
    let mut lines = Vec::with_capacity(frame.payload().len() + frame.count());
    for entry in frame.entries() {
        lines.extend_from_slice(entry.raw);
        lines.push(b'\n');
    }
    Body::of_lines(Cow::Owned(lines))
}
