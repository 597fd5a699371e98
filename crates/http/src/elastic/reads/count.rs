//! `_count`: how many records a query matches.

use logpond_engine::query::Output;
use serde_json::json;

use super::completeness::Completeness;
use super::indices::IndexExpression;
use super::json::only;
use super::query::{self, Context};
use super::request::{AnswerOptions, PARAMETERS, read_body, take_parameters};
use super::search;
use super::{Answer, Call};
use crate::App;
use crate::error::ApiError;
use logpond_search::Filter;

/// Answers with the number of records.
pub(super) fn answer(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    call.params.only(&PARAMETERS)?;
    let mut body = read_body(&call.body)?;
    take_parameters(&call.params, &mut body)?;
    only(&body, &["query"], "count")?;
    let mut parts = vec![IndexExpression::read(call.index())?.filter()];
    if let Some(query) = body.get("query").filter(|query| !query.is_null()) {
        parts.push(query::translate(query, &Context { now: call.now })?);
    }
    let partial = AnswerOptions::read(&call.params)?.may_be_partial;
    let mut completeness = Completeness::default();
    let count = search::count(app, &Filter::and(parts), out, &mut completeness, partial)?;
    Ok(json!({ "count": count, "_shards": completeness.shards() }).into())
}
