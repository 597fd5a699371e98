//! Sends batches over HTTP: to the first server that takes them.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use logpond_protocol::intake::timezone::LABEL;
use logpond_record::Labels;
use logpond_segment::batches::{BatchId, BatchSet};

use super::answer::{BatchAnswer, judge};
use super::attempts::{Attempt, Attempts, Failure};
use super::cutter::BATCH_BYTES;
use super::position::Position;
use super::producer::Producer;
use super::records::{Body, Records};
use super::replication::{self, ReplicationState};
use super::{FileZones, Pause, Settings, asked_wait};
use logpond_client::{
    Address, BATCH_HEADER, ClientError, LOAD_HEADER, agent, describe, encode, read_error,
};

/// How long a server may take to answer a batch: a disk that syncs slower than this is broken.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a line waits for others to share its batch.
const LINGER: Duration = Duration::from_millis(200);

/// The longest wait that a server may ask for by `Retry-After`.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The longest time between two questions whether batches are replicated.
const REPLICATION_WAIT_MAX: Duration = Duration::from_secs(1);

/// The most labels that servers take with a batch.
const LABELS_MAX: usize = 32;

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

impl SendError {
    /// The refusal of a server.
    pub(super) fn refused(address: String, error: ClientError) -> SendError {
        let error = Box::new(error);
        SendError::Refused { address, error }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Refused { address, error } => write!(f, "{address} refuses: {error}"),
            SendError::GaveUp { after, last } => write!(
                f,
                "gave up after {} without a server that takes records: {last}",
                logpond_render::quantity::span(*after)
            ),
            SendError::Spool { path, what } => {
                write!(f, "the spool {} cannot be used: {what}", path.display())
            }
            SendError::Stopped => f.write_str("stopped before everything was sent"),
        }
    }
}

impl std::error::Error for SendError {}

/// Where lines go.
pub(super) trait Outlet {
    /// Hands records over: they are durable afterwards, or have been refused for good.
    fn send(&mut self, records: Records<'_>, origin: &Origin<'_>)
    -> Result<BatchAnswer, SendError>;

    /// Takes what was sent as complete: nothing more comes for a while, or there is a batch of
    /// [`Outlet::batch_bytes`].
    fn flush(&mut self) -> Result<(), SendError> {
        Ok(())
    }

    /// Bytes that are worth handing over at once.
    fn batch_bytes(&self) -> usize {
        BATCH_BYTES
    }

    /// How long a line waits for others.
    fn linger(&self) -> Duration {
        LINGER
    }

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
    /// What the file's name and surroundings say of its records.
    pub(super) labels: &'a [(String, String)],
    /// The number of the first line in its input, from 1, where that is known.
    pub(super) first_line: u64,
    /// How far the file was read with these lines, if that is remembered.
    pub(super) position: Option<&'a Position>,
}

/// A batch on its way.
#[derive(Clone, Copy)]
pub(super) struct OutgoingBatch<'a> {
    /// Its records.
    pub(super) body: &'a Body<'a>,
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
    attempts: Attempts,
    labels: Vec<(String, String)>,
    zones: FileZones,
}

impl Sender {
    /// A sender to the servers of the settings; there is at least one.
    pub(super) fn new(settings: &Settings, pause: Pause, producer: Producer) -> Sender {
        let names = settings.addresses.iter().map(Address::to_string).collect();
        Sender {
            may_be_there: false,
            unreplicated: BatchSet::default(),
            producer,
            agent: agent(Some(ANSWER_TIMEOUT), &settings.access),
            addresses: settings.addresses.clone(),
            attempts: Attempts::new(names, settings.backoff, pause),
            labels: settings.labels.clone(),
            zones: settings.zones.clone(),
        }
    }

    /// When trying is given up.
    pub(super) fn give_up_after(&self) -> Option<Duration> {
        self.attempts.backoff().give_up_after
    }

    /// Whether the last batch may be at a server although it was not acknowledged.
    pub(super) fn may_be_there(&self) -> bool {
        self.may_be_there
    }

    /// What servers know of batches.
    pub(super) fn ask(&self, wanted: &BatchSet) -> ReplicationState {
        replication::ask(&self.agent, &self.addresses, wanted)
    }

    /// Waits until everything that was taken is replicated.
    pub(super) fn wait_for_replication(&mut self) -> Result<(), SendError> {
        let started = Instant::now();
        let backoff = self.attempts.backoff();
        let mut wait = backoff.first;
        while !self.unreplicated.is_empty() {
            let known = self.ask(&self.unreplicated);
            self.unreplicated = self.unreplicated.without(&known.replicated);
            if self.unreplicated.is_empty() {
                break;
            }
            if let Some(after) = backoff.give_up_after
                && started.elapsed() >= after
            {
                let last = "records are durable but not replicated".to_owned();
                return Err(SendError::GaveUp { after, last });
            }
            if !self.attempts.pause().wait(wait) {
                return Err(SendError::Stopped);
            }
            wait = (wait * 2).min(REPLICATION_WAIT_MAX);
        }
        Ok(())
    }

