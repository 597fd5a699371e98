//! `logpond forward`: lines from standard input or files to a server, acknowledged.
//!
//! Invariants: bytes leave memory, and a position is remembered, only after a server has said that
//! it holds them durably or that it will never take them; what was not taken is named, counted and
//! makes the exit status 2; every buffer is bounded, so an input is read no faster than it is
//! taken. An answer can be lost after its batch was stored; so a batch has a name, and the server
//! knows it again when it is sent once more.
//!
//! ```text
//! input ─▶ reader thread ─▶ 4 chunks ─▶ cutter: whole lines ─▶ sender ─▶ first server that answers
//! files ─▶ tail: polls, positions ────────────────────────────▶ sender
//! ```
//!
//! On both ways lines of containers' files go through `form`, which makes records of them.
//!
//! With a spool both lead into that, and the sender empties it on a thread of its own.

mod answer;
mod bulk;
mod cutter;
mod producer;
mod attempts;
mod sender;
mod replication;
mod servers;
mod spool;
mod stream;
mod records;
mod form;
mod labels;
mod lines;
mod zones;
mod position;
mod archive;
mod watched;
mod tail;

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use logpond_protocol::intake::assembly::Counts;

use logpond_client::{Access, Address, ClientError, HostPort};
use logpond_host::terminal::note;
use logpond_render::quantity;

pub use answer::BatchAnswer;
use bulk::Bulk;
pub use form::ReadOptions;
use producer::Producer;
use sender::Outlet;
pub use sender::{Backoff, SendError, Sender};
use spool::Spool;
pub use zones::FileZones;

/// Most rejected lines that are named one by one; all are counted.
const REJECTIONS_NAMED: u64 = 20;

/// What is forwarded where.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Servers; the first that answers takes a batch.
    pub addresses: Vec<Address>,
    /// Where whole segments are handed over instead, if they are.
    pub bulk: Option<Vec<HostPort>>,
    /// What is shown to them.
    pub access: Access,
    /// Files; empty is standard input.
    pub inputs: Vec<PathBuf>,
    /// What the inputs' lines are.
    pub read_options: ReadOptions,
    /// Whether files are followed, and where positions are remembered.
    pub tail: Option<PathBuf>,
    /// Fields for all records.
    pub labels: Vec<(String, String)>,
    /// The zones that files are written in.
    pub zones: FileZones,
    /// How long to wait between attempts, and when to stop making them.
    pub backoff: Backoff,
    /// Where batches are kept before they are sent, if anywhere.
    pub spool: Option<SpoolSettings>,
    /// Whether the end of the input waits for copies, and not only for a server that has it durably.
    pub waits_for_replication: bool,
    /// Whether totals are left unsaid.
    pub quiet: bool,
}

/// A spool.
#[derive(Clone, Debug)]
pub struct SpoolSettings {
    /// Its directory.
    pub path: PathBuf,
    /// Bytes that it may take.
    pub bytes_max: u64,
    /// Whether new records are dropped when it is full; otherwise reading waits.
    pub drops_when_full: bool,
}

/// Why forwarding ended before everything was dealt with.
#[derive(Debug)]
pub enum ForwardError {
    /// An input cannot be read.
    Input {
        /// The input.
        name: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file of positions cannot be used.
    State {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process uses the file of positions.
    StateInUse(PathBuf),
    /// A pattern for files cannot be understood.
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// There are no files to follow.
    NothingToTail,
    /// The spool cannot be opened.
    Spool {
        /// Where it is.
        path: PathBuf,
        /// Why, in words.
        what: String,
    },
    /// Not everything was sent; the rest is in the spool.
    Spooled {
        /// What is left, in words.
        rest: String,
        /// Why.
        error: SendError,
    },
    /// A batch was not taken.
    Send(SendError),
    /// An address cannot be used.
    Address(ClientError),
    /// The system has no random bytes for the names of batches.
    Random(std::io::Error),
}

impl fmt::Display for ForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ForwardError::Input { name, .. } => write!(f, "{name} cannot be read"),
            ForwardError::State { path, .. } => write!(
                f,
                "the file of positions {} cannot be used; name another by --state",
                path.display()
            ),
            ForwardError::StateInUse(path) => write!(
                f,
                "another 'logpond forward --tail' uses {}; give this one its own by --state",
                path.display()
            ),
            ForwardError::Pattern { pattern, reason } => {
                write!(f, "'{pattern}' is no pattern for files: {reason}")
            }
            ForwardError::NothingToTail => f.write_str(
                "--tail follows files: name them (standard input is read to its end anyway)",
            ),
            ForwardError::Spool { path, what } => {
                write!(f, "the spool {} cannot be used: {what}", path.display())
            }
            ForwardError::Spooled { rest, error } => write!(f, "{error}; {rest}"),
            ForwardError::Send(error) => write!(f, "{error}"),
            ForwardError::Address(error) => write!(f, "{error}"),
            ForwardError::Random(_) => f.write_str("the system gives no random bytes"),
        }
    }
}

