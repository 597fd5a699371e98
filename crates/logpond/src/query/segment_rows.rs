//! Reading the segment part of a view: rows in order, and tables.
//!
//! Row groups are opened in the order of time and only when their turn has come, so the newest
//! rows are found without reading the rest. What is open at a time are the row groups that
//! overlap in time.

use std::sync::Arc;

use logpond_record::{TimeRange, Timestamp};
use logpond_search::order::{Direction, Key};
use logpond_search::scan::{self, Evaluator, GroupScan, Selected};
use logpond_search::{Filter, Scratch};
use logpond_segment::file::{Directory, ReadError};

use super::journal_rows::{Row, Start};
use super::output::Output;
use super::progress::Progress;
use super::view::View;
use super::window::is_before;
use super::{QueryError, Scope, Search, Trailer, encode};
use crate::store::LiveSegment;

/// Decoded blocks, counted as bytes of their lines, that the open row groups keep together.
/// Above it they forget all, and read again what they need.
const KEPT_BYTES_MAX: u64 = 48 << 20;

/// Rows between two looks at what is kept and whether anybody still reads.
const CHECK_ROWS: u32 = 256;

/// The segments of a view with their directories, which row groups borrow from.
pub(super) struct Opened<'v> {
    segments: Vec<(&'v LiveSegment, Arc<Directory>)>,
}

impl<'v> Opened<'v> {
    /// Reads the directories of the segments that overlap a range; names those that are damaged.
    pub(super) fn new(view: &'v View, range: TimeRange, trailer: &mut Trailer) -> Opened<'v> {
        let mut segments = Vec::new();
        for segment in view.segments.iter() {
            let manifest = segment.file().manifest();
            if !range.overlaps(manifest.time_min, manifest.time_max) {
                continue;
            }
            match segment.directory() {
                Ok(directory) => segments.push((&**segment, directory)),
                Err(error) => trailer.miss(describe(segment, &error)),
            }
        }
        Opened { segments }
    }

    /// Whether no segment overlaps the range.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Row groups that overlap a range.
    pub(super) fn groups(&self, range: TimeRange) -> Vec<Group> {
        let mut groups = Vec::new();
        for (segment, (_, directory)) in self.segments.iter().enumerate() {
            for (number, group) in directory.row_groups.iter().enumerate() {
                let (min, max) = group.time_bounds();
                if range.overlaps(Timestamp(min), Timestamp(max)) {
                    groups.push(Group {
                        min: Timestamp(min),
                        max: Timestamp(max),
                        segment,
                        number,
                    });
                }
            }
        }
        groups
    }

    /// Event times of the rows of a row group, in order, as far as they can be read.
    pub(super) fn times(
        &self,
        group: &Group,
        trailer: &mut Trailer,
    ) -> Result<Vec<Timestamp>, QueryError> {
        let evaluator = evaluator(&Filter::All, TimeRange::ALL)?;
        let mut scan = self.scan(group, &evaluator);
        let mut times = Vec::new();
        scan.for_each_block(|scan, _| {
            times.extend(scan.block_times()?.iter().map(|time| Timestamp(*time)));
            Ok(true)
        })
        .map_err(disk_error)?;
        times.sort_unstable();
        settle(self, group, &scan, trailer);
        Ok(times)
    }

    fn scan<'s>(&'s self, group: &Group, evaluator: &'s Evaluator) -> GroupScan<'s> {
        let (segment, directory) = &self.segments[group.segment];
        GroupScan::new(segment.file(), directory, group.number, evaluator)
    }
}

/// A row group that may hold rows of an answer.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// Time of its first row.
    pub(super) min: Timestamp,
    /// Time of its last row.
    pub(super) max: Timestamp,
    segment: usize,
    number: usize,
}

fn describe(segment: &LiveSegment, error: &ReadError) -> String {
    let id = segment.file().manifest().id;
    match error {
        ReadError::Damaged(damage) => format!("segments/{id}.parquet: {damage}"),
        ReadError::Disk(error) => format!("segments/{id}.parquet: {error}"),
    }
}

