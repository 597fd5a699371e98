//! Copies where there are too few, and fewer where there are too many.
//!
//! A node looks at what all hold ([`Member`]) and finds out what it is to do itself: of the nodes
//! that hold a source of which there are too few copies, the first in rank sends its segment to
//! the first store in rank that lacks it, once this has been so for a while; of a segment whose sources others hold often enough, the
//! holders behind those try to give theirs up. It is all a hint: two nodes may do the same, and a
//! copy is given up only as `give_up` permits.
//!
//! Invariants: a node that is gone counts as a holder for [`Settings::gone_ms`], since most come
//! back; one that is forgotten or is being emptied does not. No more than [`IN_FLIGHT_MAX`] copies
//! are sent at a time.

use std::collections::BTreeMap;

use logpond_record::{Id, SourceId};
use logpond_segment::sources::SourceSet;

use crate::give_up::{Copies, Peer, held_by, spread};
use crate::placement::{Key, Store};
use crate::{IndexedInventory, NodeId};

/// The most copies that a node sends at a time: one is read while another is synced, and queries
/// keep most of the disk.
pub const IN_FLIGHT_MAX: usize = 2;

/// How long nodes wait before they repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A node that is gone counts as a holder for so long.
    pub gone_ms: u64,
    /// Too few copies are seen for so long before one is sent: those of a new segment are there one
    /// after the other, and nodes are not looked at all at once.
    pub settle_ms: u64,
    /// A holder that is not the first in rank waits for so long, for each before it, until it
    /// copies in its place.
    pub takeover_ms: u64,
    /// A holder that is not needed waits for so long, for each before it, until it tries to give
    /// its copy up, so that not all try at once.
    pub spread_ms: u64,
    /// After a failed copy the same node is given another one only after this.
    pub failed_ms: u64,
}

impl Default for Settings {
    /// 15 min, 5 s, 5 min, 1 min, 1 min.
    fn default() -> Settings {
        Settings {
            gone_ms: 900_000,
            settle_ms: 5_000,
            takeover_ms: 300_000,
            spread_ms: 60_000,
            failed_ms: 60_000,
        }
    }
}

/// What is known of a node's presence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It answers.
    Live,
    /// It answers and is being emptied.
    Draining,
    /// It has not answered for so long.
    Gone {
        /// Milliseconds.
        for_ms: u64,
    },
    /// It was given up.
    Forgotten,
}

/// A node and what it said that it holds.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The node.
    pub node: NodeId,
    /// The zone that it fails with, if zones are configured.
    pub zone: Option<u64>,
    /// Whether it is there.
    pub presence: Presence,
    /// Its inventory of now, or the last one.
    pub held: &'a IndexedInventory,
}

impl<'a> Member<'a> {
    /// It and where it is.
    pub(crate) fn peer(&self) -> Peer {
        Peer {
            node: self.node,
            zone: self.zone,
        }
    }

    /// It and what it has in segments.
    pub fn holds(&self) -> (Peer, &'a SourceSet) {
        (self.peer(), self.held.stored())
    }
}

/// Something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Send a copy of a segment of this node; tell [`Repair::copied`].
    Copy {
        /// The segment.
        segment: Id,
        /// The store.
        to: NodeId,
    },
    /// Try to give a segment of this node up.
    GiveUp(Id),
}

/// What a node sees to.
#[derive(Clone, Debug)]
pub struct Repair {
    me: NodeId,
    copies: Copies,
    settings: Settings,
    in_flight: BTreeMap<Id, NodeId>,
    failed_until_ms: BTreeMap<NodeId, u64>,
    /// Sources that count nowhere any more: nobody is sent them.
    expired: SourceSet,
    /// Sources that a bucket lists: their copies are nobody's care.
    listed: SourceSet,
    /// Since when this node has seen too few, or too many, copies of what a segment holds.
    few_since_ms: BTreeMap<Id, u64>,
    many_since_ms: BTreeMap<Id, u64>,
    is_lacking: bool,
    is_settled: bool,
}

impl Repair {
    /// A node that has yet to look.
    pub fn new(me: NodeId, copies: usize, settings: Settings) -> Repair {
        Repair {
            me,
            copies: Copies::on_nodes(copies),
            settings,
            in_flight: BTreeMap::new(),
            failed_until_ms: BTreeMap::new(),
            expired: SourceSet::new(),
            listed: SourceSet::new(),
            few_since_ms: BTreeMap::new(),
            many_since_ms: BTreeMap::new(),
            is_lacking: false,
            is_settled: false,
        }
    }

    /// Says what copies there are to be, as zones come and go.
    pub fn set_copies(&mut self, copies: Copies) {
        self.copies = copies;
    }

