//! Reading the files of a snapshot from the store, and checking them.

use std::collections::HashMap;
use std::io;

use logpond_bucket::{FailureKind, Objects};
use xxhash_rust::xxh3::Xxh3;

use super::snapshot::{Entry, Snapshot};
use super::transfers::Progress;
use super::{BackupError, DamagedFile, FILES};

/// How much is read at a time.
const PART_BYTES: u64 = 8 << 20;

/// Reads a file in parts, and gives each to `sink`. The bytes are good only once this returned.
pub(super) fn fetch(
    objects: &dyn Objects,
    entry: &Entry,
    sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), BackupError> {
    let object = entry.object();
    let mut hash = Xxh3::new();
    let mut offset = 0;
    while offset < entry.bytes {
        let length = PART_BYTES.min(entry.bytes - offset);
        let part = objects.read(&object, offset, length)?;
        hash.update(&part);
        sink(&part)?;
        offset += length;
    }
    if hash.digest128() != entry.checksum {
        let what = "its checksum is not that of the snapshot".to_owned();
        return Err(BackupError::Differs { object, what });
    }
    Ok(())
}

/// Reads all files of a snapshot and compares them with their checksums; gives which objects are gone
/// or damaged.
///
/// # Errors
/// When the store fails.
pub fn verify(
    objects: &dyn Objects,
    snapshot: &Snapshot,
    progress: &Progress,
) -> Result<Vec<DamagedFile>, BackupError> {
    let there = lengths(objects)?;
    progress.expect_bytes(snapshot.bytes());
    let found = progress.transfer(&snapshot.files, |entry| {
        let what = match length_wrong(&there, entry) {
            Some(what) => {
                progress.add_bytes(entry.bytes);
                Some(what)
            }
            None => compare(objects, entry, progress)?,
        };
        let path = entry.object();
        Ok(what.map(|what| DamagedFile { path, what }))
    });
    Ok(found?.into_iter().flatten().collect())
}

/// What is wrong with the object of a file, which is read.
fn compare(
    objects: &dyn Objects,
    entry: &Entry,
    progress: &Progress,
) -> Result<Option<String>, BackupError> {
    let mut count = |part: &[u8]| {
        progress.add_bytes(part.len() as u64);
        Ok(())
    };
    match fetch(objects, entry, &mut count) {
        Ok(()) => Ok(None),
        Err(BackupError::Differs { what, .. }) => Ok(Some(what)),
        Err(BackupError::Bucket(error)) if error.kind == FailureKind::Missing => {
            Ok(Some("it is gone".to_owned()))
        }
        Err(error) => Err(error),
    }
}

/// The lengths of all files that are in the store, by object.
pub(super) fn lengths(objects: &dyn Objects) -> Result<HashMap<String, u64>, BackupError> {
    let entries = objects.list(FILES, None)?;
    let lengths = entries
        .into_iter()
        .map(|object| (object.name, object.bytes));
    Ok(lengths.collect())
}

/// What is wrong with the object of a file, by its length alone; `None` if nothing is.
pub(super) fn length_wrong(there: &HashMap<String, u64>, entry: &Entry) -> Option<String> {
    match there.get(&entry.object()) {
        None => Some("it is gone".to_owned()),
        Some(bytes) if *bytes != entry.bytes => {
            Some(format!("it has {bytes} bytes, not {}", entry.bytes))
        }
        Some(_) => None,
    }
}
