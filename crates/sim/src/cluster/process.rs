//! A process: what it knows while it runs, how it starts, and whom it tells what.

use std::collections::BTreeMap;
use std::sync::Arc;

use logpond_cluster::Day;
use logpond_cluster::births::{Ends, JoiningNode, Publication, lost_lives, others_for_birth};
use logpond_cluster::consume::Consume;
use logpond_cluster::expiry::Deletion;
use logpond_cluster::give_up::{Attempt, GiveUp};
use logpond_cluster::offers::{OfferedFile, Offers};
use logpond_cluster::registry::RegistryEntry;
use logpond_cluster::repair::Repair;
use logpond_cluster::trim::Trim;
use logpond_cluster::{Holdings, NodeId, Registry};
use logpond_record::{Id, Incarnation, SourceId};
use logpond_segment::sources::SourceSet;

use super::ask::PendingQuestion;
use super::disk::{Contents, content};
use super::message::{Event, InventoryView, Place, Reply, ReplyTarget, Request, Timer};
use super::offload::Offload;
use super::remote::ReadTask;
use super::world::{Mutation, World};

/// Everything goes faster here than in the product, so that short runs see all of it.
const OFFERS: logpond_cluster::offers::Settings = logpond_cluster::offers::Settings {
    lease_ms: 5_000,
    claim_bytes: 64,
    claim_rows: 1 << 20,
    gather_ms: 100,
    slot_ms: 5_000,
    steal_ms: 2_000,
    retry_ms: 2_000,
    claims_per_store_max: 2,
};

const REPAIR: logpond_cluster::repair::Settings = logpond_cluster::repair::Settings {
    gone_ms: 8_000,
    settle_ms: 300,
    takeover_ms: 3_000,
    spread_ms: 500,
    failed_ms: 2_000,
};

const EAGER_REPAIR: logpond_cluster::repair::Settings = logpond_cluster::repair::Settings {
    gone_ms: 2_000,
    settle_ms: 0,
    takeover_ms: 200,
    spread_ms: 0,
    failed_ms: 500,
};

const TRIM: logpond_cluster::trim::Settings = logpond_cluster::trim::Settings {
    after_ms: 1_000,
    failed_ms: 2_000,
    percent_min: 0,
    bytes_min: 0,
};

const EAGER_TRIM: logpond_cluster::trim::Settings = logpond_cluster::trim::Settings {
    after_ms: 0,
    failed_ms: 500,
    ..TRIM
};

/// The incarnation that a process writes.
pub(super) struct Life {
    pub(super) incarnation: Incarnation,
    pub(super) birth: Publication,
    /// The number of the next source.
    pub(super) next: u64,
    /// The source that originals are appended to, and since when.
    pub(super) open: Option<(SourceId, u64)>,
}

/// A batch that waits to be acknowledged.
pub(super) struct UnsyncedBatch {
    pub(super) source: SourceId,
    pub(super) index: usize,
    pub(super) to: Place,
    pub(super) number: u64,
}

/// A file that is being given up.
pub(super) struct GiveUpTask {
    pub(super) give_up: GiveUp,
    /// A segment, or journal files.
    pub(super) segment: Option<Id>,
    /// Whether it is a part of the segment.
    pub(super) is_part: bool,
}

/// A segment that another one is to take the place of, without what others have confirmed.
#[derive(Clone)]
pub(super) struct TrimTask {
    pub(super) segment: Id,
    pub(super) attempt: Attempt,
    pub(super) confirmed: SourceSet,
}

/// A claim that is worked on.
pub(super) struct ConsumeTask {
    pub(super) consume: Consume,
    pub(super) ingester: Place,
}

/// The action that follows when a segment is durable.
pub(super) enum NextAction {
    Consume(u64),
    Reply { to: Place, number: u64 },
    Retire(Vec<Id>),
    Trim(TrimTask),
}

/// A process.
pub(super) struct Process {
    pub(super) number: u64,
    pub(super) waiting: BTreeMap<u64, ReplyTarget>,
    pub(super) registry: Registry,
    pub(super) join: JoiningNode,
    pub(super) seals: Publication,
    pub(super) life: Option<Life>,
    pub(super) ends: Ends,
    pub(super) offers: Offers,
    /// What was given up by this process, so that stores have it.
    pub(super) dropped: SourceSet,
    pub(super) unsynced: Vec<UnsyncedBatch>,
    pub(super) holdings: Holdings,
    pub(super) consuming: BTreeMap<u64, ConsumeTask>,
    pub(super) giving: BTreeMap<Attempt, GiveUpTask>,
    pub(super) writing: BTreeMap<Id, (Contents, NextAction)>,
    /// Outputs of merges whose inputs are still live.
    pub(super) merged: BTreeMap<Id, Vec<Id>>,
    /// Outputs of trimming; what they take the place of is still live.
    pub(super) trimmed: BTreeMap<Id, TrimTask>,
    pub(super) repair: Repair,
    pub(super) trim: Trim,
    /// What each node said last, and when.
    pub(super) seen: BTreeMap<NodeId, (Arc<InventoryView>, u64)>,
    pub(super) asking: BTreeMap<u64, PendingQuestion>,
    pub(super) deletion: Deletion,
    /// That this node has left, as others have recorded it.
    pub(super) farewell: Option<Publication>,
    pub(super) version: u64,
    /// What it knows of the bucket, if it has one.
    pub(super) offload: Option<Offload>,
    /// Shares of questions that wait for the bucket.
    pub(super) reading: BTreeMap<u64, ReadTask>,
}

