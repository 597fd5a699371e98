//! Reading the segment part of a view: rows in order, and tables.
//!
//! Row groups are opened in the order of time and only when their turn has come, and so are their blocks, so
//! the newest rows are found without reading the rest. What is open at a time are the row groups that
//! overlap in time, and a few ahead while nothing is found. Tables take row groups in any order.
//!
//! Where very many rows are of one time, none of their row groups can be left for later. Of each only the
//! rows that leave first are held then, and the rest is read again when its turn comes: memory is bounded
//! by [`KEYS_MAX`] and [`KEPT_BYTES_MAX`], whatever times rows have.

mod rows_ahead;
mod summaries;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use logpond_record::limits::UNLISTED_FIELD;
use logpond_record::{Id, TimeRange, Timestamp, cast};
use logpond_search::order::{Direction, Key};
use logpond_search::scan::{
    self, BlockSpan, ColumnCache, Evaluator, GroupScan, SegmentScan, SelectedRows,
};
use logpond_search::{Filter, Scratch};
use logpond_segment::file::{Directory, Manifest, ReadError, SegmentFile};

use super::journal_rows::{Row, Start};
use super::next_keys::NextKeys;
use super::output::Output;
use super::progress::Progress;
use super::spare_threads::ScanPool;
use super::view::{SegmentView, View};
use super::window::is_before;
use super::{QueryError, Scope, Search, Trailer};
use crate::store::LiveSegment;
use logpond_host::memory::Charge;
use rows_ahead::RowsAhead;
pub use summaries::{Summary, SummaryKind};

/// About the memory of decoded blocks that the open row groups keep together. Above it the rows that leave next
/// are rendered, and all blocks are forgotten; what is needed later is read again.
const KEPT_BYTES_MAX: usize = 96 << 20;

/// The part of the memory for queries and caches that this is at most.
const KEPT_SHARE: usize = 32;

/// Places of rows that are held at a time, of 48 bytes each: those of two row groups and more. Above it
/// each open row group holds its part of half of them.
const KEYS_MAX: usize = 1 << 18;

/// The part of the memory for decoded blocks that places of rows take at most beside it.
const KEYS_SHARE: usize = 4;

/// Row groups that are opened at a time where next to nothing was found before. Each may have its keys and
/// some decoded blocks in memory before its turn comes.
const GROUPS_AHEAD_MAX: usize = 8;

/// Rows that are next to nothing: the next ones will be asked for soon.
const ROWS_FEW: usize = 64;

/// The part of the memory for decoded blocks that one row group keeps when it is opened ahead of its turn.
const KEPT_AHEAD_SHARE: usize = 8;

/// Bits of the milliseconds that an id begins with.
const ID_MS_BITS: u32 = 48;

/// Rows between two looks at what is kept and whether anybody still reads.
const CHECK_ROWS: u32 = 256;

/// A segment of a view as it is read for it, with its directory, which row groups borrow from.
struct OpenSegment<'v> {
    viewed: &'v SegmentView,
    file: SegmentFile,
    directory: Arc<Directory>,
}

impl OpenSegment<'_> {
    fn scan<'s>(&'s self, evaluator: &'s Evaluator) -> SegmentScan<'s> {
        SegmentScan::new(
            &self.file,
            &self.directory,
            evaluator,
            &self.viewed.excluded,
        )
    }
}

/// The segments of a view that are read.
pub(super) struct OpenSegments<'v> {
    segments: Vec<OpenSegment<'v>>,
}

