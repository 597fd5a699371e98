//! Fills aggregations with the records of a request.

use std::sync::{Mutex, MutexGuard, PoisonError};

use logpond_engine::query::{ColumnsQuery, Key as Place, Output};
use logpond_host::memory::Charge;
use logpond_search::columns::Columns;
use serde_json::Value as Json;

use super::super::completeness::Completeness;
use super::super::fetch::documents_at;
use super::super::request::SearchRequest;
use super::super::scope;
use super::columns::RowView;
use super::state::{AnswerMemory, Finish, Level, Usage};
use super::top_hits::TopHits;
use super::{Plan, finish, timeline};
use crate::App;
use crate::error::ApiError;
use crate::logql::run::failed;

/// The answer to all aggregations of a request.
#[derive(Debug)]
pub(in super::super) struct Aggregated {
    /// The records that were aggregated.
    pub(in super::super) records: u64,
    pub(in super::super) json: Json,
}

/// Some rows that one thread has added.
#[derive(Debug)]
pub(super) struct Part {
    level: Level,
    usage: Usage,
    records: u64,
}

impl Part {
    /// Nothing yet.
    pub(super) fn new(plan: &Plan) -> Part {
        Part {
            level: Level::new(&plan.tree.list),
            usage: Usage::default(),
            records: 0,
        }
    }

    /// Adds rows.
    pub(super) fn add(&mut self, plan: &Plan, columns: &Columns) {
        for at in 0..columns.rows {
            let row = RowView { columns, at };
            self.level.add(&plan.tree.list, &row, &mut self.usage);
        }
        self.records += columns.rows as u64;
    }

    /// How many groups it has.
    #[cfg(test)]
    pub(super) fn groups(&self) -> u64 {
        self.usage.groups
    }

    /// Adds the rows of another thread.
    fn merge(mut self, plan: &Plan, other: Part) -> Part {
        self.usage = self.usage.plus(other.usage);
        self.records += other.records;
        self.level
            .merge(&plan.tree.list, other.level, &mut self.usage);
        self
    }
}

/// Aggregations that are filled while rows come, by threads side by side: each takes a part that no other one
/// is at.
pub(super) struct Filling<'p> {
    plan: &'p Plan,
    shared: Mutex<Shared>,
}

struct Shared {
    /// Parts to which nobody adds. Invariant: no more than threads.
    idle: Vec<Part>,
    /// About the memory of all parts.
    bytes: usize,
    charge: Charge,
    error: Option<ApiError>,
}

impl<'p> Filling<'p> {
    /// A filling that begins with these parts.
    pub(super) fn new(plan: &'p Plan, parts: Vec<Part>, charge: Charge) -> Filling<'p> {
        Filling {
            plan,
            shared: Mutex::new(Shared {
                idle: parts,
                bytes: 0,
                charge,
                error: None,
            }),
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds rows; says whether further ones are wanted.
    pub(super) fn take(&self, columns: &Columns) -> bool {
        let idle = self.shared().idle.pop();
        let mut part = idle.unwrap_or_else(|| Part::new(self.plan));
        let before = part.usage.bytes;
        part.add(self.plan, columns);
        let mut shared = self.shared();
        shared.bytes += part.usage.bytes - before;
        let bytes = shared.bytes;
        shared.charge.set_soon(bytes);
        if shared.charge.is_refused() {
            shared.error = Some(ApiError::no_memory(&shared.charge));
        }
        if let Err(error) = part.usage.check() {
            shared.error = Some(error);
        }
        shared.idle.push(part);
        shared.error.is_none()
    }

    /// The rows of all threads together, once all have come to their end.
    ///
    /// # Errors
    /// When they took too much.
    pub(super) fn end(self) -> Result<Filled<'p>, ApiError> {
        let shared = self.shared.into_inner();
        let mut shared = shared.unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = shared.error.take() {
            return Err(error);
        }
        let plan = self.plan;
        let parts = shared.idle.into_iter();
        let all = parts.reduce(|all, part| all.merge(plan, part));
        let all = all.unwrap_or_else(|| Part::new(plan));
        all.usage.check()?;
        Ok(Filled {
            plan,
            all,
            memory: AnswerMemory::of_states(shared.charge, shared.bytes),
        })
    }
}

/// Aggregations that have all rows.
pub(super) struct Filled<'p> {
    plan: &'p Plan,
    all: Part,
    memory: AnswerMemory,
}

impl Filled<'_> {
    /// The answer.
    pub(super) fn finish(self, to: &mut Finish<'_>) -> Result<Aggregated, ApiError> {
        if self.plan.has_zeros {
            self.all.level.gather(&self.plan.tree.list, &mut to.zeros);
        }
        to.begin(self.memory);
        let json = finish(&self.plan.tree, self.all.level, to)?;
        to.end();
        Ok(Aggregated {
            records: self.all.records,
            json: Json::Object(json),
        })
    }
}

/// Aggregates.
///
/// # Errors
/// When it cannot be answered.
pub(in super::super) fn run(
    app: &App,
    request: &SearchRequest,
    out: &mut Output,
    completeness: &mut Completeness,
) -> Result<Aggregated, ApiError> {
    let plan = &request.aggregations;
    let query = ColumnsQuery {
        scope: scope::of_filter(&request.filter)?,
        columns: plan.columns.clone().into(),
        order: None,
        limit: None,
    };
    if let Some((level, trailer)) = timeline::read(app, plan, &query.scope, out)? {
        let records = trailer.rows;
        completeness.note(app, trailer, request.options.may_be_partial, out)?;
        let usage = Usage::default();
        let part = Part {
            level,
            usage,
            records,
        };
        let filled = Filling::new(plan, vec![part], Charge::new(out.lease())).end()?;
        let mut fetch = |_: &[Place], _: &TopHits| Ok(Vec::new());
        return filled.finish(&mut Finish::new(request.options.has_typed_keys, &mut fetch));
    }
    let filling = Filling::new(plan, Vec::new(), Charge::new(out.lease()));
    let take = |columns: Columns| filling.take(&columns);
    let done = app.engine.columns(&query, &take, out);
    let filled = filling.end()?;
    let trailer = done.map_err(failed)?;
    completeness.note(app, trailer, request.options.may_be_partial, out)?;
    let mut fetch = |places: &[Place], top: &TopHits| {
        let documents = documents_at(app, places, out)?;
        Ok(documents.iter().map(|document| top.hit(document)).collect())
    };
    filled.finish(&mut Finish::new(request.options.has_typed_keys, &mut fetch))
}
