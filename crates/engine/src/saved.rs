//! Saved queries: LogQL by name, kept by the server for dashboards and people.
//!
//! Invariants:
//! - A query that is kept has a name, sizes and variables within bounds, and is LogQL with the
//!   defaults of its variables.
//! - Of two changes of a name the later one counts, on every node alike: times decide, and of equal
//!   times the text. Who changes something that it knows gives it a later time, whatever its clock
//!   says. A removal is a change, too, and is kept.
//! - What [`SavedQueries::set`] and the like returned for is on disk. The file is replaced in one
//!   step. Who edits it by hand makes changes of now.
//! - Reading what is kept never waits for a disk.

mod built_in;
mod catalog;
mod query;
mod queries;
mod text;
mod watch;
#[cfg(test)]
mod tests;

pub use built_in::built_in;
pub use catalog::{Catalog, Entry, QUERIES_MAX};
pub use queries::{CATALOG_BYTES_MAX, PATH, SavedQueries, TEXT_BYTES_MAX};
pub use query::{
    DESCRIPTION_BYTES_MAX, Format, LEGEND_BYTES_MAX, Language, NAME_BYTES_MAX, QUERY_BYTES_MAX,
    SavedError, SavedQuery, VARIABLES_MAX, VIEW_BYTES_MAX,
};
pub use watch::WatchedQueries;

pub use logpond_search::logql::variables::{UnknownPolicy, Value, VariableError, Window, expand};
