//! Which sources an answer must count, and what it may claim then (CLUSTER R9).
//!
//! Invariant: an answer is called complete only if every source that exists and has not expired
//! was counted exactly once, as far as the nodes that answered can know; and they know all if at
//! most as many nodes were silent as may hide a birth between them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use logpond_record::{Incarnation, SourceId, Timestamp};
use logpond_segment::sources::{Interval, SourceSet};

use crate::registry::RegistryEntry;
use crate::{BucketView, Fate, IndexedInventory, NodeId, Registry};

/// What exists, as far as the nodes know that answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Sources that exist and count.
    pub wanted: SourceSet,
    /// Sources that no longer count, whoever still holds them.
    pub expired: SourceSet,
    /// Incarnations that may have more sources than are known.
    pub tails: Vec<Tail>,
    /// Incarnations that had perhaps more sources, which are lost for good.
    pub lost: Vec<Tail>,
    /// Nodes whose bucket may list something that no node had read. Who reads it later adds nothing to what is
    /// wanted, so these stay.
    pub unread: Vec<NodeId>,
    /// Everything that was heard of incarnations and nodes.
    pub registry: Registry,
}

/// What an incarnation may have written beyond what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The incarnation.
    pub incarnation: Incarnation,
    /// The node that it wrote on, if its birth is known.
    pub node: Option<NodeId>,
    /// Its sources from this number on are unknown.
    pub from: u64,
    /// Nothing of it was received before this.
    pub since: Timestamp,
}

/// Without the node, whose name is for others to say.
impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (incarnation, from, since) = (self.incarnation, self.from, self.since);
        write!(
            f,
            "what it took in since {since} or later (sources {incarnation}/{from} and after)"
        )
    }
}

/// Sources that exist and were not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The incarnation.
    pub incarnation: Incarnation,
    /// The node that it wrote on, if its birth is known.
    pub node: Option<NodeId>,
    /// The sources.
    pub interval: Interval,
    /// Nothing in them was received before this.
    pub received_min: Timestamp,
    /// Nothing in them was received after this, if that is known.
    pub received_max: Option<Timestamp>,
}

/// Without the node, whose name is for others to say.
impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "what it took in from {}", self.received_min)?;
        match self.received_max {
            Some(max) => write!(f, " to {max}")?,
            None => f.write_str(" on")?,
        }
        let (incarnation, Interval { from, to }) = (self.incarnation, self.interval);
        write!(f, " (sources {incarnation}/{from}-{to})")
    }
}

impl Target {
    /// What the nodes that answered know of.
    pub fn new(answered: &[&IndexedInventory]) -> Target {
        let stored = SourceSet::union_of(answered.iter().map(|indexed| indexed.stored()));
        Target::over(answered, &stored)
    }

    /// The same, when it is known what all of them have in segments ([`crate::StoredUnion`]).
    pub fn over(answered: &[&IndexedInventory], stored: &SourceSet) -> Target {
        let mut target = Target {
            registry: merged(answered),
            unread: unread(answered),
            ..Target::default()
        };
        let mut ends: BTreeMap<Incarnation, u64> = BTreeMap::new();
        let mut living = BTreeMap::new();
        let mut note = |source: SourceId| {
            let end = ends.entry(source.incarnation).or_default();
            *end = (*end).max(source.sequence.saturating_add(1));
        };
        stored.last_of_each().for_each(&mut note);
        for indexed in answered {
            let inventory = indexed.inventory();
            inventory.journal.iter().for_each(|file| note(file.source));
            living.extend(inventory.living.map(|l| (l.incarnation, l.end)));
        }
        let born = target
            .registry
            .incarnations()
            .map(|(incarnation, _)| incarnation);
        let mut incarnations: Vec<_> = born.chain(living.keys().copied()).collect();
        incarnations.extend(ends.keys());
        incarnations.sort_unstable();
        incarnations.dedup();
        let foreign = foreign(answered, &target.registry, &living);
        target.add_foreign(&foreign, stored);
        incarnations.retain(|incarnation| !foreign.contains(incarnation));
        for incarnation in incarnations {
            let end = ends.get(&incarnation).copied().unwrap_or(0);
            target.add(incarnation, end, living.get(&incarnation).copied());
        }
        target
    }

    /// Adds what is held of incarnations of others.
    fn add_foreign(&mut self, foreign: &BTreeSet<Incarnation>, stored: &SourceSet) {
        if foreign.is_empty() {
            return;
        }
        for (incarnation, interval) in stored.intervals() {
            if foreign.contains(&incarnation) {
                self.wanted.insert_interval(incarnation, interval);
            }
        }
    }