/// Names in the trailer what a scan could not read, and counts what it read.
fn settle(opened: &Opened<'_>, group: &Group, scan: &GroupScan<'_>, trailer: &mut Trailer) {
    trailer.bytes_scanned += scan.bytes_read();
    for damage in scan.damages() {
        let (segment, _) = &opened.segments[group.segment];
        trailer.miss(format_args!(
            "segments/{}.parquet: {damage}",
            segment.file().manifest().id
        ));
    }
}

fn disk_error(error: std::io::Error) -> QueryError {
    QueryError::Disk(format!("a segment cannot be read: {error}"))
}

/// An open row group: its selected rows, the next one last.
struct Active<'s> {
    group: Group,
    scan: GroupScan<'s>,
    keys: Vec<scan::Key>,
}

/// The segments' rows in order.
pub(super) struct SegmentRows<'s> {
    opened: &'s Opened<'s>,
    evaluator: &'s Evaluator,
    search: &'s Search,
    start: Start,
    /// Row groups not opened yet, the next one last.
    waiting: Vec<Group>,
    active: Vec<Active<'s>>,
    scratch: Scratch,
    buffer: Vec<u8>,
    rows_since_check: u32,
}

impl<'s> SegmentRows<'s> {
    pub(super) fn new(
        opened: &'s Opened<'s>,
        evaluator: &'s Evaluator,
        search: &'s Search,
    ) -> SegmentRows<'s> {
        let mut waiting = opened.groups(search.scope.range);
        waiting.retain(|group| search.looks_between(group.min, group.max));
        match search.direction {
            Direction::Forward => waiting.sort_by_key(|g| std::cmp::Reverse(g.min)),
            Direction::Backward => waiting.sort_by_key(|g| g.max),
        }
        SegmentRows {
            opened,
            evaluator,
            search,
            start: Start::of(search),
            waiting,
            active: Vec::new(),
            scratch: Scratch::new(),
            buffer: Vec::new(),
            rows_since_check: 0,
        }
    }

    /// The evaluator for the rows of a search: with context every row is wanted.
    pub(super) fn evaluator(search: &Search) -> Result<Evaluator, QueryError> {
        let filter = if search.has_context() {
            &Filter::All
        } else {
            &search.scope.filter
        };
        evaluator(filter, search.scope.range)
    }

    /// The key of the next row.
    pub(super) fn peek(
        &mut self,
        out: &mut Output,
        trailer: &mut Trailer,
        progress: &mut Progress,
    ) -> Result<Option<Key>, QueryError> {
        loop {
            let next = self.first();
            let Some(group) = self.waiting.last().copied() else {
                return Ok(next.map(|(key, _)| key));
            };
            let may_come_first = next.is_none_or(|(key, _)| match self.search.direction {
                Direction::Forward => group.min <= key.time,
                Direction::Backward => group.max >= key.time,
            });
            if !may_come_first {
                return Ok(next.map(|(key, _)| key));
            }
            self.waiting.pop();
            progress.step(trailer.bytes_scanned, trailer.rows, out)?;
            self.open(group, trailer)?;
        }
    }

    fn first(&self) -> Option<(Key, usize)> {
        let mut first: Option<(Key, usize)> = None;
        for (at, active) in self.active.iter().enumerate() {
            if let Some(key) = active.keys.last().map(order_key)
                && first.is_none_or(|(best, _)| is_before(self.search.direction, key, best))
            {
                first = Some((key, at));
            }
        }
        first
    }

    fn open(&mut self, group: Group, trailer: &mut Trailer) -> Result<(), QueryError> {
        let mut scan = self.opened.scan(&group, self.evaluator);
        let mut keys = Vec::new();
        scan.for_each_block(|scan, selected| scan.keys(&selected, &mut keys).map(|()| true))
            .map_err(disk_error)?;
        keys.retain(|key| self.search.looks_at(key.time) && self.start.is_before(order_key(key)));
        match self.search.direction {
            Direction::Forward => keys.sort_unstable_by(|a, b| b.cmp(a)),
            Direction::Backward => keys.sort_unstable(),
        }
        if keys.is_empty() {
            settle(self.opened, &group, &scan, trailer);
            return Ok(());
        }
        self.active.push(Active { group, scan, keys });
        Ok(())
    }

    /// The next row, after [`SegmentRows::peek`]; `None` if its block turns out to be damaged.
    pub(super) fn pop(&mut self, trailer: &mut Trailer) -> Result<Option<Row>, QueryError> {
        let Some((key, at)) = self.first() else {
            return Ok(None);
        };
        let active = &mut self.active[at];
        let Some(stored) = active.keys.pop() else {
            return Ok(None);
        };
        let (search, buffer, scratch) = (self.search, &mut self.buffer, &mut self.scratch);
        let row = active.scan.record(stored, |record| {
            buffer.clear();
            encode::write_row(record, search.parts, buffer);
            let is_match = !search.has_context() || search.scope.matcher.matches(record, scratch);
            (key, Box::from(buffer.as_slice()), is_match)
        });
        let row = row.map_err(disk_error)?;
        if active.keys.is_empty() {
            let done = self.active.swap_remove(at);
            settle(self.opened, &done.group, &done.scan, trailer);
        }
        self.bound_memory();
        Ok(row)
    }

    fn bound_memory(&mut self) {
        self.rows_since_check += 1;
        if self.rows_since_check >= CHECK_ROWS {
            self.rows_since_check = 0;
            let kept: u64 = self.active.iter().map(|a| a.scan.kept_line_bytes()).sum();
            if kept > KEPT_BYTES_MAX {
                self.active.iter_mut().for_each(|a| a.scan.forget_rows());
            }
        }
    }

    /// Counts what the row groups that are still open have read, and names their damages.
    pub(super) fn finish(self, trailer: &mut Trailer) {
        for active in &self.active {
            settle(self.opened, &active.group, &active.scan, trailer);
        }
    }
}

