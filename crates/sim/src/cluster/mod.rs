//! Seeded simulation of a cluster, with the state machines of `logpond_cluster` that the product
//! uses.
//!
//! Invariants: a run follows from its seed alone. What nodes decide is decided by the machines; what
//! is modelled here is only what carries their requests out: a network that delays, drops,
//! duplicates and reorders, disks that lose what was not synced, processes that stop, pause and
//! come back, clocks that jump, disks that are lost, full, damaged or come back as they were earlier,
//! and nodes that are replaced or leave. Every third cluster has a bucket behind it. A ledger outside
//! of the nodes knows every batch and every source, and judges each step and each answer.
//!
//! ```text
//! forwarders ─▶ ingesters: births, offers ─▶ stores: claims, holdings ─▶ repair, merges
//!      │                └─────────── questions to all nodes ◀──────────────┘
//!                                                 │ uploads, links ─▶ bucket ◀─ another cluster
//!      └─▶ ledger: acknowledged, contents of sources, dropped ◀── every step, every answer
//! ```
//!
//! A [`Mutation`] takes one rule away where the simulation carries it out. Then a run must fail, or
//! the ledger could not have seen it.

mod answer;
mod ask;
mod bucket;
mod disk;
mod drain;
mod fault;
mod foreign;
mod forward;
mod ingest;
mod ledger;
mod message;
mod offload;
mod process;
mod remote;
mod repair;
mod report;
mod store;
mod trim;
mod world;

pub use ledger::Violation;
pub use report::Report;
pub use world::{Mutation, run};
