//! Wakes those who wait for new journal data.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What the journal's writer tells others. Cheap to clone.
///
/// Apart, since more can be read a thousand times a second, and a file is closed now and then: who
/// waits for files would be woken for nothing.
#[derive(Clone, Debug, Default)]
pub struct News {
    /// There is more to read.
    pub grown: Changes,
    /// A file was closed; whoever else has something to do for those that wait for it tells here,
    /// too.
    pub closed: Changes,
}

/// Counts changes of what is visible. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Changes(Arc<(Mutex<u64>, Condvar)>);

impl Changes {
    /// The number of changes so far: what to pass to [`Changes::wait`].
    pub fn count(&self) -> u64 {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that something changed.
    pub fn notify(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.1.notify_all();
    }

    /// Waits until there are more than `seen` changes, at most `time_max`; gives their number.
    pub fn wait(&self, seen: u64, time_max: Duration) -> u64 {
        let (count, changed) = &*self.0;
        let guard = count.lock().unwrap_or_else(PoisonError::into_inner);
        let result = changed.wait_timeout_while(guard, time_max, |count| *count <= seen);
        *result.unwrap_or_else(PoisonError::into_inner).0
    }
}
