//! `_validate/query`: the validity of a query, and its meaning here.

use logpond_search::Filter;
use serde_json::json;

use super::indices::IndexExpression;
use super::json::only;
use super::query::{self, Context};
use super::request::{read_body, take_parameters};
use super::{Answer, Call};
use crate::error::ApiError;

const PARAMETERS: [&str; 16] = [
    "q",
    "df",
    "default_operator",
    "analyzer",
    "analyze_wildcard",
    "lenient",
    "explain",
    "rewrite",
    "all_shards",
    "ignore_unavailable",
    "allow_no_indices",
    "expand_wildcards",
    "preference",
    "pretty",
    "human",
    "error_trace",
];

/// Answers whether the query is valid; with `explain` also why it is not, or what it means as a question of Logpond.
pub(super) fn answer(call: &Call) -> Result<Answer, ApiError> {
    call.params.only(&PARAMETERS)?;
    let explains = call.params.flag("explain", false)?;
    let expression = IndexExpression::read(call.index())?;
    let read = || -> Result<Filter, ApiError> {
        let mut body = read_body(&call.body)?;
        take_parameters(&call.params, &mut body)?;
        only(&body, &["query"], "validate")?;
        match body.get("query").filter(|query| !query.is_null()) {
            Some(query) => query::translate(query, &Context { now: call.now }),
            None => Ok(Filter::All),
        }
    };
    let translated = read();
    let mut answer = json!({
        "_shards": { "total": 1, "successful": 1, "failed": 0 },
        "valid": translated.is_ok(),
    });
    if explains {
        let index = expression.whole_names().next().unwrap_or("*").to_owned();
        answer["explanations"] = match translated {
            Ok(filter) => {
                json!([{ "index": index, "valid": true, "explanation": filter.to_string() }])
            }
            Err(error) => json!([{ "index": index, "valid": false, "error": error.message() }]),
        };
    }
    Ok(answer.into())
}
