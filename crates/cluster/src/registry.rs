//! Which incarnations and nodes there were (CLUSTER R3).
//!
//! Merging registries is a union in which the greater value wins, so it does not matter
//! in which order, how often and from whom entries arrive. Each node keeps one durably. An
//! incarnation is in the registries of several nodes before it acknowledges its first record, so
//! no answer can overlook its existence.
//!
//! An entry is dropped [`KEPT_DAYS`] after all that it is about is past ([`Registry::advance`]): an
//! incarnation that has ended and of which everything has expired, and a node that is forgotten and has
//! no incarnation left. Who was away for longer and still has the entry as it was before brings it back. Of the data nothing
//! comes back that has expired for its age; the incarnation ends as lost once its node hears of it.

use std::collections::{BTreeMap, BTreeSet};

use logpond_record::{Incarnation, Timestamp};
use logpond_segment::sources::{Interval, SourceSet};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::give_up::Copies;
use crate::wire::{DecodeError, Decoder, Encoder};
use crate::{Day, NodeId};

/// Version of the encoding.
const VERSION: u64 = 2;

/// The version before, which a registry on disk may have.
const VERSION_BEFORE: u64 = 1;

/// In which version a registry is encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Now,
    /// Without zones and days.
    Before,
}

/// For so long what is past is remembered, so that a node that was away for less cannot bring it
/// back.
pub const KEPT_DAYS: u64 = 180;

/// The longest address: a DNS name, a colon and a port.
pub const ADDRESS_BYTES_MAX: usize = 262;

/// The longest name of a zone: that of a DNS label.
pub const ZONE_BYTES_MAX: usize = 63;

/// What became of an incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The node that it writes on.
    pub node: NodeId,
    /// When it was minted, by that node's clock.
    pub born: Timestamp,
    /// It has at least so many sources: noted before its node lets the first of them go, so that
    /// they are missed if nobody has them.
    pub at_least: u64,
    /// As many sources as it has, said by itself at its end or at its node's next start. It has no
    /// others. (0-based numbers below this.)
    pub sealed: Option<u64>,
    /// As many sources as are known of it, said for it when its node was given up. What it had
    /// beyond is lost, and every answer says so until it is expired.
    pub declared_lost: Option<u64>,
    /// Sources with lower numbers have outlived their retention and count nowhere.
    pub expired_below: u64,
    /// So many sources as its end was said to be, and when that was noted: none of these was received
    /// later.
    pub ended: Option<(u64, Day)>,
    /// Below which number all has expired, and when it was noted last that it has ended so and somebody
    /// still holds something of it, or first if nobody does.
    pub past: Option<(u64, Day)>,
}

impl Fate {
    /// A birth.
    pub fn born(node: NodeId, born: Timestamp) -> Fate {
        Fate {
            node,
            born,
            at_least: 0,
            sealed: None,
            declared_lost: None,
            expired_below: 0,
            ended: None,
            past: None,
        }
    }

    /// Whether it has ended and nothing of it counts any more. What was declared lost may go on where
    /// nobody sees it, as long as its node is not given up.
    fn is_past(&self, is_node_forgotten: bool) -> bool {
        let lost = self.declared_lost.filter(|_| is_node_forgotten);
        let end = self.sealed.max(lost).map(|end| end.max(self.at_least));
        end.is_some_and(|end| self.expired_below >= end)
    }

    /// Notes what is known to have come to its end by a day; `is_held` says whether anything of it is
    /// still here.
    fn advance(&mut self, day: Day, is_node_forgotten: bool, is_held: bool) {
        if let Some(end) = self.sealed.max(self.declared_lost)
            && self.ended.is_none_or(|(noted, _)| noted < end)
        {
            self.ended = Some((end, day));
        }
        let is_noted = self.past.is_some_and(|(end, _)| end >= self.expired_below);
        if self.is_past(is_node_forgotten) && (is_held || !is_noted) {
            self.past = self.past.max(Some((self.expired_below, day)));
        }
    }

