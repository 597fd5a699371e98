//! `GET|POST /loki/api/v1/format_query`: a query as it is written well.

use hyper::Response;
use logpond_search::logql;
use serde_json::json;

use super::{Asked, reply, selector};
use crate::http::body::Body;
use crate::http::error::ApiError;

/// Reads a query and writes it again.
pub(super) fn answer(asked: &Asked) -> Result<Response<Body>, ApiError> {
    let query = logql::parse(asked.text("query").unwrap_or_default());
    let query = query.map_err(selector::refused)?;
    Ok(reply::json(
        &json!({ "status": "success", "data": query.to_string() }),
    ))
}
