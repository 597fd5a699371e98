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
//! R6): one that is no ingester any more may have some left. `lp-repair` sees to it that there stay
//! as many copies, and empties a node that leaves. What decides is in `crates/cluster`; here are the files, the calls and the threads.
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
mod poll;
mod release;
mod repair;
mod trim;
mod leave;
mod metrics;
mod pace;
mod status;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use logpond_cluster::births::Ends;
use logpond_cluster::expiry::{behind_ns_max, is_behind};
use logpond_cluster::give_up::Attempt;
use logpond_cluster::offers::{ClaimId, Offers, Settings};
use logpond_cluster::{Holdings, NodeId};
use logpond_record::{Id, SourceId, Timestamp};
use logpond_segment::disk::Disk;
use logpond_segment::journal::Visible;
use logpond_segment::sources::SourceSet;
use tokio::sync::watch;

use crate::cluster::Member;
use logpond_engine::ingest::{Changes, Closer, Gate, Replication};
use logpond_engine::resends::Resends;
use logpond_engine::step_mark::StepMark;
use logpond_engine::store::{Board, Elsewhere, LiveSet, Store, local};
use logpond_host::clock;
use logpond_host::panics::caught;
use logpond_host::shutdown::{Shutdown, Stopper};
use logpond_host::telemetry::{Metrics, warn};

pub use copies::CopyError;
use metrics::Counters;
pub use offers::JournalPiece;
use pace::Pace;
pub use repair::CopyState;
use repair::RepairState;

/// How often the threads look for work that no event announces: files of other nodes, answers of
/// nodes that came back.
const ROUND: Duration = Duration::from_millis(250);

/// How long the oldest file waits for company before it is claimed: it bounds how long records are
/// on one node only.
const GATHER_MS: u64 = 500;

/// How often a node looks whether there are enough copies of everything. What others say of their
/// segments is sent only when it has changed.
const REPAIR_ROUND: Duration = Duration::from_secs(2);

/// Journal data of one claim: it is held in memory while it is sorted.
pub const CLAIM_BYTES: u64 = 48 << 20;

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
    /// Says when a journal file was closed, or a node has something to hand over.
    pub changes: Changes,
    /// What is known of the bucket, if there is one.
    pub board: Option<Board>,
    /// The time.
    pub clock: fn() -> Timestamp,
    /// The process's metrics.
    pub metrics: Arc<Metrics>,
    /// The memory of journal files that are gone.
    pub resends: Arc<Resends>,
    /// The memory that the process may have; steps take a part.
    pub memory_bytes: u64,
}

/// What the hand-off moves of the node around it.
pub struct Tools {
    /// Gives segments up.
    pub store: Store,
    /// Closes the journal.
    pub closer: Closer,
    /// Refuses records.
    pub gate: Gate,
    /// Ends the process.
    pub stopper: Arc<Stopper>,
    /// How long a node may be gone until others make up for its copies.
    pub repair_after: Duration,
    /// How long records are kept, if not for ever.
    pub retain_age: Option<Duration>,
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
    /// Grows when there may be something to claim.
    offered: watch::Sender<u64>,
    /// Grows when more is known to be replicated.
    confirmed: watch::Sender<u64>,
    /// Nodes that have offered something to this one's store.
    offering: poll::OfferingNodes,
    /// Wakes `lp-repair`.
    care: Changes,
    /// How large the steps of `lp-consume` are, and what says so after a process that ended in one.
    mark: StepMark,
}

