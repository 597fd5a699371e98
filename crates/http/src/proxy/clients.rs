//! `GET /api/v1/proxy/clients?limit=&order=`: who moves how much.

use hyper::{Response, StatusCode};
use logpond_proxy::{ClientOrder, Control};
use logpond_record::cast;
use serde_json::json;

use super::{ApiError, Body, Params};

/// Clients in an answer that names no number.
const CLIENTS_DEFAULT: u64 = 10;

/// Clients in an answer at most: as many as are told apart.
const CLIENTS_MAX: u64 = 10_000;

pub(super) fn answer(control: &Control, params: &Params) -> Result<Response<Body>, ApiError> {
    params.only(&["limit", "order"])?;
    let limit = params.number("limit", CLIENTS_DEFAULT, CLIENTS_MAX)?;
    let order = match params.one("order")? {
        None | Some("bytes") => ClientOrder::Bytes,
        Some("throughput") => ClientOrder::Throughput,
        Some("connections") => ClientOrder::Connections,
        Some("active") => ClientOrder::Active,
        Some(other) => {
            return Err(ApiError::bad_request(format!(
                "'{other}' is no order of clients: bytes, throughput, connections, active"
            )));
        }
    };
    let clients = json!(control.clients(cast::to_usize(limit), order));
    Ok(Body::json(StatusCode::OK, &clients))
}
