//! Rules for alerts and recordings, as files of Prometheus and Loki have them.
//!
//! ```text
//! text ─▶ yaml ─▶ file ─▶ Group, Rule        what is wrong is named with its place
//! series of the query ─▶ RuleState::advance  inactive ─▶ pending ─▶ firing ─▶ resolved
//!                                     └────▶ RuleState::notices: what is to be told, and when again
//! ```
//!
//! Invariants:
//! - Nothing here knows the time: each evaluation says of which instant it is.
//! - An alert resolves only by a complete answer that it is not in: what nobody answered for is no
//!   news.
//! - A state that was written and read back goes on as if it never was: `for` is not begun again, and
//!   nobody is told anything twice or too late.

mod file;
mod rule;
mod schedule;
mod state;
#[cfg(test)]
mod tests;
mod wire;
mod yaml;

pub use file::{FILE_BYTES_MAX, RuleFileError, fuzz_alert_rules, parse};
pub use rule::{Action, Group, Rule, Words};
pub use schedule::{Schedule, owner};
pub use state::{
    ALERTS_MAX, Alert, EvaluationResult, Health, Notice, RESEND_NS, RuleState, Stage, recorded,
};
pub use wire::{GroupState, STATE_BYTES_MAX, decode, encode};
