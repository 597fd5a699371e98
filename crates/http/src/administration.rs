//! The administration of a cluster, which the crate of the nodes implements.

use std::fmt;

use logpond_cluster::NodeId;
use serde_json::Value;

/// A cluster, as its operators ask and change it. Everything blocks, for a bounded time.
pub trait Administration: Send + Sync {
    /// The state of all nodes, in the form that `docs/http.md` shows.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    fn status(&self) -> Result<Value, serde_json::Error>;

    /// Has a node leave the cluster, or stay after all; without a name it is this one. Gives its name.
    ///
    /// # Errors
    /// See [`OperateError`].
    fn drain(&self, node: Option<&str>, leaves: bool) -> Result<NodeId, OperateError>;

    /// Gives up a node that is gone for good. Gives its name.
    ///
    /// # Errors
    /// See [`OperateError`].
    fn forget(&self, node: &str) -> Result<NodeId, OperateError>;
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
    Forget(String),
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
            OperateError::Forget(why) => f.write_str(why),
            OperateError::Disk(error) => {
                write!(f, "that the node is leaving cannot be written: {error}")
            }
        }
    }
}

impl std::error::Error for OperateError {}
