//! `POST /logpush`: Cloudflare Logpush to an HTTP destination, gzip of a JSON object a line.
//!
//! Invariants: 200 says that everything is durable. The upload by which Cloudflare tests a destination is answered, and
//! is no record.

use std::sync::Arc;

use hyper::{Request, Response, StatusCode};
use logpond_protocol::intake::push::{self as decoder, PushForm};
use logpond_settings::time_fields;
use memchr::memmem;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use super::App;
use super::body::Body;
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::params::Params;
use super::push;
use super::{intake, once};
use logpond_host::telemetry::Intake;

/// Fields with the time, in the order in which they count; each data set has one of them.
pub(super) const TIME_FIELDS: &str =
    "EdgeStartTimestamp,Datetime,Timestamp,QueryTimestamp,EventTimestamp,When,CreatedAt";

/// Parameters of an upload.
const PARAMS: [&str; 3] = ["label", "time-field", "message-field"];

/// The field with the id of a request.
const RAY_ID: &[u8] = b"\"RayID\"";

/// The longest test upload.
const TEST_BYTES_MAX: usize = 64;

/// Takes the lines of one upload.
pub(super) async fn answer(
    app: &Arc<App>,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let params = Params::of(request.uri())?;
    params.only(&PARAMS)?;
    let mut labels = push::labels(&params)?;
    if params.one("time-field")?.is_none() {
        labels.extend(time_fields(TIME_FIELDS).map_err(ApiError::bad_request)?);
    }
    let encoding = intake::encoding(request.headers())?;
    let line_bytes_max = app.line_bytes_max;
    let decode = move |body: &[u8]| {
        if is_test(body) {
            return Ok(None);
        }
        // Each request of a visitor has an id: the same bytes are the same upload.
        let has_ids = memmem::find(body, RAY_ID).is_some();
        let identity = has_ids.then(|| xxh3_128(&[b"logpush ", body].concat()));
        let decoded = decoder::decode(PushForm::NdJson, body, labels, line_bytes_max);
        let decoded = decoded.map_err(|error| ApiError::new(Kind::BodyTooLarge, error.to_string()));
        decoded.map(|pushed| Some((pushed, identity)))
    };
    let decoded = intake::decode(app, request.into_body(), encoding, decode).await?;
    let Some((pushed, identity)) = decoded else {
        return Ok(Body::json(StatusCode::OK, &json!({ "accepted": 0 })));
    };
    let accepted = once::submit_all(app, Intake::Logpush, pushed, identity, "line").await?;
    Ok(Body::json(StatusCode::OK, &json!({ "accepted": accepted })))
}

/// True if a body is the upload by which Cloudflare tests a destination: `{"content":"tests"}`.
fn is_test(body: &[u8]) -> bool {
    body.len() <= TEST_BYTES_MAX
        && serde_json::from_slice::<Value>(body).is_ok_and(|value| {
            value == json!({ "content": "test" }) || value == json!({ "content": "tests" })
        })
}
