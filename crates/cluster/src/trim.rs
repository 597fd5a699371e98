//! Sources of which there are too many copies, in segments that are needed for others of theirs.
//!
//! Two stores that make segments of the same journal files group them differently, and a copy that
//! makes up for one source brings its whole segment along. Such a segment is superfluous in part
//! only: it is *trimmed*, which is to say written anew without the sources that enough other nodes
//! hold (CLUSTER 6, attack 9).
//!
//! Of those who hold a source each has a place: segments with more rows come first, of these the one
//! with the lesser name, and of the holders of one segment those in rank. It is the order in which
//! readers choose ([`crate::Cover`]), so that what they leave out is what goes, and a segment that was
//! trimmed is behind the same ones as before. The first so many as there are to be copies keep it.
//!
//! Where these are in fewer zones than there are to be, nobody leaves the source out: a copy too many costs
//! less than one in a zone that has it already.
//!
//! It is all a hint: who sees something else chooses otherwise, and a source is left out only as
//! `give_up` permits. Every trimming takes copies away and nothing here makes any, so it ends.
//!
//! Invariants: of a node one segment is trimmed at a time, and only for what has been superfluous all
//! the time since it was first seen so; a source that another segment of the node lists is left to the
//! node's own merges.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use logpond_record::{Id, cast};
use logpond_segment::sources::SourceSet;

use crate::give_up::{CONTENTS_MAX, Copies, Peer, held_by};
use crate::repair::{Member, Presence, key};
use crate::{HeldSegment, NodeId};

/// When it is worth it to write a segment anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Something must be superfluous for so long: segments that were made a moment ago are merged
    /// soon, and nodes that restart are back by then.
    pub after_ms: u64,
    /// An attempt that came to nothing is made again only after this.
    pub failed_ms: u64,
    /// At least so many in a hundred of a segment's rows must go: the others are written once more
    /// for it, three times as much as becomes free.
    pub percent_min: u64,
    /// Or so many bytes of its file, about.
    pub bytes_min: u64,
}

impl Default for Settings {
    /// 10 min, 10 min, 25 %, 64 MiB.
    fn default() -> Settings {
        Settings {
            after_ms: 600_000,
            failed_ms: 600_000,
            percent_min: 25,
            bytes_min: 64 << 20,
        }
    }
}

/// A part of a segment that is to be given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The segment, of this node.
    pub segment: Id,
    /// The sources, at most [`CONTENTS_MAX`]; if they are all that it has, it goes as a whole.
    pub sources: SourceSet,
}

/// What a node trims.
#[derive(Clone, Debug)]
pub struct Trim {
    me: NodeId,
    copies: Copies,
    settings: Settings,
    /// What has been superfluous since when, of each segment for which that is worth it.
    seen: BTreeMap<Id, (u64, SourceSet)>,
    failed_until_ms: BTreeMap<Id, u64>,
    in_flight: Option<Id>,
}

/// A segment of another node that lists something of which there are too many copies.
struct Rival<'a> {
    peer: Peer,
    place: Place,
    segment: &'a HeldSegment,
}

impl Trim {
    /// A node that has yet to look.
    pub fn new(me: NodeId, copies: usize, settings: Settings) -> Trim {
        Trim {
            me,
            copies: Copies::on_nodes(copies),
            settings,
            seen: BTreeMap::new(),
            failed_until_ms: BTreeMap::new(),
            in_flight: None,
        }
    }

    /// Says what copies there are to be, as zones come and go.
    pub fn set_copies(&mut self, copies: Copies) {
        self.copies = copies;
    }

    /// Whether the last plan found nothing that is worth it, now or later: only a change of what it
    /// is made from makes the next one find something.
    pub fn is_settled(&self) -> bool {
        self.seen.is_empty() && self.in_flight.is_none()
    }