impl<'v> OpenSegments<'v> {
    /// Reads the directories of the segments that overlap a range; names those that are damaged.
    pub(super) fn new(view: &'v View, range: TimeRange, trailer: &mut Trailer) -> OpenSegments<'v> {
        let mut segments = Vec::new();
        for viewed in &view.segments {
            let segment = &viewed.segment;
            let manifest = segment.file().manifest();
            if !range.overlaps(manifest.time_min, manifest.time_max)
                || viewed.excluded.contains_all(segment.sources())
            {
                continue;
            }
            match segment.directory() {
                Ok(directory) => segments.push(OpenSegment {
                    viewed,
                    file: segment.counted(&view.costs),
                    directory,
                }),
                Err(error) => {
                    note_damage(segment, &error);
                    trailer.miss(describe(segment, &error));
                }
            }
        }
        OpenSegments { segments }
    }

    /// Names the segments with records of which not all fields are found by their names.
    pub(super) fn miss_unlisted(&self, trailer: &mut Trailer) {
        for reading in &self.segments {
            let fields = &reading.directory.counts.fields;
            if let Some(count) = fields.get(UNLISTED_FIELD) {
                let id = reading.file.manifest().id;
                trailer.miss_unlisted(count.total(), format_args!("segment {id}"));
            }
        }
    }

    /// Whether no segment overlaps the range.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Row groups that overlap a range.
    pub(super) fn groups(&self, range: TimeRange) -> Vec<Group> {
        let mut groups = Vec::new();
        for (segment, reading) in self.segments.iter().enumerate() {
            let ids = ids_of(reading.viewed.segment.file().manifest());
            for (number, group) in reading.directory.row_groups.iter().enumerate() {
                let (min, max) = group.time_bounds();
                if range.overlaps(Timestamp(min), Timestamp(max)) {
                    groups.push(Group {
                        min: Timestamp(min),
                        max: Timestamp(max),
                        ids,
                        segment,
                        number,
                    });
                }
            }
        }
        groups
    }

    /// Whether all rows of a row group are in a range, and none of them is left out.
    pub(super) fn is_whole(&self, group: &Group, range: TimeRange) -> bool {
        let viewed = self.segments[group.segment].viewed;
        let mut sources = viewed.segment.sources().iter();
        range.covers(group.min, group.max)
            && (viewed.excluded.is_empty()
                || !sources.any(|source| viewed.excluded.contains(source)))
    }

    /// The segment of a row group.
    pub(super) fn segment_id(&self, group: &Group) -> Id {
        let viewed = self.segments[group.segment].viewed;
        viewed.segment.file().manifest().id
    }

    /// Event times of the rows of a row group, in order, as far as they can be read.
    pub(super) fn times(
        &self,
        group: &Group,
        trailer: &mut Trailer,
    ) -> Result<Vec<Timestamp>, QueryError> {
        let evaluator = evaluator(&Filter::All, TimeRange::ALL)?;
        let segment = self.segments[group.segment].scan(&evaluator);
        let mut scan = GroupScan::new(&segment, group.number);
        let mut times = Vec::new();
        scan.for_each_block(|scan, selected| {
            let of_block = scan.block_times()?;
            let rows = selected.rows.iter();
            times.extend(rows.map(|row| Timestamp(of_block[*row as usize])));
            Ok(true)
        })
        .map_err(disk_error)?;
        times.sort_unstable();
        settle(self, group, &scan, trailer);
        Ok(times)
    }

    /// Scans of the segments.
    pub(super) fn scans<'s>(&'s self, evaluator: &'s Evaluator) -> Vec<SegmentScan<'s>> {
        let segments = self.segments.iter();
        segments.map(|reading| reading.scan(evaluator)).collect()
    }
}

/// A row group that may hold rows of an answer.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// Time of its first row.
    pub(super) min: Timestamp,
    /// Time of its last row.
    pub(super) max: Timestamp,
    /// Between which ids all of its segment are.
    ids: (Id, Id),
    segment: usize,
    number: usize,
}

impl Group {
    /// The number of its segment among those that are read.
    pub(super) fn segment(&self) -> usize {
        self.segment
    }

    /// Its place in its segment.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    fn scan<'s>(&self, segments: &'s [SegmentScan<'s>]) -> GroupScan<'s> {
        GroupScan::new(&segments[self.segment], self.number)
    }
}

