//! Queries for numbers.
//!
//! ```text
//! query ─▶ leaves (range aggregations) ─▶ tables, filled by many threads and nodes ─▶ merged
//!       ─▶ for each instant: windows of the tables ─▶ vectors ─▶ operators ─▶ series
//! ```
//!
//! Invariants:
//! - A window is `(t - range, t]`, moved by the offset.
//! - Tables merge to the same numbers in whatever order and parts they were filled; sums are kept with
//!   twice the digits so that rounding does not tell orders apart.
//! - A table is bounded by [`TABLE_BYTES_MAX`]; a query that needs more is told so. There is no bound
//!   on the number of series.

mod aggregate;
mod binary;
mod block;
mod cells;
mod coded;
mod evaluate;
mod kept;
mod leaf;
mod records;
mod rows;
mod series;
mod series_map;
mod stages;
mod sum;
mod table;
#[cfg(test)]
mod tests;
mod windows;

pub use evaluate::{Answer, EvaluationError, Plan, Sample, Series};
pub use kept::KeptNumbers;
pub use leaf::{Leaf, LeafSpec};
pub use series::SeriesLabels;
pub use sum::Sum;
pub use table::{RangeTable, TABLE_BYTES_MAX};
pub use windows::{STEPS_MAX, Times, WindowError};
