//! The listeners that are not HTTP, TLS of all listeners, and tokens.

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

pub mod tokens;
pub mod net;
