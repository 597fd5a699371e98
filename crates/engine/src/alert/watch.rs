//! Takes changed files of alert rules in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Alerts, files};
use logpond_host::telemetry::{Metrics, ReloadTarget, warn};
use logpond_host::terminal::with_causes;
use logpond_host::watch::{Stamp, WatchTarget};

/// The files of a server's alert rules.
pub struct WatchedAlertRules {
    alerts: Arc<Alerts>,
    path: PathBuf,
    /// States of the path and its files whose rules apply, or which were reported as bad.
    stamps: Vec<(PathBuf, Stamp)>,
    metrics: Arc<Metrics>,
}

impl WatchedAlertRules {
    /// Watches files that were read after [`WatchedAlertRules::stamps`] of them were taken.
    pub fn new(
        alerts: Arc<Alerts>,
        path: &Path,
        stamps: Vec<(PathBuf, Stamp)>,
        metrics: Arc<Metrics>,
    ) -> WatchedAlertRules {
        WatchedAlertRules {
            alerts,
            path: path.to_owned(),
            stamps,
            metrics,
        }
    }

    /// The state of a file, or of a directory and its files.
    pub fn stamps(path: &Path) -> Vec<(PathBuf, Stamp)> {
        let below = files::files(path).unwrap_or_default();
        let all = std::iter::once(path.to_owned()).chain(below);
        all.map(|path| {
            let stamp = Stamp::of(&path);
            (path, stamp)
        })
        .collect()
    }
}

impl WatchTarget for WatchedAlertRules {
    fn look(&mut self, is_asked: bool) {
        let stamps = WatchedAlertRules::stamps(&self.path);
        if stamps == self.stamps && !is_asked {
            return;
        }
        self.stamps = stamps;
        let reloads = self.metrics.access.reloads(ReloadTarget::AlertRules);
        match files::read(&self.path) {
            Ok(loaded) => {
                self.alerts.replace(loaded);
                reloads.done.add(1);
            }
            Err(error) => {
                reloads.failed.add(1);
                let error = with_causes(&error);
                warn(&format!("{error}; the alert rules stay as they were"));
            }
        }
    }
}
