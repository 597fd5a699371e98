//! What an answer reads from: this node's files, or those of all nodes.
//!
//! An answer is made from these five readings in the same way whatever is read; what differs is
//! behind [`Reads`].

use logpond_record::{TimeRange, Timestamp};

use super::aggregates::Table;
use super::journal_rows::Row;
use super::output::Output;
use super::{QueryError, Scope, Search, Trailer};

/// Takes the next row of a search; says whether further ones are wanted.
pub(super) type Visit<'a> =
    &'a mut dyn FnMut(Row, &mut Output, &mut Trailer) -> Result<bool, QueryError>;

/// Something that answers can be read from, as it is at one moment.
pub(super) trait Reads {
    /// Hands over the rows of a search in order, until `visit` wants no more.
    fn each_row(
        &self,
        search: &Search,
        out: &mut Output,
        trailer: &mut Trailer,
        visit: Visit<'_>,
    ) -> Result<(), QueryError>;

    /// Where the context of these matches lies; `None` is everywhere. Names nothing that
    /// [`Reads::each_row`] names, too.
    fn surroundings(
        &self,
        search: &Search,
        matches: &[Timestamp],
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<Option<Vec<TimeRange>>, QueryError>;

    /// Counts the rows of a search.
    fn count(
        &self,
        search: &Search,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<u64, QueryError>;

    /// Adds every record of a scope to a table that begins as `empty`, and counts them in the
    /// trailer.
    fn table<T: Table>(
        &self,
        scope: &Scope,
        empty: &T,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<T, QueryError>;
}
