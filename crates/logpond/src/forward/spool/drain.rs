//! The sending side of a spool: the thread `lp-spool`.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use logpond_record::SourceId;
use logpond_segment::batches::BatchId;
use logpond_segment::disk::Disk;
use logpond_segment::journal::{self, ClosedFile, Frame, JournalFile};

use super::marks::{Marks, SENT_AHEAD};
use super::{POSITION_LABEL, Shared};
use crate::forward::Totals;
use crate::forward::position::Position;
use crate::forward::sender::{Outgoing, Outlet, SendError, Sender};
use crate::terminal::note;

/// How long the sending side sleeps when there is nothing to send; it is woken by news.
const IDLE_WAIT: Duration = Duration::from_secs(1);

/// The sending side of a spool.
pub(super) struct Drain {
    shared: Arc<Shared>,
    sender: Sender,
    marks: Marks,
    /// What of the marked file may have been sent by an earlier run.
    sent_before: u64,
    totals: Totals,
}

/// A file of the spool, as far as it can be read now.
struct Next {
    journal: JournalFile,
    /// The path of a file to which nothing is added.
    closed: Option<String>,
}

impl Drain {
    pub(super) fn new(shared: Arc<Shared>, sender: Sender, marks: Marks) -> Drain {
        Drain {
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
        if outcome.is_err() {
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
            let Some(next) = self.next().map_err(|e| self.unreadable(&e))? else {
                match is_ended {
                    true => return Ok(()),
                    false => self.wait()?,
                }
                continue;
            };
            let source = next.journal.source();
            let (mut offset, mut index) = match at {
                Some((known, offset, index)) if known == source => (offset, index),
                _ => (0, 0),
            };
            self.send_file(&next, &mut offset, &mut index)?;
            at = Some((source, offset, index));
            match next.closed {
                Some(path) => {
                    let removed = self.remove(source, &path);
                    removed.map_err(|e| self.unreadable(&e))?;
                }
                None if offset >= next.journal.limit() => self.wait()?,
                None => {}
            }
        }
    }

    /// The oldest file.
    fn next(&self) -> io::Result<Option<Next>> {
        let snapshot = self.shared.visible.snapshot();
        let closed = snapshot
            .closed
            .iter()
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
        let was_sent = match is_marked {
            true => index < self.sent_before,
            false => false,
        };
        let id = BatchId {
            attempt: u32::from(was_sent || self.marks.unknown.contains(&source)),
            ..named
        };
        if !is_marked || index >= self.marks.sent {
            self.mark(source, index).map_err(|e| self.unreadable(&e))?;
        }
        let lines = lines_of(frame);
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
        let outgoing = Outgoing {
            lines: &lines,
            labels: &labels,
            id,
        };
        let taken = self.sender.deliver(&outgoing, &waited)?;
        let file = frame.labels().iter().find(|(name, _)| &**name == "file");
        let file = file.map_or("standard input", |(_, value)| value);
        let input = format!("a batch of {file}");
        self.totals.add(&taken, lines.len(), &input, 1);
        self.marks.acknowledged = index + 1;
        Ok(())
    }

    /// Notes that the batches from `index` on may be sent from now on.
    fn mark(&mut self, source: SourceId, index: u64) -> io::Result<()> {
        if self.marks.source != Some(source) {
            self.sent_before = 0;
            self.marks.source = Some(source);
        }
        self.marks.acknowledged = index;
        self.marks.sent = index + SENT_AHEAD;
        self.marks.save(&*self.shared.disk)
    }

    /// Removes a file of which everything was acknowledged, for good.
    fn remove(&mut self, source: SourceId, path: &str) -> io::Result<()> {
        if !self.marks.positions.is_empty() {
            self.marks.save(&*self.shared.disk)?;
        }
        self.shared.disk.remove(path)?;
        self.shared.disk.sync_directory(journal::DIRECTORY)?;
        self.marks.unknown.remove(&source);
        self.shared.visible.remove_closed(source);
        self.shared.change(|_| ());
        Ok(())
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

/// The lines of a frame with their ends.
fn lines_of(frame: &Frame<'_>) -> Vec<u8> {
    let mut lines = Vec::with_capacity(frame.payload().len() + frame.count());
    for entry in frame.entries() {
        lines.extend_from_slice(entry.raw);
        lines.push(b'\n');
    }
    lines
}
