//! A follower among nodes that take records in, hand them over, go away and come back, while
//! producers send batches again: in the end each record was shown once.

use std::sync::Arc;

use logpond_cluster::{
    Cover, Fate, HeldJournal, HeldSegment, Inventory, Living, ProcessId, Registry,
};
use logpond_record::{Incarnation, TimeRange, Timestamp};
use logpond_segment::batches::BatchId;
use proptest::prelude::*;

use super::*;

const NODES: usize = 3;

/// A row of a source.
#[derive(Clone, Debug)]
struct Record {
    key: Key,
    batch: Option<Batch>,
    text: String,
}

#[derive(Clone, Debug)]
struct Source {
    rows: Vec<Record>,
    retry: Option<BatchId>,
    is_open: bool,
    /// Whether its node still has the file.
    is_there: bool,
    /// Nodes that have a segment with it.
    holders: BTreeSet<usize>,
}

/// A stream: what its node was told, and how many rows of each source it has passed.
#[derive(Clone, Debug)]
struct Stream {
    positions: Positions,
    passed: BTreeMap<SourceId, usize>,
}

#[derive(Default)]
struct World {
    sources: BTreeMap<SourceId, Source>,
    registry: Registry,
    incarnations: BTreeMap<usize, u128>,
    is_down: BTreeSet<usize>,
    streams: BTreeMap<usize, Stream>,
    batches: u64,
    clock: u64,
    followed: Followed,
    shown: Vec<String>,
}

#[derive(Clone, Debug)]
enum Step {
    /// A node takes in a plain record.
    Take(usize, i64),
    /// A node takes in a new batch of so many records.
    Batch(usize, i64, usize),
    /// A node takes in a batch that was sent before, so many batches ago.
    Again(usize, u64),
    Close(usize),
    /// A node gives its closed files to two others.
    HandOver(usize),
    Kill(usize),
    Start(usize),
    /// A stream brings at most so many rows, and breaks if it is told to.
    Stream(usize, usize, bool),
    /// An errand is done; a reading breaks after so many rows of it.
    Errand(usize),
    /// The client comes back to another node.
    Reconnect,
}

/// Steps of a client that stays.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        prop_oneof![22 => step(), 4 => (0usize..8).prop_map(Step::Errand)],
        0..60,
    )
}

/// Steps of one that comes back, while no reading breaks: of what was shown of a copy that was not
/// read to its end a position says no more than where that was.
fn steps_of_returning() -> impl Strategy<Value = Vec<Step>> {
    let steps = prop_oneof![
        22 => step(),
        4 => Just(Step::Errand(usize::MAX)),
        1 => Just(Step::Reconnect),
    ];
    prop::collection::vec(steps, 0..60)
}

/// A step but for errands and coming back.
fn step() -> impl Strategy<Value = Step> {
    let node = || 0..NODES;
    prop_oneof![
        4 => (node(), 0i64..9).prop_map(|(n, t)| Step::Take(n, t)),
        3 => (node(), 0i64..9, 1usize..4).prop_map(|(n, t, c)| Step::Batch(n, t, c)),
        3 => (node(), 0u64..3).prop_map(|(n, b)| Step::Again(n, b)),
        2 => node().prop_map(Step::Close),
        2 => node().prop_map(Step::HandOver),
        1 => node().prop_map(Step::Kill),
        2 => node().prop_map(Step::Start),
        5 => (node(), 0usize..6, prop::bool::weighted(0.2))
            .prop_map(|(n, c, b)| Step::Stream(n, c, b)),
    ]
}

const EPOCH: u128 = 0xe;

fn record_row(record: &Record) -> Vec<u8> {
    let (time, id) = (record.key.time, record.key.id);
    let text = &record.text;
    format!("{{\"_time\":\"{time}\",\"_id\":\"{id}\",\"_msg\":\"{text}\"}}").into_bytes()
}

