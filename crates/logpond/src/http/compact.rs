//! `POST /api/v1/compact?cold=`: closes, merges and recompresses everything, and waits for it.

use std::sync::Arc;

use hyper::Response;

use super::App;
use super::body::Body;
use super::error::ApiError;
use super::params::Params;
use crate::query::Output;

/// Compacts; the trailer says when it is done.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    params.only(&["cold"])?;
    let cold = params.flag("cold", false)?;
    let engine = app.engine.clone();
    let run = move |(), out: &mut Output| engine.compact(cold, out);
    app.threads.stream(|| Ok(()), run).await
}
