//! `POST /pubsub`: push deliveries of Google Pub/Sub.
//!
//! Invariants: 204 says that the message is durable. Pub/Sub sends a message again after any other answer, and its record
//! is stored once.

use std::sync::Arc;

use hyper::{Request, Response, StatusCode};
use logpond_protocol::intake::push::pubsub::{self, Delivery, PubSubError};
use xxhash_rust::xxh3::xxh3_128;

use super::App;
use super::body::Body;
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::params::Params;
use super::{intake, once};
use logpond_host::telemetry::Intake;

/// The parameter with the token: a push subscription can send no header of its own.
pub(super) const TOKEN_PARAM: &str = "token";

/// Takes the message of one delivery.
pub(super) async fn answer(
    app: &Arc<App>,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    Params::of(request.uri())?.only(&[TOKEN_PARAM])?;
    let encoding = intake::encoding(request.headers())?;
    let line_bytes_max = app.line_bytes_max;
    let decode = move |body: &[u8]| pubsub::decode(body, line_bytes_max).map_err(refused);
    let decoded = intake::decode(app, request.into_body(), encoding, decode).await?;
    let Delivery { identity, pushed } = decoded;
    if let Some(rejected) = pushed.rejected.first() {
        app.metrics.intake(Intake::PubSub).rejected.add(1);
        return Err(ApiError::bad_request(format!(
            "the message is not stored: {}",
            rejected.reason
        )));
    }
    let identity = xxh3_128(format!("pubsub {identity}").as_bytes());
    once::submit(app, Intake::PubSub, pushed.batch, Some(identity)).await?;
    Ok(Body::whole(StatusCode::NO_CONTENT, "text/plain", ""))
}

fn refused(error: PubSubError) -> ApiError {
    let kind = match error {
        PubSubError::TooLarge(_) => Kind::BodyTooLarge,
        PubSubError::Body(_) => Kind::BadRequest,
    };
    ApiError::new(kind, error.to_string())
}
