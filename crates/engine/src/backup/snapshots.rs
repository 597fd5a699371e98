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

/// A snapshot that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSnapshot {
    /// Its name.
    pub name: SnapshotName,
    /// Its contents.
    pub snapshot: Snapshot,
    /// Newer ones that cannot be used, each with the reason.
    pub unusable: Vec<String>,
}

/// The snapshot of this name; for `latest` the newest one that can be used.
///
/// # Errors
/// When there is none, it cannot be used, or the store fails.
pub fn open(objects: &dyn Objects, name: &str) -> Result<FoundSnapshot, BackupError> {
    let mut names = match name {
        LATEST => names(objects)?,
        name => vec![find(objects, name)?],
    };
    let mut first_error = None;
    let mut unusable = Vec::new();
    while let Some(name) = names.pop() {
        match read(objects, &name) {
            Ok(snapshot) => {
                return Ok(FoundSnapshot {
                    name,
                    snapshot,
                    unusable,
                });
            }
            Err(error @ BackupError::Snapshot { .. }) => {
                unusable.push(error.to_string());
                first_error.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(first_error.unwrap_or(BackupError::Empty))
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
