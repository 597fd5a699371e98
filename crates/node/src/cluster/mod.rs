//! This node among others: who is there, what each holds, and the calls between nodes.
//!
//! ```text
//!           chitchat ─▶ seen ─┐
//! registry file ─────────────┼─▶ Member ─▶ query (as its Nodes)
//! live set, journal ─▶ held ─┘     ▲
//!      other nodes ─▶ server ──────┘ ─▶ client ─▶ other nodes
//! ```
//!
//! Invariants:
//! - A node's name is in its data directory, the name of its process is random: a node that came
//!   back is known for itself, and not taken for what it was.
//! - What the registry says is on disk before anybody else is told that it is.
//! - Who is thought to be alive decides how long is waited for it, and nothing else.
//! - Calls have bounded times and bounded answers; they are made from threads that may block.

mod calls;
pub(crate) mod canary;
mod client;
mod clocks;
mod gossip;
mod held;
mod join;
mod leave;
mod identity;
mod member;
mod past;
pub(crate) mod registry_file;
mod saved_queries;
pub(crate) mod messages;
mod status;
mod transport;

pub use canary::Canary;
pub use client::PeerError;
pub use gossip::{Gossip, GossipEntry};
pub use held::NodeFiles;
pub use identity::{Identity, IdentityError};
pub use leave::ForgetError;
pub use member::{Member, Parts};
pub use registry_file::{RegistryError, RegistryFile};
pub use status::{LeavingStatus, NodeStatus, ServiceTimes};
pub use transport::{HttpTransport, Mail, mail};
