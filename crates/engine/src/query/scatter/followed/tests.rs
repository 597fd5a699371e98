//! A follower among nodes that take records in, hand them over, go away and come back or are lost, while
//! producers send batches again: in the end each record was shown once.

use std::sync::Arc;

use logpond_cluster::{
    Cover, CurrentIncarnation, Fate, HeldJournal, HeldSegment, Inventory, ProcessId, Registry,
};
use logpond_record::{Incarnation, TimeRange, Timestamp};
use logpond_segment::batches::BatchId;
use proptest::prelude::*;

use super::super::whole::{Part, Whole};
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
    block: Option<Block>,
}

#[derive(Default)]
struct World {
    sources: BTreeMap<SourceId, Source>,
    registry: Registry,
    incarnations: BTreeMap<usize, u128>,
    is_down: BTreeSet<usize>,
    /// Of those that are down, the ones that never come back.
    is_lost: BTreeSet<usize>,
    streams: BTreeMap<usize, Stream>,
    batches: u64,
    clock: u64,
    followed: FollowerState,
    whole: Whole,
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
    /// A node is gone with its disk, as the first one.
    Lose(usize),
    Start(usize),
    /// A stream brings at most so many rows, and breaks if it is told to.
    Stream(usize, usize, bool),
    /// An errand is done; a reading breaks after so many rows of it.
    Errand(usize),
    /// The client comes back to another node, with a position of at most so many rows of copies.
    Reconnect(usize),
}

/// Steps of a client that stays.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 0..60)
}

/// Steps of one that comes back.
fn steps_of_returning() -> impl Strategy<Value = Vec<Step>> {
    let steps = prop_oneof![26 => step(), 1 => Just(Step::Reconnect(usize::MAX))];
    prop::collection::vec(steps, 0..60)
}

