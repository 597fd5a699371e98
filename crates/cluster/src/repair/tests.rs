//! Who copies what to whom, and who tries to give up what.

use logpond_record::{Incarnation, Timestamp};

use super::*;
use crate::{HeldSegment, Inventory, ProcessId};

fn source(sequence: u64) -> SourceId {
    SourceId {
        incarnation: Incarnation(1),
        sequence,
    }
}

fn set(numbers: &[u64]) -> SourceSet {
    numbers.iter().map(|n| source(*n)).collect()
}

fn node(number: u128, segments: &[(u128, &[u64])]) -> IndexedInventory {
    let mut inventory = Inventory::empty(NodeId(number), ProcessId(number));
    let each = segments.iter().map(|(id, numbers)| HeldSegment {
        id: Id(*id),
        digest: *id,
        bytes: 1,
        rows: 1,
        time_min: Timestamp(0),
        time_max: Timestamp(0),
        received_min: Timestamp(0),
        received_max: Timestamp(0),
        is_remote: false,
        sources: set(numbers),
    });
    inventory.segments = each.collect::<Vec<_>>().into();
    IndexedInventory::new(inventory)
}

fn stores(count: u128) -> Vec<Store> {
    let each = (1..=count).map(|node| Store {
        node: NodeId(node),
        zone: None,
        free_bytes: 100,
        is_full: false,
        is_draining: false,
    });
    each.collect()
}

fn members<'a>(nodes: &'a [IndexedInventory], presence: &[(u128, Presence)]) -> Vec<Member<'a>> {
    let each = nodes.iter().map(|held| {
        let node = held.inventory().node;
        let known = presence.iter().find(|(name, _)| NodeId(*name) == node);
        Member {
            node,
            zone: None,
            presence: known.map_or(Presence::Live, |(_, presence)| *presence),
            held,
        }
    });
    each.collect()
}

