//! The nodes, the links between them, and what happens when.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use logpond_cluster::give_up::{Attempt, Copies, Peer};
use logpond_cluster::{NodeId, Registry};
use logpond_record::{Incarnation, Timestamp};
use logpond_segment::mem_disk::SeededRandom;
use logpond_segment::sources::SourceSet;

use super::bucket::Bucket;
use super::disk::Disk;
use super::foreign::ForeignStore;
use super::forward::Forwarder;
use super::ledger::{Ledger, Violation};
use super::message::{BUCKET, Body, Event, FORWARDERS, Place, Reply, ReplyTarget, Request, Timer};
use super::process::Process;
use super::report::Report;

/// Wall clocks begin here.
/// 20 seconds before midnight.
pub(super) const EPOCH_NS: i64 = 1_700_006_380_000_000_000;

/// Faults strike until then.
const FAULTS_END_MS: u64 = 40_000;

/// By then all must be as it should be.
const END_MS: u64 = 160_000;

/// Of the seeds every third has a bucket.
const BUCKETS_EVERY: u64 = 3;

/// Of the seeds every third has zones, if there are stores enough; none of those with a bucket.
const ZONES_EVERY: u64 = 3;

/// A rule that is taken away where the simulation carries it out, so that a run must fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// R1: acknowledgements do not wait for the sync.
    AckBeforeSync,
    /// R2: incarnations are counted by a file on the disk rather than drawn.
    CountedIncarnations,
    /// R3: births are recorded nowhere else.
    UnknownBirths,
    /// R4: a merge leaves a part of a source out.
    SplitSources,
    /// R5: the inputs of a merge retire whatever has become of its output.
    UncheckedRetirement,
    /// R6: what a store gives up it goes on to answer for.
    NoFlags,
    /// R6: one node that says yes is enough.
    OneYes,
    /// R6: copies count wherever they are.
    BlindToZones,
    /// R6: what is left out of a segment that is written anew is asked of nobody.
    UnaskedTrim,
    /// R6: a store goes on to answer for what it is about to leave out.
    UnflaggedTrim,
    /// R5: a segment goes before the one that takes its place is durable.
    EarlyTrim,
    /// R7: sources that are counted elsewhere are counted as well.
    IgnoredExclusions,
    /// R8: deletion believes the clock.
    UnlimitedDeletion,
    /// R8: an ingester whose clock is behind takes records in.
    EarlyStamps,
    /// R9: what nobody could see is taken not to be there.
    BlindCompleteness,
    /// R10: batches that were sent again are counted as if they were new.
    CountedRetries,
    /// R1: what cannot be written is acknowledged.
    AckWhenFull,
    /// R3: a node says that it has recorded what it cannot write.
    UnwrittenRecords,
    /// R5: a node goes on to answer for what it knows to be damaged.
    AnsweredDamage,
    /// R6: a node leaves without waiting until others hold what it has.
    EarlyLeaving,
    /// R3: of a node that has left no more others know than of one that stays.
    BriefFarewell,
    /// R14: a store gives its copy up for one that is uploaded and not listed.
    DropUnlisted,
    /// R14: a node says of what is uploaded that it is listed.
    UploadedIsListed,
    /// R14: a segment is listed beside others that hold some of its sources.
    SharedListing,
    /// R14: a link that could be written is taken for the head.
    WrittenIsListed,
    /// R14: what nobody lists yet is removed at once.
    HastySweep,
    /// R9: a bucket that nobody has read is taken to be empty.
    BlindBucket,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Mutation; 27] = [
        Mutation::AckBeforeSync,
        Mutation::CountedIncarnations,
        Mutation::UnknownBirths,
        Mutation::SplitSources,
        Mutation::UncheckedRetirement,
        Mutation::NoFlags,
        Mutation::OneYes,
        Mutation::BlindToZones,
        Mutation::UnaskedTrim,
        Mutation::UnflaggedTrim,
        Mutation::EarlyTrim,
        Mutation::IgnoredExclusions,
        Mutation::UnlimitedDeletion,
        Mutation::EarlyStamps,
        Mutation::BlindCompleteness,
        Mutation::CountedRetries,
        Mutation::AckWhenFull,
        Mutation::UnwrittenRecords,
        Mutation::AnsweredDamage,
        Mutation::EarlyLeaving,
        Mutation::BriefFarewell,
        Mutation::DropUnlisted,
        Mutation::UploadedIsListed,
        Mutation::SharedListing,
        Mutation::WrittenIsListed,
        Mutation::HastySweep,
        Mutation::BlindBucket,
    ];

    /// Whether it matters only where segments are trimmed: most where nodes hurry, never with a bucket.
    fn is_of_trimming(self) -> bool {
        matches!(
            self,
            Mutation::UnaskedTrim | Mutation::UnflaggedTrim | Mutation::EarlyTrim
        )
    }

    /// Whether it matters only where there is a bucket.
    fn is_of_bucket(self) -> bool {
        matches!(
            self,
            Mutation::DropUnlisted
                | Mutation::UploadedIsListed
                | Mutation::SharedListing
                | Mutation::WrittenIsListed
                | Mutation::HastySweep
                | Mutation::BlindBucket
        )
    }
}

