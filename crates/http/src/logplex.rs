//! `POST /logplex`: HTTPS drains of Heroku.
//!
//! Invariants: 200 says that everything is durable. A delivery that is sent again has its `Logplex-Frame-Id`, and its
//! records are stored once. A body without the announced number of messages is refused.

use std::sync::Arc;

use hyper::header::{CONTENT_TYPE, HeaderName};
use hyper::{HeaderMap, Request, Response, StatusCode};
use logpond_protocol::intake::push::logplex::{self, LogplexError};
use logpond_record::Labels;
use xxhash_rust::xxh3::xxh3_128;

use super::App;
use super::body::Body;
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::params::Params;
use super::push;
use super::{intake, once};
use logpond_host::telemetry::Intake;

/// The media type of frames.
pub(super) const MEDIA_TYPE: &str = "application/logplex-1";

const COUNT_HEADER: HeaderName = HeaderName::from_static("logplex-msg-count");
const FRAME_HEADER: HeaderName = HeaderName::from_static("logplex-frame-id");
const DRAIN_HEADER: HeaderName = HeaderName::from_static("logplex-drain-token");

/// The field with the name of the drain.
const DRAIN_FIELD: &str = "drain";

/// Takes the messages of one delivery.
pub(super) async fn answer(
    app: &Arc<App>,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let params = Params::of(request.uri())?;
    params.only(&["label"])?;
    let mut labels = push::labels(&params)?;
    let headers = request.headers();
    let encoding = intake::encoding(headers)?;
    let media_type = intake::text_of(headers, CONTENT_TYPE)?;
    if media_type.split(';').next().unwrap_or_default().trim() != MEDIA_TYPE {
        let message = format!("a drain sends `Content-Type: {MEDIA_TYPE}`");
        return Err(ApiError::new(Kind::UnsupportedMediaType, message));
    }
    let announced = announced(headers)?;
    labels.extend(drain(headers)?);
    let frame = intake::text_of(headers, FRAME_HEADER)?.to_owned();
    let line_bytes_max = app.line_bytes_max;
    let decode = move |body: &[u8]| {
        // The id alone names no other delivery of another drain.
        let identity =
            (!frame.is_empty()).then(|| xxh3_128(&[frame.as_bytes(), b"\0", body].concat()));
        let decoded = logplex::decode(body, labels, announced, line_bytes_max);
        decoded.map(|pushed| (pushed, identity)).map_err(refused)
    };
    let (pushed, identity) = intake::decode(app, request.into_body(), encoding, decode).await?;
    once::submit_all(app, Intake::Logplex, pushed, identity, "message").await?;
    Ok(Body::whole(StatusCode::OK, "text/plain", ""))
}

pub(super) fn refused(error: LogplexError) -> ApiError {
    let kind = match error {
        LogplexError::TooLarge(_) => Kind::BodyTooLarge,
        LogplexError::Frame(_) | LogplexError::Count { .. } => Kind::BadRequest,
    };
    ApiError::new(kind, error.to_string())
}

/// How many messages there have to be.
fn announced(headers: &HeaderMap) -> Result<Option<usize>, ApiError> {
    match intake::text_of(headers, COUNT_HEADER)? {
        "" => Ok(None),
        text => text
            .trim()
            .parse()
            .map(Some)
            .map_err(|_| ApiError::bad_request(format!("header {COUNT_HEADER} is no number"))),
    }
}

/// The field with the name of the drain, such as `d.01234567-89ab-cdef-0123-456789abcdef`.
fn drain(headers: &HeaderMap) -> Result<Labels, ApiError> {
    let drain = intake::text_of(headers, DRAIN_HEADER)?;
    let is_named = !drain.is_empty() && drain.len() <= push::LABEL_VALUE_BYTES_MAX;
    Ok(is_named
        .then(|| (DRAIN_FIELD.into(), drain.into()))
        .into_iter()
        .collect())
}
