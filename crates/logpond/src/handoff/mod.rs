//! From the ingesters' journals to segments on as many nodes as there are to be copies.
//!
//! ```text
//! closed journal files ─▶ offers ─▶ consume: claim, read, build, send copies ─▶ report
//!        ▲                  │                                  │
//!        └──── release ◀────┘                              receive ─▶ live segments
//!          (ask who holds them, then remove)
//! ```
//!
//! On stores `lp-consume` makes segments of what ingesters offer, their own first; on all nodes
//! `lp-release` removes the journal files of which enough nodes say that they hold the rows (CLUSTER
//! R6): one that is no ingester any more may have some left. What decides is in `crates/cluster`; here are the files, the calls and the threads.
//!
//! Invariants:
//! - A journal file is removed only when so many distinct nodes as there are to be copies have
//!   answered this very attempt that their live segments hold the same rows.
//! - A copy counts once its file and its name are synced at the receiver, which has compared it
//!   with the sender's hash.
//! - Claims and reports are hints: whatever fails is offered again, and what was made stays.

mod copies;
mod consume;
mod offers;
mod release;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use logpond_cluster::births::Ends;
use logpond_cluster::give_up::Attempt;
use logpond_cluster::offers::{ClaimId, Offers, Settings};
use logpond_cluster::{Holdings, NodeId};
use logpond_record::{Id, SourceId, Timestamp};
use logpond_segment::disk::Disk;
use logpond_segment::journal::Visible;
use logpond_segment::sources::SourceSet;

use crate::clock;
use crate::cluster::Member;
use crate::ingest::{Changes, Replication};
use crate::shutdown::Shutdown;
use crate::store::{Elsewhere, LiveSet};
use crate::telemetry::{Counter, Metrics};

pub use copies::CopyError;
pub use offers::JournalPiece;

/// How often the threads look for work that no event announces: files of other nodes, answers of
/// nodes that came back.
const ROUND: Duration = Duration::from_millis(250);

/// How long the oldest file waits for company before it is claimed: it bounds how long records are
/// on one node only.
const GATHER_MS: u64 = 500;

/// Journal data of one claim: it is held in memory while it is sorted.
const CLAIM_BYTES: u64 = 48 << 20;

/// What the hand-off works with.
pub struct Parts {
    /// This node among others.
    pub member: Arc<Member>,
    /// The data directory.
    pub disk: Arc<dyn Disk>,
    /// The journal as readers see it.
    pub visible: Arc<Visible>,
    /// The segments as readers see them.
    pub live: LiveSet,
    /// Says when the journal has changed.
    pub changes: Changes,
    /// The time.
    pub clock: fn() -> Timestamp,
    /// The process's metrics.
    pub metrics: Arc<Metrics>,
}

/// What was handed on.
#[derive(Debug, Default)]
pub struct Counters {
    /// Journal files that this node's store has made segments of.
    pub consumed_files: Counter,
    /// Rows in them.
    pub consumed_rows: Counter,
    /// Copies that other nodes have synced.
    pub copies_sent: Counter,
    /// Copies that this node has synced for others.
    pub copies_received: Counter,
    /// Journal files that were removed since enough nodes hold them.
    pub released: Counter,
    /// Steps that failed and are tried again.
    pub failures: Counter,
    /// Sources of which two nodes hold different rows: never right.
    pub conflicts: Counter,
}

/// The hand-off of one node.
pub struct Handoff {
    parts: Parts,
    started: Instant,
    counters: Counters,
    ids_made: AtomicU64,
    /// Copies that are being received: of each one at a time, since they share a temporary name.
    receiving: copies::Received,
    state: Mutex<State>,
}

/// The ingester's half.
struct State {
    offers: Offers,
    /// The highest journal file of each incarnation.
    ends: Ends,
    /// What so many nodes as there are to be copies have said that they hold, in answer to this
    /// process. What an earlier one heard is not known: a disk may have come back as it was.
    replicated: SourceSet,
}

impl Handoff {
    /// A hand-off of what is visible.
    pub fn new(parts: Parts) -> Arc<Handoff> {
        let settings = Settings {
            gather_ms: GATHER_MS,
            claim_bytes: CLAIM_BYTES,
            ..Settings::default()
        };
        let handoff = Arc::new(Handoff {
            started: Instant::now(),
            counters: Counters::default(),
            ids_made: AtomicU64::new(0),
            receiving: copies::Received::default(),
            state: Mutex::new(State {
                offers: Offers::new(parts.member.identity().node, settings),
                ends: Ends::default(),
                replicated: SourceSet::new(),
            }),
            parts,
        });
        handoff.expose();
        handoff
    }

