//! The snapshots of a place.

use std::collections::BTreeSet;

use logpond_bucket::Objects;

use super::snapshot::{Snapshot, SnapshotName};
use super::{BackupError, SNAPSHOTS};

/// The longest snapshot that is read: more than a million files.
const SNAPSHOT_BYTES_MAX: u64 = 256 << 20;

/// What the newest snapshot is called by.
const LATEST: &str = "latest";

/// The names of all snapshots, oldest first.
///
/// # Errors
/// When the store fails.
pub fn names(objects: &dyn Objects) -> Result<Vec<SnapshotName>, BackupError> {
    let entries = objects.list(SNAPSHOTS, None)?;
    let names = entries.iter();
    // In order of names anyway.
    let names: BTreeSet<_> = names
        .filter_map(|entry| SnapshotName::of_object(&entry.name))
        .collect();
    Ok(names.into_iter().collect())
}

/// The snapshot of this name, or the newest one for `latest`.
///
/// # Errors
/// When there is none, or the store fails.
pub fn find(objects: &dyn Objects, name: &str) -> Result<SnapshotName, BackupError> {
    let names = names(objects)?;
    let newest = names.last().ok_or(BackupError::Empty)?;
    if name == LATEST {
        return Ok(newest.clone());
    }
    let found = names.iter().find(|other| other.to_string() == name);
    found
        .cloned()
        .ok_or_else(|| BackupError::Unknown(name.to_owned()))
}

/// Reads a snapshot.
///
/// # Errors
/// When it is gone or not what it should be, or the store fails.
pub fn read(objects: &dyn Objects, name: &SnapshotName) -> Result<Snapshot, BackupError> {
    let object = name.object();
    let Some(bytes) = objects.get(&object, SNAPSHOT_BYTES_MAX)? else {
        return Err(BackupError::Unknown(name.to_string()));
    };
    Snapshot::from_json(&bytes).map_err(|what| BackupError::Snapshot { object, what })
}