impl Process {
    /// Whether another registry has the seals of all earlier lives that this one has.
    fn knows_seals(&self, me: NodeId, other: &Registry) -> bool {
        let living = self.life.as_ref().map(|life| life.incarnation);
        let mut own = self.registry.incarnations();
        own.all(|(name, fate)| {
            let is_over = fate.node == me && Some(name) != living && fate.declared_lost.is_none();
            !is_over || other.fate(name).is_some_and(|f| f.sealed.is_some())
        })
    }
}

impl World {
    /// Starts a process on a machine: recovers what the disk holds.
    pub(super) fn start(&mut self, place: Place) {
        if self.nodes[place].process.is_some() || self.nodes[place].is_gone {
            return;
        }
        if self.is_full(place) {
            // It cannot note how its earlier lives have ended.
            let until_ms = self.nodes[place].disk.full_until_ms;
            return self.at(until_ms, Event::Restart(place));
        }
        self.nodes[place].starts += 1;
        let number = self.wide() as u64 | 1;
        let now_ms = self.now_ms;
        let (node, copies) = (self.nodes[place].id, self.copies);
        let now = self.clock(place);
        let (repair, trim) = if self.is_eager {
            (EAGER_REPAIR, EAGER_TRIM)
        } else {
            (REPAIR, TRIM)
        };
        let disk = &mut self.nodes[place].disk;
        let mut offers = Offers::new(node, OFFERS);
        let mut ends = Ends::default();
        let files: Vec<SourceId> = disk.journal().map(|(source, _)| source).collect();
        for source in files {
            ends.note(source);
            if let Some(file) = disk.file_mut(source) {
                file.is_closed = true;
                file.synced = file.frames.len();
                self.ledger.closed(source, &file.frames);
                let content = content(source, &file.frames);
                let bytes = content.rows;
                let day = Day::of(file.received);
                offers.add(OfferedFile { content, bytes }, day, now_ms);
            }
        }
        let live = disk.live();
        let mut holdings = Holdings::new(live.map(|(id, segment)| (id, segment.sources())));
        holdings.set_draining(disk.is_leaving);
        let has_bucket = self.bucket.is_some() && self.nodes[place].stores;
        let offload = has_bucket.then(|| Offload::new(now_ms));
        holdings.set_listed(has_bucket.then(SourceSet::new));
        let disk = &self.nodes[place].disk;
        let registry = disk.registry.clone();
        self.nodes[place].process = Some(Process {
            number,
            waiting: BTreeMap::new(),
            registry,
            join: JoiningNode::default(),
            seals: Publication::new(),
            life: None,
            ends,
            offers,
            dropped: SourceSet::new(),
            unsynced: Vec::new(),
            holdings,
            consuming: BTreeMap::new(),
            giving: BTreeMap::new(),
            writing: BTreeMap::new(),
            merged: BTreeMap::new(),
            trimmed: BTreeMap::new(),
            repair: Repair::new(node, copies, repair),
            trim: Trim::new(node, copies, trim),
            seen: BTreeMap::new(),
            asking: BTreeMap::new(),
            deletion: Deletion::new(now, now_ms),
            farewell: None,
            version: 0,
            offload,
            reading: BTreeMap::new(),
        });
        self.introduce(place);
        self.set_timers(place);
    }

    /// Notes the node itself, and how its earlier lives have ended.
    fn introduce(&mut self, place: Place) {
        let (node, version) = (self.nodes[place].id, self.now_ms + 1);
        let zone = self.zone(place).to_owned();
        let process = self.process(place);
        let known = RegistryEntry::there(String::new(), zone, version);
        process.registry.note_node(node, known);
        self.tell_seed(place);
        let process = self.process(place);
        let to_seal = process.ends.to_seal(node, &process.registry, None);
        for (incarnation, end) in to_seal {
            process.registry.seal(incarnation, end);
        }
        self.write_registry(place);
    }

