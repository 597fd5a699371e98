//! What a proxy is told by the system.

use std::time::Duration;

use logpond_proxy::Stopper;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::commands::Failure;
use crate::service_manager;
use crate::watch::Watcher;

/// The signals that it heeds.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    pub(super) fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Has files read again at SIGHUP until an end is asked for; then waits for it, the second time
    /// without patience.
    pub(super) async fn until_ended<T: Send + 'static>(
        mut self,
        watcher: Watcher,
        stopper: Stopper,
        drain_time: Duration,
        join: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        loop {
            tokio::select! {
                _ = self.hangup.recv() => watcher.look_now(),
                _ = self.terminate.recv() => break,
                _ = self.interrupt.recv() => break,
            }
        }
        service_manager::tell("STOPPING=1");
        stopper.drain(drain_time);
        let mut joined = tokio::task::spawn_blocking(join);
        loop {
            tokio::select! {
                joined = &mut joined => return Ok(joined?),
                _ = self.terminate.recv() => stopper.drain(Duration::ZERO),
                _ = self.interrupt.recv() => stopper.drain(Duration::ZERO),
            }
        }
    }
}
