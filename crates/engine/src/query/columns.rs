//! Rows column by column, for engines that compute on columns.
//!
//! Where no order is asked for, this node's segments give their columns as they are, row groups side by
//! side; all else comes row by row, in order, and so that each row comes once whatever nodes fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use logpond_search::columns::{ColumnRequest, Columns, ColumnsBuilder};
use logpond_search::order::Direction;
use logpond_search::scan::GroupScan;

use super::journal_rows::Pass;
use super::output::Output;
use super::pond::EngineSnapshot;
use super::progress::Progress;
use super::reads::Reads;
use super::segment_rows::{Group, SegmentPass, each_block};
use super::{QueryError, Scope, Search, Trailer};

/// Rows without columns that are handed over at once: they take no memory.
const ROWS_BARE_MAX: u64 = 1 << 20;

/// Which rows are wanted, and what of them.
#[derive(Debug)]
pub struct ColumnsQuery {
    /// Which records.
    pub scope: Scope,
    /// What of them; may be nothing, then only their number counts.
    pub columns: Arc<[ColumnRequest]>,
    /// In which order; `None` is any.
    pub order: Option<Direction>,
    /// How many are enough; more may be handed over.
    pub limit: Option<u64>,
}

/// Takes rows; says whether further ones are wanted. Threads may call it side by side.
pub type TakeColumns<'t> = &'t (dyn Fn(Columns) -> bool + Sync);

/// Hands rows over, as long as they are wanted.
struct ColumnSink<'t> {
    take: TakeColumns<'t>,
    is_done: AtomicBool,
    rows: AtomicU64,
    unfit: AtomicU64,
}

impl<'t> ColumnSink<'t> {
    fn new(take: TakeColumns<'t>) -> ColumnSink<'t> {
        ColumnSink {
            take,
            is_done: AtomicBool::new(false),
            rows: AtomicU64::new(0),
            unfit: AtomicU64::new(0),
        }
    }

    /// Hands some over; says whether further ones are wanted.
    fn hand(&self, columns: Columns) -> bool {
        if columns.rows == 0 {
            return !self.is_done();
        }
        self.rows.fetch_add(columns.rows as u64, Ordering::Relaxed);
        self.unfit.fetch_add(columns.unfit, Ordering::Relaxed);
        if !(self.take)(columns) {
            self.is_done.store(true, Ordering::Relaxed);
        }
        !self.is_done()
    }

    fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Relaxed)
    }

    /// Says in the trailer how many rows left, and what they could not hold.
    fn finish(self, trailer: &mut Trailer) {
        trailer.rows = self.rows.into_inner();
        let unfit = self.unfit.into_inner();
        if unfit > 0 {
            trailer.miss(format_args!(
                "{unfit} values of fields that have got values of another type meanwhile: ask again"
            ));
        }
    }
}

/// Hands over rows in any order.
pub(super) fn in_any_order(
    snapshot: &EngineSnapshot<'_>,
    query: &ColumnsQuery,
    take: TakeColumns<'_>,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    let view = &snapshot.view;
    let handing = ColumnSink::new(take);
    let mut progress = Progress::new(false, view.bytes());
    // Columns are fields.
    let looks_at_fields = true;
    let mut builder = ColumnsBuilder::new(Arc::clone(&query.columns));
    let mut pass = Pass {
        arrived_after: None,
        looks_at_fields,
        view,
        known: &snapshot.engine.known,
        out,
        trailer,
        progress: &mut progress,
    };
    pass.matches(&query.scope, |record| {
        builder.add(record);
        if builder.is_full() {
            handing.hand(builder.take());
        }
    })?;
    if handing.hand(builder.take()) {
        let pass = SegmentPass {
            scan_pool: &snapshot.engine.scan_pool,
            kept: snapshot.engine.kept.columns(),
            view,
            scope: &query.scope,
            counts_only: false,
            looks_at_fields,
        };
        let visit = |scan: &mut GroupScan<'_>, _: &Group, (): &mut ()| {
            each_block(scan, |scan, selected| {
                if handing.is_done() {
                    return Ok(false);
                }
                let columns = scan.columns(&query.columns, &selected);
                columns.map(|columns| handing.hand(columns))
            })
        };
        let chosen = pass.choose(trailer);
        pass.run(&chosen, out, trailer, &mut progress, || (), visit)?;
    }
    handing.finish(trailer);
    Ok(())
}

/// Hands over rows in order: of all nodes, where there are several.
pub(super) fn in_order(
    reads: &impl Reads,
    query: &ColumnsQuery,
    take: TakeColumns<'_>,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    let handing = ColumnSink::new(take);
    let mut builder = ColumnsBuilder::new(Arc::clone(&query.columns));
    let mut search = Search::new(query.scope.copied());
    search.direction = query.order.unwrap_or(Direction::Forward);
    search.columns = Some(Arc::clone(&query.columns));
    search.limit = query.limit;
    let mut rows = 0;
    reads.each_row(&search, out, trailer, &mut |(_, row, _), out, _| {
        let added = builder.add_row(&row);
        added.map_err(|error| QueryError::Impossible(error.to_string()))?;
        rows += 1;
        if !builder.is_full() {
            return Ok(query.limit.is_none_or(|limit| rows < limit));
        }
        out.check()?;
        Ok(handing.hand(builder.take()) && query.limit.is_none_or(|limit| rows < limit))
    })?;
    handing.hand(builder.take());
    handing.finish(trailer);
    Ok(())
}

/// Hands over as many rows without columns as there are.
pub(super) fn bare(
    reads: &impl Reads,
    query: &ColumnsQuery,
    take: TakeColumns<'_>,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    let handing = ColumnSink::new(take);
    let search = Search::new(query.scope.copied());
    let mut left = reads.count(&search, out, trailer)?;
    while left > 0 {
        let rows = left.min(ROWS_BARE_MAX);
        left -= rows;
        let columns = Columns {
            rows: rows as usize,
            ..Columns::default()
        };
        if !handing.hand(columns) {
            break;
        }
    }
    handing.finish(trailer);
    Ok(())
}
