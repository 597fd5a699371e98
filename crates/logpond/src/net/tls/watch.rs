//! Takes changed certificates in.

use std::path::PathBuf;
use std::sync::Arc;

use super::TlsError;
use crate::telemetry::{Metrics, Reloaded, warn};
use crate::terminal::with_causes;
use crate::watch::{Stamp, Watched};

/// Looks in a row at which files must be bad before it is said: they are replaced one after the
/// other, and in between a key need not be the certificate's.
const BAD_LOOKS_MAX: u32 = 2;

/// Files that are used together, and their state when they were last read.
pub(super) struct Seen {
    paths: Vec<PathBuf>,
    stamps: Vec<Stamp>,
}

impl Seen {
    /// The state of the files now. Take it before they are read.
    pub(super) fn of(paths: Vec<PathBuf>) -> Seen {
        let stamps = paths.iter().map(|path| Stamp::of(path)).collect();
        Seen { paths, stamps }
    }

    /// Whether the files have changed since; notes their state now.
    fn has_changed(&mut self) -> bool {
        let now: Vec<Stamp> = self.paths.iter().map(|path| Stamp::of(path)).collect();
        std::mem::replace(&mut self.stamps, now) != self.stamps
    }
}

/// Certificates and keys of something that is kept up to date.
pub(super) struct WatchedTls<F> {
    seen: Seen,
    /// Looks since the files changed at which they were bad.
    bad_looks: u32,
    /// Reads and checks all files, and changes something only if they are good.
    take_in: F,
    what: Reloaded,
    metrics: Arc<Metrics>,
}

impl<F> WatchedTls<F>
where
    F: FnMut() -> Result<(), TlsError> + Send,
{
    /// Watches files that were read when they were `seen`.
    pub(super) fn new(
        seen: Seen,
        take_in: F,
        what: Reloaded,
        metrics: Arc<Metrics>,
    ) -> WatchedTls<F> {
        WatchedTls {
            seen,
            bad_looks: 0,
            take_in,
            what,
            metrics,
        }
    }
}

impl<F> Watched for WatchedTls<F>
where
    F: FnMut() -> Result<(), TlsError> + Send,
{
    fn look(&mut self, is_asked: bool) {
        let has_changed = self.seen.has_changed();
        if has_changed {
            self.bad_looks = 0;
        }
        let is_pending = (1..BAD_LOOKS_MAX).contains(&self.bad_looks);
        if !has_changed && !is_asked && !is_pending {
            return;
        }
        let reloads = self.metrics.access.reloads(self.what);
        match (self.take_in)() {
            Ok(()) => {
                self.bad_looks = 0;
                reloads.done.add(1);
            }
            Err(error) => {
                self.bad_looks += 1;
                if self.bad_looks == BAD_LOOKS_MAX || is_asked {
                    self.bad_looks = BAD_LOOKS_MAX;
                    reloads.failed.add(1);
                    let error = with_causes(&error);
                    warn(&format!("{error}; the certificate in use stays"));
                }
            }
        }
    }
}