fn order_key(key: &scan::Key) -> Key {
    Key {
        time: key.time,
        id: key.id,
    }
}

fn evaluator(filter: &Filter, range: TimeRange) -> Result<Evaluator, QueryError> {
    Evaluator::new(filter, range).map_err(|error| QueryError::Impossible(error.message))
}

/// Hands over the selected rows of every block, and counts them. `known` may count the rows of a
/// row group that the scope wants whole without reading it.
pub(super) fn each_block(
    view: &View,
    scope: &Scope,
    counts_only: bool,
    out: &mut Output,
    trailer: &mut Trailer,
    progress: &mut Progress,
    mut visit: impl FnMut(&mut GroupScan<'_>, Selected) -> Result<(), ReadError>,
) -> Result<(), QueryError> {
    let opened = Opened::new(view, scope.range, trailer);
    let evaluator = evaluator(&scope.filter, scope.range)?;
    for group in opened.groups(scope.range) {
        let mut scan = opened.scan(&group, &evaluator);
        if counts_only && let Some(rows) = scan.rows_known(evaluator.is_all(), scope.range) {
            trailer.rows += rows;
            continue;
        }
        let mut rows = 0;
        let mut cancelled = Ok(());
        scan.for_each_block(|scan, selected| {
            rows += selected.rows.len() as u64;
            visit(scan, selected)?;
            cancelled = progress.step(
                trailer.bytes_scanned + scan.bytes_read(),
                trailer.rows + rows,
                out,
            );
            Ok(cancelled.is_ok())
        })
        .map_err(disk_error)?;
        trailer.rows += rows;
        settle(&opened, &group, &scan, trailer);
        cancelled?;
    }
    Ok(())
}
