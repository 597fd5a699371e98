//! Documents by their ids: `_doc/ID`, `_source/ID` and `_mget`.

use hyper::StatusCode;
use logpond_engine::query::{Direction, Output, Search};
use logpond_search::Filter;
use serde_json::{Value as Json, json};

use super::completeness::Completeness;
use super::document::{Document, SourceFilter};
use super::indices::IndexExpression;
use super::json::{Object, bad, list, only, optional, scalar};
use super::query::ids::of_id;
use super::request::{read_body, take_parameters};
use super::{Answer, Call, Content, fetch, scope};
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
    let filter = source_filter(call)?;
    let found = describe(app, names(call), &filter, out)?;
    let status = if found["found"] == true {
        StatusCode::OK
    } else {
        StatusCode::NOT_FOUND
    };
    Ok(Answer {
        status,
        content: Content::Json(found),
    })
}

/// A document as an answer has it, or that there is none of its id.
fn describe(
    app: &App,
    (index, id): (&str, &str),
    filter: &SourceFilter,
    out: &mut Output,
) -> Result<Json, ApiError> {
    let Some(document) = find(app, (index, id), out)? else {
        return Ok(json!({ "_index": index, "_id": id, "found": false }));
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
    Ok(found)
}

/// The most documents of one request.
const DOCUMENTS_MAX: usize = 1000;

/// `_mget`: documents by their ids, in the order in which they are named.
pub(super) fn documents(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    let of_all = source_filter(call)?;
    let body = read_body(&call.body)?;
    only(&body, &["docs", "ids"], "mget")?;
    let listed = [body.get("docs"), body.get("ids")].into_iter().flatten();
    let listed: Vec<&Json> = listed.flat_map(list).collect();
    if listed.is_empty() {
        return Err(bad("[mget] needs [docs] or [ids] that name a document"));
    }
    if listed.len() > DOCUMENTS_MAX {
        return Err(bad(format!(
            "[mget] names more than {DOCUMENTS_MAX} documents"
        )));
    }
    let mut docs = Vec::with_capacity(listed.len());
    for one in listed {
        let Json::Object(members) = one else {
            let names = (call.index(), &*scalar(one, "ids")?);
            docs.push(describe(app, names, &of_all, out)?);
            continue;
        };
        only(
            members,
            &["_index", "_id", "_type", "_source", "routing"],
            "docs",
        )?;
        let index = optional(members, "_index")?;
        let index = index.as_deref().unwrap_or(call.index());
        let id = optional(members, "_id")?;
        let id = id.ok_or_else(|| bad("[docs] needs [_id]"))?;
        let own = match members.get("_source").filter(|given| !given.is_null()) {
            Some(given) => Some(SourceFilter::read(Some(given))?),
            None => None,
        };
        docs.push(describe(
            app,
            (index, &id),
            own.as_ref().unwrap_or(&of_all),
            out,
        )?);
    }
    Ok(json!({ "docs": docs }).into())
}

/// `_source/ID`
pub(super) fn source(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    let (index, id) = names(call);
    let filter = source_filter(call)?;
    let found = find(app, (index, id), out)?;
    let source = found.and_then(|document| filter.source(&document));
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

/// The part of sources that the parameters want.
fn source_filter(call: &Call) -> Result<SourceFilter, ApiError> {
    call.params.only(&PARAMETERS)?;
    let mut body = Object::new();
    take_parameters(&call.params, &mut body)?;
    SourceFilter::read(body.get("_source").filter(|given: &&Json| !given.is_null()))
}

/// The newest record of the id.
fn find(
    app: &App,
    (index, id): (&str, &str),
    out: &mut Output,
) -> Result<Option<Document>, ApiError> {
    let of_index = IndexExpression::read(index)?.filter();
    let scope = scope::of_filter(&Filter::and([of_index, of_id(id)]))?;
    let mut search = Search::new(scope);
    search.direction = Direction::Backward;
    search.limit = Some(1);
    let (found, trailer) = fetch::documents(app, search, 0, out)?;
    Completeness::default().note(app, trailer, false, out)?;
    Ok(found.into_iter().next())
}
