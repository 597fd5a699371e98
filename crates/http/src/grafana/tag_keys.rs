//! `POST /tag-keys`: what dashboards can be filtered by.

use serde_json::{Value as Json, json};

use super::asked::QueryRequest;
use super::lookup;
use crate::App;
use crate::error::ApiError;
use logpond_engine::query::Output;

/// Lists the names of labels.
pub(super) fn answer(
    app: &App,
    request: &QueryRequest,
    out: &mut Output,
) -> Result<Json, ApiError> {
    let names = lookup::label_names(app, request, out)?.into_iter();
    Ok(names
        .map(|name| json!({ "type": "string", "text": name }))
        .collect())
}
