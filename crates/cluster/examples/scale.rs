//! Sizes and times of what a coordinator handles, for a made-up cluster:
//! `cargo run --release -p logpond-cluster --example scale [NODES] [DAYS] [SEGMENTS_AN_HOUR] [bucket]`
//!
//! A third of the nodes take records in, in journal files of 30 seconds; all of them store, two
//! copies of each segment, of runs of one ingester as affinity makes them. Inventories come from
//! memory here; that nodes are asked whether theirs has changed is not part of the times. With `bucket`
//! all segments are in a bucket, of which each node has read all.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a tool casts numbers that it knows"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use logpond_cluster::births::silent_max;
use logpond_cluster::placement::{Key, Store};
use logpond_cluster::question::{Collection, Question};
use logpond_cluster::registry::RegistryEntry;
use logpond_cluster::repair::{Member, Presence, Repair, Settings};
use logpond_cluster::{
    BucketView, Cover, Fate, HeldJournal, HeldSegment, IndexedInventory, Inventory, NodeId,
    ProcessId, Recent, Registry, StoredUnion, Target,
};
use logpond_record::{Id, Incarnation, SourceId, TimeRange, Timestamp};
use logpond_segment::sources::{Interval, SourceSet};

const HOUR_NS: i64 = 3_600_000_000_000;

/// Journal files of an ingester in an hour.
const FILES_AN_HOUR: u64 = 120;

const COPIES: usize = 2;

/// How often a question is planned after each kind of change.
const REPEATS: usize = 15;

struct Shape {
    nodes: u128,
    days: u64,
    segments_an_hour: u64,
    is_in_bucket: bool,
}

impl Shape {
    fn ingesters(&self) -> u128 {
        (self.nodes / 3).max(1)
    }
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut next = |default: u64| numbers.next().and_then(Result::ok).unwrap_or(default);
    let shape = Shape {
        nodes: u128::from(next(100)),
        days: next(30),
        segments_an_hour: next(66),
        is_in_bucket: std::env::args().any(|text| text == "bucket"),
    };
    let registry = registry(&shape);
    let inventories = inventories(&shape, &registry);
    let segments: usize = inventories.iter().map(|i| i.segments.len()).sum();
    let intervals: usize = inventories
        .iter()
        .flat_map(|i| i.segments.iter())
        .map(|segment| segment.sources.intervals().count())
        .sum();
    let bytes: Vec<usize> = inventories.iter().map(|i| i.to_bytes().len()).collect();
    println!(
        "{} nodes, {} days: {segments} segments with copies, {intervals} intervals of sources",
        shape.nodes, shape.days
    );
    println!(
        "inventories: {} bytes for the cluster, {} a node; of that the registry {}",
        bytes.iter().sum::<usize>(),
        bytes.iter().sum::<usize>() / bytes.len(),
        registry.to_bytes().len()
    );
    let (mut indexed, took) = timed(|| {
        let each = inventories.into_iter();
        each.map(|inventory| Arc::new(IndexedInventory::new(inventory)))
            .collect::<Vec<_>>()
    });
    println!("indexing all inventories: {took:?}");
    tell(&indexed[0]);
    let ranges = [
        ("an hour", 1),
        ("a day", 24),
        ("all", shape.days as i64 * 24),
    ];
    let end = Timestamp(shape.days as i64 * 24 * HOUR_NS);
    let ranges = ranges.map(|(what, hours)| {
        let from = Timestamp(end.0 - hours * HOUR_NS);
        (what, TimeRange { from, to: end })
    });
    for (what, range) in ranges {
        plan(what, &indexed, &registry, range);
    }
    look(&indexed);
    for (what, range) in ranges {
        plan_again(what, &shape, &mut indexed, range);
    }
}

