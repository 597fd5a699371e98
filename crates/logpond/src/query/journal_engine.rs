//! Queries over the journal alone, row by row.
//!
//! Every pass reads all visible files; a window keeps the next rows in order. That is right for
//! journal data, which is little and recent: what is old is in segments.

mod follow;
mod tables;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use logpond_protocol::intake::Parser;
use logpond_record::{Id, Record, TimeRange, Timestamp};
use logpond_search::Scratch;
use logpond_search::context::{Context, Shown};
use logpond_segment::disk::Disk;
use logpond_segment::journal::{JournalFile, Snapshot, Visible};
use serde_json::json;

use super::output::Output;
use super::window::{WINDOW_BYTES_MAX, Window, is_before};
use super::{Direction, Engine, Key, QueryError, Scope, Search, Trailer, encode};
use crate::ingest::Changes;

/// How often a query that wants it says how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Answers from the journal.
pub struct JournalEngine {
    disk: Arc<dyn Disk>,
    visible: Arc<Visible>,
    changes: Changes,
    newest_ns: AtomicI64,
}

/// One reading of all files.
struct Pass<'a> {
    engine: &'a JournalEngine,
    snapshot: &'a Snapshot,
    out: &'a mut Output,
    trailer: &'a mut Trailer,
    progress: Option<Progress>,
}

struct Progress {
    said_at: Instant,
    bytes_total: u64,
}

impl JournalEngine {
    /// An engine over what `visible` shows; `changes` wakes its followers.
    pub fn new(disk: Arc<dyn Disk>, visible: Arc<Visible>, changes: Changes) -> JournalEngine {
        let newest_ns = AtomicI64::new(i64::MIN);
        JournalEngine {
            disk,
            visible,
            changes,
            newest_ns,
        }
    }

    fn note_newest(&self, time: Timestamp) {
        self.newest_ns.fetch_max(time.0, Ordering::Relaxed);
    }

