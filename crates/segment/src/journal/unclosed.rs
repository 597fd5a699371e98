//! Files that take no more frames and wait for their final names, or for their removal.

use std::io;
use std::sync::Arc;

use logpond_record::SourceId;

use super::frame::END_MARK_BYTES;
use super::read::JournalFile;
use super::salvage::{end_in_place, is_full, remove_if_there, salvage};
use super::visible::{ClosedFile, OpenState};
use super::write_error::WriteError;
use super::writer::Reach;
use super::{DIRECTORY, SUFFIX_CLOSED, SUFFIX_OPEN, path};
use crate::batches::HeldBatches;
use crate::disk::{Disk, ReadAt};

/// A file that takes no more frames but has not got its final name.
pub(super) struct UnclosedFile {
    /// Absent only where nothing can be read.
    pub(super) reader: Option<Arc<dyn ReadAt>>,
    pub(super) source: SourceId,
    pub(super) synced: Reach,
    pub(super) batches: Arc<HeldBatches>,
    /// Named batches that failed. Until the file is closed their frames may come back to life.
    pub(super) failed: HeldBatches,
    pub(super) fate: Fate,
}

impl UnclosedFile {
    /// Goes on until it is closed (or removed) or something fails; every step that was done stays
    /// done.
    pub(super) fn settle(&mut self, disk: &dyn Disk) -> Result<Option<ClosedFile>, WriteError> {
        let file = self;
        let from = path(file.source, SUFFIX_OPEN);
        let to = path(file.source, SUFFIX_CLOSED);
        loop {
            let failed = |operation| {
                let from = &from;
                move |error| WriteError::disk(operation, from, error)
            };
            match file.fate {
                Fate::Remove => {
                    remove_if_there(disk, &from).map_err(failed("remove"))?;
                    if file.failed != HeldBatches::default() {
                        // They may be sent again as they were, so they must be gone for good.
                        disk.sync_directory(DIRECTORY)
                            .map_err(failed("sync the directory of"))?;
                    }
                    return Ok(None);
                }
                Fate::Cut => {
                    let Reach { bytes, .. } = file.synced;
                    let mark = file.synced.end_mark(&file.synced);
                    let ended = end_in_place(disk, file.source, &from, bytes, mark);
                    file.fate = match &ended {
                        Ok(_) => Fate::Rename,
                        Err(error) if is_full(error) => Fate::Cut,
                        // Perhaps at a sync, so it must not be synced again.
                        Err(_) => Fate::Salvage,
                    };
                    ended.map_err(failed("cut"))?;
                }
                Fate::Rename => {
                    let renamed = rename_once(disk, &from, &to);
                    file.fate = file.renamed(renamed).map_err(failed("rename"))?;
                }
                Fate::Salvage => {
                    if let Some(state) = file.state() {
                        let (synced, counts) = (&file.synced, file.synced.end_mark(&file.synced));
                        JournalFile::from_open(&state)
                            .map_err(io::Error::other)
                            .and_then(|original| {
                                salvage(disk, &original, synced.bytes, counts, &synced.summary)
                            })
                            .map_err(failed("salvage"))?;
                    }
                    file.fate = Fate::NameCopy;
                }
                Fate::Name | Fate::NameCopy => {
                    disk.sync_directory(DIRECTORY)
                        .map_err(failed("sync the directory of"))?;
                    if file.fate == Fate::NameCopy {
                        // Only now: before, a crash could keep the removal and lose the rename.
                        // If it fails, recovery finds both and keeps the closed one.
                        let _ = disk.remove(&from);
                    }
                    return Ok(Some(ClosedFile {
                        path: to,
                        source: file.source,
                        bytes: file.synced.bytes + END_MARK_BYTES as u64,
                        summary: file.synced.summary,
                        batches: Arc::clone(&file.batches),
                    }));
                }
            }
        }
    }

    /// The next step once it should have its final name.
    fn renamed(&self, renamed: io::Result<()>) -> io::Result<Fate> {
        match renamed {
            Ok(()) => Ok(Fate::Name),
            // Somebody has deleted it, and it is open: it can be read all the same.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.reader.is_some() => {
                Ok(Fate::Salvage)
            }
            Err(error) => Err(error),
        }
    }

    /// What readers may read of it.
    pub(super) fn state(&self) -> Option<OpenState> {
        let reader = self.reader.as_ref()?;
        Some(open_state(self.source, &self.synced, &self.batches, reader))
    }
}

/// The next thing to do with a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing in it was synced: remove it.
    Remove,
    /// It has a tail that failed, but no sync failed: cut that off and end it, then rename it.
    Cut,
    /// All of it is synced, with its end mark: rename it.
    Rename,
    /// A sync failed: it must not be synced again, so copy its good prefix to the final name.
    Salvage,
    /// It has its final name: make that durable.
    Name,
    /// The copy has its final name: make that durable, then remove the original.
    NameCopy,
}

/// A file as readers see it.
pub(super) fn open_state(
    source: SourceId,
    synced: &Reach,
    batches: &Arc<HeldBatches>,
    file: &Arc<dyn ReadAt>,
) -> OpenState {
    OpenState {
        path: path(source, SUFFIX_OPEN),
        source,
        synced_bytes: synced.bytes,
        summary: synced.summary,
        batches: Arc::clone(batches),
        file: file.clone(),
    }
}

/// Renames, unless an earlier attempt that reported an error has done it.
fn rename_once(disk: &dyn Disk, from: &str, to: &str) -> io::Result<()> {
    match disk.rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && disk.open(to).is_ok() => Ok(()),
        other => other,
    }
}
