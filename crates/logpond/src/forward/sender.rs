//! Sends batches: to the first server that answers, again and again until one does.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use logpond_record::Labels;
use logpond_segment::batches::{BatchId, BatchSet};
use serde::Deserialize;

use super::position::Position;
use super::producer::Producer;
use super::replication::{self, Known};
use super::servers::Servers;
use super::{Pause, Settings};
use crate::client::{
    Address, BATCH_HEADER, ClientError, LOAD_HEADER, agent, describe, encode, read_error,
};
use crate::terminal::note;

/// How long a server may take to answer a batch: a disk that syncs slower than this is broken.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest wait that a server may ask for by `Retry-After`.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The longest time between two questions whether batches are replicated.
const REPLICATION_WAIT_MAX: Duration = Duration::from_secs(1);

/// How often trouble that goes on is reported.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// The longest answer that is read: a list of 100 rejections with their reasons fits many times.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Waits between attempts. They double from the first to the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after all servers failed once.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// After so long without success it is over; `None` is never.
    pub give_up_after: Option<Duration>,
}

/// A server's answer to a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Records it holds durably.
    pub accepted: u64,
    /// Lines it will never take, as far as it named them: number in the batch from 1, and reason.
    pub rejected: Vec<(u64, String)>,
    /// How many it will never take. Invariant: at least as many as are named.
    pub rejected_total: u64,
    /// Whether as many servers as configured have copies of what it holds.
    pub is_replicated: bool,
    /// Whether the server asks senders to go elsewhere.
    pub is_busy: bool,
}

/// Why a batch was not taken.
#[derive(Debug)]
pub enum SendError {
    /// A server refuses it, and would again.
    Refused {
        /// The server.
        address: String,
        /// Its answer.
        error: Box<ClientError>,
    },
    /// No server took it for too long.
    GaveUp {
        /// How long.
        after: Duration,
        /// What the last one said.
        last: String,
    },
    /// The spool cannot be written or read.
    Spool {
        /// Where it is.
        path: PathBuf,
        /// Why, in words.
        what: String,
    },
    /// The process was told to stop.
    Stopped,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Refused { address, error } => write!(f, "{address} refuses: {error}"),
            SendError::GaveUp { after, last } => write!(
                f,
                "gave up after {} without a server that takes records: {last}",
                crate::output::quantity::span(*after)
            ),
            SendError::Spool { path, what } => {
                write!(f, "the spool {} cannot be used: {what}", path.display())
            }
            SendError::Stopped => f.write_str("stopped before everything was sent"),
        }
    }
}

impl std::error::Error for SendError {}

/// How one attempt ended.
enum Attempt {
    Taken(Taken),
    /// Another attempt may succeed.
    Failed(Failure),
    Refused(ClientError),
}

/// An attempt that failed and may be followed by others.
struct Failure {
    reason: String,
    /// How long the server asks to be left alone.
    retry_after: Option<Duration>,
    /// Whether the server may have the batch all the same.
    may_be_there: bool,
}

/// Where lines go.
pub(super) trait Outlet {
    /// Hands lines over: they are durable afterwards, or have been refused for good.
    fn send(&mut self, lines: &[u8], origin: &Origin<'_>) -> Result<Taken, SendError>;

    /// Waits and stops as the outlet does.
    fn pause(&self) -> &Pause;

    /// How far files were read by earlier runs, as far as this outlet knows better.
    fn positions(&self) -> Vec<Position> {
        Vec::new()
    }
}

/// Where lines come from.
#[derive(Clone, Copy, Default)]
pub(super) struct Origin<'a> {
    /// The file's name for the records.
    pub(super) file: Option<&'a str>,
    /// How far the file was read with these lines, if that is remembered.
    pub(super) position: Option<&'a Position>,
}

/// A batch on its way.
#[derive(Clone, Copy)]
pub(super) struct Outgoing<'a> {
    /// Its lines.
    pub(super) lines: &'a [u8],
    /// Fields for all of them.
    pub(super) labels: &'a Labels,
    /// Its name, with the attempt that comes next.
    pub(super) id: BatchId,
}

