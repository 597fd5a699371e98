//! `POST /loki/api/v1/push`, as Promtail, Alloy, Fluent Bit, Vector and Docker's driver send it.
//!
//! Invariants, after what these clients do with a status: 204 says that everything is durable; 400
//! only what never will be taken, after everything else is durable; whatever may pass is 429 or 5xx.
//! A body that is sent again, also while it is being stored, is stored once.

use std::sync::Arc;

use hyper::header::CONTENT_TYPE;
use hyper::{Request, Response, StatusCode};
use logpond_protocol::intake::body::Encoding;
use logpond_protocol::intake::push::DecodedBody;
use logpond_protocol::intake::push::loki::{self, LokiError};
use logpond_record::Labels;
use xxhash_rust::xxh3::xxh3_128;

use super::super::inflow::Inflow;
use super::reply::{TEXT, refusal};
use crate::App;
use crate::body::Body;
use crate::error::{ApiError, Kind};
use crate::{intake, once};
use logpond_host::telemetry::Intake;

/// Takes the entries of one push.
pub(crate) async fn push(app: &Arc<App>, request: Request<Inflow>) -> Response<Body> {
    let answer = take(app, request).await;
    answer.unwrap_or_else(refusal)
}

async fn take(app: &Arc<App>, request: Request<Inflow>) -> Result<Response<Body>, ApiError> {
    let headers = request.headers();
    let content_type = intake::text_of(headers, CONTENT_TYPE)?;
    let media_type = content_type.split(';').next().unwrap_or("").trim();
    let is_json = media_type.eq_ignore_ascii_case("application/json");
    let encoding = if is_json {
        intake::encoding(headers)?
    } else {
        // Whatever the header says of it.
        Encoding::SnappyBlock
    };
    let line_bytes_max = app.line_bytes_max;
    let decode = move |body: &[u8]| {
        let decode = if is_json {
            loki::decode_json
        } else {
            loki::decode_protobuf
        };
        let pushed = decode(body, Labels::new(), line_bytes_max).map_err(refused)?;
        Ok((pushed, xxh3_128(body)))
    };
    let (pushed, identity) = intake::decode(app, request.into_body(), encoding, decode).await?;
    let metrics = app.metrics.intake(Intake::Loki);
    metrics.rejected.add(pushed.rejected_total as u64);
    let trouble = rejections(&pushed);
    once::submit(app, Intake::Loki, pushed.batch, Some(identity)).await?;
    Ok(match trouble {
        None => Body::whole(StatusCode::NO_CONTENT, "text/plain", ""),
        Some(text) => Body::whole(StatusCode::BAD_REQUEST, TEXT, text),
    })
}

fn refused(error: LokiError) -> ApiError {
    let kind = match error {
        LokiError::NoStreams => Kind::NothingPushed,
        LokiError::TooLarge(_) => Kind::BodyTooLarge,
        LokiError::Body(_) | LokiError::Labels { .. } => Kind::BadRequest,
    };
    ApiError::new(kind, error.to_string())
}

/// What was not taken, if something was not: the first reason in the first line, which is all that Promtail
/// logs.
fn rejections(pushed: &DecodedBody) -> Option<String> {
    let (accepted, rejected) = (pushed.accepted, pushed.rejected_total);
    let mut text = format!("{accepted} entries are stored, {rejected} are not: ");
    for rejection in &pushed.rejected {
        text.push_str(&format!("entry {}: {}\n", rejection.line, rejection.reason));
    }
    (rejected > 0).then_some(text)
}
