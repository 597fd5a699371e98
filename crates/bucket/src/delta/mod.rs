//! The bucket as a table that other engines read: a log in Delta Lake's format, written from the
//! heads of the chains.
//!
//! ```text
//! _delta_log/…0017.json                  + C  − A  − B     one object, all of it or nothing
//!            …0018.json                  + D
//!            …0100.checkpoint.parquet    what all up to here comes to
//!            _last_checkpoint            where a reader may begin
//! ```
//!
//! A version of the table is made as a link is: by an object that is written if its name is free. Whoever
//! loses reads what the winner has written and decides again.
//!
//! Invariants:
//! - Each version lists, of each day, what one head of its chain lists: so no row twice.
//! - A day never goes back: each version says of which head it is, and a writer with an older one
//!   leaves the day alone.
//! - A version says which one it follows, so that an object that was written in vain, under a name that had
//!   become free, is never taken for a part of the log.
//!
//! All but [`publish`] is without side effects.

mod actions;
mod checkpoint;
mod columns;
mod names;
mod publish;
mod schema;
mod stats;
mod table;
#[cfg(test)]
mod tests;

pub use columns::Columns;
pub use names::LOG;
pub use publish::{ColumnsOf, OpenTable, PublishReport, SkippedDay};
