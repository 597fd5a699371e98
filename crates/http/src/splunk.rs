//! `/services/collector`: Splunk's HTTP Event Collector, as Fluent Bit, Vector, Docker's driver and the
//! OpenTelemetry collector send to it.
//!
//! Invariants: code 0 says that everything is durable. With bad events the status and the first of them are as
//! Splunk answers; all good ones are durable, and the answer counts them and names the bad ones. An
//! acknowledgement id is given after its events are
//! durable, so each is acknowledged at once whenever it is asked for.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::{Method, Request, Response, StatusCode};
use logpond_protocol::intake::push::TooLarge;
use logpond_protocol::intake::push::splunk::{self, HecError, METADATA, Metadata};
use logpond_record::Labels;
use serde_json::{Map, Value, json};

use super::App;
use super::body::{self, Body};
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::params::Params;
use super::{intake, once};
use logpond_host::telemetry::Intake;

/// The header that names a channel, without which no acknowledgements are given.
const CHANNEL_HEADER: &str = "x-splunk-request-channel";

/// The longest question about acknowledgements.
const QUESTION_BYTES_MAX: usize = 1 << 20;

/// What is asked of the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Event,
    Raw,
    Ack,
    Health,
}

/// Answers a question.
pub(super) async fn answer(
    app: &Arc<App>,
    question: Question,
    request: Request<Inflow>,
) -> Response<Body> {
    // What senders ask before they send.
    if *request.method() == Method::OPTIONS {
        return said(StatusCode::OK, "Success", 0);
    }
    let answered = match question {
        Question::Event => events(app, request).await,
        Question::Raw => raw(app, request).await,
        Question::Ack => acks(app, request).await,
        Question::Health => health(app),
    };
    answered.unwrap_or_else(refusal)
}

fn said(status: StatusCode, text: &str, code: u32) -> Response<Body> {
    Body::json(status, &json!({ "text": text, "code": code }))
}

fn health(app: &App) -> Result<Response<Body>, ApiError> {
    app.ingest.gate().check()?;
    Ok(if app.shutdown.is_stopping() {
        said(StatusCode::SERVICE_UNAVAILABLE, "HEC is unhealthy", 18)
    } else {
        said(StatusCode::OK, "HEC is healthy", 17)
    })
}

async fn events(app: &Arc<App>, request: Request<Inflow>) -> Result<Response<Body>, ApiError> {
    let (metadata, has_channel) = read_head(&request)?;
    let encoding = intake::encoding(request.headers())?;
    let line_bytes_max = app.line_bytes_max;
    let decode =
        move |body: &[u8]| splunk::decode(body, &metadata, line_bytes_max).map_err(too_large);
    let events = intake::decode(app, request.into_body(), encoding, decode).await?;
    let rejected = RejectedEvents {
        accepted: events.batch.len(),
        bad: events.bad,
        bad_total: events.bad_total,
    };
    let identity = once::identity_of(&events.batch);
    once::submit(app, Intake::Splunk, events.batch, identity).await?;
    Ok(rejected.answer(app, has_channel))
}

fn too_large(error: TooLarge) -> ApiError {
    ApiError::new(Kind::BodyTooLarge, error.to_string())
}

async fn raw(app: &Arc<App>, request: Request<Inflow>) -> Result<Response<Body>, ApiError> {
    let (metadata, has_channel) = read_head(&request)?;
    let encoding = intake::encoding(request.headers())?;
    let line_bytes_max = app.line_bytes_max;
    let decode =
        move |body: &[u8]| splunk::decode_raw(body, &metadata, line_bytes_max).map_err(too_large);
    let pushed = intake::decode(app, request.into_body(), encoding, decode).await?;
    let bad = pushed.rejected.into_iter();
    let mut rejected = RejectedEvents {
        accepted: pushed.accepted,
        bad: bad
            .map(|bad| (bad.line - 1, HecError::Rejected(bad.reason)))
            .collect(),
        bad_total: pushed.rejected_total,
    };
    if rejected.accepted + rejected.bad_total == 0 {
        rejected.bad = vec![(0, HecError::NoData)];
    }
    let identity = once::identity_of(&pushed.batch);
    once::submit(app, Intake::Splunk, pushed.batch, identity).await?;
    Ok(rejected.answer(app, has_channel))
}

fn success(app: &App, has_channel: bool) -> Response<Body> {
    let mut answer = json!({ "text": "Success", "code": 0 });
    if has_channel {
        answer["ackId"] = app.acks.fetch_add(1, Ordering::Relaxed).into();
    }
    Body::json(StatusCode::OK, &answer)
}

/// The events of a request that were not stored.
struct RejectedEvents {
    /// How many were.
    accepted: usize,
    bad: Vec<(usize, HecError)>,
    bad_total: usize,
}

impl RejectedEvents {
    fn answer(self, app: &App, has_channel: bool) -> Response<Body> {
        let Some((number, error)) = self.bad.first() else {
            return success(app, has_channel);
        };
        let mut answer = json!({ "text": error.to_string(), "code": error.code() });
        if *error != HecError::NoData {
            let rejected = &app.metrics.intake(Intake::Splunk).rejected;
            rejected.add(self.bad_total as u64);
            let bad = self.bad.iter().map(|(number, error)| {
                json!({ "number": number, "code": error.code(), "text": error.to_string() })
            });
            answer["invalid-event-number"] = (*number).into();
            answer["invalid-events"] = bad.collect();
            answer["invalid-events-total"] = self.bad_total.into();
            answer["accepted"] = self.accepted.into();
        }
        Body::json(StatusCode::BAD_REQUEST, &answer)
    }
}

/// What the address says of all events, and whether the sender asks for acknowledgements.
fn read_head(request: &Request<Inflow>) -> Result<(Metadata, bool), ApiError> {
    let params = Params::of(request.uri())?;
    let mut fields = Labels::new();
    for (name, field) in METADATA {
        if let Some(value) = params.one(name)? {
            fields.push((field.into(), value.into()));
        }
    }
    let time = params.one("time")?.map(splunk::seconds).transpose();
    let time = time.map_err(|reason| ApiError::bad_request(reason.to_string()))?;
    let has_channel =
        params.one("channel")?.is_some() || request.headers().contains_key(CHANNEL_HEADER);
    Ok((Metadata { fields, time }, has_channel))
}

/// Every id that was given stands for events that are durable.
async fn acks(app: &Arc<App>, request: Request<Inflow>) -> Result<Response<Body>, ApiError> {
    let question = body::receive(request.into_body(), QUESTION_BYTES_MAX, &app.bodies).await?;
    let question: Value = serde_json::from_slice(&question.bytes)
        .map_err(|error| ApiError::bad_request(format!("Invalid data format: {error}")))?;
    let ids = question["acks"].as_array().into_iter().flatten();
    let acks: Map<String, Value> = ids.map(|id| (id.to_string(), true.into())).collect();
    Ok(Body::json(StatusCode::OK, &json!({ "acks": acks })))
}

/// An error in the form of the collector.
fn refusal(error: ApiError) -> Response<Body> {
    let (status, _, _) = error.kind.row();
    let (status, code) = match status.as_u16() {
        408 | 421 | 429 | 502.. => (StatusCode::SERVICE_UNAVAILABLE, 9),
        500 => (status, 8),
        _ => (status, 6),
    };
    said(status, &error.message, code)
}