/// What each node does at a time.
fn plans(members: &[Member<'_>], now_ms: u64) -> Vec<(u128, Job)> {
    let stores = stores(members.len() as u128);
    let mut all = Vec::new();
    for member in members {
        let mut repair = Repair::new(member.node, 2, AT_ONCE);
        repair.plan(members, &stores, 0);
        // The second look sees how long it has been so.
        let mut jobs = Repair {
            in_flight: BTreeMap::new(),
            ..repair
        };
        let jobs = jobs.plan(members, &stores, now_ms);
        all.extend(jobs.into_iter().map(|job| (member.node.0, job)));
    }
    all
}

/// What is seen is done at once.
const AT_ONCE: Settings = Settings {
    gone_ms: 900_000,
    settle_ms: 0,
    takeover_ms: 300_000,
    spread_ms: 60_000,
    failed_ms: 60_000,
};

const GONE: Presence = Presence::Gone { for_ms: 900_000 };
const AWAY: Presence = Presence::Gone { for_ms: 899_999 };

#[test]
fn one_holder_copies_what_has_too_few_copies() {
    let nodes = [
        node(1, &[(1, &[0, 1]), (2, &[2])]),
        node(2, &[(1, &[0, 1])]),
        node(3, &[]),
    ];
    let plan = plans(&members(&nodes, &[]), 0);
    assert_eq!(plan.len(), 1, "{plan:?}");
    assert!(matches!(plan[0], (1, Job::Copy { segment: Id(2), to }) if to != NodeId(1)));
}

#[test]
fn what_a_bucket_lists_is_copied_to_nobody() {
    let nodes = [node(1, &[(1, &[0]), (2, &[1])]), node(2, &[])];
    let plan = |presence: &[(u128, Presence)]| {
        let members = members(&nodes, presence);
        let mut repair = Repair::new(NodeId(1), 2, AT_ONCE);
        repair.set_listed(set(&[0]));
        repair.plan(&members, &stores(2), 0)
    };
    let copy = |segment| Job::Copy {
        segment,
        to: NodeId(2),
    };
    assert_eq!(plan(&[]), [copy(Id(2))]);
    assert_eq!(
        plan(&[(1, Presence::Draining)]),
        [Job::GiveUp(Id(1)), copy(Id(2))]
    );
}

#[test]
fn a_node_that_is_away_is_waited_for() {
    let nodes = [node(1, &[(1, &[0])]), node(2, &[(1, &[0])]), node(3, &[])];
    assert_eq!(plans(&members(&nodes, &[(2, AWAY)]), 0), []);
    let copy = Job::Copy {
        segment: Id(1),
        to: NodeId(3),
    };
    for presence in [GONE, Presence::Forgotten] {
        let members = members(&nodes, &[(2, presence)]);
        let mut repair = Repair::new(NodeId(1), 2, AT_ONCE);
        assert_eq!(repair.plan(&members, &stores(3), 0), [copy]);
    }
}

#[test]
fn of_several_holders_the_first_in_rank_copies_and_later_the_next() {
    let three = |number| node(number, &[(1, &[0])]);
    let nodes = [three(1), three(2), node(3, &[])];
    let members = members(&nodes, &[]);
    let plan = |me: u128, now_ms: u64| {
        let mut repair = Repair::new(NodeId(me), 3, AT_ONCE);
        let mut first = repair.clone();
        first.in_flight = (0..IN_FLIGHT_MAX as u128)
            .map(|n| (Id(90 + n), NodeId(9)))
            .collect();
        assert_eq!(
            first.plan(&members, &stores(3), 0),
            [],
            "enough is under way"
        );
        repair.few_since_ms = BTreeMap::from([(Id(1), 0)]);
        repair.plan(&members, &stores(3), now_ms).len()
    };
    assert_eq!(plan(1, 0) + plan(2, 0), 1);
    assert_eq!(plan(1, 299_999) + plan(2, 299_999), 1);
    assert_eq!(plan(1, 300_000) + plan(2, 300_000), 2);
}

/// A copy is stored before its maker's own: whoever looks in between must not send a third.
#[test]
fn too_few_copies_for_a_moment_are_none_to_repair() {
    let nodes = [node(1, &[(1, &[0])]), node(2, &[]), node(3, &[])];
    let few = members(&nodes, &[]);
    let enough = [node(1, &[(1, &[0])]), node(2, &[(2, &[0])]), node(3, &[])];
    let enough = members(&enough, &[]);
    let mut repair = Repair::new(NodeId(1), 2, Settings::default());
    for (members, now_ms, copies) in [
        (&few, 0, 0),
        (&few, 4_999, 0),
        (&enough, 5_000, 0),
        (&few, 6_000, 0),
        (&few, 10_999, 0),
        (&few, 11_000, 1),
    ] {
        let jobs = repair.plan(members, &stores(3), now_ms);
        assert_eq!(jobs.len(), copies, "at {now_ms} ms");
        assert!(!repair.is_settled() || std::ptr::eq(members, &enough));
    }
}

#[test]
fn a_store_that_failed_is_left_alone_for_a_while() {
    let nodes = [node(1, &[(1, &[0])]), node(2, &[]), node(3, &[])];
    let members = members(&nodes, &[]);
    let mut repair = Repair::new(NodeId(1), 2, AT_ONCE);
    let target = |jobs: Vec<Job>| match jobs[..] {
        [Job::Copy { to, .. }] => to,
        _ => panic!("{jobs:?}"),
    };
    let first = target(repair.plan(&members, &stores(3), 0));
    assert_eq!(repair.plan(&members, &stores(3), 0), [], "it is under way");
    assert_eq!(repair.in_flight_count(), 1);
    repair.copied(Id(1), first, false, 0);
    let second = target(repair.plan(&members, &stores(3), 1));
    assert_ne!(first, second);
    repair.copied(Id(1), second, false, 1);
    assert_eq!(repair.plan(&members, &stores(3), 2), []);
    assert_eq!(target(repair.plan(&members, &stores(3), 60_000)), first);
}

#[test]
fn only_who_is_not_needed_tries_to_give_up() {
    let copy = |number| node(number, &[(1, &[0, 1])]);
    let nodes = [copy(1), copy(2), copy(3), node(4, &[(7, &[1])])];
    let members = members(&nodes, &[]);
    let early = plans(&members, 0);
    assert_eq!(early, [], "they wait for each other");
    let late = plans(&members, 1_000_000);
    let giving: Vec<u128> = late.iter().map(|(node, _)| *node).collect();
    assert!(!late.is_empty() && giving.len() <= 2, "{late:?}");
    let ranked = key(source(0)).rank([1, 2, 3].map(NodeId));
    assert!(!giving.contains(&ranked[0].0) && !giving.contains(&ranked[1].0));
}

#[test]
fn a_leaving_node_sends_what_is_lacking_and_gives_up_the_rest() {
    let nodes = [
        node(1, &[(1, &[0]), (2, &[1])]),
        node(2, &[(1, &[0]), (2, &[1])]),
        node(3, &[(1, &[0])]),
    ];
    let members = members(&nodes, &[(1, Presence::Draining)]);
    let all = plans(&members, 0);
    assert!(all.contains(&(1, Job::GiveUp(Id(1)))), "{all:?}");
    let copies: Vec<_> = all
        .iter()
        .filter(|(_, job)| matches!(job, Job::Copy { .. }))
        .collect();
    let expected = Job::Copy {
        segment: Id(2),
        to: NodeId(3),
    };
    assert_eq!(copies.len(), 1, "{all:?}");
    assert_eq!(copies[0].1, expected);
}

#[test]
fn the_deficit_is_seen() {
    let nodes = [
        node(1, &[(1, &[0, 1])]),
        node(2, &[(1, &[0, 1])]),
        node(3, &[(2, &[1, 2])]),
    ];
    let (few, many) = deficit(&members(&nodes, &[]), Copies::on_nodes(2));
    assert_eq!((few, many), (set(&[2]), set(&[1])));
    let (few, _) = deficit(&members(&nodes, &[(2, AWAY)]), Copies::on_nodes(2));
    assert_eq!(few, set(&[0, 2]));
}

/// Retention removes a source here before it does there: it does not come back from there.
#[test]
fn what_has_expired_is_not_sent_back() {
    let nodes = [node(1, &[(10, &[1, 2])]), node(2, &[])];
    let members = members(&nodes, &[]);
    let jobs = |expired: &[u64]| {
        let mut repair = Repair::new(NodeId(1), 2, AT_ONCE);
        repair.set_expired(set(expired));
        repair.plan(&members, &stores(2), 0).len()
    };
    assert_eq!(jobs(&[]), 1);
    assert_eq!(jobs(&[1]), 1, "a segment goes whole");
    assert_eq!(jobs(&[1, 2]), 0);
}

#[test]
fn only_what_has_its_copies_is_settled() {
    let gone = |for_ms| Presence::Gone { for_ms };
    let live = (1, Presence::Live);
    type Row<'a> = (&'a str, &'a [(u128, &'a [u64])], (u128, Presence), bool);
    let table: [Row<'_>; 6] = [
        ("two copies", &[(1, &[1, 2])], live, true),
        ("one copy", &[], live, false),
        ("one copy of a part", &[(7, &[1])], live, false),
        (
            "its other holder is gone",
            &[(1, &[1, 2])],
            (2, gone(1)),
            true,
        ),
        ("for too long", &[(1, &[1, 2])], (2, gone(900_000)), false),
        ("or leaves", &[(1, &[1, 2])], (2, Presence::Draining), false),
    ];
    for (name, second, presence, expected) in table {
        let nodes = [node(1, &[(1, &[1, 2])]), node(2, second), node(3, &[])];
        let mut repair = Repair::new(NodeId(1), 2, AT_ONCE);
        assert!(!repair.is_settled(), "it has not looked");
        repair.plan(&members(&nodes, &[presence]), &stores(3), 0);
        assert_eq!(repair.is_settled(), expected, "{name}");
    }
    // One of three has a copy too many, and waits until it may try to give it up.
    let nodes = [1, 2, 3].map(|number| node(number, &[(1, &[1])]));
    let settled = [1, 2, 3].map(|number| {
        let mut repair = Repair::new(NodeId(number), 2, AT_ONCE);
        repair.plan(&members(&nodes, &[]), &stores(3), 0);
        repair.is_settled()
    });
    assert_eq!(settled.iter().filter(|settled| !**settled).count(), 1);
}

