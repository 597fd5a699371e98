//! `_msearch`: several searches in one body, each a line of its indices and a line of its search.

use logpond_engine::query::Output;
use serde_json::{Value as Json, json};

use super::json::{Object, bad, flag, only, texts};
use super::request::{AnswerOptions, PARAMETERS, SearchRequest, read_body};
use super::{Answer, Call, search};
use crate::App;
use crate::elastic::error_json;
use crate::error::ApiError;

/// The most searches of a request.
pub(super) const SEARCHES_MAX: usize = 100;

/// Members of a line of indices.
const HEADER: [&str; 13] = [
    "index",
    "indices",
    "search_type",
    "ignore_unavailable",
    "allow_no_indices",
    "expand_wildcards",
    "ignore_throttled",
    "preference",
    "request_cache",
    "routing",
    "allow_partial_search_results",
    "ccs_minimize_roundtrips",
    "type",
];

/// Answers all searches in order; one that fails takes no other with it.
pub(super) fn answer(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    call.params.only(&PARAMETERS)?;
    let options = AnswerOptions::read(&call.params)?;
    let lines = call.body.split(|byte| *byte == b'\n');
    let lines: Vec<&[u8]> = lines.map(<[u8]>::trim_ascii).collect();
    let filled = lines.iter().rposition(|line| !line.is_empty());
    let lines = lines.get(..=filled.unwrap_or(0)).unwrap_or_default();
    let (pairs, rest) = lines.as_chunks::<2>();
    if !rest.is_empty() || pairs.is_empty() {
        return Err(bad(
            "the body has a line of indices and a line of the search in turns",
        ));
    }
    if pairs.len() > SEARCHES_MAX {
        return Err(bad(format!("there are more than {SEARCHES_MAX} searches")));
    }
    let started = std::time::Instant::now();
    let mut responses = Vec::new();
    for [header, body] in pairs {
        responses.push(match one(app, call, (header, body), options, out) {
            Ok(mut found) => {
                found["status"] = 200.into();
                found
            }
            Err(error) if is_of_all(&error) => return Err(error),
            Err(error) => error_json(&error).1,
        });
    }
    let took = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(json!({ "took": took, "responses": responses }).into())
}

/// True for an error after which the others have no answer either.
fn is_of_all(error: &ApiError) -> bool {
    matches!(
        error.kind,
        crate::error::Kind::Stopping | crate::error::Kind::TokenRefused
    )
}

fn one(
    app: &App,
    call: &Call,
    (header, body): (&[u8], &[u8]),
    options: AnswerOptions,
    out: &mut Output,
) -> Result<Json, ApiError> {
    let header = read_body(header)?;
    only(&header, &HEADER, "msearch header")?;
    let index = index_of(&header)?;
    let may_be_partial = flag(
        &header,
        "allow_partial_search_results",
        options.may_be_partial,
    )?;
    let options = AnswerOptions {
        may_be_partial,
        ..options
    };
    let body = read_body(body)?;
    let index = index.as_deref().unwrap_or(call.index());
    let request = SearchRequest::read(&body, index, options, call.now)?;
    if request.scroll.is_some() {
        return Err(bad("[scroll] is not supported in a msearch"));
    }
    search::run(app, &request, out)
}

fn index_of(header: &Object) -> Result<Option<String>, ApiError> {
    let given = header.get("index").or_else(|| header.get("indices"));
    match given {
        None | Some(Json::Null) => Ok(None),
        Some(names) => Ok(Some(texts(names, "index")?.join(","))),
    }
}
