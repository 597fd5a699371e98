//! From a claim to segments on enough stores: the store's side of the hand-off.
//!
//! ```text
//! ask who holds the sources ─▶ build one segment of those that lack ─▶ send copies ─▶ report
//! ```
//!
//! Invariants: what enough stores hold already is not built again, only reported; a segment becomes
//! live only if it holds of each source what the ingester says is in it (CLUSTER R4). The report
//! is a hint: the ingester asks by itself before it drops anything. Wherever this ends, the files
//! are offered again, and what was made is valid data that the next one to claim them finds.

use std::collections::{BTreeMap, BTreeSet};

use logpond_record::{Id, SourceId};
use logpond_segment::sources::SourceSet;

use crate::give_up::{Attempt, Content, HoldingsReply, WhoHolds, held_by};
use crate::offers::{Claim, ClaimId, OfferedFile};
use crate::replicate::Replication;
use crate::{Holdings, NodeId};

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask these stores, side by side; tell [`Consume::answered`] or [`Consume::unheard`].
    Ask {
        /// The stores.
        nodes: Vec<NodeId>,
        /// What to ask them.
        question: WhoHolds,
    },
    /// Read these files from the ingester and write one segment of them under a temporary name;
    /// tell [`Consume::built`] or [`Consume::not_built`].
    Build(Vec<OfferedFile>),
    /// Send copies of a live segment, side by side; tell [`Consume::stored`] or
    /// [`Consume::not_stored`].
    Send {
        /// The segment.
        segment: Id,
        /// The stores.
        to: Vec<NodeId>,
    },
    /// Tell the ingester which sources are where they should be, and take up the next claim.
    Report {
        /// The claim.
        claim: ClaimId,
        /// The sources; the others of the claim are to be offered again.
        sources: SourceSet,
    },
    /// Wait for what was begun.
    Wait,
}

/// Why a segment must be thrown away rather than shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotConserved {
    /// Sources that hold something else in it than the ingester says, or that nobody asked for.
    pub sources: Vec<SourceId>,
}

/// The work on one claim.
#[derive(Clone, Debug)]
pub struct Consume {
    me: NodeId,
    claim: Claim,
    copies: usize,
    targets: Vec<NodeId>,
    attempt: Attempt,
    /// What each other store has said; none of it if it was not heard.
    others: BTreeMap<NodeId, Option<SourceSet>>,
    /// What buckets list, as far as anybody has said.
    listed: SourceSet,
    phase: Phase,
    /// Sources that enough stores have.
    done: SourceSet,
    /// Segments that are being sent, with the claimed sources in them.
    sending: Vec<(Replication, SourceSet)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Ask,
    Asking(BTreeSet<NodeId>),
    Build(SourceSet),
    Building(SourceSet),
    Send,
}

impl Consume {
    /// Begins with a claim. `others` are the other stores, `targets` those that may be given
    /// copies, the best first ([`crate::placement::Key::rank_targets`] of the cohort), `copies` how
    /// many there are to be, this node's included; `attempt` is fresh.
    pub fn new(
        me: NodeId,
        claim: Claim,
        others: &[NodeId],
        targets: Vec<NodeId>,
        copies: usize,
        attempt: Attempt,
    ) -> Consume {
        let others = others.iter().filter(|node| **node != me);
        Consume {
            me,
            claim,
            copies: copies.max(1),
            targets,
            attempt,
            others: others.map(|node| (*node, None)).collect(),
            listed: SourceSet::new(),
            phase: Phase::Ask,
            done: SourceSet::new(),
            sending: Vec::new(),
        }
    }

    /// The claim.
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// What to do next; `holdings` are this node's own.
    pub fn next(&mut self, holdings: &Holdings) -> Step {
        if self.phase == Phase::Ask {
            let nodes: Vec<NodeId> = self.others.keys().copied().collect();
            self.phase = Phase::Asking(nodes.iter().copied().collect());
            if !nodes.is_empty() {
                let question = WhoHolds::new(self.attempt, self.claim.sources());
                return Step::Ask { nodes, question };
            }
        }
        if matches!(&self.phase, Phase::Asking(unheard) if unheard.is_empty()) {
            let lacking = self.sort_out(holdings);
            self.phase = if lacking.is_empty() {
                Phase::Send
            } else {
                Phase::Build(lacking)
            };
        }
        match &self.phase {
            Phase::Build(lacking) => {
                let files = self.claim.files.iter();
                let files = files.filter(|file| lacking.contains(file.content.source));
                let files = files.copied().collect();
                self.phase = Phase::Building(lacking.clone());
                Step::Build(files)
            }
            Phase::Send => self.send(),
            Phase::Ask | Phase::Asking(_) | Phase::Building(_) => Step::Wait,
        }
    }

