//! Answers over the whole pond: the journal and the segments.

use std::sync::Arc;

use logpond_record::{TimeRange, Timestamp};
use logpond_search::context::{Context, Shown};
use logpond_search::order::{Direction, Key};
use logpond_search::scan::{self, GroupScan, Selected};
use logpond_segment::disk::Disk;
use logpond_segment::journal::Visible;

use super::follow::Follower;
use super::journal_rows::{JournalRows, Newest, Pass, Row, Start};
use super::output::Output;
use super::progress::Progress;
use super::segment_rows::{Opened, SegmentPass, SegmentRows, order_key};
use super::spare_threads::SpareThreads;
use super::surroundings::{MATCHES_MAX, Surroundings, Wanted};
use super::view::View;
use super::window::is_before;
use super::{Engine, QueryError, Scope, Search, Trailer, tables};
use crate::ingest::Changes;
use crate::store::{LiveSet, Store};

/// Answers from the journal and the segments.
pub struct Pond {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) visible: Arc<Visible>,
    pub(super) live: LiveSet,
    pub(super) changes: Changes,
    pub(super) newest: Newest,
    pub(super) spare_threads: SpareThreads,
    store: Store,
}

impl Pond {
    /// An engine over what `visible` and `live` show; `changes` wakes its followers.
    pub fn new(
        disk: Arc<dyn Disk>,
        visible: Arc<Visible>,
        live: LiveSet,
        changes: Changes,
        store: Store,
    ) -> Pond {
        Pond {
            disk,
            visible,
            live,
            changes,
            newest: Newest::new(),
            spare_threads: SpareThreads::new(),
            store,
        }
    }

    pub(super) fn view(&self) -> Result<View, QueryError> {
        View::take(&*self.disk, &self.visible, &self.live)
    }

