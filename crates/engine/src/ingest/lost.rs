//! Tells by records what quotas did not let in.

use std::time::Duration;

use super::Ingest;
use super::rules::{Loss, batch_of};
use logpond_host::shutdown::Shutdown;

/// How often it is seen whether a window has ended in which something was lost. Windows are counted in
/// seconds.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Losses that are told at a time.
const LOSSES_MAX: usize = 1_000;

impl Ingest {
    /// Tells what was not let in at the end of each window, until the stop. Ends at once where there
    /// are no rules.
    pub async fn tell_losses(self, hostname: std::sync::Arc<str>, mut shutdown: Shutdown) {
        while self.rules.is_some() {
            tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                () = shutdown.stopping() => return,
            }
            self.tell(&hostname, false).await;
        }
    }

    /// Tells what is left, once nothing comes any more.
    pub async fn tell_last_losses(&self, hostname: &str) {
        self.tell(hostname, true).await;
    }

    async fn tell(&self, hostname: &str, is_end: bool) {
        let Some(rules) = &self.rules else {
            return;
        };
        let now = (self.clock)();
        let mut losses = rules.take_losses(now, is_end);
        while !losses.is_empty() {
            let rest = losses.split_off(losses.len().min(LOSSES_MAX));
            let told = self.submit_own(batch_of(&losses, hostname, now)).await;
            if let Err(refused) = told {
                if is_end {
                    warn_of(&losses, &refused);
                }
                losses.extend(rest);
                rules.put_back(losses);
                return;
            }
            losses = rest;
        }
    }
}

fn warn_of(losses: &[Loss], refused: &super::IngestError) {
    for loss in losses {
        logpond_host::telemetry::warn(&format!("{}; no record says so: {refused}", loss.text()));
    }
}
