//! Any number of writers against one store, and what a reader sees of the table at every moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use logpond_cluster::Day;
use logpond_cluster::chain::{Change, Link, SegmentEntry, Verdict};
use logpond_record::{Id, Timestamp};
use logpond_segment::rows::ColumnType;
use logpond_segment::sources::SourceSet;
use proptest::prelude::*;

use super::super::actions::Commit;
use super::super::columns::Columns;
use super::super::names::LogName;
use super::super::publish::{Limits, OpenTable, PublishReport};
use super::super::table::Table;
use super::{NOON, columns, listed};
use crate::chains::Heads;
use crate::objects::{BucketError, CreateOutcome, FailureKind, ObjectEntry, Objects};

const WRITERS: usize = 3;
const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

/// What becomes of an attempt to write a version.
#[derive(Clone, Copy, Debug)]
enum Arrival {
    Now,
    /// It is written, and nobody is told.
    Unheard,
    Never,
    /// It fails, and arrives some time after.
    Later,
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    /// The chains go on.
    Advance,
    /// A writer publishes heads that are so many changes old. Before its attempt arrives, another writer publishes.
    Publish(usize, usize, Arrival, Option<(usize, usize)>),
    /// A request that was given up arrives.
    Late(usize),
    /// The store fails once, after so many more removals.
    Jam(usize),
    /// A server starts anew.
    Forget(usize),
}

#[derive(Default)]
struct World {
    objects: BTreeMap<String, (Bytes, u64)>,
    time: u64,
    late: Vec<(String, Bytes)>,
    next: Option<Arrival>,
    jam: Option<usize>,
    /// The versions of the table, and not what was written under their names once these were free again.
    versions: Vec<Bytes>,
}

impl World {
    fn create(&mut self, name: &str, body: Bytes) -> CreateOutcome {
        if self.objects.contains_key(name) {
            return CreateOutcome::Exists;
        }
        if LogName::parse(name) == Some(LogName::Commit(self.versions.len() as u64)) {
            self.versions.push(body.clone());
        }
        self.put(name, body);
        CreateOutcome::New
    }

    fn put(&mut self, name: &str, body: Bytes) {
        self.time += 1;
        self.objects.insert(name.to_owned(), (body, self.time));
    }
}

type Meanwhile = Box<dyn FnOnce() + Send>;

/// A writer's way to the store.
#[derive(Clone, Default)]
struct Way {
    world: Arc<Mutex<World>>,
    meanwhile: Arc<Mutex<Option<Meanwhile>>>,
}

impl Way {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }
}

impl Objects for Way {
    fn read(&self, _: &str, _: u64, _: u64) -> Result<Bytes, BucketError> {
        panic!("no segment is read")
    }

    fn get(&self, name: &str, _: u64) -> Result<Option<Bytes>, BucketError> {
        Ok(self.world().objects.get(name).map(|(body, _)| body.clone()))
    }

    fn create(&self, name: &str, body: Bytes) -> Result<CreateOutcome, BucketError> {
        if matches!(LogName::parse(name), Some(LogName::Checkpoint(_))) {
            return Ok(self.world().create(name, body));
        }
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        let mut world = self.world();
        let arrival = world.next.take().unwrap_or(Arrival::Now);
        match arrival {
            Arrival::Now => return Ok(world.create(name, body)),
            Arrival::Unheard => drop(world.create(name, body)),
            Arrival::Never => {}
            Arrival::Later => world.late.push((name.to_owned(), body)),
        }
        Err(failure("create", name))
    }

    fn put(&self, name: &str, body: Bytes) -> Result<(), BucketError> {
        self.world().put(name, body);
        Ok(())
    }

