//! The ordered end of the process.
//!
//! Invariants:
//! - The drain runs against the flow: listeners stop accepting, open connections finish what they
//!   hold (at most [`DRAIN_TIME_MAX`]), then the journal is closed and synced, and only then does
//!   the process end.
//! - A stop that was asked for is never taken back.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// How long open connections may take to finish once a stop is asked for. Service managers
/// commonly kill after ten seconds or more; the journal must be closed well before.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// Asks for the stop.
#[derive(Debug)]
pub struct Stopper {
    sender: watch::Sender<bool>,
    waiting: Arc<WaitState>,
}

/// Learns of the stop. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown {
    receiver: watch::Receiver<bool>,
    waiting: Arc<WaitState>,
}

/// Threads that wait for the stop.
#[derive(Debug, Default)]
struct WaitState {
    is_stopping: Mutex<bool>,
    stopped: Condvar,
}

/// A connected pair.
pub fn pair() -> (Stopper, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    let waiting: Arc<WaitState> = Arc::default();
    let shutdown = Shutdown {
        receiver,
        waiting: Arc::clone(&waiting),
    };
    (Stopper { sender, waiting }, shutdown)
}

impl Stopper {
    /// Asks for the stop; further calls change nothing.
    pub fn stop(&self) {
        self.sender.send_replace(true);
        let is_stopping = &self.waiting.is_stopping;
        *is_stopping.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.waiting.stopped.notify_all();
    }
}

impl Shutdown {
    /// Whether the stop has been asked for.
    pub fn is_stopping(&self) -> bool {
        *self.receiver.borrow()
    }

    /// Waits until the stop is asked for, also by the stopper being dropped.
    pub async fn stopping(&mut self) {
        let _ = self.receiver.wait_for(|stop| *stop).await;
    }

    /// Waits for the stop, at most so long. Blocks: not for the runtime.
    pub fn wait_at_most(&self, time: Duration) {
        let is_stopping = &self.waiting.is_stopping;
        let is_stopping = is_stopping.lock().unwrap_or_else(PoisonError::into_inner);
        let stopped = &self.waiting.stopped;
        // A poisoned lock ends it early, which does no harm.
        drop(stopped.wait_timeout_while(is_stopping, time, |is_stopping| !*is_stopping));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_the_wait() {
        let (stopper, shutdown) = pair();
        shutdown.wait_at_most(Duration::ZERO);
        let waiter = shutdown.clone();
        // Ends only because of the stop, whichever of the two comes first.
        let waiting = std::thread::spawn(move || waiter.wait_at_most(Duration::MAX));
        stopper.stop();
        waiting.join().unwrap();
        assert!(shutdown.is_stopping());
    }
}
