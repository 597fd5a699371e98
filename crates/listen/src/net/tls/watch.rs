//! Takes changed certificates in.

use std::sync::Arc;

use super::TlsError;
use logpond_host::telemetry::{Metrics, ReloadTarget, warn};
use logpond_host::terminal::with_causes;
use logpond_host::watch::{WatchTarget, WatchedFiles};

/// Certificates and keys of something that is kept up to date.
pub(super) struct WatchedTls<F> {
    seen: WatchedFiles,
    /// Reads and checks all files, and changes something only if they are good.
    take_in: F,
    what: ReloadTarget,
    metrics: Arc<Metrics>,
}

impl<F> WatchedTls<F>
where
    F: FnMut() -> Result<(), TlsError> + Send,
{
    /// Watches files that were read when they were `seen`.
    pub(super) fn new(
        seen: WatchedFiles,
        take_in: F,
        what: ReloadTarget,
        metrics: Arc<Metrics>,
    ) -> WatchedTls<F> {
        WatchedTls {
            seen,
            take_in,
            what,
            metrics,
        }
    }
}

impl<F> WatchTarget for WatchedTls<F>
where
    F: FnMut() -> Result<(), TlsError> + Send,
{
    fn look(&mut self, is_asked: bool) {
        if !self.seen.is_due(is_asked) {
            return;
        }
        let reloads = self.metrics.access.reloads(self.what);
        match (self.take_in)() {
            Ok(()) => {
                self.seen.are_good();
                reloads.done.add(1);
            }
            Err(error) => {
                if self.seen.are_bad(is_asked) {
                    reloads.failed.add(1);
                    let error = with_causes(&error);
                    warn(&format!("{error}; the certificate in use stays"));
                }
            }
        }
    }
}