    /// What to trim now, if anything; tell [`Trim::ended`]. `expired` sources are about to go anyway;
    /// `rows_of` says how many rows a segment of this node has of some sources.
    pub fn plan(
        &mut self,
        members: &[Member<'_>],
        expired: &SourceSet,
        rows_of: &dyn Fn(Id, &SourceSet) -> u64,
        now_ms: u64,
    ) -> Option<Part> {
        let found = self.superfluous(members, expired);
        self.seen.retain(|id, _| found.contains_key(id));
        self.failed_until_ms
            .retain(|_, until_ms| *until_ms > now_ms);
        let mut best: Option<(u64, Part)> = None;
        for (id, (segment, sources)) in found {
            let (since_ms, before) = self.seen.remove(&id).unwrap_or((now_ms, sources.clone()));
            let lasting = before.common(&sources);
            let gain = |sources: &SourceSet| self.gain(segment, rows_of(id, sources));
            let (since_ms, sources, bytes) = match (gain(&lasting), gain(&sources)) {
                (Some(bytes), _) => (since_ms, lasting, bytes),
                (None, Some(bytes)) => (now_ms, sources, bytes),
                (None, None) => continue,
            };
            let is_due = now_ms >= since_ms.saturating_add(self.settings.after_ms)
                && !self.failed_until_ms.contains_key(&id);
            self.seen.insert(id, (since_ms, sources.clone()));
            if is_due && best.as_ref().is_none_or(|(most, _)| bytes > *most) {
                let segment = id;
                best = Some((bytes, Part { segment, sources }));
            }
        }
        if self.in_flight.is_some() {
            return None;
        }
        let (_, part) = best?;
        self.in_flight = Some(part.segment);
        Some(part)
    }

    /// Notes that an attempt is over, and whether the segment is trimmed.
    pub fn ended(&mut self, segment: Id, is_trimmed: bool, now_ms: u64) {
        self.in_flight.take_if(|id| *id == segment);
        if !is_trimmed {
            let until_ms = now_ms.saturating_add(self.settings.failed_ms);
            self.failed_until_ms.insert(segment, until_ms);
        }
    }

    /// About how many bytes become free when so many rows go, if that is worth it.
    fn gain(&self, segment: &HeldSegment, rows: u64) -> Option<u64> {
        let part = |of: u64| u128::from(of) * u128::from(rows) / u128::from(segment.rows.max(1));
        let bytes = u64::try_from(part(segment.bytes)).unwrap_or(u64::MAX);
        let is_worth =
            part(100) >= u128::from(self.settings.percent_min) || bytes >= self.settings.bytes_min;
        (rows > 0 && is_worth).then_some(bytes)
    }

    /// What is superfluous of this node's segments, whether or not it is worth it.
    fn superfluous<'a>(
        &self,
        members: &[Member<'a>],
        expired: &SourceSet,
    ) -> BTreeMap<Id, (&'a HeldSegment, SourceSet)> {
        let live = || members.iter().filter(|m| m.presence == Presence::Live);
        let mut found = BTreeMap::new();
        let Some(mine) = live().find(|member| member.node == self.me) else {
            return found;
        };
        let many = held_by(live().map(|m| m.held.stored()), self.copies.nodes + 1).without(expired);
        let own = mine.held.inventory().segments.iter();
        let own = own.filter(|segment| !segment.is_remote);
        // What two segments of this node list is left to its merges.
        let many = many.without(&held_by(own.map(|segment| &segment.sources), 2));
        if many.is_empty() {
            return found;
        }
        let stored = |member: &Member<'a>| {
            let segments = &member.held.inventory().segments;
            let many = &many;
            let on_disk = segments.iter().filter(|segment| !segment.is_remote);
            on_disk.filter(move |segment| !many.is_disjoint(&segment.sources))
        };
        let others = live().filter(|member| member.node != self.me);
        let rivals: Vec<Rival<'_>> = others
            .flat_map(|member| {
                let peer = member.peer();
                stored(member).map(move |segment| Rival {
                    peer,
                    place: place(segment, peer.node),
                    segment,
                })
            })
            .collect();
        for segment in stored(mine) {
            let mut sources = self.behind(segment, segment.sources.common(&many), &rivals);
            if sources.len() > CONTENTS_MAX {
                sources = sources.iter().take(cast::to_usize(CONTENTS_MAX)).collect();
            }
            if !sources.is_empty() {
                found.insert(segment.id, (segment, sources));
            }
        }
        found
    }

    /// Those of some sources that enough others hold who come before this node's segment.
    fn behind(&self, mine: &HeldSegment, sources: SourceSet, rivals: &[Rival<'_>]) -> SourceSet {
        if sources.is_empty() {
            return sources;
        }
        let own = place(mine, self.me);
        let mut before: BTreeMap<NodeId, (Peer, SourceSet)> = BTreeMap::new();
        for Rival {
            peer,
            place,
            segment,
        } in rivals
        {
            if *place < own && !sources.is_disjoint(&segment.sources) {
                let empty = || (*peer, SourceSet::new());
                let (_, held) = before.entry(peer.node).or_insert_with(empty);
                held.union_with(&segment.sources.common(&sources));
            }
        }
        let before = before.values();
        self.copies
            .held_by(before.map(|(peer, held)| (*peer, held)))
    }
}

/// What the holders of a source are ordered by.
type Place = (Reverse<u64>, Id, Reverse<u64>, NodeId);

fn place(segment: &HeldSegment, node: NodeId) -> Place {
    let first = segment.sources.iter().next();
    let score = first.map_or(0, |first| key(first).score(node));
    (Reverse(segment.rows), segment.id, Reverse(score), node)
}

#[cfg(test)]
mod tests;
