use super::*;
use proptest::prelude::*;

/// Nothing is held any more.
const NOTHING: BTreeSet<Incarnation> = BTreeSet::new();

/// Registries of the days up to one, of which nothing is dropped if it is within [`KEPT_DAYS`].
fn registries_until(day_max: i64) -> impl Strategy<Value = Registry> {
    let days = move || prop::option::of((0..=day_max).prop_map(day));
    let fate = (
        (0u128..4, 0u128..3),
        (any::<Option<u8>>(), prop::option::of(0u64..9), 0u64..9),
        (days(), days()),
    );
    let known = (
        (0u128..4, "[a-c]", "[xy]?", 0u64..4),
        prop::option::of(0u64..4),
        prop::option::of((0u64..4, (0..=day_max).prop_map(day))),
    );
    let all = (
        prop::collection::vec(fate, 0..8),
        prop::collection::vec(known, 0..8),
        days(),
    );
    all.prop_map(|(fates, nodes, day)| {
        let mut registry = Registry::default();
        for ((incarnation, node), (sealed, declared_lost, expired_below), days) in fates {
            let fate = Fate {
                at_least: expired_below / 2,
                sealed: sealed.map(u64::from),
                declared_lost,
                expired_below,
                ended: days.0.map(|day| (declared_lost.unwrap_or(0), day)),
                past: days.1.map(|day| (expired_below, day)),
                ..Fate::born(NodeId(node), Timestamp(node as i64))
            };
            registry.note(Incarnation(incarnation), fate);
        }
        for ((node, address, zone, version), forgotten, past) in nodes {
            let known = RegistryEntry {
                forgotten,
                past,
                ..RegistryEntry::there(address, zone, version)
            };
            registry.note_node(NodeId(node), known);
        }
        registry.day = day;
        registry.drop_old();
        registry
    })
}

pub(crate) fn registries() -> impl Strategy<Value = Registry> {
    registries_until(KEPT_DAYS as i64)
}

fn day(number: i64) -> Day {
    Day::of(Timestamp(number * 86_400_000_000_000))
}

proptest! {
    /// Whatever was dropped here or there, two that have told each other know the same.
    #[test]
    fn two_that_talk_agree(
        mut a in registries_until(600),
        mut b in registries_until(600),
        today in 0i64..600,
    ) {
        a.advance(day(today), &NOTHING);
        // The second time: of one that has just dropped something the other may know no more than
        // that it was once.
        for _ in 0..2 {
            a.merge(&b);
            b.merge(&a);
        }
        prop_assert_eq!(&a, &b);
        prop_assert!(!a.merge(&b) && !b.merge(&a), "nothing is news for ever");
    }

    #[test]
    fn merging_is_a_union(a in registries(), b in registries(), c in registries()) {
        let merged = |list: &[&Registry]| {
            list.iter().fold(Registry::default(), |mut all, one| {
                all.merge(one);
                all
            })
        };
        let all = merged(&[&a, &b, &c]);
        prop_assert_eq!(&all, &merged(&[&c, &b, &a, &b]));
        prop_assert_eq!(&all, &merged(&[&merged(&[&b, &c]), &a]));
        prop_assert!(!all.clone().merge(&a), "what is known is no news");
    }

    #[test]
    fn a_registry_comes_back(registry in registries()) {
        let bytes = registry.to_bytes();
        prop_assert_eq!(Registry::from_bytes(&bytes), Ok(registry));
        for length in 0..bytes.len() {
            prop_assert!(Registry::from_bytes(&bytes[..length]).is_err());
        }
    }
}

#[test]
fn a_seal_only_grows() {
    let mut registry = Registry::default();
    assert!(!registry.seal(Incarnation(1), 3), "nobody has heard of it");
    assert!(registry.note(Incarnation(1), Fate::born(NodeId(9), Timestamp(5))));
    assert!(registry.seal(Incarnation(1), 3));
    assert!(
        !registry.seal(Incarnation(1), 2),
        "an old image does not take back"
    );
    assert!(registry.declare_lost(Incarnation(1), 1));
    let fate = registry.fate(Incarnation(1)).expect("it was born");
    assert_eq!((fate.sealed, fate.declared_lost), (Some(3), Some(1)));
}

#[test]
fn a_forgotten_node_may_come_back() {
    let known = |version, forgotten| RegistryEntry {
        forgotten,
        ..RegistryEntry::there("a:1".into(), String::new(), version)
    };
    let mut registry = Registry::default();
    registry.note_node(NodeId(1), known(7, None));
    registry.note_node(NodeId(1), known(0, Some(7)));
    let is_forgotten = |registry: &Registry| registry.nodes().all(|(_, node)| node.is_forgotten());
    assert!(is_forgotten(&registry));
    registry.note_node(NodeId(1), known(8, None));
    assert!(!is_forgotten(&registry));
}

