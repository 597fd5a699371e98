//! Chains under writers that race, pause, lose replies and come late.

use std::collections::BTreeMap;

use logpond_record::{Id, Incarnation, SourceId, Timestamp};
use logpond_segment::sources::SourceSet;
use proptest::prelude::*;

use super::*;
use crate::Day;

const NOON: Timestamp = Timestamp(1_763_899_200_000_000_000);

fn sources(numbers: impl IntoIterator<Item = u64>) -> SourceSet {
    let source = |sequence| SourceId {
        incarnation: Incarnation(7),
        sequence,
    };
    numbers.into_iter().map(source).collect()
}

fn listed(id: u128, numbers: impl IntoIterator<Item = u64>) -> SegmentEntry {
    SegmentEntry {
        id: Id(id),
        bytes: 1000,
        index_from: 900,
        rows: 10,
        line_bytes: 5000,
        time: (NOON, NOON),
        received: (NOON, NOON),
        cold: false,
        sources: sources(numbers),
    }
}

fn cold(id: u128, numbers: impl IntoIterator<Item = u64>) -> SegmentEntry {
    SegmentEntry {
        cold: true,
        ..listed(id, numbers)
    }
}

/// A link that lists these.
fn link(segments: &[SegmentEntry]) -> Link {
    segments.iter().fold(Link::empty(Day::of(NOON)), |link, s| {
        match link.decide(&Change::List(s.clone()), NOON) {
            Verdict::Write(next) => next,
            Verdict::Settled(settled) => panic!("{} cannot be listed: {settled:?}", s.id),
        }
    })
}

fn ids(link: &Link) -> Vec<u128> {
    link.segments.iter().map(|s| s.id.0).collect()
}

#[test]
fn what_may_be_listed() {
    let head = link(&[listed(1, 0..3), listed(2, 3..5), cold(3, 5..6)]);
    let table = [
        ("new sources", listed(9, 6..8), Ok(vec![1, 2, 3, 9])),
        ("a merge", listed(9, 0..5), Ok(vec![3, 9])),
        ("a merge with new sources", listed(9, 0..7), Ok(vec![9])),
        ("listed already", listed(2, 3..5), Err(NoWriteReason::Done)),
        (
            "the same by another writer",
            listed(9, 0..3),
            Err(NoWriteReason::Held),
        ),
        ("the same, for rest", cold(9, 0..3), Ok(vec![2, 3, 9])),
        (
            "the same, for rest twice",
            cold(9, 5..6),
            Err(NoWriteReason::Held),
        ),
        ("a part", listed(9, 1..2), Err(NoWriteReason::Held)),
        ("parts of two", listed(9, 1..4), Err(NoWriteReason::Held)),
        (
            "a part and more",
            listed(9, [2, 9]),
            Err(NoWriteReason::Overlaps(vec![Id(1)])),
        ),
    ];
    for (what, segment, expected) in table {
        let verdict = match head.decide(&Change::List(segment), NOON) {
            Verdict::Write(next) => {
                assert_eq!(next.number, head.number + 1, "{what}");
                Ok(ids(&next))
            }
            Verdict::Settled(settled) => Err(settled),
        };
        assert_eq!(verdict, expected, "{what}");
    }
}

#[test]
fn what_has_expired_does_not_come_back() {
    let head = link(&[listed(1, 0..3), listed(2, 3..5)]);
    let Verdict::Write(head) = head.decide(&Change::Expire(vec![Id(1), Id(77)]), NOON) else {
        panic!("there is something to expire");
    };
    assert_eq!(ids(&head), [2]);
    assert_eq!(
        head.dropped,
        [DroppedObject {
            id: Id(1),
            since: NOON
        }]
    );
    let offer = |segment| head.decide(&Change::List(segment), NOON);
    assert_eq!(
        offer(listed(1, 0..3)),
        Verdict::Settled(NoWriteReason::Held)
    );
    assert_eq!(
        offer(listed(9, 0..5)),
        Verdict::Settled(NoWriteReason::Held)
    );
    let mixed = NoWriteReason::Overlaps(Vec::new());
    assert_eq!(offer(listed(9, [2, 7])), Verdict::Settled(mixed));
    let nothing = head.decide(&Change::Expire(vec![Id(1)]), NOON);
    assert_eq!(nothing, Verdict::Settled(NoWriteReason::Done));
    let Verdict::Write(head) = head.decide(&Change::Forget(vec![Id(1)]), NOON) else {
        panic!("there is something to forget");
    };
    assert!(head.dropped.is_empty() && head.expired == sources(0..3));
}