/// Runs a seed.
///
/// # Errors
/// With what went wrong, when a rule was broken.
pub fn run(seed: u64, mutation: Option<Mutation>) -> Result<Report, Violation> {
    let mut world = World::new(seed, mutation);
    world.run()?;
    Ok(world.report)
}

/// A machine and the process on it, if one runs.
pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) takes_in: bool,
    pub(super) stores: bool,
    pub(super) disk: Disk,
    /// An earlier state of the disk.
    pub(super) image: Option<Disk>,
    pub(super) process: Option<Process>,
    pub(super) starts: u64,
    pub(super) paused_until_ms: u64,
    pub(super) clock_offset_ns: i64,
    /// Its disk is lost, or it has left; it never comes back.
    pub(super) is_gone: bool,
    /// It has left, and nothing with it.
    pub(super) has_left: bool,
}

/// Everything.
pub(super) struct World {
    pub(super) now_ms: u64,
    pub(super) random: SeededRandom,
    pub(super) mutation: Option<Mutation>,
    pub(super) copies: usize,
    /// Whether stores are in two zones by turns.
    pub(super) has_zones: bool,
    pub(super) nodes: Vec<Node>,
    /// The object store behind the stores, if there is one.
    pub(super) bucket: Option<Bucket>,
    /// Another cluster's store that writes to it.
    pub(super) foreign: Option<ForeignStore>,
    pub(super) forwarders: Vec<Forwarder>,
    /// One-way.
    pub(super) cuts: BTreeSet<(Place, Place)>,
    pub(super) loses_disks: bool,
    pub(super) restores: bool,
    /// Whether segments are damaged; not where disks go, too: one copy is lost at a time.
    pub(super) damages: bool,
    /// Whether nodes leave.
    pub(super) drains: bool,
    /// What was ever damaged, and when that was last.
    pub(super) damaged: SourceSet,
    pub(super) damaged_ms: u64,
    /// Whether nodes hurry to copy, so that there are many copies to give up.
    pub(super) is_eager: bool,
    pub(super) ledger: Ledger,
    pub(super) report: Report,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, Event>,
    next: u64,
}