/// Sends batches to servers.
pub struct Sender {
    /// Whether the last batch may be at a server, acknowledged or not.
    may_be_there: bool,
    /// Batches that a server holds but that were not replicated when it took them.
    unreplicated: BatchSet,
    producer: Producer,
    agent: ureq::Agent,
    addresses: Vec<Address>,
    /// Which of them is sent to.
    servers: Servers,
    labels: Vec<(String, String)>,
    backoff: Backoff,
    pause: Pause,
}

impl Sender {
    /// A sender to the servers of the settings; there is at least one.
    pub(super) fn new(settings: &Settings, pause: Pause, producer: Producer) -> Sender {
        Sender {
            may_be_there: false,
            unreplicated: BatchSet::default(),
            producer,
            agent: agent(Some(ANSWER_TIMEOUT), &settings.access),
            addresses: settings.addresses.clone(),
            servers: Servers::new(settings.addresses.len(), Instant::now()),
            labels: settings.labels.clone(),
            backoff: settings.backoff,
            pause,
        }
    }

    /// When trying is given up.
    pub(super) fn give_up_after(&self) -> Option<Duration> {
        self.backoff.give_up_after
    }

    /// Whether the last batch may be at a server although it was not acknowledged.
    pub(super) fn may_be_there(&self) -> bool {
        self.may_be_there
    }

    /// What servers know of batches.
    pub(super) fn ask(&self, wanted: &BatchSet) -> Known {
        replication::ask(&self.agent, &self.addresses, wanted)
    }

    /// Waits until everything that was taken is replicated.
    pub(super) fn wait_for_replication(&mut self) -> Result<(), SendError> {
        let started = Instant::now();
        let mut wait = self.backoff.first;
        while !self.unreplicated.is_empty() {
            let known = self.ask(&self.unreplicated);
            self.unreplicated = self.unreplicated.without(&known.replicated);
            if self.unreplicated.is_empty() {
                break;
            }
            if let Some(after) = self.backoff.give_up_after
                && started.elapsed() >= after
            {
                let last = "records are durable but not replicated".to_owned();
                return Err(SendError::GaveUp { after, last });
            }
            if !self.pause.wait(wait) {
                return Err(SendError::Stopped);
            }
            wait = (wait * 2).min(REPLICATION_WAIT_MAX);
        }
        Ok(())
    }

    /// The server that took the last batch.
    pub fn address(&self) -> &Address {
        &self.addresses[self.servers.current()]
    }

