//! Questions to made-up clusters whose nodes answer, fail, and move data meanwhile.

use logpond_record::{Id, Incarnation, SourceId, Timestamp};
use proptest::prelude::*;

use super::*;

use crate::{BucketView, CurrentIncarnation, Fate, HeldJournal, HeldSegment};

const INGESTER: Incarnation = Incarnation(5);

fn source(sequence: u64) -> SourceId {
    SourceId {
        incarnation: INGESTER,
        sequence,
    }
}

fn set(numbers: &[u64]) -> SourceSet {
    numbers.iter().map(|n| source(*n)).collect()
}

fn known(forgotten: bool) -> RegistryEntry {
    RegistryEntry {
        forgotten: forgotten.then_some(1),
        ..RegistryEntry::there("a:1".into(), String::new(), 1)
    }
}

/// A registry of these nodes, with one incarnation of node 1 that is sealed with 4 sources.
fn registry(nodes: &[u128]) -> Registry {
    let mut registry = Registry::default();
    for node in nodes {
        registry.note_node(NodeId(*node), known(false));
    }
    registry.note(INGESTER, Fate::born(NodeId(1), Timestamp(0)));
    registry.seal(INGESTER, 4);
    registry
}

fn node(number: u128, segments: &[(u128, &[u64])], registry: Registry) -> Arc<IndexedInventory> {
    let mut inventory = Inventory::empty(NodeId(number), ProcessId(number));
    inventory.segments = segments
        .iter()
        .map(|(id, numbers)| HeldSegment {
            id: Id(*id),
            digest: *id,
            bytes: 10,
            rows: numbers.len() as u64,
            time_min: Timestamp(numbers.iter().min().map_or(0, |n| *n as i64)),
            time_max: Timestamp(numbers.iter().max().map_or(0, |n| *n as i64)),
            received_min: Timestamp(0),
            received_max: Timestamp(9),
            is_remote: false,
            sources: set(numbers),
        })
        .collect::<Vec<_>>()
        .into();
    inventory.registry = registry.into();
    Arc::new(IndexedInventory::new(inventory))
}

fn collect(nodes: &[Arc<IndexedInventory>], silent: &[u128]) -> CollectionResult {
    let mut collection = Collection::new(Registry::default(), silent.iter().map(|n| NodeId(*n)));
    nodes
        .iter()
        .for_each(|node| collection.answered(node.clone()));
    silent
        .iter()
        .for_each(|node| collection.silent(NodeId(*node), None));
    collection.finish()
}

fn ask(nodes: &[Arc<IndexedInventory>], silent: &[u128]) -> (Question, Vec<Task>) {
    let collected = collect(nodes, silent);
    Question::new(collected, SourceSet::new(), TimeRange::ALL, None, 1)
}

#[test]
fn answers_name_further_nodes_to_ask() {
    let mut collection = Collection::new(Registry::default(), [NodeId(1)]);
    assert_eq!(collection.to_ask(), [NodeId(1)]);
    collection.answered(node(1, &[], registry(&[1, 2])));
    assert_eq!(collection.to_ask(), [NodeId(2)]);
    collection.silent(NodeId(2), Some(node(2, &[], registry(&[1, 2, 3]))));
    assert_eq!(collection.to_ask(), [NodeId(3)]);
    let collected = collection.finish();
    assert_eq!(collected.answered.len(), 1);
    assert_eq!(collected.silent, [NodeId(2), NodeId(3)]);
}

#[test]
fn forgotten_nodes_are_not_waited_for() {
    let forgetting = || {
        let mut registry = registry(&[1, 2, 3]);
        registry.note_node(NodeId(3), known(true));
        registry
    };
    let all = [node(1, &[], forgetting()), node(2, &[], registry(&[1, 2]))];
    assert_eq!(collect(&all, &[3]).silent, []);
    // Node 2 may have recorded a birth on node 3 only, unless it was known to know better.
    let first = &all[..1];
    assert_eq!(collect(first, &[2]).silent, [NodeId(2), NodeId(3)]);
    let mut collection = Collection::new(Registry::default(), []);
    collection.answered(all[0].clone());
    collection.silent(NodeId(2), Some(node(2, &[], forgetting())));
    assert_eq!(collection.finish().silent, [NodeId(2)]);
}

