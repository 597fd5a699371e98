//! What a proxy is told by the system.

use std::sync::Arc;
use std::time::Duration;

use logpond_proxy::Stopper;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::commands::Failure;
use logpond_host::service_manager;
use logpond_host::shutdown;
use logpond_host::telemetry::{say, warn};
use logpond_host::watch::Watcher;

/// The signals that it heeds.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    upgrade: Signal,
}

/// What is done at signals.
pub(super) struct Actions {
    pub(super) watcher: Watcher,
    pub(super) stopper: Stopper,
    pub(super) drain_time: Duration,
    /// Has a new process take over; gives its id. May block.
    pub(super) hand_over: Arc<dyn Fn() -> Result<u32, String> + Send + Sync>,
    /// Ends what serves operators, and what orders certificates.
    pub(super) beside: shutdown::Stopper,
}

impl Actions {
    /// Whether a new process has taken over.
    async fn upgrade(&self) -> bool {
        let hand_over = self.hand_over.clone();
        let outcome = tokio::task::spawn_blocking(move || hand_over()).await;
        match outcome.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(process) => {
                say(&format!("process {process} has taken over from this one"));
                service_manager::tell(&format!("MAINPID={process}"));
                true
            }
            Err(error) => {
                warn(&format!("{error}; this process goes on"));
                false
            }
        }
    }
}

impl Signals {
    pub(super) fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            upgrade: signal(SignalKind::user_defined2())?,
        })
    }

    /// Has files read again at SIGHUP until an end is asked for, or a new process has taken over at
    /// SIGUSR2; then waits for the end, the second time without patience.
    pub(super) async fn until_ended<T: Send + 'static>(
        mut self,
        actions: Actions,
        join: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let has_handed_over = loop {
            tokio::select! {
                _ = self.hangup.recv() => actions.watcher.look_now(),
                _ = self.upgrade.recv() => if actions.upgrade().await { break true },
                _ = self.terminate.recv() => break false,
                _ = self.interrupt.recv() => break false,
            }
        };
        if !has_handed_over {
            service_manager::tell("STOPPING=1");
        }
        let Actions {
            stopper,
            drain_time,
            beside,
            ..
        } = actions;
        beside.stop();
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
