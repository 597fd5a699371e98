//! `GET /loki/api/v1/status/buildinfo`: whose interface this is.

use hyper::Response;
use serde_json::json;

use super::reply;
use crate::body::Body;

/// The version of Loki whose interface this is: clients look at it for what they may ask.
pub(super) const API_VERSION: &str = "3.7.6";

/// The version of the interface, and whose it is.
pub(super) fn answer() -> Response<Body> {
    reply::json(&json!({
        "version": API_VERSION,
        "revision": concat!("logpond-", env!("CARGO_PKG_VERSION")),
        "branch": "logpond",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
    }))
}
