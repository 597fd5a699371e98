//! Entries of systemd's journals to a server: of files (`logpond import`), and of the journal of this
//! machine as it grows (`logpond forward --journal`).
//!
//! ```text
//! .journal, export, JSON ─┐
//! journalctl --follow ────┴▶ export format, about 1 MiB at a time ─▶ POST /upload ─▶ durable
//! ```
//!
//! Invariants: an entry that cannot be read or is not taken is named, counted and makes the exit status
//! 2; the memory that a file takes does not grow with it. A server knows entries with a cursor again, so
//! whatever is sent twice, in one run or in several, is there once.

mod follow;
pub mod source;
mod upload;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use logpond_protocol::intake::journal_entry;
use logpond_protocol::intake::journal_export;

use logpond_host::terminal::{self, NamedFaults, note};
use logpond_render::quantity;

pub use follow::{FollowOptions, follow};
use upload::{Body, UploadAnswer, Uploader};
pub use upload::{Target, UploadError};

/// Entries are sent once there are so many bytes of them: a server syncs once for all.
const BODY_BYTES: usize = 1 << 20;

/// How often progress is shown on a terminal.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Why an import ended before everything was dealt with.
#[derive(Debug)]
pub enum ImportError {
    /// An input cannot be read.
    Input {
        /// The input.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// There are no journals in a directory.
    NoJournals(PathBuf),
    /// Entries were not taken.
    Upload(UploadError),
    /// `journalctl` cannot be run, or ends at once.
    Journalctl(String),
    /// The file with the cursor cannot be used.
    State {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process uses the file with the cursor.
    StateInUse(PathBuf),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Input { name, .. } => write!(f, "{name} cannot be read"),
            ImportError::NoJournals(path) => write!(
                f,
                "there are no files named *.journal below {}",
                path.display()
            ),
            ImportError::Upload(error) => write!(f, "{error}"),
            ImportError::Journalctl(what) => write!(f, "journalctl {what}"),
            ImportError::State { path, .. } => write!(
                f,
                "the file with the cursor {} cannot be used; name another by --state",
                path.display()
            ),
            ImportError::StateInUse(path) => write!(
                f,
                "another 'logpond forward --journal' uses {}; give this one its own by --state",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ImportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ImportError::Input { source, .. } | ImportError::State { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<UploadError> for ImportError {
    fn from(error: UploadError) -> ImportError {
        ImportError::Upload(error)
    }
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Entries that the server has taken.
    pub accepted: u64,
    /// Entries that it had.
    pub known: u64,
    /// Entries that could not be read, or that no server will take.
    pub rejected: u64,
    /// Places of files that could not be read; of how many entries is not known.
    pub damaged: u64,
    /// Values that had been left out when an entry was written.
    pub missing: u64,
    /// Bytes of entries that were sent.
    pub bytes: u64,
}

impl Totals {
    /// Whether everything there was is at the server.
    pub fn is_complete(&self) -> bool {
        self.rejected == 0 && self.damaged == 0 && self.missing == 0
    }

    fn text(&self, address: &str, time: Duration) -> String {
        let more = |count, what| match count {
            0 => String::new(),
            count => format!(", {} {what}", quantity::count(count)),
        };
        format!(
            "{} ({}) durable at {address} after {}{}{}{}{}",
            entries(self.accepted),
            quantity::bytes(self.bytes),
            quantity::span(time),
            more(self.known, "more were there already"),
            more(self.rejected, "not taken"),
            more(self.missing, "values were left out when they were written"),
            more(self.damaged, "damaged places"),
        )
    }
}

fn entries(count: u64) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{} entries", quantity::count(count)),
    }
}

/// What is imported.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to.
    pub target: Target,
    /// Files and directories; none is standard input, and so is `-`.
    pub inputs: Vec<PathBuf>,
    /// Whether progress and totals are left unsaid.
    pub quiet: bool,
}

/// Sends the entries of all inputs. An input that cannot be read takes no other with it.
///
/// # Errors
/// When entries are not taken, or the last input could not be read.
pub fn run(settings: &Settings, stop: &Arc<AtomicBool>) -> Result<Totals, ImportError> {
    let started = Instant::now();
    let mut batcher = Batcher::new(settings.target.clone(), Arc::clone(stop), !settings.quiet);
    let outcome = send_all(settings, &mut batcher);
    batcher.end_progress();
    if !settings.quiet && (outcome.is_ok() || batcher.totals != Totals::default()) {
        note(
            &batcher
                .totals
                .text(&batcher.uploader.address(), started.elapsed()),
        );
    }
    outcome.map(|()| batcher.totals)
}

fn send_all(settings: &Settings, batcher: &mut Batcher) -> Result<(), ImportError> {
    let standard = [PathBuf::from("-")];
    let inputs = if settings.inputs.is_empty() {
        &standard[..]
    } else {
        &settings.inputs
    };
    let mut outcome = Ok(());
    for input in inputs {
        let files = match source::files_of(input) {
            Ok(files) => files,
            Err(error) => {
                outcome = postpone(outcome, error);
                continue;
            }
        };
        for file in files {
            let read = source::read(&file, batcher).and_then(|()| batcher.flush());
            match read {
                Ok(()) => {}
                Err(error @ ImportError::Upload(_)) => return Err(error),
                Err(error) => outcome = postpone(outcome, error),
            }
        }
    }
    // Whatever came before an input failed.
    batcher.flush().and(outcome)
}

/// Says an earlier failure, so that the last one is left.
fn postpone(outcome: Result<(), ImportError>, error: ImportError) -> Result<(), ImportError> {
    if let Err(earlier) = outcome {
        terminal::complain(&earlier);
    }
    Err(error)
}

/// Takes what is read of files.
pub trait Entries {
    /// What is read from now on.
    fn begin(&mut self, path: &Path);

    /// How many entries of it were read.
    fn count(&self) -> u64;

    /// Takes an entry.
    ///
    /// # Errors
    /// When no more are wanted.
    fn add<'f>(
        &mut self,
        fields: impl Iterator<Item = (&'f str, &'f [u8])> + Clone,
    ) -> Result<(), ImportError>;

    /// Notes that the next entry cannot be taken.
    fn reject(&mut self, reason: &dyn fmt::Display);

    /// Notes a place that cannot be read.
    fn damage(&mut self, what: &dyn fmt::Display);

    /// Says how much of an input is missing, however much was said of it before.
    fn lack(&mut self, what: &str);

    /// Notes values that were left out of an entry when it was written.
    fn miss(&mut self, names: &[String]);
}

/// Gathers entries and sends them.
struct Batcher {
    uploader: Uploader,
    body: Body,
    totals: Totals,
    /// What is read now, and how many entries of it were read.
    input: String,
    entries: u64,
    named: NamedFaults,
    progress: Option<Instant>,
    /// The cursor of the last entry, and that of the last one that a server has.
    cursor: Vec<u8>,
    cursor_sent: Vec<u8>,
}

impl Entries for Batcher {
    fn begin(&mut self, path: &Path) {
        self.input = if path == Path::new("-") {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        };
        self.entries = 0;
    }

