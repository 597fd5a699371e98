//! A tree that is kept while nodes come, change and go, compared with one made anew, and what is
//! planned by it with what is planned without.

use logpond_record::{Id, Incarnation, SourceId, TimeRange, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::{
    Cover, CurrentIncarnation, Fate, HeldJournal, HeldSegment, Inventory, ProcessId, Target,
};

/// What happens to a node between two questions.
#[derive(Clone, Debug)]
enum Event {
    /// It stores these, and has these in its journal.
    Holds(Vec<(u128, u64)>, Vec<(u128, u64)>),
    /// It starts anew, with what it stores, and counts its versions from 0 again.
    Restarts,
    /// Its inventory is made again, though it holds the same.
    Repeats,
    /// It hears of an incarnation, that has perhaps ended.
    Hears(u128, Option<u64>),
    /// It is gone with what it held.
    Goes,
    /// It does not answer the next question.
    IsSilent,
}

fn source((incarnation, sequence): (u128, u64)) -> SourceId {
    SourceId {
        incarnation: Incarnation(incarnation),
        sequence,
    }
}

/// One segment for each third of the sources, with a time for each of them.
fn segments(sources: &[(u128, u64)]) -> Vec<HeldSegment> {
    let runs = sources.chunks(3).map(|run| {
        let times = || run.iter().map(|(_, n)| Timestamp(*n as i64 * 10));
        let min = times().min().unwrap_or(Timestamp(0));
        let max = times().max().unwrap_or(Timestamp(0));
        let sources: SourceSet = run.iter().map(|pair| source(*pair)).collect();
        let name = format!("{sources:?}");
        HeldSegment {
            id: Id(xxhash_rust::xxh3::xxh3_128(name.as_bytes())),
            digest: 1,
            bytes: sources.len() * 100,
            rows: sources.len(),
            time_min: min,
            time_max: max,
            received_min: min,
            received_max: max,
            is_remote: false,
            sources,
        }
    });
    runs.collect()
}

fn journal(sources: &[(u128, u64)]) -> Vec<HeldJournal> {
    let each = sources.iter().map(|pair| HeldJournal {
        source: source(*pair),
        bytes: 100,
        rows: 1,
        received_min: Timestamp(0),
        received_max: Timestamp(0),
        last: Id(0),
        is_open: false,
    });
    each.collect()
}

/// The nodes, and who of them answers the next question.
#[derive(Default)]
struct World {
    nodes: BTreeMap<NodeId, Arc<IndexedInventory>>,
    silent: BTreeSet<NodeId>,
}

impl World {
    fn happen(&mut self, node: NodeId, event: &Event) {
        let mut inventory = match self.nodes.get(&node) {
            Some(indexed) => indexed.inventory().clone(),
            None => Inventory::empty(node, ProcessId(0)),
        };
        inventory.version += 1;
        match event {
            Event::Holds(stored, files) => {
                inventory.segments = segments(stored).into();
                inventory.journal = journal(files);
                let last = inventory.journal.last().map(|file| file.source);
                inventory.living = last.map(|last| CurrentIncarnation {
                    incarnation: last.incarnation,
                    end: last.sequence + 2,
                });
            }
            Event::Restarts => {
                inventory.process = ProcessId(inventory.process.0 + 1);
                inventory.version = 0;
                inventory.journal.clear();
                inventory.living = None;
            }
            Event::Repeats => {}
            Event::Hears(name, end) => {
                let mut fate = Fate::born(node, Timestamp(1));
                fate.sealed = *end;
                Arc::make_mut(&mut inventory.registry).note(Incarnation(*name), fate);
            }
            Event::Goes => {
                self.nodes.remove(&node);
                return;
            }
            Event::IsSilent => {
                self.silent.insert(node);
                return;
            }
        }
        self.nodes
            .insert(node, Arc::new(IndexedInventory::new(inventory)));
    }

    fn answered(&self) -> Vec<&Arc<IndexedInventory>> {
        let each = self.nodes.iter();
        each.filter(|(node, _)| !self.silent.contains(node))
            .map(|(_, indexed)| indexed)
            .collect()
    }
}

fn events() -> impl Strategy<Value = Event> {
    let sources = || prop::collection::vec((0u128..4, 0u64..30), 0..12);
    prop_oneof![
        4 => (sources(), sources()).prop_map(|(stored, files)| Event::Holds(stored, files)),
        1 => Just(Event::Restarts),
        1 => Just(Event::Repeats),
        1 => (0u128..5, prop::option::of(0u64..30)).prop_map(|(name, end)| Event::Hears(name, end)),
        1 => Just(Event::Goes),
        1 => Just(Event::IsSilent),
    ]
}

/// Without any tree, one source after the other.
fn union_by_hand(held: &[&Arc<IndexedInventory>]) -> SourceSet {
    let segments = held
        .iter()
        .flat_map(|indexed| indexed.inventory().segments.iter());
    segments
        .flat_map(|segment| segment.sources.iter())
        .collect()
}

proptest! {
    #[test]
    fn a_kept_union_plans_as_a_new_one(
        turns in prop::collection::vec(
            prop::collection::vec((0u128..20, events()), 0..25),
            1..8,
        ),
        (from, length) in (0i64..300, 1i64..300),
    ) {
        let range = TimeRange { from: Timestamp(from), to: Timestamp(from + length) };
        let (mut world, mut kept) = (World::default(), StoredUnion::default());
        for turn in &turns {
            world.silent.clear();
            turn.iter().for_each(|(node, event)| world.happen(NodeId(*node), event));
            let answered = world.answered();
            let stored = kept.of(answered.iter().copied());
            prop_assert_eq!(&*stored, &union_by_hand(&answered));
            let held: Vec<&IndexedInventory> = answered.iter().map(|indexed| &***indexed).collect();
            let target = Target::over(&held, &stored);
            prop_assert_eq!(&target, &Target::new(&held));
            let wanted = &target.wanted;
            let cover = Cover::plan_over(&held, &stored, wanted, range, Some(NodeId(3)));
            prop_assert_eq!(cover, Cover::plan(&held, wanted, range, Some(NodeId(3))));
        }
    }
}

fn store(node: u128, sources: &[(u128, u64)]) -> Arc<IndexedInventory> {
    let mut inventory = Inventory::empty(NodeId(node), ProcessId(1));
    inventory.segments = segments(sources).into();
    Arc::new(IndexedInventory::new(inventory))
}

#[test]
fn nobody_has_nothing() {
    let mut kept = StoredUnion::default();
    assert!(kept.of([]).is_empty());
    let one = store(1, &[(1, 1)]);
    assert_eq!(kept.of([&one]).len(), 1);
    assert!(
        kept.of([]).is_empty(),
        "what a silent node has is not there"
    );
}

#[test]
fn a_version_that_lies_changes_nothing() {
    let mut kept = StoredUnion::default();
    kept.of([&store(1, &[(1, 1)])]);
    // The same node, process and version.
    assert_eq!(kept.of([&store(1, &[(1, 1), (1, 2)])]).len(), 2);
}

#[test]
fn the_tree_is_as_large_as_the_cluster() {
    let mut kept = StoredUnion::default();
    let many: Vec<_> = (0..33).map(|node| store(node, &[(node, 1)])).collect();
    assert_eq!(kept.of(&many).len(), 33);
    assert_eq!(kept.leaves.len(), 64);
    assert_eq!(kept.of(&many[..16]).len(), 16);
    assert_eq!(
        kept.leaves.len(),
        64,
        "a few that are away for once are expected back"
    );
    assert_eq!(kept.of(&many[..3]).len(), 3);
    assert_eq!(kept.leaves.len(), 4);
}
