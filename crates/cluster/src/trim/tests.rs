//! What is trimmed by whom, and that it comes to an end.

use logpond_record::{Incarnation, SourceId, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::give_up::{Attempt, GiveUp, HoldingsReply};
use crate::placement::Store;
use crate::repair::{self, Job, Repair};
use crate::{Holdings, IndexedInventory, Inventory, ProcessId};

fn set(numbers: &[u64]) -> SourceSet {
    let each = numbers.iter();
    each.map(|sequence| SourceId {
        incarnation: Incarnation(1),
        sequence: *sequence,
    })
    .collect()
}

fn rows(sources: &SourceSet) -> u64 {
    sources.iter().map(|source| 10 + source.sequence % 7).sum()
}

fn indexed(node: u128, segments: impl IntoIterator<Item = (Id, SourceSet)>) -> IndexedInventory {
    let mut inventory = Inventory::empty(NodeId(node), ProcessId(node));
    let each = segments.into_iter().map(|(id, sources)| HeldSegment {
        id,
        digest: id.0,
        bytes: 1 << 20,
        rows: rows(&sources),
        time_min: Timestamp(0),
        time_max: Timestamp(0),
        received_min: Timestamp(0),
        received_max: Timestamp(0),
        is_remote: false,
        sources,
    });
    inventory.segments = each.collect::<Vec<_>>().into();
    IndexedInventory::new(inventory)
}

fn node(number: u128, segments: &[(u128, &[u64])]) -> IndexedInventory {
    let each = segments.iter();
    indexed(number, each.map(|(id, numbers)| (Id(*id), set(numbers))))
}

fn members(nodes: &[IndexedInventory]) -> Vec<Member<'_>> {
    let each = nodes.iter().map(|held| Member {
        zone: None,
        node: held.inventory().node,
        presence: Presence::Live,
        held,
    });
    each.collect()
}

/// Waits for nothing, and finds everything worth it.
const AT_ONCE: Settings = Settings {
    after_ms: 0,
    failed_ms: 0,
    percent_min: 0,
    bytes_min: 0,
};

fn plan(trim: &mut Trim, members: &[Member<'_>], now_ms: u64) -> Option<Part> {
    let rows_of = |_: Id, sources: &SourceSet| rows(sources);
    trim.plan(members, &SourceSet::new(), &rows_of, now_ms)
}

/// What each node trims first, with two copies.
fn parts(nodes: &[IndexedInventory]) -> Vec<(u128, u128, SourceSet)> {
    let members = members(nodes);
    let of = |member: &Member<'_>| {
        let part = plan(&mut Trim::new(member.node, 2, AT_ONCE), &members, 0)?;
        Some((member.node.0, part.segment.0, part.sources))
    };
    members.iter().filter_map(of).collect()
}

#[test]
fn what_only_one_zone_has_beside_it_is_kept() {
    let nodes = [
        node(1, &[(1, &[1, 2, 3])]),
        node(2, &[(1, &[1, 2, 3])]),
        node(3, &[(2, &[3, 4])]),
    ];
    let trimmed = |zones: [u64; 3]| {
        let mut members = members(&nodes);
        for (member, zone) in members.iter_mut().zip(zones) {
            member.zone = Some(zone);
        }
        let mut trim = Trim::new(NodeId(3), 2, AT_ONCE);
        trim.set_copies(Copies { nodes: 2, zones: 2 });
        plan(&mut trim, &members, 0).map(|part| part.sources)
    };
    assert_eq!(trimmed([1, 1, 2]), None);
    assert_eq!(trimmed([1, 2, 2]), Some(set(&[3])));
}