/// A step but for coming back.
fn step() -> impl Strategy<Value = Step> {
    let node = || 0..NODES;
    prop_oneof![
        4 => (node(), 0i64..9).prop_map(|(n, t)| Step::Take(n, t)),
        3 => (node(), 0i64..9, 1usize..4).prop_map(|(n, t, c)| Step::Batch(n, t, c)),
        3 => (node(), 0u64..3).prop_map(|(n, b)| Step::Again(n, b)),
        2 => node().prop_map(Step::Close),
        2 => node().prop_map(Step::HandOver),
        1 => node().prop_map(Step::Kill),
        1 => node().prop_map(Step::Lose),
        4 => (0usize..8).prop_map(Step::Errand),
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

/// What [`record_row`] made the row of.
fn message(row: &[u8]) -> String {
    let row: serde_json::Value = serde_json::from_slice(row).expect("rows are JSON");
    row["_msg"].as_str().expect("it has a message").to_owned()
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
    fn inventory(&self, node: usize) -> IndexedInventory {
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
            (end > 0).then_some(CurrentIncarnation { incarnation, end })
        });
        IndexedInventory::new(inventory)
    }

    fn originals(&self, node: usize, wanted: &BatchSet) -> BatchSet {
        let held = self.sources.iter().filter(|(name, source)| {
            let is_own = name.incarnation.0 >> 64 == node as u128 + 1;
            source.retry.is_none() && (is_own && source.is_there || source.holders.contains(&node))
        });
        let batches = held.flat_map(|(_, source)| source.rows.iter().filter_map(|row| row.batch));
        BatchSet::from_iter(batches).intersection(wanted)
    }

    /// A node that is there has a stream, others have none.
    fn open_stream(&mut self, node: usize) {
        let node_name = NodeId(node as u128);
        let is_streaming = self.streams.contains_key(&node);
        match (self.is_down.contains(&node), is_streaming) {
            (true, true) => self.end_stream(node),
            (false, false) => {
                let positions = self.followed.positions().clone();
                let stream = Stream {
                    positions,
                    passed: BTreeMap::new(),
                    block: None,
                };
                self.streams.insert(node, stream);
                self.followed.connect(node_name);
            }
            _ => {}
        }
    }

    fn end_stream(&mut self, node: usize) {
        self.streams.remove(&node);
        self.whole.forget(NodeId(node as u128));
        self.followed.disconnect(NodeId(node as u128));
    }

    /// A stream brings what its node has, as the product's does: in order of the sources, skipping
    /// copies and what need not be shown, with a word on how far it is once all is sent.
    fn stream(&mut self, node: usize, count: usize, breaks: bool) {
        self.open_stream(node);
        let node_name = NodeId(node as u128);
        let Some(stream) = self.streams.get_mut(&node) else {
            return;
        };
        let mut left = count;
        let mut passed = JournalProgress::default();
        let mut parts = Vec::new();
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
                if let Some((epoch, sequence)) = record.batch {
                    passed.batches.insert(epoch, sequence);
                }
                if regions.iter().any(|region| region.contains(record.key)) {
                    continue;
                }
                left -= 1;
                let block = Block {
                    source: *name,
                    batch: record.batch,
                };
                let row = (record.key, record_row(record).into(), true);
                // A block is said once, also if all was passed in between.
                if stream.block.replace(block) != Some(block) {
                    parts.extend(self.whole.enter(node_name, block));
                }
                parts.extend(self.whole.add(node_name, row));
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
        let is_all = left > 0;
        if is_all {
            stream.positions.finish(&passed.done);
            parts.extend(self.whole.end(node_name));
        }
        for part in &parts {
            self.show_streamed(part);
        }
        if is_all {
            self.followed.pass(node_name, &passed);
        }
        if breaks {
            self.end_stream(node);
        }
    }

    fn show_streamed(&mut self, part: &Part) {
        for (key, row, _) in &part.rows {
            if self.followed.take_streamed(&part.block, *key, row) {
                self.shown.push(message(row));
            }
        }
    }

    fn errand(&mut self, mut left: usize) {
        let up = (0..NODES).filter(|node| !self.is_down.contains(node));
        let up: Vec<usize> = up.collect();
        let held: Vec<IndexedInventory> = up.iter().map(|node| self.inventory(*node)).collect();
        let held: Vec<&IndexedInventory> = held.iter().collect();
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
                if breaks && errand.copies.contains_all(&share.sources) {
                    continue;
                }
                let read = Arc::new(share.sources.clone());
                self.followed.begin_read(&Arc::new(originals.clone()));
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
                if to.len() + self.is_lost.len() < 2 {
                    return;
                }
                for (name, source) in &mut self.sources {
                    let is_own = name.incarnation.0 >> 64 == node as u128 + 1;
                    if is_own && !source.is_open && source.is_there {
                        source.holders.extend(&to);
                        source.is_there = false;
                    }
                }
            }
            Step::Kill(node) => {
                self.is_down.insert(node);
                self.stream(node, 0, false);
            }
            Step::Lose(node) => {
                // There are two copies of what was handed over.
                if !self.is_lost.is_empty() {
                    return;
                }
                self.step(Step::Kill(node));
                self.is_lost.insert(node);
                for (name, source) in &mut self.sources {
                    source.holders.remove(&node);
                    source.is_there &= name.incarnation.0 >> 64 != node as u128 + 1;
                }
            }
            Step::Start(node) => {
                if !self.is_lost.contains(&node) && self.is_down.remove(&node) {
                    self.close(node);
                    self.seal(node);
                }
            }
            Step::Stream(node, count, breaks) => self.stream(node, count, breaks),
            Step::Errand(left) => self.errand(left),
            Step::Reconnect(copied_rows) => {
                self.followed.told();
                let text = self.followed.positions().to_text_with(copied_rows);
                self.followed = FollowerState::new(
                    Positions::from_text(&text).expect("it is one"),
                    &BatchSet::default(),
                );
                self.whole = Whole::default();
                self.streams.clear();
            }
        }
    }

    /// What is to be shown: of each batch one sending. What nobody has any more need not be, but a batch
    /// of which a row was shown is shown as a whole.
    fn expected(&self, shown: &[String]) -> Vec<String> {
        let mut expected = Vec::new();
        let is_left = |source: &Source| source.is_there || !source.holders.is_empty();
        let left = self.sources.values().filter(|source| is_left(source));
        let left: BTreeSet<Batch> = left
            .flat_map(|source| source.rows.iter().filter_map(|row| row.batch))
            .collect();
        let mut batches = BTreeSet::new();
        for source in self.sources.values() {
            for row in &source.rows {
                let is_there = match row.batch {
                    Some(batch) => left.contains(&batch),
                    None => is_left(source),
                };
                let prefix = row.batch.map(|(_, sequence)| format!("batch {sequence} "));
                let is_shown = |text: &String| match &prefix {
                    Some(prefix) => text.starts_with(prefix),
                    None => *text == row.text,
                };
                let is_first = row.batch.is_none_or(|batch| !batches.contains(&batch));
                if is_first && (is_there || shown.iter().any(is_shown)) {
                    expected.push(row.text.clone());
                }
            }
            batches.extend(source.rows.iter().filter_map(|row| row.batch));
        }
        expected.sort_unstable();
        expected
    }

    fn seal(&mut self, node: usize) {
        if let Some(incarnation) = self.incarnations.remove(&node) {
            let incarnation = Incarnation(incarnation);
            let end = self.next_source(incarnation).sequence;
            self.registry.seal(incarnation, end);
        }
    }

    /// Everybody is there who is not lost, and time passes.
    fn settle(&mut self) {
        self.is_lost
            .clone()
            .into_iter()
            .for_each(|node| self.seal(node));
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
    let expected = world.expected(&shown);
    prop_assert_eq!(shown, expected);
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
        Step::Reconnect(usize::MAX),
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
        Step::Reconnect(usize::MAX),
        Step::Kill(0),
        Step::Again(1, 0),
        Step::Errand(9),
        Step::Errand(9),
    ])
    .unwrap();
}