#[test]
fn a_silent_nodes_earlier_word_is_remembered() {
    let mut later = registry(&[1, 2]);
    later.note(Incarnation(6), Fate::born(NodeId(2), Timestamp(0)));
    let mut collection = Collection::new(Registry::default(), []);
    collection.answered(node(1, &[(1, &[0, 1, 2, 3])], registry(&[1, 2])));
    collection.silent(NodeId(2), Some(node(2, &[], later)));
    let collected = collection.finish();
    let tails = collected.target().tails;
    assert_eq!(tails.len(), 1);
    assert_eq!(tails[0].incarnation, Incarnation(6));
}

#[test]
fn a_silent_nodes_bucket_is_missed_unless_another_one_has_read_it() {
    let with = |number, bucket| {
        let segments: &[(u128, &[u64])] = &[(1, &[0, 1, 2, 3])];
        let mut inventory = node(number, segments, registry(&[1, 2]))
            .inventory()
            .clone();
        inventory.bucket = bucket;
        Arc::new(IndexedInventory::new(inventory))
    };
    let unread = |view, last| {
        let mut collection = Collection::new(Registry::default(), []);
        collection.answered(with(1, view));
        collection.silent(NodeId(2), Some(with(2, last)));
        let (mut question, tasks) = Question::new(
            collection.finish(),
            SourceSet::new(),
            TimeRange::ALL,
            None,
            1,
        );
        assert!(question.receipt(tasks[0].id, &set(&[0, 1, 2, 3])));
        let judged = question.finish();
        assert_eq!(judged.is_complete(), judged.unread.is_empty());
        judged.unread
    };
    let (none, blind, read) = (BucketView::None, BucketView::Unread, BucketView::Read);
    assert_eq!(unread(none, none), []);
    assert_eq!(unread(none, read), [NodeId(2)]);
    assert_eq!(unread(none, blind), [NodeId(2)]);
    assert_eq!(unread(read, read), []);
    assert_eq!(unread(blind, read), [NodeId(1), NodeId(2)]);
}

/// It answers before its birth, and another one after it.
#[test]
fn a_node_whose_word_is_overtaken_is_asked_again() {
    let born = || {
        let mut later = registry(&[1, 2]);
        later.note(Incarnation(6), Fate::born(NodeId(2), Timestamp(0)));
        later
    };
    let mut collection = Collection::new(Registry::default(), []);
    collection.answered(node(2, &[], registry(&[1, 2])));
    assert_eq!(collection.to_ask_again(), []);
    collection.answered(node(1, &[(1, &[0, 1, 2, 3])], born()));
    assert_eq!(collection.to_ask_again(), [NodeId(2)]);
    // What it said at first counts if it does not answer now; nor is it asked for ever.
    let mut silent = collection.clone();
    silent.silent(NodeId(2), None);
    assert_eq!(silent.to_ask_again(), []);
    let collected = silent.finish();
    assert_eq!((collected.answered.len(), collected.silent.len()), (2, 0));
    assert_eq!(collected.target().tails.len(), 1);
    let mut inventory = node(2, &[], born()).inventory().clone();
    inventory.living = Some(CurrentIncarnation {
        incarnation: Incarnation(6),
        end: 0,
    });
    collection.answered(Arc::new(IndexedInventory::new(inventory)));
    assert_eq!(collection.to_ask_again(), []);
    assert_eq!(collection.finish().target().tails, []);
}