impl World {
    fn incarnation(&mut self, node: usize) -> Incarnation {
        let fresh = (node as u128 + 1) << 64 | u128::from(self.clock);
        let is_new = !self.incarnations.contains_key(&node);
        let incarnation = Incarnation(*self.incarnations.entry(node).or_insert(fresh));
        if is_new {
            let fate = Fate::born(NodeId(node as u128), Timestamp(0));
            self.registry.note(incarnation, fate);
        }
        incarnation
    }

    fn next_source(&self, incarnation: Incarnation) -> SourceId {
        let last = self.sources.keys().filter(|s| s.incarnation == incarnation);
        SourceId {
            incarnation,
            sequence: last.map(|s| s.sequence + 1).max().unwrap_or(0),
        }
    }

    fn append(&mut self, node: usize, times: &[i64], batch: Option<Batch>, retry: Option<BatchId>) {
        if self.is_down.contains(&node) {
            return;
        }
        let incarnation = self.incarnation(node);
        let open = self.sources.iter().find(|(name, source)| {
            name.incarnation == incarnation && source.is_open && retry.is_none()
        });
        let name = open.map(|(name, _)| *name);
        if name.is_none() {
            self.close(node);
        }
        let name = name.unwrap_or_else(|| self.next_source(incarnation));
        let source = self.sources.entry(name).or_insert(Source {
            rows: Vec::new(),
            retry,
            is_open: true,
            is_there: true,
            holders: BTreeSet::new(),
        });
        for (at, time) in times.iter().enumerate() {
            self.clock += 1;
            let key = Key {
                time: Timestamp(*time),
                id: Id::new(self.clock, incarnation, self.clock),
            };
            let text = match batch {
                Some((_, sequence)) => format!("batch {sequence} row {}", at % 2),
                None => format!("record {}", self.clock),
            };
            source.rows.push(Record { key, batch, text });
        }
        if retry.is_some() {
            source.is_open = false;
        }
    }

    /// Whether a node's journal has a batch, in whatever sending.
    fn has(&self, node: usize, batch: Batch) -> bool {
        let own = self.sources.iter().filter(|(name, source)| {
            name.incarnation.0 >> 64 == node as u128 + 1 && source.is_there
        });
        own.flat_map(|(_, source)| &source.rows)
            .any(|row| row.batch == Some(batch))
    }

    fn close(&mut self, node: usize) {
        for (name, source) in &mut self.sources {
            if name.incarnation.0 >> 64 == node as u128 + 1 {
                source.is_open = false;
            }
        }
    }

    /// What a node holds.
    fn inventory(&self, node: usize) -> Indexed {
        let mut inventory = Inventory::empty(NodeId(node as u128), ProcessId(0));
        inventory.registry = self.registry.clone().into();
        for (name, source) in &self.sources {
            let is_own = name.incarnation.0 >> 64 == node as u128 + 1;
            let is_stored = source.holders.contains(&node);
            if is_own && source.is_there {
                inventory.journal.push(HeldJournal {
                    source: *name,
                    bytes: 1,
                    rows: source.rows.len() as u64,
                    received_min: Timestamp(0),
                    received_max: Timestamp(0),
                    last: Id(0),
                    is_open: source.is_open,
                });
            }
            if is_stored {
                Arc::make_mut(&mut inventory.segments).push(HeldSegment {
                    id: Id(name.incarnation.0 << 8 | u128::from(name.sequence)),
                    digest: 0,
                    bytes: 1,
                    rows: source.rows.len() as u64,
                    time_min: Timestamp(0),
                    time_max: Timestamp(9),
                    received_min: Timestamp(0),
                    received_max: Timestamp(0),
                    is_remote: false,
                    sources: SourceSet::from_iter([*name]),
                });
            }
            if let Some(id) = source
                .retry
                .filter(|_| is_own && source.is_there || is_stored)
            {
                inventory.retries.push(RetryCopy { source: *name, id });
            }
        }
        inventory.living = self.incarnations.get(&node).and_then(|incarnation| {
            let incarnation = Incarnation(*incarnation);
            let end = self.next_source(incarnation).sequence;
            (end > 0).then_some(Living { incarnation, end })
        });
        Indexed::new(inventory)
    }

