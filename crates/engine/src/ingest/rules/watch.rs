//! Takes changed rules in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Rules, RulesError, file};
use logpond_host::telemetry::{Metrics, ReloadTarget, warn};
use logpond_host::terminal::with_causes;
use logpond_host::watch::{Stamp, WatchTarget};

/// The file of a server's rules, and that of its key.
pub struct WatchedRules {
    rules: Arc<Rules>,
    path: PathBuf,
    /// States of the files whose rules apply, or which were reported as bad.
    stamps: Vec<Stamp>,
    metrics: Arc<Metrics>,
}

impl WatchedRules {
    /// Reads a file of rules, which is then to be watched.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn start(
        path: &Path,
        metrics: &Arc<Metrics>,
    ) -> Result<(Arc<Rules>, WatchedRules), RulesError> {
        let before = Stamp::of(path);
        let rules = Arc::new(Rules::read(path)?);
        rules.expose_in(metrics);
        let mut watched = WatchedRules {
            rules: rules.clone(),
            path: path.to_owned(),
            stamps: Vec::new(),
            metrics: metrics.clone(),
        };
        watched.stamps = watched.now();
        watched.stamps[0] = before;
        Ok((rules, watched))
    }

    fn now(&self) -> Vec<Stamp> {
        let stage = self.rules.stage();
        let files = stage.files.iter().map(PathBuf::as_path);
        let all = std::iter::once(&*self.path).chain(files);
        all.map(Stamp::of).collect()
    }
}

impl WatchTarget for WatchedRules {
    fn look(&mut self, is_asked: bool) {
        let stamps = self.now();
        if stamps == self.stamps && !is_asked {
            return;
        }
        self.stamps = stamps;
        let reloads = self.metrics.access.reloads(ReloadTarget::Rules);
        match file::read(&self.path) {
            Ok(definition) => {
                self.rules.replace(definition);
                // The key may be in another file now.
                let own = self.stamps.swap_remove(0);
                self.stamps = self.now();
                self.stamps[0] = own;
                reloads.done.add(1);
            }
            Err(error) => {
                reloads.failed.add(1);
                let error = with_causes(&error);
                warn(&format!("{error}; the rules stay as they were"));
            }
        }
    }
}