/// Between which ids the rows of a segment are: ids begin with the time at which their rows came in.
fn ids_of(manifest: &Manifest) -> (Id, Id) {
    let ms = |received: Timestamp| u64::try_from(received.unix_ms()).ok();
    match (ms(manifest.received_min), ms(manifest.received_max)) {
        (Some(from), Some(to)) if from <= to && to < 1 << ID_MS_BITS => {
            let first = |ms: u64| u128::from(ms) << (u128::BITS - ID_MS_BITS);
            (Id(first(from)), Id(first(to + 1).wrapping_sub(1)))
        }
        _ => (Id::MIN, Id::MAX),
    }
}

/// Whoever sees to copies looks for another one. A disk that fails says nothing of the file.
fn note_damage(segment: &LiveSegment, error: &ReadError) {
    if matches!(error, ReadError::Damaged(_)) {
        segment.note_damage();
    }
}

fn describe(segment: &LiveSegment, error: &ReadError) -> String {
    let id = segment.file().manifest().id;
    match error {
        ReadError::Damaged(damage) => format!("segments/{id}.parquet: {damage}"),
        ReadError::Disk(error) => format!("segments/{id}.parquet: {error}"),
    }
}

/// Names in the trailer what a scan could not read, and counts what it read.
fn settle(opened: &OpenSegments<'_>, group: &Group, scan: &GroupScan<'_>, trailer: &mut Trailer) {
    trailer.bytes_scanned += scan.bytes_read();
    for damage in scan.damages() {
        let viewed = opened.segments[group.segment].viewed;
        viewed.segment.note_damage();
        let id = viewed.segment.file().manifest().id;
        let what = format!("segments/{id}.parquet: {damage}");
        // A row group may be read more than once.
        if !trailer.missing.contains(&what) {
            trailer.miss(what);
        }
    }
}

fn disk_error(error: std::io::Error) -> QueryError {
    QueryError::Disk(format!("a segment cannot be read: {error}"))
}

/// Rows of a row group that are to be read when their turn has come.
#[derive(Clone, Copy)]
struct Turn {
    group: Group,
    /// None of the rows leaves before this.
    first: Key,
    /// None leaves at this or behind it, if it is known.
    end: Option<Key>,
}

impl Turn {
    /// All rows of a row group.
    fn of(group: Group, direction: Direction) -> Turn {
        let first = match direction {
            Direction::Forward => (group.min, group.ids.0),
            Direction::Backward => (group.max, group.ids.1),
        };
        Turn {
            group,
            first: Key {
                time: first.0,
                id: first.1,
            },
            end: None,
        }
    }

    fn has(&self, direction: Direction, key: Key) -> bool {
        !is_before(direction, key, self.first)
            && self.end.is_none_or(|end| is_before(direction, key, end))
    }

    /// Whether a block may have some of them.
    fn may_have(&self, direction: Direction, block: &BlockSpan) -> bool {
        let (earliest, latest) = match direction {
            Direction::Forward => (Some(self.first), self.end),
            Direction::Backward => (self.end, Some(self.first)),
        };
        earliest.is_none_or(|key| block.max >= key.time)
            && latest.is_none_or(|key| block.min <= key.time)
    }
}

/// An open row group.
struct Active<'s> {
    turn: Turn,
    scan: GroupScan<'s>,
    /// The selected rows of the blocks that were read.
    keys: NextKeys,
    ahead: RowsAhead,
    /// Blocks that were not read yet, the next one last.
    waiting: Vec<BlockSpan>,
}

