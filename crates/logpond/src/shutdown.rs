//! The ordered end of the process.
//!
//! Invariants:
//! - The drain runs against the flow: listeners stop accepting, open connections finish what they
//!   hold (at most [`DRAIN_TIME_MAX`]), then the journal is closed and synced, and only then does
//!   the process end.
//! - A stop that was asked for is never taken back.

use std::time::Duration;

use tokio::sync::watch;

/// How long open connections may take to finish once a stop is asked for. Service managers
/// commonly kill after ten seconds or more; the journal must be closed well before.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// Asks for the stop.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// Learns of the stop. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// A connected pair.
pub fn pair() -> (Stopper, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Shutdown(receiver))
}

impl Stopper {
    /// Asks for the stop; further calls change nothing.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Whether the stop has been asked for.
    pub fn is_stopping(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the stop is asked for, also by the stopper being dropped.
    pub async fn stopping(&mut self) {
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