    /// Sends a batch until a server has it durably, or has refused it for good. `waited` is how long
    /// it has been tried in vain, as far as that counts.
    pub(super) fn deliver(
        &mut self,
        batch: &Outgoing<'_>,
        waited: &dyn Fn() -> Option<Duration>,
    ) -> Result<Taken, SendError> {
        let mut id = batch.id;
        self.may_be_there = false;
        let mut wait = self.backoff.first;
        let mut reported: Option<Instant> = None;
        loop {
            let mut asked_wait = Duration::ZERO;
            let mut last = String::new();
            for at in self.servers.order(Instant::now()) {
                match self.attempt(at, &Outgoing { id, ..*batch }) {
                    Attempt::Taken(taken) => {
                        self.servers.took(at, taken.is_busy, Instant::now());
                        if reported.is_some() {
                            note(&format!(
                                "logpond: {} takes records again",
                                self.addresses[at]
                            ));
                        }
                        return Ok(taken);
                    }
                    Attempt::Refused(error) => {
                        let address = self.addresses[at].to_string();
                        let error = Box::new(error);
                        return Err(SendError::Refused { address, error });
                    }
                    Attempt::Failed(failure) => {
                        last = format!("{}: {}", self.addresses[at], failure.reason);
                        asked_wait = asked_wait.max(failure.retry_after.unwrap_or_default());
                        id.attempt += u32::from(failure.may_be_there);
                        self.may_be_there |= failure.may_be_there;
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

    fn url(&self, at: usize, labels: &Labels) -> String {
        let mut url = self.addresses[at].url("/api/v1/push", &vec![("durable", "true".into())]);
        for (name, value) in labels {
            url.push_str("&label=");
            encode(format!("{name}={value}").as_bytes(), &mut url);
        }
        url
    }

    fn attempt(&self, at: usize, batch: &Outgoing<'_>) -> Attempt {
        let request = self
            .agent
            .post(self.url(at, batch.labels))
            .header(BATCH_HEADER, batch.id.to_string())
            .content_type("text/plain");
        let failed = |reason, retry_after, may_be_there| {
            Attempt::Failed(Failure {
                reason,
                retry_after,
                may_be_there,
            })
        };
        let response = match request.send(batch.lines) {
            Ok(response) => response,
            Err(error) => return failed(describe(&error), None, was_connected(&error)),
        };
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(|seconds| Duration::from_secs(seconds).min(RETRY_AFTER_MAX));
        let load = response.headers().get(LOAD_HEADER);
        let is_busy = load.is_some_and(|load| load.as_bytes() != b"green");
        match status {
            200 | 400 => match read_answer(response.into_body()) {
                Ok(text) => match judge(status, &text) {
                    Attempt::Taken(taken) => Attempt::Taken(Taken { is_busy, ..taken }),
                    other => other,
                },
                Err(error) => failed(error.to_string(), None, true),
            },
            408 | 421 | 425 | 429 | 500.. => {
                let error = ClientError::refused(status, &read_error(response.into_body()));
                // Too many requests, or the wrong node, is said before a batch goes anywhere.
                failed(error.to_string(), retry_after, !matches!(status, 421 | 429))
            }
            _ => Attempt::Refused(ClientError::refused(
                status,
                &read_error(response.into_body()),
            )),
        }
    }
}

impl Outlet for Sender {
    fn send(&mut self, lines: &[u8], origin: &Origin<'_>) -> Result<Taken, SendError> {
        let own = self.labels.iter().map(|(name, value)| (&**name, &**value));
        let all = own.chain(origin.file.map(|file| ("file", file)));
        let labels: Labels = all
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let batch = Outgoing {
            lines,
            labels: &labels,
            id: self.producer.name(),
        };
        let started = Instant::now();
        let taken = self.deliver(&batch, &|| Some(started.elapsed()))?;
        if !taken.is_replicated {
            self.unreplicated.insert(batch.id.epoch, batch.id.sequence);
        }
        Ok(taken)
    }

    fn pause(&self) -> &Pause {
        &self.pause
    }
}

/// A wait between half of this and all of it.
fn jittered(wait: Duration) -> Duration {
    let mut random = [0; 1];
    // Without randomness all wait for the same time.
    let _ = getrandom::fill(&mut random);
    wait - wait * u32::from(random[0]) / 512
}

/// Whether a request that failed may have reached the server.
fn was_connected(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::ConnectionFailed | ureq::Error::HostNotFound => false,
        ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => false,
        ureq::Error::Io(error) => error.kind() != std::io::ErrorKind::ConnectionRefused,
        _ => true,
    }
}

fn read_answer(body: ureq::Body) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut text = Vec::new();
    body.into_reader()
        .take(ANSWER_BYTES_MAX)
        .read_to_end(&mut text)?;
    Ok(text)
}

/// Reads the answer to a push: also a refusal names the lines where they are its reason.
fn judge(status: u16, text: &[u8]) -> Attempt {
    #[derive(Deserialize)]
    struct Answer {
        accepted: u64,
        #[serde(default)]
        rejected: Vec<Rejected>,
        rejected_total: Option<u64>,
        /// A server that does not say has one copy.
        replicated: Option<bool>,
    }
    #[derive(Deserialize)]
    struct Rejected {
        line: u64,
        #[serde(default)]
        reason: String,
    }
    match serde_json::from_slice::<Answer>(text) {
        Ok(answer) => {
            let named = answer.rejected.len() as u64;
            let rejected = answer.rejected.into_iter().map(|r| (r.line, r.reason));
            Attempt::Taken(Taken {
                accepted: answer.accepted,
                rejected: rejected.collect(),
                rejected_total: answer.rejected_total.unwrap_or(named).max(named),
                is_replicated: answer.replicated.unwrap_or(true),
                is_busy: false,
            })
        }
        Err(_) if status == 400 => Attempt::Refused(ClientError::refused(status, text)),
        // A success without a count acknowledges nothing.
        Err(error) => Attempt::Refused(ClientError::Nonsense(Box::new(error))),
    }
}