impl<'s> Active<'s> {
    fn new(turn: Turn, mut scan: GroupScan<'s>, search: &Search) -> io::Result<Active<'s>> {
        let mut waiting = scan.blocks()?;
        waiting.retain(|block| {
            search.looks_between(block.min, block.max) && turn.may_have(search.direction, block)
        });
        match search.direction {
            Direction::Forward => waiting.sort_by_key(|block| std::cmp::Reverse(block.min)),
            Direction::Backward => waiting.sort_by_key(|block| block.max),
        }
        Ok(Active {
            turn,
            scan,
            keys: NextKeys::new(search.direction),
            ahead: RowsAhead::default(),
            waiting,
        })
    }

    /// Reads blocks in the order of time until there are some rows more.
    fn read_some(&mut self, search: &Search, start: &Start) -> io::Result<()> {
        let mut keys = Vec::new();
        while keys.len() < ROWS_FEW
            && let Some(block) = self.waiting.pop()
        {
            let before = keys.len();
            self.scan.visit_block(block.number, |scan, selected| {
                scan.keys(&selected, &mut keys).map(|()| true)
            })?;
            let turn = &self.turn;
            let is_wanted = |key: &scan::Key| {
                let place = order_key(key);
                search.looks_at(key.time)
                    && start.is_before(place)
                    && turn.has(search.direction, place)
            };
            let mut at = 0;
            keys.retain(|key| {
                at += 1;
                at <= before || is_wanted(key)
            });
        }
        self.keys.extend(keys);
        Ok(())
    }

    fn next(&self) -> Option<Key> {
        self.keys.peek().map(order_key)
    }

    /// Goes on with the first so many of its rows only, at least one; gives the others, if there are some.
    fn keep_first(&mut self, count: usize) -> Option<Turn> {
        let first = order_key(&self.keys.keep_first(count)?);
        self.ahead.clear();
        let rest = Turn { first, ..self.turn };
        self.turn.end = Some(first);
        Some(rest)
    }

    /// Whether a block that was not read yet may have a row that leaves before this one.
    fn may_have_before(&self, direction: Direction, key: Option<Key>) -> bool {
        let block = self.waiting.last();
        block.is_some_and(|block| may_come_first(direction, (block.min, block.max), key))
    }

    fn is_done(&self) -> bool {
        self.keys.len() == 0 && self.waiting.is_empty()
    }
}

/// Whether something with rows from one time to another may have one that leaves before a key.
fn may_come_first(
    direction: Direction,
    (min, max): (Timestamp, Timestamp),
    key: Option<Key>,
) -> bool {
    key.is_none_or(|key| match direction {
        Direction::Forward => min <= key.time,
        Direction::Backward => max >= key.time,
    })
}

/// The segments' rows in order.
pub(super) struct SegmentRows<'s> {
    scan_pool: &'s ScanPool,
    opened: &'s OpenSegments<'s>,
    segments: &'s [SegmentScan<'s>],
    search: &'s Search,
    start: Start,
    /// Rows of row groups that are not open, the next ones last.
    waiting: Vec<Turn>,
    active: Vec<Active<'s>>,
    /// Places of rows that are held at a time: [`KEYS_MAX`], or fewer where memory is small.
    keys_max: usize,
    /// Row groups that are opened at a time.
    groups_ahead: usize,
    scratch: Scratch,
    buffer: Vec<u8>,
    rows_since_check: u32,
    /// Rows that have left.
    rows_left: u64,
    kept_bytes_max: usize,
    /// Bytes that are taken before the first block is read: a query that could not go on should not begin.
    reserved: usize,
    charge: Charge,
}

