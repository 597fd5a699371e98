//! `POST /metric-payload-options`: what a field of a form can hold.

use serde_json::Value as Json;

use super::asked::QueryRequest;
use super::lookup::{self, Warned};
use super::metrics::choice;
use crate::App;
use crate::error::ApiError;
use logpond_engine::query::Output;

/// Lists the values of the label that is called like the field.
pub(super) fn answer(
    app: &App,
    request: &QueryRequest,
    out: &mut Output,
) -> Result<Warned<Json>, ApiError> {
    let (values, warnings) = match request.text("name") {
        "" => {
            return Err(ApiError::bad_request(
                "'name' is missing: the field of the form",
            ));
        }
        "format" => {
            let forms = vec!["time_series".to_owned(), "table".to_owned()];
            (forms, Vec::new())
        }
        label => lookup::label_values(app, request, "", label, out)?,
    };
    let choices = values.iter().map(|value| choice(value)).collect();
    Ok((choices, warnings))
}
