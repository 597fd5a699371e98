//! `GET|POST /loki/api/v1/label/NAME/values`: the values of a label.

use std::sync::Arc;

use hyper::Response;

use super::reply::{failed, gathered};
use super::{LokiRequest, labels, selector};
use crate::App;
use crate::body::Body;
use crate::error::ApiError;
use crate::params;

/// Lists the values; any field may be a label.
pub(super) async fn answer(
    app: &Arc<App>,
    request: LokiRequest,
    names: &[&str],
) -> Result<Response<Body>, ApiError> {
    let label = params::of_path(names.first().copied().unwrap_or_default())?;
    let scope = selector::scope_of_request(&request)?;
    let gather =
        move |app: &App, out: &mut _| app.engine.label_values(&scope, &label, out).map_err(failed);
    gathered(
        app,
        &request.headers,
        gather,
        |values: Vec<String>, warnings, to| labels::write(&values, warnings, to),
    )
    .await
}
