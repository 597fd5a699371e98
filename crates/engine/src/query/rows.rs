//! The rows of an answer, with their context, up to the limit.
//!
//! Context belongs to each match that is shown, whatever keeps other matches out: the limit, the place where a
//! page begins, the range. So it is looked for beyond these, too, and other matches are part of it.

use logpond_record::{Id, Timestamp};
use logpond_search::context::{CONTEXT_BYTES_MAX, Context, Shown};
use logpond_search::order::{Direction, Key};

use super::journal_rows::Row;
use super::neighbours::{Neighbours, Start};
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
    if search.has_context() {
        return emit_around(reads, search, &mut emitter, out, trailer);
    }
    reads.each_row(search, out, trailer, &mut |row, out, trailer| {
        emitter.push(row, out, trailer)
    })
}

/// Emits matches with rows around them. Matches are found first, as without context; their surroundings
/// are read then.
fn emit_around(
    reads: &impl Reads,
    search: &Search,
    emitter: &mut Emitter,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    let mut seen = Trailer::default();
    let mut matches: Vec<Key> = Vec::new();
    // One more tells whether there are more.
    let limit = search.limit.unwrap_or(u64::MAX);
    let wanted = limit.saturating_add(1).min(MATCHES_MAX as u64) as usize;
    let mut alone = search.without_context();
    alone.limit = Some(wanted as u64);
    reads.each_row(&alone, out, &mut seen, &mut |(key, ..), _, _| {
        matches.push(key);
        Ok(matches.len() < wanted)
    })?;
    if limit < MATCHES_MAX as u64 {
        emitter.has_more = Some(matches.len() as u64 > limit);
        matches.truncate(limit as usize);
    }
    if let Some(first) = matches.first().copied() {
        // A follower that comes back was shown the rows ahead.
        if !comes_back(search) {
            emitter.show_ahead(reads, search, first, out, &mut seen, trailer)?;
        }
        emit_from(
            reads,
            search,
            (first, &matches[..]),
            emitter,
            out,
            &mut seen,
            trailer,
        )?;
        emitter.show_behind(reads, search, out, &mut seen)?;
    }
    emitter.finish(trailer);
    trailer.bytes_scanned += seen.bytes_scanned;
    trailer.miss_too(seen);
    Ok(())
}

/// Emits the first match and what is behind it in the range.
fn emit_from(
    reads: &impl Reads,
    search: &Search,
    (first, matches): (Key, &[Key]),
    emitter: &mut Emitter,
    out: &mut Output,
    seen: &mut Trailer,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    let times: Vec<Timestamp> = matches.iter().map(|key| key.time).collect();
    let within = reads.surroundings(search, &times, out, seen)?;
    if within.as_ref().is_some_and(Vec::is_empty) {
        return Ok(());
    }
    let mut from_first = search.narrowed(within.unwrap_or_default());
    if !comes_back(search) {
        from_first.behind = Some(before(first, search.direction));
    }
    reads.each_row(&from_first, out, trailer, &mut |row, out, trailer| {
        emitter.push(row, out, trailer)
    })
}

/// True if a follower goes on: rows that it was shown are left out by the time of their arrival, not by their
/// place in the order.
fn comes_back(search: &Search) -> bool {
    (search.is_followed && search.behind.is_some()) || !search.shown.is_empty()
}

/// The place right before a row in this direction.
fn before(key: Key, direction: Direction) -> Key {
    let Key { time, id } = key;
    let id = match direction {
        Direction::Forward => id.0.checked_sub(1),
        Direction::Backward => id.0.checked_add(1),
    };
    match (id, direction) {
        (Some(id), _) => Key { time, id: Id(id) },
        (None, Direction::Forward) => Key {
            time: time.saturating_add(-1),
            id: Id::MAX,
        },
        (None, Direction::Backward) => Key {
            time: time.saturating_add(1),
            id: Id::MIN,
        },
    }
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
    /// True if there are more matches than may leave; `None` if that is not known yet.
    has_more: Option<bool>,
    /// Rows of context ahead of a match; behind each, and behind the last one still to come.
    rows_ahead: usize,
    rows_behind: usize,
    rows_behind_left: usize,
}

