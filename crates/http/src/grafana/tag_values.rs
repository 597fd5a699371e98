//! `POST /tag-values`: what a filter of a dashboard can be.

use serde_json::{Value as Json, json};

use super::asked::QueryRequest;
use super::lookup::{self, Warned};
use crate::App;
use crate::error::ApiError;
use logpond_engine::query::Output;

/// Lists the values of a label.
pub(super) fn answer(
    app: &App,
    request: &QueryRequest,
    out: &mut Output,
) -> Result<Warned<Json>, ApiError> {
    let key = match request.text("key") {
        "" => return Err(ApiError::bad_request("'key' is missing: the label")),
        key => key,
    };
    let (values, warnings) = lookup::label_values(app, request, "", key, out)?;
    let values = values.into_iter();
    let values = values.map(|value| json!({ "text": value })).collect();
    Ok((values, warnings))
}