    fn rows(
        &self,
        search: &Search,
        view: &View,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<(), QueryError> {
        let mut emitter = Emitter::new(search);
        let opened = Opened::new(view, search.scope.range, trailer);
        if !search.has_context() || opened.is_empty() {
            let rows =
                |row, out: &mut Output, trailer: &mut Trailer| emitter.push(row, out, trailer);
            return self.each_row(search, view, &opened, out, trailer, rows);
        }
        let mut seen = Trailer::default();
        let mut matches = Vec::new();
        let wanted = search
            .limit
            .map_or(MATCHES_MAX, |limit| limit.min(MATCHES_MAX as u64) as usize);
        self.each_row(
            &search.without_context(),
            view,
            &opened,
            out,
            &mut seen,
            |(key, ..), _, _| {
                matches.push(key.time);
                Ok(matches.len() < wanted)
            },
        )?;
        let groups = opened.groups(search.scope.range);
        let bounds = groups.iter().map(|group| (group.min, group.max)).collect();
        let wanted = Wanted {
            rows: search.rows_before.max(search.rows_after),
            range: search.scope.range,
            direction: search.direction,
        };
        let times = |at: usize| opened.times(&groups[at], &mut seen);
        let within = Surroundings::new(wanted, bounds, times).of(&matches)?;
        trailer.bytes_scanned += seen.bytes_scanned;
        if !within.is_empty() {
            let search = search.narrowed(within);
            let rows =
                |row, out: &mut Output, trailer: &mut Trailer| emitter.push(row, out, trailer);
            self.each_row(&search, view, &opened, out, trailer, rows)?;
        }
        trailer.miss_too(seen);
        Ok(())
    }

    /// Hands over the rows of a search in order, until `visit` wants no more.
    fn each_row(
        &self,
        search: &Search,
        view: &View,
        opened: &Opened<'_>,
        out: &mut Output,
        trailer: &mut Trailer,
        mut visit: impl FnMut(Row, &mut Output, &mut Trailer) -> Result<bool, QueryError>,
    ) -> Result<(), QueryError> {
        let mut progress = Progress::new(search.wants_progress, view.bytes());
        let evaluator = SegmentRows::evaluator(search)?;
        let scans = opened.scans(&evaluator);
        let mut segments = SegmentRows::new(&self.spare_threads, opened, &scans, search);
        let mut journal = JournalRows::new(search, view);
        loop {
            let stored = segments.peek(out, trailer, &mut progress)?;
            let mut pass = Pass {
                view,
                newest: &self.newest,
                out,
                trailer,
                progress: &mut progress,
            };
            let waiting = journal.peek(search, &mut pass)?;
            let from_segment = match (stored, waiting) {
                (None, None) => break,
                (Some(stored), Some(waiting)) => is_before(search.direction, stored, waiting),
                (stored, _) => stored.is_some(),
            };
            let row = if from_segment {
                segments.pop(trailer)?
            } else {
                journal.pop()
            };
            if let Some(row) = row
                && !visit(row, out, trailer)?
            {
                break;
            }
        }
        segments.finish(trailer);
        Ok(())
    }

    fn count(
        &self,
        search: &Search,
        view: &View,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<(), QueryError> {
        let start = Start::of(search);
        let mut progress = Progress::new(search.wants_progress, view.bytes());
        let mut in_journal = 0;
        let mut pass = Pass {
            view,
            newest: &self.newest,
            out,
            trailer,
            progress: &mut progress,
        };
        pass.matches(&search.scope, |record| {
            in_journal += u64::from(start.is_before(Key {
                time: record.time,
                id: record.id,
            }));
        })?;
        let has_start = search.behind.is_some();
        let pass = SegmentPass {
            spare_threads: &self.spare_threads,
            view,
            scope: &search.scope,
            counts_only: !has_start,
        };
        let count = |scan: &mut GroupScan<'_>, selected: Selected, before_start: &mut u64| {
            if has_start {
                let mut keys = Vec::new();
                scan.keys(&selected, &mut keys)?;
                let left = |key: &scan::Key| !start.is_before(order_key(key));
                *before_start += keys.iter().filter(|key| left(key)).count() as u64;
            }
            Ok(())
        };
        let before_start = pass.run(out, trailer, &mut progress, || 0, count)?;
        let before_start: u64 = before_start.into_iter().sum();
        let rows = in_journal + trailer.rows - before_start;
        let limit = search.limit.unwrap_or(u64::MAX);
        trailer.rows = rows.min(limit);
        trailer.has_more = rows > limit;
        Ok(())
    }

    /// Emits the answer of a search, and what follows if it is followed.
    fn answer(
        &self,
        search: &Search,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<(), QueryError> {
        // Before the view, so that no change between the two is missed.
        let seen = self.changes.count();
        let view = self.view()?;
        view.note_missing(trailer);
        if search.is_count {
            return self.count(search, &view, out, trailer);
        }
        self.rows(search, &view, out, trailer)?;
        if search.is_followed {
            out.flush()?;
            Follower::new(self, search, &view.snapshot, seen).run(out, trailer)?;
        }
        Ok(())
    }

    /// What the trailer says of every answer.
    pub(super) fn finish(&self, mut trailer: Trailer) -> Trailer {
        if !trailer.has_more {
            trailer.cursor = None;
        }
        trailer.newest = self.newest();
        trailer
    }
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

impl Engine for Pond {
    fn search(&self, search: &Search, out: &mut Output) -> Result<Trailer, QueryError> {
        let mut trailer = Trailer::default();
        match self.answer(search, out, &mut trailer) {
            // What was sent counts, also if the answer ends early.
            Err(error) if trailer.rows > 0 => {
                trailer.is_cancelled = matches!(error, QueryError::Cancelled);
                trailer.miss(error);
            }
            outcome => outcome?,
        }
        Ok(self.finish(trailer))
    }

    fn top(
        &self,
        scope: &Scope,
        field: &str,
        count_max: usize,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        tables::top(self, scope, field, count_max, out)
    }

    fn histogram(
        &self,
        scope: &Scope,
        range: TimeRange,
        step_ns: i64,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        tables::histogram(self, scope, range, step_ns, out)
    }

    fn fields(&self, scope: &Scope, out: &mut Output) -> Result<Trailer, QueryError> {
        tables::fields(self, scope, out)
    }

    fn segments(&self, out: &mut Output) -> Result<Trailer, QueryError> {
        tables::segments(self, out)
    }

    fn compact(&self, cold: bool, out: &mut Output) -> Result<Trailer, QueryError> {
        let done = self.store.compact_all(cold, &|| out.check().is_err());
        done.map_err(|error| QueryError::Impossible(error.to_string()))?;
        self.segments(out)
    }

    fn newest(&self) -> Option<Timestamp> {
        let segments = self.live.snapshot();
        let stored = segments.iter().map(|s| s.file().manifest().time_max).max();
        stored.max(self.newest.get())
    }
}