    /// Adds an incarnation of which `held_end` sources are held somewhere, and that says itself
    /// that it has `living` ones.
    fn add(&mut self, incarnation: Incarnation, held_end: u64, living: Option<u64>) {
        let unheard = Fate::born(NodeId(0), Timestamp::MIN);
        let heard = self.registry.fate(incarnation).copied();
        let fate = heard.unwrap_or(unheard);
        let said = [fate.sealed, fate.declared_lost, living];
        let known = held_end.max(fate.at_least);
        let end = said.into_iter().flatten().fold(known, u64::max);
        let expired = fate.expired_below.min(end);
        if let Some(to) = expired.checked_sub(1) {
            let interval = Interval { from: 0, to };
            self.expired.insert_interval(incarnation, interval);
        }
        if end > expired {
            let interval = Interval {
                from: expired,
                to: end - 1,
            };
            self.wanted.insert_interval(incarnation, interval);
        }
        if fate.sealed.is_some() || living.is_some() {
            return;
        }
        let tail = Tail {
            incarnation,
            node: heard.map(|fate| fate.node),
            from: end,
            since: fate.born,
        };
        // Whoever gives a node up need not know of all its incarnations.
        let node = heard.and_then(|fate| self.registry.node(fate.node));
        let is_lost = fate.declared_lost.is_some() || node.is_some_and(RegistryEntry::is_forgotten);
        if is_lost {
            self.lost.push(tail)
        } else {
            self.tails.push(tail)
        }
    }
}

/// Incarnations whose sources came by way of a bucket and that no node was born as: others put
/// them there, a server that was lost or that stands beside this cluster. Nobody here can say how many
/// sources they have, or which of these have expired; what is held of them is what there is.
fn foreign(
    answered: &[&IndexedInventory],
    registry: &Registry,
    living: &BTreeMap<Incarnation, u64>,
) -> BTreeSet<Incarnation> {
    let remote = answered.iter().flat_map(|indexed| indexed.remote());
    let is_known = |incarnation: &Incarnation| {
        registry.fate(*incarnation).is_some() || living.contains_key(incarnation)
    };
    remote.copied().filter(|i| !is_known(i)).collect()
}

/// What all of these have heard. Nearly always nearly all have heard the same.
fn merged(answered: &[&IndexedInventory]) -> Registry {
    let mut merged = Registry::default();
    let mut digests = BTreeSet::new();
    for indexed in answered {
        if digests.insert(indexed.registry_digest()) {
            merged.merge(&indexed.inventory().registry);
        }
    }
    merged
}

/// What an answer may claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completeness {
    /// Sources that exist and were not counted.
    pub gaps: Vec<Gap>,
    /// What may exist beyond what is known.
    pub tails: Vec<Tail>,
    /// What is lost for good; it makes no answer incomplete, since no answer will ever have it.
    pub lost: Vec<Tail>,
    /// Nodes that did not answer, if they are so many that they could hide others.
    pub hiding: Vec<NodeId>,
    /// Nodes whose bucket may list something that no node has read.
    pub unread: Vec<NodeId>,
}

impl Completeness {
    /// Judges an answer that has counted these sources, while these nodes were silent.
    /// `silent_max` is how many nodes beside an incarnation's own know of each birth.
    pub fn judge(
        target: &Target,
        counted: &SourceSet,
        answered: &[&IndexedInventory],
        silent: &[NodeId],
        silent_max: usize,
    ) -> Completeness {
        let missing = target.wanted.without(counted);
        let gaps = missing.intervals().map(|(incarnation, interval)| {
            let (received_min, received_max) = bounds(incarnation, interval, target, answered);
            Gap {
                incarnation,
                node: target.registry.fate(incarnation).map(|fate| fate.node),
                interval,
                received_min,
                received_max,
            }
        });
        Completeness {
            gaps: gaps.collect(),
            tails: target.tails.clone(),
            lost: target.lost.clone(),
            hiding: if silent.len() > silent_max {
                silent.to_vec()
            } else {
                Vec::new()
            },
            unread: target.unread.clone(),
        }
    }

    /// Whether nothing that could ever be counted is missing.
    pub fn is_complete(&self) -> bool {
        self.gaps.is_empty()
            && self.tails.is_empty()
            && self.hiding.is_empty()
            && self.unread.is_empty()
    }
}

/// The nodes that may not know of everything in their bucket, unless another one has read it.
fn unread(answered: &[&IndexedInventory]) -> Vec<NodeId> {
    if is_bucket_read(answered) {
        return Vec::new();
    }
    let inventories = answered.iter().map(|indexed| indexed.inventory());
    let blind = inventories.filter(|inventory| inventory.bucket == BucketView::Unread);
    blind.map(|inventory| inventory.node).collect()
}

