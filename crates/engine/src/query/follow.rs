//! Records as they become visible.
//!
//! Invariant: a record that became visible after the view of the search is emitted once, in
//! the order of its source.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use logpond_protocol::intake::Parser;
use logpond_record::SourceId;
use logpond_search::Scratch;
use logpond_segment::disk::{Disk, ReadAt};
use logpond_segment::journal::{ClosedFile, JournalFile, OpenState, Snapshot, Summary};
use logpond_segment::sources::SourceSet;

use super::follow_stored::StoredSources;
use super::output::Output;
use super::pond::LocalEngine;
use super::view::View;
use super::{QueryError, Search, Trailer, retries};
use crate::store::Segments;

/// How often a follower without news looks whether anybody still listens.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A file and how far it was read.
pub(super) struct Tail {
    pub(super) source: SourceId,
    pub(super) path: String,
    pub(super) file: Arc<dyn ReadAt>,
    pub(super) offset: u64,
}

impl Tail {
    /// How far the file may be read now: never beyond what was synced.
    pub(super) fn find_end(
        &mut self,
        snapshot: &Snapshot,
        disk: &dyn Disk,
    ) -> Result<u64, QueryError> {
        if let Some(open) = snapshot.open.iter().find(|o| o.source == self.source) {
            return Ok(open.synced_bytes);
        }
        // After a failed sync it is a copy that was closed; it differs behind what was synced.
        let closed = snapshot.closed.iter().find(|c| c.source == self.source);
        if let Some(closed) = closed
            && let Ok(file) = disk.open(&closed.path)
        {
            self.file = file;
            return Ok(closed.bytes);
        }
        // Its segment has replaced it since the last look. It was closed itself if it ends as
        // closed files do.
        let bytes = self.file.bytes().map_err(io_error)?;
        let scanned = self.up_to(bytes)?.scan().map_err(io_error)?;
        if scanned.is_ended() {
            return Ok(bytes);
        }
        let path = &self.path;
        let what = "its last records cannot be followed, since a sync of it failed";
        Err(QueryError::Disk(format!("{path}: {what}")))
    }

    /// The file as if it ended there.
    pub(super) fn up_to(&self, limit: u64) -> Result<JournalFile, QueryError> {
        let state = OpenState {
            path: self.path.clone(),
            source: self.source,
            synced_bytes: limit,
            summary: Summary::default(),
            batches: Arc::default(),
            file: self.file.clone(),
        };
        let file = JournalFile::from_open(&state);
        file.map_err(|e| QueryError::Disk(format!("{}: {e}", self.path)))
    }
}

