//! Answers over all nodes of the cluster, put together by the one that is asked.
//!
//! ```text
//! gather: what does each node hold? ─▶ Question ─▶ tasks ─▶ calls: one for each node, and others
//!            ▲                            ▲                    │     for what is late
//!            │                            └──── receipts ◀─────┤
//!            └── what a node could not do is planned anew ◀────┤
//!                                                              ▼ rows in order, tables
//! ```
//!
//! Invariants:
//! - A source is in the share of one node at a time, so no row is counted twice, whatever copies
//!   there are; a share that failed is thrown away (tables) or continued behind its last row.
//! - What is claimed follows from receipts, not from what was planned.
//! - This node's own share takes the same way, without a socket.
//! - Who is asked for what, and what may be claimed, is decided by the machine that the simulation
//!   runs, too.
//!
//! Who follows gets what nodes take in as it comes; see `follow`.

mod calls;
mod files;
mod follow;
mod followed;
mod gather;
mod hedging;
mod local;
mod nodes;
mod reads;
mod streams;
mod whole;

use std::io::Read;
use std::sync::{Arc, Mutex};

use logpond_cluster::{Indexed, StoredUnion};
use logpond_record::{TimeRange, Timestamp};
use logpond_search::aggregate::{
    FieldTypes, FieldsAnswer, HistogramSpec, PatternsAnswer, StreamRow, StreamsAsked,
};
use logpond_search::metric::Plan;
use logpond_segment::sources::SourceSet;

use super::output::Output;
use super::pond::Pond;
use super::{
    ColumnsQuery, Engine, LineAnswer, LineQuery, NumberAnswer, QueryError, Scope, Search,
    TakeColumns, Trailer, columns, logql, rows, tables,
};
use gather::Gathered;
use hedging::Hedging;
use logpond_host::clock;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::Metrics;
pub use nodes::{Nodes, Unreachable};

/// Answers from all nodes.
#[derive(Clone)]
pub struct Cluster {
    pond: Arc<Pond>,
    nodes: Arc<dyn Nodes>,
    /// What the nodes of the last answer have in segments; few of them change from one to the next.
    stored: Arc<Mutex<StoredUnion>>,
    hedging: Arc<Hedging>,
    shutdown: Shutdown,
}

/// What a node says.
type Reader = Box<dyn Read + Send>;

impl Cluster {
    /// An engine over what this node holds and the others.
    pub fn new(
        pond: Arc<Pond>,
        nodes: Arc<dyn Nodes>,
        metrics: &Metrics,
        shutdown: Shutdown,
    ) -> Cluster {
        let hedging: Arc<Hedging> = Arc::default();
        hedging.expose(metrics);
        Cluster {
            pond,
            nodes,
            stored: Arc::default(),
            hedging,
            shutdown,
        }
    }

    /// What these nodes have in segments, all together.
    fn stored<'a>(&self, held: impl IntoIterator<Item = &'a Arc<Indexed>>) -> Arc<SourceSet> {
        let mut stored = self.stored.lock().unwrap_or_else(|poisoned| {
            // A change that a panic has cut short is half done.
            self.stored.clear_poison();
            let mut stored = poisoned.into_inner();
            *stored = StoredUnion::default();
            stored
        });
        stored.of(held)
    }

    fn finish(&self, gathered: &Gathered<'_>, mut trailer: Trailer) -> Trailer {
        gathered.judge(&mut trailer);
        if !trailer.has_more {
            trailer.cursor = None;
        }
        trailer.newest = trailer.newest.max(self.pond.newest_time());
        trailer
    }

    /// Makes a table over all nodes.
    fn table<T>(
        &self,
        make: impl FnOnce(&Gathered<'_>, &mut Trailer) -> Result<T, QueryError>,
    ) -> Result<(T, Trailer), QueryError> {
        let gathered = Gathered::new(self);
        let mut trailer = Trailer::default();
        let table = make(&gathered, &mut trailer)?;
        Ok((table, self.finish(&gathered, trailer)))
    }
}

