//! Answers over the whole pond: the journal and the segments.

use std::sync::Arc;

use logpond_record::{TimeRange, Timestamp};
use logpond_search::metric::Plan;
use logpond_search::order::Key;
use logpond_search::scan::{self, GroupScan};
use logpond_segment::disk::Disk;
use logpond_segment::journal::Visible;
use serde_json::Value;

use super::aggregates::Table;
use super::follow::Follower;
use super::journal_rows::{JournalCache, JournalRows, Pass, Start};
use super::kept::Cache;
use super::output::Output;
use super::progress::Progress;
use super::reads::{Reads, Visit};
use super::segment_rows::{Group, OpenSegments, SegmentPass, SegmentRows, each_block, order_key};
use super::segment_tables::SegmentTables;
use super::spare_threads::ScanPool;
use super::surroundings::{ContextRows, ContextWindow};
use super::view::View;
use super::window::is_before;
use super::{
    AnyTable, ColumnsQuery, Engine, LineAnswer, LineQuery, Maintenance, NumberAnswer, QueryError,
    Scope, Search, TakeColumns, Trailer, columns, files, logql, rows,
};
use crate::ingest::Changes;
use crate::store::{LiveSet, Store};
use logpond_host::memory::{Budget, GivesWay};

/// Answers from the journal and the segments.
pub struct LocalEngine {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) visible: Arc<Visible>,
    pub(super) live: LiveSet,
    pub(super) changes: Changes,
    pub(super) known: Arc<JournalCache>,
    pub(super) scan_pool: ScanPool,
    pub(super) kept: Arc<Cache>,
    pub(super) budget: Arc<Budget>,
    store: Store,
}

/// Directories of segments give way, too.
struct Directories(LiveSet);

impl GivesWay for Directories {
    fn bytes(&self) -> usize {
        self.0.directory_bytes()
    }

    fn give_way(&self, bytes: usize) -> usize {
        self.0.forget_unused(bytes)
    }
}

impl LocalEngine {
    /// An engine over what `visible` and `live` show, within a budget of memory; `changes` wakes its
    /// followers.
    pub fn new(
        disk: Arc<dyn Disk>,
        (visible, live): (Arc<Visible>, LiveSet),
        changes: Changes,
        store: Store,
        budget: Arc<Budget>,
    ) -> LocalEngine {
        let known = Arc::new(JournalCache::within(&budget));
        let kept = Arc::new(Cache::within(&budget));
        // In the order in which they give way.
        budget.add_cache(kept.clone());
        budget.add_cache(known.clone());
        budget.add_cache(Arc::new(Directories(live.clone())));
        LocalEngine {
            disk,
            visible,
            live,
            changes,
            known,
            scan_pool: ScanPool::new(),
            kept,
            budget,
            store,
        }
    }

    /// The memory that its queries share.
    pub fn budget(&self) -> Arc<Budget> {
        Arc::clone(&self.budget)
    }

    /// All that this node has, at this moment.
    pub(super) fn look(&self) -> Result<EngineSnapshot<'_>, QueryError> {
        // Before the view, so that no change between the two is missed.
        let seen = self.changes.count();
        let view = View::take(&*self.disk, &self.visible, &self.live)?;
        Ok(EngineSnapshot {
            engine: self,
            view,
            seen,
        })
    }

    /// Emits the answer of a search, and what follows if it is followed.
    fn answer(
        &self,
        search: &Search,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<(), QueryError> {
        if search.positions.is_some() {
            return Err(QueryError::Unsupported(
                "a node alone has no positions; go on with the cursor of the last row",
            ));
        }
        let look = self.look()?;
        look.view.note_missing(&[search.scope.range], trailer);
        let outcome = self.answer_from(&look, search, out, trailer);
        look.view.note_costs(trailer);
        outcome
    }

    fn answer_from(
        &self,
        look: &EngineSnapshot<'_>,
        search: &Search,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<(), QueryError> {
        if search.is_strict && trailer.missing_count > 0 {
            return Ok(());
        }
        if search.is_count {
            return rows::count(look, search, out, trailer);
        }
        rows::emit(look, search, out, trailer)?;
        if search.is_followed {
            out.flush()?;
            Follower::new(self, search, &look.view, look.seen).run(out, trailer)?;
        }
        Ok(())
    }

    fn look_and_note(
        &self,
        ranges: &[TimeRange],
    ) -> Result<(EngineSnapshot<'_>, Trailer), QueryError> {
        let (look, mut trailer) = (self.look()?, Trailer::default());
        look.view.note_missing(ranges, &mut trailer);
        Ok((look, trailer))
    }

    /// Event time of the newest record of this node, as far as it is known without reading.
    pub(super) fn newest_time(&self) -> Option<Timestamp> {
        let segments = self.live.snapshot();
        let stored = segments.iter().map(|s| s.file().manifest().time_max).max();
        stored.max(self.known.newest.get())
    }

    /// What the trailer says of every answer.
    fn finish(&self, look: &EngineSnapshot<'_>, mut trailer: Trailer) -> Trailer {
        look.view.note_costs(&mut trailer);
        self.end(trailer)
    }

    /// What the trailer says of answers of rows.
    pub(super) fn end(&self, mut trailer: Trailer) -> Trailer {
        if !trailer.has_more {
            trailer.cursor = None;
        }
        trailer.newest = self.newest();
        trailer
    }
}

/// Records that a table takes from the journal between two looks at its memory.
const CHARGE_ROWS: u64 = 256;

/// The records of this node at one moment, or a share of them.
pub(super) struct EngineSnapshot<'a> {
    pub(super) engine: &'a LocalEngine,
    pub(super) view: View,
    /// Changes of the journal that the view has.
    pub(super) seen: u64,
}

