//! How nodes leave a cluster: by themselves, once others have what they had, or given up by others.
//!
//! Invariants:
//! - That a node is leaving is on its disk, so that it goes on with it after a restart.
//! - A node that was given up and is there all the same comes back as soon as it hears of it: what
//!   it holds counts again.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::Ordering;

use logpond_cluster::births::{others_for_farewell, silent_max};
use logpond_cluster::registry::RegistryEntry;
use logpond_cluster::{NodeId, Registry};
use logpond_record::Incarnation;
use logpond_segment::disk::Disk;

use super::Member;
use super::identity::{DIRECTORY, read_small};
use super::join::NoteSource;
use logpond_engine::query::Nodes;
use logpond_host::clock;
use logpond_host::disk::replace;
use logpond_host::telemetry::warn;

/// The file that is there while the node is leaving.
const PATH: &str = "cluster/leaving";

/// What is in it, for people.
const TEXT: &[u8] = b"this node is leaving its cluster\n";

/// Why a node was not given up.
#[derive(Debug)]
pub enum ForgetError {
    /// It is the one that was asked.
    Own,
    /// Nobody has heard of it.
    Unknown,
    /// It is there.
    Live,
    /// It was noted here, but too few others have noted it.
    Unpublished(String),
    /// The registry cannot be written.
    Disk(io::Error),
}

impl fmt::Display for ForgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ForgetError::Own => f.write_str(
                "this is the node itself: ask another one to forget it, or let it leave by \
                 `logpond cluster drain`",
            ),
            ForgetError::Unknown => f.write_str("nobody has heard of this node"),
            ForgetError::Live => f.write_str(
                "the node is there: let it leave by `logpond cluster drain`, or stop it first",
            ),
            ForgetError::Unpublished(why) => {
                write!(
                    f,
                    "the node is forgotten here, but not elsewhere yet: {why}"
                )
            }
            ForgetError::Disk(error) => write!(f, "the registry cannot be written: {error}"),
        }
    }
}

impl std::error::Error for ForgetError {}

/// Whether a node was leaving when it ended.
pub(super) fn was_leaving(disk: &dyn Disk) -> bool {
    matches!(read_small(disk, PATH, 1 << 10), Ok(Some(_)))
}

impl Member {
    /// Whether this node is leaving its cluster.
    pub fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    /// Whether this node keeps what it is given.
    pub fn keeps(&self) -> bool {
        self.roles.stores && !self.is_leaving()
    }

    /// Begins to leave, or stays after all. Returns once that is on disk.
    ///
    /// # Errors
    /// When it cannot be written; nothing has changed then.
    pub fn set_leaving(&self, is_leaving: bool) -> io::Result<()> {
        if is_leaving {
            replace(&*self.disk, DIRECTORY, PATH, TEXT)?
        } else {
            self.remove_leaving()?
        }
        self.is_leaving.store(is_leaving, Ordering::Relaxed);
        self.gossip.say_leaving(is_leaving);
        Ok(())
    }

    fn remove_leaving(&self) -> io::Result<()> {
        match self.disk.remove(PATH) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => self.disk.sync_directory(DIRECTORY),
        }
    }

    /// Has as many others as must note what this node knows: that its incarnations are sealed.
    ///
    /// # Errors
    /// When too few have, with what the last one said.
    pub fn publish_seals(&self) -> Result<(), String> {
        self.publish(
            &self.registry(),
            self.farewell_wanted(),
            NoteSource::Anybodys,
        )
    }

    /// On how many others it must be noted that a node is given up: fewer, where there are not so many.
    fn others_wanted(&self) -> usize {
        silent_max(self.copies).min(self.others().len())
    }

    /// On how many others it must be noted how this node has ended.
    fn farewell_wanted(&self) -> usize {
        others_for_farewell(self.copies, self.others().len())
    }

    /// Gives this node itself up: it holds nothing any more, and nobody needs to ask it.
    ///
    /// # Errors
    /// When too few have noted it.
    pub fn forget_itself(&self) -> Result<(), String> {
        let own = self.identity.node;
        self.note_forgotten(own, &BTreeMap::new())
            .map_err(|error| error.to_string())?;
        self.publish(
            &self.registry(),
            self.farewell_wanted(),
            NoteSource::Anybodys,
        )?;
        self.remove_leaving().map_err(|error| error.to_string())
    }

    /// Gives up a node that is gone: what only it had is lost, answers say so and wait for it no
    /// more, and others make up for its copies at once.
    ///
    /// # Errors
    /// See [`ForgetError`].
    pub fn forget(&self, node: NodeId) -> Result<(), ForgetError> {
        if node == self.identity.node {
            return Err(ForgetError::Own);
        }
        if self.registry().node(node).is_none() {
            return Err(ForgetError::Unknown);
        }
        let answers = || Nodes::inventory(self, node).is_ok();
        if self.gossip.is_live(node) && answers() {
            return Err(ForgetError::Live);
        }
        self.note_forgotten(node, &self.ends())
            .map_err(ForgetError::Disk)?;
        self.publish(&self.registry(), self.others_wanted(), NoteSource::Anybodys)
            .map_err(ForgetError::Unpublished)
    }

    /// How many sources each incarnation has, as far as anybody who answers holds some.
    fn ends(&self) -> BTreeMap<Incarnation, u64> {
        let mut ends: BTreeMap<Incarnation, u64> = BTreeMap::new();
        let others = self.live_others().into_iter();
        let others = others.filter_map(|node| Nodes::inventory(self, node).ok());
        for held in others.chain([self.own_inventory()]) {
            for (incarnation, interval) in held.inventory().sources().intervals() {
                let end = ends.entry(incarnation).or_default();
                *end = interval.to.saturating_add(1).max(*end);
            }
        }
        ends
    }

    fn note_forgotten(&self, node: NodeId, ends: &BTreeMap<Incarnation, u64>) -> io::Result<()> {
        self.note(|registry| {
            if registry.node(node).is_none() {
                return false;
            }
            let unsealed = registry.incarnations();
            let unsealed = unsealed.filter(|(_, fate)| fate.node == node && fate.sealed.is_none());
            let lost: Vec<(Incarnation, u64)> = unsealed
                .map(|(incarnation, fate)| {
                    let held = ends.get(&incarnation).copied().unwrap_or(0);
                    (incarnation, held.max(fate.at_least))
                })
                .collect();
            for (incarnation, end) in lost {
                registry.declare_lost(incarnation, end);
            }
            registry.forget(node);
            true
        })
    }

    /// Comes back if others have given this node up: it is there.
    pub(super) fn come_back(&self) {
        let registry = self.registry();
        let known = registry.node(self.identity.node);
        if self.is_leaving() || !known.is_some_and(RegistryEntry::is_forgotten) {
            return;
        }
        warn("others have given this node up by `cluster forget`; it is back");
        let back = self.known_as(clock::now());
        if let Err(error) = self.note(|registry| registry.note_node(self.identity.node, back)) {
            warn(&format!("that this node is back cannot be noted: {error}"));
        }
    }
}

/// The nodes that are not forgotten.
pub(super) fn not_forgotten(registry: &Registry) -> impl Iterator<Item = NodeId> {
    let nodes = registry.nodes();
    nodes
        .filter(|(_, known)| !known.is_forgotten())
        .map(|(node, _)| node)
}
