//! Restoring a snapshot into an empty directory.
//!
//! `restoring` is in the directory from the first file to the last and names the snapshot, so that a
//! restore that was interrupted can go on, and no server starts with half of the records.

use std::fs::ReadDir;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use logpond_bucket::Objects;
use logpond_segment::disk::Disk;
use logpond_segment::{build, journal};

use super::check::checksum;
use super::error::unfinished;
use super::fetch::fetch;
use super::snapshot::{Entry, Snapshot, SnapshotName};
use super::transfers::Progress;
use super::{BackupError, FoundSnapshot, snapshots};
use logpond_host::disk::{RealDisk, replace};

/// The file that is there while a restore is not finished.
pub(super) const MARKER: &str = "restoring";

/// What may be in an empty directory: the lock that a restore takes, and what file systems put there.
const NOTHING: [&str; 2] = ["lock", "lost+found"];

/// The ending of a file that is being written.
const SUFFIX_TEMPORARY: &str = ".restoring";

/// The longest marker that is read.
const MARKER_BYTES_MAX: u64 = 64 << 10;

/// The file of tokens is for its owner only, as the commands write it.
const PRIVATE: (&str, u32) = ("tokens.toml", 0o600);

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// The snapshot's name.
    pub name: SnapshotName,
    /// What is in it.
    pub snapshot: Snapshot,
    /// Files that an earlier attempt had restored.
    pub kept_files: u64,
    /// Newer snapshots that cannot be used, each with the reason.
    pub unusable: Vec<String>,
}

/// Restores a snapshot, by its name or `latest`, into a directory, which is made if it is not there.
/// `place` is what the store is called.
///
/// # Errors
/// When there is no such snapshot, the directory is not empty, the store or the disk fails, or a file
/// is not what the snapshot says. A call for the same snapshot goes on where this one ended.
pub fn restore(
    objects: &dyn Objects,
    place: &str,
    name: &str,
    data: &Path,
    progress: &Progress,
) -> Result<RestoreReport, BackupError> {
    let FoundSnapshot {
        name,
        snapshot,
        unusable,
    } = snapshots::open(objects, name)?;
    let disk = RealDisk::create(data)?;
    let _lock = disk.lock()?;
    begin(&disk, &format!("{name} from {place}"))?;
    check_room(&disk, &snapshot)?;
    // A server's directory has both.
    disk.create_directory(journal::DIRECTORY)?;
    disk.create_directory(build::DIRECTORY)?;
    progress.expect_bytes(snapshot.bytes());
    let was_there = progress.transfer(&snapshot.files, |entry| {
        restore_file(objects, &disk, entry, progress)
    })?;
    let kept_files = was_there.into_iter().map(u64::from).sum();
    for directory in snapshot
        .files
        .chunk_by(|a, b| directory(a) == directory(b))
        .filter_map(|files| files.first())
        .map(directory)
    {
        disk.sync_directory(directory)?;
    }
    disk.remove(MARKER)?;
    disk.sync_directory("")?;
    Ok(RestoreReport {
        name,
        snapshot,
        kept_files,
        unusable,
    })
}

/// Refuses a directory with a restore that was not finished.
///
/// # Errors
/// When there is one; the text says what to do.
pub fn refuse_unfinished(disk: &dyn Disk) -> io::Result<()> {
    match marker(disk)? {
        Some(restore) => Err(unfinished(&restore)),
        None => Ok(()),
    }
}

fn marker(disk: &dyn Disk) -> io::Result<Option<String>> {
    let file = match disk.open(MARKER) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut bytes = vec![0; file.bytes()?.min(MARKER_BYTES_MAX) as usize];
    file.read_at(0, &mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Begins a restore in an empty directory, or goes on with the same one.
fn begin(disk: &RealDisk, restore: &str) -> Result<(), BackupError> {
    let directory = || disk.root().to_path_buf();
    match marker(disk)? {
        Some(other) if other == restore => return Ok(()),
        Some(other) => {
            let directory = directory();
            return Err(BackupError::OtherRestore { directory, other });
        }
        None => {}
    }
    let marker_temporary = format!("{MARKER}.new");
    for entry in std::fs::read_dir(disk.root())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_nothing = NOTHING.contains(&&*name) || name == marker_temporary;
        // It is locked while a directory is used.
        let is_empty_journal =
            || name == journal::DIRECTORY && disk.root().join(&name).read_dir().is_ok_and(is_empty);
        if !is_nothing && !is_empty_journal() {
            let directory = directory();
            return Err(BackupError::NotEmpty { directory, name });
        }
    }
    Ok(replace(disk, "", MARKER, restore.as_bytes())?)
}

fn is_empty(mut directory: ReadDir) -> bool {
    directory.next().is_none()
}

fn check_room(disk: &RealDisk, snapshot: &Snapshot) -> Result<(), BackupError> {
    let mut wanted_bytes = 0;
    for entry in &snapshot.files {
        if !is_restored(disk, entry)? {
            wanted_bytes += entry.bytes;
        }
    }
    let free_bytes = disk.space()?.free_bytes;
    if wanted_bytes <= free_bytes {
        Ok(())
    } else {
        Err(BackupError::NoRoom {
            directory: disk.root().to_path_buf(),
            wanted_bytes,
            free_bytes,
        })
    }
}

/// Whether a file is there; under its own name it is only ever whole.
fn is_restored(disk: &RealDisk, entry: &Entry) -> Result<bool, BackupError> {
    let file = match disk.open(&entry.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    Ok(file.bytes()? == entry.bytes)
}

/// Restores a file; gives whether it was there.
fn restore_file(
    objects: &dyn Objects,
    disk: &RealDisk,
    entry: &Entry,
    progress: &Progress,
) -> Result<bool, BackupError> {
    if is_restored(disk, entry)?
        && checksum(&*disk.open(&entry.path)?)? == (entry.bytes, entry.checksum)
    {
        progress.add_bytes(entry.bytes);
        return Ok(true);
    }
    let temporary = format!("{}{SUFFIX_TEMPORARY}", entry.path);
    match disk.remove(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    if !directory(entry).is_empty() {
        disk.create_directory(directory(entry))?;
    }
    let mut file = disk.create(&temporary)?;
    let (private, mode) = PRIVATE;
    if entry.path == private {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(disk.root().join(&temporary), permissions)?;
    }
    let mut write = |bytes: &[u8]| {
        progress.add_bytes(bytes.len() as u64);
        file.append(bytes)
    };
    let fetched = fetch(objects, entry, &mut write);
    if let Err(error) = fetched {
        // What is left of it is replaced by the next attempt.
        let _ = disk.remove(&temporary);
        return Err(error);
    }
    file.sync()?;
    disk.rename(&temporary, &entry.path)?;
    Ok(false)
}

/// The directory that a file is in, below the data directory; empty for that itself.
fn directory(entry: &Entry) -> &str {
    entry
        .path
        .rsplit_once('/')
        .map_or("", |(directory, _)| directory)
}