    /// Whether it was past for so long that nobody needs to know of it.
    fn is_over(&self, day: Day, is_node_forgotten: impl FnOnce() -> bool) -> bool {
        let is_old =
            |(end, past): (u64, Day)| end >= self.expired_below && is_kept_no_more(past, day);
        self.past.is_some_and(is_old) && self.is_past(is_node_forgotten())
    }

    /// Takes over what another entry knows more. True if that was anything.
    fn merge(&mut self, other: &Fate) -> bool {
        let before = *self;
        // The birth never changes; if it seems to, any choice will do that all make alike.
        if (other.node, other.born) < (self.node, self.born) {
            (self.node, self.born) = (other.node, other.born);
        }
        self.at_least = self.at_least.max(other.at_least);
        self.sealed = self.sealed.max(other.sealed);
        self.declared_lost = self.declared_lost.max(other.declared_lost);
        self.expired_below = self.expired_below.max(other.expired_below);
        self.ended = self.ended.max(other.ended);
        self.past = self.past.max(other.past);
        *self != before
    }
}

/// A node that was ever heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryEntry {
    /// Where it was reached last.
    pub address: String,
    /// The zone that it said to store in, empty if in none.
    pub zone: String,
    /// Grows with each of its starts: the start's time in milliseconds, by its own clock.
    pub version: u64,
    /// The version that was given up for good; it is forgotten unless it came back with a later
    /// one.
    pub forgotten: Option<u64>,
    /// When it was noted that it was given up, and which version was.
    pub past: Option<(u64, Day)>,
}

impl RegistryEntry {
    /// Whether nobody waits for it any more.
    pub fn is_forgotten(&self) -> bool {
        self.forgotten
            .is_some_and(|version| version >= self.version)
    }

    /// A node that is there.
    pub fn there(address: String, zone: String, version: u64) -> RegistryEntry {
        RegistryEntry {
            address,
            zone,
            version,
            forgotten: None,
            past: None,
        }
    }

    fn merge(&mut self, other: &RegistryEntry) -> bool {
        let before = self.clone();
        let (own, others) = (
            (self.version, &self.address, &self.zone),
            (other.version, &other.address, &other.zone),
        );
        if others > own {
            self.version = other.version;
            self.address.clone_from(&other.address);
            self.zone.clone_from(&other.zone);
        }
        self.forgotten = self.forgotten.max(other.forgotten);
        self.past = self.past.max(other.past);
        *self != before
    }

    fn advance(&mut self, day: Day) {
        let noted = self.past.map(|(version, _)| version);
        if let Some(forgotten) = self.forgotten.filter(|_| self.is_forgotten())
            && noted < Some(forgotten)
        {
            self.past = Some((forgotten, day));
        }
    }

    fn is_over(&self, day: Day) -> bool {
        let noted = self
            .past
            .filter(|(version, _)| self.forgotten == Some(*version));
        self.is_forgotten() && noted.is_some_and(|(_, past)| is_kept_no_more(past, day))
    }
}

fn is_kept_no_more(past: Day, day: Day) -> bool {
    day.days_after(past) > KEPT_DAYS
}

/// All incarnations and nodes that were ever heard of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    incarnations: BTreeMap<Incarnation, Fate>,
    nodes: BTreeMap<NodeId, RegistryEntry>,
    /// The latest day that a node has noted whose clock could be believed.
    day: Option<Day>,
}

impl Registry {
    /// What is known of an incarnation.
    pub fn fate(&self, incarnation: Incarnation) -> Option<&Fate> {
        self.incarnations.get(&incarnation)
    }

    /// All incarnations.
    pub fn incarnations(&self) -> impl Iterator<Item = (Incarnation, &Fate)> {
        self.incarnations.iter().map(|(name, fate)| (*name, fate))
    }