#[test]
fn who_has_less_leaves_out_what_enough_others_have() {
    type Row<'a> = (
        &'a str,
        &'a [&'a [(u128, &'a [u64])]],
        &'a [(u128, u128, &'a [u64])],
    );
    let table: [Row<'_>; 7] = [
        (
            "the same files in two groupings",
            &[
                &[(1, &[1, 2, 3])],
                &[(1, &[1, 2, 3])],
                &[(2, &[3, 4])],
                &[(2, &[3, 4])],
            ],
            &[(3, 2, &[3]), (4, 2, &[3])],
        ),
        (
            "the greater segment stays as it is, whatever the names",
            &[
                &[(7, &[1, 2, 3])],
                &[(7, &[1, 2, 3])],
                &[(2, &[3, 4])],
                &[(2, &[3, 4])],
            ],
            &[(3, 2, &[3]), (4, 2, &[3])],
        ),
        (
            "no copy too many",
            &[&[(1, &[1, 2, 3])], &[(2, &[3, 4])], &[], &[]],
            &[],
        ),
        (
            "one too many: of two holders of one segment only the second in rank leaves it out",
            &[&[(1, &[1, 2, 3])], &[(2, &[3, 4])], &[(2, &[3, 4])]],
            &[(2, 2, &[3])],
        ),
        (
            "as many rows: the lesser name stays",
            &[&[(1, &[1, 3])], &[(1, &[1, 3])], &[(2, &[3, 8])]],
            &[(3, 2, &[3])],
        ),
        (
            "the node's own merge comes first",
            &[
                &[(1, &[1, 2, 3])],
                &[(1, &[1, 2, 3])],
                &[(2, &[3, 4]), (3, &[3, 5])],
            ],
            &[],
        ),
        (
            "all of it, by different groupings",
            &[&[(1, &[1, 2, 3])], &[(1, &[1, 2, 3])], &[(2, &[3])]],
            &[(3, 2, &[3])],
        ),
    ];
    for (name, nodes, expected) in table {
        let nodes: Vec<IndexedInventory> = nodes
            .iter()
            .enumerate()
            .map(|(at, segments)| node(at as u128 + 1, segments))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(node, segment, numbers)| (*node, *segment, set(numbers)))
            .collect();
        assert_eq!(parts(&nodes), expected, "{name}");
    }
}

/// The second holder of a segment is needed as long as there is no third copy before it.
#[test]
fn nodes_that_are_not_there_or_leave_hold_nothing() {
    let nodes = [
        node(1, &[(1, &[1, 2, 3])]),
        node(2, &[(1, &[1, 2, 3])]),
        node(3, &[(2, &[3, 4])]),
    ];
    let (gone, leaves) = (Presence::Gone { for_ms: 1 }, Presence::Draining);
    for (at, presence, expected) in [
        (0, Presence::Live, true),
        (0, gone, false),
        (1, leaves, false),
        (2, leaves, false),
    ] {
        let mut members = members(&nodes);
        members[at].presence = presence;
        let mut trim = Trim::new(NodeId(3), 2, AT_ONCE);
        assert_eq!(plan(&mut trim, &members, 0).is_some(), expected);
    }
    let mut trim = Trim::new(NodeId(3), 2, AT_ONCE);
    let rows_of = |_: Id, sources: &SourceSet| rows(sources);
    let part = trim.plan(&members(&nodes), &set(&[3]), &rows_of, 0);
    assert_eq!(part, None, "what has expired goes soon anyway");
}

#[test]
fn it_waits_until_it_has_been_so_for_long_and_is_worth_it() {
    let settings = Settings {
        after_ms: 100,
        failed_ms: 50,
        percent_min: 25,
        bytes_min: 1 << 30,
    };
    let both = |third: &[u64]| {
        [
            node(1, &[(1, &[1, 2, 3, 4, 5])]),
            node(2, &[(1, &[1, 2, 3, 4, 5])]),
            node(3, &[(2, third)]),
        ]
    };
    let (much, little, none) = (both(&[2, 3, 13]), both(&[1, 5, 13, 20]), both(&[13]));
    let mut trim = Trim::new(NodeId(3), 2, settings);
    assert_eq!(
        plan(&mut trim, &members(&little), 0).map(|p| p.sources),
        None
    );
    assert!(!trim.is_settled(), "it waits");
    assert_eq!(plan(&mut trim, &members(&none), 90), None);
    assert!(trim.is_settled());
    for (now_ms, expected) in [(100, false), (199, false), (200, true)] {
        let part = plan(&mut trim, &members(&much), now_ms);
        assert_eq!(part.map(|p| p.sources), expected.then(|| set(&[2, 3])));
    }
    assert_eq!(plan(&mut trim, &members(&much), 201), None, "one at a time");
    trim.ended(Id(2), false, 210);
    for (now_ms, expected) in [(259, false), (260, true)] {
        let part = plan(&mut trim, &members(&much), now_ms);
        assert_eq!(part.is_some(), expected, "at {now_ms} ms");
    }
    trim.ended(Id(2), true, 270);
    let dear = Settings {
        percent_min: 80,
        ..settings
    };
    let mut trim = Trim::new(NodeId(3), 2, dear);
    assert_eq!(plan(&mut trim, &members(&much), 0), None);
    assert!(trim.is_settled(), "it is not worth it, and never will be");
}

