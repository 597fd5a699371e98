//! The rows of an answer, with their context, up to the limit.
//!
//! Context belongs to each match that is shown, whatever keeps other matches out: the limit, the place where a
//! page begins, the range. So it is looked for beyond these, too, and other matches are part of it.

use logpond_record::{Id, Timestamp, cast};
use logpond_search::context::{CONTEXT_BYTES_MAX, Context, ContextItem};
use logpond_search::order::{Direction, Key};

use super::journal_rows::Row;
use super::neighbours::{Neighbours, Start};
use super::output::Output;
use super::reads::Reads;
use super::surroundings::MATCHES_MAX;
use super::{QueryError, Search, Trailer};

/// Rows in a row that a search with context reads and does not show before it goes on right at the next match.
/// Times alone do not tell how far that is: very many rows may be of one instant.
const UNSHOWN_ROWS_MAX: usize = 1 << 16;

/// How many times it does that: each time takes about as long as reading so many rows.
const JUMPS_MAX: usize = 64;

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
    let wanted = cast::to_usize(limit.saturating_add(1).min(MATCHES_MAX as u64));
    let mut alone = search.without_context();
    alone.limit = Some(wanted as u64);
    reads.each_row(&alone, out, &mut seen, &mut |(key, ..), _, _| {
        matches.push(key);
        Ok(matches.len() < wanted)
    })?;
    if limit < MATCHES_MAX as u64 {
        emitter.has_more = Some(matches.len() as u64 > limit);
        matches.truncate(cast::to_usize(limit));
    } else if matches.len() < wanted {
        emitter.has_more = Some(false);
    }
    if emitter.has_more.is_some() && !reads_to_the_end(search) {
        emitter.limit = matches.len() as u64;
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
    let mut jumps_left = if reads_to_the_end(search) {
        0
    } else {
        JUMPS_MAX
    };
    let mut shown = 0;
    loop {
        let mut is_jump = false;
        reads.each_row(&from_first, out, trailer, &mut |row, out, trailer| {
            let may_jump = jumps_left > 0 && !row.2 && shown < matches.len();
            is_jump = may_jump && emitter.has_passed_many();
            shown += usize::from(row.2);
            Ok(!is_jump && emitter.push(row, out, trailer)?)
        })?;
        if !is_jump {
            return Ok(());
        }
        jumps_left -= 1;
        let next = matches[shown];
        emitter.pass_over();
        emitter.show_ahead(reads, search, next, out, seen, trailer)?;
        from_first.behind = Some(before(next, search.direction));
    }
}

