//! `POST /api/v1/compact?cold=&wait=`: closes, merges and recompresses everything.
//!
//! Without `wait` it only begins, and the answer is 202; with it the answer is the list of the
//! segments afterwards, and its trailer says that it is done.

use std::sync::Arc;

use hyper::{Response, StatusCode};
use serde_json::json;

use super::App;
use super::body::Body;
use super::error::{ApiError, Kind};
use super::params::Params;
use super::rows::Begins;
use super::segments;
use logpond_engine::query::Output;
use logpond_engine::store::RequestError;

/// Parameters of a compaction.
pub(super) const PARAMS: [&str; 2] = ["cold", "wait"];

/// Compacts, or begins to.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    params.only(&PARAMS)?;
    let cold = params.flag("cold", false)?;
    if !params.flag("wait", false)? {
        app.store.begin_compaction(cold).map_err(refusal)?;
        return Ok(Body::json(
            StatusCode::ACCEPTED,
            &json!({ "started": true }),
        ));
    }
    let maintenance = app.maintenance.clone();
    let run = move |(), out: &mut Output| {
        maintenance.compact(cold, &mut || out.check().is_ok())?;
        segments::list(&*maintenance, out)
    };
    app.threads.stream(Begins::AtOnce, || Ok(()), run).await
}

/// Why the store did not do what it was asked for.
pub(super) fn refusal(error: RequestError) -> ApiError {
    let kind = match error {
        RequestError::Stopping => Kind::Stopping,
        RequestError::Busy => Kind::Busy,
        RequestError::Impossible(_) => Kind::Conflict,
        RequestError::Failed(_) => Kind::Internal,
    };
    ApiError::new(kind, error.to_string())
}
