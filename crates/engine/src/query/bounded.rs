//! An engine whose queries share the memory of the process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use logpond_record::Timestamp;
use logpond_search::metric::Plan;

use super::output::Output;
use super::{
    AnyTable, ColumnsQuery, Engine, LineAnswer, LineQuery, NumberAnswer, QueryError, Scope, Search,
    TakeColumns, Trailer,
};
use logpond_host::memory::Budget;

/// How long a query may begin anew after it was refused memory. With the memory that it asks for doubled each time, it
/// does so a few times at most.
const BEGIN_ANEW_MAX: Duration = Duration::from_secs(20);

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

    /// Runs a query. One that was refused memory and has written nothing begins anew, with more: of many that wait for
    /// each other all come to their end, one after another.
    fn run<T>(
        &self,
        out: &mut Output,
        mut query: impl FnMut(&dyn Engine, &mut Output) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        out.begin(&self.budget)?;
        let begun = Instant::now();
        loop {
            let answer = query(&*self.engine, out).map_err(|error| out.explained(error));
            let is_refused = matches!(answer, Err(QueryError::Memory(_)));
            if !is_refused || !out.is_unwritten() || begun.elapsed() >= BEGIN_ANEW_MAX {
                return answer;
            }
            let bytes = out.lease().and_then(|lease| lease.bytes_for_another_try());
            let Some(bytes) = bytes else {
                return answer;
            };
            out.begin_anew(&self.budget, bytes)?;
        }
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
        self.run(out, |engine, out| {
            engine.table(scope, (*empty).copied(), out)
        })
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
        // What it has given cannot be taken back.
        out.begin(&self.budget)?;
        let answer = self.engine.columns(query, take, out);
        answer.map_err(|error| out.explained(error))
    }

    fn newest(&self) -> Option<Timestamp> {
        self.engine.newest()
    }

    fn losses(&self) -> Vec<String> {
        self.engine.losses()
    }
}
