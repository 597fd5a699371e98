//! How the nodes of the cluster are reached.

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use logpond_cluster::{IndexedInventory, NodeId, Registry};
use logpond_segment::batches::BatchSet;

/// A node gave no answer.
#[derive(Clone, Debug)]
pub struct Unreachable {
    /// Why, in words.
    pub why: String,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Unreachable {}

/// The nodes of a cluster, as one of them reaches them. Methods block, each for a bounded time.
pub trait Nodes: Send + Sync {
    /// This node.
    fn own(&self) -> NodeId;

    /// What this node holds now.
    fn own_inventory(&self) -> Arc<IndexedInventory>;

    /// Everything that was heard of nodes and incarnations.
    fn registry(&self) -> Arc<Registry>;

    /// What another node said last that it holds, if it has said anything to this process.
    fn last_inventory(&self, node: NodeId) -> Option<Arc<IndexedInventory>>;

    /// All other nodes that anybody has heard of and nobody has given up.
    fn others(&self) -> Vec<NodeId>;

    /// Addresses at which this node was told to find others, and at which it has met none yet.
    fn unmet(&self) -> Vec<String>;

    /// The addresses of each node that runs at several at once: only one of them is asked.
    fn twins(&self) -> Vec<String>;

    /// What another node says that it holds now.
    ///
    /// # Errors
    /// When it does not say so in time.
    fn inventory(&self, node: NodeId) -> Result<Arc<IndexedInventory>, Unreachable>;

    /// Asks another node; gives its answer from its first byte on. Reading from it fails when the
    /// node is silent for too long.
    ///
    /// # Errors
    /// When it does not begin to answer in time.
    fn ask(&self, node: NodeId, question: &[u8]) -> Result<Box<dyn Read + Send>, Unreachable>;

    /// The same for a question whose answer goes on for as long as anybody reads it.
    ///
    /// # Errors
    /// As for [`Nodes::ask`].
    fn follow(&self, node: NodeId, question: &[u8]) -> Result<Box<dyn Read + Send>, Unreachable>;

    /// Which of some batches a node, this one too, holds as they were first sent.
    ///
    /// # Errors
    /// When it does not answer in time.
    fn originals(&self, node: NodeId, wanted: &BatchSet) -> Result<BatchSet, Unreachable>;

    /// How many nodes beside its own know of each incarnation: so many may be silent without
    /// hiding one.
    fn silent_max(&self) -> usize;

    /// What people call a node.
    fn name(&self, node: NodeId) -> String;
}
