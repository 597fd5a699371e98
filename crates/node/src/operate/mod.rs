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

use std::sync::Arc;

use logpond_cluster::NodeId;
use serde_json::Value;

use crate::cluster::Member;
use crate::handoff::Handoff;
use logpond_http::{Administration, OperateError};
pub use status::{ClusterStatus, NodeReport, State};

/// Speaks for a cluster to its operators.
pub struct Operator {
    member: Arc<Member>,
    handoff: Arc<Handoff>,
}

impl Operator {
    /// An operator's end of this node.
    pub fn new(member: Arc<Member>, handoff: Arc<Handoff>) -> Operator {
        Operator { member, handoff }
    }
}

impl Administration for Operator {
    fn status(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self.cluster_status())
    }

    fn drain(&self, node: Option<&str>, leaves: bool) -> Result<NodeId, OperateError> {
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

    // One that was given up already is given up again: who has not heard the answer may ask once more.
    fn forget(&self, node: &str) -> Result<NodeId, OperateError> {
        let node = self.find(node, true)?;
        let forgotten = self.member.forget(node);
        forgotten.map_err(|error| OperateError::Forget(error.to_string()))?;
        self.handoff.look_now();
        Ok(node)
    }
}

impl Operator {
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
