//! Which journal bytes queries may read.
//!
//! Invariants:
//! - Every byte below `VisibleFile::bytes` is synced.
//! - A source is in the view from its first sync until the store retires it; it changes its path
//!   once, when it is closed.
//! - The version grows with every change, so that a follower can wait for the next one.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use logpond_record::SourceId;

/// One journal file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisibleFile {
    /// Which source it is.
    pub source: SourceId,
    /// Where it lies below the data directory. An open file is renamed when it closes: a reader
    /// that does not find it takes a new view.
    pub path: String,
    /// How far it may be read.
    pub bytes: u64,
    /// Whether it is still being written.
    pub is_open: bool,
}

/// A state of the journal.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Grows with every change.
    pub version: u64,
    /// The files, oldest source first within an incarnation.
    pub files: Vec<VisibleFile>,
}

/// The current view, shared by the writer, the store and the queries.
#[derive(Clone, Default)]
pub struct Visible(Arc<Shared>);

#[derive(Default)]
struct Shared {
    view: Mutex<Arc<View>>,
    changed: Condvar,
}

impl Visible {
    /// With the files of earlier lives of the process.
    pub fn new(files: Vec<VisibleFile>) -> Visible {
        let visible = Visible::default();
        visible.change(|view| view.files = files);
        visible
    }

    /// The view now.
    pub fn view(&self) -> Arc<View> {
        self.lock().clone()
    }

    /// Waits until the view is newer than `version`, at most `time_max`; gives the view then.
    pub fn wait_newer(&self, version: u64, time_max: Duration) -> Arc<View> {
        let guard = self.lock();
        let same = |view: &mut Arc<View>| view.version <= version;
        match self.0.changed.wait_timeout_while(guard, time_max, same) {
            Ok((view, _)) => view.clone(),
            Err(poisoned) => poisoned.into_inner().0.clone(),
        }
    }

    /// Replaces or adds files, by source.
    pub fn publish(&self, files: impl IntoIterator<Item = VisibleFile>) {
        self.change(|view| {
            for file in files {
                match view.files.iter_mut().rfind(|f| f.source == file.source) {
                    Some(known) => *known = file,
                    None => view.files.push(file),
                }
            }
        });
    }

    /// Removes sources that other files hold from now on. `at_once` runs under the same lock, so
    /// that a reader that takes both states sees each record exactly once.
    pub fn retire(&self, sources: &[SourceId], at_once: impl FnOnce()) {
        self.change(|view| {
            view.files.retain(|f| !sources.contains(&f.source));
            at_once();
        });
    }

    /// Runs `read` with the view while nothing can change it.
    pub fn with_view<R>(&self, read: impl FnOnce(&Arc<View>) -> R) -> R {
        read(&self.lock())
    }

    fn change(&self, change: impl FnOnce(&mut View)) {
        let mut guard = self.lock();
        let view = Arc::make_mut(&mut guard);
        change(view);
        view.version += 1;
        drop(guard);
        self.0.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Arc<View>> {
        // A panic while changing cannot leave a half-made view that matters: every change is one
        // step of plain data.
        self.0.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
