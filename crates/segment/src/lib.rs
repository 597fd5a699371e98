//! The files on disk: journal and segments.
//!
//! No sockets, no clock, no async, no direct file access: all IO goes through [`disk::Disk`].

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

pub mod disk;
pub mod disk_suite;
pub mod journal;
pub mod mem_disk;
pub mod compact;
pub mod retain;
pub mod sources;
pub mod batches;
pub mod wire;
pub mod tally;
pub mod encoding;
pub mod fixed_map;
pub mod rows;
pub mod overview;
pub mod timeline;
pub mod patterns;
pub mod file;
pub mod build;
pub mod inventory;
pub mod verify;
pub mod tokens;