pub(super) struct Follower<'a> {
    engine: &'a LocalEngine,
    search: &'a Search,
    parser: Parser,
    scratch: Scratch,
    tails: Vec<Tail>,
    /// Sources that were read to their end, or are in no answer.
    done: SourceSet,
    /// The segments that were looked at last: all their sources are done, or tails.
    segments: Segments,
    seen: u64,
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        engine: &'a LocalEngine,
        search: &'a Search,
        view: &View,
        seen: u64,
    ) -> Follower<'a> {
        let snapshot = &view.snapshot;
        let stored = view.segments.iter().map(|viewed| viewed.segment.sources());
        let mut done = SourceSet::union_of(stored);
        for closed in snapshot.closed.iter() {
            done.insert(closed.source);
        }
        let tail = |open: &OpenState| Tail {
            source: open.source,
            path: open.path.clone(),
            file: open.file.clone(),
            offset: open.synced_bytes,
        };
        Follower {
            engine,
            search,
            parser: Parser::new(),
            scratch: Scratch::new(),
            tails: snapshot.open.iter().map(tail).collect(),
            done,
            segments: Segments::default(),
            seen,
        }
    }

    /// Emits until the limit, or until nobody listens.
    pub(super) fn run(mut self, out: &mut Output, trailer: &mut Trailer) -> Result<(), QueryError> {
        out.idle();
        while self.wants_more(trailer) {
            out.check()?;
            let seen = self.engine.changes.wait(self.seen, CHECK_INTERVAL);
            if seen == self.seen {
                continue;
            }
            self.seen = seen;
            self.catch_up(out, trailer)?;
            out.flush()?;
        }
        trailer.has_more = true;
        Ok(())
    }

    fn wants_more(&self, trailer: &Trailer) -> bool {
        self.search.limit.is_none_or(|limit| trailer.rows < limit)
    }

    fn catch_up(&mut self, out: &mut Output, trailer: &mut Trailer) -> Result<(), QueryError> {
        let snapshot = self.engine.visible.snapshot();
        self.pass_repeated(&snapshot);
        for open in &snapshot.open {
            if !self.is_known(open.source) {
                let (path, file) = (open.path.clone(), open.file.clone());
                self.tails.push(Tail {
                    source: open.source,
                    path,
                    file,
                    offset: 0,
                });
            }
        }
        for closed in snapshot.closed.iter() {
            self.find_closed(closed, trailer);
        }
        let mut stored = self.find_stored(&snapshot);
        self.tails.sort_by_key(|t| t.source);
        let mut tails = std::mem::take(&mut self.tails);
        for tail in &mut tails {
            self.emit_stored(&mut stored, Some(tail.source), out, trailer)?;
            let read = tail
                .find_end(&snapshot, &*self.engine.disk)
                .and_then(|limit| self.read(tail, limit, out, trailer));
            match read {
                Err(QueryError::Disk(what)) => trailer.miss(what),
                other => other?,
            }
        }
        self.emit_stored(&mut stored, None, out, trailer)?;
        let is_open = |t: &Tail| snapshot.open.iter().any(|o| o.source == t.source);
        let (open, closed): (Vec<_>, Vec<_>) = tails.into_iter().partition(is_open);
        self.tails = open;
        closed.iter().for_each(|tail| self.done.insert(tail.source));
        Ok(())
    }

    fn is_known(&self, source: SourceId) -> bool {
        self.done.contains(source) || self.tails.iter().any(|tail| tail.source == source)
    }

    /// What was put into segments since the last look without having been read.
    fn find_stored(&mut self, snapshot: &Snapshot) -> StoredSources {
        // Behind the files: one that is gone has a segment by now.
        let segments = self.engine.live.snapshot();
        if Arc::ptr_eq(&segments, &self.segments) {
            return StoredSources::default();
        }
        let mut known = self.done.clone();
        self.tails.iter().for_each(|tail| known.insert(tail.source));
        let stored = StoredSources::find(snapshot, &segments, &known);
        self.segments = segments;
        stored
    }

    /// Emits what is stored of sources before another one, or of all.
    fn emit_stored(
        &mut self,
        stored: &mut StoredSources,
        before: Option<SourceId>,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<(), QueryError> {
        while self.wants_more(trailer)
            && let Some(sources) = stored.next(before)
        {
            let rows = stored.read(&sources, (self.engine, self.search), out, trailer);
            self.done.union_with(&sources);
            let rows = match rows {
                Err(QueryError::Disk(what)) => {
                    trailer.miss(what);
                    continue;
                }
                other => other?,
            };
            for (_, row, _) in rows {
                if self.wants_more(trailer) {
                    trailer.rows += 1;
                    out.line(|chunk| chunk.extend_from_slice(&row))?;
                }
            }
        }
        Ok(())
    }

    /// Takes new files that repeat a batch as read, if the batch is elsewhere.
    fn pass_repeated(&mut self, snapshot: &Snapshot) {
        let open = snapshot.open.iter().map(|o| (o.source, &o.batches));
        let closed = snapshot.closed.iter().map(|c| (c.source, &c.batches));
        let retries = open.chain(closed).filter(|(_, b)| b.retry().is_some());
        let new: Vec<SourceId> = retries
            .map(|(source, _)| source)
            .filter(|source| !self.is_known(*source))
            .collect();
        if !new.is_empty() {
            let excluded = retries::excluded(snapshot, &self.engine.live.snapshot());
            let repeated = new.into_iter().filter(|source| excluded.contains(*source));
            repeated.for_each(|source| self.done.insert(source));
        }
    }

    /// A file that was opened and closed between two looks.
    fn find_closed(&mut self, closed: &ClosedFile, trailer: &mut Trailer) {
        if self.is_known(closed.source) {
            return;
        }
        let (source, path) = (closed.source, closed.path.clone());
        match self.engine.disk.open(&closed.path) {
            Ok(file) => self.tails.push(Tail {
                source,
                path,
                file,
                offset: 0,
            }),
            // A segment has it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => trailer.miss(error),
        }
    }

    fn read(
        &mut self,
        tail: &mut Tail,
        limit: u64,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<(), QueryError> {
        if limit <= tail.offset {
            return Ok(());
        }
        let file = tail.up_to(limit)?;
        let mut frames = match tail.offset {
            0 => file.frames(),
            offset => file.frames_from(offset),
        };
        let search = self.search;
        while let Some(frame) = frames.next().map_err(io_error)? {
            trailer.bytes_scanned += frame.payload().len() as u64;
            for entry in frame.entries() {
                let record = self.parser.parse(&entry);
                self.engine.known.newest.note(record.time);
                let is_match = record.time >= search.scope.range.from
                    && search.scope.matcher.matches(&record, &mut self.scratch);
                if is_match && self.wants_more(trailer) {
                    trailer.rows += 1;
                    out.line(|chunk| search.write_row(&record, chunk))?;
                }
            }
        }
        tail.offset = limit;
        trailer.miss_damages(&frames.into_damages());
        Ok(())
    }
}

fn io_error(error: io::Error) -> QueryError {
    QueryError::Disk(error.to_string())
}

#[cfg(test)]
mod tests {
    use logpond_record::{Batch, EntryKind, Incarnation, Timestamp};
    use logpond_segment::journal::{Settings, Writer};
    use logpond_segment::mem_disk::{Fault, MemDisk};

    use super::*;

    fn texts(tail: &Tail, from: u64, to: u64) -> Vec<String> {
        let file = tail.up_to(to).unwrap();
        let mut frames = match from {
            0 => file.frames(),
            from => file.frames_from(from),
        };
        let mut found = Vec::new();
        while let Some(frame) = frames.next().unwrap() {
            let entries = frame.entries();
            found.extend(entries.map(|e| String::from_utf8_lossy(e.raw).into_owned()));
        }
        assert_eq!(frames.damages().count, 0);
        found
    }

    /// Whatever becomes of a file, a follower reads what was synced, and nothing else.
    #[test]
    fn what_was_never_synced_is_not_followed() {
        for (fails, is_removed) in [(false, false), (false, true), (true, false), (true, true)] {
            let disk = MemDisk::new();
            let mut writer = Writer::new(Arc::new(disk.clone()), Settings::default());
            let append = |writer: &mut Writer, text: &str| {
                let mut batch = Batch::new(EntryKind::Line, Vec::new());
                batch.push(text.as_bytes());
                writer
                    .append(&batch, Timestamp(1), || Incarnation(5))
                    .unwrap();
            };
            append(&mut writer, "first");
            writer.sync().unwrap();
            let visible = writer.visible();
            let open = visible.snapshot().open[0].clone();
            let mut tail = Tail {
                source: open.source,
                path: open.path,
                file: open.file,
                offset: open.synced_bytes,
            };
            append(&mut writer, "second");
            if fails {
                let next = disk.calls_count();
                disk.fail_at(next, Fault::Error(io::ErrorKind::Other));
                assert!(writer.sync().is_err());
                disk.clear_faults();
            }
            writer.close().unwrap();
            let snapshot = if is_removed {
                visible.remove_closed(tail.source).unwrap();
                visible.snapshot()
            } else {
                visible.snapshot()
            };
            let found = tail
                .find_end(&snapshot, &disk)
                .map(|end| texts(&tail, tail.offset, end));
            match (fails, is_removed) {
                (false, _) => assert_eq!(found.unwrap(), ["second"]),
                (true, false) => assert_eq!(found.unwrap(), [""; 0]),
                (true, true) => assert!(matches!(found, Err(QueryError::Disk(_)))),
            }
        }
    }
}
