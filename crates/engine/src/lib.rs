//! The engine: a pond without sockets. It takes batches in, stores, merges and retires them, answers
//! queries, evaluates alert rules and makes backups.
//!
//! ```text
//! batches ─▶ ingest ─▶ journal ─▶ store ─▶ segments ◀─ query ◀─ alert, saved
//!                                              backup ┘
//! ```
//!
//! Invariants: no socket is opened but those of the bucket, of Kafka and of receivers of alerts; a test opens
//! the engine, feeds it and asks it without a process.

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

pub mod geoip;
pub mod resends;
pub mod step_mark;
pub mod ingest;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod store;
pub mod query;
pub mod audit;
pub mod saved;
pub mod alert;
pub mod backup;
