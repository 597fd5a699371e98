//! A node's own journal as it grows, for another node that follows the cluster.
//!
//! Invariants: the rows of a file leave in its order; what was passed is said only behind all rows
//! that it covers. Copies of batches that were sent again are left out: whether they count is for
//! the asker to say, who reads them like other files that do not grow.

use logpond_protocol::intake::Parser;
use logpond_record::{Id, SourceId};
use logpond_search::Scratch;
use logpond_search::order::Key;
use logpond_segment::batches::HeldBatches;
use logpond_segment::journal::Snapshot;
use logpond_segment::sources::SourceSet;

use super::follow::{CHECK_INTERVAL, Tail};
use super::frames::{self, Block, JournalProgress};
use super::journal_rows::CHECK_ROWS;
use super::output::{Cancellation, Output};
use super::pond::LocalEngine;
use super::positions::{Positions, Region};
use super::{MISSING_MAX, QueryError, Search, Trailer};

/// Batches that are said to be passed at a time; of more, those are known only that have matches.
const PASSED_BATCHES_MAX: usize = 65_536;

pub(super) struct NodeFollower<'a> {
    engine: &'a LocalEngine,
    search: &'a Search,
    positions: Positions,
    parser: Parser,
    scratch: Scratch,
    tails: Vec<Tail>,
    /// Files that cannot be read; they are not tried again.
    failed: SourceSet,
    /// The block that was said last.
    block: Option<Block>,
    /// Whether rows of it have left.
    has_left: bool,
}

impl<'a> NodeFollower<'a> {
    pub(super) fn new(
        engine: &'a LocalEngine,
        search: &'a Search,
        positions: Positions,
    ) -> NodeFollower<'a> {
        NodeFollower {
            engine,
            search,
            positions,
            parser: Parser::new(),
            scratch: Scratch::new(),
            tails: Vec::new(),
            failed: SourceSet::new(),
            block: None,
            has_left: false,
        }
    }

    /// Emits until nobody listens.
    pub(super) fn run(mut self, out: &mut Output) -> Result<(), Cancellation> {
        loop {
            // Before the look, so that no change between the two is missed.
            let seen = self.engine.changes.count();
            let passed = match self.catch_up(out) {
                Ok(passed) => passed,
                Err(QueryError::Cancelled) => return Err(Cancellation),
                Err(error) => return frames::write_failed(&error.to_string(), out),
            };
            // Also if there is no news: it says that all that is visible was sent.
            frames::write_passed(&passed, out)?;
            out.flush()?;
            out.idle();
            self.engine.changes.wait(seen, CHECK_INTERVAL);
            out.check()?;
        }
    }

    fn catch_up(&mut self, out: &mut Output) -> Result<JournalProgress, QueryError> {
        let snapshot = self.engine.visible.snapshot();
        let mut passed = JournalProgress::default();
        self.find_new(&snapshot, &mut passed);
        let mut tails = std::mem::take(&mut self.tails);
        tails.sort_by_key(|tail| tail.source);
        for mut tail in tails {
            let read = tail
                .find_end(&snapshot, &*self.engine.disk)
                .and_then(|limit| self.read(&mut tail, limit, &mut passed, out));
            match read {
                Ok(()) => {}
                Err(QueryError::Disk(what)) => {
                    self.failed.insert(tail.source);
                    note(&mut passed, what);
                    continue;
                }
                Err(other) => return Err(other),
            }
            match snapshot.open.iter().find(|open| open.source == tail.source) {
                Some(open) => {
                    passed.growing.push((tail.source, open.summary.last));
                    self.tails.push(tail);
                }
                None => passed.done.insert(tail.source),
            }
        }
        self.positions.finish(&passed.done);
        Ok(passed)
    }

    /// Opens the files of which nothing was read yet.
    fn find_new(&mut self, snapshot: &Snapshot, passed: &mut JournalProgress) {
        let is_wanted = |source: SourceId, batches: &HeldBatches| {
            batches.retry().is_none()
                && !self.positions.is_done(source)
                && !self.failed.contains(source)
                && !self.tails.iter().any(|tail| tail.source == source)
        };
        let mut new = Vec::new();
        for closed in snapshot.closed.iter() {
            if !is_wanted(closed.source, &closed.batches) {
                continue;
            }
            match self.engine.disk.open(&closed.path) {
                Ok(file) => new.push((closed.source, &closed.path, file)),
                // A segment has replaced it since; the asker finds that.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => note(passed, format!("{}: {error}", closed.path)),
            }
        }
        for open in &snapshot.open {
            if is_wanted(open.source, &open.batches) {
                new.push((open.source, &open.path, open.file.clone()));
            }
        }
        let tails = new.into_iter().map(|(source, path, file)| Tail {
            source,
            path: path.clone(),
            file,
            offset: 0,
        });
        self.tails.extend(tails);
    }

    fn read(
        &mut self,
        tail: &mut Tail,
        limit: u64,
        passed: &mut JournalProgress,
        out: &mut Output,
    ) -> Result<(), QueryError> {
        if limit <= tail.offset {
            return Ok(());
        }
        let file = tail.up_to(limit)?;
        let mut reading = match tail.offset {
            0 => file.frames(),
            offset => file.frames_from(offset),
        };
        let regions = self.positions.regions(tail.source);
        // What arrived up to there is not even parsed.
        let floor = regions.iter().filter(|region| region.is_whole());
        let floor = floor.map(|region| region.up_to).max().unwrap_or(Id::MIN);
        let mut said = passed.batches.runs().count();
        loop {
            let next = reading.next();
            let error = |error: std::io::Error| QueryError::Disk(format!("{}: {error}", tail.path));
            let Some(frame) = next.map_err(error)? else {
                break;
            };
            let batch = frame.batch_id().map(|id| (id.epoch, id.sequence));
            let block = Block {
                source: tail.source,
                batch,
            };
            if self.has_left {
                // The asker holds the rows of a batch until it is told that there is another one.
                self.enter(block, out)?;
            }
            if let Some(id) = frame.batch_id().filter(|_| said < PASSED_BATCHES_MAX) {
                passed.batches.insert_run(id.epoch, id.run());
                said += 1;
            }
            let entries = frame.entries().filter(|entry| entry.id > floor);
            for (index, entry) in entries.enumerate() {
                if index % CHECK_ROWS == 0 {
                    out.check()?;
                }
                let record = self.parser.parse(&entry);
                self.engine.known.newest.note(record.time);
                let key = Key {
                    time: record.time,
                    id: record.id,
                };
                let search = self.search;
                if key.time < search.scope.range.from
                    || regions.iter().any(|region: &Region| region.contains(key))
                    || !search.scope.matcher.matches(&record, &mut self.scratch)
                {
                    continue;
                }
                self.enter(block, out)?;
                self.has_left = true;
                let mut row = Vec::new();
                search.write_row(&record, &mut row);
                frames::write_row(&(key, row.into(), true), out)?;
            }
        }
        tail.offset = limit;
        let mut damages = Trailer::default();
        damages.miss_damages(&reading.into_damages());
        damages
            .missing
            .into_iter()
            .for_each(|what| note(passed, what));
        Ok(())
    }

    /// Says that the following rows are in a block, unless that was said.
    fn enter(&mut self, block: Block, out: &mut Output) -> Result<(), Cancellation> {
        if self.block == Some(block) {
            return Ok(());
        }
        self.block = Some(block);
        self.has_left = false;
        frames::write_block(&block, out)
    }
}

fn note(passed: &mut JournalProgress, what: String) {
    if passed.missing.len() < MISSING_MAX {
        passed.missing.push(what);
    }
}
