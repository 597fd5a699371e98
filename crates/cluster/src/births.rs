//! What must be known elsewhere before it counts (CLUSTER R3).
//!
//! Invariants:
//! - An incarnation is recorded durably on its own node and on [`others_for_birth`] others before
//!   the first acknowledgement of one of its records, and stays so while it acknowledges: when one
//!   of the others is forgotten, another takes its place first.
//! - A node joins ([`JoiningNode`]) before it acknowledges anything, counts as one that has recorded a
//!   birth, or claims completeness. A coordinator that has at most as many silent nodes as an
//!   answer may have then knows all nodes: one that none of those knows that answered would be
//!   recorded only on silent ones, too few, and on others that joined before it and of which the
//!   same is true.
//! - What a node learned when it joined is durable before it counts as joined, and that it has is
//!   durable, too: it joins once, not at every start.
//! - The journal file with the highest number of an incarnation stays until the incarnation is
//!   sealed ([`Ends`]), so that a node can always say how many sources there were.

use std::collections::{BTreeMap, BTreeSet};

use logpond_record::{Incarnation, SourceId};
use logpond_segment::sources::SourceSet;

use crate::{NodeId, Registry};

/// How many nodes may be silent in an answer that is complete, where so many copies are kept: K of
/// the rules.
pub fn silent_max(copies: usize) -> usize {
    copies.saturating_sub(1).max(1)
}

/// On how many other nodes a birth must be recorded, where so many copies are kept and so many
/// others are known and not forgotten.
pub fn others_for_birth(copies: usize, others_known: usize) -> usize {
    match others_known {
        // A cluster of one: there is nobody who could be asked in its place.
        0 => 0,
        _ => silent_max(copies),
    }
}

/// On how many other nodes it must be recorded that a node has left, and where its incarnations have ended, where so
/// many copies are kept and so many others are known and not forgotten. One more than of a birth, as the node takes
/// its own record along; all of them where there are fewer.
pub fn others_for_farewell(copies: usize, others_known: usize) -> usize {
    (silent_max(copies) + 1).min(others_known)
}

/// Incarnations of this node that it has heard of only from others, after it had sealed those that
/// it knew of at its start ([`Ends::to_seal`]): its disk came back as it was earlier. Nobody can
/// say how many sources they had; they are to be declared lost with as many as are known.
pub fn lost_lives(
    node: NodeId,
    registry: &Registry,
    living: Option<Incarnation>,
) -> Vec<Incarnation> {
    let own = registry.incarnations().filter(|(name, fate)| {
        let is_over = fate.sealed.is_some() || fate.declared_lost.is_some();
        fate.node == node && !is_over && Some(*name) != living
    });
    own.map(|(name, _)| name).collect()
}

/// A node that becomes a member of a cluster. It tells others of itself, and they tell it whom they
/// know.
#[derive(Clone, Debug, Default)]
pub struct JoiningNode {
    /// Who has recorded it, and whether that one had joined.
    recorded: BTreeMap<NodeId, bool>,
}

impl JoiningNode {
    /// Notes that another node has said that this one is in its registry, and that is synced.
    pub fn recorded_by(&mut self, node: NodeId, has_joined: bool) {
        *self.recorded.entry(node).or_default() |= has_joined;
    }

    /// Whether enough know of it: one more of the members than births are recorded on, or all whom
    /// it knows while the cluster is smaller. `others` are those it knows and that are not
    /// forgotten, as its own synced registry says. Who was told to join others needs one of them at
    /// least, even if all that it knows have been forgotten: it is no cluster of its own.
    pub fn is_joined(&self, copies: usize, others: &[NodeId], is_founder: bool) -> bool {
        let members = self.recorded.values().filter(|has_joined| **has_joined);
        let is_known_to_all = others.iter().all(|node| self.recorded.contains_key(node));
        let is_alone = others.is_empty() && !is_founder;
        members.count() > silent_max(copies) || (is_known_to_all && !is_alone)
    }

    /// Whom to tell: all that have not recorded it as members.
    pub fn to_tell(&self, others: &[NodeId]) -> Vec<NodeId> {
        let untold = others.iter();
        let untold = untold.filter(|node| self.recorded.get(node) != Some(&true));
        untold.copied().collect()
    }
}

/// Something that must be recorded durably here and on several other nodes: a birth, a seal, a
/// deletion.
#[derive(Clone, Debug, Default)]
pub struct Publication {
    is_recorded_here: bool,
    recorded: BTreeSet<NodeId>,
}

impl Publication {
    /// Something nobody has heard of.
    pub fn new() -> Publication {
        Publication::default()
    }

