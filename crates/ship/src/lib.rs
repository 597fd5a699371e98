//! The commands that send records to a server: forward, import, load.

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

pub mod input;
pub mod forward;
pub mod import;
pub mod pull;
pub mod load;
#[cfg(test)]
mod scripted;
