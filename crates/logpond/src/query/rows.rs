//! The rows of an answer, with their context, up to the limit.

use logpond_search::context::{Context, Shown};
use logpond_search::order::Direction;

use super::journal_rows::Row;
use super::output::Output;
use super::reads::Reads;
use super::surroundings::MATCHES_MAX;
use super::{QueryError, Search, Trailer};

/// Emits the rows of a search.
pub(super) fn emit(
    reads: &impl Reads,
    search: &Search,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    let mut emitter = Emitter::new(search);
    let mut push =
        |row: Row, out: &mut Output, trailer: &mut Trailer| emitter.push(row, out, trailer);
    if !search.has_context() {
        return reads.each_row(search, out, trailer, &mut push);
    }
    let mut seen = Trailer::default();
    let mut matches = Vec::new();
    let wanted = search
        .limit
        .map_or(MATCHES_MAX, |limit| limit.min(MATCHES_MAX as u64) as usize);
    reads.each_row(
        &search.without_context(),
        out,
        &mut seen,
        &mut |(key, ..), _, _| {
            matches.push(key.time);
            Ok(matches.len() < wanted)
        },
    )?;
    let within = reads.surroundings(search, &matches, out, &mut seen)?;
    trailer.bytes_scanned += seen.bytes_scanned;
    match within {
        None => reads.each_row(search, out, trailer, &mut push)?,
        Some(within) if within.is_empty() => {}
        Some(within) => reads.each_row(&search.narrowed(within), out, trailer, &mut push)?,
    }
    trailer.miss_too(seen);
    Ok(())
}

/// Counts the rows of a search in the trailer, up to the limit.
pub(super) fn count(
    reads: &impl Reads,
    search: &Search,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    let rows = reads.count(search, out, trailer)?;
    let limit = search.limit.unwrap_or(u64::MAX);
    trailer.rows = rows.min(limit);
    trailer.has_more = rows > limit;
    Ok(())
}

/// Lets rows out, with their context, up to the limit.
struct Emitter {
    context: Option<Context<Box<[u8]>>>,
    /// Matches that may still leave.
    limit: u64,
    /// Rows of context behind each match, and behind the last one still to come.
    rows_behind: usize,
    rows_behind_left: usize,
}

impl Emitter {
    fn new(search: &Search) -> Emitter {
        let (ahead, rows_behind) = match search.direction {
            Direction::Forward => (search.rows_before, search.rows_after),
            Direction::Backward => (search.rows_after, search.rows_before),
        };
        let context = search
            .has_context()
            .then(|| Context::new(ahead, rows_behind));
        let limit = search.limit.unwrap_or(u64::MAX);
        Emitter {
            context,
            limit,
            rows_behind,
            rows_behind_left: 0,
        }
    }

    /// Takes the next row; says whether further ones are wanted.
    fn push(
        &mut self,
        (key, row, is_match): Row,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<bool, QueryError> {
        if self.limit == 0 && (is_match || self.rows_behind_left == 0) {
            // Whether a further match follows is not worth reading on for.
            trailer.has_more = true;
            return Ok(false);
        }
        if is_match {
            self.limit -= 1;
            trailer.rows += 1;
            trailer.cursor = Some(key);
            self.rows_behind_left = self.rows_behind;
        } else {
            self.rows_behind_left = self.rows_behind_left.saturating_sub(1);
        }
        let Some(context) = &mut self.context else {
            out.line(|chunk| chunk.extend_from_slice(&row))?;
            return Ok(true);
        };
        let mut sent = Ok(());
        context.push(row, is_match, |shown| {
            let line = match &shown {
                Shown::Separator => &b"{\"_gap\":true}"[..],
                Shown::Match(row) | Shown::Context(row) => row,
            };
            sent = sent.and_then(|()| out.line(|chunk| chunk.extend_from_slice(line)));
        });
        sent?;
        Ok(true)
    }
}