/// Nodes of which those with odd numbers are in one zone and the others in a second one.
fn zoned<'a>(nodes: &'a [IndexedInventory], presence: &[(u128, Presence)]) -> Vec<Member<'a>> {
    let mut members = members(nodes, presence);
    for member in &mut members {
        member.zone = Some(zone_of(member.node));
    }
    members
}

fn zone_of(node: NodeId) -> u64 {
    node.0 as u64 % 2
}

/// What each node does in the end, where there are to be two copies in two zones.
fn zoned_plans(members: &[Member<'_>]) -> Vec<(u128, Job)> {
    let stores = members.iter().map(|member| Store {
        zone: member.zone,
        ..stores(member.node.0).remove(member.node.0 as usize - 1)
    });
    let stores: Vec<Store> = stores.collect();
    let each = members.iter().flat_map(|member| {
        let mut repair = Repair::new(member.node, 2, AT_ONCE);
        repair.set_copies(Copies { nodes: 2, zones: 2 });
        let sent = repair.plan(members, &stores, 0).into_iter();
        let sent = sent.filter(|job| matches!(job, Job::Copy { .. }));
        let later = repair.plan(members, &stores, 1_000_000).into_iter();
        let jobs: Vec<Job> = sent.chain(later).collect();
        jobs.into_iter().map(|job| (member.node.0, job))
    });
    each.collect()
}

#[test]
fn copies_of_one_zone_are_not_enough() {
    let nodes = [1, 3, 2].map(|number| match number {
        2 => node(2, &[]),
        _ => node(number, &[(1, &[0])]),
    });
    let copy = Job::Copy {
        segment: Id(1),
        to: NodeId(2),
    };
    let jobs = zoned_plans(&zoned(&nodes, &[]));
    let is_copy = |(_, job): &(u128, Job)| *job == copy;
    assert!(!jobs.is_empty() && jobs.iter().all(is_copy), "{jobs:?}");
    // A third copy where there are two helps nobody.
    let nodes = [1, 3, 5].map(|number| match number {
        5 => node(5, &[]),
        _ => node(number, &[(1, &[0])]),
    });
    assert_eq!(zoned_plans(&zoned(&nodes, &[])), []);
    let (few, many) = deficit(&zoned(&nodes, &[]), Copies { nodes: 2, zones: 2 });
    assert_eq!((few, many), (set(&[0]), set(&[])));
}

#[test]
fn of_three_copies_one_goes_that_its_zone_has_twice() {
    for id in 0..40 {
        let sources = &[id][..];
        let nodes = [1, 3, 2].map(|number| node(number, &[(1, sources)]));
        let jobs = zoned_plans(&zoned(&nodes, &[]));
        let [(who, Job::GiveUp(Id(1)))] = jobs[..] else {
            panic!("{jobs:?}");
        };
        assert_ne!(who, 2, "its zone has no other");
    }
}