/// What comes later is not taken along before it has waited, too.
#[test]
fn only_what_was_superfluous_all_the_time_is_left_out() {
    let settings = Settings {
        after_ms: 100,
        ..AT_ONCE
    };
    let nodes = |first: &[u64]| {
        [
            node(1, &[(1, first)]),
            node(2, &[(1, first)]),
            node(3, &[(2, &[3, 4, 20])]),
        ]
    };
    let (one, two) = (nodes(&[3, 6, 13, 27]), nodes(&[3, 4, 6, 13, 27]));
    let mut trim = Trim::new(NodeId(3), 2, settings);
    assert_eq!(plan(&mut trim, &members(&one), 0), None);
    let part = plan(&mut trim, &members(&two), 100);
    assert_eq!(part.map(|part| part.sources), Some(set(&[3])));
}

/// Nodes with their segments, whose jobs are carried out at once.
struct Cluster {
    nodes: Vec<Holdings>,
    copies: usize,
    next: u128,
    rewritten: usize,
}

impl Cluster {
    fn id(&mut self) -> Id {
        self.next += 1;
        Id(self.next)
    }

    fn look(&self) -> Vec<IndexedInventory> {
        let each = self.nodes.iter().zip(1..);
        each.map(|(node, at)| indexed(at, node.live().map(|(id, s)| (id, s.clone()))))
            .collect()
    }

    fn sources(&self, at: usize, segment: Id) -> SourceSet {
        let mut live = self.nodes[at].live();
        live.find(|(id, _)| *id == segment).unwrap().1.clone()
    }

    /// Segments of a node that share sources become one, as its store does of itself.
    fn merge(&mut self, at: usize) {
        loop {
            let live: Vec<(Id, SourceSet)> = self.nodes[at]
                .live()
                .map(|(id, sources)| (id, sources.clone()))
                .collect();
            let pair = live.iter().find_map(|(id, sources)| {
                let mut others = live.iter().filter(|(other, _)| other != id);
                let other = others.find(|(_, other)| !other.is_disjoint(sources))?;
                Some(([*id, other.0], SourceSet::union_of([sources, &other.1])))
            });
            let Some((inputs, sources)) = pair else {
                return;
            };
            let id = self.id();
            self.nodes[at].add(id, sources);
            self.nodes[at].retire(&inputs).unwrap();
        }
    }

    /// All flag, then all ask, then all drop: the most that meets.
    fn give_up(&mut self, parts: &[(usize, Part)]) -> Vec<bool> {
        let attempt = |at: usize| Attempt(at as u128 + 1);
        for (at, part) in parts {
            self.nodes[*at].flag(attempt(*at), part.sources.clone());
        }
        let answers: Vec<SourceSet> = parts
            .iter()
            .map(|(at, part)| {
                let others = (0..self.nodes.len()).filter(|other| other != at);
                let peers: Vec<Peer> = others
                    .map(|other| Peer {
                        node: NodeId(other as u128 + 1),
                        zone: None,
                    })
                    .collect();
                let copies = Copies::on_nodes(self.copies);
                let mut asking = GiveUp::new(attempt(*at), part.sources.clone(), &peers, copies);
                for peer in peers {
                    let question = asking.question();
                    asking.answered(&HoldingsReply {
                        attempt: question.attempt,
                        node: peer.node,
                        sources: self.nodes[peer.node.0 as usize - 1].answer(&question),
                        listed: None,
                        contents: Vec::new(),
                    });
                }
                asking.confirmed()
            })
            .collect();
        let mut done = Vec::new();
        for ((at, part), confirmed) in parts.iter().zip(answers) {
            let live = self.nodes[*at].live().find(|(id, _)| *id == part.segment);
            let left = live.map(|(_, sources)| sources.without(&confirmed));
            let is_done = left.is_some() && !confirmed.is_empty();
            if let (Some(left), true) = (left, is_done) {
                if !left.is_empty() {
                    let id = self.id();
                    self.nodes[*at].add(id, left);
                }
                let dropped = self.nodes[*at].give_up(part.segment, attempt(*at), &confirmed);
                assert_eq!(dropped, Ok(()));
                self.rewritten += 1;
            }
            self.nodes[*at].unflag(attempt(*at));
            done.push(is_done);
        }
        done
    }

    /// The least and the most holders of any source.
    fn holders(&self, all: &SourceSet) -> (usize, usize) {
        let count = |source| {
            let held = self.nodes.iter().filter(|n| n.stored().contains(source));
            held.count()
        };
        let counts: Vec<usize> = all.iter().map(count).collect();
        let (least, most) = (counts.iter().min(), counts.iter().max());
        (least.copied().unwrap_or(0), most.copied().unwrap_or(0))
    }
}

