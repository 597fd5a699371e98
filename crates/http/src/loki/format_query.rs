//! `GET|POST /loki/api/v1/format_query`: a query as it is written well.

use hyper::{Response, StatusCode};
use logpond_search::logql;
use serde_json::json;

use super::{LokiRequest, reply};
use crate::body::Body;

/// Reads a query and writes it again. A query that is none is told in JSON, other than everywhere else.
pub(super) fn answer(request: &LokiRequest) -> Response<Body> {
    match logql::parse(request.text("query").unwrap_or_default()) {
        Ok(query) => reply::json(&json!({ "status": "success", "data": query.to_string() })),
        Err(error) => {
            let told = json!({ "status": "invalid-query", "error": error.to_string() });
            Body::whole(StatusCode::BAD_REQUEST, reply::JSON, format!("{told}\n"))
        }
    }
}