/// True if no row may be passed over: a follower says how far it has read.
fn reads_to_the_end(search: &Search) -> bool {
    search.is_followed || search.wants_positions || comes_back(search)
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
    /// Rows that were not shown since the last one that was.
    unshown: usize,
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
            unshown: 0,
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
            self.unshown = 0;
        } else {
            self.unshown += usize::from(self.rows_behind_left == 0);
            self.rows_behind_left = self.rows_behind_left.saturating_sub(1);
        }
        self.show(row, counts, out)?;
        Ok(true)
    }

    /// True if so many rows were not shown that those ahead of the next match are surely others.
    fn has_passed_many(&self) -> bool {
        self.unshown >= UNSHOWN_ROWS_MAX.max(self.rows_ahead)
    }

    /// Goes on with rows further away.
    fn pass_over(&mut self) {
        self.unshown = 0;
        if let Some(context) = &mut self.context {
            context.pass_over();
        }
    }

    fn show(&mut self, row: Box<[u8]>, is_match: bool, out: &mut Output) -> Result<(), QueryError> {
        let Some(context) = &mut self.context else {
            return Ok(out.line(|chunk| chunk.extend_from_slice(&row))?);
        };
        let mut sent = Ok(());
        context.push(row, is_match, |shown| {
            sent = sent.and_then(|()| match &shown {
                ContextItem::Separator => out.aside(&serde_json::json!({ "_gap": true })),
                ContextItem::Match(row) | ContextItem::Context(row) => {
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use logpond_host::shutdown;
    use logpond_record::TimeRange;

    use super::super::aggregates::Table;
    use super::super::reads::Visit;
    use super::super::window::is_before;
    use super::super::{Scope, Search};
    use super::*;

    /// Rows of one instant, of which some match.
    struct OneInstant {
        rows: u128,
        matches: Vec<u128>,
        /// Rows that were handed over beside matches alone.
        read: Cell<usize>,
    }

    const AT: Timestamp = Timestamp(1_772_409_600_000_000_000);

    impl Reads for OneInstant {
        fn each_row(
            &self,
            search: &Search,
            out: &mut Output,
            trailer: &mut Trailer,
            visit: Visit<'_>,
        ) -> Result<(), QueryError> {
            let is_alone = !search.has_context() && !search.is_beside;
            let last = self.rows - 1;
            let place = |n: u128| match search.direction {
                Direction::Forward => n,
                Direction::Backward => last - n,
            };
            for n in (0..self.rows).map(place) {
                let key = Key {
                    time: AT,
                    id: Id(n),
                };
                let is_match = self.matches.contains(&n);
                let is_behind = |behind| is_before(search.direction, behind, key);
                if (is_alone && !is_match) || !search.behind.is_none_or(is_behind) {
                    continue;
                }
                if !search.looks_at(AT) {
                    break;
                }
                self.read.update(|read| read + usize::from(!is_alone));
                let text = format!("{n}{}", if is_match { "!" } else { "" });
                if !visit((key, text.into_bytes().into(), is_match), out, trailer)? {
                    break;
                }
            }
            Ok(())
        }

        fn surroundings(
            &self,
            search: &Search,
            _matches: &[Timestamp],
            _out: &mut Output,
            _trailer: &mut Trailer,
        ) -> Result<Option<Vec<TimeRange>>, QueryError> {
            Ok(Some(vec![search.scope.range]))
        }

        fn count(
            &self,
            _search: &Search,
            _out: &mut Output,
            _trailer: &mut Trailer,
        ) -> Result<u64, QueryError> {
            Ok(0)
        }

        fn table<T: Table>(
            &self,
            _scope: &Scope,
            empty: &T,
            _out: &mut Output,
            _trailer: &mut Trailer,
        ) -> Result<T, QueryError> {
            Ok(empty.clone())
        }
    }

    fn around(matches: &[u128], search: &Search) -> (String, usize, Trailer) {
        let reads = OneInstant {
            rows: 400_000,
            matches: matches.to_vec(),
            read: Cell::new(0),
        };
        let (_stopper, shutdown) = shutdown::pair();
        let (mut out, mut receiver) = Output::new(shutdown);
        let mut trailer = Trailer::default();
        emit(&reads, search, &mut out, &mut trailer).unwrap();
        out.flush().unwrap();
        drop(out);
        let mut text = Vec::new();
        while let Some(chunk) = receiver.blocking_recv() {
            text.extend_from_slice(&chunk);
        }
        let text = String::from_utf8(text).unwrap().replace('\n', " ");
        (text, reads.read.get(), trailer)
    }

    fn search(direction: Direction, limit: Option<u64>) -> Search {
        let mut search = Search::new(Scope::new("x", TimeRange::ALL).unwrap());
        (search.rows_before, search.rows_after) = (2, 1);
        (search.direction, search.limit) = (direction, limit);
        search
    }

    #[test]
    fn rows_of_one_instant_that_are_far_from_a_match_are_not_read() {
        let forward = search(Direction::Forward, None);
        let (shown, read, trailer) = around(&[200_000], &forward);
        assert_eq!(shown, "199998 199999 200000! 200001 ");
        assert!(read < 10, "{read}");
        assert_eq!((trailer.rows, trailer.has_more), (1, false));
        let backward = search(Direction::Backward, Some(5));
        let (shown, read, _) = around(&[200_000], &backward);
        assert_eq!(shown, "200001 200000! 199999 199998 ");
        assert!(read < 10, "{read}");
        // From one to the next, and on from there.
        let far = [100_000, 100_003, 350_000, 350_001];
        let (shown, read, trailer) = around(&far, &forward);
        let first = "99998 99999 100000! 100001 100002 100003! 100004";
        let second = "349998 349999 350000! 350001! 350002";
        assert_eq!(shown, format!("{first} {{\"_gap\":true}} {second} "));
        assert!(read < UNSHOWN_ROWS_MAX + 30, "{read}");
        assert_eq!((trailer.rows, trailer.has_more), (4, false));
        let (shown, _, trailer) = around(&far, &search(Direction::Forward, Some(3)));
        assert_eq!(
            shown,
            format!("{first} {{\"_gap\":true}} 349998 349999 350000! 350001! ")
        );
        assert_eq!((trailer.rows, trailer.has_more), (3, true));
    }

    #[test]
    fn a_follower_reads_to_the_end() {
        let mut followed = search(Direction::Forward, None);
        followed.wants_positions = true;
        let (shown, read, _) = around(&[200_000], &followed);
        assert_eq!(shown, "199998 199999 200000! 200001 ");
        assert!(read >= 200_000, "{read}");
    }
}
