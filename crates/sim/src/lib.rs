//! Seeded simulation of a pond on a disk that fails, with the product's own crates.
//!
//! Invariants: a run follows from its seed alone: no clock, no threads, no order of hash maps; a
//! ledger outside of the pond knows every row that was handed over and every one that was
//! acknowledged, and judges what is found after each crash.
//!
//! ```text
//! workload ──▶ journal::Writer ──▶ MemDisk ──crash──▶ journal::recover ──▶ rows found
//!     │             build, compact ◀──▶ ┘ └──────────▶ build::open_all, settle ──┤
//!     └──────────── ledger: handed over, acknowledged, closed ◀── check ─────────┘
//! ```

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a tool casts numbers that it draws"
)]

pub mod cluster;
pub mod ledger;
pub mod pond;
pub mod report;
pub mod segments;