    fn list(&self, prefix: &str, behind: Option<&str>) -> Result<Vec<ObjectEntry>, BucketError> {
        let world = self.world();
        let is_listed =
            |name: &str| name.starts_with(prefix) && behind.is_none_or(|behind| name > behind);
        let entries = world.objects.iter().filter(|(name, _)| is_listed(name));
        let entry = |(name, (body, time)): (&String, &(Bytes, u64))| ObjectEntry {
            name: name.clone(),
            bytes: body.len() as u64,
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(*time),
        };
        Ok(entries.map(entry).collect())
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        let mut world = self.world();
        world.jam = match world.jam {
            Some(0) => {
                world.jam = None;
                return Err(failure("remove", name));
            }
            left => left.map(|left| left - 1),
        };
        world.objects.remove(name);
        Ok(())
    }
}

fn failure(operation: &'static str, name: &str) -> BucketError {
    BucketError {
        operation,
        name: name.to_owned(),
        kind: FailureKind::Unavailable,
        source: "no answer".into(),
    }
}

fn nonce() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed))
}

fn open(world: &Arc<Mutex<World>>, retention: u64) -> (Way, OpenTable) {
    let way = Way {
        world: Arc::clone(world),
        ..Way::default()
    };
    let limits = Limits {
        checkpoint_interval: 4,
        retention: Duration::from_secs(retention),
        actions_max: 5,
    };
    (
        way.clone(),
        OpenTable::with_limits(Arc::new(way), nonce, limits),
    )
}

/// Columns that depend on the segment, so that they are of one type at some times only.
fn columns_of(segment: &SegmentEntry) -> Columns {
    let kind = match segment.id.0 % 5 {
        0 => ColumnType::Text,
        _ => ColumnType::Int,
    };
    columns(&[("status", kind), ("host", ColumnType::Text)])
}

/// Publishes these heads, or as many of them as go into one version.
fn publish(table: &mut OpenTable, heads: &Heads) -> PublishReport {
    let mut columns = |_, segment: &SegmentEntry| Ok(columns_of(segment));
    let published = table.publish(heads, &mut columns, NOON);
    published.unwrap_or_else(|error| {
        // Nothing else fails: what is read can be, always.
        assert_eq!(error.operation, "remove", "{error:?}");
        PublishReport::default()
    })
}

/// Heads of two days, each step one change later than the one before.
fn history(changes: Vec<(bool, BTreeSet<u64>)>) -> Vec<Heads> {
    let mut heads = Heads::new();
    let mut all = vec![heads.clone()];
    for (number, (is_later, sources)) in (1_u128..).zip(changes) {
        let time = Timestamp(NOON.0 + i64::from(is_later) * DAY_NS);
        // Days share no sources.
        let sources = sources.into_iter().map(|s| s + 100 * u64::from(is_later));
        let (segment, day) = (listed(number, time, sources), Day::of(time));
        let empty = Arc::new(Link::empty(day));
        let head = heads.get(&day).unwrap_or(&empty);
        let change = match head.segments.first() {
            Some(oldest) if number % 7 == 0 => Change::Expire(vec![oldest.id]),
            _ => Change::List(segment),
        };
        if let Verdict::Write(link) = head.decide(&change, NOON) {
            heads.insert(day, Arc::new(link));
            all.push(heads.clone());
        }
    }
    all
}

/// What every version holds, given those before.
struct Checker {
    sources: BTreeMap<Id, SourceSet>,
    /// The segments of each day's heads, by number.
    links: BTreeMap<(Day, u64), BTreeSet<Id>>,
    seen: usize,
    table: Table,
}

impl Checker {
    fn new(history: &[Heads]) -> Checker {
        let links = history.iter().flatten();
        let segments = links.clone().flat_map(|(_, link)| &link.segments);
        let ids = |link: &Link| link.segments.iter().map(|s| s.id).collect();
        Checker {
            sources: segments.map(|s| (s.id, s.sources.clone())).collect(),
            links: links
                .map(|(day, link)| ((*day, link.number), ids(link)))
                .collect(),
            seen: 0,
            table: Table::default(),
        }
    }