impl std::error::Error for ForwardError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ForwardError::Input { source, .. } | ForwardError::State { source, .. } => Some(source),
            ForwardError::Random(source) => Some(source),
            _ => None,
        }
    }
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Lines that servers hold durably.
    pub accepted: u64,
    /// Lines that no server will take.
    pub rejected: u64,
    /// Bytes that were sent and acknowledged.
    pub bytes: u64,
    /// Lines that found no room in the spool and were dropped.
    pub dropped: u64,
    /// Lines that were not of their file's format and went out as they are.
    pub unfit: u64,
    /// Records that were longer than the limit for lines and were cut.
    pub cut: u64,
    /// Lines whose last part did not come.
    pub unfinished: u64,
    /// Records of several lines that were too long and became several.
    pub split: u64,
}

impl Totals {
    /// Counts the answer to a batch; `first_line` is the number of its first line in its input.
    fn add(&mut self, taken: &BatchAnswer, bytes: usize, input: &str, first_line: u64) {
        self.accepted += taken.accepted;
        self.bytes += bytes as u64;
        for (line, reason) in &taken.rejected {
            self.reject(input, first_line + line.saturating_sub(1), reason);
        }
        self.rejected += taken.rejected_total - taken.rejected.len() as u64;
    }

    /// What was done, in words.
    fn text(&self, where_to: &str, time: Duration) -> String {
        let more = |count, what| match count {
            0 => String::new(),
            count => format!(", {} {what}", quantity::count(count)),
        };
        format!(
            "{} ({}) {where_to} after {}{}{}{}{}{}{}",
            quantity::counted(self.accepted, "record"),
            quantity::bytes(self.bytes),
            quantity::span(time),
            more(self.rejected, "not taken"),
            more(self.dropped, "dropped"),
            more(self.unfit, "not of the form of their file"),
            more(self.cut, "cut"),
            more(self.unfinished, "without their end"),
            more(self.split, "split"),
        )
    }

    /// Counts what happened to lines on their way to be records.
    fn count(&mut self, counts: &Counts) {
        self.unfit += counts.unfit;
        self.cut += counts.cut;
        self.unfinished += counts.unfinished;
        self.split += counts.split;
    }

    fn reject(&mut self, input: &str, line: u64, reason: &str) {
        self.rejected += 1;
        if self.rejected <= REJECTIONS_NAMED {
            note(&format!(
                "logpond: {input}: line {line} was not taken: {reason}"
            ));
        } else if self.rejected == REJECTIONS_NAMED + 1 {
            note("logpond: further lines that are not taken are only counted");
        }
    }
}

/// An input that another part of the process writes.
pub struct Stream {
    /// Its name in messages.
    pub name: &'static str,
    /// What is read to its end.
    pub reader: Box<dyn Read + Send>,
}

/// Forwards until the input ends, or with `tail` until `stop` is set.
pub fn run(settings: &Settings, stop: &Arc<AtomicBool>) -> Result<Totals, ForwardError> {
    Outflow::open(settings, stop)?.run(settings, None)
}

/// A way to servers. What is read goes there.
pub struct Outflow {
    way: Way,
    started: Instant,
}

enum Way {
    Bulk(Box<Bulk>),
    Direct(Box<Sender>),
    Spooled(Box<Spool>, Address),
}

impl Outflow {
    /// Opens what settings name; connects to nobody yet. With `stop` it gives up once no server
    /// answers.
    ///
    /// # Errors
    /// When the spool cannot be used, or there are no random bytes.
    pub fn open(settings: &Settings, stop: &Arc<AtomicBool>) -> Result<Outflow, ForwardError> {
        let producer = || Producer::new().map_err(ForwardError::Random);
        let pause = Pause(Arc::clone(stop));
        let way = match (&settings.bulk, &settings.spool) {
            (Some(addresses), _) => {
                let bulk = Bulk::new(addresses, settings, pause, producer()?);
                Way::Bulk(Box::new(bulk))
            }
            (None, None) => Way::Direct(Box::new(Sender::new(settings, pause, producer()?))),
            (None, Some(spool)) => {
                let sender = Sender::new(settings, pause, producer()?);
                let address = sender.address().clone();
                let spool = Spool::open(spool, settings, sender, producer()?)?;
                Way::Spooled(Box::new(spool), address)
            }
        };
        let started = Instant::now();
        Ok(Outflow { way, started })
    }

