//! `POST /firehose`: deliveries of AWS Firehose to an HTTP endpoint.
//!
//! Invariants: 200 says that everything is durable, and repeats the id of the request. Each other answer has a reason, and
//! Firehose sends the delivery again, or keeps it in its backup bucket. Records of a delivery that is sent again are
//! stored once.

use std::sync::Arc;

use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Request, Response, StatusCode};
use logpond_protocol::intake::push::firehose::{self, Delivery, FirehoseError};
use logpond_record::Labels;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use super::App;
use super::body::Body;
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::params::Params;
use super::push::{self, LABEL_VALUE_BYTES_MAX, LABELS_MAX};
use super::{intake, once};
use logpond_host::clock;
use logpond_host::telemetry::Intake;

const REQUEST_HEADER: HeaderName = HeaderName::from_static("x-amz-firehose-request-id");
const ATTRIBUTES_HEADER: HeaderName = HeaderName::from_static("x-amz-firehose-common-attributes");

/// The longest reason that Firehose takes.
const REASON_CHARACTERS_MAX: usize = 1_000;

/// The longest id of a request that is repeated.
const ID_CHARACTERS_MAX: usize = 256;

/// Takes the records of one delivery.
pub(super) async fn push(app: &Arc<App>, request: Request<Inflow>) -> Response<Body> {
    let id = intake::text_of(request.headers(), REQUEST_HEADER).unwrap_or_default();
    let id: String = id.chars().take(ID_CHARACTERS_MAX).collect();
    let taken = take(app, &id, request).await;
    let (status, error) = match &taken {
        Ok(()) => (StatusCode::OK, None),
        Err(error) => (error.kind.row().0, Some(error)),
    };
    let mut answer = json!({ "requestId": id, "timestamp": clock::now().0 / 1_000_000 });
    if let Some(error) = error {
        let reason: String = error.message.chars().take(REASON_CHARACTERS_MAX).collect();
        answer["errorMessage"] = reason.into();
    }
    // Firehose takes no other type, and no further text.
    let mut response = Body::json(status, &answer);
    let media_type = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    match error {
        Some(error) => error.kind.dress(response),
        None => response,
    }
}

async fn take(app: &Arc<App>, id: &str, request: Request<Inflow>) -> Result<(), ApiError> {
    let params = Params::of(request.uri())?;
    params.only(&["label"])?;
    let mut labels = push::labels(&params)?;
    labels.extend(attributes(request.headers())?);
    if labels.len() > LABELS_MAX {
        let message = format!("the delivery names more than {LABELS_MAX} common attributes");
        return Err(ApiError::bad_request(message));
    }
    if id.is_empty() {
        let message = format!("header {REQUEST_HEADER} is missing");
        return Err(ApiError::bad_request(message));
    }
    let encoding = intake::encoding(request.headers())?;
    let line_bytes_max = app.line_bytes_max;
    let bytes_max = app.bodies.decoded_bytes_max();
    let decode = move |body: &[u8]| {
        firehose::decode(body, labels, (bytes_max, line_bytes_max)).map_err(refused)
    };
    let decoded = intake::decode(app, request.into_body(), encoding, decode).await?;
    let Delivery { request_id, pushed } = decoded;
    if request_id != id {
        let message = format!("the body has another id than the header {REQUEST_HEADER}");
        return Err(ApiError::bad_request(message));
    }
    let identity = Some(xxh3_128(format!("firehose {request_id}").as_bytes()));
    // The good ones are stored once, however often this delivery comes.
    once::submit_all(app, Intake::Firehose, pushed, identity, "record")
        .await
        .map(drop)
}

fn refused(error: FirehoseError) -> ApiError {
    let kind = match error {
        FirehoseError::TooLarge(_) => Kind::BodyTooLarge,
        FirehoseError::Body(_) | FirehoseError::Compressed(..) => Kind::BadRequest,
    };
    ApiError::new(kind, error.to_string())
}

/// The fields that the stream gives all records: `{"commonAttributes":{"env":"prod"}}`.
fn attributes(headers: &HeaderMap) -> Result<Labels, ApiError> {
    let text = intake::text_of(headers, ATTRIBUTES_HEADER)?;
    if text.is_empty() {
        return Ok(Labels::new());
    }
    let bad = || {
        ApiError::bad_request(format!(
            "header {ATTRIBUTES_HEADER} has no commonAttributes"
        ))
    };
    let value: Value = serde_json::from_str(text).map_err(|_| bad())?;
    let members = value["commonAttributes"].as_object().ok_or_else(bad)?;
    let label = |(name, value): (&String, &Value)| {
        let value = value
            .as_str()
            .filter(|value| value.len() <= LABEL_VALUE_BYTES_MAX);
        let value = value.filter(|_| !name.is_empty()).ok_or_else(bad)?;
        Ok((name.as_str().into(), value.into()))
    };
    members.iter().map(label).collect()
}
