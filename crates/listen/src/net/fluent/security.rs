//! What clients must know, kept up to date with its file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::handshake::{Security, read_security};
use logpond_host::telemetry::{Metrics, ReloadTarget, warn};
use logpond_host::watch::{Stamp, WatchTarget};
use logpond_settings::SecretFileError;

/// What clients must know now. Who is connected stays so.
pub struct SharedSecurity(RwLock<Arc<Security>>);

impl SharedSecurity {
    pub(super) fn now(&self) -> Arc<Security> {
        let held = self.0.read().unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }

    fn replace(&self, security: Security) {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *held = Arc::new(security);
    }
}

/// Its file.
pub struct WatchedSecurity {
    shared: Arc<SharedSecurity>,
    path: PathBuf,
    /// The state of the file that was read last, or reported as bad.
    stamp: Stamp,
    metrics: Arc<Metrics>,
}

impl WatchedSecurity {
    /// Reads a file, which is then to be watched.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn start(
        path: &Path,
        metrics: &Arc<Metrics>,
    ) -> Result<(Arc<SharedSecurity>, WatchedSecurity), SecretFileError> {
        let stamp = Stamp::of(path);
        let security = Arc::new(read_security(path)?);
        let shared = Arc::new(SharedSecurity(RwLock::new(security)));
        let watched = WatchedSecurity {
            shared: shared.clone(),
            path: path.to_owned(),
            stamp,
            metrics: metrics.clone(),
        };
        Ok((shared, watched))
    }
}

impl WatchTarget for WatchedSecurity {
    fn look(&mut self, is_asked: bool) {
        let stamp = Stamp::of(&self.path);
        if stamp == self.stamp && !is_asked {
            return;
        }
        self.stamp = stamp;
        let reloads = self.metrics.access.reloads(ReloadTarget::FluentSecurity);
        match read_security(&self.path) {
            Ok(security) => {
                self.shared.replace(security);
                reloads.done.add(1);
            }
            Err(error) => {
                reloads.failed.add(1);
                warn(&format!("{error}; clients are asked as before"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_taken_in_and_a_bad_one_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("security.toml");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write("shared-key = \"first\"");
        let metrics = Arc::new(Metrics::default());
        let (shared, mut watched) = WatchedSecurity::start(&path, &metrics).unwrap();
        let key = |shared: &SharedSecurity| shared.now().shared_key().to_owned();
        let counts = || {
            let reloads = metrics.access.reloads(ReloadTarget::FluentSecurity);
            (reloads.done.get(), reloads.failed.get())
        };
        watched.look(false);
        assert_eq!((key(&shared), counts()), ("first".to_owned(), (0, 0)));
        write("shared-key = \"the second\"");
        watched.look(false);
        assert_eq!((key(&shared), counts()), ("the second".to_owned(), (1, 0)));
        write("no key");
        watched.look(false);
        watched.look(false);
        assert_eq!((key(&shared), counts()), ("the second".to_owned(), (1, 1)));
        std::fs::remove_file(&path).unwrap();
        watched.look(false);
        assert_eq!((key(&shared), counts()), ("the second".to_owned(), (1, 2)));
        write("shared-key = \"third\"");
        watched.look(true);
        assert_eq!((key(&shared), counts()), ("third".to_owned(), (2, 2)));
    }
}
