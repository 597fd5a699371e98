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

use logpond_cluster::{IndexedInventory, StoredUnion, Target};
use logpond_record::Timestamp;
use logpond_search::metric::Plan;
use logpond_segment::sources::SourceSet;
use serde_json::Value;

use super::output::Output;
use super::pond::LocalEngine;
use super::reads::Reads;
use super::{
    AnyTable, ColumnsQuery, Engine, LineAnswer, LineQuery, Maintenance, NumberAnswer, QueryError,
    Scope, Search, TakeColumns, Trailer, columns, logql, rows,
};
use gather::Participants;
use hedging::Hedger;
use logpond_host::clock;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::Metrics;
pub use nodes::{Nodes, Unreachable};

/// Answers from all nodes.
#[derive(Clone)]
pub struct Cluster {
    engine: Arc<LocalEngine>,
    nodes: Arc<dyn Nodes>,
    /// What the nodes of the last answer have in segments; few of them change from one to the next.
    stored: Arc<Mutex<StoredUnion>>,
    hedging: Arc<Hedger>,
    shutdown: Shutdown,
}

/// What a node says.
type Reader = Box<dyn Read + Send>;

impl Cluster {
    /// An engine over what this node holds and the others.
    pub fn new(
        engine: Arc<LocalEngine>,
        nodes: Arc<dyn Nodes>,
        metrics: &Metrics,
        shutdown: Shutdown,
    ) -> Cluster {
        let hedging: Arc<Hedger> = Arc::default();
        hedging.expose(metrics);
        Cluster {
            engine,
            nodes,
            stored: Arc::default(),
            hedging,
            shutdown,
        }
    }

    /// What these nodes have in segments, all together.
    fn stored<'a>(
        &self,
        held: impl IntoIterator<Item = &'a Arc<IndexedInventory>>,
    ) -> Arc<SourceSet> {
        let mut stored = self.stored.lock().unwrap_or_else(|poisoned| {
            // A change that a panic has cut short is half done.
            self.stored.clear_poison();
            let mut stored = poisoned.into_inner();
            *stored = StoredUnion::default();
            stored
        });
        stored.of(held)
    }

    fn finish(&self, gathered: &Participants<'_>, mut trailer: Trailer) -> Trailer {
        gathered.judge(&mut trailer);
        if !trailer.has_more {
            trailer.cursor = None;
        }
        trailer.newest = trailer.newest.max(self.engine.newest_time());
        trailer
    }

    /// Reads from all nodes.
    fn read<T>(
        &self,
        make: impl FnOnce(&Participants<'_>, &mut Trailer) -> Result<T, QueryError>,
    ) -> Result<(T, Trailer), QueryError> {
        let gathered = Participants::new(self);
        let mut trailer = Trailer::default();
        let made = make(&gathered, &mut trailer)?;
        Ok((made, self.finish(&gathered, trailer)))
    }
}

impl Engine for Cluster {
    fn search(&self, search: &Search, out: &mut Output) -> Result<Trailer, QueryError> {
        if search.is_followed && !search.is_count {
            return follow::run(self, search, out);
        }
        let since = clock::now();
        let gathered = Participants::new(self);
        let mut trailer = Trailer::default();
        if search.is_strict && gathered.lacks_something(search.scope.range) {
            return Ok(self.finish(&gathered, trailer));
        }
        let outcome = if search.is_count {
            rows::count(&gathered, search, out, &mut trailer)
        } else {
            rows::emit(&gathered, search, out, &mut trailer)
        };
        trailer.end(outcome.map_err(|error| out.explained(error)))?;
        if search.wants_positions {
            let since = search.limit.map(|_| since);
            trailer.position = Some(gathered.positions(since).to_text());
        }
        Ok(self.finish(&gathered, trailer))
    }

    fn table(
        &self,
        scope: &Scope,
        empty: Box<dyn AnyTable>,
        out: &mut Output,
    ) -> Result<(Box<dyn AnyTable>, Trailer), QueryError> {
        self.read(|all, trailer| all.table(scope, &empty, out, trailer))
    }

    fn lines(&self, query: &LineQuery, out: &mut Output) -> Result<LineAnswer, QueryError> {
        let gathered = Participants::new(self);
        let mut trailer = Trailer::default();
        let mut answer = logql::lines(&gathered, query, out, &mut trailer)?;
        answer.trailer = self.finish(&gathered, trailer);
        Ok(answer)
    }

    fn numbers(&self, plan: &Plan, out: &mut Output) -> Result<NumberAnswer, QueryError> {
        let gathered = Participants::new(self);
        let mut trailer = Trailer::default();
        let mut answer = logql::numbers(&gathered, plan, out, &mut trailer)?;
        answer.trailer = self.finish(&gathered, trailer);
        Ok(answer)
    }

    fn columns(
        &self,
        query: &ColumnsQuery,
        take: TakeColumns<'_>,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        let make = |all: &Participants<'_>, trailer: &mut Trailer| {
            if query.columns.is_empty() {
                columns::bare(all, query, take, out, trailer)
            } else {
                columns::in_order(all, query, take, out, trailer)
            }
        };
        self.read(make).map(|((), trailer)| trailer)
    }

    fn newest(&self) -> Option<Timestamp> {
        self.engine.newest()
    }

    fn losses(&self) -> Vec<String> {
        let own = self.nodes.own_inventory();
        gather::losses(&*self.nodes, &Target::new(&[&own]).lost)
    }
}

impl Maintenance for Cluster {
    fn files(&self) -> (Vec<Value>, Trailer) {
        files::list(self)
    }

    // Each node merges its own files.
    fn compact(&self, cold: bool, is_wanted: &mut dyn FnMut() -> bool) -> Result<(), QueryError> {
        self.engine.compact(cold, is_wanted)
    }
}
