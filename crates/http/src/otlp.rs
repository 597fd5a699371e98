//! `POST /v1/logs`: logs of OpenTelemetry (OTLP/HTTP 1.x), in both encodings.
//!
//! Invariants, after the specification: the answer has the encoding of the request; 200 says that
//! everything is durable but the records that it counts as rejected, which are never sent again; what
//! may pass is 429 or 503, because exporters try no other status again.

use std::sync::Arc;

use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use logpond_protocol::intake::push::DecodedBody;
use logpond_protocol::intake::push::otlp::{self, OtlpError};
use logpond_record::Labels;
use serde_json::json;

use super::App;
use super::body::Body;
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::{intake, once};
use logpond_host::telemetry::Intake;

/// Seconds after which to try again, where nothing else is known.
const RETRY_AFTER_S: u32 = 1;

/// How a request is encoded, and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Protobuf,
}

impl Form {
    fn content_type(self) -> &'static str {
        match self {
            Form::Json => "application/json",
            Form::Protobuf => "application/x-protobuf",
        }
    }

    fn respond(self, status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
        Body::whole(status, self.content_type(), body)
    }
}

/// Takes the records of one export.
pub(super) async fn push(app: &Arc<App>, request: Request<Inflow>) -> Response<Body> {
    let content_type = request.headers().get(CONTENT_TYPE);
    let content_type = content_type.map_or(&b""[..], |value| value.as_bytes());
    let media_type = content_type
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or_default();
    let form = match media_type.trim_ascii() {
        b"application/json" => Form::Json,
        b"application/x-protobuf" => Form::Protobuf,
        _ => {
            let message = "send `Content-Type: application/x-protobuf` or `application/json`";
            let error = ApiError::new(Kind::UnsupportedMediaType, message);
            return refusal(error, Form::Json);
        }
    };
    let answer = take(app, request, form).await;
    answer.unwrap_or_else(|error| refusal(error, form))
}

async fn take(
    app: &Arc<App>,
    request: Request<Inflow>,
    form: Form,
) -> Result<Response<Body>, ApiError> {
    let encoding = intake::encoding(request.headers())?;
    let line_bytes_max = app.line_bytes_max;
    let decode = move |body: &[u8]| {
        let decode = match form {
            Form::Json => otlp::decode_json,
            Form::Protobuf => otlp::decode_protobuf,
        };
        decode(body, Labels::new(), line_bytes_max).map_err(refused)
    };
    let pushed = intake::decode(app, request.into_body(), encoding, decode).await?;
    let metrics = app.metrics.intake(Intake::Otlp);
    metrics.rejected.add(pushed.rejected_total as u64);
    let answer = success(&pushed, form);
    let identity = once::identity_of(&pushed.batch);
    once::submit(app, Intake::Otlp, pushed.batch, identity).await?;
    Ok(form.respond(StatusCode::OK, answer))
}

pub(super) fn refused(error: OtlpError) -> ApiError {
    let kind = match error {
        OtlpError::TooLarge(_) => Kind::BodyTooLarge,
        OtlpError::Body(_) => Kind::BadRequest,
    };
    ApiError::new(kind, error.to_string())
}

/// An `ExportLogsServiceResponse`; empty if everything was taken.
fn success(pushed: &DecodedBody, form: Form) -> Vec<u8> {
    let rejected = pushed.rejected_total;
    let message = first_rejection(pushed);
    match form {
        Form::Json if rejected == 0 => b"{}".to_vec(),
        Form::Json => {
            let partial = json!({
                "rejectedLogRecords": rejected.to_string(),
                "errorMessage": message,
            });
            json!({ "partialSuccess": partial })
                .to_string()
                .into_bytes()
        }
        Form::Protobuf => success_message(pushed),
    }
}

/// An `ExportLogsServiceResponse` in Protocol Buffers; empty if everything was taken.
pub(super) fn success_message(pushed: &DecodedBody) -> Vec<u8> {
    otlp::write_success(pushed.rejected_total as u64, &first_rejection(pushed))
}

fn first_rejection(pushed: &DecodedBody) -> String {
    let first = pushed.rejected.first();
    first.map_or(String::new(), |rejection| {
        format!("record {}: {}", rejection.line, rejection.reason)
    })
}

/// A `google.rpc.Status`.
fn refusal(error: ApiError, form: Form) -> Response<Body> {
    let (status, _, retry_after) = error.kind.row();
    // Exporters drop what is answered by other statuses.
    let (status, code) = match status.as_u16() {
        401 => (status, 16),
        403 => (status, 7),
        429 => (status, 8),
        408 | 421 | 500.. => (StatusCode::SERVICE_UNAVAILABLE, 14),
        _ => (status, 3),
    };
    let body = match form {
        Form::Json => json!({ "code": code, "message": error.message })
            .to_string()
            .into_bytes(),
        Form::Protobuf => otlp::write_status(code, &error.message),
    };
    let mut response = form.respond(status, body);
    if matches!(status.as_u16(), 429 | 503) {
        let seconds = HeaderValue::from(retry_after.unwrap_or(RETRY_AFTER_S));
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}
