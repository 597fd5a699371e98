//! One document by its id: `_doc/ID` and `_source/ID`.

use hyper::StatusCode;
use logpond_engine::query::{Direction, Output, Search};
use logpond_search::Filter;
use serde_json::{Value as Json, json};

use super::completeness::Completeness;
use super::document::{Document, SourceFilter};
use super::fetch::documents;
use super::indices::IndexExpression;
use super::query::ids::of_id;
use super::request::take_parameters;
use super::{Answer, Call, Content, scope};
use crate::App;
use crate::error::{ApiError, Kind};

const PARAMETERS: [&str; 10] = [
    "_source",
    "_source_includes",
    "_source_excludes",
    "preference",
    "realtime",
    "refresh",
    "routing",
    "pretty",
    "human",
    "error_trace",
];

/// `_doc/ID`
pub(super) fn document(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    let (index, id) = names(call);
    let Some((document, filter)) = find(app, call, out)? else {
        return Ok(Answer {
            status: StatusCode::NOT_FOUND,
            content: Content::Json(json!({ "_index": index, "_id": id, "found": false })),
        });
    };
    let mut found = json!({
        "_index": document.index,
        "_id": id,
        "_version": 1,
        "_seq_no": 0,
        "_primary_term": 1,
        "found": true,
    });
    if let Some(source) = filter.source(&document) {
        found["_source"] = source;
    }
    Ok(found.into())
}

/// `_source/ID`
pub(super) fn source(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    let (index, id) = names(call);
    let found = find(app, call, out)?;
    let source = found.and_then(|(document, filter)| filter.source(&document));
    let missing = || {
        let message = format!("Document not found [{index}]/[{id}]");
        ApiError::new(Kind::NotFound, message)
    };
    Ok(source.ok_or_else(missing)?.into())
}

fn names(call: &Call) -> (&str, &str) {
    let id = call.names.get(1).map_or("", |name| name.as_str());
    (call.index(), id)
}

/// The newest record of the id.
fn find(
    app: &App,
    call: &Call,
    out: &mut Output,
) -> Result<Option<(Document, SourceFilter)>, ApiError> {
    call.params.only(&PARAMETERS)?;
    let mut body = super::json::Object::new();
    take_parameters(&call.params, &mut body)?;
    let filter = SourceFilter::read(body.get("_source").filter(|given: &&Json| !given.is_null()))?;
    let (index, id) = names(call);
    let of_index = IndexExpression::read(index)?.filter();
    let scope = scope::of_filter(&Filter::and([of_index, of_id(id)]))?;
    let mut search = Search::new(scope);
    search.direction = Direction::Backward;
    search.limit = Some(1);
    let (found, trailer) = documents(app, search, 0, out)?;
    Completeness::default().note(app, trailer, false)?;
    Ok(found.into_iter().next().map(|document| (document, filter)))
}