#[test]
fn a_client_comes_back_while_nobody_who_has_the_copy_answers() {
    // Also if the position has no room for its rows: a stream says which batch a row is of.
    for copied_rows in [usize::MAX, 0] {
        check(vec![
            Step::Batch(0, 1, 3),
            Step::Kill(0),
            Step::Again(1, 0),
            Step::Errand(9),
            Step::Errand(9),
            Step::Reconnect(copied_rows),
            Step::Kill(1),
            Step::Start(0),
            Step::Stream(0, 9, false),
        ])
        .unwrap();
    }
}

#[test]
fn a_client_comes_back_when_the_copy_is_gone_and_the_original_in_a_segment() {
    check(vec![
        Step::Batch(0, 0, 1),
        Step::Batch(1, 0, 1),
        Step::Kill(0),
        Step::Again(1, 1),
        Step::Errand(9),
        Step::Errand(9),
        Step::Reconnect(usize::MAX),
        Step::Start(0),
        Step::HandOver(0),
        Step::Kill(1),
        Step::Errand(9),
    ])
    .unwrap();
}

#[test]
fn a_batch_of_which_a_part_came_is_shown_as_it_was_sent_again() {
    check(vec![
        Step::Batch(0, 1, 3),
        Step::Stream(0, 2, false),
        Step::Lose(0),
        Step::Again(1, 0),
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
        Step::Reconnect(usize::MAX),
    ])
    .unwrap();
}

#[test]
fn a_client_comes_back_before_the_original_is_in_a_segment() {
    // Without room for its rows in the position the copy is read again for them.
    for copied_rows in [usize::MAX, 0] {
        check(vec![
            Step::Batch(0, 1, 3),
            Step::Take(0, 4),
            Step::Kill(0),
            Step::Again(1, 0),
            Step::Errand(9),
            Step::Errand(9),
            Step::Reconnect(copied_rows),
            Step::Start(0),
            Step::HandOver(0),
        ])
        .unwrap();
    }
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

/// A journal has labels in the order of their sender, a segment in that of its columns.
#[test]
fn a_row_is_the_same_wherever_it_is_read() {
    let id = |of: u8| format!("\"_id\":\"{}\"", "0".repeat(25) + &of.to_string());
    let row =
        |of: u8, rest: &str| hash(format!("{{\"_time\":\"t{of}\",{}{rest}}}", id(of)).as_bytes());
    let sent = r#","_msg":"a, b\"c","n":1,"o":{"x":[1,{"y":2}]},"hostname":"h","file":"f""#;
    let stored = r#","_msg":"a, b\"c","n":1,"o":{"x":[1,{"y":2}]},"file":"f","hostname":"h""#;
    assert_eq!(row(1, sent), row(2, stored));
    assert_eq!(row(1, ""), row(2, ""));
    for other in [
        r#","_msg":"a, b\"c","n":1,"o":{"x":[1,{"y":2}]},"file":"h","hostname":"f""#,
        r#","_msg":"a, b\"c","n":1,"o":{"x":[1,{"y":3}]},"file":"f","hostname":"h""#,
        r#","_msg":"a, b\"c","n":1,"file":"f","hostname":"h""#,
        r#","_msg":"a","n":1,"o":{"x":[1,{"y":2}]},"file":"f","hostname":"h""#,
    ] {
        assert_ne!(row(1, sent), row(1, other), "{other}");
    }
    let whole = r#"{"file":"f"}"#.as_bytes();
    let members: Vec<&[u8]> = members(&whole[1..]).collect();
    assert_eq!(members, [br#""file":"f""#.as_slice()]);
}

/// Elsewhere nobody may answer who has the original, and the batch was sent again.
#[test]
fn the_batches_of_what_an_errand_reads_are_in_the_position() {
    let mut world = World::default();
    world.step(Step::Batch(0, 1, 2));
    let (name, source) = world.sources.pop_first().unwrap();
    let batch = source.rows[0].batch.unwrap();
    let read = Arc::new(SourceSet::from_iter([name]));
    let first = &source.rows[0];
    world
        .followed
        .begin_read(&Arc::new(BatchSet::from_iter([batch])));
    let row = record_row(first);
    assert!(world.followed.take_read(&read, first.key, &row));
    let told = Positions::from_text(&world.followed.told()).unwrap();
    assert!(told.has_original(batch));
}

#[test]
fn a_copy_is_shown_once_the_node_with_the_original_is_lost() {
    check(vec![
        Step::Batch(0, 0, 1),
        Step::Again(2, 0),
        Step::Errand(0),
        Step::Lose(0),
    ])
    .unwrap();
}

#[test]
fn another_copy_is_shown_once_the_node_with_the_first_is_lost() {
    check(vec![
        Step::Batch(1, 0, 1),
        Step::Lose(1),
        Step::Again(0, 0),
        Step::Again(2, 0),
        Step::Errand(0),
        Step::Lose(0),
    ])
    .unwrap();
}
