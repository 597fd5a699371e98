//! Queries of LogQL by text or by name, and their answers as rows and as points: what the interfaces
//! share that are not Loki's.
//!
//! ```text
//! text or name ─▶ resolve (saved queries, variables, filters) ─▶ run ─▶ found ─▶ rows, points
//! ```
//!
//! Invariants: variables stay values, filters hold for every selector of a query; an answer that lacks
//! something says so in its warnings, or is refused if only a complete one was wanted.

pub(super) mod filters;
pub(super) mod found;
pub(super) mod resolve;
pub(super) mod run;
pub(super) mod table;
mod zeros;