/// Whether one of these nodes knows of everything in the bucket.
pub(crate) fn is_bucket_read(answered: &[&IndexedInventory]) -> bool {
    let mut inventories = answered.iter().map(|indexed| indexed.inventory());
    inventories.any(|inventory| inventory.bucket == BucketView::Read)
}

/// When the sources of an interval were received at the earliest and at the latest: sources of an
/// incarnation are filled one after the other, so its neighbours say.
fn bounds(
    incarnation: Incarnation,
    interval: Interval,
    target: &Target,
    answered: &[&IndexedInventory],
) -> (Timestamp, Option<Timestamp>) {
    let born = target.registry.fate(incarnation).map(|fate| fate.born);
    let mut min = born.unwrap_or(Timestamp::MIN);
    let mut max: Option<Timestamp> = None;
    let mut note = |sources: &mut dyn Iterator<Item = Interval>, from: Timestamp, to: Timestamp| {
        for neighbour in sources {
            if neighbour.to < interval.from {
                min = min.max(from);
            } else if neighbour.from > interval.to {
                max = Some(max.map_or(to, |known| known.min(to)));
            }
        }
    };
    let own = |set: &SourceSet| {
        let all = set.intervals();
        let own = all.filter(move |(name, _)| *name == incarnation);
        own.map(|(_, interval)| interval).collect::<Vec<_>>()
    };
    for indexed in answered {
        let inventory = indexed.inventory();
        for segment in inventory.segments.iter() {
            let mut sources = own(&segment.sources).into_iter();
            note(&mut sources, segment.received_min, segment.received_max);
        }
        for file in &inventory.journal {
            let source: SourceId = file.source;
            if source.incarnation == incarnation {
                let interval = Interval {
                    from: source.sequence,
                    to: source.sequence,
                };
                let mut sources = [interval].into_iter();
                note(&mut sources, file.received_min, file.received_max);
            }
        }
    }
    (min, max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use logpond_record::Id;

    use crate::{CurrentIncarnation, HeldJournal, HeldSegment, Inventory, ProcessId};

    const INGESTER: Incarnation = Incarnation(5);

    fn source(sequence: u64) -> SourceId {
        SourceId {
            incarnation: INGESTER,
            sequence,
        }
    }

    fn node(number: u128, held: &[u64]) -> Inventory {
        let mut inventory = Inventory::empty(NodeId(number), ProcessId(number));
        inventory.journal = held
            .iter()
            .map(|sequence| HeldJournal {
                source: source(*sequence),
                bytes: 1,
                rows: 1,
                received_min: Timestamp(*sequence as i64 * 10),
                received_max: Timestamp(*sequence as i64 * 10 + 9),
                last: Id(0),
                is_open: false,
            })
            .collect();
        inventory
    }

    fn born(mut inventory: Inventory, change: impl FnOnce(&mut Registry)) -> IndexedInventory {
        Arc::make_mut(&mut inventory.registry).note(INGESTER, Fate::born(NodeId(1), Timestamp(3)));
        change(Arc::make_mut(&mut inventory.registry));
        IndexedInventory::new(inventory)
    }

    fn judge(answered: &[&IndexedInventory], counted: &[u64], silent: &[NodeId]) -> Completeness {
        let target = Target::new(answered);
        let counted = counted.iter().map(|n| source(*n)).collect();
        Completeness::judge(&target, &counted, answered, silent, 1)
    }

    /// A segment of others, read from a bucket.
    fn remote(numbers: &[u64]) -> HeldSegment {
        HeldSegment {
            id: Id(1),
            digest: 1,
            bytes: 1,
            rows: 1,
            time_min: Timestamp(0),
            time_max: Timestamp(0),
            received_min: Timestamp(0),
            received_max: Timestamp(0),
            is_remote: true,
            sources: numbers.iter().map(|n| source(*n)).collect(),
        }
    }

    #[test]
    fn what_others_have_put_into_a_bucket_is_what_there_is_of_them() {
        let mut inventory = node(1, &[]);
        inventory.segments = vec![remote(&[4, 6])].into();
        let reader = IndexedInventory::new(inventory.clone());
        assert!(judge(&[&reader], &[4, 6], &[]).is_complete());
        assert_eq!(judge(&[&reader], &[4], &[]).gaps.len(), 1);
        // One of this cluster's own has what its registry says.
        let own = born(inventory, |_| ());
        let judged = judge(&[&own], &[4, 6], &[]);
        assert_eq!((judged.gaps.len(), judged.tails.len()), (2, 1));
    }

    #[test]
    fn a_bucket_that_nobody_has_read_makes_answers_incomplete() {
        let with = |number, bucket| {
            let mut inventory = node(number, &[]);
            inventory.bucket = bucket;
            IndexedInventory::new(inventory)
        };
        let (unread, read) = (with(1, BucketView::Unread), with(2, BucketView::Read));
        let judged = judge(&[&unread], &[], &[]);
        assert_eq!(judged.unread, [NodeId(1)]);
        assert!(!judged.is_complete());
        assert!(judge(&[&unread, &read], &[], &[]).is_complete());
        assert!(judge(&[&with(3, BucketView::None)], &[], &[]).is_complete());
    }

    #[test]
    fn the_writer_itself_says_how_much_there_is() {
        let mut inventory = node(1, &[0, 1]);
        inventory.living = Some(CurrentIncarnation {
            incarnation: INGESTER,
            end: 3,
        });
        let writer = born(inventory, |_| ());
        assert!(judge(&[&writer], &[0, 1, 2], &[]).is_complete());
        let without = judge(&[&writer], &[0, 2], &[]);
        assert_eq!(without.gaps.len(), 1, "{without:?}");
        assert_eq!(without.gaps[0].interval, Interval { from: 1, to: 1 });
        assert_eq!(without.gaps[0].node, Some(NodeId(1)));
    }

    #[test]
    fn a_writer_that_is_silent_may_have_more() {
        let other = born(node(2, &[0, 1]), |_| ());
        let answer = judge(&[&other], &[0, 1], &[NodeId(1)]);
        assert!(answer.gaps.is_empty() && !answer.is_complete());
        let tail = &answer.tails[0];
        assert_eq!((tail.from, tail.since), (2, Timestamp(3)));
    }

    #[test]
    fn a_sealed_incarnation_has_no_more() {
        let other = born(node(2, &[0, 1]), |registry| {
            registry.seal(INGESTER, 3);
        });
        let answer = judge(&[&other], &[0, 1], &[]);
        assert_eq!(answer.gaps[0].interval, Interval { from: 2, to: 2 });
        assert_eq!(answer.gaps[0].received_min, Timestamp(10));
        assert!(answer.tails.is_empty());
    }

    #[test]
    fn a_gap_lies_between_its_neighbours() {
        let other = born(node(2, &[0, 3]), |registry| {
            registry.seal(INGESTER, 4);
        });
        let answer = judge(&[&other], &[0, 3], &[]);
        let gap = &answer.gaps[0];
        assert_eq!(gap.interval, Interval { from: 1, to: 2 });
        assert_eq!(
            (gap.received_min, gap.received_max),
            (Timestamp(3), Some(Timestamp(39)))
        );
    }

    #[test]
    fn what_is_declared_lost_is_said_and_waited_for_no_more() {
        let other = born(node(2, &[0, 1]), |registry| {
            registry.declare_lost(INGESTER, 2);
        });
        let answer = judge(&[&other], &[0, 1], &[]);
        assert!(answer.is_complete());
        assert_eq!(answer.lost.len(), 1);
    }

    #[test]
    fn a_forgotten_nodes_incarnation_is_lost_whoever_heard_of_it() {
        let other = born(node(2, &[0, 1]), |registry| {
            registry.note_node(
                NodeId(1),
                RegistryEntry::there("a:1".into(), String::new(), 1),
            );
            registry.forget(NodeId(1));
        });
        let answer = judge(&[&other], &[0, 1], &[]);
        assert!(answer.is_complete());
        assert_eq!(answer.lost.len(), 1);
    }

    #[test]
    fn what_was_let_go_is_missed_if_nobody_has_it() {
        let other = born(node(2, &[0]), |registry| {
            registry.note_end(INGESTER, 3);
        });
        let answer = judge(&[&other], &[0], &[]);
        assert_eq!(answer.gaps[0].interval, Interval { from: 1, to: 2 });
        assert_eq!(answer.tails[0].from, 3);
    }

    #[test]
    fn what_has_expired_is_not_wanted() {
        let other = born(node(2, &[2]), |registry| {
            registry.seal(INGESTER, 3);
            registry.expire(INGESTER, 2);
        });
        assert!(judge(&[&other], &[2], &[]).is_complete());
    }

    #[test]
    fn many_silent_nodes_may_hide_another() {
        let other = born(node(2, &[]), |registry| {
            registry.seal(INGESTER, 0);
        });
        assert!(judge(&[&other], &[], &[NodeId(3)]).is_complete());
        let answer = judge(&[&other], &[], &[NodeId(3), NodeId(4)]);
        assert_eq!(answer.hiding, [NodeId(3), NodeId(4)]);
        assert!(!answer.is_complete());
    }
}
