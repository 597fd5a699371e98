//! Statements over a source in memory, as one program: each program of tests has the query engine in it.
#![cfg(feature = "engine")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "tests cast numbers that they know"
)]

mod answers;
mod bounded;
mod durations;
mod engine;
mod formats;
mod mixed;
mod percentiles;
#[path = "../source/mod.rs"]
#[allow(dead_code, reason = "each program of tests uses a part")]
mod source;