impl World {
    fn new(seed: u64, mutation: Option<Mutation>) -> World {
        let mut random = SeededRandom::new(seed);
        let stores = 2 + random.below(4);
        let copies = 1 + random.below(stores.min(3)) as usize;
        let trims = mutation.is_some_and(Mutation::is_of_trimming);
        let has_bucket = (seed.is_multiple_of(BUCKETS_EVERY) && !trims)
            || mutation.is_some_and(Mutation::is_of_bucket);
        let mut world = World {
            now_ms: 0,
            mutation,
            copies,
            has_zones: !has_bucket && !trims && copies > 1 && stores > 2 && seed % ZONES_EVERY == 1,
            nodes: Vec::new(),
            foreign: None,
            bucket: has_bucket.then(Bucket::default),
            forwarders: Vec::new(),
            cuts: BTreeSet::new(),
            loses_disks: random.one_in(2),
            restores: random.one_in(4),
            damages: random.one_in(2),
            drains: random.one_in(2),
            damaged: SourceSet::new(),
            damaged_ms: 0,
            is_eager: random.one_in(2) || trims,
            ledger: Ledger::default(),
            report: Report::default(),
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            next: 0,
            random,
        };
        if world.bucket.is_some() {
            world.copies = copies.min(2);
        }
        let copies = world.copies;
        world.loses_disks &= copies > 1 || world.bucket.is_some();
        world.restores &= copies > 1 && world.bucket.is_none();
        world.damages &= copies > 1 && !world.loses_disks && !world.restores;
        let ingesters = 1 + world.random.below(2);
        let both = world.random.one_in(2);
        for number in 0..stores {
            world.add_node(both && number < ingesters, true);
        }
        for _ in 0..if both { 0 } else { ingesters } {
            world.add_node(true, false);
        }
        for at in 0..1 + world.random.below(2) {
            let waits = !world.random.one_in(4);
            world.forwarders.push(Forwarder::new(at + 1, waits));
            let from_ms = world.random.below(1000);
            world.timer(FORWARDERS + at as usize, from_ms, Timer::Send);
        }
        world.at(500, Event::Fault);
        if world.bucket.is_some() && world.random.one_in(2) {
            let incarnation = Incarnation(world.wide());
            world.foreign = Some(ForeignStore::new(incarnation));
            world.at(100, Event::Foreign);
        }
        world
    }

    /// Adds a machine with an empty disk, and starts it.
    pub(super) fn add_node(&mut self, takes_in: bool, stores: bool) {
        let place = self.nodes.len();
        self.nodes.push(Node {
            id: NodeId(place as u128 + 1),
            takes_in,
            stores,
            disk: Disk::default(),
            image: None,
            process: None,
            starts: 0,
            paused_until_ms: 0,
            clock_offset_ns: 0,
            is_gone: false,
            has_left: false,
        });
        self.start(place);
    }

    fn run(&mut self) -> Result<(), Violation> {
        let mut is_healed = false;
        while let Some((at_ms, number)) = self.queue.pop().map(|Reverse(next)| next) {
            self.now_ms = at_ms;
            let Some(event) = self.events.remove(&number) else {
                continue;
            };
            if at_ms >= FAULTS_END_MS && !is_healed {
                is_healed = true;
                self.heal();
            }
            if at_ms >= END_MS {
                break;
            }
            self.happen(event);
            self.check_step()?;
            if is_healed && self.is_settled() {
                break;
            }
        }
        self.check_end()
    }

    pub(super) fn is_healing(&self) -> bool {
        self.now_ms >= FAULTS_END_MS
    }

    fn happen(&mut self, event: Event) {
        let place = match &event {
            Event::Deliver { to, .. } => Some(*to),
            Event::Timeout { at, .. } | Event::Timer { at, .. } => Some(*at),
            Event::Fault | Event::Foreign | Event::Restart(_) | Event::Uncut(..) => None,
        };
        // A process that stands still sees everything later.
        let paused = place.and_then(|place| self.nodes.get(place));
        if let Some(node) = paused.filter(|node| node.paused_until_ms > self.now_ms) {
            let until_ms = node.paused_until_ms;
            return self.at(until_ms, event);
        }
        match event {
            Event::Deliver { from, to, body } => self.deliver(from, to, body),
            Event::Timeout {
                at,
                process,
                number,
            } => {
                if let Some(waiting) = self.take_waiting(at, process, number) {
                    self.failed(at, waiting);
                }
            }
            Event::Timer { at, process, timer } if at >= FORWARDERS => {
                debug_assert_eq!((process, timer), (0, Timer::Send));
                self.forward(at);
            }
            Event::Timer { at, process, timer } => {
                if self.nodes[at].process.as_ref().map(|p| p.number) == Some(process) {
                    self.on_timer(at, timer);
                }
            }
            Event::Fault => self.fault(),
            Event::Foreign => self.foreign_step(),
            Event::Restart(place) => self.start(place),
            Event::Uncut(from, to) => {
                self.cuts.remove(&(from, to));
            }
        }
    }

