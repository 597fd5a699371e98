//! The formats and protocols of other programs, as bytes and state machines.
//!
//! No sockets, files, clock, randomness or threads: bytes and the receive time go in, values come
//! out. Everything here may be fed by a stranger, so every loop and buffer has a named bound.

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

pub mod intake;
pub mod proxy;
