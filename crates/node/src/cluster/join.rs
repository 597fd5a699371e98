//! How a node becomes a member of its cluster, and has others note what they must know (CLUSTER R3).
//!
//! Invariants: see [`logpond_cluster::births`]. A node acknowledges nothing, and calls no answer
//! complete, before as many members as must have noted it, or all whom it knows; others count what a
//! node has noted of a birth only if that one has joined. That it has joined is on its disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use logpond_cluster::births::{JoiningNode, others_for_birth};
use logpond_cluster::seeds::{Seed, Seeds};
use logpond_cluster::{Fate, Registry};
use logpond_record::{Incarnation, Timestamp};
use logpond_segment::disk::Disk;

use super::Member;
use super::client::{CallTarget, PeerError};
use super::identity::{DIRECTORY, read_small};
use super::messages::NewsReceipt;
use logpond_engine::ingest::IncarnationListener;
use logpond_engine::query::Nodes;
use logpond_host::disk::replace;
use logpond_host::shutdown::Shutdown;
use logpond_host::side_by_side::side_by_side;
use logpond_host::telemetry::warn;

/// The file that is there once the node has joined.
const PATH: &str = "cluster/joined";

/// What is in it, for people.
const TEXT: &[u8] = b"this node has joined its cluster\n";

/// How often the addresses of names of `join` are looked up until they are met.
const NAMES_EVERY: Duration = Duration::from_secs(1);

/// How long a node of `join` may fail to answer before that is said: others may start a little later.
const FAILING_UNTOLD: Duration = Duration::from_secs(5);

/// How far a node is with joining.
pub(super) struct Join {
    has_joined: AtomicBool,
    state: Mutex<JoiningNode>,
    seeds: Mutex<Seeds<SocketAddr>>,
    /// Addresses of `join` that did not answer.
    failures: Mutex<BTreeMap<SocketAddr, SeedFailure>>,
}

/// Why an address of `join` does not answer.
struct SeedFailure {
    since: Instant,
    reason: String,
    is_told: bool,
}

impl Join {
    /// As far as the disk says.
    pub(super) fn open(disk: &dyn Disk, seeds: Seeds<SocketAddr>) -> Join {
        let was_joined = matches!(read_small(disk, PATH, 1 << 10), Ok(Some(_)));
        Join {
            has_joined: AtomicBool::new(was_joined),
            state: Mutex::default(),
            seeds: Mutex::new(seeds),
            failures: Mutex::default(),
        }
    }

