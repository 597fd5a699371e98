//! Saved queries on every node: each tells by gossip which it has, and who has others asks for them.
//!
//! There is no agreement and none is needed: catalogs become one in whatever order they are heard of. A
//! node that was away hears what has changed once it is back, and tells what it had.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use logpond_cluster::NodeId;

use super::Member;
use super::client::CallTarget;
use super::gossip::GossipEntry;
use logpond_host::clock;
use logpond_host::telemetry::warn;

/// What each node has told last, by its digest, and whether it was taken over. Then it is not asked for
/// again until it has changed: nodes of another release may have the same with another digest.
pub(super) type Told = BTreeMap<NodeId, (u64, bool)>;

impl Member {
    /// Says which saved queries this node has, and asks those for theirs that have others.
    pub(super) fn exchange_saved_queries(&self, seen: &BTreeMap<NodeId, GossipEntry>) {
        self.gossip.say_saved(self.saved.digest());
        for (node, seen) in seen {
            let is_own = *node == self.identity.node;
            // One that says nothing is of a release without any.
            let is_news = seen.saved != self.saved.digest() && seen.saved != 0;
            let last = self.saved_told().get(node).copied();
            if is_own || !seen.is_live || !is_news || last == Some((seen.saved, true)) {
                continue;
            }
            // What cannot be had now is asked for again in the next round.
            let Ok(told) = self
                .client
                .saved_queries(CallTarget::node(*node, seen.address))
            else {
                continue;
            };
            let taken = self.saved.learn(&told, clock::now());
            let now = (seen.saved, taken.is_ok());
            self.saved_told().insert(*node, now);
            // Said once, and tried again: a full disk or a bad file may be so no more.
            if let Err(error) = taken
                && last != Some(now)
            {
                warn(&format!(
                    "saved queries of node {} cannot be taken over: {error}",
                    seen.address
                ));
            }
        }
        self.gossip.say_saved(self.saved.digest());
    }

    fn saved_told(&self) -> MutexGuard<'_, Told> {
        self.saved_told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