impl Engine for Cluster {
    fn search(&self, search: &Search, out: &mut Output) -> Result<Trailer, QueryError> {
        if search.is_followed && !search.is_count {
            return follow::run(self, search, out);
        }
        let since = clock::now();
        let gathered = Gathered::new(self);
        let mut trailer = Trailer::default();
        if search.is_strict && gathered.lacks_something(search.scope.range) {
            return Ok(self.finish(&gathered, trailer));
        }
        let outcome = match search.is_count {
            true => rows::count(&gathered, search, out, &mut trailer),
            false => rows::emit(&gathered, search, out, &mut trailer),
        };
        trailer.end(outcome.map_err(|error| out.explained(error)))?;
        if search.wants_positions {
            let since = search.limit.map(|_| since);
            trailer.position = Some(gathered.positions(since).to_text());
        }
        Ok(self.finish(&gathered, trailer))
    }

    fn top(
        &self,
        scope: &Scope,
        field: &str,
        count_max: usize,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        let make = |all: &Gathered<'_>, trailer: &mut Trailer| {
            tables::top(all, scope, field, count_max, out, trailer)
        };
        self.table(make).map(|((), trailer)| trailer)
    }

    fn histogram(
        &self,
        scope: &Scope,
        spec: &HistogramSpec,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        let make = |all: &Gathered<'_>, trailer: &mut Trailer| {
            tables::histogram(all, scope, spec, out, trailer)
        };
        self.table(make).map(|((), trailer)| trailer)
    }

    fn patterns(
        &self,
        scope: &Scope,
        range: TimeRange,
        step_ns: i64,
        count_max: usize,
        out: &mut Output,
    ) -> Result<(PatternsAnswer, Trailer), QueryError> {
        let buckets = (range, step_ns);
        self.table(|all, trailer| tables::patterns(all, scope, buckets, count_max, out, trailer))
    }

    fn fields(&self, scope: &Scope, out: &mut Output) -> Result<Trailer, QueryError> {
        let make =
            |all: &Gathered<'_>, trailer: &mut Trailer| tables::fields(all, scope, out, trailer);
        self.table(make).map(|((), trailer)| trailer)
    }

    fn labels(
        &self,
        scope: &Scope,
        out: &mut Output,
    ) -> Result<(FieldsAnswer, Trailer), QueryError> {
        self.table(|all, trailer| tables::labels(all, scope, out, trailer))
    }

    fn label_values(
        &self,
        scope: &Scope,
        label: &str,
        out: &mut Output,
    ) -> Result<(Vec<String>, Trailer), QueryError> {
        self.table(|all, trailer| tables::label_values(all, scope, label, out, trailer))
    }

    fn streams(
        &self,
        scope: &Scope,
        asked: &StreamsAsked,
        out: &mut Output,
    ) -> Result<(Vec<StreamRow>, Trailer), QueryError> {
        self.table(|all, trailer| tables::streams(all, scope, asked, out, trailer))
    }

    fn lines(&self, query: &LineQuery, out: &mut Output) -> Result<LineAnswer, QueryError> {
        let gathered = Gathered::new(self);
        let mut trailer = Trailer::default();
        let mut answer = logql::lines(&gathered, query, out, &mut trailer)?;
        answer.trailer = self.finish(&gathered, trailer);
        Ok(answer)
    }

    fn numbers(&self, plan: &Plan, out: &mut Output) -> Result<NumberAnswer, QueryError> {
        let gathered = Gathered::new(self);
        let mut trailer = Trailer::default();
        let mut answer = logql::numbers(&gathered, plan, out, &mut trailer)?;
        answer.trailer = self.finish(&gathered, trailer);
        Ok(answer)
    }

    fn field_types(
        &self,
        scope: &Scope,
        of_lines: bool,
        out: &mut Output,
    ) -> Result<(FieldTypes, Trailer), QueryError> {
        self.table(|all, trailer| columns::field_types(all, scope, of_lines, out, trailer))
    }

    fn columns(
        &self,
        query: &ColumnsQuery,
        take: TakeColumns<'_>,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        let make = |all: &Gathered<'_>, trailer: &mut Trailer| match query.columns.is_empty() {
            true => columns::bare(all, query, take, out, trailer),
            false => columns::in_order(all, query, take, out, trailer),
        };
        self.table(make).map(|((), trailer)| trailer)
    }

    fn segments(&self, out: &mut Output) -> Result<Trailer, QueryError> {
        files::list(self, out)
    }

    fn compact(&self, cold: bool, out: &mut Output) -> Result<Trailer, QueryError> {
        self.pond.compact(cold, out)
    }

    fn newest(&self) -> Option<Timestamp> {
        self.pond.newest()
    }
}