    /// Looks at the versions that are new, and at what somebody reads who starts now.
    fn look(&mut self, world: &Arc<Mutex<World>>) {
        let new = world.lock().unwrap().versions[self.seen..].to_vec();
        for body in new {
            self.seen += 1;
            let before = self.table.heads();
            self.table.apply(Commit::from_text(&body).unwrap());
            for (day, number) in &before {
                assert!(self.table.heads()[day] >= *number, "{day} goes back");
            }
            self.check_rows();
        }
        let (_, mut reader) = open(world, 0);
        let read = reader.read_all();
        let found: Vec<_> = read.live().collect();
        assert!(
            found.iter().copied().eq(self.table.live()),
            "another table is read"
        );
        assert_eq!(read.heads(), self.table.heads());
    }

    /// Of each day there is one head, and no source is there twice.
    fn check_rows(&self) {
        let mut days: BTreeMap<Day, BTreeSet<Id>> = BTreeMap::new();
        let mut sources = SourceSet::new();
        for (day, id) in self.table.live() {
            assert!(
                sources.is_disjoint(&self.sources[&id]),
                "{id} is there twice"
            );
            sources.union_with(&self.sources[&id]);
            days.entry(day).or_default().insert(id);
        }
        for (day, number) in self.table.heads() {
            let listed = days.remove(&day).unwrap_or_default();
            assert_eq!(listed, self.links[&(day, number)], "{day}");
        }
        assert!(days.is_empty(), "days without a head");
    }
}

fn event() -> impl Strategy<Value = Event> {
    let arrival = prop_oneof![
        6 => Just(Arrival::Now),
        1 => Just(Arrival::Unheard),
        1 => Just(Arrival::Never),
        2 => Just(Arrival::Later),
    ];
    let who = || (0..WRITERS, 0usize..4);
    prop_oneof![
        4 => Just(Event::Advance),
        8 => (who(), arrival, prop::option::of(who()))
            .prop_map(|((who, age), arrival, other)| Event::Publish(who, age, arrival, other)),
        2 => (0usize..4).prop_map(Event::Late),
        1 => (0usize..6).prop_map(Event::Jam),
        1 => (0..WRITERS).prop_map(Event::Forget),
    ]
}

/// Writers, and how far the chains are.
struct Run {
    world: Arc<Mutex<World>>,
    writers: Vec<(Way, Arc<Mutex<OpenTable>>)>,
    history: Arc<Vec<Heads>>,
    at: usize,
    retention: u64,
}

impl Run {
    fn heads(&self, age: usize) -> Heads {
        self.history[self.at.saturating_sub(age)].clone()
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Advance => self.at = (self.at + 1).min(self.history.len() - 1),
            Event::Publish(who, age, arrival, other) => self.publish(who, age, arrival, other),
            Event::Late(number) => {
                let mut world = self.world.lock().unwrap();
                if number < world.late.len() {
                    let (name, body) = world.late.remove(number);
                    world.create(&name, body);
                }
            }
            Event::Jam(removals) => self.world.lock().unwrap().jam = Some(removals),
            Event::Forget(who) => {
                let (way, table) = open(&self.world, self.retention);
                self.writers[who] = (way, Arc::new(Mutex::new(table)));
            }
        }
    }

    fn publish(&self, who: usize, age: usize, arrival: Arrival, other: Option<(usize, usize)>) {
        let (way, table) = &self.writers[who];
        self.world.lock().unwrap().next = None;
        let world = Arc::clone(&self.world);
        let other = other.filter(|(other, _)| *other != who);
        let other = other.map(|(other, age)| (Arc::clone(&self.writers[other].1), self.heads(age)));
        *way.meanwhile.lock().unwrap() = Some(Box::new(move || {
            if let Some((table, heads)) = other {
                publish(&mut table.lock().unwrap(), &heads);
            }
            world.lock().unwrap().next = Some(arrival);
        }));
        publish(&mut table.lock().unwrap(), &self.heads(age));
        // Where nothing was written.
        *way.meanwhile.lock().unwrap() = None;
        self.world.lock().unwrap().next = None;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_version_has_one_head_of_each_day(
        changes in prop::collection::vec(
            (any::<bool>(), prop::collection::btree_set(0u64..12, 1..5)), 1..24),
        events in prop::collection::vec(event(), 0..80),
        retention in 0u64..30,
    ) {
        let history = Arc::new(history(changes));
        let world = Arc::<Mutex<World>>::default();
        let writers = (0..WRITERS).map(|_| {
            let (way, table) = open(&world, retention);
            (way, Arc::new(Mutex::new(table)))
        });
        let writers = writers.collect();
        let mut checker = Checker::new(&history);
        let mut run = Run { world, writers, history, at: 0, retention };
        for event in events {
            run.step(event);
            checker.look(&run.world);
        }
        let last = run.history.last().unwrap();
        for (_, table) in &run.writers {
            while !publish(&mut table.lock().unwrap(), last).is_whole {}
            checker.look(&run.world);
        }
        let listed = last.iter().flat_map(|(day, link)| link.segments.iter().map(|s| (*day, s.id)));
        prop_assert!(checker.table.live().eq(listed));
    }
}

