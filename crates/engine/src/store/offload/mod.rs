//! The bucket beside the local disk: the thread `lp-bucket` uploads what the store writes, and opens
//! what is only there.
//!
//! Invariants:
//! - A local segment is given up for its copy in the bucket only once a chain lists that copy.
//! - What a chain does not list counts for nothing; what it does not list any more is dropped here, too.
//! - Nothing waits for the bucket but this thread and whoever reads what is only there: taking in,
//!   making segments and answering from the local disk go on without it.

mod board;
mod metrics;
mod passes;
mod remote;
mod table;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use logpond_bucket::{BucketError, Chains, FailureKind, Location, Objects, Store};
use logpond_cluster::chain::LINKS;
use logpond_record::Timestamp;
use logpond_segment::disk::Disk;

use super::live::LiveSet;
use crate::ingest::Changes;
pub use board::Board;
pub(super) use board::Listing;
use logpond_host::clock;
use logpond_host::panics::caught;
use logpond_host::telemetry::{Metrics, warn};
use logpond_settings::{BucketSettings, vendor_variables};
use metrics::Counters;
use passes::Offload;
use remote::Remote;
use table::TableKeeper;

/// How often is looked at what is to be uploaded.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long a start waits for the first reading. Then the server starts without it, and says in its
/// answers that they lack what is there.
const FIRST_WAIT_MAX: Duration = Duration::from_secs(5);

/// Why the bucket cannot be used.
#[derive(Debug)]
pub struct BucketStartError {
    /// Where it is.
    location: Location,
    source: BucketFault,
}

/// The fault of a bucket.
#[derive(Debug)]
enum BucketFault {
    /// Settings or credentials are missing or wrong, or what is kept here of it cannot be.
    Open(io::Error),
    /// The store refuses, has no such bucket, or cannot do what is needed.
    Refused(BucketError),
}

impl fmt::Display for BucketStartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bucket {} cannot be used", self.location)
    }
}

impl std::error::Error for BucketStartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.source {
            BucketFault::Open(error) => Some(error),
            BucketFault::Refused(error) => Some(error),
        }
    }
}

/// What the thread works with.
pub(super) struct Parts {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) live: LiveSet,
    /// Wakes the store.
    pub(super) changes: Changes,
    pub(super) clock: fn() -> Timestamp,
    pub(super) metrics: Arc<Metrics>,
}

/// The thread.
pub(super) struct OffloadThread {
    thread: JoinHandle<()>,
    store: Arc<Store>,
    is_stopping: Arc<AtomicBool>,
}

impl OffloadThread {
    /// Ends it, with what it asks of the bucket, and waits for it.
    pub(super) fn stop(self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.store.close();
        self.thread.thread().unpark();
        if self.thread.join().is_err() {
            warn("the thread for the bucket panicked; what is local was not affected");
        }
    }
}

