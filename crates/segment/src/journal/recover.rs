//! Puts the journal in order at start, before anything is appended.
//!
//! Invariants:
//! - Afterwards every readable file is closed, or is as good as that and only wants room for its
//!   end mark; the next start closes it.
//! - Bytes are never the reason for failing. Whatever a crash interrupts, the next call finishes.
//! - What no sync is known to have covered is cut and is no damage; frames behind it that check
//!   out are kept, because they may have been acknowledged after their write. Ids and their order
//!   do not depend on where frames are, so those frames move forward.
//! - Nothing with a readable frame is removed, nor anything that a crash cannot have left so.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::Arc;

use logpond_record::{SourceId, cast};

use super::damage::Damage;
use super::frame::{FILE_HEADER_BYTES, Reason};
use super::open_error::OpenError;
use super::read::{JournalFile, ScanResult};
use super::salvage::{end_in_place, is_full, remove_if_there, salvage};
use super::visible::ClosedFile;
use super::{
    DIRECTORY, SUFFIX_CLOSED, SUFFIX_OPEN, SUFFIX_QUARANTINED, SUFFIX_SALVAGE, parse_name, path,
};
use crate::disk::Disk;

/// Why a file without a readable frame is set aside, and what to do.
const NOTHING_CHECKS_OUT: &str = "nothing in it checks out; look at it, then remove it";

/// The unit in which a crash keeps unsynced bytes or leaves zeros: the smallest of real disks.
const SECTOR_BYTES: u64 = 512;

/// A range that was cut out: no sync is known to have covered it. Frames behind it were moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutRange {
    /// The file, by its final name.
    pub path: String,
    /// First byte of the range, in the file as it was.
    pub from: u64,
    /// First byte after the range.
    pub to: u64,
}

/// A file of which nothing can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableFile {
    /// Where it is now.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Why, and what to do.
    pub reason: String,
}

/// The result of the recovery at start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// All closed files, in order of incarnation and sequence.
    pub closed: Vec<ClosedFile>,
    /// Damaged ranges in them.
    pub damages: Vec<Damage>,
    /// How many damaged ranges there are; more than listed if a file has very many.
    pub damages_count: u64,
    /// Ranges that were cut, at the end of files or before it.
    pub cuts: Vec<CutRange>,
    /// Files that were quarantined now or earlier, are of a newer version, or are not ours.
    pub unusable: Vec<UnusableFile>,
}

/// The disk failed during recovery.
#[derive(Debug)]
pub struct RecoverError {
    /// What was done.
    pub operation: &'static str,
    /// What it was done to.
    pub path: String,
    /// What the disk said.
    pub error: io::Error,
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}; check the disk", self.operation, self.path)
    }
}

impl std::error::Error for RecoverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Closes what earlier lives left open and lists what there is.
///
/// Must be called before a [`super::Writer`] appends. Fails only if the disk fails.
pub fn recover(disk: &dyn Disk) -> Result<RecoveryReport, RecoverError> {
    let mut entries = disk
        .list(DIRECTORY)
        .map_err(|error| failed("list", DIRECTORY, error))?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let sources_of = |suffix: &str| -> BTreeSet<SourceId> {
        let names = entries.iter().filter_map(|entry| parse_name(&entry.name));
        names
            .filter(|(_, s)| *s == suffix)
            .map(|(source, _)| source)
            .collect()
    };
    let closed = sources_of(SUFFIX_CLOSED);
    let open = sources_of(SUFFIX_OPEN);
    let mut recovery = Recovery {
        disk,
        recovered: RecoveryReport::default(),
        names_changed: false,
        copied: Vec::new(),
    };
    for entry in &entries {
        let at = format!("{DIRECTORY}/{}", entry.name);
        match parse_name(&entry.name) {
            Some((source, SUFFIX_OPEN)) if closed.contains(&source) => {
                recovery.copied(source, &at, entry.bytes)?;
            }
            Some((source, SUFFIX_OPEN)) => recovery.left_open(source, &at, entry.bytes)?,
            Some((source, SUFFIX_CLOSED)) => recovery.closed(source, &at, entry.bytes)?,
            // A copy that was not finished; the original is still there.
            Some((source, SUFFIX_SALVAGE))
                if open.contains(&source) || closed.contains(&source) =>
            {
                recovery.remove(&at)?;
            }
            Some((source, SUFFIX_SALVAGE)) => recovery.lone_copy(source, &at, entry.bytes)?,
            Some(_) => recovery.unusable(at, entry.bytes, "it was quarantined earlier"),
            None => recovery.unusable(at, entry.bytes, "it is not named like a journal file"),
        }
    }
    recovery.make_names_durable()?;
    for original in std::mem::take(&mut recovery.copied) {
        recovery.remove(&original)?;
    }
    recovery.make_names_durable()?;
    Ok(recovery.recovered)
}