#[test]
fn a_log_that_was_made_anew_is_read_anew() {
    // So many versions of the new log there are when the writer of the old one, which had four, comes back.
    for versions in 1..9 {
        let changes = (0..12_u64).map(|n| (false, BTreeSet::from([n])));
        let history = history(changes.collect());
        let world = Arc::<Mutex<World>>::default();
        let (_, mut old) = open(&world, 10);
        for heads in &history[1..5] {
            publish(&mut old, heads);
        }
        publish(&mut old, &history[4]);
        *world.lock().unwrap() = World {
            time: 100,
            ..World::default()
        };
        let (_, mut new) = open(&world, 10);
        let from = history.len() - versions - 1;
        for heads in &history[from..history.len() - 1] {
            publish(&mut new, heads);
        }
        assert_eq!(world.lock().unwrap().versions.len(), versions);
        let mut checker = Checker::new(&history);
        publish(&mut old, history.last().unwrap());
        checker.look(&world);
        let last = history.last().unwrap().iter();
        let listed = last.flat_map(|(day, link)| link.segments.iter().map(|s| (*day, s.id)));
        assert!(checker.table.live().eq(listed));
    }
}

#[test]
fn the_log_stays_short() {
    let changes = (0..200_u64).map(|n| (false, BTreeSet::from([n])));
    let history = history(changes.collect());
    let world = Arc::<Mutex<World>>::default();
    let (_, mut table) = open(&world, 10);
    for heads in &history {
        while !publish(&mut table, heads).is_whole {}
        let world = world.lock().unwrap();
        // Two checkpoints' worth, and what is not old.
        assert!(
            world.objects.len() <= 4 * 3 + 10 + 4,
            "{}",
            world.objects.len()
        );
    }
    assert_eq!(world.lock().unwrap().versions.len(), 200);
}

#[test]
fn a_segment_that_cannot_be_read_holds_up_its_day_alone() {
    let history = history(vec![
        (false, BTreeSet::from([1])),
        (false, BTreeSet::from([2])),
        (true, BTreeSet::from([3])),
    ]);
    let (_, mut table) = open(&Arc::default(), 10);
    let mut columns = |day: Day, segment: &SegmentEntry| match segment.id {
        Id(2) => Err(BucketError {
            operation: "read",
            name: format!("{day}/2"),
            kind: FailureKind::Unavailable,
            source: "it is damaged".into(),
        }),
        _ => Ok(columns_of(segment)),
    };
    let published = table.publish(&history[3], &mut columns, NOON).unwrap();
    assert_eq!((published.version, published.added), (Some(0), 1));
    assert_eq!(published.skipped.len(), 1);
    assert_eq!(published.skipped[0].day, Day::of(NOON));
    assert_eq!(publish(&mut table, &history[3]).added, 2);
}
