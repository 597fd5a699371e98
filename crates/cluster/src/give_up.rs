//! Flag, ask, drop: how the last local copy of sources is given up (CLUSTER R6).
//!
//! A node that wants to drop sources flags them ([`crate::Holdings::flag`]; a journal file needs no
//! flag), then asks others whether they hold them and are not giving them up, and drops those for
//! which enough distinct nodes said yes in answer to this very attempt. The others it keeps.
//!
//! Why no copy too many goes: of those who dropped a source with success, take the one that flagged
//! it last. Its yes-sayers answered after that, unflagged; had one of them dropped it later, it
//! would have flagged it later. So they all have it. No clock, lease or verdict on who is alive
//! is in this: a pause of any length between the answers and the drop changes nothing.
//!
//! What a bucket lists counts as enough copies, whoever has seen it there (CLUSTER R14): it goes only
//! when it expires, and nobody's disk is needed for it.
//!
//! Invariants: an answer counts only if it carries the attempt's name and comes from a node that
//! was asked; of each node only the first one; a yes with other contents than were expected counts
//! as a conflict and never as a yes (R2, R4).

use std::collections::{BTreeMap, BTreeSet};

use logpond_record::{Incarnation, SourceId};
use logpond_segment::file::SourceEntry;
use logpond_segment::sources::SourceSet;

use crate::NodeId;
use crate::wire::{DecodeError, Decoder, Encoder};

/// Version of a question's encoding.
const VERSION: u64 = 1;

/// Version of an answer's encoding.
const HELD_VERSION: u64 = 2;

/// The most sources of which a question may ask for the contents: 40 bytes each, so that an answer
/// stays below 3 MB.
pub const CONTENTS_MAX: u64 = 1 << 16;

/// Names one attempt to give something up. Random, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub u128);

/// A question to a store: which of these do you hold durably, and are not giving up?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhoHolds {
    /// The attempt that the answer is for.
    pub attempt: Attempt,
    /// The sources.
    pub sources: SourceSet,
    /// Whether to say also what is in them; then they are at most [`CONTENTS_MAX`].
    pub with_contents: bool,
}

impl WhoHolds {
    /// A question without contents.
    pub fn new(attempt: Attempt, sources: SourceSet) -> WhoHolds {
        WhoHolds {
            attempt,
            sources,
            with_contents: false,
        }
    }

    /// The question as a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::new(VERSION);
        out.wide(self.attempt.0);
        out.flag(self.with_contents);
        out.sources(&self.sources);
        out.finish()
    }

    /// Reads what [`WhoHolds::to_bytes`] wrote.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<WhoHolds, DecodeError> {
        let mut from = Decoder::new(bytes, VERSION)?;
        let question = WhoHolds {
            attempt: Attempt(from.wide("the attempt")?),
            with_contents: from.flag("whether contents are asked for")?,
            sources: from.sources("the sources that are asked for")?,
        };
        if question.with_contents && question.sources.len() > CONTENTS_MAX {
            return Err(DecodeError::Malformed("the number of contents"));
        }
        from.finish()?;
        Ok(question)
    }
}

/// What is in a source, whoever holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// The source.
    pub source: SourceId,
    /// Its rows.
    pub rows: u64,
    /// The sum of their hashes; [`SHADOWED`] if the source is the copy of a batch whose rows stand in another source.
    pub hash: u128,
}

/// Stands for the hash of a source that has no rows because it yielded to another one (CLUSTER R10). The sum of no
/// hashes is 0, so nothing else has it.
const SHADOWED: u128 = u128::MAX;

/// A content takes at least so many bytes in a message.
pub(crate) const CONTENT_BYTES_MIN: usize = 34;

impl Content {
    /// The content of a source as a segment lists it.
    pub fn of(entry: &SourceEntry) -> Content {
        let is_shadowed = entry.retry.is_some_and(|retry| retry.is_shadowed);
        Content {
            source: entry.source,
            rows: entry.rows,
            hash: if is_shadowed { SHADOWED } else { entry.hash },
        }
    }

    fn is_shadowed(&self) -> bool {
        (self.rows, self.hash) == (0, SHADOWED)
    }

    /// True if both are copies of one source. A copy that yielded is as good as one with rows: its node had these in the
    /// source it yielded to, and gives that one up by the same rules. Copies yield to earlier attempts only, so some
    /// attempt is never given up for another.
    fn is_copy_of(&self, other: &Content) -> bool {
        self == other || self.source == other.source && (self.is_shadowed() || other.is_shadowed())
    }

    pub(crate) fn encode(&self, out: &mut Encoder) {
        out.wide(self.source.incarnation.0);
        out.number(self.source.sequence);
        out.number(self.rows);
        out.wide(self.hash);
    }

    pub(crate) fn decode(from: &mut Decoder<'_>) -> Result<Content, DecodeError> {
        Ok(Content {
            source: SourceId {
                incarnation: Incarnation(from.wide("a source")?),
                sequence: from.number("a source")?,
            },
            rows: from.number("a source's rows")?,
            hash: from.wide("a source's hash")?,
        })
    }
}