    fn originals(&self, node: usize, wanted: &BatchSet) -> BatchSet {
        let held = self.sources.iter().filter(|(name, source)| {
            let is_own = name.incarnation.0 >> 64 == node as u128 + 1;
            source.retry.is_none() && (is_own && source.is_there || source.holders.contains(&node))
        });
        let batches = held.flat_map(|(_, source)| source.rows.iter().filter_map(|row| row.batch));
        BatchSet::from_iter(batches).intersection(wanted)
    }

    /// A stream brings what its node has, as the product's does: in order of the sources, skipping
    /// copies and what need not be shown, with a word on how far it is once all is sent.
    fn stream(&mut self, node: usize, count: usize, breaks: bool) {
        let name = NodeId(node as u128);
        if self.is_down.contains(&node) {
            if self.streams.remove(&node).is_some() {
                self.followed.disconnect(name);
            }
            return;
        }
        if !self.streams.contains_key(&node) {
            let positions = self.followed.positions().clone();
            let passed = BTreeMap::new();
            self.streams.insert(node, Stream { positions, passed });
            self.followed.connect(name);
        }
        let Some(stream) = self.streams.get_mut(&node) else {
            return;
        };
        let mut left = count;
        let mut passed = Passed::default();
        let own = self.sources.iter().filter(|(name, source)| {
            let is_own = name.incarnation.0 >> 64 == node as u128 + 1;
            is_own
                && source.retry.is_none()
                && !stream.positions.is_done(**name)
                && (source.is_there || stream.passed.contains_key(*name))
        });
        let own: Vec<_> = own.collect();
        for (name, source) in own {
            let at = stream.passed.entry(*name).or_default();
            let regions = stream.positions.regions(*name);
            for record in &source.rows[*at..] {
                if left == 0 {
                    break;
                }
                *at += 1;
                if regions.iter().any(|region| region.contains(record.key)) {
                    continue;
                }
                left -= 1;
                let block = Block {
                    source: *name,
                    batch: record.batch,
                };
                if self
                    .followed
                    .take_streamed(&block, record.key, &record_row(record))
                {
                    self.shown.push(record.text.clone());
                }
            }
            if *at == source.rows.len() {
                match (source.is_open, source.rows.last()) {
                    (true, Some(last)) => passed.growing.push((*name, last.key.id)),
                    (true, None) => {}
                    (false, _) => passed.done.insert(*name),
                }
            }
        }
        // What was passed is said behind all rows only.
        if left > 0 {
            stream.positions.finish(&passed.done);
            self.followed.pass(name, &passed);
        }
        if breaks {
            self.streams.remove(&node);
            self.followed.disconnect(name);
        }
    }

    fn errand(&mut self, mut left: usize) {
        let up = (0..NODES).filter(|node| !self.is_down.contains(node));
        let up: Vec<usize> = up.collect();
        let held: Vec<Indexed> = up.iter().map(|node| self.inventory(*node)).collect();
        let held: Vec<&Indexed> = held.iter().collect();
        let stored = SourceSet::union_of(held.iter().map(|indexed| indexed.stored()));
        let Some(errand) = self.followed.plan(&held, &stored) else {
            return;
        };
        if !errand.batches.is_empty() {
            let said = |node: &usize| {
                (
                    NodeId(*node as u128),
                    self.originals(*node, &errand.batches),
                )
            };
            let found: Vec<_> = up.iter().map(said).collect();
            self.followed.note_originals(&held, &found);
        }
        for (sources, regions) in &errand.groups {
            let cover = Cover::plan(&held, sources, TimeRange::ALL, None);
            self.followed.finish(&cover.pruned, &BatchSet::default());
            for share in cover.shares.into_values() {
                let rows = share
                    .sources
                    .iter()
                    .flat_map(|name| &self.sources[&name].rows);
                let rows = rows.filter(|row| !regions.iter().any(|r| r.contains(row.key)));
                let mut rows: Vec<Record> = rows.cloned().collect();
                rows.sort_by_key(|row| row.key);
                let plain = share.sources.iter().map(|name| &self.sources[&name]);
                let plain = plain.filter(|source| source.retry.is_none());
                let named = plain.flat_map(|s| s.rows.iter().filter_map(|row| row.batch));
                let originals = BatchSet::from_iter(named);
                let breaks = rows.len() > left;
                rows.truncate(left);
                left -= rows.len();
                let read = Arc::new(share.sources.clone());
                for row in &rows {
                    let is_shown = self.followed.take_read(&read, row.key, &record_row(row));
                    if is_shown {
                        self.shown.push(row.text.clone());
                    }
                }
                match (breaks, rows.last()) {
                    (false, _) => self.followed.finish(&share.sources, &originals),
                    (true, Some(last)) => self.followed.cut(&share.sources, last.key, &originals),
                    (true, None) => {}
                }
            }
        }
    }

