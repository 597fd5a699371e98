//! `GET /metrics`.

use std::sync::Arc;

use hyper::{Response, StatusCode};

use super::App;
use super::body::Body;
use super::error::{ApiError, Kind};

/// The Prometheus text format, version 0.0.4.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The exposition, made on a blocking thread: it reads `/proc`.
pub(super) async fn answer(app: &Arc<App>) -> Result<Response<Body>, ApiError> {
    let metrics = app.metrics.clone();
    let text = tokio::task::spawn_blocking(move || metrics.expose()).await;
    let text = text.map_err(|e| ApiError::new(Kind::Internal, e.to_string()))?;
    Ok(Body::whole(StatusCode::OK, CONTENT_TYPE, text))
}