/// The answer to [`WhoHolds`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldingsReply {
    /// The attempt that was asked for.
    pub attempt: Attempt,
    /// The node that answers.
    pub node: NodeId,
    /// Those of the sources that it holds and is not giving up.
    pub sources: SourceSet,
    /// Those that its bucket lists, as far as it has read there; `None` if it has no bucket.
    pub listed: Option<SourceSet>,
    /// What is in each of both, if that was asked for.
    pub contents: Vec<Content>,
}

impl HoldingsReply {
    /// The answer as a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::new(HELD_VERSION);
        out.wide(self.attempt.0);
        out.wide(self.node.0);
        out.sources(&self.sources);
        out.flag(self.listed.is_some());
        if let Some(listed) = &self.listed {
            out.sources(listed);
        }
        out.count(self.contents.len());
        for content in &self.contents {
            content.encode(&mut out);
        }
        out.finish()
    }

    /// Reads what [`HoldingsReply::to_bytes`] wrote.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<HoldingsReply, DecodeError> {
        let mut from = Decoder::new(bytes, HELD_VERSION)?;
        let mut held = HoldingsReply {
            attempt: Attempt(from.wide("the attempt")?),
            node: NodeId(from.wide("the node")?),
            sources: from.sources("the sources that are held")?,
            listed: None,
            contents: Vec::new(),
        };
        if from.flag("whether there is a bucket")? {
            held.listed = Some(from.sources("the sources that are listed")?);
        }
        for _ in 0..from.count(CONTENT_BYTES_MIN, "the contents")? {
            held.contents.push(Content::decode(&mut from)?);
        }
        from.finish()?;
        Ok(held)
    }
}

/// A node that may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The node.
    pub node: NodeId,
    /// The zone that it fails with, if zones are configured; a number that names it.
    pub zone: Option<u64>,
}

/// How many copies must be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// On so many distinct nodes, at least 1.
    pub nodes: usize,
    /// In so many distinct zones; a node without a zone counts as a zone of its own. 1 is enough
    /// where no zones are configured.
    pub zones: usize,
}

impl Copies {
    /// The sources of which there are enough copies, where each of some nodes holds a set.
    pub fn held_by<'a>(
        &self,
        holders: impl IntoIterator<Item = (Peer, &'a SourceSet)>,
    ) -> SourceSet {
        let mut zones: BTreeMap<Zone, SourceSet> = BTreeMap::new();
        let mut nodes = Vec::new();
        for (peer, held) in holders {
            if self.zones > 1 {
                zones.entry(Zone::of(peer)).or_default().union_with(held);
            }
            nodes.push(held);
        }
        let by_nodes = held_by(nodes, self.nodes.max(1));
        match self.zones {
            0 | 1 => by_nodes,
            wanted => by_nodes.common(&held_by(zones.values(), wanted)),
        }
    }

    /// Copies on so many nodes, wherever these are.
    pub fn on_nodes(nodes: usize) -> Copies {
        Copies {
            nodes: nodes.max(1),
            zones: 1,
        }
    }
}

/// One attempt to give sources up.
#[derive(Clone, Debug)]
pub struct GiveUp {
    attempt: Attempt,
    wanted: SourceSet,
    expected: BTreeMap<SourceId, Content>,
    copies: Copies,
    /// Everyone that may be asked, and what came of it.
    asked: BTreeMap<NodeId, (Peer, Outcome)>,
    conflicts: Vec<(NodeId, Content)>,
}

#[derive(Clone, Debug)]
enum Outcome {
    Unknown,
    Failed,
    Yes(Yes),
}

/// What a node has of what is wanted.
#[derive(Clone, Debug)]
struct Yes {
    held: SourceSet,
    /// What it has seen listed, if it has a bucket.
    listed: Option<SourceSet>,
}

impl GiveUp {
    /// Begins to give up `wanted`, which must be flagged already if segments hold it, if `among`
    /// them so many nodes have it. A store that gives up its own copy is not among them.
    pub fn new(attempt: Attempt, wanted: SourceSet, among: &[Peer], copies: Copies) -> GiveUp {
        let asked = among.iter();
        GiveUp {
            attempt,
            wanted,
            expected: BTreeMap::new(),
            copies,
            asked: asked
                .map(|peer| (peer.node, (*peer, Outcome::Unknown)))
                .collect(),
            conflicts: Vec::new(),
        }
    }

    /// Also demands that the others' copies have these contents. The sources that are given up
    /// are those that have contents; at most [`CONTENTS_MAX`].
    #[must_use]
    pub fn expecting(mut self, contents: &[Content]) -> GiveUp {
        let each = contents.iter();
        self.expected = each.map(|content| (content.source, *content)).collect();
        let known: SourceSet = self.expected.keys().copied().collect();
        self.wanted = self.wanted.common(&known);
        self
    }

    /// What to ask.
    pub fn question(&self) -> WhoHolds {
        WhoHolds {
            attempt: self.attempt,
            sources: self.wanted.clone(),
            with_contents: !self.expected.is_empty(),
        }
    }

