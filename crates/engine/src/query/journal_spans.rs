//! From when to when the records of the journal's files are, as far as a reading has told: who asks what
//! this server is does not read records for it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use logpond_record::{SourceId, Timestamp};
use logpond_segment::journal::Snapshot;

/// Event times of the first and of the last record of files that were read as a whole. Of one that grows
/// so far as it was read then. There are no more than files of the journal.
#[derive(Debug, Default)]
pub(super) struct JournalSpans(Mutex<HashMap<SourceId, (Timestamp, Timestamp)>>);

impl JournalSpans {
    /// Notes what a reading has found.
    pub(super) fn note(&self, source: SourceId, span: (Timestamp, Timestamp)) {
        self.lock().insert(source, span);
    }

    /// What is known of a file.
    pub(super) fn of(&self, source: SourceId) -> Option<(Timestamp, Timestamp)> {
        self.lock().get(&source).copied()
    }

    /// Forgets files that are gone.
    pub(super) fn retain(&self, journal: &Snapshot) {
        let is_there = |source: &SourceId| {
            journal.closed.iter().any(|file| file.source == *source)
                || journal.open.iter().any(|file| file.source == *source)
        };
        self.lock().retain(|source, _| is_there(source));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SourceId, (Timestamp, Timestamp)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
