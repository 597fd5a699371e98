//! Copies of one segment to so many other stores.
//!
//! Invariant: a copy counts once its receiver has said that it is synced, file and name. Who fails
//! is replaced by the next in rank; a copy that arrives all the same is a harmless extra. Nothing
//! is ever taken back.

use std::collections::{BTreeSet, VecDeque};

use logpond_record::Id;

use crate::NodeId;

/// Copies of one segment.
#[derive(Clone, Debug)]
pub struct Replication {
    segment: Id,
    wanted: usize,
    targets: VecDeque<NodeId>,
    sending: BTreeSet<NodeId>,
    stored: BTreeSet<NodeId>,
}

impl Replication {
    /// Copies to so many nodes; `stored` are those that have one, `targets` those that may be given
    /// one, the best first.
    pub fn new(
        segment: Id,
        wanted: usize,
        stored: impl IntoIterator<Item = NodeId>,
        targets: &[NodeId],
    ) -> Replication {
        let stored: BTreeSet<NodeId> = stored.into_iter().collect();
        let targets = targets.iter().filter(|node| !stored.contains(node));
        Replication {
            segment,
            wanted,
            targets: targets.copied().collect(),
            sending: BTreeSet::new(),
            stored,
        }
    }

    /// The segment.
    pub fn segment(&self) -> Id {
        self.segment
    }

    /// The nodes to send it to now; each is then to be given to [`Replication::stored`] or
    /// [`Replication::failed`].
    pub fn to_send(&mut self) -> Vec<NodeId> {
        let under_way = self.stored.len() + self.sending.len();
        let lacking = self.wanted.saturating_sub(under_way);
        let next: Vec<NodeId> = (0..lacking)
            .filter_map(|_| self.targets.pop_front())
            .collect();
        self.sending.extend(&next);
        next
    }

    /// Notes that a node has synced its copy.
    pub fn stored(&mut self, node: NodeId) {
        self.sending.remove(&node);
        self.stored.insert(node);
    }

    /// Notes that a node did not take its copy, or did not say so in time.
    pub fn failed(&mut self, node: NodeId) {
        self.sending.remove(&node);
    }

    /// Whether there are as many copies as are wanted.
    pub fn is_done(&self) -> bool {
        self.stored.len() >= self.wanted
    }

    /// Whether nothing is left to be tried.
    pub fn is_over(&self) -> bool {
        self.is_done() || (self.sending.is_empty() && self.targets.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_fails_is_replaced_by_the_next() {
        let nodes = [1, 2, 3, 4].map(NodeId);
        let mut copies = Replication::new(Id(1), 3, [NodeId(2)], &nodes);
        assert_eq!(copies.to_send(), [NodeId(1), NodeId(3)]);
        assert!(copies.to_send().is_empty());
        copies.failed(NodeId(1));
        assert_eq!(copies.to_send(), [NodeId(4)]);
        copies.stored(NodeId(4));
        assert!(!copies.is_over());
        copies.failed(NodeId(3));
        assert!(copies.to_send().is_empty());
        assert!(copies.is_over() && !copies.is_done());
        copies.stored(NodeId(3));
        assert!(copies.is_done(), "it came late and counts all the same");
    }

    #[test]
    fn one_copy_is_done_at_once() {
        let mut copies = Replication::new(Id(1), 0, [], &[NodeId(1)]);
        assert!(copies.to_send().is_empty() && copies.is_done());
    }
}