/// What it takes to hear from a node that has taken records in since it was asked last.
fn tell(known: &IndexedInventory) {
    let mut inventory = known.inventory().clone();
    inventory.version += 1;
    take_in(&mut inventory);
    let least = |work: &dyn Fn() -> usize| {
        let mut times = (0..REPEATS).map(|_| timed(work));
        let first = times.next().unwrap_or_default();
        times.fold(
            first,
            |best, next| if next.1 < best.1 { next } else { best },
        )
    };
    let whole = least(&|| {
        let bytes = inventory.to_bytes();
        let read = Inventory::from_bytes(&bytes).map(IndexedInventory::new);
        read.map_or(0, |_| bytes.len())
    });
    let recent = least(&|| {
        let bytes = inventory.recent().to_bytes();
        let read = Recent::from_bytes(&bytes).map(|recent| known.with_recent(recent));
        read.map_or(0, |_| bytes.len())
    });
    println!("a node's news, whole: {whole:?}; only what has changed: {recent:?}");
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Each ingester starts once a day.
fn registry(shape: &Shape) -> Registry {
    let mut registry = Registry::default();
    for node in 1..=shape.nodes {
        let address = format!("10.0.{}.{}:7659", node / 256, node % 256);
        let known = RegistryEntry::there(address, String::new(), 1);
        registry.note_node(NodeId(node), known);
    }
    for ingester in 1..=shape.ingesters() {
        for day in 0..shape.days {
            let name = incarnation(ingester, day);
            let born = Timestamp(day as i64 * 24 * HOUR_NS);
            registry.note(name, Fate::born(NodeId(ingester), born));
            registry.seal(name, 24 * FILES_AN_HOUR);
        }
    }
    registry
}

fn incarnation(ingester: u128, day: u64) -> Incarnation {
    Incarnation((ingester << 64) | u128::from(day))
}

fn inventories(shape: &Shape, registry: &Registry) -> Vec<Inventory> {
    let nodes: Vec<NodeId> = (1..=shape.nodes).map(NodeId).collect();
    let mut all: Vec<Inventory> = nodes
        .iter()
        .map(|node| Inventory::empty(*node, ProcessId(node.0)))
        .collect();
    let shared = Arc::new(registry.clone());
    all.iter_mut()
        .for_each(|inventory| inventory.registry = shared.clone());
    let parts = shape
        .segments_an_hour
        .div_ceil(shape.ingesters() as u64)
        .max(1);
    let files = (FILES_AN_HOUR / parts).max(1);
    for hour in 0..shape.days * 24 {
        for number in 0..shape.segments_an_hour {
            let ingester = u128::from(number) % shape.ingesters() + 1;
            let part = number / shape.ingesters() as u64;
            let from = hour % 24 * FILES_AN_HOUR + part * files;
            let to = from + files - 1;
            let mut sources = SourceSet::new();
            sources.insert_interval(incarnation(ingester, hour / 24), Interval { from, to });
            let mut segment = segment(hour, number, sources);
            if shape.is_in_bucket {
                segment.is_remote = true;
                for inventory in &mut all {
                    Arc::make_mut(&mut inventory.segments).push(segment.clone());
                }
                continue;
            }
            let key = Key::Run {
                ingester: NodeId(ingester),
                slot: hour * parts + part,
            };
            for holder in key.rank(nodes.iter().copied()).iter().take(COPIES) {
                let inventory = &mut all[holder.0 as usize - 1];
                Arc::make_mut(&mut inventory.segments).push(segment.clone());
            }
        }
    }
    if shape.is_in_bucket {
        all.iter_mut()
            .for_each(|inventory| inventory.bucket = BucketView::Read);
    }
    all
}

fn segment(hour: u64, number: u64, sources: SourceSet) -> HeldSegment {
    let start = hour as i64 * HOUR_NS;
    let end = start + HOUR_NS - 1;
    HeldSegment {
        id: Id(u128::from(hour) << 64 | u128::from(number)),
        digest: u128::from(number) << 100,
        bytes: 80 << 20,
        rows: 4_000_000,
        // Clocks of senders differ by some seconds.
        time_min: Timestamp(start - 5_000_000_000),
        time_max: Timestamp(end),
        received_min: Timestamp(start),
        received_max: Timestamp(end),
        is_remote: false,
        sources,
    }
}

fn plan(what: &str, indexed: &[Arc<IndexedInventory>], registry: &Registry, range: TimeRange) {
    let (collected, collecting) = timed(|| {
        let mut collection = Collection::new(registry.clone(), []);
        indexed
            .iter()
            .for_each(|node| collection.answered(node.clone()));
        collection.finish()
    });
    let ((question, tasks), planning) = timed(|| {
        let none = SourceSet::new();
        Question::new(collected, none, range, None, silent_max(COPIES))
    });
    let read: usize = tasks.iter().map(|task| task.share.segments.len()).sum();
    let wanted = question.target().wanted.len();
    println!(
        "a question about {what}: {read} segments of {} nodes and {wanted} sources; \
         collected in {collecting:?}, planned in {planning:?}",
        tasks.len()
    );
}

/// What becomes of an inventory between two questions.
type Change = fn(&mut Inventory);

/// Questions as a server plans them that keeps the union of what is stored from one to the next.
fn plan_again(what: &str, shape: &Shape, indexed: &mut [Arc<IndexedInventory>], range: TimeRange) {
    let mut union = StoredUnion::default();
    let (_, first) = timed(|| plan_by(&mut union, indexed, range));
    println!("by a kept union, about {what}: the first in {first:?}");
    let all = indexed.len();
    let ingesters = (shape.ingesters() as usize).min(all);
    let changes: [(&str, usize, Change); 5] = [
        ("no node has changed", 0, |_| ()),
        ("journals of all ingesters have changed", ingesters, take_in),
        ("1 node has stored more", 1.min(all), store_more),
        ("10 nodes have stored more", 10.min(all), store_more),
        ("all nodes have stored more", all, store_more),
    ];
    for (change, nodes, make) in changes {
        let mut times: Vec<Duration> = (0..REPEATS)
            .map(|_| {
                for held in spread(indexed, nodes) {
                    let mut inventory = held.inventory().clone();
                    inventory.version += 1;
                    make(&mut inventory);
                    *held = Arc::new(IndexedInventory::new(inventory));
                }
                timed(|| plan_by(&mut union, indexed, range)).1
            })
            .collect();
        times.sort_unstable();
        // The least is what it takes where nothing else runs.
        let (least, median) = (times[0], times[REPEATS / 2]);
        println!("  {change}: least {least:?}, median {median:?} of {REPEATS}");
    }
}

/// So many of the nodes, as far from each other as can be.
fn spread(
    indexed: &mut [Arc<IndexedInventory>],
    nodes: usize,
) -> impl Iterator<Item = &mut Arc<IndexedInventory>> {
    let step = indexed.len() / nodes.max(1);
    indexed.iter_mut().step_by(step.max(1)).take(nodes)
}

fn plan_by(union: &mut StoredUnion, indexed: &[Arc<IndexedInventory>], range: TimeRange) -> Cover {
    let stored = union.of(indexed);
    let held: Vec<&IndexedInventory> = indexed.iter().map(|indexed| &**indexed).collect();
    let target = Target::over(&held, &stored);
    Cover::plan_over(&held, &stored, &target.wanted, range, None)
}

/// The sources that a node takes in are named after it here.
fn take_in(inventory: &mut Inventory) {
    let source = SourceId {
        incarnation: Incarnation(inventory.node.0),
        sequence: inventory.version,
    };
    inventory.journal.push(HeldJournal {
        source,
        bytes: 1 << 20,
        rows: 50_000,
        received_min: Timestamp(0),
        received_max: Timestamp(0),
        last: Id(1),
        is_open: true,
    });
}

/// It merges its last segment with a run that it had not.
fn store_more(inventory: &mut Inventory) {
    let version = inventory.version;
    if let Some(segment) = Arc::make_mut(&mut inventory.segments).last_mut() {
        let incarnation = Incarnation(inventory.node.0);
        let (from, to) = (version * 10, version * 10 + 4);
        segment
            .sources
            .insert_interval(incarnation, Interval { from, to });
    }
}

fn look(indexed: &[Arc<IndexedInventory>]) {
    let members: Vec<Member<'_>> = indexed
        .iter()
        .map(|held| Member {
            zone: None,
            node: held.inventory().node,
            presence: Presence::Live,
            held,
        })
        .collect();
    let stores: Vec<Store> = members
        .iter()
        .map(|member| Store {
            node: member.node,
            zone: None,
            free_bytes: 1 << 40,
            is_full: false,
            is_draining: false,
        })
        .collect();
    let mut repair = Repair::new(members[0].node, COPIES, Settings::default());
    let (jobs, took) = timed(|| repair.plan(&members, &stores, 0));
    println!("a look for repair: {} jobs in {took:?}", jobs.len());
}