    /// Forwards the inputs that settings name, or this one instead, to their ends.
    ///
    /// # Errors
    /// When not everything was dealt with.
    pub fn run(self, settings: &Settings, stream: Option<Stream>) -> Result<Totals, ForwardError> {
        let mut totals = Totals::default();
        let (address, outcome) = match self.way {
            Way::Bulk(mut bulk) => {
                let outcome = hand_over(&mut bulk, settings, stream, &mut totals);
                (bulk.name().to_owned(), outcome)
            }
            Way::Direct(mut sender) => {
                let mut outcome = read_into(&mut *sender, settings, stream, &mut totals);
                if outcome.is_ok() && settings.waits_for_replication {
                    outcome = sender.wait_for_replication().map_err(ForwardError::Send);
                }
                (sender.address().to_string(), outcome)
            }
            Way::Spooled(spool, address) => {
                let outcome = read_and_drain(*spool, settings, stream, &mut totals);
                (address.to_string(), outcome)
            }
        };
        // Nothing is durable anywhere if it failed before its first batch.
        if !settings.quiet && (outcome.is_ok() || totals != Totals::default()) {
            let what = match settings.bulk {
                Some(_) => "replicated by",
                None => "durable at",
            };
            let text = totals.text(&format!("{what} {address}"), self.started.elapsed());
            note(&text);
        }
        outcome.map(|()| totals)
    }
}

/// Reads all inputs into an outlet.
fn read_into(
    outlet: &mut dyn Outlet,
    settings: &Settings,
    stream: Option<Stream>,
    totals: &mut Totals,
) -> Result<(), ForwardError> {
    match (stream, &settings.tail) {
        (Some(stream), _) => stream::run_one(stream, settings, outlet, totals),
        (None, Some(state)) => tail::run(settings, state, outlet, totals),
        (None, None) => stream::run(settings, outlet, totals),
    }
}

/// Reads all inputs into uploads, and waits until all are answered.
fn hand_over(
    bulk: &mut Bulk,
    settings: &Settings,
    stream: Option<Stream>,
    totals: &mut Totals,
) -> Result<(), ForwardError> {
    let read = read_into(bulk, settings, stream, totals);
    // What was read before an input failed is handed over all the same.
    let finished = match &read {
        Err(ForwardError::Send(_)) => Ok(()),
        _ => bulk.finish().map_err(ForwardError::Send),
    };
    let answered = bulk.totals();
    // Lines that the reading side refused stand as they are.
    totals.accepted = answered.accepted;
    totals.bytes = answered.bytes;
    totals.rejected += answered.rejected;
    read.and(finished)
}

/// Reads all inputs into a spool, and waits until it is empty or cannot be emptied.
fn read_and_drain(
    mut spool: Spool,
    settings: &Settings,
    stream: Option<Stream>,
    totals: &mut Totals,
) -> Result<(), ForwardError> {
    let read = read_into(&mut spool, settings, stream, totals);
    let drained = spool.finish()?;
    // Lines that the reading side refused stand as they are.
    totals.accepted = drained.sent.accepted;
    totals.bytes = drained.sent.bytes;
    totals.rejected += drained.sent.rejected;
    totals.dropped = drained.dropped;
    match (read, drained.outcome) {
        // Told to stop, which a follower's end always is.
        (Ok(()), Err(SendError::Stopped)) if settings.tail.is_some() => Ok(()),
        // The reading side only sees that the sending side has ended.
        (Ok(()) | Err(ForwardError::Send(SendError::Stopped)), Err(error)) => {
            let path = settings.spool.as_ref().map_or(Path::new(""), |of| &of.path);
            let rest = spool::rest_text(path, drained.rest);
            Err(ForwardError::Spooled { rest, error })
        }
        (read, _) => read,
    }
}

/// How long a server asks to be left alone (`Retry-After` in seconds), up to a bound.
pub(crate) fn asked_wait<B>(
    response: &ureq::http::Response<B>,
    longest: Duration,
) -> Option<Duration> {
    let header = response.headers().get("retry-after")?;
    let seconds = header.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(longest))
}

/// Waits that end early when the process is told to stop.
#[derive(Clone)]
pub struct Pause(pub Arc<AtomicBool>);

impl Pause {
    /// How long a wait goes on after the stop at the most.
    const SLICE: Duration = Duration::from_millis(50);

    /// Whether the process was told to stop.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits; false if it was cut short.
    pub fn wait(&self, duration: Duration) -> bool {
        let end = Instant::now() + duration;
        while !self.is_stopped() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(Self::SLICE));
        }
        false
    }
}

#[cfg(test)]
mod tests;
