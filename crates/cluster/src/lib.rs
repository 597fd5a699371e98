//! How nodes that agree on nothing lose nothing and count right.
//!
//! Every rule of the cluster that decides something is here as a value or a state machine: it is
//! told what others said and what time it is, and says what to ask or do next. Sockets, files and
//! threads are the product's; the simulation drives the same machines.
//!
//! ```text
//! files of a node ─▶ Inventory ─┐                 ┌─▶ Share per node ─▶ receipts ─┐
//! births, seals   ─▶ Registry ──┼─▶ Target ─▶ Cover                               ├─▶ Completeness
//!                               └─────────────────┴───────────────────────────────┘
//! closed journal files ─▶ Offers ─▶ claims of stores ─▶ segments ─▶ Holdings ─▶ GiveUp ─▶ dropped
//! ```
//!
//! A *question* goes to all nodes and counts each source once. What a node holds changes in few
//! ways, each with its own check: *holdings* and *give_up*. What is only about who works when is
//! in *placement* and *offers*.
//!
//! What is safe never depends on who is thought to be alive, on clocks, or on the order in which
//! news arrives. Such things are hints: where they are wrong, work is done twice.

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

mod day;
mod identity;
mod roles;
pub mod registry;
pub mod inventory;
pub mod union;
pub mod target;
pub mod cover;
pub mod question;
pub mod births;
pub mod seeds;
pub mod twins;
pub mod chain;
pub mod holdings;
pub mod give_up;
pub mod hedge;
pub mod placement;
pub mod offers;
pub mod replicate;
pub mod consume;
pub mod repair;
pub mod trim;
pub mod drain;
pub mod plan;
pub mod expiry;

pub use cover::{Cover, SegmentShare, Share};
pub use day::Day;
pub use holdings::Holdings;
pub use identity::{HexError, NodeId, ProcessId};
pub use inventory::{
    BucketView, CurrentIncarnation, HeldJournal, HeldSegment, IndexedInventory, Inventory, Recent,
};
pub use logpond_segment::wire;
pub use registry::{Fate, Registry};
pub use roles::{Roles, UnknownRoles};
pub use target::{Completeness, Gap, Tail, Target};
pub use union::StoredUnion;
