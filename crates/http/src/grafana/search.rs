//! `POST /search`: which targets there are, and what the values of a variable can be.

use serde_json::Value as Json;

use super::asked::QueryRequest;
use super::lookup::{self, Warned};
use crate::App;
use crate::error::ApiError;
use logpond_engine::query::Output;
use logpond_engine::saved::Language;

/// Lists saved queries whose names have a text in them; or labels and their values.
pub(super) fn answer(
    app: &App,
    request: &QueryRequest,
    out: &mut Output,
) -> Result<Warned<Json>, ApiError> {
    let text = request.text("target");
    if lookup::is_of_labels(text) {
        let (values, warnings) = lookup::values(app, request, text, out)?;
        return Ok((values.into(), warnings));
    }
    let all = app.saved.all().into_iter();
    let all = all.filter(|(_, query, _)| query.language == Language::LogQl);
    let names = all.map(|(name, ..)| name);
    let names = names.filter(|name| name.contains(text)).collect();
    Ok((names, Vec::new()))
}
