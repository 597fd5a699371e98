//! One file that is followed.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use logpond_record::limits::LINE_BYTES_MAX;

use super::cutter::{BATCH_BYTES, count_lines, first_batch};
use super::position::{Fingerprint, Identity, Position};
use super::sender::{Origin, Outlet};
use super::{ForwardError, Totals};
use crate::terminal::note;

/// Batches sent of one file before the next file has its turn.
const BATCHES_IN_TURN: usize = 16;

/// A file that is followed by its handle, so that it may be renamed or removed.
pub(super) struct Watched {
    /// The name it is known by to the server: its own, before any rotation.
    pub(super) path: PathBuf,
    /// Which file it is.
    pub(super) identity: Identity,
    file: File,
    fingerprint: Fingerprint,
    /// Everything before this was acknowledged, or refused for good.
    offset: u64,
    /// Length and change time at which no whole line was left to send; nothing is read until they
    /// change.
    idle_at: Option<(u64, i64, i64)>,
    /// Whether the bytes up to the next line end belong to a line that no server takes.
    is_skipping: bool,
    /// Lines since reading began.
    lines: u64,
    /// When the file was last seen to change, for files that lost their name.
    pub(super) changed: Instant,
}

impl Watched {
    /// Opens a file; it is read from its remembered position, if it is the same file still.
    pub(super) fn open(path: &Path, remembered: &[Position], now: Instant) -> io::Result<Watched> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let identity = Identity::of(&metadata);
        let mut offset = 0;
        for position in remembered.iter().filter(|p| p.identity == identity) {
            if position.offset <= metadata.len() && position.fingerprint.matches(&file)? {
                offset = offset.max(position.offset);
            }
        }
        Ok(Watched {
            path: path.to_path_buf(),
            identity,
            fingerprint: Fingerprint::of(&file, offset)?,
            file,
            offset,
            idle_at: None,
            is_skipping: false,
            lines: 0,
            changed: now,
        })
    }

    /// The first bytes of the file, at most four.
    pub(super) fn start(&self) -> io::Result<Vec<u8>> {
        let mut start = vec![0; 4];
        let bytes = self.file.read_at(&mut start, 0)?;
        start.truncate(bytes);
        Ok(start)
    }

    /// How far it was read.
    pub(super) fn position(&self) -> Position {
        Position {
            path: self.path.clone(),
            identity: self.identity,
            fingerprint: self.fingerprint,
            offset: self.offset,
        }
    }

    /// How far the file is read with a batch.
    fn position_behind(&self, batch: &[u8]) -> io::Result<Position> {
        let offset = self.offset + batch.len() as u64;
        let fingerprint = match self.fingerprint.is_whole() {
            true => self.fingerprint,
            false => Fingerprint::of(&self.file, offset)?,
        };
        Ok(Position {
            fingerprint,
            offset,
            ..self.position()
        })
    }

    /// Sends what is new, up to the last whole line or, `to_the_end`, all of it. True if anything
    /// was sent.
    pub(super) fn follow(
        &mut self,
        to_the_end: bool,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<bool, ForwardError> {
        let mut moved = false;
        for _ in 0..BATCHES_IN_TURN {
            let metadata = self.file.metadata().map_err(|e| self.unreadable(e))?;
            let seen = (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
            if self.idle_at == Some(seen) && !to_the_end {
                break;
            }
            if !moved {
                self.notice_truncation(seen.0)
                    .map_err(|e| self.unreadable(e))?;
                self.changed = if to_the_end { self.changed } else { now };
            }
            let mut batch = self
                .read(seen.0, to_the_end)
                .map_err(|e| self.unreadable(e))?;
            batch.truncate(first_batch(&batch));
            if batch.is_empty() {
                self.idle_at = Some(seen);
                break;
            }
            self.send(&batch, sender, totals)?;
            moved = true;
        }
        Ok(moved)
    }

    /// Starts anew if the file was emptied, or emptied and filled with something else.
    fn notice_truncation(&mut self, length: u64) -> io::Result<()> {
        if length >= self.offset && self.fingerprint.matches(&self.file)? {
            return Ok(());
        }
        note(&format!(
            "logpond: {} was truncated, reading from its start",
            self.path.display()
        ));
        self.offset = 0;
        self.idle_at = None;
        self.is_skipping = false;
        self.lines = 0;
        self.fingerprint = Fingerprint::of(&self.file, 0)?;
        Ok(())
    }

    /// The next whole lines: about a batch of them, or one line that is longer.
    ///
    /// Of a line beyond the hard limit it gives the first piece, to be skipped with its rest.
    fn read(&self, length: u64, to_the_end: bool) -> io::Result<Vec<u8>> {
        let left = length.saturating_sub(self.offset);
        let mut wanted = BATCH_BYTES as u64;
        loop {
            let mut bytes = vec![0; wanted.min(left) as usize];
            let filled = read_fully_at(&self.file, &mut bytes, self.offset)?;
            bytes.truncate(filled);
            let is_all = filled as u64 == left;
            match memchr::memrchr(b'\n', &bytes) {
                _ if self.is_skipping => {
                    let end = memchr::memchr(b'\n', &bytes);
                    bytes.truncate(end.map_or(filled, |at| at + 1));
                }
                _ if is_all && to_the_end => {}
                Some(end) => bytes.truncate(end + 1),
                None if wanted > LINE_BYTES_MAX as u64 => {}
                None if is_all => bytes.clear(),
                None if (filled as u64) < wanted => bytes.clear(),
                None => {
                    wanted = (wanted * 4).min(LINE_BYTES_MAX as u64 + 1);
                    continue;
                }
            }
            return Ok(bytes);
        }
    }

    fn send(
        &mut self,
        batch: &[u8],
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<(), ForwardError> {
        let name = self.path.to_string_lossy().into_owned();
        let is_ended = batch.last() == Some(&b'\n');
        if self.is_skipping {
            self.is_skipping = !is_ended;
        } else if batch.len() > LINE_BYTES_MAX && count_lines(batch) == 1 {
            totals.reject(
                &name,
                self.lines + 1,
                "it is longer than 32 MiB, the hard limit for lines",
            );
            self.is_skipping = !is_ended;
            self.lines += 1;
        } else {
            let position = self
                .position_behind(batch)
                .map_err(|e| self.unreadable(e))?;
            let origin = Origin {
                first_line: 0,
                file: Some(&name),
                position: Some(&position),
            };
            let taken = sender.send(batch, &origin).map_err(ForwardError::Send)?;
            totals.add(&taken, batch.len(), &name, self.lines + 1);
            self.lines += count_lines(batch);
        }
        self.offset += batch.len() as u64;
        self.idle_at = None;
        if !self.fingerprint.is_whole() {
            // The file may have been emptied meanwhile; the next turn sees to that.
            if let Ok(fingerprint) = Fingerprint::of(&self.file, self.offset) {
                self.fingerprint = fingerprint;
            }
        }
        Ok(())
    }

    fn unreadable(&self, source: io::Error) -> ForwardError {
        ForwardError::Input {
            name: self.path.display().to_string(),
            source,
        }
    }
}

/// Fills the buffer as far as the file reaches.
fn read_fully_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
