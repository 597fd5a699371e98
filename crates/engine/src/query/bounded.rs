//! An engine whose queries share the memory of the process.

use std::sync::Arc;

use logpond_record::Timestamp;
use logpond_search::metric::Plan;

use super::output::Output;
use super::{
    AnyTable, ColumnsQuery, Engine, LineAnswer, LineQuery, NumberAnswer, QueryError, Scope, Search,
    TakeColumns, Trailer,
};
use logpond_host::memory::Budget;

/// Another engine, each of whose queries takes memory to begin, and says why it ended if there was none.
pub struct BudgetedEngine {
    engine: Arc<dyn Engine>,
    budget: Arc<Budget>,
}

impl BudgetedEngine {
    /// This engine within this memory.
    pub fn new(engine: Arc<dyn Engine>, budget: Arc<Budget>) -> BudgetedEngine {
        BudgetedEngine { engine, budget }
    }

    fn run<T>(
        &self,
        out: &mut Output,
        query: impl FnOnce(&dyn Engine, &mut Output) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        out.begin(&self.budget)?;
        query(&*self.engine, out).map_err(|error| out.explained(error))
    }
}

impl Engine for BudgetedEngine {
    fn search(&self, search: &Search, out: &mut Output) -> Result<Trailer, QueryError> {
        self.run(out, |engine, out| engine.search(search, out))
    }

    fn table(
        &self,
        scope: &Scope,
        empty: Box<dyn AnyTable>,
        out: &mut Output,
    ) -> Result<(Box<dyn AnyTable>, Trailer), QueryError> {
        self.run(out, |engine, out| engine.table(scope, empty, out))
    }

    fn lines(&self, query: &LineQuery, out: &mut Output) -> Result<LineAnswer, QueryError> {
        self.run(out, |engine, out| engine.lines(query, out))
    }

    fn numbers(&self, plan: &Plan, out: &mut Output) -> Result<NumberAnswer, QueryError> {
        self.run(out, |engine, out| engine.numbers(plan, out))
    }

    fn columns(
        &self,
        query: &ColumnsQuery,
        take: TakeColumns<'_>,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        self.run(out, |engine, out| engine.columns(query, take, out))
    }

    // The list of files is small, and what merges them is no query.
    fn segments(&self, out: &mut Output) -> Result<Trailer, QueryError> {
        self.engine.segments(out)
    }

    fn compact(&self, cold: bool, out: &mut Output) -> Result<Trailer, QueryError> {
        self.engine.compact(cold, out)
    }

    fn newest(&self) -> Option<Timestamp> {
        self.engine.newest()
    }
}
