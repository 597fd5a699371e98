//! A node of a cluster: gossip, the exchange with other nodes, copies, and administration.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "tests cast numbers that they know"
    )
)]

pub mod cluster;
pub mod handoff;
pub mod operate;
pub mod server;
