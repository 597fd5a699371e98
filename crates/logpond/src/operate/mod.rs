//! What operators ask of a cluster and tell it: any node answers for all.
//!
//! ```text
//! http: /api/v1/cluster… ─▶ Operator ─▶ Member, Handoff (this node)
//!                               └─────▶ the other nodes, side by side
//! ```
//!
//! Everything here blocks, for a bounded time.

pub mod canary;
mod status;

use std::fmt;
use std::sync::Arc;

use logpond_cluster::NodeId;

use crate::cluster::{ForgetError, Member};
use crate::handoff::Handoff;
pub use status::{ClusterStatus, NodeReport, State};

/// Speaks for a cluster to its operators.
pub struct Operator {
    member: Arc<Member>,
    handoff: Arc<Handoff>,
}

/// Why something was not done.
#[derive(Debug)]
pub enum OperateError {
    /// No node is called so; what they are called.
    NoSuchNode(String),
    /// Several are.
    Ambiguous(String),
    /// The node does not answer.
    NoAnswer(String),
    /// It may not be given up.
    Forget(ForgetError),
    /// The disk fails.
    Disk(std::io::Error),
}

impl fmt::Display for OperateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperateError::NoSuchNode(names) => {
                write!(f, "no node is called so; there are {names}")
            }
            OperateError::Ambiguous(names) => write!(f, "several nodes are called so: {names}"),
            OperateError::NoAnswer(why) => write!(
                f,
                "the node does not answer ({why}); one that is gone for good is given up by \
                 `logpond cluster forget`"
            ),
            OperateError::Forget(error) => error.fmt(f),
            OperateError::Disk(error) => {
                write!(f, "that the node is leaving cannot be written: {error}")
            }
        }
    }
}

impl std::error::Error for OperateError {}

impl Operator {
    /// An operator's end of this node.
    pub fn new(member: Arc<Member>, handoff: Arc<Handoff>) -> Operator {
        Operator { member, handoff }
    }

    /// Has a node leave the cluster, or stay after all; none named is this one. Gives its name.
    ///
    /// # Errors
    /// See [`OperateError`].
    pub fn drain(&self, node: Option<&str>, leaves: bool) -> Result<NodeId, OperateError> {
        let own = self.member.identity().node;
        let node = node.map_or(Ok(own), |name| self.find(name, false))?;
        if node == own {
            let set = self.handoff.set_leaving(leaves);
            return set.map(|()| node).map_err(OperateError::Disk);
        }
        let told = self.member.tell_to_leave(node, leaves);
        told.map(|()| node)
            .map_err(|error| OperateError::NoAnswer(error.to_string()))
    }

    /// Gives up a node that is gone for good, or was given up already: who has not heard the answer
    /// may ask again. Gives its name.
    ///
    /// # Errors
    /// See [`OperateError`].
    pub fn forget(&self, node: &str) -> Result<NodeId, OperateError> {
        let node = self.find(node, true)?;
        self.member.forget(node).map_err(OperateError::Forget)?;
        self.handoff.look_now();
        Ok(node)
    }

    /// The node of this name: its address, or as much of its id as tells it from the others. One
    /// that is not forgotten wins over those that are.
    fn find(&self, name: &str, with_forgotten: bool) -> Result<NodeId, OperateError> {
        match self.find_among(name, false) {
            Err(OperateError::NoSuchNode(names)) if with_forgotten => self
                .find_among(name, true)
                .map_err(|_| OperateError::NoSuchNode(names)),
            found => found,
        }
    }

    fn find_among(&self, name: &str, is_forgotten: bool) -> Result<NodeId, OperateError> {
        let nodes: Vec<(NodeId, String)> = self
            .member
            .registry()
            .nodes()
            .filter(|(_, known)| known.is_forgotten() == is_forgotten)
            .map(|(node, known)| (node, known.address.clone()))
            .collect();
        let is_called = |(node, address): &&(NodeId, String)| {
            address == name
                || address
                    .rsplit_once(':')
                    .is_some_and(|(host, _)| host == name)
                || (!name.is_empty() && node.to_string().starts_with(name))
        };
        let found: Vec<_> = nodes.iter().filter(is_called).collect();
        let names = |nodes: &mut dyn Iterator<Item = &(NodeId, String)>| {
            let names = nodes.map(|(node, address)| format!("{address} ({node})"));
            names.collect::<Vec<_>>().join(", ")
        };
        match found[..] {
            [(node, _)] => Ok(*node),
            [] => Err(OperateError::NoSuchNode(names(&mut nodes.iter()))),
            _ => Err(OperateError::Ambiguous(names(&mut found.into_iter()))),
        }
    }
}
