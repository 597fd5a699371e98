//! Rules and alerts, as Grafana looks for them: there are none.

use hyper::{Response, StatusCode};
use serde_json::json;

use super::reply::{self, TEXT};
use crate::http::body::Body;

/// `GET /loki/api/v1/rules` and `/api/prom/rules`: how Loki says that there are none.
pub(super) fn groups() -> Response<Body> {
    Body::whole(StatusCode::NOT_FOUND, TEXT, "no rule groups found\n")
}

/// `GET /prometheus/api/v1/rules`.
pub(super) fn rules() -> Response<Body> {
    reply::json(&json!({
        "status": "success", "data": { "groups": [] }, "errorType": "", "error": "",
    }))
}

/// `GET /prometheus/api/v1/alerts`.
pub(super) fn alerts() -> Response<Body> {
    reply::json(&json!({
        "status": "success", "data": { "alerts": [] }, "errorType": "", "error": "",
    }))
}