    /// Notes that it is in this node's registry, and that is synced.
    pub fn recorded_here(&mut self) {
        self.is_recorded_here = true;
    }

    /// Notes that another node has said that it is in its registry, and that is synced. Of births
    /// only those count that have joined.
    pub fn recorded_by(&mut self, node: NodeId) {
        self.recorded.insert(node);
    }

    /// Notes that a node no longer counts, since it is forgotten or has lost its disk.
    pub fn lost(&mut self, node: NodeId) {
        self.recorded.remove(&node);
    }

    /// Whether it is known here and on so many others.
    pub fn is_recorded(&self, others: usize) -> bool {
        self.is_recorded_here && self.recorded.len() >= others
    }

    /// Whom to tell next, of these others: as many as are still needed. Nobody before it is
    /// recorded here, so that what others know of this node it knows itself.
    pub fn to_tell(&self, among: &[NodeId], others: usize) -> Vec<NodeId> {
        if !self.is_recorded_here {
            return Vec::new();
        }
        let lacking = others.saturating_sub(self.recorded.len());
        let untold = among.iter().filter(|node| !self.recorded.contains(node));
        untold.take(lacking).copied().collect()
    }
}

/// The highest source of each incarnation of which this node has journal files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    last: BTreeMap<Incarnation, u64>,
}

impl Ends {
    /// What the journal files of a directory say, open ones included.
    pub fn new(files: impl IntoIterator<Item = SourceId>) -> Ends {
        let mut ends = Ends::default();
        files.into_iter().for_each(|source| ends.note(source));
        ends
    }

    /// Adds a file whose name is durable.
    pub fn note(&mut self, source: SourceId) {
        let last = self.last.entry(source.incarnation).or_default();
        *last = source.sequence.max(*last);
    }

    /// Of sources whose journal files may go as far as copies are concerned, those that may go
    /// now: not the last one of an incarnation that is not sealed. `registry` is the one on the
    /// disk: a seal that a crash takes back is none.
    pub fn may_go(&self, confirmed: &SourceSet, registry: &Registry) -> SourceSet {
        let mut kept = SourceSet::new();
        for (incarnation, sequence) in &self.last {
            let fate = registry.fate(*incarnation);
            if fate.and_then(|fate| fate.sealed).is_none() {
                kept.insert(SourceId {
                    incarnation: *incarnation,
                    sequence: *sequence,
                });
            }
        }
        confirmed.without(&kept)
    }

