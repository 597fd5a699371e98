//! `POST /search`: which targets there are, and what the values of a variable can be.

use serde_json::Value as Json;

use super::asked::QueryRequest;
use super::lookup;
use crate::App;
use crate::error::ApiError;
use logpond_engine::query::Output;
use logpond_engine::saved::Language;

/// Lists saved queries whose names have a text in them; or labels and their values.
pub(super) fn answer(
    app: &App,
    request: &QueryRequest,
    out: &mut Output,
) -> Result<Json, ApiError> {
    let text = request.text("target");
    if lookup::is_of_labels(text) {
        return Ok(lookup::values(app, request, text, out)?.into());
    }
    let all = app.saved.all().into_iter();
    let all = all.filter(|(_, query, _)| query.language == Language::LogQl);
    let names = all.map(|(name, ..)| name);
    Ok(names.filter(|name| name.contains(text)).collect())
}