#[test]
fn what_a_failed_node_had_is_read_elsewhere() {
    let nodes = [
        node(1, &[(1, &[0, 1])], registry(&[1, 2])),
        node(2, &[(2, &[0]), (3, &[1]), (4, &[2, 3])], registry(&[1, 2])),
    ];
    let (mut question, tasks) = ask(&nodes, &[]);
    for task in tasks {
        match task.node {
            NodeId(1) => question.failed(task.id),
            _ => assert!(question.receipt(task.id, &task.share.sources)),
        }
    }
    assert_eq!(question.missing(), set(&[0, 1]));
    let again = question.replan(Vec::new());
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].node, NodeId(2));
    assert!(question.receipt(again[0].id, &set(&[0, 1])));
    assert!(question.replan(Vec::new()).is_empty());
    assert!(question.finish().is_complete());
}

#[test]
fn what_has_gone_is_looked_for_where_it_went() {
    let (mut question, tasks) = ask(&[node(1, &[(1, &[0, 1, 2, 3])], registry(&[1]))], &[]);
    assert!(question.receipt(tasks[0].id, &SourceSet::new()), "all gone");
    let moved = node(1, &[(2, &[0, 1]), (3, &[2, 3, 4])], registry(&[1]));
    let again = question.replan(vec![moved]);
    assert_eq!(again[0].share.sources, set(&[0, 1, 2, 3]), "4 is too new");
    assert!(question.receipt(again[0].id, &set(&[0, 1, 2, 3])));
    assert!(question.finish().is_complete());
}

#[test]
fn planning_ends() {
    let (mut question, mut tasks) = ask(&[node(1, &[(1, &[0])], registry(&[1]))], &[]);
    let mut rounds = 0;
    while let Some(task) = tasks.pop() {
        assert!(question.receipt(task.id, &SourceSet::new()));
        tasks = question.replan(Vec::new());
        rounds += 1;
    }
    assert_eq!(rounds, ROUNDS_MAX + 1);
    let completeness = question.finish();
    assert_eq!(completeness.gaps.len(), 1);
    assert_eq!(completeness.gaps[0].interval.to, 3);
}

#[test]
fn receipts_that_overlap_or_were_not_asked_for_are_refused() {
    let nodes = [
        node(1, &[(1, &[0, 1, 2, 3])], registry(&[1, 2])),
        node(2, &[(2, &[0, 1]), (3, &[2, 3])], registry(&[1, 2])),
    ];
    let (mut question, tasks) = ask(&nodes, &[]);
    assert_eq!(tasks[0].node, NodeId(1), "one segment rather than two");
    let hedges = question.hedge(tasks[0].id);
    assert_eq!(hedges[0].node, NodeId(2));
    assert_eq!(question.waiting().count(), 2);
    assert!(
        question.receipt(hedges[0].id, &set(&[0, 1])),
        "a part of it"
    );
    assert!(!question.receipt(hedges[0].id, &set(&[2])), "only once");
    assert!(!question.receipt(tasks[0].id, &set(&[0, 1, 2, 3])));
    let again = question.replan(Vec::new());
    let asked: Vec<_> = again.iter().map(|t| t.share.sources.clone()).collect();
    assert_eq!(asked, [set(&[2, 3])]);
    assert!(
        !question.receipt(again[0].id, &set(&[1, 2])),
        "1 was not asked"
    );
    assert!(!question.finish().is_complete());
}

#[test]
fn others_take_the_place_of_a_late_node() {
    let nodes = [
        node(1, &[(1, &[0, 1, 2, 3])], registry(&[1, 2, 3])),
        node(2, &[(2, &[0, 1])], registry(&[1, 2, 3])),
        node(3, &[(3, &[2, 3])], registry(&[1, 2, 3])),
    ];
    let (mut question, tasks) = ask(&nodes, &[]);
    assert_eq!(tasks.len(), 1);
    let others = question.hedge(tasks[0].id);
    assert_eq!(others.len(), 2);
    // They were sooner: the late one is not waited for, and what it says later is refused.
    question.give_over(tasks[0].id);
    question.avoid(tasks[0].node);
    assert!(question.receipt(others[0].id, &others[0].share.sources));
    assert!(!question.receipt(tasks[0].id, &tasks[0].share.sources));
    // One of them was not done; the late one is asked for nothing in its place.
    question.failed(others[1].id);
    assert!(
        question
            .replan_of(&others[1].share.sources, Vec::new())
            .is_empty()
    );
    assert_eq!(question.missing(), others[1].share.sources);
}