    /// The incarnations that this node has to seal when it starts, and with how many sources: those
    /// of earlier lives that are not sealed, but for those that are lost ([`lost_lives`]). Files must have been recovered before; the name of one
    /// that cannot be read counts as well, since it did exist.
    pub fn to_seal(
        &self,
        node: NodeId,
        registry: &Registry,
        living: Option<Incarnation>,
    ) -> Vec<(Incarnation, u64)> {
        let own = registry.incarnations().filter(|(name, fate)| {
            // A life that this disk has no file of and that was declared lost is one of which others
            // had to tell it: nobody can say where it has ended.
            let is_known = fate.declared_lost.is_none() || self.last.contains_key(name);
            fate.node == node && fate.sealed.is_none() && Some(*name) != living && is_known
        });
        own.map(|(name, _)| {
            // Without a file it never had one: the last would be there.
            let last = self.last.get(&name);
            (name, last.map_or(0, |last| last.saturating_add(1)))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fate;
    use logpond_record::Timestamp;

    fn source(incarnation: u128, sequence: u64) -> SourceId {
        SourceId {
            incarnation: Incarnation(incarnation),
            sequence,
        }
    }

    #[test]
    fn a_farewell_outlives_as_many_losses_as_a_birth() {
        for copies in 1..5 {
            let others = 10;
            // The node itself and the others have recorded a birth; of a farewell the others alone.
            let of_birth = 1 + others_for_birth(copies, others);
            assert_eq!(others_for_farewell(copies, others), of_birth);
            for others in 0..=silent_max(copies) {
                assert_eq!(others_for_farewell(copies, others), others);
            }
        }
    }

    #[test]
    fn how_many_must_know() {
        // Copies, others known, others for a birth.
        let table = [
            (1, 0, 0),
            (1, 1, 1),
            (1, 5, 1),
            (2, 0, 0),
            (2, 2, 1),
            (3, 1, 2),
            (3, 9, 2),
        ];
        for (copies, known, birth) in table {
            assert_eq!(others_for_birth(copies, known), birth, "{copies} {known}");
        }
    }

    #[test]
    fn a_node_joins_when_members_or_all_know_it() {
        let others = [1, 2, 3].map(NodeId);
        let mut joining = JoiningNode::default();
        assert!(joining.is_joined(2, &[], true), "it founds a cluster");
        assert!(!joining.is_joined(2, &[], false), "it was told to join one");
        joining.recorded_by(NodeId(1), true);
        assert!(
            joining.is_joined(2, &others[..1], false),
            "there is but one"
        );
        assert!(!joining.is_joined(2, &others, false));
        joining.recorded_by(NodeId(2), false);
        assert!(!joining.is_joined(2, &others, false), "2 is no member");
        assert_eq!(joining.to_tell(&others), [NodeId(2), NodeId(3)]);
        let mut by_all = joining.clone();
        by_all.recorded_by(NodeId(3), false);
        assert!(by_all.is_joined(2, &others, false));
        joining.recorded_by(NodeId(2), true);
        assert!(joining.is_joined(2, &others, false));
        assert!(!joining.is_joined(3, &others, false));
    }

    #[test]
    fn a_publication_is_here_first_and_then_on_enough_others() {
        let others = [1, 2, 3].map(NodeId);
        let mut birth = Publication::new();
        assert!(birth.to_tell(&others, 2).is_empty());
        birth.recorded_here();
        assert!(birth.is_recorded(0) && !birth.is_recorded(1));
        assert_eq!(birth.to_tell(&others, 2), [NodeId(1), NodeId(2)]);
        birth.recorded_by(NodeId(2));
        birth.recorded_by(NodeId(2));
        assert!(!birth.is_recorded(2));
        assert_eq!(birth.to_tell(&others, 2), [NodeId(1)]);
        birth.recorded_by(NodeId(3));
        assert!(birth.is_recorded(2));
        birth.lost(NodeId(2));
        assert!(!birth.is_recorded(2));
    }

    #[test]
    fn the_last_file_stays_until_the_seal() {
        let mut registry = Registry::default();
        registry.note(Incarnation(1), Fate::born(NodeId(9), Timestamp(0)));
        registry.note(Incarnation(2), Fate::born(NodeId(9), Timestamp(0)));
        registry.note(Incarnation(3), Fate::born(NodeId(8), Timestamp(0)));
        let ends = Ends::new([source(1, 4), source(1, 5), source(2, 0)]);
        let all: SourceSet = [source(1, 4), source(1, 5)].into_iter().collect();
        assert_eq!(
            ends.may_go(&all, &registry),
            [source(1, 4)].into_iter().collect()
        );
        assert_eq!(
            ends.to_seal(NodeId(9), &registry, Some(Incarnation(2))),
            [(Incarnation(1), 6)]
        );
        registry.seal(Incarnation(1), 6);
        assert_eq!(ends.may_go(&all, &registry), all);
        assert!(
            ends.to_seal(NodeId(9), &registry, Some(Incarnation(2)))
                .is_empty()
        );
    }

    #[test]
    fn lives_that_only_others_know_are_lost() {
        let mut registry = Registry::default();
        for (incarnation, node) in [(1, 9), (2, 9), (3, 9), (4, 9), (5, 8)] {
            let fate = Fate::born(NodeId(node), Timestamp(0));
            registry.note(Incarnation(incarnation), fate);
        }
        registry.seal(Incarnation(1), 3);
        registry.declare_lost(Incarnation(2), 3);
        let lost = lost_lives(NodeId(9), &registry, Some(Incarnation(3)));
        assert_eq!(lost, [Incarnation(4)]);
    }

    #[test]
    fn a_lost_life_is_not_sealed_unless_its_last_file_is_there() {
        let mut registry = Registry::default();
        for incarnation in [1, 2] {
            let fate = Fate::born(NodeId(9), Timestamp(0));
            registry.note(Incarnation(incarnation), fate);
            registry.declare_lost(Incarnation(incarnation), 3);
        }
        // Others gave up the first while it was alive; of the second this disk never knew.
        let ends = Ends::new([source(1, 7)]);
        let sealed = ends.to_seal(NodeId(9), &registry, None);
        assert_eq!(sealed, [(Incarnation(1), 8)]);
    }

    #[test]
    fn an_incarnation_without_a_file_had_none() {
        let mut registry = Registry::default();
        registry.note(Incarnation(1), Fate::born(NodeId(9), Timestamp(0)));
        let sealed = Ends::default().to_seal(NodeId(9), &registry, None);
        assert_eq!(sealed, [(Incarnation(1), 0)]);
    }
}