impl<'s> SegmentRows<'s> {
    pub(super) fn new(
        scan_pool: &'s ScanPool,
        opened: &'s OpenSegments<'s>,
        segments: &'s [SegmentScan<'s>],
        search: &'s Search,
        out: &mut Output,
    ) -> Result<SegmentRows<'s>, QueryError> {
        let direction = search.direction;
        let mut groups = opened.groups(search.scope.range);
        groups.retain(|group| search.looks_between(group.min, group.max));
        let mut waiting: Vec<Turn> = groups.iter().map(|g| Turn::of(*g, direction)).collect();
        waiting.sort_by(|a, b| direction.compare(b.first, a.first));
        let kept_bytes_max = out.share(KEPT_SHARE, KEPT_BYTES_MAX);
        let mut rows = SegmentRows {
            scan_pool,
            opened,
            segments,
            search,
            start: Start::of(search),
            waiting,
            active: Vec::new(),
            keys_max: KEYS_MAX.min(kept_bytes_max / KEYS_SHARE / size_of::<scan::Key>()),
            groups_ahead: if search.scope.filter == search.scope.surroundings() {
                1
            } else {
                2
            },
            scratch: Scratch::new(),
            buffer: Vec::new(),
            rows_since_check: 0,
            rows_left: 0,
            kept_bytes_max,
            reserved: 0,
            charge: out.charge(),
        };
        rows.reserved = rows.first_blocks_bytes();
        rows.bound_memory(out)?;
        Ok(rows)
    }

    /// The evaluator for the rows of a search: with context every row is wanted.
    pub(super) fn evaluator(search: &Search) -> Result<Evaluator, QueryError> {
        if search.has_context() {
            evaluator(&search.scope.surroundings(), search.scope.range)
        } else {
            evaluator(&search.scope.filter, search.scope.range)
        }
    }

    /// The key of the next row.
    pub(super) fn peek(
        &mut self,
        out: &mut Output,
        trailer: &mut Trailer,
        progress: &mut Progress,
    ) -> Result<Option<Key>, QueryError> {
        let direction = self.search.direction;
        loop {
            let next = self.first();
            let key = next.map(|(key, _)| key);
            if self.read_blocks_before(key, out)? {
                continue;
            }
            let turn = self.waiting.last();
            let may_come_first =
                |turn: &Turn| key.is_none_or(|key| !is_before(direction, key, turn.first));
            if !turn.is_some_and(may_come_first) {
                return Ok(key);
            }
            self.open_next(out, trailer, progress)?;
            self.bound_keys(out)?;
        }
    }

    /// Leaves rows for later, of each open row group those that leave last, if too many are held.
    fn bound_keys(&mut self, out: &mut Output) -> Result<(), QueryError> {
        let held: usize = self.active.iter().map(|active| active.keys.len()).sum();
        if held > self.keys_max {
            let direction = self.search.direction;
            let each = (self.keys_max / 2 / self.active.len()).max(ROWS_FEW);
            let left = self.active.iter_mut().filter_map(|a| a.keep_first(each));
            for turn in left {
                let is_later = |w: &Turn| !is_before(direction, w.first, turn.first);
                let at = self.waiting.partition_point(is_later);
                self.waiting.insert(at, turn);
            }
        }
        self.bound_memory(out)
    }

    /// Reads some more of an open row group that may have a row before this key. Gives whether there was
    /// one.
    fn read_blocks_before(
        &mut self,
        key: Option<Key>,
        out: &mut Output,
    ) -> Result<bool, QueryError> {
        let direction = self.search.direction;
        let mut active = self.active.iter_mut();
        let Some(active) = active.find(|active| active.may_have_before(direction, key)) else {
            return Ok(false);
        };
        active
            .read_some(self.search, &self.start)
            .map_err(disk_error)?;
        self.bound_keys(out)?;
        Ok(true)
    }

    fn first(&self) -> Option<(Key, usize)> {
        let mut first: Option<(Key, usize)> = None;
        for (at, active) in self.active.iter().enumerate() {
            if let Some(key) = active.next()
                && first.is_none_or(|(best, _)| is_before(self.search.direction, key, best))
            {
                first = Some((key, at));
            }
        }
        first
    }

    /// Opens the next row groups: one or two, and more of them the longer next to nothing was
    /// found.
    fn open_next(
        &mut self,
        out: &mut Output,
        trailer: &mut Trailer,
        progress: &mut Progress,
    ) -> Result<(), QueryError> {
        let kept = self.waiting.len().saturating_sub(self.groups_ahead);
        let mut turns = self.waiting.split_off(kept);
        turns.reverse();
        let (bytes, rows) = (trailer.bytes_scanned, trailer.rows);
        let open = |opened: &mut Vec<_>, number: usize| {
            opened.push((number, self.open(turns[number])));
        };
        let check = || progress.step(bytes, rows, out);
        let opened = self.scan_pool.share(turns.len(), Vec::new, open, check)?;
        let mut opened: Vec<_> = opened.into_iter().flatten().collect();
        opened.sort_unstable_by_key(|(number, _)| *number);
        let mut found = 0;
        for (_, active) in opened {
            let active = active?;
            if active.is_done() {
                settle(self.opened, &active.turn.group, &active.scan, trailer);
            } else {
                found += active.keys.len();
                self.active.push(active);
            }
        }
        self.bound_memory(out)?;
        self.groups_ahead = if found > ROWS_FEW {
            1
        } else {
            (self.groups_ahead * 2).min(GROUPS_AHEAD_MAX)
        };
        Ok(())
    }

    fn open(&self, turn: Turn) -> Result<Active<'s>, QueryError> {
        let scan = turn.group.scan(self.segments);
        let mut active = Active::new(turn, scan, self.search).map_err(disk_error)?;
        active
            .read_some(self.search, &self.start)
            .map_err(disk_error)?;
        let kept_max = self.kept_bytes_max / KEPT_AHEAD_SHARE;
        if cast::to_usize(active.scan.kept_bytes()) > kept_max && self.groups_ahead > 1 {
            active.scan.forget();
        }
        Ok(active)
    }

    /// The next row, after [`SegmentRows::peek`]; `None` if its block turns out to be damaged.
    pub(super) fn pop(
        &mut self,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<Option<Row>, QueryError> {
        let Some((_, at)) = self.first() else {
            return Ok(None);
        };
        let active = &mut self.active[at];
        let Some(stored) = active.keys.pop() else {
            return Ok(None);
        };
        let is_decoded = active.scan.is_kept(&stored);
        let ahead = active.ahead.take(&stored);
        let is_read = ahead.is_none() && !is_decoded;
        let row = match ahead {
            Some(row) => Some(row),
            None => self.render(at, stored)?,
        };
        let active = &self.active[at];
        if active.is_done() {
            let done = self.active.swap_remove(at);
            settle(self.opened, &done.turn.group, &done.scan, trailer);
        }
        self.rows_left += 1;
        self.rows_since_check += 1;
        if is_read || self.rows_since_check >= CHECK_ROWS {
            self.bound_memory(out)?;
        }
        Ok(row)
    }

    /// Counts what the row groups that are still open have read, and names their damages.
    pub(super) fn finish(self, trailer: &mut Trailer) {
        for active in &self.active {
            settle(self.opened, &active.turn.group, &active.scan, trailer);
        }
    }
}