    /// A node takes in a batch that was sent before.
    fn send_again(&mut self, node: usize, ago: u64) {
        let Some(sequence) = self.batches.checked_sub(ago + 1) else {
            return;
        };
        let batch = (EPOCH, sequence);
        let sent = self.sources.values().flat_map(|source| &source.rows);
        let mut times: Vec<_> = sent
            .filter(|row| row.batch == Some(batch))
            .map(|row| row.key)
            .collect();
        // As many rows as one sending has.
        let sendings = self.sources.values();
        let sendings = sendings.filter(|s| s.rows.iter().any(|r| r.batch == Some(batch)));
        let count = times.len() / sendings.count().max(1);
        times.truncate(count);
        if self.has(node, batch) || times.is_empty() {
            return;
        }
        self.clock += 1;
        let id = BatchId {
            epoch: EPOCH,
            sequence,
            attempt: self.clock as u32,
            first_sent: Timestamp(0),
            more: 0,
        };
        let times: Vec<i64> = times.iter().map(|key| key.time.0).collect();
        self.append(node, &times, Some(batch), Some(id));
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Take(node, time) => {
                self.append(node, &[time], None, None);
            }
            Step::Batch(node, time, count) => {
                let batch = (EPOCH, self.batches);
                self.batches += 1;
                let times: Vec<i64> = (0..count as i64).map(|at| (time + 5 * at) % 9).collect();
                self.append(node, &times, Some(batch), None);
            }
            Step::Again(node, ago) => self.send_again(node, ago),
            Step::Close(node) => self.close(node),
            Step::HandOver(node) => {
                if self.is_down.contains(&node) {
                    return;
                }
                let to = [(node + 1) % NODES, (node + 2) % NODES];
                let to = to.into_iter().filter(|to| !self.is_down.contains(to));
                let to: Vec<usize> = to.collect();
                for (name, source) in &mut self.sources {
                    let is_own = name.incarnation.0 >> 64 == node as u128 + 1;
                    if is_own && !source.is_open && source.is_there && !to.is_empty() {
                        source.holders.extend(&to);
                        source.is_there = false;
                    }
                }
            }
            Step::Kill(node) => {
                self.is_down.insert(node);
                self.stream(node, 0, false);
            }
            Step::Start(node) => {
                if self.is_down.remove(&node) {
                    self.close(node);
                    if let Some(incarnation) = self.incarnations.remove(&node) {
                        let incarnation = Incarnation(incarnation);
                        let end = self.next_source(incarnation).sequence;
                        self.registry.seal(incarnation, end);
                    }
                }
            }
            Step::Stream(node, count, breaks) => self.stream(node, count, breaks),
            Step::Errand(left) => self.errand(left),
            Step::Reconnect => {
                let text = self.followed.told();
                self.followed = Followed::new(
                    Positions::from_text(&text).expect("it is one"),
                    &BatchSet::default(),
                );
                self.streams.clear();
            }
        }
    }

    /// What is to be shown: of each batch one sending.
    fn expected(&self) -> Vec<String> {
        let mut expected = Vec::new();
        let mut batches = BTreeSet::new();
        for source in self.sources.values() {
            let named = source.rows.iter().filter_map(|row| row.batch);
            let named: BTreeSet<Batch> = named.collect();
            for row in &source.rows {
                if row.batch.is_none_or(|batch| !batches.contains(&batch)) {
                    expected.push(row.text.clone());
                }
            }
            batches.extend(named);
        }
        expected.sort_unstable();
        expected
    }

    /// Everybody is there, and time passes.
    fn settle(&mut self) {
        (0..NODES).for_each(|node| self.step(Step::Start(node)));
        for _ in 0..8 {
            (0..NODES).for_each(|node| self.stream(node, usize::MAX, false));
            self.errand(usize::MAX);
        }
    }
}