/// An incarnation of a node that has ended with three sources, all of which have expired.
fn past() -> Registry {
    let mut registry = Registry::default();
    registry.note(Incarnation(1), Fate::born(NodeId(9), Timestamp(5)));
    registry.note_node(
        NodeId(9),
        RegistryEntry::there("a:1".into(), String::new(), 1),
    );
    registry.seal(Incarnation(1), 3);
    registry.expire(Incarnation(1), 3);
    registry
}

#[test]
fn what_is_past_is_remembered_for_a_while() {
    let mut registry = past();
    let before = registry.clone();
    assert!(registry.advance(day(10), &NOTHING));
    assert!(
        !registry.advance(day(9), &NOTHING),
        "a clock that is behind"
    );
    registry.advance(day(190), &NOTHING);
    assert!(registry.fate(Incarnation(1)).is_some());
    let last = registry.clone();
    assert!(registry.advance(day(191), &NOTHING));
    assert!(registry.fate(Incarnation(1)).is_none());
    assert!(registry.node(NodeId(9)).is_some(), "it is not forgotten");
    assert!(!registry.clone().merge(&last), "others drop it as well");
    let mut other = last;
    assert!(other.merge(&registry));
    assert_eq!(other, registry);
    // As it was before it was past: who was away for so long brings it back.
    assert!(registry.merge(&before));
    assert!(registry.fate(Incarnation(1)).is_some());
}

/// It has expired for want of room at one node, and is still there at another.
#[test]
fn what_is_held_is_remembered() {
    let mut registry = past();
    let held = BTreeSet::from([Incarnation(1)]);
    assert!(registry.advance(day(10), &held));
    assert!(!registry.advance(day(10), &held));
    assert!(registry.advance(day(100), &held));
    registry.advance(day(280), &NOTHING);
    assert!(registry.fate(Incarnation(1)).is_some());
    registry.advance(day(281), &NOTHING);
    assert!(registry.fate(Incarnation(1)).is_none());
}

#[test]
fn what_is_past_once_more_is_remembered_from_then_on() {
    let mut registry = past();
    registry.advance(day(10), &NOTHING);
    registry.seal(Incarnation(1), 5);
    registry.advance(day(150), &NOTHING);
    registry.expire(Incarnation(1), 5);
    registry.advance(day(200), &NOTHING);
    registry.advance(day(380), &NOTHING);
    assert!(registry.fate(Incarnation(1)).is_some());
    registry.advance(day(381), &NOTHING);
    assert!(registry.fate(Incarnation(1)).is_none());
}

#[test]
fn what_may_still_count_is_kept_for_ever() {
    let changes: [fn(&mut Registry); 3] = [
        |registry| {
            registry.note_end(Incarnation(1), 4);
        },
        |registry| {
            registry.seal(Incarnation(1), 4);
        },
        |registry| {
            registry.note(Incarnation(2), Fate::born(NodeId(9), Timestamp(5)));
        },
    ];
    for change in changes {
        let mut registry = past();
        registry.forget(NodeId(9));
        change(&mut registry);
        registry.advance(day(10), &NOTHING);
        registry.advance(day(5_000), &NOTHING);
        assert_ne!(registry.incarnations().count(), 0);
        assert!(registry.node(NodeId(9)).is_some());
    }
}

#[test]
fn a_forgotten_node_is_dropped_after_what_it_wrote() {
    let mut registry = past();
    registry.advance(day(10), &NOTHING);
    registry.forget(NodeId(9));
    registry.advance(day(100), &NOTHING);
    let mut back = registry.clone();
    registry.advance(day(280), &NOTHING);
    assert!(registry.fate(Incarnation(1)).is_none());
    assert!(registry.node(NodeId(9)).is_some());
    registry.advance(day(281), &NOTHING);
    assert_eq!(registry.nodes().count(), 0);
    // One that came back, and was given up again, is remembered from then on.
    back.note_node(
        NodeId(9),
        RegistryEntry::there("a:1".into(), String::new(), 2),
    );
    back.advance(day(281), &NOTHING);
    assert!(
        back.node(NodeId(9))
            .is_some_and(|known| !known.is_forgotten())
    );
    back.forget(NodeId(9));
    back.advance(day(300), &NOTHING);
    back.advance(day(480), &NOTHING);
    assert!(back.node(NodeId(9)).is_some());
    back.advance(day(481), &NOTHING);
    assert!(back.node(NodeId(9)).is_none());
}