/// Puts a closed file aside, for people to look at: its readable rows are in a segment, but parts
/// of it are damaged. It is not read any more, and every start lists it. Gives its new path.
///
/// # Errors
/// When the disk fails; the file may have its old or its new name then.
pub fn set_aside(disk: &dyn Disk, file: &ClosedFile) -> io::Result<String> {
    let to = path(file.source, SUFFIX_QUARANTINED);
    disk.rename(&file.path, &to)?;
    disk.sync_directory(DIRECTORY)?;
    Ok(to)
}

struct Recovery<'d> {
    disk: &'d dyn Disk,
    recovered: RecoveryReport,
    names_changed: bool,
    /// Originals of copies. They are removed after the copies' names are durable, because a crash
    /// could keep the removal and lose the rename.
    copied: Vec<String>,
}

impl Recovery<'_> {
    /// A copy that was not finished, and whose original is gone: the name of that was never
    /// durable, so nothing in it was synced either.
    fn lone_copy(&mut self, source: SourceId, at: &str, bytes: u64) -> Result<(), RecoverError> {
        let open = path(source, SUFFIX_OPEN);
        self.rename(at, &open)?;
        self.left_open(source, &open, bytes)
    }

    /// A file that was being written when its process ended.
    fn left_open(&mut self, source: SourceId, at: &str, bytes: u64) -> Result<(), RecoverError> {
        let Some((mut journal, mut scanned)) = self.scan(source, at, bytes)? else {
            return Ok(());
        };
        if scanned.summary.rows() == 0 {
            return self.without_rows(source, at, bytes, &scanned);
        }
        self.names_changed = true;
        if !scanned.is_separable() {
            // Whole frames of a newer version behind a hole: all stays as it is, as damage.
            journal = journal.synced_to(scanned.content_end());
            let again = journal.scan();
            scanned = again.map_err(|error| failed("read", at, error))?;
        }
        let (counts, summary) = (scanned.counts, &scanned.summary);
        let in_place_end = scanned.in_place_end();
        if let Ok(copied) = salvage(self.disk, &journal, in_place_end, counts, summary) {
            self.copied.push(at.to_owned());
            let to = path(source, SUFFIX_CLOSED);
            self.cut(&to, &scanned);
            self.add(source, to, copied, scanned);
            return Ok(());
        }
        self.close_in_place(source, at, &journal, &scanned)
    }

    /// Closes a file without a copy, for which there may be no room (R1 wants one: the last frames
    /// may be in the page cache only, or, after a failed sync that the earlier life did not get to
    /// handle, never reach the disk through this file).
    ///
    /// What is unsynced before the last good frame stays and counts as damage from now on.
    fn close_in_place(
        &mut self,
        source: SourceId,
        at: &str,
        journal: &JournalFile,
        scanned: &ScanResult,
    ) -> Result<(), RecoverError> {
        let end = scanned.content_end();
        let journal = journal.synced_to(end);
        let kept = journal.scan().map_err(|error| failed("read", at, error))?;
        let half = path(source, SUFFIX_SALVAGE);
        // A copy that failed takes room.
        remove_if_there(self.disk, &half).map_err(|error| failed("remove", &half, error))?;
        let mut to = path(source, SUFFIX_CLOSED);
        let bytes = match end_in_place(self.disk, source, at, end, kept.counts) {
            Ok(bytes) => {
                self.rename(at, &to)?;
                bytes
            }
            // Not even for the end mark. It is synced, and the next start closes it.
            Err(error) if is_full(&error) => {
                to = at.to_owned();
                end
            }
            Err(error) => return Err(failed("cut", at, error)),
        };
        let unsynced = scanned.unsynced.listed.iter();
        let from = unsynced.map(|range| range.from).find(|from| *from >= end);
        if let (Some(from), Some(last)) = (from, scanned.unsynced.listed.last()) {
            let (path, to) = (to.clone(), last.to);
            self.recovered.cuts.push(CutRange { path, from, to });
        }
        self.add(source, to, bytes, kept);
        Ok(())
    }

    /// Lists what of a file was cut, as few ranges.
    fn cut(&mut self, path: &str, scanned: &ScanResult) {
        let cuts = &mut self.recovered.cuts;
        let before = cuts.len();
        for range in &scanned.unsynced.listed {
            match cuts[before..].last_mut() {
                Some(last) if last.to == range.from => last.to = range.to,
                _ => cuts.push(CutRange {
                    path: path.to_owned(),
                    from: range.from,
                    to: range.to,
                }),
            }
        }
    }

    /// A file that was being written and has no frame that checks out.
    fn without_rows(
        &mut self,
        source: SourceId,
        at: &str,
        bytes: u64,
        scanned: &ScanResult,
    ) -> Result<(), RecoverError> {
        if bytes <= FILE_HEADER_BYTES as u64 {
            return self.remove(at);
        }
        // Then nothing in it is known to have been synced, and each range that does not check out
        // is as a crash leaves it: shorter than it was, or with zeros for whole sectors.
        let unsynced = &scanned.unsynced;
        let mut is_of_a_crash =
            scanned.damages.count == 0 && unsynced.count == unsynced.listed.len() as u64;
        for range in &unsynced.listed {
            is_of_a_crash = is_of_a_crash
                && (range.reason == Reason::Torn || self.has_lost_sector(at, range, bytes)?);
        }
        if !is_of_a_crash {
            return self.quarantine(source, at, bytes, NOTHING_CHECKS_OUT);
        }
        self.cut(at, scanned);
        self.remove(at)
    }

    /// A file that was closed by an earlier life, or already by this recovery's forerunner.
    fn closed(&mut self, source: SourceId, at: &str, bytes: u64) -> Result<(), RecoverError> {
        let Some((_, scanned)) = self.scan(source, at, bytes)? else {
            return Ok(());
        };
        if scanned.summary.rows() > 0 {
            self.add(source, at.to_owned(), bytes, scanned);
            return Ok(());
        }
        self.quarantine(source, at, bytes, NOTHING_CHECKS_OUT)
    }

    /// An original whose good prefix was copied to the closed file of the same name.
    fn copied(&mut self, source: SourceId, at: &str, bytes: u64) -> Result<(), RecoverError> {
        let closed = path(source, SUFFIX_CLOSED);
        let Some((_, original)) = self.scan(source, at, bytes)? else {
            return Ok(());
        };
        let copy = match JournalFile::open(self.disk, &closed) {
            Ok(journal) => journal
                .scan()
                .map_err(|error| failed("read", &closed, error))?,
            Err(OpenError::Disk(error)) => return Err(failed("read", &closed, error)),
            Err(_) => ScanResult::default(),
        };
        // Damage that the original has is in the copy as well.
        let is_complete =
            copy.is_ended() && (copy.damages.count == 0 || copy.summary == original.summary);
        if copy.summary.rows() > 0 && is_complete {
            self.names_changed = true;
            self.copied.push(at.to_owned());
            return Ok(());
        }
        self.quarantine(
            source,
            at,
            bytes,
            "there is a closed file of the same name, and that is damaged",
        )
    }

    /// Reads a file; `None` if it was set aside because it cannot be read at all.
    fn scan(
        &mut self,
        source: SourceId,
        at: &str,
        bytes: u64,
    ) -> Result<Option<(JournalFile, ScanResult)>, RecoverError> {
        match JournalFile::open(self.disk, at) {
            Ok(journal) => {
                let scanned = journal.scan().map_err(|error| failed("read", at, error))?;
                Ok(Some((journal, scanned)))
            }
            Err(OpenError::Disk(error)) => Err(failed("read", at, error)),
            // Left where it is, so that the newer version finds it again.
            Err(error @ OpenError::Version { .. }) => {
                self.unusable(at.to_owned(), bytes, &error.to_string());
                Ok(None)
            }
            Err(error) => {
                self.quarantine(source, at, bytes, &error.to_string())?;
                Ok(None)
            }
        }
    }

    /// Whether a sector that the range is in, or has a part of, is all zero.
    fn has_lost_sector(&self, at: &str, range: &Damage, bytes: u64) -> Result<bool, RecoverError> {
        let read = || {
            let file = self.disk.open(at)?;
            let mut buffer = vec![0; 128 * cast::to_usize(SECTOR_BYTES)];
            let mut offset = range.from / SECTOR_BYTES * SECTOR_BYTES;
            let to = range.to.next_multiple_of(SECTOR_BYTES).min(bytes);
            while offset < to {
                let length = cast::to_usize((to - offset).min(buffer.len() as u64));
                file.read_at(offset, &mut buffer[..length])?;
                let mut sectors = buffer[..length].chunks(cast::to_usize(SECTOR_BYTES));
                if sectors.any(|sector| sector.iter().all(|byte| *byte == 0)) {
                    return Ok(true);
                }
                offset += length as u64;
            }
            Ok(false)
        };
        read().map_err(|error| failed("read", at, error))
    }

    fn add(&mut self, source: SourceId, path: String, bytes: u64, scanned: ScanResult) {
        self.recovered.damages_count += scanned.damages.count;
        let damages = scanned.damages.listed.into_iter();
        // By the name that the file has now.
        let damages = damages.map(|damage| Damage {
            path: path.clone(),
            ..damage
        });
        self.recovered.damages.extend(damages);
        self.recovered.closed.push(ClosedFile {
            path,
            source,
            bytes,
            summary: scanned.summary,
            batches: Arc::new(scanned.batches),
        });
    }

    /// Sets a file aside of which nothing can be used.
    fn quarantine(
        &mut self,
        source: SourceId,
        at: &str,
        bytes: u64,
        reason: &str,
    ) -> Result<(), RecoverError> {
        let to = path(source, SUFFIX_QUARANTINED);
        self.rename(at, &to)?;
        self.unusable(to, bytes, reason);
        Ok(())
    }

    fn unusable(&mut self, path: String, bytes: u64, reason: &str) {
        self.recovered.unusable.push(UnusableFile {
            path,
            bytes,
            reason: reason.to_owned(),
        });
    }

    fn make_names_durable(&mut self) -> Result<(), RecoverError> {
        if std::mem::take(&mut self.names_changed) {
            self.disk
                .sync_directory(DIRECTORY)
                .map_err(|error| failed("sync the directory", DIRECTORY, error))?;
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), RecoverError> {
        self.names_changed = true;
        self.disk
            .rename(from, to)
            .map_err(|error| failed("rename", from, error))
    }

    fn remove(&mut self, at: &str) -> Result<(), RecoverError> {
        self.names_changed = true;
        remove_if_there(self.disk, at).map_err(|error| failed("remove", at, error))
    }
}

fn failed(operation: &'static str, path: &str, error: io::Error) -> RecoverError {
    RecoverError {
        operation,
        path: path.to_owned(),
        error,
    }
}