fn check(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut world = World::default();
    for step in steps {
        world.step(step);
    }
    world.settle();
    let mut shown = std::mem::take(&mut world.shown);
    shown.sort_unstable();
    prop_assert_eq!(shown, world.expected());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn each_record_is_shown_once(steps in steps()) {
        check(steps)?;
    }

    #[test]
    fn each_record_is_shown_once_to_a_client_that_comes_back(steps in steps_of_returning()) {
        check(steps)?;
    }
}

#[test]
fn an_original_in_a_segment_is_known_by_its_rows() {
    // The node with the original is away while the copy is shown, and hands its file over before
    // it is asked again.
    check(vec![
        Step::Batch(0, 1, 3),
        Step::Take(0, 4),
        Step::Kill(0),
        Step::Again(1, 0),
        Step::Errand(9),
        Step::Errand(9),
        Step::Start(0),
        Step::HandOver(0),
    ])
    .unwrap();
}

#[test]
fn a_client_comes_back() {
    check(vec![
        Step::Take(0, 1),
        Step::Take(1, 1),
        Step::Batch(1, 3, 2),
        Step::Stream(0, 9, false),
        Step::Stream(1, 2, false),
        Step::Reconnect,
        Step::Close(1),
        Step::HandOver(1),
        Step::Take(0, 2),
    ])
    .unwrap();
}

#[test]
fn a_client_comes_back_while_nobody_who_has_the_original_answers() {
    check(vec![
        Step::Batch(0, 1, 3),
        Step::Stream(0, 9, false),
        Step::Reconnect,
        Step::Kill(0),
        Step::Again(1, 0),
        Step::Errand(9),
        Step::Errand(9),
    ])
    .unwrap();
}

#[test]
fn a_client_comes_back_while_nobody_who_has_the_copy_answers() {
    check(vec![
        Step::Batch(0, 1, 3),
        Step::Kill(0),
        Step::Again(1, 0),
        Step::Errand(9),
        Step::Errand(9),
        Step::Reconnect,
        Step::Kill(1),
        Step::Start(0),
        Step::Stream(0, 9, false),
    ])
    .unwrap();
}

#[test]
fn what_is_left_of_an_original_comes_after_the_client_came_back() {
    check(vec![
        Step::Batch(0, 1, 3),
        Step::Stream(0, 1, false),
        Step::Again(1, 0),
        Step::Errand(9),
        Step::Errand(9),
        Step::Reconnect,
    ])
    .unwrap();
}

#[test]
fn a_client_comes_back_before_the_original_is_in_a_segment() {
    check(vec![
        Step::Batch(0, 1, 3),
        Step::Take(0, 4),
        Step::Kill(0),
        Step::Again(1, 0),
        Step::Errand(9),
        Step::Errand(9),
        Step::Reconnect,
        Step::Start(0),
        Step::HandOver(0),
    ])
    .unwrap();
}

#[test]
fn what_an_errand_has_shown_so_far_is_in_the_position() {
    let mut world = World::default();
    world.step(Step::Take(0, 1));
    world.step(Step::Take(0, 2));
    let (name, source) = world.sources.pop_first().unwrap();
    let read = Arc::new(SourceSet::from_iter([name]));
    let first = &source.rows[0];
    assert!(
        world
            .followed
            .take_read(&read, first.key, &record_row(first))
    );
    let told = Positions::from_text(&world.followed.told()).unwrap();
    let is_shown = |row: &Record| told.regions(name).iter().any(|r| r.contains(row.key));
    assert!(is_shown(first));
    assert!(!is_shown(&source.rows[1]));
}
