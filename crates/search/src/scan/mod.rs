//! Searching segments column by column.
//!
//! ```text
//! row groups in range ─▶ blocks by time and token index ─▶ rows by filter ─▶ keys, counts, records
//! ```
//!
//! Invariants:
//! - A row is selected exactly if [`crate::Matcher::matches`] accepts its record, its time is in
//!   the range and its source is not excluded; pruning only skips what cannot be selected.
//! - A damaged page costs its block: the block is skipped and named in [`GroupScan::damages`].
//! - Memory is bounded by the decoded columns of one row group.

mod block;
mod by_column;
mod by_computed;
mod codes;
mod columns;
mod crossing;
mod evaluate;
mod excluded;
mod group;
mod kept_columns;
mod labels;
mod members;
mod no_objects;
mod packed;
mod patterns;
mod segment;
mod streams;
mod tables;
mod templates;
mod text;
mod values;
#[cfg(test)]
mod tests;

pub use evaluate::{Evaluator, Extent};
pub use group::{BlockSpan, GroupScan, Key, SelectedRows, block_bytes_max};
pub use kept_columns::ColumnCache;
pub(crate) use labels::{EmptyTexts, GroupLabels, LabelledRows};
pub use segment::SegmentScan;