    /// Somebody tells a node an address to join.
    fn tell_seed(&mut self, place: Place) {
        let node = self.nodes[place].id;
        let mut others = self.nodes.iter().filter(|other| other.id != node);
        let seed = others.find(|other| !other.is_gone).map(|other| other.id);
        if let Some(seed) = seed {
            let known = RegistryEntry::there(String::new(), String::new(), 0);
            self.process(place).registry.note_node(seed, known);
        }
    }

    fn set_timers(&mut self, place: Place) {
        let node = &self.nodes[place];
        let (takes_in, stores) = (node.takes_in, node.stores);
        for timer in [Timer::Gossip, Timer::Ask] {
            self.again(place, timer);
        }
        if takes_in {
            self.again(place, Timer::Ingest);
        }
        if stores {
            for timer in [Timer::Consume, Timer::Merge, Timer::Look, Timer::Purge] {
                self.again(place, timer);
            }
            if self.bucket.is_some() {
                self.again(place, Timer::Offload);
                self.again(place, Timer::Follow);
            }
        }
    }

    /// Puts a timer down that comes again and again.
    fn again(&mut self, place: Place, timer: Timer) {
        let every_ms = match timer {
            Timer::Ingest => 150,
            Timer::Consume => 200,
            Timer::Merge => 900,
            Timer::Look => 1_000,
            Timer::Purge => 3_000,
            Timer::Gossip => 1_000,
            Timer::Offload => 300,
            Timer::Follow => 400,
            _ => 1_500,
        };
        let after_ms = every_ms / 2 + self.random.below(every_ms);
        self.timer(place, after_ms, timer);
    }

    /// Does what it is time for.
    pub(super) fn on_timer(&mut self, place: Place, timer: Timer) {
        match timer {
            Timer::Ingest => self.ingest(place),
            Timer::Consume => self.claim(place),
            Timer::Merge => self.merge(place),
            Timer::Look => self.look(place),
            Timer::Gossip => {
                self.gossip(place);
                if self.nodes[place].process.is_none() {
                    return;
                }
            }
            Timer::Ask => self.ask(place),
            Timer::Purge => self.purge(place),
            Timer::Offload => self.begin_offload(place),
            Timer::Follow => self.follow_bucket(place),
            Timer::Synced { source, count } => return self.synced(place, source, count),
            Timer::Written(id) => return self.written(place, id),
            Timer::Named(id) => return self.named(place, id),
            Timer::Recorded => return self.recorded(place),
            Timer::Retire(output) => return self.retire_inputs(place, output),
            Timer::Send => return,
        }
        self.again(place, timer);
    }

    /// Makes what a node knows durable; [`World::recorded`] follows.
    pub(super) fn write_registry(&mut self, place: Place) {
        let registry = self.registry_of(place);
        self.process(place).version += 1;
        self.nodes[place].disk.write_registry(&registry);
        let after_ms = 1 + self.random.below(5);
        self.timer(place, after_ms, Timer::Recorded);
    }

    fn recorded(&mut self, place: Place) {
        self.nodes[place].disk.sync_registry();
        let registry = self.nodes[place].disk.registry.clone();
        let node = self.nodes[place].id;
        let process = self.process(place);
        let is_sealed = |life: &Option<Life>| {
            let living = life.as_ref().map(|life| life.incarnation);
            process.ends.to_seal(node, &registry, living).is_empty()
        };
        if is_sealed(&process.life) {
            process.seals.recorded_here();
        }
        if let Some(farewell) = &mut process.farewell
            && registry.node(node).is_some_and(RegistryEntry::is_forgotten)
        {
            farewell.recorded_here();
        }
        if let Some(life) = &mut process.life
            && registry.fate(life.incarnation).is_some()
        {
            life.birth.recorded_here();
        }
        self.check_joined(place);
        self.publish(place);
    }

    fn check_joined(&mut self, place: Place) {
        let me = self.nodes[place].id;
        let mut others = self.known(place);
        others.retain(|node| *node != me);
        let copies = self.copies;
        if self
            .process(place)
            .join
            .is_joined(copies, &others, place == 0)
        {
            self.nodes[place].disk.is_joined = true;
        }
    }

    /// Tells others of what they must know of this node.
    pub(super) fn publish(&mut self, place: Place) {
        let me = self.nodes[place].id;
        let (copies, is_joined) = (self.copies, self.nodes[place].disk.is_joined);
        let mut others = self.known(place);
        others.retain(|node| *node != me);
        // Any of them; those that are down are not asked for ever.
        let turn = self.random.below(others.len().max(1) as u64) as usize;
        others.rotate_left(turn);
        let leaves = self.nodes[place].disk.is_leaving;
        let farewell_others = leaves.then(|| self.needed(place));
        let process = self.process(place);
        let birth = others_for_birth(copies, others.len());
        let mut told = Vec::new();
        if !is_joined {
            told.extend(process.join.to_tell(&others));
        }
        let seals = farewell_others.unwrap_or(birth);
        told.extend(process.seals.to_tell(&others, seals));
        if let Some(life) = &process.life {
            told.extend(life.birth.to_tell(&others, birth));
        }
        if let Some(farewell) = &process.farewell {
            told.extend(farewell.to_tell(&others, seals));
        }
        told.sort_unstable();
        told.dedup();
        for node in told {
            let to = self.place_of(node);
            let registry = Arc::new(self.nodes[place].disk.registry.clone());
            self.request(place, to, Request::Record(registry), ReplyTarget::Record);
        }
    }