pub(super) fn order_key(key: &scan::Key) -> Key {
    Key {
        time: key.time,
        id: key.id,
    }
}

fn evaluator(filter: &Filter, range: TimeRange) -> Result<Evaluator, QueryError> {
    Evaluator::new(filter, range).map_err(|error| QueryError::Impossible(error.message))
}

/// The table of one thread.
struct PartialTable<T> {
    table: T,
    trailer: Trailer,
    failed: Option<io::Error>,
}

/// A pass over the selected rows of all row groups.
pub(super) struct SegmentPass<'a> {
    pub(super) scan_pool: &'a ScanPool,
    /// Columns of earlier passes.
    pub(super) kept: &'a ColumnCache,
    pub(super) view: &'a View,
    pub(super) scope: &'a Scope,
    /// Whether row groups that the scope wants whole are counted without being read.
    pub(super) counts_only: bool,
    /// True if the answer depends on names of fields.
    pub(super) looks_at_fields: bool,
}

/// Row groups with the segments that they are of.
pub(super) struct GroupSelection<'v> {
    pub(super) opened: OpenSegments<'v>,
    pub(super) groups: Vec<Group>,
}

impl<'a> SegmentPass<'a> {
    /// The row groups that overlap the scope's range.
    pub(super) fn choose(&self, trailer: &mut Trailer) -> GroupSelection<'a> {
        let opened = OpenSegments::new(self.view, self.scope.range, trailer);
        if self.looks_at_fields {
            opened.miss_unlisted(trailer);
        }
        let groups = opened.groups(self.scope.range);
        GroupSelection { opened, groups }
    }

    /// Hands over every row group with a table of the thread, and counts the rows that `visit` says it
    /// selected. Gives the tables.
    pub(super) fn run<T: Send>(
        &self,
        GroupSelection { opened, groups }: &GroupSelection<'_>,
        out: &mut Output,
        trailer: &mut Trailer,
        progress: &mut Progress,
        new_table: impl Fn() -> T + Sync,
        visit: impl Fn(&mut GroupScan<'_>, &Group, &mut T) -> io::Result<u64> + Sync,
    ) -> Result<Vec<T>, QueryError> {
        let evaluator = evaluator(&self.scope.filter, self.scope.range)?;
        let segments = opened.scans(&evaluator).into_iter();
        let segments: Vec<_> = segments.map(|scan| scan.keeping(self.kept)).collect();
        let new = || PartialTable {
            table: new_table(),
            trailer: Trailer::default(),
            failed: None,
        };
        let (bytes, rows) = (AtomicU64::new(0), AtomicU64::new(0));
        let work = |gathered: &mut PartialTable<T>, number: usize| {
            let (bytes_before, rows_before) =
                (gathered.trailer.bytes_scanned, gathered.trailer.rows);
            let scan = groups[number].scan(&segments);
            self.fill(opened, &groups[number], scan, gathered, &visit);
            let trailer = &gathered.trailer;
            bytes.fetch_add(trailer.bytes_scanned - bytes_before, Ordering::Relaxed);
            rows.fetch_add(trailer.rows - rows_before, Ordering::Relaxed);
        };
        let (bytes_before, rows_before) = (trailer.bytes_scanned, trailer.rows);
        let check = || {
            let bytes = bytes_before + bytes.load(Ordering::Relaxed);
            progress.step(bytes, rows_before + rows.load(Ordering::Relaxed), out)
        };
        let all = self.scan_pool.share(groups.len(), new, work, check)?;
        // A part may have ended early for want of memory.
        out.check()?;
        let mut tables = Vec::with_capacity(all.len());
        for gathered in all {
            if let Some(error) = gathered.failed {
                return Err(disk_error(error));
            }
            trailer.add(gathered.trailer);
            tables.push(gathered.table);
        }
        // Which thread found what is by chance.
        trailer.missing.sort_unstable();
        Ok(tables)
    }

    fn fill<T>(
        &self,
        opened: &OpenSegments<'_>,
        group: &Group,
        mut scan: GroupScan<'_>,
        gathered: &mut PartialTable<T>,
        visit: impl Fn(&mut GroupScan<'_>, &Group, &mut T) -> io::Result<u64>,
    ) {
        if self.counts_only
            && let Some(rows) = scan.rows_known()
        {
            gathered.trailer.rows += rows;
            return;
        }
        match visit(&mut scan, group, &mut gathered.table) {
            Ok(rows) => gathered.trailer.rows += rows,
            Err(error) => _ = gathered.failed.get_or_insert(error),
        }
        settle(opened, group, &scan, &mut gathered.trailer);
    }
}

/// Hands over the selected rows of every block of a row group until `visit` wants no more; gives how many
/// they are.
pub(super) fn each_block(
    scan: &mut GroupScan<'_>,
    mut visit: impl FnMut(&mut GroupScan<'_>, SelectedRows) -> Result<bool, ReadError>,
) -> io::Result<u64> {
    let mut rows = 0;
    scan.for_each_block(|scan, selected| {
        rows += selected.rows.len() as u64;
        visit(scan, selected)
    })?;
    Ok(rows)
}

#[cfg(test)]
mod tests;