#[test]
fn names_come_back() {
    let day = Day::of(NOON);
    assert_eq!(link_name(day, 17), "m/2025-11-23/00000000000000000017.json");
    assert_eq!(
        parse_link_name(&link_name(day, u64::MAX)),
        Some((day, u64::MAX))
    );
    let name = segment_name(day, Id(5));
    assert_eq!(parse_segment_name(&name), Some((day, Id(5))));
    for other in [
        "m/2025-11-23/17.json",
        "m/2025-11-31/00000000000000000017.json",
        "m/2025-1-23/00000000000000000017.json",
        "m/2025-11-23/0000000000000000001x.json",
        "segments/x",
    ] {
        assert_eq!(parse_link_name(other), None, "{other}");
        assert_eq!(parse_segment_name(other), None, "{other}");
    }
}

#[test]
fn links_come_back() {
    let mut head = link(&[listed(1, [0, 1, 5]), cold(2, 8..9)]);
    head.nonce = u128::MAX;
    head.dropped.push(DroppedObject {
        id: Id(9),
        since: NOON,
    });
    head.expired = sources([77]);
    let text = head.to_json();
    assert_eq!(Link::from_json(text.as_bytes()), Some(head));
    for (part, other) in [
        ("\"format\":1", "\"format\":2"),
        ("[0,1,5,5]", "[0,1,5]"),
        ("[0,1,5,5]", "[1,0,5,5]"),
        ("2025-11-23", "2025-11-24"),
        ("\"index_from\":900", "\"index_from\":1001"),
    ] {
        let changed = text.replace(part, other);
        assert_ne!(changed, text, "{part}");
        assert_eq!(Link::from_json(changed.as_bytes()), None, "{other}");
    }
}

#[test]
fn the_format_is_that_of_the_golden_file() {
    let mut head = link(&[listed(1, [0, 1, 5]), cold(2, 8..9)]);
    head.nonce = 0xfeed;
    head.dropped.push(DroppedObject {
        id: Id(9),
        since: NOON,
    });
    head.expired = sources([77]);
    let golden = include_str!("../../../../testdata/bucket/v1.json");
    assert_eq!(head.to_json() + "\n", golden);
}

/// A store of links, and what is on its way to it.
#[derive(Default)]
struct Store {
    links: BTreeMap<u64, Link>,
    late: Vec<Link>,
}

impl Store {
    fn head(&self) -> Link {
        let last = self.links.last_key_value();
        last.map_or_else(|| Link::empty(Day::of(NOON)), |(_, link)| link.clone())
    }

    fn create(&mut self, link: Link) {
        self.links.entry(link.number).or_insert(link);
    }
}

/// A writer and what it wants.
struct Writer {
    commit: Commit,
    wanted: Change,
    /// The link that it is about to write.
    pending: Option<Link>,
    outcome: Option<Outcome>,
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    /// A writer does its next step; its request arrives, does not, or does later.
    Step(usize, Arrival),
    /// A request that was given up arrives.
    Late(usize),
    /// Somebody removes all links below the head.
    Sweep,
}

#[derive(Clone, Copy, Debug)]
enum Arrival {
    Now,
    Never,
    Later,
}

fn change() -> impl Strategy<Value = Change> {
    let sources = prop::collection::btree_set(0u64..8, 1..4);
    // Ids are given later: nobody ever uses one twice.
    let listing = (sources, any::<bool>()).prop_map(|(numbers, is_cold)| {
        let mut segment = listed(0, numbers);
        segment.cold = is_cold;
        Change::List(segment)
    });
    let ids = || prop::collection::vec((1u128..7).prop_map(Id), 1..3);
    let (expiry, drop) = (ids().prop_map(Change::Expire), ids().prop_map(Change::Drop));
    prop_oneof![5 => listing, 1 => expiry, 1 => drop]
}

fn event(writers: usize) -> impl Strategy<Value = Event> {
    let arrival = prop_oneof![
        6 => Just(Arrival::Now),
        1 => Just(Arrival::Never),
        2 => Just(Arrival::Later),
    ];
    prop_oneof![
        10 => (0..writers, arrival).prop_map(|(writer, arrival)| Event::Step(writer, arrival)),
        2 => (0usize..4).prop_map(Event::Late),
        1 => Just(Event::Sweep),
    ]
}

