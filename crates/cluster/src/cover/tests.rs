//! Covers of made-up clusters, compared with counting by hand.

use std::collections::BTreeSet;
use std::sync::Arc;

use logpond_record::{Incarnation, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::{HeldJournal, Inventory, ProcessId};

fn source(sequence: u64) -> SourceId {
    SourceId {
        incarnation: Incarnation(1),
        sequence,
    }
}

/// A source's only row is at ten times its number.
fn time_of(sequence: u64) -> Timestamp {
    Timestamp(sequence as i64 * 10)
}

fn segment(id: u128, sources: &BTreeSet<u64>) -> HeldSegment {
    let times = || sources.iter().map(|n| time_of(*n));
    HeldSegment {
        id: Id(id),
        digest: sources.iter().fold(id, |sum, n| sum * 31 + u128::from(*n)),
        bytes: sources.len() as u64 * 100,
        rows: sources.len() as u64,
        time_min: times().min().unwrap_or(Timestamp(0)),
        time_max: times().max().unwrap_or(Timestamp(0)),
        received_min: Timestamp(0),
        received_max: Timestamp(0),
        is_remote: false,
        sources: sources.iter().map(|n| source(*n)).collect(),
    }
}

fn journal(sequence: u64) -> HeldJournal {
    HeldJournal {
        source: source(sequence),
        bytes: 100,
        rows: 1,
        received_min: Timestamp(0),
        received_max: Timestamp(0),
        last: Id(0),
        is_open: false,
    }
}

fn node(number: u128, segments: Vec<HeldSegment>, journal: Vec<HeldJournal>) -> IndexedInventory {
    let mut inventory = Inventory::empty(NodeId(number), ProcessId(number));
    inventory.segments = segments.into();
    inventory.journal = journal;
    IndexedInventory::new(inventory)
}

#[test]
fn a_disk_comes_before_a_bucket_and_the_same_node_reads_what_is_only_there() {
    let remote = |id, numbers: &[u64]| HeldSegment {
        is_remote: true,
        ..segment(id, &numbers.iter().copied().collect())
    };
    let here = |id, numbers: &[u64]| HeldSegment {
        is_remote: false,
        ..remote(id, numbers)
    };
    let nodes = [
        node(1, vec![remote(1, &[1]), remote(2, &[2])], Vec::new()),
        node(2, vec![here(1, &[1]), remote(2, &[2])], Vec::new()),
        node(3, vec![remote(1, &[1]), remote(2, &[2])], Vec::new()),
    ];
    let cover = plan(&nodes, &SourceSet::new(), TimeRange::ALL);
    let reads = |cover: &Cover, number| {
        let shares = cover.shares.iter();
        let mut holding = shares.filter(|(_, share)| share.sources.contains(source(number)));
        *holding.next().expect("somebody reads it").0
    };
    assert_eq!(reads(&cover, 1), NodeId(2));
    let reader = reads(&cover, 2);
    // Whoever asks, and whatever else there is to read.
    let busy: Vec<IndexedInventory> = nodes
        .iter()
        .map(|known| {
            let mut inventory = known.inventory().clone();
            if inventory.node == reader {
                Arc::make_mut(&mut inventory.segments).push(here(3, &[3, 4, 5, 6]));
            }
            IndexedInventory::new(inventory)
        })
        .collect();
    let cover = plan(&busy, &SourceSet::new(), TimeRange::ALL);
    assert_eq!((reads(&cover, 2), reads(&cover, 3)), (reader, reader));
}

fn plan(nodes: &[IndexedInventory], unwanted: &SourceSet, range: TimeRange) -> Cover {
    let held: Vec<&IndexedInventory> = nodes.iter().collect();
    let mut wanted = SourceSet::new();
    held.iter()
        .for_each(|node| wanted.union_with(&node.inventory().sources()));
    Cover::plan(&held, &wanted.without(unwanted), range, None)
}

/// The rows that the nodes would count: the number of their source, if it is in the range.
fn count(cover: &Cover, nodes: &[IndexedInventory], range: TimeRange) -> Vec<u64> {
    let mut rows = Vec::new();
    for (name, share) in &cover.shares {
        let node = nodes.iter().find(|n| n.inventory().node == *name);
        let inventory = node.expect("a node of the cluster").inventory();
        for wanted in &share.segments {
            let mut copies = inventory.segments.iter();
            let segment = copies
                .find(|s| s.id == wanted.id)
                .expect("a segment of the node");
            let counted = segment.sources.without(&wanted.excluded);
            rows.extend(counted.iter().map(|source| source.sequence));
        }
        for source in share.journal.iter() {
            assert!(inventory.journal.iter().any(|file| file.source == source));
            rows.push(source.sequence);
        }
    }
    rows.retain(|row| range.contains(time_of(*row)));
    rows.sort_unstable();
    rows
}

#[test]
fn a_merged_segment_wins_over_its_inputs() {
    let nodes = [
        node(
            1,
            vec![segment(1, &[0, 1].into()), segment(2, &[2].into())],
            vec![journal(2)],
        ),
        node(2, vec![segment(3, &[0, 1, 2].into())], vec![]),
    ];
    let cover = plan(&nodes, &SourceSet::new(), TimeRange::ALL);
    assert_eq!(cover.shares.keys().collect::<Vec<_>>(), [&NodeId(2)]);
    assert!(cover.shares[&NodeId(2)].segments[0].excluded.is_empty());
}

#[test]
fn copies_are_shared_out() {
    let copies = || {
        (0..10)
            .map(|n| segment(n, &[n as u64].into()))
            .collect::<Vec<_>>()
    };
    let nodes = [node(1, copies(), vec![]), node(2, copies(), vec![])];
    let cover = plan(&nodes, &SourceSet::new(), TimeRange::ALL);
    let shares: Vec<_> = cover.shares.values().map(|s| s.segments.len()).collect();
    assert_eq!(shares, [5, 5]);
}

#[test]
fn copies_that_differ_are_two_segments() {
    let mut other = segment(1, &[0].into());
    other.digest += 1;
    other.sources.insert(source(1));
    other.rows = 2;
    let nodes = [
        node(1, vec![segment(1, &[0].into())], vec![]),
        node(2, vec![other], vec![]),
    ];
    let cover = plan(&nodes, &SourceSet::new(), TimeRange::ALL);
    assert_eq!(cover.shares.keys().collect::<Vec<_>>(), [&NodeId(2)]);
}

fn clusters() -> impl Strategy<Value = Vec<IndexedInventory>> {
    let sources = prop::collection::btree_set(0u64..12, 1..6);
    let segments = prop::collection::vec((0u128..4, sources), 0..5);
    let node_parts = (segments, prop::collection::btree_set(0u64..14, 0..5));
    prop::collection::vec(node_parts, 1..4).prop_map(|nodes| {
        let each = nodes.into_iter().enumerate();
        each.map(|(number, (segments, files))| {
            let segments = segments.iter().enumerate();
            let segments = segments.map(|(at, (id, sources))| {
                // Names are never reused within a node.
                segment(id + 10 * at as u128, sources)
            });
            let files = files.into_iter().map(journal).collect();
            node(number as u128, segments.collect(), files)
        })
        .collect()
    })
}

proptest! {
    #[test]
    fn every_row_is_counted_once(
        nodes in clusters(),
        unwanted in prop::collection::btree_set(0u64..14, 0..4),
        (from, length) in (0i64..140, 1i64..140),
    ) {
        let range = TimeRange { from: Timestamp(from), to: Timestamp(from + length) };
        let unwanted: SourceSet = unwanted.into_iter().map(source).collect();
        let cover = plan(&nodes, &unwanted, range);
        let held: BTreeSet<u64> = nodes
            .iter()
            .flat_map(|n| n.inventory().sources().iter().collect::<Vec<_>>())
            .filter(|s| !unwanted.contains(*s))
            .map(|s| s.sequence)
            .collect();
        let expected: Vec<u64> =
            held.iter().copied().filter(|n| range.contains(time_of(*n))).collect();
        prop_assert_eq!(count(&cover, &nodes, range), expected);
        // What is said to be counted is what is held.
        let counted: BTreeSet<u64> = cover.counted().iter().map(|s| s.sequence).collect();
        prop_assert_eq!(counted, held);
    }
}