    /// The server that took the last batch.
    pub fn address(&self) -> &Address {
        &self.addresses[self.attempts.current()]
    }

    /// Sends a batch until a server has it durably, or has refused it for good. `waited` is how long
    /// it has been tried in vain, as far as that counts.
    pub(super) fn deliver(
        &mut self,
        batch: &OutgoingBatch<'_>,
        waited: &dyn Fn() -> Option<Duration>,
    ) -> Result<BatchAnswer, SendError> {
        let Sender {
            agent,
            addresses,
            attempts,
            may_be_there,
            ..
        } = self;
        let mut id = batch.id;
        *may_be_there = false;
        attempts.until_taken(waited, |at| {
            let outcome = attempt(agent, &addresses[at], &OutgoingBatch { id, ..*batch });
            let is_unsure = match &outcome {
                Attempt::Failed(failure) => failure.may_be_there,
                Attempt::Foreign { may_be_there, .. } => *may_be_there,
                Attempt::Taken(_) | Attempt::Refused(_) => false,
            };
            id.attempt += u32::from(is_unsure);
            *may_be_there |= is_unsure;
            outcome
        })
    }
}

/// Where a batch with these labels goes.
fn url(address: &Address, labels: &Labels) -> String {
    let mut url = address.url("/api/v1/push", &vec![("durable", "true".into())]);
    for (name, value) in labels {
        url.push_str("&label=");
        encode(format!("{name}={value}").as_bytes(), &mut url);
    }
    url
}

/// Sends a batch once.
fn attempt(agent: &ureq::Agent, address: &Address, batch: &OutgoingBatch<'_>) -> Attempt {
    let request = agent
        .post(url(address, batch.labels))
        .header(BATCH_HEADER, batch.id.to_string())
        .content_type(batch.body.content_type);
    let failed = |reason, retry_after, may_be_there| {
        Attempt::Failed(Failure {
            reason,
            retry_after,
            may_be_there,
        })
    };
    let response = match request.send(&*batch.body.bytes) {
        Ok(response) => response,
        Err(error) => return failed(describe(&error), None, was_connected(&error)),
    };
    let status = response.status().as_u16();
    let retry_after = asked_wait(&response, RETRY_AFTER_MAX);
    let load = response.headers().get(LOAD_HEADER);
    let is_busy = load.is_some_and(|load| load.as_bytes() != b"green");
    match status {
        200 | 400 => match read_answer(response.into_body()) {
            Ok(text) => match judge(status, &text) {
                Attempt::Taken(taken) => Attempt::Taken(BatchAnswer { is_busy, ..taken }),
                other => other,
            },
            Err(error) => failed(error.to_string(), None, true),
        },
        408 | 421 | 425 | 429 | 500.. => {
            let error = ClientError::refused(status, &read_error(response.into_body()));
            // Too many requests, or the wrong node, is said before a batch goes anywhere.
            failed(error.to_string(), retry_after, !matches!(status, 421 | 429))
        }
        _ => Attempt::refused(status, &read_error(response.into_body())),
    }
}

impl Outlet for Sender {
    fn send(
        &mut self,
        records: Records<'_>,
        origin: &Origin<'_>,
    ) -> Result<BatchAnswer, SendError> {
        let labels = labels_of(&self.labels, &self.zones, origin);
        let batch = OutgoingBatch {
            body: &records.to_body(),
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
        self.attempts.pause()
    }
}

/// The fields of a batch: those for all records, the file that it comes from, and what that says. Of
/// the latter, what was given for all records stands.
pub(super) fn labels_of(
    own: &[(String, String)],
    zones: &FileZones,
    origin: &Origin<'_>,
) -> Labels {
    let own = own.iter().map(|(name, value)| (&**name, &**value));
    let of_file = origin.labels.iter();
    let of_file = of_file
        .map(|(name, value)| (&**name, &**value))
        .filter(|(name, _)| own.clone().all(|(given, _)| given != *name));
    let file = origin.file.map(|file| ("file", file));
    let zone = zones.of(origin.file).map(|rule| (LABEL, rule));
    let least = own.clone().count() + zone.iter().count() + usize::from(file.is_some());
    let all = own.clone().chain(zone).chain(file).chain(of_file);
    all.take(LABELS_MAX.max(least))
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
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
