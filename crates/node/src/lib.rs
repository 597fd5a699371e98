//! A node of a cluster: gossip, the exchange with other nodes, copies, and administration.

pub mod cluster;
pub mod handoff;
pub mod operate;
pub mod server;