    fn failures(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, SeedFailure>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an address does not answer, and warns once it has not for a while; and again for another reason.
    fn note_failure(&self, address: SocketAddr, reason: String) {
        self.seeds().note_failure(address);
        let mut failures = self.failures();
        let failure = failures.entry(address).or_insert_with(|| SeedFailure {
            since: Instant::now(),
            reason: reason.clone(),
            is_told: false,
        });
        if failure.reason != reason {
            failure.reason = reason;
            failure.is_told = false;
        }
        if !failure.is_told && failure.since.elapsed() >= FAILING_UNTOLD {
            failure.is_told = true;
            let reason = &failure.reason;
            warn(&format!(
                "--join: {address} does not answer, and is asked again: {reason}"
            ));
        }
    }

    /// Notes that an address has answered.
    fn note_answer(&self, address: SocketAddr) {
        self.seeds().note_answer(address);
        self.failures().remove(&address);
    }

    fn state(&self) -> MutexGuard<'_, JoiningNode> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seeds(&self) -> MutexGuard<'_, Seeds<SocketAddr>> {
        self.seeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The nodes whose notes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoteSource {
    /// Those of all nodes.
    Anybodys,
    /// Those of nodes that have joined.
    Members,
}

/// Joining.
impl Member {
    /// Whether this node has joined its cluster; one that was told of no others founds one.
    pub(crate) fn has_joined(&self) -> bool {
        self.joining.has_joined.load(Ordering::Relaxed)
    }

    /// Notes on the disk that this node has joined, if it has.
    pub(super) fn note_joined(&self) -> io::Result<()> {
        let is_founder = self.joining.seeds().is_empty();
        let joining = self.joining.state();
        if self.has_joined() || !joining.is_joined(self.copies, &self.others(), is_founder) {
            return Ok(());
        }
        replace(&*self.disk, DIRECTORY, PATH, TEXT)?;
        self.joining.has_joined.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Tells those of this node who have not noted it, and learns what they know.
    pub(super) fn join_others(&self) {
        if self.has_joined() {
            return;
        }
        let untold = self.joining.state().to_tell(&self.others());
        let known = self.registry.known();
        let meet = |node| {
            let (address, _) = self.reach(node)?;
            self.exchange(address, &known)
        };
        for (node, noted) in side_by_side(untold, meet) {
            if let Some(Ok(noted)) = noted
                && noted.node == node
            {
                self.joining.state().recorded_by(node, noted.has_joined);
            }
        }
        if let Err(error) = self.note_joined() {
            warn(&format!(
                "that this node has joined cannot be noted: {error}"
            ));
        }
    }

    /// Tells whoever is at an address what this node knows, and takes over what is known there. All
    /// of it is on both disks when this returns.
    fn exchange(&self, with: CallTarget, known: &Registry) -> Result<NewsReceipt, PeerError> {
        let noted = self.client.tell(with, known)?;
        let heard = self.client.registry(with)?;
        self.learn(&heard)
            .map_err(|error| PeerError::new(error.to_string()))?;
        Ok(noted)
    }

    fn why_not_joined(&self) -> String {
        let unjoined = self.unjoined();
        if unjoined.is_empty() {
            let failures = self.joining.failures();
            let reasons = failures
                .iter()
                .map(|(address, failure)| format!("; {address}: {}", failure.reason));
            let reasons: String = reasons.collect();
            format!("nothing can be acknowledged before one of --join has answered{reasons}")
        } else {
            format!(
                "nothing can be acknowledged before others know of this node: {} have not noted it \
                 as members; one that is gone for good is given up by `logpond cluster forget`",
                unjoined.join(", ")
            )
        }
    }

    /// Addresses of those that have not noted this node, as long as it has not joined.
    pub(super) fn unjoined(&self) -> Vec<String> {
        if self.has_joined() {
            return Vec::new();
        }
        let untold = self.joining.state().to_tell(&self.others());
        let registry = self.registry.known();
        let addresses = untold.into_iter().filter_map(|node| registry.node(node));
        addresses.map(|known| known.address.clone()).collect()
    }

    /// The seeds, of which those are met that somebody else has told of.
    fn seeds(&self) -> MutexGuard<'_, Seeds<SocketAddr>> {
        let registry = self.registry.known();
        let is_known = |address: &str| registry.nodes().any(|(_, known)| known.address == address);
        let mut seeds = self.joining.seeds();
        for address in seeds.addresses_to_ask() {
            if is_known(&address.to_string()) {
                seeds.note_answer(address);
            }
        }
        seeds
    }

    /// Nodes of `join` that were not met.
    pub(super) fn unmet_seeds(&self) -> Vec<String> {
        self.seeds().unmet().map(Seed::to_string).collect()
    }

    /// All nodes of `join` but this one.
    pub(super) fn all_seeds(&self) -> Vec<String> {
        self.joining.seeds().all().map(Seed::to_string).collect()
    }

    /// Tells one of those what this node knows, and asks what is known there: gossip tells of nodes
    /// one after the other, and until all are known an answer may lack what only they have. Telling
    /// comes first: who is known here and takes note of births must know of this node, too.
    pub(super) fn meet(&self, turn: usize) {
        let to_ask = self.seeds().addresses_to_ask();
        let Some(address) = to_ask.get(turn % to_ask.len().max(1)).copied() else {
            return;
        };
        match self.exchange(CallTarget::whoever(address), &self.registry.known()) {
            Ok(noted) => {
                let mut state = self.joining.state();
                state.recorded_by(noted.node, noted.has_joined);
                drop(state);
                self.joining.note_answer(address);
            }
            // It is tried again in its turn.
            Err(error) => self.joining.note_failure(address, error.to_string()),
        }
    }

    /// Looks up the addresses of names of `join` until all are met.
    pub(super) async fn resolve_names(&self, mut stop: Shutdown) {
        let mut told = BTreeSet::new();
        loop {
            let names = self.joining.seeds().names_to_resolve();
            if names.is_empty() {
                return;
            }
            for (host, port) in names {
                let found = tokio::select! {
                    found = tokio::net::lookup_host((&*host, port)) => found,
                    () = stop.stopping() => return,
                };
                match found {
                    Ok(found) => self.joining.seeds().note_addresses((&host, port), found),
                    Err(error) => {
                        if told.insert((host.clone(), port)) {
                            warn(&format!(
                                "--join {host}:{port}: the name has no address, and is looked up again: {error}"
                            ));
                        }
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(NAMES_EVERY) => {}
                () = stop.stopping() => return,
            }
        }
    }

    /// Has other nodes note what a registry says, on their disks: so many of them.
    ///
    /// # Errors
    /// When fewer have, with what the last one said.
    pub(super) fn publish(
        &self,
        heard: &Registry,
        wanted: usize,
        whose: NoteSource,
    ) -> Result<(), String> {
        let mut told = 0;
        let mut last = "none of --join has answered".to_owned();
        let others = self.others().into_iter();
        let (live, others): (Vec<_>, Vec<_>) = others.partition(|node| self.gossip.is_live(*node));
        for node in live.into_iter().chain(others) {
            if told == wanted {
                break;
            }
            let tell = |(address, _)| self.client.tell(address, heard);
            match self.reach(node).and_then(tell) {
                Ok(noted) if whose == NoteSource::Anybodys || noted.has_joined => told += 1,
                Ok(_) => last = format!("{} has not joined itself", self.name(node)),
                Err(error) => last = format!("{}: {error}", self.name(node)),
            }
        }
        if told == wanted {
            Ok(())
        } else {
            Err(format!(
                "{told} of {wanted} other nodes have noted it: {last}"
            ))
        }
    }
}

impl IncarnationListener for Member {
    fn announce(&self, incarnation: Incarnation, now: Timestamp) -> Result<(), String> {
        let fate = Fate::born(self.identity.node, now);
        // Before anybody hears of it, and could tell this node.
        let mut lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
        lives.insert(incarnation);
        drop(lives);
        self.held.note_born(incarnation);
        self.note(|registry| registry.note(incarnation, fate))
            .map_err(|error| format!("the registry cannot be written: {error}"))?;
        self.join_others();
        if !self.has_joined() {
            return Err(self.why_not_joined());
        }
        let mut heard = Registry::default();
        heard.note(incarnation, fate);
        let wanted = others_for_birth(self.copies, self.others().len());
        self.publish(&heard, wanted, NoteSource::Members)
            .map_err(|error| {
                format!("nothing can be acknowledged before others know of this node: {error}")
            })
    }
}
