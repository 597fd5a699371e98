//! The rows next to a place, whatever they are: the context of a match beyond the range, or before the page, of
//! its search.
//!
//! The nearest rows are rarely far away: at first the search's own range is read, then a day more, and only then
//! everything, which opens all segments.

use logpond_record::{TimeRange, Timestamp};
use logpond_search::order::{Direction, Key};

use super::output::Output;
use super::reads::Reads;
use super::request::{Scope, Search};
use super::{QueryError, Trailer};

/// How far is looked beyond the range before everything is looked at: most logs have some rows in a day.
const FIRST_REACH_NS: i64 = 24 * 3600 * 1_000_000_000;

/// The place where wanted rows begin.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// Behind this place.
    Behind(Key),
    /// Behind all of the search's range.
    BehindRange,
}

/// The next rows in a direction.
pub(super) struct Neighbours<'s> {
    /// Whose form they have.
    pub(super) search: &'s Search,
    pub(super) direction: Direction,
    pub(super) start: Start,
    /// So many at most.
    pub(super) rows_max: usize,
}

/// Takes a row; says whether it wants more.
pub(super) type Take<'t> = dyn FnMut(Box<[u8]>, &mut Output) -> Result<bool, QueryError> + 't;

impl Neighbours<'_> {
    /// Hands them over in order, until `take` wants no more.
    pub(super) fn each(
        &self,
        reads: &impl Reads,
        out: &mut Output,
        trailer: &mut Trailer,
        take: &mut Take<'_>,
    ) -> Result<(), QueryError> {
        let mut left = self.rows_max;
        let mut behind = match self.start {
            Start::Behind(key) => Some(key),
            Start::BehindRange => None,
        };
        let mut is_wanted = true;
        for range in self.ranges() {
            if left == 0 || !is_wanted {
                break;
            }
            let mut near = self.search.beside(self.scope(range)?);
            near.direction = self.direction;
            near.behind = behind;
            near.limit = Some(left as u64);
            reads.each_row(&near, out, trailer, &mut |(key, row, _), out, _| {
                behind = Some(key);
                left -= 1;
                is_wanted = take(row, out)?;
                Ok(is_wanted && left > 0)
            })?;
        }
        Ok(())
    }

    /// The records of a range that may be shown.
    fn scope(&self, range: TimeRange) -> Result<Scope, QueryError> {
        if self.search.scope.only().is_none() {
            return Ok(Scope::all(range));
        }
        let around = self.search.scope.around();
        let mut around = around.map_err(|error| QueryError::Impossible(error.message))?;
        around.range = range;
        Ok(around)
    }

    /// The ranges to look at, one after the other, each behind the one before.
    fn ranges(&self) -> Vec<TimeRange> {
        let own = self.search.scope.range;
        match self.direction {
            Direction::Forward => {
                let from = match self.start {
                    Start::Behind(key) => key.time,
                    Start::BehindRange => own.to,
                };
                let near = own.to.max(from);
                let ends = [near, near.saturating_add(FIRST_REACH_NS), Timestamp::MAX];
                chain(from, &ends, |from, to| TimeRange { from, to })
            }
            Direction::Backward => {
                let to = match self.start {
                    Start::Behind(key) => key.time.saturating_add(1),
                    Start::BehindRange => own.from,
                };
                let near = own.from.min(to);
                let ends = [near, near.saturating_add(-FIRST_REACH_NS), Timestamp::MIN];
                chain(to, &ends, |to, from| TimeRange { from, to })
            }
        }
    }
}

/// Ranges between one end and the next, without those that are empty.
fn chain(
    begin: Timestamp,
    ends: &[Timestamp],
    range: impl Fn(Timestamp, Timestamp) -> TimeRange,
) -> Vec<TimeRange> {
    let begins = std::iter::once(&begin).chain(ends);
    let pairs = begins.zip(ends).filter(|(begin, end)| begin != end);
    pairs.map(|(begin, end)| range(*begin, *end)).collect()
}
