//! Which incarnations and nodes there ever were (CLUSTER R3).
//!
//! A registry only grows: merging is a union in which the greater value wins, so it does not matter
//! in which order, how often and from whom entries arrive. Each node keeps one durably. An
//! incarnation is in the registries of several nodes before it acknowledges its first record, so
//! no answer can overlook its existence.

use std::collections::BTreeMap;

use logpond_record::{Incarnation, Timestamp};
use logpond_segment::sources::{Interval, SourceSet};
use xxhash_rust::xxh3::xxh3_128;

use crate::NodeId;
use crate::wire::{DecodeError, Decoder, Encoder};

/// Version of the encoding.
const VERSION: u64 = 1;

/// The longest address: a DNS name, a colon and a port.
pub const ADDRESS_BYTES_MAX: usize = 262;

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
        }
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
        *self != before
    }
}

/// A node that was ever heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Where it was reached last.
    pub address: String,
    /// Grows with each of its starts: the start's time in milliseconds, by its own clock.
    pub version: u64,
    /// The version that was given up for good; it is forgotten unless it came back with a later
    /// one.
    pub forgotten: Option<u64>,
}

impl Known {
    /// Whether nobody waits for it any more.
    pub fn is_forgotten(&self) -> bool {
        self.forgotten
            .is_some_and(|version| version >= self.version)
    }

    fn merge(&mut self, other: &Known) -> bool {
        let before = self.clone();
        if (other.version, &other.address) > (self.version, &self.address) {
            self.version = other.version;
            self.address.clone_from(&other.address);
        }
        self.forgotten = self.forgotten.max(other.forgotten);
        *self != before
    }
}

/// All incarnations and nodes that were ever heard of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    incarnations: BTreeMap<Incarnation, Fate>,
    nodes: BTreeMap<NodeId, Known>,
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
    pub fn node(&self, node: NodeId) -> Option<&Known> {
        self.nodes.get(&node)
    }

    /// All nodes, forgotten ones too.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Known)> {
        self.nodes.iter().map(|(name, known)| (*name, known))
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

    /// Adds what is known of an incarnation. True if anything of it is news.
    pub fn note(&mut self, incarnation: Incarnation, fate: Fate) -> bool {
        match self.incarnations.get_mut(&incarnation) {
            Some(known) => known.merge(&fate),
            None => self.incarnations.insert(incarnation, fate).is_none(),
        }
    }

    /// Adds what is known of a node. True if anything of it is news.
    pub fn note_node(&mut self, node: NodeId, known: Known) -> bool {
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

    /// Adds all that another registry knows. True if anything of it is news.
    pub fn merge(&mut self, other: &Registry) -> bool {
        let fates = other.incarnations.iter();
        let news = fates.fold(false, |news, (name, fate)| self.note(*name, *fate) | news);
        let nodes = other.nodes.iter();
        nodes.fold(news, |news, (name, known)| {
            self.note_node(*name, known.clone()) | news
        })
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
        }
        out.count(self.nodes.len());
        for (node, known) in &self.nodes {
            out.wide(node.0);
            out.bytes(known.address.as_bytes());
            out.number(known.version);
            out.number(known.forgotten.map_or(0, |v| v.saturating_add(1)));
        }
    }

    /// Takes a registry off a message.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn decode(from: &mut Decoder<'_>) -> Result<Registry, DecodeError> {
        let mut registry = Registry::default();
        for _ in 0..from.count(44, "the incarnations")? {
            let incarnation = Incarnation(from.wide("an incarnation")?);
            let fate = Fate {
                node: NodeId(from.wide("an incarnation's node")?),
                born: from.time("a birth")?,
                at_least: from.number("a number of sources")?,
                sealed: from.number("a seal")?.checked_sub(1),
                declared_lost: from.number("a loss")?.checked_sub(1),
                expired_below: from.number("an expiry")?,
            };
            registry.note(incarnation, fate);
        }
        for _ in 0..from.count(19, "the nodes")? {
            let node = NodeId(from.wide("a node")?);
            let known = Known {
                address: from.text(ADDRESS_BYTES_MAX, "an address")?.to_owned(),
                version: from.number("a node's version")?,
                forgotten: from.number("a forgotten version")?.checked_sub(1),
            };
            registry.note_node(node, known);
        }
        Ok(registry)
    }

    /// The registry as a message of its own.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut encoder = Encoder::new(VERSION);
        self.encode(&mut encoder);
        encoder.finish()
    }

    /// Reads what [`Registry::to_bytes`] wrote.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Registry, DecodeError> {
        let mut decoder = Decoder::new(bytes, VERSION)?;
        let registry = Registry::decode(&mut decoder)?;
        decoder.finish()?;
        Ok(registry)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn registries() -> impl Strategy<Value = Registry> {
        let fate = (
            0u128..4,
            0u128..3,
            any::<Option<u8>>(),
            any::<Option<u8>>(),
            0u64..9,
        );
        let known = (0u128..4, "[a-c]", 0u64..4, prop::option::of(0u64..4));
        let both = (
            prop::collection::vec(fate, 0..8),
            prop::collection::vec(known, 0..8),
        );
        both.prop_map(|(fates, nodes)| {
            let mut registry = Registry::default();
            for (incarnation, node, sealed, declared_lost, expired_below) in fates {
                let fate = Fate {
                    at_least: expired_below / 2,
                    sealed: sealed.map(u64::from),
                    declared_lost: declared_lost.map(u64::from),
                    expired_below,
                    ..Fate::born(NodeId(node), Timestamp(node as i64))
                };
                registry.note(Incarnation(incarnation), fate);
            }
            for (node, address, version, forgotten) in nodes {
                let known = Known {
                    address,
                    version,
                    forgotten,
                };
                registry.note_node(NodeId(node), known);
            }
            registry
        })
    }

    proptest! {
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
        let known = |version, forgotten| Known {
            address: "a:1".into(),
            version,
            forgotten,
        };
        let mut registry = Registry::default();
        registry.note_node(NodeId(1), known(7, None));
        registry.note_node(NodeId(1), known(0, Some(7)));
        let is_forgotten =
            |registry: &Registry| registry.nodes().all(|(_, node)| node.is_forgotten());
        assert!(is_forgotten(&registry));
        registry.note_node(NodeId(1), known(8, None));
        assert!(!is_forgotten(&registry));
    }
}