    /// Says which sources have outlived their retention, as far as this node knows. It is the one
    /// that removes them first; the others must not send them back.
    pub fn set_expired(&mut self, expired: SourceSet) {
        self.expired = expired;
    }

    /// Says which sources a bucket lists, as far as this node has read there. They are sent to nobody,
    /// and a node that leaves needs no other node to have them.
    pub fn set_listed(&mut self, listed: SourceSet) {
        self.listed = listed;
    }

    /// Whether the last plan found everything here in as many copies as there are to be: no time
    /// that passes makes the next one find anything, only a change of what it is made from, such as
    /// a node that is gone for so long that it counts no more.
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// Whether the last plan found something here in too few copies: that comes before everything else.
    pub fn is_lacking(&self) -> bool {
        self.is_lacking
    }

    /// What this node is to do now, as all nodes hold what they say. `stores` are those that may be
    /// given copies; this node is one of the members.
    pub fn plan(&mut self, members: &[Member<'_>], stores: &[Store], now_ms: u64) -> Vec<Job> {
        let Some(mine) = members.iter().find(|member| member.node == self.me) else {
            return Vec::new();
        };
        let counting = members.iter().filter(|member| self.counts(member));
        let enough = self.copies.held_by(counting.map(Member::holds));
        let few = mine.held.stored().without(&enough).without(&self.expired);
        let few = few.without(&self.listed);
        self.is_lacking = !few.is_empty();
        self.is_settled = few.is_empty();
        let mut jobs = Vec::new();
        let segments = &mine.held.inventory().segments;
        self.few_since_ms
            .retain(|id, _| segments.iter().any(|s| s.id == *id));
        self.many_since_ms
            .retain(|id, _| segments.iter().any(|s| s.id == *id));
        for segment in segments.iter() {
            let lacking = segment.sources.common(&few);
            if let Some(first) = lacking.iter().next() {
                self.many_since_ms.remove(&segment.id);
                let rank = self.rank(first, members);
                let to = self.target(first, &lacking, members, stores, now_ms);
                if let (Some(to), true) = (to, self.is_turn(segment.id, rank, now_ms)) {
                    self.in_flight.insert(segment.id, to);
                    jobs.push(Job::Copy {
                        segment: segment.id,
                        to,
                    });
                }
                continue;
            }
            self.few_since_ms.remove(&segment.id);
            if self.is_superfluous(segment.id, &segment.sources, members, now_ms) {
                jobs.push(Job::GiveUp(segment.id));
            }
        }
        self.is_settled &= self.many_since_ms.is_empty();
        jobs
    }

    /// Whether a member counts as one that holds what it says.
    fn counts(&self, member: &Member<'_>) -> bool {
        match member.presence {
            Presence::Live => true,
            Presence::Gone { for_ms } => for_ms < self.settings.gone_ms,
            Presence::Draining | Presence::Forgotten => false,
        }
    }

    /// How many nodes that can send a source come before this one.
    fn rank(&self, first: SourceId, members: &[Member<'_>]) -> u64 {
        let able = members.iter().filter(|m| {
            matches!(m.presence, Presence::Live | Presence::Draining)
                && m.held.stored().contains(first)
        });
        let ranked = key(first).rank(able.map(|m| m.node));
        ranked.iter().take_while(|node| **node != self.me).count() as u64
    }

    /// Whether this node is to send a segment now.
    fn is_turn(&mut self, segment: Id, rank: u64, now_ms: u64) -> bool {
        let since_ms = *self.few_since_ms.entry(segment).or_insert(now_ms);
        let behind_ms = rank.saturating_mul(self.settings.takeover_ms);
        let wait_ms = behind_ms.saturating_add(self.settings.settle_ms);
        now_ms >= since_ms.saturating_add(wait_ms)
            && self.in_flight.len() < IN_FLIGHT_MAX
            && !self.in_flight.contains_key(&segment)
    }

    fn target(
        &self,
        first: SourceId,
        lacking: &SourceSet,
        members: &[Member<'_>],
        stores: &[Store],
        now_ms: u64,
    ) -> Option<NodeId> {
        let holders = members
            .iter()
            .filter(|m| m.held.stored().contains_all(lacking));
        let mut holders: Vec<Peer> = holders.map(Member::peer).collect();
        let own = members.iter().filter(|member| member.node == self.me);
        holders.extend(own.map(Member::peer));
        let targets = key(first).rank_targets(stores, &holders);
        let is_live = |node: &NodeId| {
            let mut members = members.iter();
            !members.any(|m| m.node == *node && m.presence != Presence::Live)
        };
        let is_able = |node: &NodeId| {
            let until_ms = self.failed_until_ms.get(node);
            until_ms.is_none_or(|until_ms| *until_ms <= now_ms)
        };
        let is_elsewhere = self.has_to_be_elsewhere(lacking, members, stores);
        targets
            .into_iter()
            .find(|node| is_live(node) && is_able(node) && is_elsewhere(node))
    }

    /// Whether a store helps: where there are copies enough, only one in another zone than these.
    fn has_to_be_elsewhere<'a>(
        &self,
        lacking: &SourceSet,
        members: &[Member<'_>],
        stores: &'a [Store],
    ) -> impl Fn(&NodeId) -> bool + use<'a> {
        let counting = members
            .iter()
            .filter(|m| self.counts(m) && m.held.stored().contains_all(lacking));
        let zones: Vec<Option<u64>> = counting.map(|m| m.zone).collect();
        let is_enough = zones.len() >= self.copies.nodes;
        move |node| {
            let zone = stores.iter().find(|store| store.node == *node);
            let zone = zone.and_then(|store| store.zone);
            !is_enough || zone.is_none() || !zones.contains(&zone)
        }
    }

    /// Whether enough others hold all of a segment's sources that this node is not needed for them,
    /// and have for long enough.
    fn is_superfluous(
        &mut self,
        segment: Id,
        sources: &SourceSet,
        members: &[Member<'_>],
        now_ms: u64,
    ) -> bool {
        let Some(first) = sources.iter().next() else {
            return false;
        };
        let is_leaving = members
            .iter()
            .any(|m| m.node == self.me && m.presence == Presence::Draining);
        let before = self.before(first, sources, members, is_leaving);
        let held = members.iter().filter(|m| before.contains(&m.node));
        let others: Vec<(Peer, SourceSet)> = held
            .map(|m| (m.peer(), sources.common(m.held.stored())))
            .collect();
        let rank = others.iter().filter(|(_, s)| s.contains(first)).count() as u64;
        let others = others.iter().map(|(peer, held)| (*peer, held));
        let mut enough = self.copies.held_by(others);
        if is_leaving {
            enough.union_with(&self.listed);
        }
        if !enough.contains_all(sources) {
            self.many_since_ms.remove(&segment);
            return false;
        }
        let since_ms = *self.many_since_ms.entry(segment).or_insert(now_ms);
        let wait_ms = if is_leaving {
            0
        } else {
            rank.saturating_mul(self.settings.spread_ms)
        };
        now_ms >= since_ms.saturating_add(wait_ms)
    }

    /// The others that keep what of these sources they hold rather than this node: all if it is
    /// leaving, otherwise those before it in rank, where other zones come before more of the same.
    fn before(
        &self,
        first: SourceId,
        sources: &SourceSet,
        members: &[Member<'_>],
        is_leaving: bool,
    ) -> Vec<NodeId> {
        let holding = members.iter().filter(|m| {
            let holds = || !sources.common(m.held.stored()).is_empty();
            m.node == self.me || (m.presence == Presence::Live && holds())
        });
        let peers: BTreeMap<NodeId, Peer> = holding.map(|m| (m.node, m.peer())).collect();
        let ranked = key(first).rank(peers.keys().copied());
        let ranked = spread(ranked.iter().map(|node| peers[node])).into_iter();
        let ranked = ranked.map(|peer| peer.node);
        if is_leaving {
            ranked.filter(|node| *node != self.me).collect()
        } else {
            ranked.take_while(|node| *node != self.me).collect()
        }
    }

    /// Notes what came of a copy.
    pub fn copied(&mut self, segment: Id, to: NodeId, is_stored: bool, now_ms: u64) {
        self.in_flight.remove(&segment);
        self.failed_until_ms
            .retain(|_, until_ms| *until_ms > now_ms);
        if !is_stored {
            let until_ms = now_ms.saturating_add(self.settings.failed_ms);
            self.failed_until_ms.insert(to, until_ms);
        }
    }

    /// Copies that are being sent.
    pub fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }
}

pub(crate) fn key(source: SourceId) -> Key {
    Key::Source {
        incarnation: source.incarnation.0,
        sequence: source.sequence,
    }
}

/// Sources that too few of the counting members hold, and those that more hold than need to: what
/// a status page shows.
pub fn deficit(members: &[Member<'_>], copies: Copies) -> (SourceSet, SourceSet) {
    let live = || members.iter().filter(|m| m.presence == Presence::Live);
    let any = held_by(members.iter().map(|m| m.held.stored()), 1);
    let few = any.without(&copies.held_by(live().map(Member::holds)));
    let many = held_by(live().map(|m| m.held.stored()), copies.nodes + 1);
    (few, many)
}

#[cfg(test)]
mod tests;
