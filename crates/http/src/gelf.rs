//! `POST /gelf`: messages of GELF, as graypy, pygelf and the GELF libraries send them.
//!
//! Invariants: 202 says that everything is durable; 400 that something was not taken and never will be, with the
//! number of messages that were; whatever may pass is 429 or 5xx.

use std::sync::Arc;

use hyper::{Request, Response, StatusCode};
use logpond_protocol::intake::body::Encoding;
use logpond_protocol::intake::push::gelf::{self, GelfError};

use super::App;
use super::body::Body;
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::{intake, once};
use logpond_host::telemetry::Intake;

/// Takes the messages of one request.
pub(super) async fn push(
    app: &Arc<App>,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    // Clients name several encodings, and use one of them or none: the body itself tells.
    let encoding = Encoding::Identity;
    let line_bytes_max = app.line_bytes_max;
    let bytes_max = app.bodies.decoded_bytes_max();
    let decode =
        move |body: &[u8]| gelf::decode_body(body, bytes_max, line_bytes_max).map_err(refused);
    let decoded = intake::decode(app, request.into_body(), encoding, decode).await;
    let pushed = decoded.inspect_err(|error| {
        if error.kind == Kind::BadRequest {
            app.metrics.intake(Intake::GelfHttp).malformed.add(1);
        }
    })?;
    once::submit_all(app, Intake::GelfHttp, pushed, None, "message").await?;
    Ok(Body::whole(StatusCode::ACCEPTED, "text/plain", ""))
}

fn refused(error: GelfError) -> ApiError {
    let kind = match error {
        GelfError::TooLarge(_) => Kind::BodyTooLarge,
        GelfError::Compressed(_) | GelfError::Message { .. } => Kind::BadRequest,
    };
    ApiError::new(kind, error.to_string())
}