impl Emitter {
    fn new(search: &Search) -> Emitter {
        let (rows_ahead, rows_behind) = match search.direction {
            Direction::Forward => (search.rows_before, search.rows_after),
            Direction::Backward => (search.rows_after, search.rows_before),
        };
        let context = (search.has_context())
            .then(|| Context::<Box<[u8]>>::measured(rows_ahead, rows_behind, |row| row.len()));
        Emitter {
            context,
            limit: search.limit.unwrap_or(u64::MAX),
            has_more: None,
            rows_ahead,
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
        // One beyond the limit is context as any other row.
        let counts = is_match && self.limit > 0;
        if !counts && self.limit == 0 && self.rows_behind_left == 0 {
            // Whether a further match follows is not worth reading on for.
            trailer.has_more = self.has_more.unwrap_or(true);
            return Ok(false);
        }
        if counts {
            self.limit -= 1;
            trailer.rows += 1;
            trailer.cursor = Some(key);
            self.rows_behind_left = self.rows_behind;
        } else {
            self.rows_behind_left = self.rows_behind_left.saturating_sub(1);
        }
        self.show(row, counts, out)?;
        Ok(true)
    }

    fn show(&mut self, row: Box<[u8]>, is_match: bool, out: &mut Output) -> Result<(), QueryError> {
        let Some(context) = &mut self.context else {
            return Ok(out.line(|chunk| chunk.extend_from_slice(&row))?);
        };
        let mut sent = Ok(());
        context.push(row, is_match, |shown| {
            sent = sent.and_then(|()| match &shown {
                Shown::Separator => out.aside(&serde_json::json!({ "_gap": true })),
                Shown::Match(row) | Shown::Context(row) => {
                    out.line(|chunk| chunk.extend_from_slice(row))
                }
            });
        });
        Ok(sent?)
    }

    /// Shows the rows ahead of the first match.
    fn show_ahead(
        &mut self,
        reads: &impl Reads,
        search: &Search,
        first: Key,
        out: &mut Output,
        seen: &mut Trailer,
        trailer: &mut Trailer,
    ) -> Result<(), QueryError> {
        let neighbours = Neighbours {
            search,
            direction: search.direction.reversed(),
            start: Start::Behind(first),
            rows_max: self.rows_ahead,
        };
        let (mut rows, mut bytes) = (Vec::new(), 0);
        neighbours.each(reads, out, seen, &mut |row, _| {
            bytes += row.len();
            let has_room = bytes <= CONTEXT_BYTES_MAX;
            if has_room {
                rows.push(row);
            } else {
                miss_long(trailer);
            }
            Ok(has_room)
        })?;
        for row in rows.into_iter().rev() {
            self.show(row, false, out)?;
        }
        Ok(())
    }

    /// Shows the rows behind the last match that are beyond the range.
    fn show_behind(
        &mut self,
        reads: &impl Reads,
        search: &Search,
        out: &mut Output,
        seen: &mut Trailer,
    ) -> Result<(), QueryError> {
        let neighbours = Neighbours {
            search,
            direction: search.direction,
            start: Start::BehindRange,
            rows_max: self.rows_behind_left,
        };
        neighbours.each(reads, out, seen, &mut |row, out| {
            self.show(row, false, out)?;
            Ok(true)
        })
    }

    /// Says of the whole answer what is known.
    fn finish(&self, trailer: &mut Trailer) {
        if let Some(has_more) = self.has_more {
            trailer.has_more = has_more;
        }
        if self.context.as_ref().is_some_and(Context::has_cut) {
            miss_long(trailer);
        }
    }
}

/// Says that not all rows before a match are there.
fn miss_long(trailer: &mut Trailer) {
    let bytes = CONTEXT_BYTES_MAX >> 20;
    trailer.miss(format_args!(
        "rows of context beyond {bytes} MiB before a match: ask for fewer"
    ));
}
