//! `/api/v2/logs` and `/v1/input`: the log intake of Datadog, as its agents and libraries send to it.
//!
//! Invariants: 202 (200 at the older path) says that everything is durable; with bad logs the status is 400, the good ones
//! are durable, and the answer counts both. Senders try 408, 429 and 5xx again, and drop what gets another status.

use std::sync::Arc;

use hyper::header::CONTENT_TYPE;
use hyper::{Request, Response, StatusCode};
use logpond_protocol::intake::push::datadog::{self, DatadogError, tags_of};
use logpond_protocol::intake::push::logplex;
use logpond_record::Labels;
use serde_json::json;

use super::App;
use super::body::Body;
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::params::Params;
use super::push::{LABEL_VALUE_BYTES_MAX, LABELS_MAX};
use super::{intake, logplex as frames, once};
use logpond_host::telemetry::Intake;

/// Parameters of an address that are fields of all logs.
const LABELS: [&str; 3] = ["ddsource", "hostname", "service"];

/// The status of success at the path `/api/v2/logs`.
const ACCEPTED: StatusCode = StatusCode::ACCEPTED;

/// The parameter with the key.
pub(super) const TOKEN_PARAM: &str = "dd-api-key";

/// The path of the older version, which answers success with 200.
const PATH_OF_V1: &str = "/v1/input";

/// Takes the logs of one request.
pub(super) async fn push(app: &Arc<App>, request: Request<Inflow>) -> Response<Body> {
    let success = if request.uri().path() == PATH_OF_V1 {
        StatusCode::OK
    } else {
        ACCEPTED
    };
    match take(app, request).await {
        Ok(()) => Body::json(success, &json!({})),
        Err(error) => refusal(&error),
    }
}

/// The form of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Text,
    Logplex,
}

async fn take(app: &Arc<App>, request: Request<Inflow>) -> Result<(), ApiError> {
    let labels = labels(&Params::of(request.uri())?)?;
    let headers = request.headers();
    let encoding = intake::encoding(headers)?;
    let media_type = intake::text_of(headers, CONTENT_TYPE)?.split(';').next();
    let media_type = media_type.unwrap_or_default().trim().to_ascii_lowercase();
    let form = match &*media_type {
        "" | "application/json" => Form::Json,
        "text/plain" => Form::Text,
        frames::MEDIA_TYPE => Form::Logplex,
        other => {
            let message = format!(
                "content type {other} is not taken; send application/json, text/plain or {}",
                frames::MEDIA_TYPE
            );
            return Err(ApiError::new(Kind::UnsupportedMediaType, message));
        }
    };
    let line_bytes_max = app.line_bytes_max;
    let decode = move |body: &[u8]| match form {
        Form::Json => datadog::decode(body, labels, line_bytes_max).map_err(refused),
        Form::Text => datadog::decode_text(body, labels, line_bytes_max).map_err(refused),
        Form::Logplex => {
            let decoded = logplex::decode(body, labels, None, line_bytes_max);
            decoded.map_err(frames::refused)
        }
    };
    let pushed = intake::decode(app, request.into_body(), encoding, decode).await?;
    let identity = once::identity_of(&pushed.batch);
    once::submit_all(app, Intake::Datadog, pushed, identity, "log")
        .await
        .map(drop)
}

fn refused(error: DatadogError) -> ApiError {
    let kind = match error {
        DatadogError::TooLarge(_) => Kind::BodyTooLarge,
        DatadogError::Body(_) => Kind::BadRequest,
    };
    ApiError::new(kind, error.to_string())
}

/// The fields that the address gives all logs.
fn labels(params: &Params) -> Result<Labels, ApiError> {
    let mut labels = Labels::new();
    for name in LABELS {
        if let Some(value) = params.one(name)?.filter(|value| !value.is_empty()) {
            labels.push((name.into(), value.into()));
        }
    }
    let tags = params.one("ddtags")?.unwrap_or_default();
    let tags = tags_of(tags).into_iter();
    labels.extend(tags.map(|(name, value)| (name.into(), value.into())));
    let is_long = |(_, value): &(Box<str>, Box<str>)| value.len() > LABEL_VALUE_BYTES_MAX;
    if labels.len() > LABELS_MAX || labels.iter().any(is_long) {
        return Err(ApiError::bad_request(format!(
            "the address names more than {LABELS_MAX} fields, or one longer than {LABEL_VALUE_BYTES_MAX} bytes"
        )));
    }
    Ok(labels)
}

/// An error in the form of the intake.
fn refusal(error: &ApiError) -> Response<Body> {
    let (status, _, _) = error.kind.row();
    let status = match status.as_u16() {
        // Only these are tried again.
        421 => StatusCode::SERVICE_UNAVAILABLE,
        _ => status,
    };
    let title = status.canonical_reason().unwrap_or_default();
    let said = json!({ "status": status.as_str(), "title": title, "detail": error.message });
    let response = Body::json(status, &json!({ "errors": [said] }));
    error.kind.dress(response)
}