    /// Takes note of what another node knows; the reply follows once it is durable.
    pub(super) fn record(&mut self, place: Place, registry: &Registry) -> Option<Reply> {
        if self.is_full(place) && self.process(place).registry.clone().merge(registry) {
            self.report.refused_full += 1;
            return self.pretend_recorded(place, registry);
        }
        if self.process(place).registry.merge(registry) {
            self.forget_recorders(place);
            self.write_registry(place);
        }
        // A sync takes a moment, which the network's delay stands for: what is replied must be
        // durable now.
        self.nodes[place].disk.sync_registry();
        let known = Arc::new(self.nodes[place].disk.registry.clone());
        let node = &self.nodes[place];
        Some(Reply::Recorded {
            node: node.id,
            known,
            has_joined: node.disk.is_joined,
        })
    }

    /// What is replied where nothing can be written: nothing.
    fn pretend_recorded(&self, place: Place, registry: &Registry) -> Option<Reply> {
        let node = &self.nodes[place];
        (self.mutation == Some(Mutation::UnwrittenRecords)).then(|| Reply::Recorded {
            node: node.id,
            known: Arc::new(registry.clone()),
            has_joined: node.disk.is_joined,
        })
    }

    /// Births that a forgotten node recorded are to be recorded by another.
    fn forget_recorders(&mut self, place: Place) {
        let process = self.process(place);
        let nodes = process.registry.nodes();
        let forgotten: Vec<NodeId> = nodes
            .filter(|(_, known)| known.is_forgotten())
            .map(|(node, _)| node)
            .collect();
        for node in forgotten {
            if let Some(life) = &mut process.life {
                life.birth.lost(node);
            }
        }
    }

    /// Another node has recorded what this one knew.
    pub(super) fn recorded_by(
        &mut self,
        place: Place,
        node: NodeId,
        known: &Registry,
        has_joined: bool,
    ) {
        let me = self.nodes[place].id;
        let process = self.process(place);
        if known.node(me).is_some() {
            process.join.recorded_by(node, has_joined);
        }
        if process.knows_seals(me, known) {
            process.seals.recorded_by(node);
        }
        if let Some(farewell) = &mut process.farewell
            && known.node(me).is_some_and(RegistryEntry::is_forgotten)
        {
            farewell.recorded_by(node);
        }
        if let Some(life) = &mut process.life
            && known.fate(life.incarnation).is_some()
            && has_joined
        {
            life.birth.recorded_by(node);
        }
        if self.is_full(place) {
            return;
        }
        if self.process(place).registry.merge(known) {
            self.forget_recorders(place);
            // It counts as joined once it knows durably what the others know.
            self.write_registry(place);
        } else {
            self.check_joined(place);
        }
    }

    /// Gives up lives that this disk no longer knows of.
    fn declare_lost(&mut self, place: Place) {
        let node = self.nodes[place].id;
        let process = self.process(place);
        let living = process.life.as_ref().map(|life| life.incarnation);
        if lost_lives(node, &process.registry, living).is_empty() || self.is_full(place) {
            return;
        }
        for (incarnation, end) in self.ends_of(place, node) {
            if Some(incarnation) != living {
                self.process(place).registry.declare_lost(incarnation, end);
            }
        }
        self.write_registry(place);
    }

    fn gossip(&mut self, place: Place) {
        if self.is_healing() {
            self.forget_all();
        }
        let known = self.known(place);
        let mut others = known.iter().map(|node| self.place_of(*node));
        if !others.any(|other| other != place && !self.nodes[other].is_gone) {
            // Whom it was told to join has left before anybody had heard of it.
            self.tell_seed(place);
        }
        self.declare_lost(place);
        self.leave(place);
        if self.nodes[place].process.is_none() {
            return;
        }
        self.publish(place);
        let me = self.nodes[place].id;
        let others = self.known(place);
        let others: Vec<NodeId> = others.into_iter().filter(|node| *node != me).collect();
        if !others.is_empty() {
            let at = self.random.below(others.len() as u64) as usize;
            let to = self.place_of(others[at]);
            let registry = Arc::new(self.nodes[place].disk.registry.clone());
            self.request(place, to, Request::Record(registry), ReplyTarget::Record);
        }
    }
}
