//! The query languages, the matcher, the aggregates and the scanner of segments.
//!
//! From the text of a query to the rows and numbers of an answer:
//!
//! ```text
//! text ─▶ query (parse) ─▶ Filter ─▶ matcher      record by record
//! text ─▶ logql (parse) ──▶ Filter, pipeline      line by line
//!                     └──▶ metric (tables, series)
//!                             ├────▶ literal      tokens for the index
//!                             └────▶ prefilter    bytes of raw entries
//! rows ─▶ order (merge, first N) ─▶ context ─▶ output
//!     ├─▶ aggregate (count, top, histogram, fields, patterns) ─▶ merge ─▶ finish
//!     └─▶ columns, for engines of others
//! ```
//!
//! No IO, no clock, no threads: what needs the time or a zone is given it.

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

pub mod query;
pub mod label;
pub mod logql;
pub mod pipeline;
pub mod template;
pub mod metric;
pub mod alert;
mod lru;
mod nearest;
pub mod hints;
mod number;
mod pattern;
mod replacement;
mod field;
mod matcher;
mod grams;
mod prefilter;
mod literal;
pub mod when;
pub mod size;
pub mod aggregate;
pub mod columns;
pub mod order;
pub mod context;
pub mod elements;
pub mod journal;
pub mod logsql;
pub mod scan;

pub use field::{FieldError, FieldMatcher, Target};
pub use literal::{TokenPart, TokenQuery, token_query};
pub use lru::{Lru, Room, allocated};
pub use matcher::{Matcher, Scratch};
pub use nearest::nearest;
pub use number::{EXACT_END, Number};
pub use pattern::{Finder, RegexError};
pub use prefilter::{RawGrams, RawPrefilter};
pub use query::{Filter, SyntaxError};
pub use replacement::{Replacement, ReplacementError};

#[cfg(test)]
mod tests;
