//! `GET /api/v1/listeners`: where this server listens.

use hyper::{Response, StatusCode};
use serde_json::json;

use super::body::Body;
use super::error::ApiError;
use super::params::Params;
use logpond_listen::net::ListenerStatus;

/// Lists the listeners that are on by their settings, also those whose address is in use by another program.
pub(super) fn answer(
    listening: &ListenerStatus,
    params: &Params,
) -> Result<Response<Body>, ApiError> {
    params.only(&[])?;
    let all = listening.all().into_iter();
    let all = all.map(|(name, address, is_up)| {
        json!({ "name": name, "address": address.to_string(), "up": is_up })
    });
    let list = json!({ "listeners": all.collect::<Vec<_>>() });
    Ok(Body::json(StatusCode::OK, &list))
}
