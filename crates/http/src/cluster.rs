//! `/api/v1/cluster`: how the nodes are doing, and which of them is to go.

use std::sync::Arc;

use hyper::{Response, StatusCode};
use serde_json::json;

use super::App;
use super::administration::{Administration, OperateError};
use super::body::Body;
use super::error::{ApiError, Kind};
use super::params::Params;

/// Parameters of `POST /api/v1/cluster/drain`.
pub(super) const DRAIN_PARAMS: [&str; 2] = ["node", "cancel"];

/// Parameters of `POST /api/v1/cluster/forget`.
pub(super) const FORGET_PARAMS: [&str; 1] = ["node"];

/// Says how the nodes are doing.
pub(super) async fn status(app: &Arc<App>, params: &Params) -> Result<Response<Body>, ApiError> {
    params.only(&[])?;
    let status = ask(app, |operator| Ok(operator.status())).await?;
    let status = status.map_err(|error| ApiError::new(Kind::Internal, error.to_string()))?;
    Ok(Body::json(StatusCode::OK, &status))
}

/// Has a node leave, or stay after all.
pub(super) async fn drain(app: &Arc<App>, params: &Params) -> Result<Response<Body>, ApiError> {
    params.only(&DRAIN_PARAMS)?;
    let leaves = !params.flag("cancel", false)?;
    let name = params.one("node")?.map(str::to_owned);
    let node = ask(app, move |operator| operator.drain(name.as_deref(), leaves)).await?;
    let answer = json!({ "node": node.to_string(), "leaving": leaves });
    Ok(Body::json(StatusCode::ACCEPTED, &answer))
}

/// Gives a node up.
pub(super) async fn forget(app: &Arc<App>, params: &Params) -> Result<Response<Body>, ApiError> {
    params.only(&FORGET_PARAMS)?;
    let name = params.one("node")?.map(str::to_owned);
    let name = name.ok_or_else(|| ApiError::bad_request("parameter 'node' is missing"))?;
    let node = ask(app, move |operator| operator.forget(&name)).await?;
    let answer = json!({ "node": node.to_string(), "forgotten": true });
    Ok(Body::json(StatusCode::OK, &answer))
}

/// Asks on a thread that may block.
async fn ask<T: Send + 'static>(
    app: &Arc<App>,
    work: impl FnOnce(&dyn Administration) -> Result<T, OperateError> + Send + 'static,
) -> Result<T, ApiError> {
    let operator = app.operator.clone().ok_or_else(|| {
        let mut error = ApiError::new(Kind::NotFound, "this server is no node of a cluster");
        error.hint = Some("start it with --gossip ADDR".to_owned());
        error
    })?;
    let done = tokio::task::spawn_blocking(move || work(&*operator)).await;
    let done = done.map_err(|error| ApiError::new(Kind::Internal, error.to_string()))?;
    done.map_err(refusal)
}

fn refusal(error: OperateError) -> ApiError {
    let kind = match &error {
        OperateError::NoSuchNode(_) => Kind::NotFound,
        OperateError::Ambiguous(_) => Kind::BadRequest,
        OperateError::Forget(_) => Kind::Conflict,
        OperateError::NoAnswer(_) => Kind::NodeSilent,
        OperateError::Disk(_) => Kind::DiskFull,
    };
    ApiError::new(kind, error.to_string())
}
