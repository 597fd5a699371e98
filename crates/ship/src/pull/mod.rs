//! Records of other systems, read through their interfaces and pushed to a server: `logpond import --from-loki` and
//! `--from-elasticsearch`.
//!
//! ```text
//! source: a page ─▶ bodies as its own shippers send them ─▶ a file ─▶ POST to the target: durable ─▶ position
//! ```
//!
//! Invariants: records are pushed as shippers push them, so that an imported record equals a pushed one; a page is
//! in a file before it is sent, and the target knows bodies that it has, so that an import that is killed and
//! started again stores each record once ([`state`]); memory is that of a page.

mod error;
mod exchange;
mod state;
mod target;
mod loki;
mod elastic;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use logpond_client::{Access, Address};
use logpond_host::terminal::{self, NamedFaults, note};
use logpond_record::{Timestamp, cast};
use logpond_render::quantity;
use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

pub use error::PullError;
use exchange::Exchange;
pub use state::Totals;
use state::{Page, State, StateFile};
use target::TargetServer;

use crate::import::Target;

/// How often progress is shown on a terminal, and elsewhere.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// How often a position without new records is saved.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// The system that records are read from.
#[derive(Clone, Debug)]
pub enum System {
    /// Loki, or a server with its interface.
    Loki {
        /// The LogQL query of the records; `None` is all streams.
        query: Option<String>,
        /// Streams' labels that all records get.
        labels: Vec<(String, String)>,
    },
    /// Elasticsearch, OpenSearch, or a server with their interface.
    Elasticsearch {
        /// Names and patterns of indexes and data streams.
        index: String,
        /// A query of `query_string`; `None` is all documents.
        query: Option<String>,
        /// The field with the time of a document.
        time_field: String,
    },
}

/// A range of time. Its end is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullRange {
    /// The beginning, if there is one.
    pub from: Option<Timestamp>,
    /// The end, if there is one.
    pub to: Option<Timestamp>,
}

/// The parameters of an import from another system.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address of the source.
    pub source: Address,
    /// The credentials for the source.
    pub access: Access,
    /// The kind of the source, and the selected records.
    pub system: System,
    /// The range of time.
    pub range: PullRange,
    /// The most records of a page.
    pub page_records: u64,
    /// The target.
    pub target: Target,
    /// The file with the position.
    pub state: PathBuf,
    /// The source and the selection as text: an import continues if they are the same.
    pub import: String,
    /// True if progress and totals are not printed.
    pub quiet: bool,
}

/// A system that gives its records page by page.
trait Source {
    /// A position between two pages.
    type Cursor: Clone + Serialize + DeserializeOwned;

    /// The position of a new import.
    fn begin(&mut self) -> Result<Self::Cursor, PullError>;

    /// The page behind a position; `None` is the end.
    fn page(&mut self, cursor: &Self::Cursor) -> Result<Option<Page<Self::Cursor>>, PullError>;

    /// The share of the range that is before a position, from 0 to 1.
    fn share(&self, cursor: &Self::Cursor, totals: &Totals) -> f64;

    /// The number of records in the range, if the source can tell.
    fn count(&mut self, cursor: &Self::Cursor) -> Result<Option<u64>, PullError>;
}

/// The name of the file with the position of an import.
pub fn state_name(import: &str) -> String {
    format!("import-{:016x}.json", xxh3_64(import.as_bytes()))
}

/// Imports the records of another system, or continues to.
///
/// # Errors
/// When the import ends early. The next run continues it.
pub fn run(settings: &Settings, stop: &Arc<AtomicBool>) -> Result<Totals, PullError> {
    let exchange = Exchange::new(
        vec![settings.source.clone()],
        &settings.access,
        settings.target.give_up_after,
        Arc::clone(stop),
    );
    match &settings.system {
        System::Loki { query, labels } => {
            let request = loki::Request {
                query: query.clone(),
                labels: labels.clone(),
                from: settings.range.from.unwrap_or(Timestamp(0)).0,
                to: settings.range.to.unwrap_or(Timestamp(i64::MAX)).0,
                page_records: settings.page_records,
            };
            pull(
                settings,
                loki::Loki::new(exchange, request),
                loki::PUSH,
                stop,
            )
        }
        System::Elasticsearch {
            index,
            query,
            time_field,
        } => {
            let request = elastic::Request {
                index: index.clone(),
                query: query.clone(),
                time_field: time_field.clone(),
                range: settings.range,
                page_records: settings.page_records,
            };
            let source = elastic::Elastic::new(exchange, request);
            pull(settings, source, elastic::PUSH, stop)
        }
    }
}

fn pull<S: Source>(
    settings: &Settings,
    mut source: S,
    form: target::Form,
    stop: &Arc<AtomicBool>,
) -> Result<Totals, PullError> {
    let (file, state) = StateFile::open::<S::Cursor>(&settings.state)?;
    // Another import that sent nothing, such as one with a wrong query, leaves nothing to continue.
    let state = state.filter(|state| state.import == settings.import || state.page > 0);
    let is_new = state.is_none();
    let state = match state {
        Some(state) if state.import != settings.import => {
            let (path, import) = (settings.state.clone(), state.import);
            return Err(PullError::OtherImport { path, import });
        }
        Some(state) => state,
        None => State {
            version: state::version(),
            import: settings.import.clone(),
            page: 0,
            totals: Totals::default(),
            is_done: false,
            cursor: source.begin()?,
        },
    };
    let target = &settings.target;
    let exchange = Exchange::new(
        target.addresses.clone(),
        &target.access,
        target.give_up_after,
        Arc::clone(stop),
    );
    let mut import = Import {
        file,
        progress: Progress::new(settings, &state.totals),
        state,
        target: TargetServer::new(exchange, form),
        saved: Instant::now(),
    };
    if import.state.is_done {
        let path = settings.state.display();
        note(&format!(
            "logpond: this import is complete; to import again, name another --state, or remove {path}"
        ));
        return Ok(import.state.totals);
    }
    if is_new {
        import.save()?;
    } else if !settings.quiet {
        let read = quantity::counted(import.state.totals.read, "record");
        note(&format!("logpond: the import continues after {read}"));
    }
    let outcome = import.run(&mut source);
    import.progress.clear();
    if !settings.quiet && (outcome.is_ok() || import.state.page > 0) {
        note(&import.text(settings));
    }
    outcome.map(|()| import.state.totals)
}

