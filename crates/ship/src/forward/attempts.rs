//! Tries servers in turn, again and again, until one takes what is to be sent.

use std::time::{Duration, Instant};

use super::answer::BatchAnswer;
use super::sender::SendError;
use super::servers::Servers;
use super::{Backoff, Pause};
use logpond_client::ClientError;
use logpond_host::terminal::note;

/// How often trouble that goes on is reported.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// How one attempt ended.
pub(super) enum Attempt {
    /// A server has taken it.
    Taken(BatchAnswer),
    /// Another attempt may succeed.
    Failed(Failure),
    /// The server refuses it, and would again.
    Refused(ClientError),
}

/// An attempt that failed and may be followed by others.
#[derive(Default)]
pub(super) struct Failure {
    /// Why, in words.
    pub(super) reason: String,
    /// How long the server asks to be left alone.
    pub(super) retry_after: Option<Duration>,
    /// Whether the server may have it all the same.
    pub(super) may_be_there: bool,
}

/// The servers, and how patiently they are tried.
pub(super) struct Attempts {
    /// Their names in messages.
    names: Vec<String>,
    servers: Servers,
    backoff: Backoff,
    pause: Pause,
}

impl Attempts {
    /// Attempts at these servers, of which there is at least one.
    pub(super) fn new(names: Vec<String>, backoff: Backoff, pause: Pause) -> Attempts {
        Attempts {
            servers: Servers::new(names.len(), Instant::now()),
            names,
            backoff,
            pause,
        }
    }

    /// Index of the server at hand.
    pub(super) fn current(&self) -> usize {
        self.servers.current()
    }

    /// The name of the server at hand.
    pub(super) fn name(&self) -> &str {
        &self.names[self.servers.current()]
    }

    /// How long to wait between attempts, and when to stop making them.
    pub(super) fn backoff(&self) -> Backoff {
        self.backoff
    }

    /// What waits and stops.
    pub(super) fn pause(&self) -> &Pause {
        &self.pause
    }

    /// Makes attempts at one server after the other until one takes what is sent, or has refused it
    /// for good. `waited` is how long it has been tried in vain, as far as that counts.
    pub(super) fn until_taken(
        &mut self,
        waited: &dyn Fn() -> Option<Duration>,
        mut attempt: impl FnMut(usize) -> Attempt,
    ) -> Result<BatchAnswer, SendError> {
        let mut wait = self.backoff.first;
        let mut reported: Option<Instant> = None;
        loop {
            let mut asked_wait = Duration::ZERO;
            let mut last = String::new();
            for at in self.servers.order(Instant::now()) {
                match attempt(at) {
                    Attempt::Taken(taken) => {
                        self.servers.took(at, taken.is_busy, Instant::now());
                        if reported.is_some() {
                            note(&format!("logpond: {} takes records again", self.names[at]));
                        }
                        return Ok(taken);
                    }
                    Attempt::Refused(error) => {
                        let address = self.names[at].clone();
                        let error = Box::new(error);
                        return Err(SendError::Refused { address, error });
                    }
                    Attempt::Failed(failure) => {
                        last = format!("{}: {}", self.names[at], failure.reason);
                        asked_wait = asked_wait.max(failure.retry_after.unwrap_or_default());
                    }
                }
                if self.pause.is_stopped() {
                    return Err(SendError::Stopped);
                }
            }
            if let Some(after) = self.backoff.give_up_after
                && waited().is_some_and(|waited| waited >= after)
            {
                return Err(SendError::GaveUp { after, last });
            }
            if reported.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
                note(&format!("logpond: {last}; trying again"));
                reported = Some(Instant::now());
            }
            // Those who were cut off together do not come back together.
            if !self.pause.wait(jittered(wait).max(asked_wait)) {
                return Err(SendError::Stopped);
            }
            wait = (wait * 2).min(self.backoff.longest);
        }
    }
}

/// A wait between half of this and all of it.
fn jittered(wait: Duration) -> Duration {
    let mut random = [0; 1];
    // Without randomness all wait for the same time.
    let _ = getrandom::fill(&mut random);
    wait - wait * u32::from(random[0]) / 512
}
