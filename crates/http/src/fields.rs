//! `GET|POST /api/v1/fields`: which fields there are.

use std::sync::Arc;

use hyper::Response;

use super::App;
use super::body::Body;
use super::error::ApiError;
use super::params::Params;
use super::rows::{SCOPE_PARAMS, table};

/// Lists the fields of the records that match.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    params.only(&SCOPE_PARAMS)?;
    table(
        app,
        params,
        |_| Ok(()),
        |app, scope, (), out| app.engine.fields(scope, out),
    )
    .await
}
