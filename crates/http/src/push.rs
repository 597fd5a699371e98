//! `POST /api/v1/push`: newline-delimited JSON objects or lines of text.
//!
//! Invariants: a bad line never takes a good one with it; an answer of success says how many
//! records were kept and lists what was not.

use std::sync::Arc;

use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Request, Response, StatusCode};
use logpond_protocol::intake::push::{self, DecodedBody, PushForm};
use logpond_record::{Labels, limits::FIELD_NAME_BYTES_MAX};
use logpond_segment::batches::{BatchId, BatchIdError};
use serde_json::json;

use super::App;
use super::body::Body;
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::intake;
use super::params::Params;
use logpond_client::{BATCH_HEADER, LOAD_HEADER};
use logpond_host::telemetry::Intake;
use logpond_settings::{message_fields, time_fields};

/// Parameters of a push.
pub(super) const PARAMS: [&str; 4] = ["durable", "label", "time-field", "message-field"];

/// Labels of one push; senders declare a handful.
pub(super) const LABELS_MAX: usize = 32;

/// Longest value of a label.
pub(super) const LABEL_VALUE_BYTES_MAX: usize = 4096;

/// Takes the records of one body.
pub(super) async fn answer(
    app: &Arc<App>,
    params: Params,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    params.only(&PARAMS)?;
    let durable = params.flag("durable", true)?;
    let labels = labels(&params)?;
    let form = form(request.headers())?;
    let encoding = intake::encoding(request.headers())?;
    let id = batch_id(request.headers())?;
    let line_bytes_max = app.line_bytes_max;
    let decode = move |body: &[u8]| {
        let decoded = push::decode(form, body, labels, line_bytes_max);
        decoded.map_err(|error| ApiError::new(Kind::BodyTooLarge, error.to_string()))
    };
    let pushed = intake::decode(app, request.into_body(), encoding, decode).await?;
    let DecodedBody {
        batch,
        accepted,
        rejected,
        rejected_total,
    } = pushed;
    let metrics = app.metrics.intake(Intake::Http);
    metrics.rejected.add(rejected_total as u64);
    let done = intake::submit(app, Intake::Http, batch, id, durable).await?;
    let durability = app.ingest.durability();
    let is_replicated = durable && done.source.is_none_or(|s| durability.is_replicated(s));
    let rejected: Vec<_> = rejected
        .iter()
        .map(|r| json!({ "line": r.line, "reason": r.reason.to_string() }))
        .collect();
    let status = match (accepted, rejected_total) {
        (0, 1..) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    let answer = json!({
        "accepted": accepted,
        "durable": durable,
        "replicated": is_replicated,
        "rejected": rejected,
        "rejected_total": rejected_total,
    });
    let mut response = Body::json(status, &answer);
    let load = HeaderValue::from_static(app.ingest.load().as_str());
    response.headers_mut().insert(LOAD_HEADER, load);
    Ok(response)
}

fn form(headers: &HeaderMap) -> Result<PushForm, ApiError> {
    let given = intake::text_of(headers, CONTENT_TYPE)?;
    PushForm::from_header(given).ok_or_else(|| {
        let given = if given.is_empty() { "none" } else { given };
        let message = format!(
            "content type {given} is not taken; send `Content-Type: application/x-ndjson` for a \
             JSON object a line, or `Content-Type: text/plain` for a record a line"
        );
        ApiError::new(Kind::UnsupportedMediaType, message)
    })
}

/// The name that the producer gave the batch, if it did.
fn batch_id(headers: &HeaderMap) -> Result<Option<BatchId>, ApiError> {
    let mut given = headers.get_all(BATCH_HEADER).iter();
    let name = match intake::text_of(headers, HeaderName::from_static(BATCH_HEADER))? {
        "" if given.next().is_none() => return Ok(None),
        name => name,
    };
    if given.count() > 1 {
        let message = format!("header {BATCH_HEADER} is given twice; a batch has one name");
        return Err(ApiError::bad_request(message));
    }
    let id = name.parse();
    let refuse = |e: BatchIdError| {
        ApiError::bad_request(format!(
            "header {BATCH_HEADER}: '{name}' names no batch: {e}"
        ))
    };
    id.map(Some).map_err(refuse)
}

pub(super) fn labels(params: &Params) -> Result<Labels, ApiError> {
    let mut labels = Labels::new();
    for text in params.all("label") {
        let bad = |what: String| Err(ApiError::bad_request(format!("parameter 'label': {what}")));
        let Some((name, value)) = text.split_once('=') else {
            return bad(format!("'{text}' is not NAME=VALUE"));
        };
        if name.is_empty() || name.len() > FIELD_NAME_BYTES_MAX {
            return bad(format!("a name has from 1 to {FIELD_NAME_BYTES_MAX} bytes"));
        }
        if value.len() > LABEL_VALUE_BYTES_MAX {
            return bad(format!(
                "the value of '{name}' is longer than {LABEL_VALUE_BYTES_MAX} bytes"
            ));
        }
        if labels.len() >= LABELS_MAX {
            return bad(format!("more than {LABELS_MAX} labels"));
        }
        labels.push((name.into(), value.into()));
    }
    for (name, read) in [
        ("time-field", time_fields as fn(&str) -> _),
        ("message-field", message_fields),
    ] {
        let names: Vec<&str> = params.all(name).collect();
        if !names.is_empty() {
            let bad = |what: String| ApiError::bad_request(format!("parameter '{name}': {what}"));
            labels.extend(read(&names.join(",")).map_err(bad)?);
        }
    }
    Ok(labels)
}
