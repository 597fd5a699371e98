//! What of the journal readers may read at this moment.
//!
//! Invariants: an open file is listed with its synced length and no more (R1); a source is in one
//! place of a snapshot only; a listed open file can be read whatever its name has become.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logpond_record::{Id, SourceId, Timestamp};

use crate::batches::{BatchSet, HeldBatches};
use crate::disk::ReadAt;
use crate::tally::Tally;

/// What a run of frames contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Rows, raw bytes and the sum of row hashes.
    pub tally: Tally,
    /// Earliest receive time; [`Timestamp::MAX`] without rows.
    pub received_min: Timestamp,
    /// Latest receive time; [`Timestamp::MIN`] without rows.
    pub received_max: Timestamp,
    /// The last row; [`Id::MIN`] without rows.
    pub last: Id,
}

impl Default for Summary {
    fn default() -> Summary {
        Summary {
            tally: Tally::default(),
            received_min: Timestamp::MAX,
            received_max: Timestamp::MIN,
            last: Id::MIN,
        }
    }
}

impl Summary {
    /// Counts one row.
    pub fn add_row(&mut self, id: Id, received: Timestamp, raw: &[u8]) {
        self.tally.add_row(id, raw);
        self.received_min = self.received_min.min(received);
        self.received_max = self.received_max.max(received);
        self.last = self.last.max(id);
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.tally.rows
    }
}

/// A file whose end is not final: the one being written, or one that could not be closed yet.
#[derive(Clone)]
pub struct OpenState {
    /// The path it was created with; it may have another one by now.
    pub path: String,
    /// The source it will be when closed.
    pub source: SourceId,
    /// How far it may be read. Never more than what was synced.
    pub synced_bytes: u64,
    /// What is in the synced part.
    pub summary: Summary,
    /// The named batches in it.
    pub batches: Arc<HeldBatches>,
    /// The file, opened for reading.
    pub file: Arc<dyn ReadAt>,
}

impl fmt::Debug for OpenState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenState")
            .field("path", &self.path)
            .field("synced_bytes", &self.synced_bytes)
            .field("summary", &self.summary)
            .finish_non_exhaustive()
    }
}

/// A file that never changes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedFile {
    /// Its path.
    pub path: String,
    /// The source that it is.
    pub source: SourceId,
    /// Its length.
    pub bytes: u64,
    /// What is in it.
    pub summary: Summary,
    /// The named batches in it.
    pub batches: Arc<HeldBatches>,
}

/// The readable journal at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Grows with every change.
    pub version: u64,
    /// Grows when a file is closed or removed.
    pub files_version: u64,
    /// Files whose end is not final, oldest first.
    pub open: Vec<OpenState>,
    /// Closed files that nobody has removed, oldest first.
    pub closed: Arc<Vec<ClosedFile>>,
    /// The latest source of the incarnation that is written now, once it has one. Its file may have
    /// been removed since.
    pub latest: Option<SourceId>,
    /// Named batches of files that were taken off the list lately: a segment has them, or they have
    /// expired.
    pub released: Arc<ReleasedBatches>,
}

/// The most runs of batches that are remembered of files that are gone, before the older half is
/// forgotten: as many as the busiest file may hold.
const RELEASED_RUNS_MAX: usize = 65_536;

/// Batches of files that are gone, as far as they are remembered.
#[derive(Clone, Debug, Default)]
pub struct ReleasedBatches {
    newer: BatchSet,
    older: BatchSet,
}

impl ReleasedBatches {
    /// The batches of a set that are among them.
    pub fn intersection(&self, wanted: &BatchSet) -> BatchSet {
        let mut found = self.newer.intersection(wanted);
        found.union_with(&self.older.intersection(wanted));
        found
    }

    fn add(&mut self, batches: &HeldBatches) {
        batches.add_to(&mut self.newer);
        if self.newer.runs().count() > RELEASED_RUNS_MAX {
            self.older = std::mem::take(&mut self.newer);
        }
    }
}

/// The shared view of the journal: the writer publishes, readers take snapshots.
///
/// Locks are held for moments only and never over IO.
#[derive(Debug, Default)]
pub struct Visible {
    state: Mutex<Snapshot>,
}

impl Visible {
    /// The journal as it is now.
    pub fn snapshot(&self) -> Snapshot {
        self.lock().clone()
    }

    /// The current version; a reader that has seen it need not take a snapshot.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// The current [`Snapshot::files_version`].
    pub fn files_version(&self) -> u64 {
        self.lock().files_version
    }

    /// Whether there is a file whose end is not final.
    pub fn has_open(&self) -> bool {
        !self.lock().open.is_empty()
    }

    /// Adds closed files, as [`super::recover`] found them.
    pub fn add_closed(&self, files: Vec<ClosedFile>) {
        let mut state = self.lock();
        Arc::make_mut(&mut state.closed).extend(files);
        state.version += 1;
        state.files_version += 1;
    }

    /// Takes a closed file off the list: a segment holds its rows now, so the file may be removed.
    ///
    /// Whoever shows the segment and takes off the file should do so in one step as readers see
    /// it, or readers must leave out journal files whose source a segment lists.
    pub fn remove_closed(&self, source: SourceId) -> Option<ClosedFile> {
        let mut state = self.lock();
        let at = state.closed.iter().position(|file| file.source == source)?;
        state.version += 1;
        state.files_version += 1;
        let file = Arc::make_mut(&mut state.closed).remove(at);
        if *file.batches != HeldBatches::default() {
            Arc::make_mut(&mut state.released).add(&file.batches);
        }
        Some(file)
    }

    /// Replaces the open files and adds those that were closed, in one step.
    pub(crate) fn publish(&self, open: Vec<OpenState>, closed: Option<ClosedFile>) {
        let mut state = self.lock();
        let written = open.iter().map(|file| file.source);
        let written = written.chain(closed.iter().map(|file| file.source)).max();
        // Another incarnation begins only when the last one has ended.
        let is_later = |written: &SourceId| {
            state
                .latest
                .is_none_or(|latest| latest.incarnation != written.incarnation || latest < *written)
        };
        if let Some(written) = written.filter(is_later) {
            state.latest = Some(written);
        }
        state.open = open;
        if let Some(file) = closed {
            Arc::make_mut(&mut state.closed).push(file);
            state.files_version += 1;
        }
        state.version += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        // Nothing panics while the lock is held, and every change is complete in itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
