//! `POST /tag-values`: what a filter of a dashboard can be.

use serde_json::{Value as Json, json};

use super::asked::QueryRequest;
use super::lookup;
use crate::App;
use crate::error::ApiError;
use logpond_engine::query::Output;

/// Lists the values of a label.
pub(super) fn answer(
    app: &App,
    request: &QueryRequest,
    out: &mut Output,
) -> Result<Json, ApiError> {
    let key = match request.text("key") {
        "" => return Err(ApiError::bad_request("'key' is missing: the label")),
        key => key,
    };
    let values = lookup::label_values(app, request, "", key, out)?.into_iter();
    Ok(values.map(|value| json!({ "text": value })).collect())
}