fn stores(count: usize) -> Vec<Store> {
    let store = |at: usize| Store {
        node: NodeId(at as u128 + 1),
        zone: None,
        free_bytes: 100,
        is_full: false,
        is_draining: false,
    };
    (0..count).map(store).collect()
}

/// The segments of all nodes.
fn names(held: &[IndexedInventory]) -> Vec<Id> {
    let each = held
        .iter()
        .flat_map(|node| node.inventory().segments.iter());
    each.map(|segment| segment.id).collect()
}

/// Has nodes repair, give up and trim until nothing has happened for an hour; gives how many
/// copies there are at the least and at the most, and how often something was written anew.
fn run(
    segments: &[(usize, Vec<u64>)],
    count: usize,
    copies: usize,
    settings: Settings,
) -> Result<(usize, usize, usize), TestCaseError> {
    let mut cluster = Cluster {
        nodes: vec![Holdings::default(); count],
        copies,
        next: 100,
        rewritten: 0,
    };
    let mut all = SourceSet::new();
    for (at, numbers) in segments {
        let id = cluster.id();
        cluster.nodes[at % count].add(id, set(numbers));
        all.union_with(&set(numbers));
    }
    let me = |at: usize| NodeId(at as u128 + 1);
    let repair = repair::Settings::default();
    let mut repairs: Vec<Repair> = (0..count)
        .map(|at| Repair::new(me(at), copies, repair))
        .collect();
    let mut trims: Vec<Trim> = (0..count)
        .map(|at| Trim::new(me(at), copies, settings))
        .collect();
    let stores = stores(count);
    let (mut now_ms, mut quiet_since_ms) = (0, 0);
    let mut least = 0;
    while now_ms < quiet_since_ms + 3_600_000 {
        prop_assert!(now_ms < 200 * 3_600_000, "it goes on and on");
        let before = cluster.look();
        (0..count).for_each(|at| cluster.merge(at));
        let held = cluster.look();
        let members = members(&held);
        let (mut parts, mut sent) = (Vec::new(), Vec::new());
        for at in 0..count {
            for job in repairs[at].plan(&members, &stores, now_ms) {
                match job {
                    Job::Copy { segment, to } => sent.push((at, segment, to)),
                    Job::GiveUp(segment) => {
                        let sources = cluster.sources(at, segment);
                        parts.push((at, Part { segment, sources }));
                    }
                }
            }
            let is_free = !repairs[at].is_lacking() && parts.iter().all(|(by, _)| *by != at);
            if let (true, Some(part)) = (is_free, plan(&mut trims[at], &members, now_ms)) {
                parts.push((at, part));
            }
        }
        for (at, segment, to) in sent {
            let sources = cluster.sources(at, segment);
            cluster.nodes[to.0 as usize - 1].add(segment, sources);
            repairs[at].copied(segment, to, true, now_ms);
        }
        // Of a node one attempt at a time.
        parts.dedup_by_key(|(at, _)| *at);
        let done = cluster.give_up(&parts);
        for ((at, part), done) in parts.iter().zip(done) {
            trims[*at].ended(part.segment, done, now_ms);
        }
        let (now_least, _) = cluster.holders(&all);
        prop_assert!(now_least >= least.min(copies), "a copy too many has gone");
        least = now_least;
        if names(&before) != names(&cluster.look()) {
            quiet_since_ms = now_ms;
        }
        now_ms += 30_000;
    }
    let (least, most) = cluster.holders(&all);
    Ok((least, most, cluster.rewritten))
}

fn overlaps() -> impl Strategy<Value = Vec<(usize, Vec<u64>)>> {
    let numbers = prop::collection::vec(0u64..24, 1..10);
    prop::collection::vec((0usize..8, numbers), 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_overlaps_end_with_as_many_copies_as_there_are_to_be(
        segments in overlaps(),
        count in 1usize..7,
        copies in 1usize..4,
    ) {
        let settings = Settings { percent_min: 0, ..Settings::default() };
        let (least, most, _) = run(&segments, count, copies, settings)?;
        let expected = copies.min(count);
        prop_assert_eq!((least, most), (expected, expected));
    }

    #[test]
    fn what_is_worth_it_ends_too(
        segments in overlaps(),
        count in 1usize..7,
        copies in 1usize..4,
    ) {
        let listed: usize = segments.iter().map(|(_, numbers)| numbers.len()).sum();
        let (least, _, rewritten) = run(&segments, count, copies, Settings::default())?;
        prop_assert_eq!(least, copies.min(count));
        // Each takes at least one copy of a source away; repair brings segments along whole.
        prop_assert!(rewritten <= listed * copies, "{} of {}", rewritten, listed);
    }
}
