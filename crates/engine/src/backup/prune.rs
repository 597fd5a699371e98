//! Removing old snapshots, and the files that no snapshot needs any more.
//!
//! A backup counts on objects that the newest snapshot lists, and on young ones. The newest snapshot
//! is never removed; files go only when they are old by the store's clock, and none goes while a
//! backup says that it runs. One that was killed says so for a day.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Duration;

use logpond_bucket::{ObjectEntry, Objects, store_time};

use super::snapshot::Entry;
use super::transfers::{Progress, transfer};
use super::{BackupError, FILES, RUNNING, snapshots};

/// The numbers of removed objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// Snapshots that are left.
    pub kept: u64,
    /// Snapshots that were removed.
    pub snapshots: u64,
    /// Files that were removed.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Files that no snapshot lists and that are too young to be removed.
    pub young: u64,
    /// Whether files were kept because a backup is running.
    pub is_running: bool,
}

/// Keeps the newest snapshots, and removes the others with the files that only they list, once these
/// have been in the store for `grace`, which is [`logpond_bucket::GRACE`] but in tests.
///
/// # Errors
/// When a snapshot that is kept cannot be read, before anything is removed; when the store fails.
pub fn prune(
    objects: &dyn Objects,
    keep: NonZeroUsize,
    grace: Duration,
    progress: &Progress,
) -> Result<PruneReport, BackupError> {
    let time = store_time(objects)?;
    let is_old = |object: &ObjectEntry| object.is_older(time, grace);
    // Before snapshots are listed: a backup that ends in between was running, and one that begins
    // later counts on the newest snapshot of this listing or a newer one.
    let is_running = is_running(objects, is_old)?;
    let mut names = snapshots::names(objects)?;
    let kept = names.split_off(names.len().saturating_sub(keep.get()));
    let read = transfer(&kept, |name| snapshots::read(objects, name))?;
    let files = read.iter().flat_map(|snapshot| &snapshot.files);
    let listed: BTreeSet<String> = files.map(Entry::object).collect();
    let mut pruned = PruneReport {
        kept: kept.len() as u64,
        is_running,
        ..PruneReport::default()
    };
    for name in &names {
        objects.remove(&name.object())?;
        pruned.snapshots += 1;
    }
    // Without any snapshot there is nothing to tell what is needed: it may be the wrong place.
    if is_running || kept.is_empty() {
        return Ok(pruned);
    }
    let mut unneeded = objects.list(FILES, None)?;
    unneeded.retain(|object| !listed.contains(&object.name));
    let (old, young): (Vec<_>, Vec<_>) = unneeded.into_iter().partition(is_old);
    pruned.young = young.len() as u64;
    let removed = progress.transfer(&old, |object| {
        objects.remove(&object.name)?;
        Ok(object.bytes)
    })?;
    pruned.files = removed.len() as u64;
    pruned.bytes = removed.iter().sum();
    Ok(pruned)
}

/// Whether a backup is running; forgets those that have not said so for long.
fn is_running(
    objects: &dyn Objects,
    is_old: impl Fn(&ObjectEntry) -> bool,
) -> Result<bool, BackupError> {
    let mut running = false;
    for object in objects.list(RUNNING, None)? {
        if is_old(&object) {
            objects.remove(&object.name)?
        } else {
            running = true;
        }
    }
    Ok(running)
}