    fn send(&mut self) -> Step {
        for (copies, _) in &mut self.sending {
            let to = copies.to_send();
            if !to.is_empty() {
                let segment = copies.segment();
                return Step::Send { segment, to };
            }
        }
        if self.sending.iter().any(|(copies, _)| !copies.is_over()) {
            return Step::Wait;
        }
        let mut sources = self.done.clone();
        for (_, sent) in self.sending.iter().filter(|(copies, _)| copies.is_done()) {
            sources.union_with(sent);
        }
        Step::Report {
            claim: self.claim.id,
            sources,
        }
    }

    /// Sorts the claimed sources into those that enough stores have, those that are here and are
    /// only to be sent, and those that are to be read, which it gives.
    fn sort_out(&mut self, holdings: &Holdings) -> SourceSet {
        let claimed = self.claim.sources();
        let own = holdings.answer(&WhoHolds::new(self.attempt, claimed.clone()));
        let others = self.others.values().flatten();
        let mut done = held_by(others.chain([&own]), self.copies);
        done.union_with(&self.listed);
        if let Some(listed) = holdings.listed() {
            done.union_with(listed);
        }
        self.done = done.common(&claimed);
        let rest = claimed.without(&self.done);
        let mut unsent = rest.common(&own);
        for (segment, sources) in holdings.live() {
            let sent = unsent.common(sources);
            if !sent.is_empty() {
                unsent = unsent.without(&sent);
                self.add(segment, sent);
            }
        }
        rest.without(&own)
    }

    /// Begins to send a segment to as many others as lack it.
    fn add(&mut self, segment: Id, sources: SourceSet) {
        let has_all =
            |said: &Option<SourceSet>| said.as_ref().is_some_and(|s| s.contains_all(&sources));
        let have = self.others.iter().filter(|(_, said)| has_all(said));
        let have: Vec<NodeId> = have.map(|(node, _)| *node).collect();
        let targets = self.targets.iter().filter(|node| **node != self.me);
        let targets: Vec<NodeId> = targets.copied().collect();
        let copies = Replication::new(segment, self.copies - 1, have, &targets);
        self.sending.push((copies, sources));
    }

    /// Takes a store's answer. Those to another question do not count.
    pub fn answered(&mut self, answer: &HoldingsReply) {
        let Phase::Asking(unheard) = &mut self.phase else {
            return;
        };
        if answer.attempt == self.attempt && unheard.remove(&answer.node) {
            self.others
                .insert(answer.node, Some(answer.sources.clone()));
            if let Some(listed) = &answer.listed {
                self.listed.union_with(listed);
            }
        }
    }

    /// Notes that a store was not reached, or does not answer.
    pub fn unheard(&mut self, node: NodeId) {
        if let Phase::Asking(unheard) = &mut self.phase {
            unheard.remove(&node);
        }
    }

    /// Takes what is in the segment that was built: all that was asked for, but for files that had
    /// gone. The segment is to be made durable and live if this succeeds.
    ///
    /// # Errors
    /// When it differs from what the ingester says (R4). Then it is to be thrown away, and somebody
    /// should look at it; the claim goes on without it.
    pub fn built(&mut self, segment: Id, contents: &[Content]) -> Result<(), NotConserved> {
        let Phase::Building(lacking) = &self.phase else {
            let sources = contents.iter().map(|c| c.source).collect();
            return Err(NotConserved { sources });
        };
        let is_right = |content: &&Content| {
            let mut files = self.claim.files.iter();
            lacking.contains(content.source) && files.any(|file| file.content == **content)
        };
        let wrong = contents.iter().filter(|content| !is_right(content));
        let wrong: Vec<SourceId> = wrong.map(|content| content.source).collect();
        self.phase = Phase::Send;
        if !wrong.is_empty() {
            return Err(NotConserved { sources: wrong });
        }
        if !contents.is_empty() {
            self.add(segment, contents.iter().map(|c| c.source).collect());
        }
        Ok(())
    }

    /// Notes that no segment could be built.
    pub fn not_built(&mut self) {
        self.phase = Phase::Send;
    }

    /// Notes that a store has synced its copy of a segment.
    pub fn stored(&mut self, segment: Id, node: NodeId) {
        if let Some(copies) = self.copies_of(segment) {
            copies.stored(node);
        }
    }

    /// Notes that a store did not take its copy.
    pub fn not_stored(&mut self, segment: Id, node: NodeId) {
        if let Some(copies) = self.copies_of(segment) {
            copies.failed(node);
        }
    }

