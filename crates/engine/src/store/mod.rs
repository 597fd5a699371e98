//! Turns closed journal files into segments, merges them, and lets old ones go.
//!
//! Invariants:
//! - A closed journal file is removed only when a live segment lists its source.
//! - Inputs of a merge retire only when the other live segments list all their sources, tested in
//!   the step that retires them (R5): by this thread, the only one that changes the list.
//! - Readers see a source once: whoever takes a journal snapshot first and the segments second,
//!   and leaves out journal files that a segment holds, counts every record exactly once.
//! - Whatever fails is tried again later; nothing is removed because it failed.
//! - A damaged journal file is put aside, not removed: what is left of it is evidence.

mod bucket_days;
mod bucketed;
mod counters;
mod deleted;
mod expiry;
mod inventory;
mod live;
mod offload;
mod put_aside;
mod retention;
mod scrub;
mod steps;
mod trim;
mod vacuum;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use logpond_record::{Id, Timestamp};
use logpond_search::size::Size;
use logpond_segment::batches::BatchSet;
use logpond_segment::disk::Disk;
use logpond_segment::inventory::VanishedFile;
use logpond_segment::journal::Visible;
use logpond_segment::sources::SourceSet;
use logpond_segment::{compact, retain};

use crate::ingest::{Changes, Closer};
use crate::resends::Resends;
pub use counters::Counters;
pub use inventory::{Keeper, LoadedInventory};
pub use live::{LiveSegment, LiveSet, MissingFile, Segments, holds, local};
use logpond_host::panics::caught;
use logpond_host::telemetry::Metrics;
use logpond_settings::{AtStart, BucketSettings, Local, Settings};
use offload::OffloadThread;
pub use offload::{Board, BucketStartError};
pub use put_aside::PutAside;
use scrub::ScrubThread;
use steps::Worker;
pub use trim::TrimReport;
pub use vacuum::{Vacuum, VacuumReport};

/// How often the store looks after things that no event announces: age, free space, cold segments.
const TICK: Duration = Duration::from_secs(1);

/// Requests that wait; people type them.
const REQUESTS_MAX: usize = 16;

/// What the store works with.
pub struct Parts {
    /// The data directory.
    pub disk: Arc<dyn Disk>,
    /// The journal as readers see it.
    pub visible: Arc<Visible>,
    /// Says when a journal file was closed.
    pub changes: Changes,
    /// Where the segments are shown.
    pub live: LiveSet,
    /// Retired segments that earlier lives have not removed, with their lengths.
    pub trash: Vec<(Id, u64)>,
    /// The files that should be there and are not.
    pub listed: LoadedInventory,
    /// The memory of journal files that are gone.
    pub resends: Arc<Resends>,
    /// Live segments that were read from damaged files, to be written anew.
    pub salvaged: Vec<Id>,
    /// Closes the journal's open file.
    pub closer: Closer,
    /// The time.
    pub clock: fn() -> Timestamp,
    /// The process's metrics.
    pub metrics: Arc<Metrics>,
    /// Who makes segments of journal files instead, in a cluster.
    pub cluster: Option<Arc<dyn Elsewhere>>,
    /// Where segments are put beside the local disk, if anywhere, and where is said what is there.
    pub bucket: Option<(BucketSettings, Board)>,
    /// In which time each local segment is read once to find damage; `None`: never.
    pub scrub_every: Option<Duration>,
    /// The memory that the process may have; steps take a part.
    pub memory_bytes: u64,
}

/// What a store of a cluster leaves to others.
pub trait Elsewhere: Send + Sync {
    /// Whether segments hold everything that was closed, on as many nodes as are to have it.
    fn is_handed_over(&self) -> bool;

    /// Learns that these sources are about to be removed for their age or for want of room, and
    /// all earlier ones of theirs; they count nowhere from then on.
    ///
    /// # Errors
    /// When that cannot be kept; then nothing may be removed.
    fn expire(&self, sources: &SourceSet) -> io::Result<()>;

    /// The clocks of other nodes; `None` if there are some and none has said what time it is.
    fn peer_clocks(&self) -> Option<Vec<Timestamp>>;
}

