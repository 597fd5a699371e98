//! Fills aggregations with the records of a request.

use std::sync::{Mutex, PoisonError};

use logpond_engine::query::{ColumnsQuery, Key as Place, Output, Search};
use logpond_host::memory::Charge;
use logpond_record::TimeRange;
use logpond_search::Filter;
use logpond_search::columns::Columns;
use logpond_search::query::{Comparison, FieldTest};
use serde_json::Value as Json;

use super::super::request::SearchRequest;
use super::super::search::{Completeness, documents};
use super::super::{names, scope};
use super::columns::RowView;
use super::state::{Finish, Level, Usage};
use super::top_hits::TopHits;
use super::{Plan, finish, timeline};
use crate::App;
use crate::error::{ApiError, Kind};
use crate::logql::run::failed;
use logpond_engine::query::Scope;

/// The answer to all aggregations of a request.
#[derive(Debug)]
pub(in super::super) struct Aggregated {
    /// The records that were aggregated.
    pub(in super::super) records: u64,
    pub(in super::super) json: Json,
}

/// Aggregations that are filled while rows come.
pub(super) struct Filling<'p> {
    plan: &'p Plan,
    level: Level,
    usage: Usage,
    records: u64,
    charge: Charge,
    error: Option<ApiError>,
}

impl<'p> Filling<'p> {
    /// Nothing yet.
    pub(super) fn new(plan: &'p Plan, charge: Charge) -> Filling<'p> {
        Filling {
            plan,
            level: Level::new(&plan.list),
            usage: Usage::default(),
            records: 0,
            charge,
            error: None,
        }
    }

    /// Adds rows; says whether further ones are wanted.
    pub(super) fn take(&mut self, columns: &Columns) -> bool {
        for at in 0..columns.rows {
            let row = RowView { columns, at };
            self.level.add(&self.plan.list, &row, &mut self.usage);
        }
        self.records += columns.rows as u64;
        self.charge.set_soon(self.usage.bytes);
        if self.charge.is_refused() {
            let message =
                "there is no memory for the aggregations: narrow the query, or use fewer buckets";
            self.error = Some(ApiError::new(Kind::MemoryFull, message));
        }
        if let Err(error) = self.usage.check() {
            self.error = Some(error);
        }
        self.error.is_none()
    }

    /// The answer.
    pub(super) fn finish(self, to: &mut Finish<'_>) -> Result<Aggregated, ApiError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let json = finish(&self.plan.list, self.level, to)?;
        Ok(Aggregated {
            records: self.records,
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
        completeness.note(app, trailer, request.options.may_be_partial)?;
        let filling = Filling {
            level,
            records,
            ..Filling::new(plan, Charge::default())
        };
        let mut fetch = |_: &[Place], _: &TopHits| Ok(Vec::new());
        return filling.finish(&mut Finish::new(request.options.has_typed_keys, &mut fetch));
    }
    let filling = Mutex::new(Filling::new(plan, Charge::new(out.lease())));
    let take = |columns: Columns| {
        let mut filling = filling.lock().unwrap_or_else(PoisonError::into_inner);
        filling.take(&columns)
    };
    let done = app.engine.columns(&query, &take, out);
    let mut filling = filling.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = filling.error.take() {
        return Err(error);
    }
    completeness.note(app, done.map_err(failed)?, request.options.may_be_partial)?;
    let mut fetch = |places: &[Place], top: &TopHits| fetch(app, places, top, out);
    filling.finish(&mut Finish::new(request.options.has_typed_keys, &mut fetch))
}

/// Reads the records at places, in the order of these.
fn fetch(
    app: &App,
    places: &[Place],
    top: &TopHits,
    out: &mut Output,
) -> Result<Vec<Json>, ApiError> {
    let condition = |place: &Place| {
        let id = place.id.to_string();
        let test = FieldTest::Compare(Comparison::Equal, id.as_bytes().into());
        Filter::field(names::ID, test)
    };
    let filter = Filter::or(places.iter().map(condition));
    let times = places.iter().map(|place| place.time);
    let range = TimeRange {
        from: times.clone().min().unwrap_or_default(),
        to: times.max().unwrap_or_default().saturating_add(1),
    };
    let scope = Scope::of_filter(&filter, range);
    let scope = scope.map_err(|error| ApiError::new(Kind::Internal, error.message))?;
    let mut search = Search::new(scope);
    search.direction = top.direction();
    let (documents, trailer) = documents(app, search, 0, out)?;
    Completeness::default().note(app, trailer, false)?;
    Ok(documents.iter().map(|document| top.hit(document)).collect())
}