    fn rows(
        &self,
        search: &Search,
        snapshot: &Snapshot,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<(), QueryError> {
        let mut emitter = Emitter::new(search);
        let mut start = Start::of(search);
        loop {
            let rows_max = emitter.window_rows();
            let mut window = Window::new(search.direction, rows_max, WINDOW_BYTES_MAX);
            let mut scratch = Scratch::new();
            let mut buffer = Vec::new();
            let mut pass_trailer = Trailer::default();
            let mut pass = Pass::new(
                self,
                snapshot,
                out,
                &mut pass_trailer,
                search.wants_progress,
            );
            pass.run(|record| {
                let key = Key {
                    time: record.time,
                    id: record.id,
                };
                if !search.scope.range.contains(key.time) || !start.is_before(key) {
                    return;
                }
                let is_match = search.scope.matcher.matches(record, &mut scratch);
                if (is_match || search.has_context()) && window.admits(key) {
                    buffer.clear();
                    encode::write_row(record, search.parts, &mut buffer);
                    let row: Box<[u8]> = buffer.as_slice().into();
                    window.insert(key, (row, is_match), buffer.len());
                }
            })?;
            trailer.bytes_scanned += pass_trailer.bytes_scanned;
            trailer.missing = pass_trailer.missing;
            trailer.missing_count = pass_trailer.missing_count;
            let is_last = !window.has_overflowed();
            for (key, (row, is_match)) in window.into_rows() {
                start.behind = Some(key);
                if !emitter.push(key, row, is_match, out, trailer)? {
                    return Ok(());
                }
            }
            if is_last {
                return Ok(());
            }
            if emitter.window_rows() == 0 {
                trailer.has_more = true;
                return Ok(());
            }
        }
    }

    fn count(
        &self,
        search: &Search,
        snapshot: &Snapshot,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<(), QueryError> {
        let start = Start::of(search);
        let mut rows = 0;
        self.each_match(
            &search.scope,
            snapshot,
            search.wants_progress,
            out,
            trailer,
            |record| {
                let key = Key {
                    time: record.time,
                    id: record.id,
                };
                rows += u64::from(start.is_before(key));
            },
        )?;
        let limit = search.limit.unwrap_or(u64::MAX);
        trailer.rows = rows.min(limit);
        trailer.has_more = rows > limit;
        Ok(())
    }

    /// Reads everything once and hands over what matches.
    fn each_match(
        &self,
        scope: &Scope,
        snapshot: &Snapshot,
        wants_progress: bool,
        out: &mut Output,
        trailer: &mut Trailer,
        mut each: impl FnMut(&Record<'_>),
    ) -> Result<(), QueryError> {
        let mut scratch = Scratch::new();
        Pass::new(self, snapshot, out, trailer, wants_progress).run(|record| {
            if scope.range.contains(record.time) && scope.matcher.matches(record, &mut scratch) {
                each(record);
            }
        })
    }
}

/// Where the rows of a pass begin.
struct Start {
    direction: Direction,
    /// Rows up to here have left.
    behind: Option<Key>,
    /// A follower that comes back has seen everything that arrived before its last record.
    arrived_after: Option<Id>,
}

impl Start {
    fn of(search: &Search) -> Start {
        let (behind, arrived_after) = match search.is_followed {
            true => (None, search.behind.map(|cursor| cursor.id)),
            false => (search.behind, None),
        };
        Start {
            direction: search.direction,
            behind,
            arrived_after,
        }
    }

    fn is_before(&self, key: Key) -> bool {
        self.behind
            .is_none_or(|behind| is_before(self.direction, behind, key))
            && self.arrived_after.is_none_or(|id| key.id > id)
    }
}

impl<'a> Pass<'a> {
    fn new(
        engine: &'a JournalEngine,
        snapshot: &'a Snapshot,
        out: &'a mut Output,
        trailer: &'a mut Trailer,
        wants_progress: bool,
    ) -> Pass<'a> {
        let closed = snapshot.closed.iter().map(|f| f.bytes);
        let bytes_total = closed
            .chain(snapshot.open.iter().map(|f| f.synced_bytes))
            .sum();
        let said_at = Instant::now();
        let progress = wants_progress.then_some(Progress {
            said_at,
            bytes_total,
        });
        Pass {
            engine,
            snapshot,
            out,
            trailer,
            progress,
        }
    }

    fn run(&mut self, mut each: impl FnMut(&Record<'_>)) -> Result<(), QueryError> {
        let mut parser = Parser::new();
        for closed in self.snapshot.closed.iter() {
            let file = JournalFile::from_closed(&*self.engine.disk, closed);
            self.file(&closed.path, file, &mut parser, &mut each)?;
        }
        for open in &self.snapshot.open {
            let file = JournalFile::from_open(open);
            self.file(&open.path, file, &mut parser, &mut each)?;
        }
        Ok(())
    }

    fn file(
        &mut self,
        path: &str,
        file: Result<JournalFile, impl std::fmt::Display>,
        parser: &mut Parser,
        each: &mut impl FnMut(&Record<'_>),
    ) -> Result<(), QueryError> {
        let file = match file {
            Ok(file) => file,
            Err(e) => {
                self.trailer.miss(format_args!("{path}: {e}"));
                return Ok(());
            }
        };
        let mut frames = file.frames();
        loop {
            match frames.next() {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    self.trailer.bytes_scanned += frame.payload().len() as u64;
                    for entry in frame.entries() {
                        let record = parser.parse(&entry);
                        self.engine.note_newest(record.time);
                        each(&record);
                    }
                }
                Err(e) => {
                    self.trailer.miss(format_args!("{path}: {e}"));
                    break;
                }
            }
            self.between_frames()?;
        }
        let damages = frames.into_damages();
        damages
            .listed
            .iter()
            .for_each(|damage| self.trailer.miss(damage));
        self.trailer.missing_count += damages.count - damages.listed.len() as u64;
        Ok(())
    }

    fn between_frames(&mut self) -> Result<(), QueryError> {
        self.out.check()?;
        if let Some(progress) = &mut self.progress
            && progress.said_at.elapsed() >= PROGRESS_INTERVAL
        {
            progress.said_at = Instant::now();
            let (bytes, total) = (self.trailer.bytes_scanned, progress.bytes_total);
            let rows = self.trailer.rows;
            let said = json!({ "bytes": bytes, "bytes_total": total, "rows": rows });
            self.out.json(&json!({ "_progress": said }))?;
            self.out.flush()?;
        }
        Ok(())
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

    /// Rows that the next window may have.
    fn window_rows(&self) -> usize {
        match self.context {
            Some(_) => usize::MAX,
            None => usize::try_from(self.limit).unwrap_or(usize::MAX),
        }
    }

    /// Takes the next row; says whether further ones are wanted.
    fn push(
        &mut self,
        key: Key,
        row: Box<[u8]>,
        is_match: bool,
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

impl Engine for JournalEngine {
    fn search(&self, search: &Search, out: &mut Output) -> Result<Trailer, QueryError> {
        let mut trailer = Trailer::default();
        // Before the snapshot, so that no change between the two is missed.
        let seen = self.changes.count();
        let snapshot = self.visible.snapshot();
        if search.is_count {
            self.count(search, &snapshot, out, &mut trailer)?;
        } else {
            self.rows(search, &snapshot, out, &mut trailer)?;
        }
        if search.is_followed && !search.is_count {
            out.flush()?;
            follow::Follower::new(self, search, &snapshot, seen).run(out, &mut trailer)?;
        }
        if !trailer.has_more {
            trailer.cursor = None;
        }
        trailer.newest = self.newest();
        Ok(trailer)
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

    fn compact(&self, _cold: bool, _out: &mut Output) -> Result<Trailer, QueryError> {
        Err(QueryError::Unsupported("there are no segments to compact"))
    }

    fn newest(&self) -> Option<Timestamp> {
        let newest = self.newest_ns.load(Ordering::Relaxed);
        (newest != i64::MIN).then_some(Timestamp(newest))
    }
}
