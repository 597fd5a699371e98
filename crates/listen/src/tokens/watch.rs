//! Takes a changed file of tokens in.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Guard, read};
use logpond_host::telemetry::{Metrics, ReloadTarget, warn};
use logpond_host::terminal::with_causes;
use logpond_host::watch::{Stamp, WatchTarget};

/// The file of a guard's tokens.
pub struct WatchedTokens {
    guard: Arc<Guard>,
    path: PathBuf,
    /// State of the file whose tokens the guard has, or which was reported as bad.
    stamp: Stamp,
    metrics: Arc<Metrics>,
}

impl WatchedTokens {
    /// Watches the file from which the guard's tokens were read when it had this `stamp`.
    pub fn new(
        guard: Arc<Guard>,
        path: PathBuf,
        stamp: Stamp,
        metrics: Arc<Metrics>,
    ) -> WatchedTokens {
        WatchedTokens {
            guard,
            path,
            stamp,
            metrics,
        }
    }
}

impl WatchTarget for WatchedTokens {
    fn look(&mut self, is_asked: bool) {
        let stamp = Stamp::of(&self.path);
        if stamp == self.stamp && !is_asked {
            return;
        }
        self.stamp = stamp;
        match read(&self.path) {
            Ok(tokens) => {
                if tokens.entries().is_empty() && !self.guard.tokens().entries().is_empty() {
                    warn(&format!(
                        "{} has no tokens any more: every request that needs one is refused",
                        self.path.display()
                    ));
                }
                self.guard.replace(tokens);
                self.metrics
                    .access
                    .reloads(ReloadTarget::Tokens)
                    .done
                    .add(1);
            }
            Err(error) => {
                self.metrics
                    .access
                    .reloads(ReloadTarget::Tokens)
                    .failed
                    .add(1);
                let error = with_causes(&error);
                warn(&format!("{error}; the tokens stay as they were"));
            }
        }
    }
}
