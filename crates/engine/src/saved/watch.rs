//! Takes in what somebody changes in the file of saved queries.

use std::path::PathBuf;
use std::sync::Arc;

use super::queries::SavedQueries;
use logpond_host::clock;
use logpond_host::telemetry::{Metrics, ReloadTarget, warn};
use logpond_host::terminal::with_causes;
use logpond_host::watch::{Stamp, WatchTarget};

/// The file of a server's queries.
pub struct WatchedQueries {
    queries: Arc<SavedQueries>,
    path: PathBuf,
    /// State of the file that was looked at.
    stamp: Stamp,
    metrics: Arc<Metrics>,
}

impl WatchedQueries {
    /// Watches the file from which the queries were read when it had this `stamp`.
    pub fn new(
        queries: Arc<SavedQueries>,
        path: PathBuf,
        stamp: Stamp,
        metrics: Arc<Metrics>,
    ) -> WatchedQueries {
        WatchedQueries {
            queries,
            path,
            stamp,
            metrics,
        }
    }
}

impl WatchTarget for WatchedQueries {
    fn look(&mut self, is_asked: bool) {
        let stamp = Stamp::of(&self.path);
        if stamp == self.stamp && !is_asked {
            return;
        }
        self.stamp = stamp;
        let reloads = self.metrics.access.reloads(ReloadTarget::SavedQueries);
        match self.queries.look(clock::now()) {
            // The server's own changes are no news to it.
            Ok(false) => {}
            Ok(true) => reloads.done.add(1),
            Err(error) => {
                reloads.failed.add(1);
                let error = with_causes(&error);
                warn(&format!("{error}; the saved queries stay as they were"));
            }
        }
    }
}