impl Writer {
    fn new(number: usize, mut wanted: Change) -> Writer {
        if let Change::List(segment) = &mut wanted {
            segment.id = Id(1 + number as u128);
        }
        Writer {
            commit: Commit::new(wanted.clone(), NOON),
            wanted,
            pending: None,
            outcome: None,
        }
    }

    fn step(&mut self, store: &mut Store, arrival: Arrival, nonce: u128) {
        match (self.pending.take(), arrival) {
            (Some(link), Arrival::Now) => store.create(link),
            (Some(link), Arrival::Later) => store.late.push(link),
            (Some(_), Arrival::Never) => {}
            (None, _) => match self.commit.on_head(&store.head(), nonce) {
                Step::Create(link) => self.pending = Some(link),
                Step::End(outcome) => self.outcome = Some(outcome),
            },
        }
    }

    /// Whether a head has what this writer was told is done.
    fn is_kept_by(&self, head: &Link) -> bool {
        let mut known = head.sources();
        known.union_with(&head.expired);
        match (&self.outcome, &self.wanted) {
            (
                Some(
                    Outcome::Written(_)
                    | Outcome::Settled(NoWriteReason::Done | NoWriteReason::Held, _),
                ),
                Change::List(segment),
            ) => known.contains_all(&segment.sources),
            (Some(Outcome::Written(_)), Change::Expire(ids)) => {
                // An id may be listed again only with sources that have not expired.
                let of = |id: &Id| head.segment(*id).map(|s| s.sources.clone());
                ids.iter()
                    .filter_map(of)
                    .all(|s| s.is_disjoint(&head.expired))
            }
            (
                Some(Outcome::Written(_) | Outcome::Settled(NoWriteReason::Done, _)),
                Change::Drop(ids),
            ) => {
                // What was listed before stays so; nothing else of these is listed from then on.
                ids.iter()
                    .all(|id| head.segment(*id).is_none() || !head.is_dropped(*id))
            }
            _ => true,
        }
    }
}

/// What holds of every head, given the one before.
fn check(head: &Link, before: &Link) {
    for (at, segment) in head.segments.iter().enumerate() {
        for other in &head.segments[at + 1..] {
            let is_disjoint = segment.sources.is_disjoint(&other.sources);
            assert!(is_disjoint, "{} and {} share sources", segment.id, other.id);
        }
        assert!(segment.sources.is_disjoint(&head.expired), "{}", segment.id);
        let was_dropped = before.is_dropped(segment.id);
        assert!(!was_dropped, "{} is listed again", segment.id);
    }
    let (mut known, mut then) = (head.sources(), before.sources());
    known.union_with(&head.expired);
    then.union_with(&before.expired);
    assert!(known.contains_all(&then), "{then:?} became {known:?}");
    assert!(head.number >= before.number);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn writers_that_race_lose_nothing(
        changes in prop::collection::vec(change(), 1..6),
        events in prop::collection::vec(event(6), 0..120),
    ) {
        let mut writers: Vec<Writer> =
            changes.into_iter().enumerate().map(|(at, change)| Writer::new(at, change)).collect();
        let (mut store, mut before) = (Store::default(), Link::empty(Day::of(NOON)));
        for (nonce, event) in (1u128..).zip(events) {
            match event {
                Event::Step(at, arrival) => {
                    let at = at % writers.len();
                    if writers[at].outcome.is_none() {
                        writers[at].step(&mut store, arrival, nonce);
                    }
                }
                Event::Late(at) if at < store.late.len() => {
                    let link = store.late.remove(at);
                    store.create(link);
                }
                Event::Late(_) => {}
                Event::Sweep => {
                    let head = store.head().number;
                    store.links.retain(|number, _| *number >= head);
                }
            }
            let head = store.head();
            check(&head, &before);
            for writer in &writers {
                prop_assert!(writer.is_kept_by(&head), "{:?}: {head:?}", writer.wanted);
            }
            before = head;
        }
        // Left alone, everybody comes to an end.
        let mut nonces = 1_000u128..;
        for writer in &mut writers {
            for nonce in nonces.by_ref().take(2 * ROUNDS_MAX as usize) {
                if writer.outcome.is_none() {
                    writer.step(&mut store, Arrival::Now, nonce);
                }
            }
            prop_assert!(writer.outcome.is_some());
        }
    }
}