#[test]
fn what_goes_on_somewhere_else_is_that_and_no_more() {
    let nodes = [
        node(1, &[(1, &[0]), (2, &[1])], registry(&[1, 2])),
        node(2, &[(3, &[2, 3])], registry(&[1, 2])),
    ];
    let (mut question, tasks) = ask(&nodes, &[]);
    for task in &tasks {
        assert!(question.receipt(task.id, &SourceSet::new()), "all gone");
    }
    let moved = vec![node(2, &[(4, &[0, 1, 2, 3])], registry(&[1, 2]))];
    let again = question.replan_of(&set(&[1]), moved);
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].share.sources, set(&[1]));
}

#[test]
fn nothing_is_hedged_that_nobody_else_has() {
    let (mut question, tasks) = ask(&[node(1, &[(1, &[0])], registry(&[1]))], &[]);
    assert!(question.hedge(tasks[0].id).is_empty());
    assert!(question.hedge(TaskId(99)).is_empty());
}

#[test]
fn a_shadowed_retry_is_neither_read_nor_missed() {
    let all = [node(1, &[(1, &[0, 1, 2, 3])], registry(&[1]))];
    let collected = collect(&all, &[]);
    let (mut question, tasks) = Question::new(collected, set(&[2]), TimeRange::ALL, None, 1);
    assert_eq!(tasks[0].share.sources, set(&[0, 1, 3]));
    assert!(question.receipt(tasks[0].id, &tasks[0].share.sources));
    assert!(question.finish().is_complete());
}

#[test]
fn what_becomes_visible_late_may_hold_what_is_counted() {
    let (mut question, tasks) = ask(&[node(1, &[(1, &[0])], registry(&[1, 2]))], &[2]);
    assert!(question.receipt(tasks[0].id, &set(&[0])));
    // 0 is a copy of a batch in 1, and so is 2; 3 is something else.
    let fresh = vec![node(2, &[(2, &[0, 1, 2, 3])], registry(&[1, 2]))];
    assert_eq!(question.newly_visible(&fresh), set(&[1, 2, 3]));
    question.bar(&set(&[1]));
    question.shadow(&set(&[2]));
    let tasks = question.replan(fresh);
    assert_eq!(tasks[0].share.sources, set(&[3]));
    assert!(question.receipt(tasks[0].id, &set(&[3])));
    let gaps = question.finish().gaps;
    assert_eq!(gaps.len(), 1);
    assert_eq!(gaps[0].interval.from, 1);
}

#[test]
fn what_is_out_of_range_needs_no_reading() {
    let all = [node(1, &[(1, &[0, 1]), (2, &[2, 3])], registry(&[1]))];
    let range = TimeRange {
        from: Timestamp(2),
        to: Timestamp(9),
    };
    let (mut question, tasks) = Question::new(collect(&all, &[]), SourceSet::new(), range, None, 1);
    assert_eq!(tasks[0].share.sources, set(&[2, 3]));
    assert!(question.receipt(tasks[0].id, &tasks[0].share.sources));
    assert!(question.finish().is_complete());
}

#[test]
fn a_living_writer_is_exact_and_a_dead_one_is_not() {
    let with_journal = |living: bool| {
        let mut inventory = Inventory::empty(NodeId(1), ProcessId(1));
        Arc::make_mut(&mut inventory.registry).note(INGESTER, Fate::born(NodeId(1), Timestamp(0)));
        inventory.journal.push(HeldJournal {
            source: source(0),
            bytes: 1,
            rows: 1,
            received_min: Timestamp(0),
            received_max: Timestamp(0),
            last: Id(9),
            is_open: true,
        });
        inventory.living = living.then_some(CurrentIncarnation {
            incarnation: INGESTER,
            end: 1,
        });
        Arc::new(IndexedInventory::new(inventory))
    };
    for living in [true, false] {
        let (mut question, tasks) = ask(&[with_journal(living)], &[]);
        let reach = Reach {
            bytes: 1,
            last: Id(9),
        };
        assert_eq!(tasks[0].open, BTreeMap::from([(source(0), reach)]));
        assert!(question.receipt(tasks[0].id, &set(&[0])));
        assert_eq!(question.finish().is_complete(), living);
    }
}