struct State {
    offers: Offers,
    /// The highest journal file of each incarnation.
    ends: Ends,
    /// What so many nodes as there are to be copies have said that they hold, in answer to this
    /// process. What an earlier one heard is not known: a disk may have come back as it was.
    replicated: SourceSet,
    /// What segments are being given up for: no answer names these sources.
    flags: BTreeMap<Attempt, SourceSet>,
    /// Whether enough others know that all incarnations of this node are sealed.
    is_published: bool,
    copies: CopyState,
    pace: Pace,
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
                flags: BTreeMap::new(),
                is_published: false,
                copies: CopyState::default(),
                pace: Pace::default(),
            }),
            offered: watch::Sender::new(0),
            confirmed: watch::Sender::new(0),
            offering: poll::OfferingNodes::default(),
            care: Changes::default(),
            mark: StepMark::new(Arc::clone(&parts.disk), "consume", parts.memory_bytes),
            parts,
        });
        handoff.expose();
        handoff
    }

    /// Starts the threads `lp-consume`, `lp-release` and `lp-repair`. They end after the stop.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        self: &Arc<Handoff>,
        tools: Tools,
        stop: &Shutdown,
    ) -> io::Result<Vec<JoinHandle<()>>> {
        let spawn = |name: &str, work: fn(&Handoff, &Shutdown)| {
            let (handoff, stop) = (Arc::clone(self), stop.clone());
            thread::Builder::new().name(name.to_owned()).spawn(move || {
                let mut seen = 0;
                while !stop.is_stopping() {
                    handoff.live_through(|| work(&handoff, &stop));
                    seen = handoff.parts.changes.wait(seen, ROUND);
                }
            })
        };
        let mut threads = vec![spawn("lp-release", |handoff, _| handoff.release())?];
        let (handoff, stopping) = (Arc::clone(self), stop.clone());
        let repair = thread::Builder::new().name("lp-repair".to_owned());
        threads.push(repair.spawn(move || handoff.take_care(&tools, &stopping))?);
        if self.parts.member.roles().stores {
            threads.push(spawn("lp-consume", Handoff::consume_all)?);
            let (handoff, stopping) = (Arc::clone(self), stop.clone());
            let polls = thread::Builder::new().name("lp-offers".to_owned());
            threads.push(polls.spawn(move || handoff.poll_all(&stopping))?);
        }
        Ok(threads)
    }

    /// Sees to copies, and to leaving, until the stop.
    fn take_care(&self, tools: &Tools, stop: &Shutdown) {
        let copies = self.parts.member.copies();
        let mut repairing = RepairState::new(self.own(), copies, tools.repair_after);
        let retain_age_ns = tools.retain_age.map(|age| age.as_nanos());
        let retain_age_ns = retain_age_ns.map(|age| i64::try_from(age).unwrap_or(i64::MAX));
        let behind_ns_max = behind_ns_max(retain_age_ns);
        let mut seen = 0;
        while !stop.is_stopping() {
            let is_leaving = self.parts.member.is_leaving();
            let peers = self.parts.member.peer_clocks().unwrap_or_default();
            let now = (self.parts.clock)();
            tools.gate.set_behind(is_behind(now, &peers, behind_ns_max));
            let has_more = self.live_through(|| {
                let has_more = self.see_to_copies(&mut repairing, &tools.store);
                if is_leaving {
                    self.leave(tools)
                } else {
                    self.stay(tools)
                }
                has_more
            });
            if has_more != Some(true) {
                seen = self.wait_for_round(seen, stop);
            }
        }
    }

    /// Does work of a round; a panic is said, counted, and ends that work only.
    fn live_through<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let done = caught(work);
        if let Err(panicked) = &done {
            self.counters.failures.add(1);
            warn(&format!("copies are not seen to for now: {panicked}"));
        }
        done.ok()
    }

    /// Waits for the next round, or until somebody asks for it.
    fn wait_for_round(&self, seen: u64, stop: &Shutdown) -> u64 {
        let since = Instant::now();
        while !stop.is_stopping() && since.elapsed() < REPAIR_ROUND {
            let now = self.care.wait(seen, ROUND);
            if now > seen {
                return now;
            }
        }
        seen
    }

    /// Has `lp-repair` look now whether there are enough copies.
    pub fn look_now(&self) {
        self.care.notify();
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

    /// What the segments on this node's disk hold, as far as they can be read, and what the bucket does.
    fn holdings(&self) -> Holdings {
        let live = self.parts.live.snapshot();
        let each = local(&live).filter(|segment| !segment.is_damaged());
        let mut holdings =
            Holdings::new(each.map(|s| (s.file().manifest().id, s.sources().clone())));
        let board = self.parts.board.as_ref();
        holdings.set_listed(board.map(|board| (*board.sources()).clone()));
        holdings
    }

    fn new_id(&self) -> Id {
        let made = self.ids_made.fetch_add(1, Ordering::Relaxed);
        clock::mint_segment_id((self.parts.clock)(), made)
    }
}

impl Replication for Handoff {
    fn is_replicated(&self, source: SourceId) -> bool {
        let is_alone = self.parts.member.copies() == 1 && self.parts.board.is_none();
        is_alone || self.state().replicated.contains(source)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.confirmed.subscribe()
    }
}

impl Elsewhere for Handoff {
    fn is_handed_over(&self) -> bool {
        self.is_done()
    }

    fn expire(&self, sources: &SourceSet) -> io::Result<()> {
        self.parts.member.expire(sources)
    }

    fn peer_clocks(&self) -> Option<Vec<Timestamp>> {
        self.parts.member.peer_clocks()
    }
}

fn new_attempt() -> Attempt {
    Attempt(clock::random().unwrap_or_default())
}

fn new_claim() -> ClaimId {
    ClaimId(clock::random().unwrap_or_default())
}