    fn deliver(&mut self, from: Place, to: Place, body: Body) {
        match body {
            Body::Request { number, request } => {
                if let (BUCKET, Request::Bucket(ask)) = (to, &request) {
                    let got = self.serve_bucket(ask.clone());
                    return self.reply(to, from, number, Reply::Bucket(got));
                }
                if to >= FORWARDERS || self.nodes[to].process.is_none() {
                    return;
                }
                if let Some(reply) = self.serve(from, to, number, request) {
                    self.reply(to, from, number, reply);
                }
            }
            Body::Reply { number, reply } => {
                let process = self.number_of(to);
                if let Some(waiting) = process.and_then(|p| self.take_waiting(to, p, number)) {
                    self.heard(to, waiting, reply);
                }
            }
        }
    }

    /// The number of the process at a place, if one runs.
    fn number_of(&self, place: Place) -> Option<u64> {
        if place >= FORWARDERS {
            Some(0)
        } else {
            self.nodes[place].process.as_ref().map(|p| p.number)
        }
    }

    fn take_waiting(&mut self, at: Place, process: u64, number: u64) -> Option<ReplyTarget> {
        if at >= FORWARDERS {
            return self.forwarders[at - FORWARDERS].waiting.remove(&number);
        }
        let running = self.nodes[at].process.as_mut()?;
        (running.number == process).then_some(())?;
        running.waiting.remove(&number)
    }

    /// Puts an event down for a moment.
    pub(super) fn at(&mut self, at_ms: u64, event: Event) {
        self.next += 1;
        self.queue.push(Reverse((at_ms, self.next)));
        self.events.insert(self.next, event);
    }

    /// Puts a timer of the process at a place down, so many milliseconds from now.
    pub(super) fn timer(&mut self, at: Place, after_ms: u64, timer: Timer) {
        if let Some(process) = self.number_of(at) {
            let event = Event::Timer { at, process, timer };
            self.at(self.now_ms + after_ms, event);
        }
    }

    /// Sends a request; `waiting` is told of the reply, or that none has come.
    pub(super) fn request(
        &mut self,
        from: Place,
        to: Place,
        request: Request,
        waiting: ReplyTarget,
    ) {
        let Some(process) = self.number_of(from) else {
            return;
        };
        self.next += 1;
        let number = self.next;
        let is_waited_for = !matches!(waiting, ReplyTarget::Nothing);
        if is_waited_for {
            if from >= FORWARDERS {
                self.forwarders[from - FORWARDERS]
                    .waiting
                    .insert(number, waiting)
            } else {
                self.process(from).waiting.insert(number, waiting)
            };
            let timeout_ms = self.now_ms + 1500 + self.random.below(500);
            let event = Event::Timeout {
                at: from,
                process,
                number,
            };
            self.at(timeout_ms, event);
        }
        // A connection does not repeat what it was given once.
        let may_repeat = !matches!(request, Request::Append(_));
        let body = Body::Request { number, request };
        self.send(from, to, body, may_repeat);
    }

    /// Replies to a request.
    pub(super) fn reply(&mut self, from: Place, to: Place, number: u64, reply: Reply) {
        self.send(from, to, Body::Reply { number, reply }, false);
    }

    fn send(&mut self, from: Place, to: Place, body: Body, may_repeat: bool) {
        self.report.messages += 1;
        if self.cuts.contains(&(from, to)) {
            self.report.dropped += 1;
            return;
        }
        let is_calm = self.is_healing() || from == to;
        if !is_calm && self.random.one_in(50) {
            self.report.dropped += 1;
            return;
        }
        let times = if !is_calm && may_repeat && self.random.one_in(40) {
            2
        } else {
            1
        };
        for _ in 0..times {
            let mut delay_ms = 1 + self.random.below(20);
            if !is_calm && self.random.one_in(40) {
                delay_ms += self.random.below(5000);
            }
            if !is_calm && to == BUCKET && self.random.one_in(8) {
                // Stores of objects take their time now and then.
                delay_ms += self.random.below(1500);
            }
            let is_held = |body: &Body| {
                matches!(
                    body,
                    Body::Reply {
                        reply: Reply::Held(_),
                        ..
                    }
                )
            };
            if self.is_eager && is_held(&body) {
                // Long attempts meet others.
                delay_ms += self.random.below(1000);
            }
            let body = body.clone();
            self.at(self.now_ms + delay_ms, Event::Deliver { from, to, body });
        }
    }

    /// The process at a place where one must be running.
    pub(super) fn process(&mut self, place: Place) -> &mut Process {
        let process = self.nodes[place].process.as_mut();
        process.expect("events of ended processes are not delivered")
    }

