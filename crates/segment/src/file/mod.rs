//! Segment files: Parquet with our own index and checksums inside.
//!
//! ```text
//! PAR1 │ row group │ … │ tokens │ … │ words │ … │ overview │ timeline │ patterns │ directory │ page index, footer │ PAR1
//! ```
//!
//! Invariants:
//! - A row group is a slice of time: the rows of one come before those of the next. Within it
//!   rows are grouped by fields, then by time.
//! - A row group is cut into blocks of rows; every page of a column holds whole blocks.
//! - Our reader needs the directory only; other readers need the Parquet footer only.
//! - Every byte that our reader uses is checked: pages and index parts against the CRC32C in the
//!   directory, the directory against the CRC32C in the footer, the footer against its own.
//!
//! `docs/format/segment.md` is normative.

mod chunk;
mod directory;
mod footer;
mod index;
mod manifest;
mod page;
mod parts;
mod reader;
mod summary;

mod writer;

pub use directory::{BlockEntry, Directory, Place, RowGroupEntry, WordsEntry};
pub use manifest::{Manifest, Retry, SourceEntry};
pub use parts::Part;
pub use reader::{Damage, ReadError, RowGroupReader, SegmentFile};
pub(crate) use reader::{MAGIC, TAIL_BYTES_MAX, unproven};
pub use summary::Summary;

pub(crate) use writer::{FileSummary, Summaries};
pub use writer::{FinishedFile, Profile, ROW_GROUP_BYTES_MAX, ROW_GROUP_ROWS_MAX, SegmentWriter};

#[cfg(test)]
mod tests;