/// Starts the thread, and waits for what it reads first, but not for long.
///
/// # Errors
/// When the bucket cannot be used; that it cannot be reached is none.
pub(super) fn start(
    settings: &BucketSettings,
    board: Board,
    parts: Parts,
) -> Result<OffloadThread, BucketStartError> {
    let unusable = |source| BucketStartError {
        location: settings.location.clone(),
        source,
    };
    let unopened = |error| unusable(BucketFault::Open(error));
    let store = Store::open(&settings.location, &vendor_variables());
    let store = Arc::new(store.map_err(unopened)?);
    let counters = Arc::new(Counters::default());
    let objects: Arc<dyn Objects> = store.clone();
    let remote = Remote::new(settings, Arc::clone(&objects)).map_err(unopened)?;
    metrics::register(&parts.metrics, &counters, &store, remote.cache());
    let is_stopping = Arc::new(AtomicBool::new(false));
    let table = settings
        .table
        .map(|interval| TableKeeper::new(Arc::clone(&objects), interval));
    let offload = Offload {
        chains: Chains::new(Arc::clone(&objects), || clock::random().unwrap_or_default()),
        objects,
        remote,
        parts,
        board,
        counters,
        is_stopping: Arc::clone(&is_stopping),
        is_proven: false,
        uploaded: Vec::new(),
        held: Vec::new(),
        unlisted: Vec::new(),
        put_off: Vec::new(),
        copies: Vec::new(),
        refreshed_at: None,
        swept_at: None,
        boot: clock::Boot::current(),
        is_elsewhere: matches!(settings.location, Location::Remote { .. }),
        complaint: None,
        table,
    };
    offload.note_unread(&settings.location);
    let (first, read) = mpsc::channel();
    let thread = thread::Builder::new().name("lp-bucket".to_owned());
    let thread = thread
        .spawn(move || run(offload, &first))
        .map_err(unopened)?;
    let thread = OffloadThread {
        thread,
        store,
        is_stopping,
    };
    match read.recv_timeout(FIRST_WAIT_MAX) {
        Ok(Err(error)) if is_final(&error) => {
            thread.stop();
            Err(unusable(BucketFault::Refused(error)))
        }
        Err(RecvTimeoutError::Disconnected) => {
            thread.stop();
            Err(unopened(io::Error::other(
                "its thread panicked; please report it",
            )))
        }
        Err(RecvTimeoutError::Timeout) => {
            warn(&unanswered(&settings.location));
            Ok(thread)
        }
        Ok(_) => Ok(thread),
    }
}

/// What is said of a store that has not said anything yet.
fn unanswered(location: &Location) -> String {
    format!(
        "the bucket {location} has not answered for {FIRST_WAIT_MAX:?}; starting without it, and waiting on"
    )
}

/// Whether a server need not start: no waiting helps.
fn is_final(error: &BucketError) -> bool {
    error.kind != FailureKind::Unavailable
}

/// Names in every answer that this thread has come to an unforeseen end.
struct Guard(Board, Arc<Counters>);

impl Drop for Guard {
    fn drop(&mut self) {
        if thread::panicking() {
            let Guard(board, counters) = self;
            counters.reachable.set(0);
            let what = "the thread for the bucket panicked, and nothing new is read from there or put there; \
                        restart the server, and please report it";
            warn(what);
            board.set_missing(vec![what.to_owned()]);
        }
    }
}

/// Does something of which a panic is a failure like any other: `work` must bear being left at any step.
fn guarded<T>(
    (operation, name): (&'static str, &str),
    work: impl FnOnce() -> Result<T, BucketError>,
) -> Result<T, BucketError> {
    caught(work).unwrap_or_else(|panicked| {
        Err(BucketError {
            operation,
            name: name.to_owned(),
            kind: FailureKind::Defect,
            source: panicked.into(),
        })
    })
}

fn run(mut offload: Offload, first: &mpsc::Sender<Result<(), BucketError>>) {
    let _guard = Guard(offload.board.clone(), Arc::clone(&offload.counters));
    let result = offload.read();
    match &result {
        // The one who waits says it and stops this; if nobody does any more, the next pass says it.
        Err(error) if is_final(error) => {
            let _ = first.send(result);
            thread::park_timeout(INTERVAL);
        }
        _ => {
            // What the stop has cut short is no failure.
            if !offload.is_stopping() {
                offload.note(result.as_ref().err());
            }
            let is_read = result.is_ok();
            // Nobody waits any more who has said that it does not answer.
            if first.send(result).is_err() && is_read {
                warn("the bucket has answered, and is read");
            }
        }
    }
    while !offload.is_stopping() {
        let result = guarded(("keep up", LINKS), || offload.pass());
        if offload.is_stopping() {
            break;
        }
        offload.note(result.as_ref().err());
        if result.is_ok() {
            offload.keep_table();
        }
        thread::park_timeout(INTERVAL);
    }
}
