//! `POST /tag-keys`: what dashboards can be filtered by.

use serde_json::{Value as Json, json};

use super::asked::QueryRequest;
use super::lookup::{self, Warned};
use crate::App;
use crate::error::ApiError;
use logpond_engine::query::Output;

/// Lists the names of labels.
pub(super) fn answer(
    app: &App,
    request: &QueryRequest,
    out: &mut Output,
) -> Result<Warned<Json>, ApiError> {
    let (names, warnings) = lookup::label_names(app, request, out)?;
    let names = names.into_iter();
    let keys = names.map(|name| json!({ "type": "string", "text": name }));
    Ok((keys.collect(), warnings))
}
