//! An engine whose work is noted.

use std::sync::Arc;

use logpond_record::Timestamp;
use logpond_search::metric::Plan;

use super::Trail;
use crate::query::{
    AnyTable, ColumnsQuery, Engine, LineAnswer, LineQuery, NumberAnswer, Output, QueryError, Scope,
    Search, TakeColumns, Trailer,
};

/// Another engine, for one request.
pub struct AuditedEngine {
    engine: Arc<dyn Engine>,
    trail: Arc<Trail>,
}

impl AuditedEngine {
    /// This engine for the request of a trail.
    pub fn new(engine: Arc<dyn Engine>, trail: Arc<Trail>) -> AuditedEngine {
        AuditedEngine { engine, trail }
    }
}

impl Engine for AuditedEngine {
    fn search(&self, search: &Search, out: &mut Output) -> Result<Trailer, QueryError> {
        self.trail.reads_scope(&search.scope);
        let answer = self.engine.search(search, out);
        answer.inspect(|trailer| self.trail.found(trailer))
    }

    fn table(
        &self,
        scope: &Scope,
        empty: Box<dyn AnyTable>,
        out: &mut Output,
    ) -> Result<(Box<dyn AnyTable>, Trailer), QueryError> {
        self.trail.reads_scope(scope);
        let answer = self.engine.table(scope, empty, out);
        answer.inspect(|(_, trailer)| self.trail.found(trailer))
    }

    fn lines(&self, query: &LineQuery, out: &mut Output) -> Result<LineAnswer, QueryError> {
        self.trail.reads(query.range);
        let answer = self.engine.lines(query, out);
        answer.inspect(|answer| self.trail.found(&answer.trailer))
    }

    fn numbers(&self, plan: &Plan, out: &mut Output) -> Result<NumberAnswer, QueryError> {
        let ranges = plan.leaves().iter().map(|leaf| leaf.range());
        ranges.for_each(|range| self.trail.reads(range));
        let answer = self.engine.numbers(plan, out);
        answer.inspect(|answer| self.trail.found(&answer.trailer))
    }

    fn columns(
        &self,
        query: &ColumnsQuery,
        take: TakeColumns<'_>,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        self.trail.reads_scope(&query.scope);
        let answer = self.engine.columns(query, take, out);
        answer.inspect(|trailer| self.trail.found(trailer))
    }

    fn newest(&self) -> Option<Timestamp> {
        self.engine.newest()
    }

    fn losses(&self) -> Vec<String> {
        self.engine.losses()
    }
}