    /// Whether nothing can be written at a place.
    pub(super) fn is_full(&self, place: Place) -> bool {
        self.nodes[place].disk.full_until_ms > self.now_ms
    }

    /// The clock of a node.
    pub(super) fn clock(&self, place: Place) -> Timestamp {
        let offset_ns = self.nodes[place].clock_offset_ns;
        Timestamp(EPOCH_NS + self.now_ms as i64 * 1_000_000 + offset_ns)
    }

    /// The clocks of the others.
    pub(super) fn peer_clocks(&self, place: Place) -> Vec<Timestamp> {
        let others = (0..self.nodes.len()).filter(|other| *other != place);
        others.map(|other| self.clock(other)).collect()
    }

    /// 128 random bits.
    pub(super) fn wide(&mut self) -> u128 {
        (u128::from(self.random.draw()) << 64) | u128::from(self.random.draw())
    }

    /// How many must say yes before a node gives something up.
    pub(super) fn enough(&self, place: Place) -> Copies {
        match self.mutation {
            Some(Mutation::OneYes) => Copies::on_nodes(1),
            _ => self.copies_wanted(place),
        }
    }

    /// What copies there are to be, as far as a node knows.
    pub(super) fn copies_wanted(&self, place: Place) -> Copies {
        if self.mutation == Some(Mutation::BlindToZones) {
            return Copies::on_nodes(self.copies);
        }
        let leaving = self.leaving_seen(place);
        let process = self.nodes[place].process.as_ref();
        process.map_or(Copies::on_nodes(self.copies), |process| {
            process.registry.copies(self.copies, &leaving)
        })
    }

    /// What copies there are to be, by all stores that are there.
    pub(super) fn copies_true(&self) -> Copies {
        let stores = 0..self.nodes.len();
        let stores = stores.filter(|at| self.nodes[*at].stores && !self.nodes[*at].is_gone);
        let zones: BTreeSet<&str> = stores.map(|place| self.zone(place)).collect();
        Copies {
            nodes: self.copies,
            zones: zones.len().clamp(1, self.copies),
        }
    }

    /// The zone of a node.
    pub(super) fn zone(&self, place: Place) -> &'static str {
        match (self.has_zones && self.nodes[place].stores, place % 2) {
            (false, _) => "",
            (true, 0) => "even",
            (true, _) => "odd",
        }
    }

    /// Where a node knows others to be.
    pub(super) fn peer(&self, place: Place, node: NodeId) -> Peer {
        let process = self.nodes[place].process.as_ref();
        let zone = process.and_then(|process| process.registry.zone(node));
        Peer { node, zone }
    }

    /// The other stores that a node knows of, and where it knows them to be.
    pub(super) fn other_stores(&self, place: Place) -> Vec<Peer> {
        let me = self.nodes[place].id;
        let others = self.stores_known(place).into_iter();
        let others = others.filter(|node| *node != me);
        others.map(|node| self.peer(place, node)).collect()
    }

    /// A fresh name of an attempt.
    pub(super) fn attempt(&mut self) -> Attempt {
        Attempt(self.wide())
    }

    /// Where a node is.
    pub(super) fn place_of(&self, node: NodeId) -> Place {
        (node.0 - 1) as usize
    }

    /// The stores that a node knows of and that are not forgotten, itself included if it is one.
    pub(super) fn stores_known(&self, place: Place) -> Vec<NodeId> {
        let known = self.known(place);
        let stores = known.into_iter();
        stores
            .filter(|node| self.nodes[self.place_of(*node)].stores)
            .collect()
    }

    /// The nodes that a node knows of and that are not forgotten.
    pub(super) fn known(&self, place: Place) -> Vec<NodeId> {
        let process = self.nodes[place].process.as_ref();
        let registry = process.map(|process| &process.registry);
        let nodes = registry.into_iter().flat_map(Registry::nodes);
        nodes
            .filter(|(_, known)| !known.is_forgotten())
            .map(|(node, _)| node)
            .collect()
    }

    /// What a node knows of all, as a message.
    pub(super) fn registry_of(&mut self, place: Place) -> Arc<Registry> {
        Arc::new(self.process(place).registry.clone())
    }
}
