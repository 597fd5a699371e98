//! `POST /variable`: what the values of a variable can be.

use serde_json::{Value as Json, json};

use super::asked::QueryRequest;
use super::lookup::{self, Warned};
use crate::App;
use crate::error::ApiError;
use logpond_engine::query::Output;

/// Lists names of labels, values of one, or what a query finds.
pub(super) fn answer(
    app: &App,
    request: &QueryRequest,
    out: &mut Output,
) -> Result<Warned<Json>, ApiError> {
    let payload = &request.body["payload"];
    let members = ["target", "query"].map(|name| &payload[name]);
    let mut texts = members
        .into_iter()
        .chain([payload])
        .filter_map(Json::as_str);
    let text = texts.find(|text| !text.trim().is_empty()).ok_or_else(|| {
        ApiError::bad_request(
            "'payload.target' is missing: label_names(), label_values(LABEL), LogQL or the name of a \
             saved query",
        )
    })?;
    let (values, warnings) = lookup::values(app, request, text, out)?;
    let values = values.into_iter();
    let choices = values.map(|value| json!({ "__text": value, "__value": value }));
    Ok((choices.collect(), warnings))
}
