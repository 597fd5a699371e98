//! Tries servers in turn, again and again, until one takes what is to be sent.
//!
//! An answer that is not about what is sent comes from something else than a Logpond server, or is about the token.
//! Before any server has taken anything it ends the attempts: the address or the token is wrong. Afterwards it is
//! an outage: the page of a load balancer, a token that is being replaced, or another process at the port.

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
    /// The answer is not about what was sent.
    Foreign {
        /// The answer.
        error: ClientError,
        /// True if a server behind it may have it all the same.
        may_be_there: bool,
    },
}

impl Attempt {
    /// The attempt that ended with this status and body, which may be of anything.
    pub(super) fn refused(status: u16, body: &[u8]) -> Attempt {
        let error = ClientError::refused(status, body);
        if error.may_pass() {
            Attempt::Foreign {
                may_be_there: !error.is_of_logpond(),
                error,
            }
        } else {
            Attempt::Refused(error)
        }
    }
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

/// How all servers failed, one after the other.
#[derive(Default)]
struct FailedRound {
    /// The words of the last one.
    last: String,
    /// The longest wait that one asked for.
    wait: Duration,
}

/// The servers, and how patiently they are tried.
pub(super) struct Attempts {
    /// Their names in messages.
    names: Vec<String>,
    servers: Servers,
    backoff: Backoff,
    pause: Pause,
    /// True once a server has taken something.
    has_taken: bool,
    /// When it was said that one answers as no Logpond server does, while another takes what is sent.
    noted: Option<Instant>,
}

impl Attempts {
    /// Attempts at these servers, of which there is at least one.
    pub(super) fn new(names: Vec<String>, backoff: Backoff, pause: Pause) -> Attempts {
        Attempts {
            servers: Servers::new(names.len(), Instant::now()),
            names,
            backoff,
            pause,
            has_taken: false,
            noted: None,
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
            let failed = match self.round(&mut attempt)? {
                Ok(taken) => {
                    if reported.is_some() {
                        note(&format!("logpond: {} takes records again", taken.1));
                    }
                    return Ok(taken.0);
                }
                Err(failed) => failed,
            };
            let last = failed.last;
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
            if !self.pause.wait(jittered(wait).max(failed.wait)) {
                return Err(SendError::Stopped);
            }
            wait = (wait * 2).min(self.backoff.longest);
        }
    }

    /// Makes one attempt at each server until one takes what is sent; gives its answer and name.
    fn round(
        &mut self,
        attempt: &mut impl FnMut(usize) -> Attempt,
    ) -> Result<Result<(BatchAnswer, String), FailedRound>, SendError> {
        let mut failed = FailedRound::default();
        let mut foreign: Option<(String, ClientError)> = None;
        for at in self.servers.order(Instant::now()) {
            let name = self.names[at].clone();
            match attempt(at) {
                Attempt::Taken(taken) => {
                    self.servers.took(at, taken.is_busy, Instant::now());
                    self.has_taken = true;
                    if let Some((other, error)) = foreign {
                        self.note_foreign(&other, &error, &name);
                    }
                    return Ok(Ok((taken, name)));
                }
                Attempt::Refused(error) => return Err(SendError::refused(name, error)),
                Attempt::Foreign { error, .. } => {
                    failed.last = format!("{name}: {error}");
                    foreign.get_or_insert((name, error));
                }
                Attempt::Failed(failure) => {
                    failed.last = format!("{name}: {}", failure.reason);
                    failed.wait = failed.wait.max(failure.retry_after.unwrap_or_default());
                }
            }
            if self.pause.is_stopped() {
                return Err(SendError::Stopped);
            }
        }
        match foreign {
            Some((name, error)) if !self.has_taken => Err(SendError::refused(name, error)),
            _ => Ok(Err(failed)),
        }
    }

    /// Says at times that a server is passed over.
    fn note_foreign(&mut self, name: &str, error: &ClientError, taker: &str) {
        if self.noted.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
            note(&format!(
                "logpond: {name}: {error}; {taker} takes the records"
            ));
            self.noted = Some(Instant::now());
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
