//! Backups: what a data directory holds, in an object store, and back from there.
//!
//! ```text
//! DATA/segments, journal ─▶ list ─▶ choose ─▶ make ─▶ backup/files/…          (only what is new)
//!                                              └────▶ backup/snapshots/TIME   (last, by `create`)
//! ```
//!
//! Invariants:
//! - A snapshot is written last and never changes; until then a backup is none. What a run that was
//!   interrupted has uploaded is used by the next one.
//! - A source is in a snapshot whole or not at all: files that are being written are left out, because
//!   the same source would later be elsewhere with other rows (R2, C2). How many rows that are is said.
//! - A snapshot holds every source that was closed when its last listing began, but those that
//!   the server gave up for their age or to other nodes. See [`list`] and [`make`] for why, though
//!   the server goes on merging and removing.
//! - Nothing of a node's identity is in a snapshot: who is restored beside the original must not pass
//!   for it.
//! - A restored file has its own name only once its checksum is that of the snapshot. A server does
//!   not start over a restore that was not finished.
//!
//! `docs/format/backup.md` is normative.

mod check;
mod choose;
mod error;
mod fetch;
mod list;
mod make;
mod prune;
mod restore;
mod snapshot;
mod snapshots;
mod transfers;
#[cfg(test)]
mod tests;

pub use check::DamagedFile;
pub use error::BackupError;
pub use fetch::verify;
pub use make::{BackupReport, Job, make};
pub use prune::{PruneReport, prune};
pub use restore::{RestoreReport, refuse_unfinished, restore};
pub use snapshot::{Entry, LeftOut, Snapshot, SnapshotName};
pub use snapshots::{FoundSnapshot, find, names, open, read};
pub use transfers::{Progress, ProgressSnapshot};

/// Where the snapshots are.
const SNAPSHOTS: &str = "backup/snapshots/";

/// Where the files are.
const FILES: &str = "backup/files/";

/// Where running backups say that they are.
const RUNNING: &str = "backup/running/";

/// The small files beside the records that are kept, too. Nothing of `cluster/` is among them.
const STATE_PATHS: [&str; 3] = ["alerts/state", "queries.toml", "tokens.toml"];