/// How long to keep what.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// What to retire; the free room depends on the disk.
    pub retain: retain::Settings,
    /// How much of the disk stays free.
    pub keep_free: Size,
    /// What to merge.
    pub compact: compact::Settings,
    /// How much of what is in the bucket stays on the local disk.
    pub local: Local,
    /// The operator's word for this start.
    pub at_start: AtStart,
}

impl Policy {
    /// As the settings say.
    pub fn new(settings: &Settings) -> Policy {
        let nanoseconds = |age: Duration| i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
        let age_ns = settings.retain_age.map(nanoseconds);
        Policy {
            retain: retain::Settings {
                age_ns,
                size_bytes: settings.retain_size_bytes,
                ..retain::Settings::default()
            },
            keep_free: settings.keep_free,
            compact: compact::Settings::default(),
            local: settings
                .bucket
                .as_ref()
                .map_or_else(Local::default, |bucket| bucket.local),
            at_start: settings.at_start,
        }
    }
}

/// A request to the store.
enum Request {
    /// Put everything into as few segments as possible.
    CompactAll {
        cold: bool,
        done: mpsc::Sender<Result<(), String>>,
    },
    /// Retire a segment, if other nodes have what only it has here.
    GiveUp {
        id: Id,
        confirmed: SourceSet,
        done: mpsc::Sender<Result<bool, String>>,
    },
    /// Write a segment anew without what other nodes have.
    Trim {
        id: Id,
        confirmed: SourceSet,
        done: mpsc::Sender<Result<Option<TrimReport>, String>>,
    },
    /// Accept the loss of files that are gone.
    Forget {
        name: Option<String>,
        done: mpsc::Sender<Result<Vec<VanishedFile>, String>>,
    },
    /// Remove the oldest files.
    Vacuum {
        limits: Vacuum,
        done: mpsc::Sender<Result<VacuumReport, RequestError>>,
    },
}

/// Asks the store for something. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    requests: SyncSender<Request>,
    counters: Arc<Counters>,
    live: LiveSet,
    /// Wakes the thread.
    changes: Changes,
}