    /// Whom to ask: those from whom nothing was heard yet; none once their answers could change
    /// nothing.
    pub fn to_ask(&self) -> Vec<NodeId> {
        if self.is_settled() {
            return Vec::new();
        }
        let unknown = self.asked.iter();
        let unknown = unknown.filter(|(_, (_, outcome))| matches!(outcome, Outcome::Unknown));
        unknown.map(|(node, _)| *node).collect()
    }

    /// Takes an answer. False if it does not count: it is for another attempt, or its node was not
    /// asked, or was heard already.
    pub fn answered(&mut self, answer: &HoldingsReply) -> bool {
        if answer.attempt != self.attempt {
            return false;
        }
        let Some((_, outcome @ Outcome::Unknown)) = self.asked.get_mut(&answer.node) else {
            return false;
        };
        let mut yes = self.wanted.common(&answer.sources);
        let listed = answer.listed.as_ref();
        let mut listed = listed.map(|listed| self.wanted.common(listed));
        if !self.expected.is_empty() {
            let mut same = SourceSet::new();
            for content in &answer.contents {
                match self.expected.get(&content.source) {
                    Some(expected) if content.is_copy_of(expected) => same.insert(content.source),
                    Some(_) => self.conflicts.push((answer.node, *content)),
                    None => {}
                }
            }
            yes = yes.common(&same);
            listed = listed.map(|listed| listed.common(&same));
        }
        *outcome = Outcome::Yes(Yes { held: yes, listed });
        true
    }

    /// Notes that a node could not be asked, or did not answer in time. What it says later does
    /// not count.
    pub fn failed(&mut self, node: NodeId) {
        if let Some((_, outcome @ Outcome::Unknown)) = self.asked.get_mut(&node) {
            *outcome = Outcome::Failed;
        }
    }

    /// The sources that may be dropped: enough others have them, or a bucket does. Where one copy is
    /// enough, one on the disk of a node with a bucket is not: it is on its way there.
    pub fn confirmed(&self) -> SourceSet {
        let is_enough = |yes: &Yes| self.copies.nodes > 1 || yes.listed.is_none();
        let mut confirmed = self.held_by_nodes(is_enough);
        for (_, yes) in self.heard() {
            if let Some(listed) = &yes.listed {
                confirmed.union_with(listed);
            }
        }
        confirmed
    }

    /// The sources that may be dropped once a bucket lists them: nothing else is to be done for them.
    pub fn on_their_way(&self) -> SourceSet {
        self.held_by_nodes(|_| true).without(&self.confirmed())
    }

    /// What so many nodes and zones have as there are to be copies, of the answers that count.
    fn held_by_nodes(&self, counts: impl Fn(&Yes) -> bool) -> SourceSet {
        let counting = self.heard().filter(|(_, yes)| counts(yes));
        self.copies
            .held_by(counting.map(|(peer, yes)| (*peer, &yes.held)))
    }

    fn heard(&self) -> impl Iterator<Item = (&Peer, &Yes)> {
        self.asked
            .values()
            .filter_map(|(peer, outcome)| match outcome {
                Outcome::Yes(yes) => Some((peer, yes)),
                Outcome::Unknown | Outcome::Failed => None,
            })
    }

    /// Whether nothing that could still be heard would change what is confirmed.
    pub fn is_settled(&self) -> bool {
        let all_heard = || {
            let mut outcomes = self.asked.values();
            !outcomes.any(|(_, outcome)| matches!(outcome, Outcome::Unknown))
        };
        all_heard() || self.confirmed() == self.wanted
    }

    /// Copies with other contents than ours: two things have one name, which is never right. Both
    /// are kept, and somebody should look.
    pub fn conflicts(&self) -> &[(NodeId, Content)] {
        &self.conflicts
    }
}

/// What fails together. Without a zone a node fails alone.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Zone {
    Named(u64),
    Alone(NodeId),
}

impl Zone {
    fn of(peer: Peer) -> Zone {
        peer.zone.map_or(Zone::Alone(peer.node), Zone::Named)
    }
}

/// Nodes in the order of choice, those first that are in other zones than all before them.
pub fn spread(peers: impl IntoIterator<Item = Peer>) -> Vec<Peer> {
    let mut zones = BTreeSet::new();
    let (mut spread, rest): (Vec<Peer>, Vec<Peer>) = peers
        .into_iter()
        .partition(|peer| zones.insert(Zone::of(*peer)));
    spread.extend(rest);
    spread
}

/// The sources that are in at least `count` of the sets; `count` is at least 1.
pub fn held_by<'a>(sets: impl IntoIterator<Item = &'a SourceSet>, count: usize) -> SourceSet {
    // layers[n]: in more than n of the sets so far.
    let mut layers = vec![SourceSet::new(); count];
    for set in sets {
        for at in (1..count).rev() {
            let again = layers[at - 1].common(set);
            layers[at].union_with(&again);
        }
        layers[0].union_with(set);
    }
    layers.pop().unwrap_or_default()
}

#[cfg(test)]
mod tests;
