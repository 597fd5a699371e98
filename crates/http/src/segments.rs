//! `GET /api/v1/segments`: the files of the store.

use std::sync::Arc;

use hyper::Response;

use super::App;
use super::body::Body;
use super::error::ApiError;
use super::params::Params;
use super::rows::Begins;
use logpond_engine::query::Output;

/// Lists the files.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    params.only(&[])?;
    let engine = app.engine.clone();
    let run = move |(), out: &mut Output| engine.segments(out);
    app.threads.stream(Begins::AtOnce, || Ok(()), run).await
}