/// Why a request was not carried out.
#[derive(Clone, Debug)]
pub enum RequestError {
    /// The store is stopping.
    Stopping,
    /// Too many requests wait.
    Busy,
    /// It cannot be done as things are; why, in words.
    Impossible(&'static str),
    /// It failed; why, in words.
    Failed(String),
}

impl From<String> for RequestError {
    fn from(what: String) -> RequestError {
        RequestError::Failed(what)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::Stopping => f.write_str("the server is stopping"),
            RequestError::Busy => f.write_str("too many requests wait; try again later"),
            RequestError::Impossible(what) => f.write_str(what),
            RequestError::Failed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for RequestError {}

impl Store {
    /// Closes the journal, puts everything into as few segments as the settings allow, compressed
    /// for rest if `cold`, and waits for the end of it. `is_cancelled` ends the waiting, not the
    /// work.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn compact_all(
        &self,
        cold: bool,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<(), RequestError> {
        let waiting = self.request_compaction(cold)?;
        loop {
            match waiting.recv_timeout(Duration::from_millis(100)) {
                Ok(result) => return result.map_err(RequestError::Failed),
                Err(RecvTimeoutError::Disconnected) => return Err(RequestError::Stopping),
                Err(RecvTimeoutError::Timeout) if is_cancelled() => {
                    return Err(RequestError::Stopping);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Asks for what [`Store::compact_all`] does, and does not wait for it. If it fails, the log
    /// says so.
    ///
    /// # Errors
    /// When the request is not taken, see [`RequestError`].
    pub fn begin_compaction(&self, cold: bool) -> Result<(), RequestError> {
        self.request_compaction(cold).map(drop)
    }

    /// Gives where the result arrives.
    fn request_compaction(&self, cold: bool) -> Result<Receiver<Result<(), String>>, RequestError> {
        let (done, waiting) = mpsc::channel();
        self.request(Request::CompactAll { cold, done })?;
        Ok(waiting)
    }

    /// Retires a segment if each of its sources is in another live one or was `confirmed` by other
    /// nodes (CLUSTER R6); gives whether it has. Waits for what the store is doing.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn give_up(&self, id: Id, confirmed: &SourceSet) -> Result<bool, RequestError> {
        let confirmed = confirmed.clone();
        self.ask(|done| Request::GiveUp {
            id,
            confirmed,
            done,
        })
    }

    /// Writes a segment anew without the sources that were `confirmed` by other nodes (CLUSTER R6), and
    /// retires it; `None` if it is not there any more, or nothing could be left out. Waits for it.
    ///
    /// # Errors
    /// See [`RequestError`]; the segment stays as it was then.
    pub fn trim(&self, id: Id, confirmed: &SourceSet) -> Result<Option<TrimReport>, RequestError> {
        let confirmed = confirmed.clone();
        self.ask(|done| Request::Trim {
            id,
            confirmed,
            done,
        })
    }

    /// Removes the oldest files beyond some limits, and waits for it.
    ///
    /// # Errors
    /// See [`RequestError`]; of a failed one some files may have been removed.
    pub fn vacuum(&self, limits: Vacuum) -> Result<VacuumReport, RequestError> {
        self.ask(|done| Request::Vacuum { limits, done })
    }

    /// Accepts the loss of files that have vanished: of the one with this name, or of all. Gives them.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn forget(&self, name: Option<String>) -> Result<Vec<VanishedFile>, RequestError> {
        self.ask(|done| Request::Forget { name, done })
    }

    /// Requests something, and waits for what comes of it.
    fn ask<T, E: Into<RequestError>>(
        &self,
        request: impl FnOnce(mpsc::Sender<Result<T, E>>) -> Request,
    ) -> Result<T, RequestError> {
        let (done, waiting) = mpsc::channel();
        self.request(request(done))?;
        let outcome = waiting.recv().map_err(|_| RequestError::Stopping)?;
        outcome.map_err(Into::into)
    }

    fn request(&self, request: Request) -> Result<(), RequestError> {
        let sent = self.requests.try_send(request);
        sent.map_err(|error| match error {
            mpsc::TrySendError::Full(_) => RequestError::Busy,
            mpsc::TrySendError::Disconnected(_) => RequestError::Stopping,
        })?;
        self.changes.notify();
        Ok(())
    }

    /// The named batches of a producer's life that segments hold, but for copies that were sent again.
    pub fn batches_of(&self, epoch: u128) -> BatchSet {
        let mut found = BatchSet::default();
        for segment in self.live.snapshot().iter() {
            let of_epoch = segment.file().manifest().batches.of_epoch(epoch);
            of_epoch.for_each(|run| found.insert_run(epoch, run));
        }
        found
    }

    /// What the store has done and met.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }
}

/// The store's thread.
pub struct StoreThread {
    thread: JoinHandle<Keeper>,
    offload: Option<OffloadThread>,
    scrub: Option<ScrubThread>,
    is_stopping: Arc<AtomicBool>,
    changes: Changes,
}

impl StoreThread {
    /// Ends the thread between two row groups, and waits for it. Gives what lists the files, for the time
    /// when the journal is closed.
    pub fn stop(self) -> Option<Keeper> {
        self.is_stopping.store(true, Ordering::Relaxed);
        // It may be waiting for news.
        self.changes.notify();
        if let Some(offload) = self.offload {
            offload.stop();
        }
        if let Some(scrub) = self.scrub {
            scrub.stop();
        }
        let ended = self.thread.join();
        if ended.is_err() {
            logpond_host::telemetry::warn("the store thread panicked; segments were not affected");
        }
        ended.ok()
    }
}

/// Why a store does not start.
#[derive(Debug)]
pub enum StartError {
    /// The system gives no thread.
    Thread(io::Error),
    /// The bucket cannot be used.
    Bucket(BucketStartError),
}

/// Starts the thread `lp-store` over the segments that are live already, `lp-bucket` if there is a
/// bucket, and `lp-scrub` if it is asked for.
///
/// # Errors
/// When the system gives no thread, or the bucket cannot be used.
pub fn start(parts: Parts, policy: Policy) -> Result<(Store, StoreThread), StartError> {
    let (requests, receiver) = mpsc::sync_channel(REQUESTS_MAX);
    let is_stopping = Arc::new(AtomicBool::new(false));
    let counters = Arc::new(Counters::default());
    counters.register(&parts.metrics, parts.live.clone(), parts.disk.clone());
    let (changes, live) = (parts.changes.clone(), parts.live.clone());
    let board = parts.bucket.as_ref().map(|(_, board)| board.clone());
    let offload = parts.bucket.as_ref().map(|(bucket, board)| {
        let parts = offload::Parts {
            disk: parts.disk.clone(),
            live: parts.live.clone(),
            changes: parts.changes.clone(),
            clock: parts.clock,
            metrics: parts.metrics.clone(),
        };
        offload::start(bucket, board.clone(), parts)
    });
    let offload = offload.transpose().map_err(StartError::Bucket)?;
    let is_at_work = Arc::new(AtomicBool::new(false));
    let scrub = parts.scrub_every.map(|every| {
        let parts = scrub::Parts {
            disk: parts.disk.clone(),
            live: parts.live.clone(),
            clock: parts.clock,
            metrics: parts.metrics.clone(),
            is_store_at_work: Arc::clone(&is_at_work),
        };
        scrub::start(parts, every)
    });
    let scrub = scrub.transpose().map_err(StartError::Thread)?;
    let mut worker = Worker::new(
        parts,
        board,
        policy,
        Arc::clone(&counters),
        Arc::clone(&is_stopping),
    );
    // Before anybody asks: answers would lack what is only in the bucket, and not say so.
    if let Err(what) = worker.follow_bucket() {
        logpond_host::telemetry::warn(&what);
    }
    let thread = thread::Builder::new().name("lp-store".to_owned()).spawn({
        let is_stopping = Arc::clone(&is_stopping);
        move || run(worker, &receiver, (&is_stopping, &is_at_work))
    });
    let thread = thread.map_err(StartError::Thread)?;
    let store = Store {
        requests,
        counters,
        live,
        changes: changes.clone(),
    };
    Ok((
        store,
        StoreThread {
            thread,
            offload,
            scrub,
            is_stopping,
            changes,
        },
    ))
}

fn run(
    mut worker: Worker,
    requests: &Receiver<Request>,
    (is_stopping, is_at_work): (&AtomicBool, &AtomicBool),
) -> Keeper {
    let mut seen = 0;
    while !is_stopping.load(Ordering::Relaxed) {
        let request = requests.try_recv().ok();
        if request.is_none() {
            seen = worker.wait_for_changes(seen, TICK);
        }
        is_at_work.store(true, Ordering::Relaxed);
        if let Err(panicked) = caught(|| step(&mut worker, request)) {
            worker.note_failure(&panicked.to_string());
        }
        is_at_work.store(false, Ordering::Relaxed);
    }
    worker.put_back_deleted(true);
    worker.keeper
}

/// Does what was asked for, or what is due.
fn step(worker: &mut Worker, request: Option<Request>) {
    match request {
        Some(Request::CompactAll { cold, done }) => {
            // A failure that nobody waits for would be lost.
            if let Err(mpsc::SendError(Err(what))) = done.send(worker.compact_all(cold)) {
                logpond_host::telemetry::warn(&format!("a compaction that was asked for: {what}"));
            }
        }
        Some(Request::GiveUp {
            id,
            confirmed,
            done,
        }) => {
            let _ = done.send(worker.give_up(id, &confirmed));
        }
        Some(Request::Trim {
            id,
            confirmed,
            done,
        }) => {
            let _ = done.send(worker.trim(id, &confirmed));
        }
        Some(Request::Forget { name, done }) => {
            let forgotten = worker.keeper.forget(name.as_deref());
            let what = "the list of files cannot be written";
            let _ = done.send(forgotten.map_err(|error| steps::describe(what, &error)));
        }
        Some(Request::Vacuum { limits, done }) => {
            let _ = done.send(worker.vacuum(&limits));
        }
        None => worker.tick(),
    }
}