    fn copies_of(&mut self, segment: Id) -> Option<&mut Replication> {
        let mut copies = self.sending.iter_mut().map(|(copies, _)| copies);
        copies.find(|copies| copies.segment() == segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logpond_record::Incarnation;

    const ME: NodeId = NodeId(1);

    fn source(sequence: u64) -> SourceId {
        SourceId {
            incarnation: Incarnation(1),
            sequence,
        }
    }

    fn set(numbers: &[u64]) -> SourceSet {
        numbers.iter().map(|n| source(*n)).collect()
    }

    fn content(sequence: u64) -> Content {
        Content {
            source: source(sequence),
            rows: 1,
            hash: u128::from(sequence),
        }
    }

    fn consume(numbers: &[u64], others: &[u128]) -> Consume {
        let files = numbers.iter().map(|n| OfferedFile {
            content: content(*n),
            bytes: 1,
        });
        let claim = Claim {
            id: ClaimId(7),
            files: files.collect(),
            lease_ms: 1,
        };
        let others: Vec<NodeId> = others.iter().map(|n| NodeId(*n)).collect();
        Consume::new(ME, claim, &others, others.clone(), 2, Attempt(3))
    }

    fn answer(consume: &mut Consume, node: u128, numbers: &[u64]) {
        consume.answered(&HoldingsReply {
            attempt: Attempt(3),
            node: NodeId(node),
            sources: set(numbers),
            listed: None,
            contents: Vec::new(),
        });
    }

    fn report(numbers: &[u64]) -> Step {
        Step::Report {
            claim: ClaimId(7),
            sources: set(numbers),
        }
    }

    #[test]
    fn what_nobody_has_is_built_and_sent() {
        let mut consume = consume(&[1, 2], &[2, 3]);
        let mut holdings = Holdings::default();
        let asked = consume.next(&holdings);
        assert!(matches!(asked, Step::Ask { nodes, .. } if nodes.len() == 2));
        assert_eq!(consume.next(&holdings), Step::Wait);
        answer(&mut consume, 2, &[]);
        consume.unheard(NodeId(3));
        let Step::Build(files) = consume.next(&holdings) else {
            panic!("both are lacking");
        };
        assert_eq!(files.len(), 2);
        assert_eq!(consume.next(&holdings), Step::Wait);
        assert_eq!(consume.built(Id(9), &[content(1), content(2)]), Ok(()));
        holdings.add(Id(9), set(&[1, 2]));
        let send = |to: u128| Step::Send {
            segment: Id(9),
            to: vec![NodeId(to)],
        };
        assert_eq!(consume.next(&holdings), send(2));
        consume.not_stored(Id(9), NodeId(2));
        assert_eq!(consume.next(&holdings), send(3));
        assert_eq!(consume.next(&holdings), Step::Wait);
        consume.stored(Id(9), NodeId(3));
        assert_eq!(consume.next(&holdings), report(&[1, 2]));
    }

    #[test]
    fn what_enough_stores_have_is_only_reported() {
        let mut consume = consume(&[1, 2, 3], &[2, 3]);
        let holdings = Holdings::new([(Id(5), set(&[2, 9]))]);
        consume.next(&holdings);
        answer(&mut consume, 2, &[1]);
        answer(&mut consume, 3, &[1]);
        // 1 is on two others; 2 is only here; 3 is nowhere.
        let Step::Build(files) = consume.next(&holdings) else {
            panic!("one is lacking");
        };
        assert_eq!(files.len(), 1);
        consume.not_built();
        let send = Step::Send {
            segment: Id(5),
            to: vec![NodeId(2)],
        };
        assert_eq!(consume.next(&holdings), send);
        consume.stored(Id(5), NodeId(2));
        assert_eq!(consume.next(&holdings), report(&[1, 2]));
    }

    #[test]
    fn what_is_not_conserved_is_thrown_away() {
        let mut consume = consume(&[1, 2], &[]);
        let holdings = Holdings::default();
        assert!(matches!(consume.next(&holdings), Step::Build(_)));
        let other = Content {
            rows: 2,
            ..content(2)
        };
        let wrong = consume.built(Id(9), &[content(1), other]);
        assert_eq!(
            wrong,
            Err(NotConserved {
                sources: vec![source(2)]
            })
        );
        assert_eq!(consume.next(&holdings), report(&[]));
        assert!(consume.built(Id(9), &[content(1)]).is_err(), "too late");
    }

    #[test]
    fn files_may_have_gone_meanwhile() {
        let mut consume = consume(&[1, 2], &[2]);
        let holdings = Holdings::default();
        consume.next(&holdings);
        answer(&mut consume, 2, &[]);
        consume.next(&holdings);
        assert_eq!(consume.built(Id(9), &[content(2)]), Ok(()));
        assert!(matches!(consume.next(&holdings), Step::Send { .. }));
        consume.stored(Id(9), NodeId(2));
        assert_eq!(consume.next(&holdings), report(&[2]));
    }

    #[test]
    fn without_partners_nothing_is_reported() {
        let mut consume = consume(&[1], &[]);
        let holdings = Holdings::default();
        consume.next(&holdings);
        assert_eq!(consume.built(Id(9), &[content(1)]), Ok(()));
        assert_eq!(consume.next(&holdings), report(&[]));
    }
}