    /// What is known of a node.
    pub fn node(&self, node: NodeId) -> Option<&RegistryEntry> {
        self.nodes.get(&node)
    }

    /// All nodes, forgotten ones too.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &RegistryEntry)> {
        self.nodes.iter().map(|(name, known)| (*name, known))
    }

    /// The zone that a node stores in, as a number that names it.
    pub fn zone(&self, node: NodeId) -> Option<u64> {
        let zone = &self.nodes.get(&node)?.zone;
        (!zone.is_empty()).then(|| xxh3_64(zone.as_bytes()))
    }

    /// What copies there are to be, where so many nodes are to have one: in as many zones as there
    /// are. A node that is gone may come back with its zone; one that is forgotten or leaving takes it along.
    pub fn copies(&self, nodes: usize, leaving: &[NodeId]) -> Copies {
        let there = self.nodes.iter().filter(|(node, known)| {
            !known.is_forgotten() && !known.zone.is_empty() && !leaving.contains(node)
        });
        let zones: BTreeSet<&str> = there.map(|(_, known)| known.zone.as_str()).collect();
        let nodes = nodes.max(1);
        Copies {
            nodes,
            zones: zones.len().clamp(1, nodes),
        }
    }

    /// The sources that have outlived their retention and count nowhere.
    pub fn expired(&self) -> SourceSet {
        let mut expired = SourceSet::new();
        for (incarnation, fate) in &self.incarnations {
            if let Some(to) = fate.expired_below.checked_sub(1) {
                expired.insert_interval(*incarnation, Interval { from: 0, to });
            }
        }
        expired
    }

    /// Sources that were received before a day and have not expired: of each incarnation whose end was
    /// noted before it, all up to that end. What went on behind an end that was declared is not
    /// among them.
    pub fn ended_before(&self, day: Day) -> SourceSet {
        let mut sources = SourceSet::new();
        for (incarnation, fate) in &self.incarnations {
            let Some((end, _)) = fate.ended.filter(|(_, ended)| *ended < day) else {
                continue;
            };
            if fate.expired_below < end {
                let interval = Interval {
                    from: fate.expired_below,
                    to: end - 1,
                };
                sources.insert_interval(*incarnation, interval);
            }
        }
        sources
    }

    /// Adds what is known of an incarnation. True if anything of it is news.
    pub fn note(&mut self, incarnation: Incarnation, fate: Fate) -> bool {
        match self.incarnations.get_mut(&incarnation) {
            Some(known) => known.merge(&fate),
            None => self.incarnations.insert(incarnation, fate).is_none(),
        }
    }

    /// Adds what is known of a node. True if anything of it is news.
    pub fn note_node(&mut self, node: NodeId, known: RegistryEntry) -> bool {
        match self.nodes.get_mut(&node) {
            Some(before) => before.merge(&known),
            None => self.nodes.insert(node, known).is_none(),
        }
    }

    /// Says for an incarnation's own node that it has ended with so many sources. True if that is
    /// news; an incarnation that nobody has heard of cannot be sealed.
    pub fn seal(&mut self, incarnation: Incarnation, end: u64) -> bool {
        self.change(incarnation, |fate| fate.sealed = Some(end))
    }

    /// Says that an incarnation has at least so many sources.
    pub fn note_end(&mut self, incarnation: Incarnation, end: u64) -> bool {
        self.change(incarnation, |fate| fate.at_least = end)
    }

    /// Gives a node up, in the version that is known. True if that is news; one that nobody has heard
    /// of cannot be given up.
    pub fn forget(&mut self, node: NodeId) -> bool {
        let Some(known) = self.nodes.get_mut(&node) else {
            return false;
        };
        let before = known.forgotten;
        known.forgotten = before.max(Some(known.version));
        known.forgotten != before
    }

    /// Gives up waiting for the sources of an incarnation beyond the first `end`.
    pub fn declare_lost(&mut self, incarnation: Incarnation, end: u64) -> bool {
        self.change(incarnation, |fate| fate.declared_lost = Some(end))
    }

    /// Says that the sources of an incarnation below a number have expired.
    pub fn expire(&mut self, incarnation: Incarnation, below: u64) -> bool {
        self.change(incarnation, |fate| fate.expired_below = below)
    }

    fn change(&mut self, incarnation: Incarnation, change: impl FnOnce(&mut Fate)) -> bool {
        let Some(known) = self.incarnations.get_mut(&incarnation) else {
            return false;
        };
        let mut fate = *known;
        change(&mut fate);
        known.merge(&fate)
    }

    /// Adds all that another registry knows. True if anything of it is news; what either would have
    /// dropped is none.
    pub fn merge(&mut self, other: &Registry) -> bool {
        let mut is_news = other.day > self.day;
        self.day = self.day.max(other.day);
        for (name, fate) in &other.incarnations {
            let is_node_forgotten = || self.is_forgotten_with(other, fate.node);
            let is_over = self
                .day
                .is_some_and(|day| fate.is_over(day, is_node_forgotten));
            if self.incarnations.contains_key(name) || !is_over {
                is_news |= self.note(*name, *fate);
            }
        }
        let born = self.born();
        for (name, known) in &other.nodes {
            let is_over = self.day.is_some_and(|day| known.is_over(day)) && !born.contains(name);
            if self.nodes.contains_key(name) || !is_over {
                is_news |= self.note_node(*name, known.clone());
            }
        }
        is_news | self.drop_old()
    }

    /// Notes what day it is, by a clock that can be believed, and what has come to its end by then. `held`
    /// are the incarnations of which this node still has something: they are remembered as long as it
    /// has. True if anything of it is news.
    pub fn advance(&mut self, day: Day, held: &BTreeSet<Incarnation>) -> bool {
        let before = self.clone();
        let day = self.day.max(Some(day)).unwrap_or(day);
        self.day = Some(day);
        self.nodes.values_mut().for_each(|known| known.advance(day));
        let forgotten = self.forgotten();
        for (name, fate) in &mut self.incarnations {
            fate.advance(day, forgotten.contains(&fate.node), held.contains(name));
        }
        self.drop_old();
        *self != before
    }

    /// Whether a node is forgotten by what two registries know of it.
    fn is_forgotten_with(&self, other: &Registry, node: NodeId) -> bool {
        match (self.nodes.get(&node), other.nodes.get(&node)) {
            (Some(own), Some(others)) => {
                let mut known = own.clone();
                known.merge(others);
                known.is_forgotten()
            }
            (known, None) | (None, known) => known.is_some_and(RegistryEntry::is_forgotten),
        }
    }

    fn forgotten(&self) -> BTreeSet<NodeId> {
        let forgotten = self.nodes.iter().filter(|(_, known)| known.is_forgotten());
        forgotten.map(|(node, _)| *node).collect()
    }

    /// The nodes that incarnations write on.
    fn born(&self) -> BTreeSet<NodeId> {
        self.incarnations.values().map(|fate| fate.node).collect()
    }

    /// Drops what was past for long enough. True if there was anything.
    fn drop_old(&mut self) -> bool {
        let Some(day) = self.day else {
            return false;
        };
        let before = (self.incarnations.len(), self.nodes.len());
        let forgotten = self.forgotten();
        self.incarnations
            .retain(|_, fate| !fate.is_over(day, || forgotten.contains(&fate.node)));
        let born = self.born();
        self.nodes
            .retain(|node, known| !known.is_over(day) || born.contains(node));
        before != (self.incarnations.len(), self.nodes.len())
    }

    /// Hash of all that is in it: registries that know the same have equal ones.
    pub fn digest(&self) -> u128 {
        xxh3_128(&self.to_bytes())
    }

    /// Appends the registry to a message.
    pub fn encode(&self, out: &mut Encoder) {
        out.count(self.incarnations.len());
        for (incarnation, fate) in &self.incarnations {
            out.wide(incarnation.0);
            out.wide(fate.node.0);
            out.time(fate.born);
            out.number(fate.at_least);
            // 0 is unknown.
            out.number(fate.sealed.map_or(0, |end| end.saturating_add(1)));
            out.number(fate.declared_lost.map_or(0, |end| end.saturating_add(1)));
            out.number(fate.expired_below);
            encode_dated(fate.ended, out);
            encode_dated(fate.past, out);
        }
        out.count(self.nodes.len());
        for (node, known) in &self.nodes {
            out.wide(node.0);
            out.bytes(known.address.as_bytes());
            out.number(known.version);
            out.number(known.forgotten.map_or(0, |v| v.saturating_add(1)));
            out.bytes(known.zone.as_bytes());
            encode_dated(known.past, out);
        }
        out.number(self.day.map_or(0, Day::number));
    }

    /// Takes a registry off a message.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub(crate) fn decode(from: &mut Decoder<'_>, shape: Shape) -> Result<Registry, DecodeError> {
        let mut registry = Registry::default();
        for _ in 0..from.count(44, "the incarnations")? {
            let incarnation = Incarnation(from.wide("an incarnation")?);
            let mut fate = Fate {
                node: NodeId(from.wide("an incarnation's node")?),
                born: from.time("a birth")?,
                at_least: from.number("a number of sources")?,
                sealed: from.number("a seal")?.checked_sub(1),
                declared_lost: from.number("a loss")?.checked_sub(1),
                expired_below: from.number("an expiry")?,
                ended: None,
                past: None,
            };
            if shape == Shape::Now {
                fate.ended = decode_dated(from, "an end")?;
                fate.past = decode_dated(from, "what is past")?;
            }
            registry.note(incarnation, fate);
        }
        for _ in 0..from.count(19, "the nodes")? {
            let node = NodeId(from.wide("a node")?);
            let mut known = RegistryEntry {
                address: from.text(ADDRESS_BYTES_MAX, "an address")?.to_owned(),
                version: from.number("a node's version")?,
                forgotten: from.number("a forgotten version")?.checked_sub(1),
                zone: String::new(),
                past: None,
            };
            if shape == Shape::Now {
                from.text(ZONE_BYTES_MAX, "a zone")?
                    .clone_into(&mut known.zone);
                known.past = decode_dated(from, "a version that is past")?;
            }
            registry.note_node(node, known);
        }
        if shape == Shape::Now {
            registry.day = Day::from_number(from.number("the day")?);
        }
        Ok(registry)
    }

    /// The registry as a message of its own.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut encoder = Encoder::new(VERSION);
        self.encode(&mut encoder);
        encoder.finish()
    }

    /// Reads what [`Registry::to_bytes`] wrote, in this version or the one before.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Registry, DecodeError> {
        let before = Decoder::new(bytes, VERSION_BEFORE);
        let (mut decoder, shape) = match before {
            Ok(decoder) => (decoder, Shape::Before),
            Err(_) => (Decoder::new(bytes, VERSION)?, Shape::Now),
        };
        let registry = Registry::decode(&mut decoder, shape)?;
        decoder.finish()?;
        Ok(registry)
    }
}

/// A number with the day on which it was noted: the day comes first, 0 if there is neither.
fn encode_dated(dated: Option<(u64, Day)>, out: &mut Encoder) {
    let (number, day) = dated.unzip();
    out.number(day.map_or(0, Day::number));
    out.number(number.unwrap_or(0));
}

fn decode_dated(
    from: &mut Decoder<'_>,
    what: &'static str,
) -> Result<Option<(u64, Day)>, DecodeError> {
    let day = Day::from_number(from.number(what)?);
    let number = from.number(what)?;
    Ok(day.map(|day| (number, day)))
}

#[cfg(test)]
pub(crate) mod tests;
