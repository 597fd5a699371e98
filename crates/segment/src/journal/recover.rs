//! Puts the journal in order at start, before anything is appended.
//!
//! Invariants: afterwards every readable file is closed; bytes are never the reason for failing;
//! whatever a crash interrupts, the next call finishes. Nothing with a readable frame is removed.

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use logpond_record::SourceId;

use super::damage::Damage;
use super::frame::{FILE_HEADER_BYTES, Reason};
use super::read::{JournalFile, OpenError, Scanned};
use super::salvage::{remove_if_there, salvage};
use super::visible::ClosedFile;
use super::{
    DIRECTORY, SUFFIX_CLOSED, SUFFIX_OPEN, SUFFIX_QUARANTINED, SUFFIX_SALVAGE, parse_name, path,
};
use crate::disk::Disk;

/// Why a file without a readable frame is set aside, and what to do.
const NOTHING_CHECKS_OUT: &str = "nothing in it checks out; look at it, then remove it";

/// A tail that was cut off: bytes that no sync had returned for, or damage at the very end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The file, by its final name.
    pub path: String,
    /// Its new length.
    pub from: u64,
    /// Its old length.
    pub to: u64,
}

/// A file of which nothing can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// Where it is now.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Why, and what to do.
    pub reason: String,
}

/// What was found at start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// All closed files, in order of incarnation and sequence.
    pub closed: Vec<ClosedFile>,
    /// Damaged ranges in them.
    pub damages: Vec<Damage>,
    /// How many damaged ranges there are; more than listed if a file has very many.
    pub damages_count: u64,
    /// Tails that were cut off.
    pub cuts: Vec<Cut>,
    /// Files that were quarantined now or earlier, are of a newer version, or are not ours.
    pub unusable: Vec<Unusable>,
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
pub fn recover(disk: &dyn Disk) -> Result<Recovered, RecoverError> {
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
        recovered: Recovered::default(),
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
            Some((source, SUFFIX_SALVAGE)) => recovery.left_open(source, &at, entry.bytes)?,
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
    recovered: Recovered,
    names_changed: bool,
    /// Originals of copies. They are removed after the copies' names are durable, because a crash
    /// could keep the removal and lose the rename.
    copied: Vec<String>,
}

impl Recovery<'_> {
    /// A file that was being written when its process ended.
    fn left_open(&mut self, source: SourceId, at: &str, bytes: u64) -> Result<(), RecoverError> {
        let Some((journal, mut scanned)) = self.scan(source, at, bytes)? else {
            return Ok(());
        };
        if scanned.summary.rows() == 0 {
            return self.without_rows(source, at, bytes, &scanned);
        }
        let to = path(source, SUFFIX_CLOSED);
        let good_end = scanned.good_end;
        self.close(source, at, &journal, &scanned)?;
        if good_end < bytes {
            self.recovered.cuts.push(Cut {
                path: to.clone(),
                from: good_end,
                to: bytes,
            });
            let damages = &mut scanned.damages;
            let before = damages.listed.len();
            damages.listed.retain(|damage| damage.from < good_end);
            damages.count -= (before - damages.listed.len()) as u64;
        }
        self.add(source, to, good_end, scanned);
        Ok(())
    }

    /// Gives a file its final length and name, with every byte of it synced (R1).
    ///
    /// The last frames may be in the page cache only, or, after a failed sync that the earlier
    /// life did not get to handle, never reach the disk through this file: hence the copy. Where
    /// there is no room for one, the file is shortened and synced itself.
    fn close(
        &mut self,
        source: SourceId,
        at: &str,
        journal: &JournalFile,
        scanned: &Scanned,
    ) -> Result<(), RecoverError> {
        self.names_changed = true;
        let half = path(source, SUFFIX_SALVAGE);
        let (bytes, summary) = (scanned.good_end, &scanned.summary);
        if at != half && salvage(self.disk, source, journal.file(), bytes, summary).is_ok() {
            self.copied.push(at.to_owned());
            return Ok(());
        }
        self.disk
            .truncate(at, bytes)
            .map_err(|error| failed("truncate", at, error))?;
        self.rename(at, &path(source, SUFFIX_CLOSED))?;
        remove_if_there(self.disk, &half).map_err(|error| failed("remove", &half, error))
    }

    /// A file that was being written and has no frame that checks out.
    fn without_rows(
        &mut self,
        source: SourceId,
        at: &str,
        bytes: u64,
        scanned: &Scanned,
    ) -> Result<(), RecoverError> {
        // A crash leaves a short, zeroed or torn beginning; that holds nothing that was synced.
        let torn = |damage: &Damage| damage.reason == Reason::Torn;
        if bytes <= FILE_HEADER_BYTES as u64
            || scanned.damages.listed.iter().all(torn)
            || self.is_zero(at, bytes)?
        {
            return self.remove(at);
        }
        self.quarantine(source, at, bytes, NOTHING_CHECKS_OUT)
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
        let copy = match JournalFile::open(self.disk, &closed) {
            Ok(journal) => journal
                .scan()
                .map_err(|error| failed("read", &closed, error))?,
            Err(OpenError::Disk(error)) => return Err(failed("read", &closed, error)),
            Err(_) => Scanned::default(),
        };
        if copy.summary.rows() > 0 && copy.damages.count == 0 {
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
    ) -> Result<Option<(JournalFile, Scanned)>, RecoverError> {
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

    fn is_zero(&self, at: &str, bytes: u64) -> Result<bool, RecoverError> {
        let read = || {
            let file = self.disk.open(at)?;
            let mut buffer = vec![0; 64 << 10];
            let mut offset = 0;
            while offset < bytes {
                let length = (bytes - offset).min(buffer.len() as u64) as usize;
                file.read_at(offset, &mut buffer[..length])?;
                if buffer[..length].iter().any(|byte| *byte != 0) {
                    return Ok(false);
                }
                offset += length as u64;
            }
            Ok(true)
        };
        read().map_err(|error| failed("read", at, error))
    }

    fn add(&mut self, source: SourceId, path: String, bytes: u64, scanned: Scanned) {
        self.recovered.damages_count += scanned.damages.count;
        self.recovered.damages.extend(scanned.damages.listed);
        self.recovered.closed.push(ClosedFile {
            path,
            source,
            bytes,
            summary: scanned.summary,
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
        self.recovered.unusable.push(Unusable {
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