    fn count(&self) -> u64 {
        self.entries
    }

    fn add<'f>(
        &mut self,
        fields: impl Iterator<Item = (&'f str, &'f [u8])> + Clone,
    ) -> Result<(), ImportError> {
        self.entries += 1;
        journal_export::write_entry(fields.clone(), &mut self.body.bytes);
        self.body.entries += 1;
        let is_known_again = journal_entry::position_of(fields.clone()).is_some();
        self.body.unknowable += u64::from(!is_known_again);
        let cursor = fields.into_iter().find(|(name, _)| *name == "__CURSOR");
        if let Some((_, cursor)) = cursor {
            self.cursor.clear();
            self.cursor.extend_from_slice(cursor);
        }
        if self.body.bytes.len() >= BODY_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn reject(&mut self, reason: &dyn fmt::Display) {
        self.entries += 1;
        self.totals.rejected += 1;
        let entry = self.entries;
        self.name(&format!("entry {entry} was not taken: {reason}"));
    }

    fn damage(&mut self, what: &dyn fmt::Display) {
        self.totals.damaged += 1;
        self.name(&what.to_string());
    }

    fn lack(&mut self, what: &str) {
        self.totals.damaged += u64::from(self.totals.damaged == 0);
        self.end_progress();
        note(&format!("logpond: {}: {what}", self.input));
    }

    fn miss(&mut self, names: &[String]) {
        self.totals.missing += names.len() as u64;
        let entry = self.entries + 1;
        let names = names.join(", ");
        self.name(&format!(
            "entry {entry}: {names} was left out when it was written; `journalctl --all` writes it"
        ));
    }
}

impl Batcher {
    fn new(target: Target, stop: Arc<AtomicBool>, has_progress: bool) -> Batcher {
        let shows = has_progress && terminal::is_error();
        Batcher {
            uploader: Uploader::new(target, stop),
            body: Body::default(),
            totals: Totals::default(),
            input: String::new(),
            entries: 0,
            named: NamedFaults::default(),
            progress: shows.then(Instant::now),
            cursor: Vec::new(),
            cursor_sent: Vec::new(),
        }
    }

    fn name(&mut self, what: &str) {
        self.end_progress();
        self.named.add(&format_args!("{}: {what}", self.input));
    }

    /// Sends what was gathered.
    fn flush(&mut self) -> Result<(), ImportError> {
        if self.body.entries == 0 {
            return Ok(());
        }
        let body = std::mem::take(&mut self.body);
        let taken = self.uploader.send(&body)?;
        self.note_taken(taken, &body);
        self.cursor_sent.clone_from(&self.cursor);
        self.show_progress();
        Ok(())
    }

    fn note_taken(&mut self, taken: UploadAnswer, body: &Body) {
        let totals = &mut self.totals;
        totals.accepted += taken.accepted;
        totals.known += taken.known;
        totals.rejected += taken.rejected_total;
        totals.bytes += body.bytes.len() as u64;
        let first = self.entries.saturating_sub(body.entries);
        for rejected in taken.rejected {
            let entry = first + rejected.entry;
            let reason = rejected.reason;
            self.name(&format!("about entry {entry}: it was not taken: {reason}"));
        }
    }

    fn show_progress(&mut self) {
        let Some(shown) = self
            .progress
            .filter(|shown| shown.elapsed() >= PROGRESS_EVERY)
        else {
            return;
        };
        let _ = shown;
        self.progress = Some(Instant::now());
        let sent = self.totals.accepted + self.totals.known;
        let text = format!(
            "{} entries, {}",
            quantity::count(sent),
            quantity::bytes(self.totals.bytes)
        );
        eprint!("\r{text}  ");
    }

    /// Makes room for a line of its own.
    fn end_progress(&self) {
        if self.progress.is_some() && self.totals.bytes > 0 {
            eprint!("\r\u{1b}[K");
        }
    }
}

/// Whether the process was told to stop.
fn is_stopped(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}