/// An import under way.
struct Import<C> {
    file: StateFile,
    state: State<C>,
    target: TargetServer,
    progress: Progress,
    saved: Instant,
}

impl<C: Clone + Serialize + DeserializeOwned> Import<C> {
    fn run<S: Source<Cursor = C>>(&mut self, source: &mut S) -> Result<(), PullError> {
        if let Some(page) = self.file.held(self.state.page + 1)? {
            self.deliver(page)?;
        }
        while let Some(page) = source.page(&self.state.cursor)? {
            if page.bodies.is_empty() {
                self.state.cursor = page.next;
                if self.saved.elapsed() >= SAVE_EVERY {
                    self.save()?;
                }
            } else {
                self.file.hold(self.state.page + 1, &page)?;
                self.deliver(page)?;
            }
            let share = source.share(&self.state.cursor, &self.state.totals);
            self.progress.show(&self.state.totals, share);
        }
        self.save()?;
        self.progress.clear();
        self.state.totals.counted = source.count(&self.state.cursor)?;
        self.state.is_done = true;
        self.save()
    }

    /// Has a page made durable, and moves the position behind it.
    fn deliver(&mut self, page: Page<C>) -> Result<(), PullError> {
        let mut totals = self.state.totals;
        for body in &page.bodies {
            totals.read += body.records;
            let outcome = self.target.push(body)?;
            totals.accepted += outcome.accepted;
            totals.rejected += outcome.rejected;
            totals.bytes += body.bytes.len() as u64;
            for reason in outcome.reasons {
                self.progress.name(&reason);
            }
        }
        self.state.totals = totals;
        self.state.page += 1;
        self.state.cursor = page.next;
        self.save()?;
        self.file.release();
        Ok(())
    }

    fn save(&mut self) -> Result<(), PullError> {
        self.saved = Instant::now();
        self.file.save(&self.state)
    }

    /// The totals, in words.
    fn text(&self, settings: &Settings) -> String {
        let totals = &self.state.totals;
        let source = &settings.source;
        let mut text = format!(
            "{} ({}) of {source} durable at {} after {}",
            quantity::counted(totals.accepted, "record"),
            quantity::bytes(totals.bytes),
            self.target.address(),
            quantity::span(self.progress.started.elapsed()),
        );
        if totals.rejected > 0 {
            text += &format!(", {} not taken", quantity::count(totals.rejected));
        }
        if !self.state.is_done {
            return text + "; not complete, the same command continues";
        }
        let read = quantity::count(totals.read);
        text += &match totals.counted {
            None => format!("; {read} were read, and the source does not count them"),
            Some(counted) if counted == totals.read => format!("; the source counts {read} too"),
            Some(counted) => format!(
                "; {read} were read, but the source now counts {}: records came or expired meanwhile, or \
                 the source hides some",
                quantity::count(counted)
            ),
        };
        text
    }
}

/// The line with the progress.
struct Progress {
    is_quiet: bool,
    is_terminal: bool,
    is_shown: bool,
    started: Instant,
    shown: Instant,
    read_before: u64,
    named: NamedFaults,
}

impl Progress {
    fn new(settings: &Settings, totals: &Totals) -> Progress {
        let now = Instant::now();
        Progress {
            is_quiet: settings.quiet,
            is_terminal: terminal::is_error(),
            is_shown: false,
            started: now,
            shown: now,
            read_before: totals.read,
            named: NamedFaults::default(),
        }
    }

    fn show(&mut self, totals: &Totals, share: f64) {
        let every = if self.is_terminal {
            PROGRESS_EVERY
        } else {
            REPORT_EVERY
        };
        if self.is_quiet || self.shown.elapsed() < every {
            return;
        }
        self.shown = Instant::now();
        let text = progress_text(
            totals.read,
            totals.read - self.read_before,
            share,
            self.started.elapsed(),
        );
        if self.is_terminal {
            self.is_shown = true;
            eprint!("\r\u{1b}[K{text}");
        } else {
            note(&format!("logpond: {text}"));
        }
    }

    /// Makes room for a line of its own.
    fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            eprint!("\r\u{1b}[K");
        }
    }

    /// Names a refused record.
    fn name(&mut self, reason: &str) {
        self.clear();
        let fault = format_args!("a record was not taken: {reason}");
        self.named.add(&fault);
    }
}

/// `1,234 records · 411 records/s · 45 % of the range`.
fn progress_text(read: u64, read_now: u64, share: f64, elapsed: Duration) -> String {
    let rate = cast::float(read_now) / elapsed.as_secs_f64().max(0.001);
    format!(
        "{} · {} records/s · {:.0} % of the range",
        quantity::counted(read, "record"),
        quantity::count(cast::whole_u64(rate)),
        (share * 100.0).clamp(0.0, 100.0),
    )
}

#[cfg(test)]
mod tests;