impl Reads for EngineSnapshot<'_> {
    fn each_row(
        &self,
        search: &Search,
        out: &mut Output,
        trailer: &mut Trailer,
        visit: Visit<'_>,
    ) -> Result<(), QueryError> {
        let (engine, view) = (self.engine, &self.view);
        let mut progress = Progress::new(search.wants_progress, view.bytes());
        let opened = OpenSegments::new(view, search.scope.range, trailer);
        if search.scope.looks_at_fields {
            opened.miss_unlisted(trailer);
        }
        let evaluator = SegmentRows::evaluator(search)?;
        let scans = opened.scans(&evaluator);
        let mut segments = SegmentRows::new(&engine.scan_pool, &opened, &scans, search, out)?;
        let mut journal = JournalRows::new(search, view);
        loop {
            let stored = segments.peek(out, trailer, &mut progress)?;
            let mut pass = Pass {
                arrived_after: search.arrived_after(),
                looks_at_fields: search.scope.looks_at_fields,
                view,
                known: &engine.known,
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
                segments.pop(out, trailer)?
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

    fn surroundings(
        &self,
        search: &Search,
        matches: &[Timestamp],
        _: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<Option<Vec<TimeRange>>, QueryError> {
        // Rows that may not be shown do not count, and the times of row groups do not tell which these are.
        if search.scope.only().is_some() {
            return Ok(None);
        }
        // What cannot be opened is named by the rows.
        let opened = OpenSegments::new(&self.view, search.scope.range, &mut Trailer::default());
        if opened.is_empty() {
            return Ok(None);
        }
        let groups = opened.groups(search.scope.range);
        let bounds = groups.iter().map(|group| (group.min, group.max)).collect();
        let wanted = ContextWindow {
            rows: search.rows_before.max(search.rows_after),
            range: search.scope.range,
            direction: search.direction,
        };
        let times = |at: usize| opened.times(&groups[at], trailer);
        ContextRows::new(wanted, bounds, times)
            .of(matches)
            .map(Some)
    }

    fn count(
        &self,
        search: &Search,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<u64, QueryError> {
        let (engine, view) = (self.engine, &self.view);
        let start = Start::of(search);
        let mut progress = Progress::new(search.wants_progress, view.bytes());
        let mut in_journal = 0;
        let mut pass = Pass {
            arrived_after: search.arrived_after(),
            looks_at_fields: search.scope.looks_at_fields,
            view,
            known: &engine.known,
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
            scan_pool: &engine.scan_pool,
            kept: engine.kept.columns(),
            view,
            scope: &search.scope,
            counts_only: !has_start,
            looks_at_fields: search.scope.looks_at_fields,
        };
        let count = |scan: &mut GroupScan<'_>, _: &Group, before_start: &mut u64| {
            each_block(scan, |scan, selected| {
                if has_start {
                    let mut keys = Vec::new();
                    scan.keys(&selected, &mut keys)?;
                    let left = |key: &scan::Key| !start.is_before(order_key(key));
                    *before_start += keys.iter().filter(|key| left(key)).count() as u64;
                }
                Ok(true)
            })
        };
        let chosen = pass.choose(trailer);
        let before_start = pass.run(&chosen, out, trailer, &mut progress, || 0, count)?;
        let before_start: u64 = before_start.into_iter().sum();
        Ok(in_journal + trailer.rows - before_start)
    }

    fn table<T: Table>(
        &self,
        scope: &Scope,
        empty: &T,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<T, QueryError> {
        let (engine, view) = (self.engine, &self.view);
        let mut progress = Progress::new(false, view.bytes());
        let (mut table, mut rows) = (empty.clone(), 0_u64);
        let looks_at_fields = scope.looks_at_fields || empty.looks_at_fields();
        let mut charge = out.charge();
        let mut pass = Pass {
            arrived_after: None,
            looks_at_fields,
            view,
            known: &engine.known,
            out,
            trailer,
            progress: &mut progress,
        };
        pass.matches(scope, |record| {
            rows += 1;
            table.add(record);
            if rows.is_multiple_of(CHARGE_ROWS) {
                // The pass ends soon if there is no more memory.
                charge.set_soon(table.bytes());
            }
        })?;
        out.take(&mut charge, table.bytes())?;
        let pass = SegmentPass {
            scan_pool: &engine.scan_pool,
            kept: engine.kept.columns(),
            view,
            scope,
            counts_only: false,
            looks_at_fields,
        };
        let stored = SegmentTables {
            pass,
            kept: &engine.kept,
            empty,
        };
        let stored = stored.fill(out, trailer, &mut progress)?;
        table.merge(stored);
        // For as long as the answer is made of it.
        charge.leave();
        trailer.rows += rows;
        Ok(table)
    }
}

impl Engine for LocalEngine {
    fn search(&self, search: &Search, out: &mut Output) -> Result<Trailer, QueryError> {
        let mut trailer = Trailer::default();
        let outcome = self.answer(search, out, &mut trailer);
        trailer.end(outcome.map_err(|error| out.explained(error)))?;
        Ok(self.end(trailer))
    }

    fn table(
        &self,
        scope: &Scope,
        empty: Box<dyn AnyTable>,
        out: &mut Output,
    ) -> Result<(Box<dyn AnyTable>, Trailer), QueryError> {
        let (look, mut trailer) = self.look_and_note(&[scope.range])?;
        let table = look.table(scope, &empty, out, &mut trailer)?;
        Ok((table, self.finish(&look, trailer)))
    }

    fn lines(&self, query: &LineQuery, out: &mut Output) -> Result<LineAnswer, QueryError> {
        let (look, mut trailer) = self.look_and_note(&[query.range])?;
        let mut answer = logql::lines(&look, query, out, &mut trailer)?;
        answer.trailer = self.finish(&look, trailer);
        Ok(answer)
    }

    fn numbers(&self, plan: &Plan, out: &mut Output) -> Result<NumberAnswer, QueryError> {
        let ranges: Vec<_> = plan.leaves().iter().map(|leaf| leaf.range()).collect();
        let (look, mut trailer) = self.look_and_note(&ranges)?;
        let mut answer = logql::numbers(&look, plan, out, &mut trailer)?;
        answer.trailer = self.finish(&look, trailer);
        Ok(answer)
    }

    fn columns(
        &self,
        query: &ColumnsQuery,
        take: TakeColumns<'_>,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        let (look, mut trailer) = self.look_and_note(&[query.scope.range])?;
        match query.order {
            _ if query.columns.is_empty() => columns::bare(&look, query, take, out, &mut trailer),
            Some(_) => columns::in_order(&look, query, take, out, &mut trailer),
            None => columns::in_any_order(&look, query, take, out, &mut trailer),
        }?;
        Ok(self.finish(&look, trailer))
    }

    fn newest(&self) -> Option<Timestamp> {
        self.newest_time()
    }

    // Only a cluster declares a node lost.
    fn losses(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Maintenance for LocalEngine {
    fn files(&self) -> (Vec<Value>, Trailer) {
        files::list(self)
    }

    fn compact(&self, cold: bool, is_wanted: &mut dyn FnMut() -> bool) -> Result<(), QueryError> {
        let done = self.store.compact_all(cold, &mut || !is_wanted());
        done.map_err(|error| QueryError::Impossible(error.to_string()))
    }
}