proptest! {
    /// Whoever fails and whatever has gone, no source is counted twice, and what is claimed is so.
    #[test]
    fn claims_are_true(
        held in prop::collection::vec(prop::collection::vec(prop::collection::btree_set(0u64..6, 1..4), 0..4), 1..4),
        outcomes in prop::collection::vec((0u8..4, 0u64..6), 0..30),
    ) {
        let nodes: Vec<Arc<IndexedInventory>> = (1u128..).zip(&held).map(|(number, segments)| {
            let segments: Vec<(u128, Vec<u64>)> = (number * 10..)
                .zip(segments)
                .map(|(id, numbers)| (id, numbers.iter().copied().collect()))
                .collect();
            let segments: Vec<(u128, &[u64])> = segments.iter().map(|(id, n)| (*id, &n[..])).collect();
            node(number, &segments, registry(&[number]))
        }).collect();
        let (mut question, mut tasks) = ask(&nodes, &[]);
        let mut outcomes = outcomes.into_iter();
        let mut counted: Vec<SourceId> = Vec::new();
        loop {
            while let Some(task) = tasks.pop() {
                let (what, number) = outcomes.next().unwrap_or((3, 0));
                let all = task.share.sources.clone();
                match what {
                    0 => question.failed(task.id),
                    1 => tasks.extend(question.hedge(task.id)),
                    _ => {
                        let gone = if what == 2 { set(&[number]) } else { SourceSet::new() };
                        let receipt = all.without(&gone);
                        if question.receipt(task.id, &receipt) {
                            counted.extend(receipt.iter());
                        }
                    }
                }
            }
            let waiting: Vec<Task> = question.waiting().cloned().collect();
            waiting.iter().for_each(|task| question.failed(task.id));
            tasks = question.replan(Vec::new());
            if tasks.is_empty() {
                break;
            }
        }
        let (count, wanted) = (counted.len(), question.target().wanted.clone());
        counted.sort();
        counted.dedup();
        prop_assert_eq!(counted.len(), count, "counted twice");
        let counted: SourceSet = counted.into_iter().collect();
        let completeness = question.finish();
        let mut reported = SourceSet::new();
        for gap in &completeness.gaps {
            reported.insert_interval(gap.incarnation, gap.interval);
        }
        prop_assert_eq!(wanted.without(&counted), reported);
        prop_assert_eq!(completeness.is_complete(), wanted == counted);
    }
}

/// The target is of before: what the bucket has beyond it was not asked for.
#[test]
fn a_bucket_that_is_read_while_a_question_runs_has_not_been_read_for_it() {
    let with = |bucket, segments: &[(u128, &[u64])]| {
        let mut inventory = node(1, segments, registry(&[1])).inventory().clone();
        inventory.bucket = bucket;
        Arc::new(IndexedInventory::new(inventory))
    };
    let all: [(u128, &[u64]); 1] = [(7, &[0, 1, 2, 3])];
    let (mut question, tasks) = ask(&[with(BucketView::Unread, &all)], &[]);
    assert!(question.receipt(tasks[0].id, &set(&[0, 1])));
    let again = question.replan(vec![with(BucketView::Read, &all)]);
    assert!(question.receipt(again[0].id, &set(&[2, 3])));
    let judged = question.finish();
    assert!(judged.gaps.is_empty() && !judged.is_complete());
    assert_eq!(judged.unread, [NodeId(1)]);
}
