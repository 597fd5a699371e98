//! `_count`: how many records a query matches, and `_cat/count`: how many there are.

use logpond_engine::query::Output;
use serde_json::json;

use super::completeness::Completeness;
use super::indices::IndexExpression;
use super::json::only;
use super::query::{self, Context};
use super::request::{AnswerOptions, PARAMETERS, read_body, take_parameters};
use super::{Answer, Call, cat, objects, search};
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
    let filter = objects::with_members(app, Filter::and(parts), out)?;
    let partial = AnswerOptions::read(&call.params)?.may_be_partial;
    let mut completeness = Completeness::default();
    let count = search::count(app, &filter, out, &mut completeness, partial)?;
    Ok(json!({ "count": count, "_shards": completeness.shards() }).into())
}

/// Parameters of `_cat/count`.
const CAT_PARAMETERS: [&str; 8] = ["format", "v", "h", "s", "time", "pretty", "help", "human"];

/// The columns of `_cat/count`: the time in seconds and of the day, and the number of records.
const COLUMNS: [&str; 3] = ["epoch", "timestamp", "count"];

/// `_cat/count`, as a line or as JSON.
pub(super) fn cat_count(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    call.params.only(&CAT_PARAMETERS)?;
    let filter = IndexExpression::read(call.index())?.filter();
    let count = search::count(app, &filter, out, &mut Completeness::default(), false)?;
    let seconds = call.now.0.div_euclid(1_000_000_000);
    let time = call.now.to_string();
    let clock = time.get(11..19).unwrap_or_default();
    let cells = vec![seconds.to_string(), clock.to_owned(), count.to_string()];
    cat::answer(call, &COLUMNS, [cells])
}
