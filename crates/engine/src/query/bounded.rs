//! An engine whose queries share the memory of the process.

use std::sync::Arc;

use logpond_record::{TimeRange, Timestamp};
use logpond_search::aggregate::{
    FieldTypes, FieldsAnswer, HistogramSpec, PatternsAnswer, StreamRow, StreamsAsked,
};
use logpond_search::metric::Plan;

use super::output::Output;
use super::{
    ColumnsQuery, Engine, LineAnswer, LineQuery, NumberAnswer, QueryError, Scope, Search,
    TakeColumns, Trailer,
};
use logpond_host::memory::Budget;

/// Another engine, each of whose queries takes memory to begin, and says why it ended if there was none.
pub struct Bounded {
    engine: Arc<dyn Engine>,
    budget: Arc<Budget>,
}

impl Bounded {
    /// This engine within this memory.
    pub fn new(engine: Arc<dyn Engine>, budget: Arc<Budget>) -> Bounded {
        Bounded { engine, budget }
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

impl Engine for Bounded {
    fn search(&self, search: &Search, out: &mut Output) -> Result<Trailer, QueryError> {
        self.run(out, |engine, out| engine.search(search, out))
    }

    fn top(
        &self,
        scope: &Scope,
        field: &str,
        count_max: usize,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        self.run(out, |engine, out| engine.top(scope, field, count_max, out))
    }

    fn histogram(
        &self,
        scope: &Scope,
        spec: &HistogramSpec,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        self.run(out, |engine, out| engine.histogram(scope, spec, out))
    }

    fn patterns(
        &self,
        scope: &Scope,
        range: TimeRange,
        step_ns: i64,
        count_max: usize,
        out: &mut Output,
    ) -> Result<(PatternsAnswer, Trailer), QueryError> {
        self.run(out, |engine, out| {
            engine.patterns(scope, range, step_ns, count_max, out)
        })
    }

    fn fields(&self, scope: &Scope, out: &mut Output) -> Result<Trailer, QueryError> {
        self.run(out, |engine, out| engine.fields(scope, out))
    }

    fn labels(
        &self,
        scope: &Scope,
        out: &mut Output,
    ) -> Result<(FieldsAnswer, Trailer), QueryError> {
        self.run(out, |engine, out| engine.labels(scope, out))
    }

    fn label_values(
        &self,
        scope: &Scope,
        label: &str,
        out: &mut Output,
    ) -> Result<(Vec<String>, Trailer), QueryError> {
        self.run(out, |engine, out| engine.label_values(scope, label, out))
    }

    fn streams(
        &self,
        scope: &Scope,
        asked: &StreamsAsked,
        out: &mut Output,
    ) -> Result<(Vec<StreamRow>, Trailer), QueryError> {
        self.run(out, |engine, out| engine.streams(scope, asked, out))
    }

    fn lines(&self, query: &LineQuery, out: &mut Output) -> Result<LineAnswer, QueryError> {
        self.run(out, |engine, out| engine.lines(query, out))
    }

    fn numbers(&self, plan: &Plan, out: &mut Output) -> Result<NumberAnswer, QueryError> {
        self.run(out, |engine, out| engine.numbers(plan, out))
    }

    fn field_types(
        &self,
        scope: &Scope,
        of_lines: bool,
        out: &mut Output,
    ) -> Result<(FieldTypes, Trailer), QueryError> {
        self.run(out, |engine, out| engine.field_types(scope, of_lines, out))
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