#[test]
fn what_has_ended_was_received_before() {
    let mut registry = Registry::default();
    for number in 1..=4 {
        let fate = Fate::born(NodeId(9), Timestamp(5));
        registry.note(Incarnation(number), fate);
    }
    registry.seal(Incarnation(1), 3);
    registry.declare_lost(Incarnation(2), 2);
    registry.seal(Incarnation(4), 0);
    registry.advance(day(10), &NOTHING);
    registry.expire(Incarnation(1), 1);
    let ended = |registry: &Registry, number| {
        let sources = registry.ended_before(day(number));
        sources
            .intervals()
            .map(|(i, s)| (i.0, s.from, s.to))
            .collect::<Vec<_>>()
    };
    assert_eq!(ended(&registry, 10), []);
    assert_eq!(ended(&registry, 11), [(1, 1, 2), (2, 0, 1)]);
    // The second one went on, and was given up again.
    registry.note_end(Incarnation(2), 7);
    assert_eq!(ended(&registry, 11), [(1, 1, 2), (2, 0, 1)]);
    registry.declare_lost(Incarnation(2), 7);
    registry.advance(day(20), &NOTHING);
    assert_eq!(ended(&registry, 20), [(1, 1, 2)]);
    assert_eq!(ended(&registry, 21), [(1, 1, 2), (2, 0, 6)]);
}

#[test]
fn a_registry_of_the_version_before_is_read() {
    let mut out = Encoder::new(VERSION_BEFORE);
    out.count(1);
    out.wide(1);
    out.wide(9);
    out.time(Timestamp(5));
    [2, 4, 0, 1]
        .into_iter()
        .for_each(|number| out.number(number));
    out.count(1);
    out.wide(9);
    out.bytes(b"a:1");
    [7, 8].into_iter().for_each(|number| out.number(number));
    let read = Registry::from_bytes(&out.finish()).expect("it is read");
    let fate = read.fate(Incarnation(1)).copied().expect("it was born");
    assert_eq!(
        (fate.at_least, fate.sealed, fate.expired_below),
        (2, Some(3), 1)
    );
    assert!(
        read.node(NodeId(9))
            .is_some_and(RegistryEntry::is_forgotten)
    );
    assert_eq!(Registry::from_bytes(&read.to_bytes()), Ok(read));
}

#[test]
fn copies_are_in_as_many_zones_as_there_are() {
    let mut registry = Registry::default();
    let zones = ["a", "a", "b", "", "c"];
    for (number, zone) in (1..).zip(zones) {
        registry.note_node(
            NodeId(number),
            RegistryEntry::there("a:1".into(), zone.into(), 1),
        );
    }
    let zones = |registry: &Registry, nodes, leaving: &[u128]| {
        let leaving: Vec<NodeId> = leaving.iter().map(|node| NodeId(*node)).collect();
        registry.copies(nodes, &leaving).zones
    };
    assert_eq!(
        [1, 2, 3, 4].map(|nodes| zones(&registry, nodes, &[])),
        [1, 2, 3, 3]
    );
    assert_eq!(zones(&registry, 3, &[1]), 3, "its zone has another");
    assert_eq!(zones(&registry, 3, &[5]), 2);
    registry.forget(NodeId(3));
    assert_eq!(zones(&registry, 3, &[5]), 1);
    assert_eq!(registry.zone(NodeId(1)), registry.zone(NodeId(2)));
    assert_ne!(registry.zone(NodeId(1)), registry.zone(NodeId(5)));
    assert_eq!(registry.zone(NodeId(4)), None);
    // It was moved.
    registry.note_node(NodeId(2), RegistryEntry::there("a:1".into(), "d".into(), 2));
    assert_ne!(registry.zone(NodeId(1)), registry.zone(NodeId(2)));
}

/// A node was given up while it went on where nobody saw it.
#[test]
fn what_goes_on_behind_a_declared_end_is_not_dropped() {
    let mut registry = Registry::default();
    registry.note(Incarnation(1), Fate::born(NodeId(9), Timestamp(5)));
    registry.note_node(
        NodeId(9),
        RegistryEntry::there("a:1".into(), String::new(), 1),
    );
    registry.forget(NodeId(9));
    registry.declare_lost(Incarnation(1), 3);
    registry.advance(day(10), &NOTHING);
    // It is back, and all that it has let go of by now has expired.
    registry.note_node(
        NodeId(9),
        RegistryEntry::there("a:1".into(), String::new(), 2),
    );
    registry.note_end(Incarnation(1), 8);
    registry.expire(Incarnation(1), 8);
    registry.advance(day(90), &NOTHING);
    registry.advance(day(900), &NOTHING);
    assert!(registry.fate(Incarnation(1)).is_some());
    registry.forget(NodeId(9));
    registry.advance(day(900), &NOTHING);
    registry.advance(day(1081), &NOTHING);
    assert!(registry.fate(Incarnation(1)).is_none());
}