    /// Starts the threads `lp-consume` and `lp-release`. They end after the stop.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(self: &Arc<Handoff>, stop: &Shutdown) -> io::Result<Vec<JoinHandle<()>>> {
        let spawn = |name: &str, work: fn(&Handoff)| {
            let (handoff, stop) = (Arc::clone(self), stop.clone());
            thread::Builder::new().name(name.to_owned()).spawn(move || {
                let mut seen = 0;
                while !stop.is_stopping() {
                    work(&handoff);
                    seen = handoff.parts.changes.wait(seen, ROUND);
                }
            })
        };
        let mut threads = vec![spawn("lp-release", Handoff::release)?];
        if self.parts.member.roles().stores {
            threads.push(spawn("lp-consume", Handoff::consume_all)?);
        }
        Ok(threads)
    }

    /// Whether segments of enough nodes hold everything that was closed.
    pub fn is_done(&self) -> bool {
        self.note_closed();
        self.state().offers.bytes() == 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Monotonic milliseconds.
    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn own(&self) -> NodeId {
        self.parts.member.identity().node
    }

    /// What this node's segments hold.
    fn holdings(&self) -> Holdings {
        let live = self.parts.live.snapshot();
        let each = live.iter();
        Holdings::new(each.map(|s| (s.file().manifest().id, s.sources().clone())))
    }

    fn new_id(&self) -> Id {
        let made = self.ids_made.fetch_add(1, Ordering::Relaxed);
        clock::mint_segment_id((self.parts.clock)(), made)
    }

    fn expose(self: &Arc<Handoff>) {
        let handoff = Arc::downgrade(self);
        self.parts.metrics.register(Box::new(move |out| {
            let Some(handoff) = handoff.upgrade() else {
                return;
            };
            let counters = &handoff.counters;
            let table = [
                (
                    "logpond_handoff_consumed_files_total",
                    "Journal files that this node has made segments of, its own and others'.",
                    &counters.consumed_files,
                ),
                (
                    "logpond_handoff_consumed_rows_total",
                    "Rows in them.",
                    &counters.consumed_rows,
                ),
                (
                    "logpond_handoff_copies_sent_total",
                    "Copies of segments that other nodes have synced.",
                    &counters.copies_sent,
                ),
                (
                    "logpond_handoff_copies_received_total",
                    "Copies of segments that this node has synced for others.",
                    &counters.copies_received,
                ),
                (
                    "logpond_handoff_released_total",
                    "Journal files removed since enough nodes hold their rows.",
                    &counters.released,
                ),
                (
                    "logpond_handoff_failures_total",
                    "Steps of the hand-off that failed and are tried again.",
                    &counters.failures,
                ),
                (
                    "logpond_handoff_conflicts_total",
                    "Sources of which two nodes hold different rows.",
                    &counters.conflicts,
                ),
            ];
            for (name, help, counter) in table {
                out.family(name, "counter", help);
                out.sample(name, &[], counter.get());
            }
            let state = handoff.state();
            let bytes = i64::try_from(state.offers.bytes()).unwrap_or(i64::MAX);
            let age = state.offers.oldest_age_ms(handoff.now_ms()).unwrap_or(0);
            let gauges = [
                (
                    "logpond_unreplicated_bytes",
                    "Bytes of closed journal files of which this node has the only copy, as far as it knows.",
                    bytes,
                ),
                (
                    "logpond_unreplicated_age_ms",
                    "Milliseconds since the oldest of them was closed.",
                    i64::try_from(age).unwrap_or(i64::MAX),
                ),
            ];
            for (name, help, value) in gauges {
                out.family(name, "gauge", help);
                out.sample(name, &[], value);
            }
        }));
    }
}

impl Replication for Handoff {
    fn is_replicated(&self, source: SourceId) -> bool {
        self.parts.member.copies() == 1 || self.state().replicated.contains(source)
    }
}

impl Elsewhere for Handoff {
    fn is_handed_over(&self) -> bool {
        self.is_done()
    }

    fn expire(&self, sources: &SourceSet) -> io::Result<()> {
        self.parts.member.expire(sources)
    }
}

fn new_attempt() -> Attempt {
    Attempt(clock::random().unwrap_or_default())
}

fn new_claim() -> ClaimId {
    ClaimId(clock::random().unwrap_or_default())
}
