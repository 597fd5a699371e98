//! `POST /insert/jsonline`: VictoriaLogs' ingestion of JSON lines.
//!
//! Invariants: 200 says that everything is durable. With bad lines the status is 400, the good ones are durable, and the
//! answer counts both.

use std::sync::Arc;

use hyper::header::HeaderName;
use hyper::{Request, Response, StatusCode};
use logpond_protocol::intake::push::{self as decoder, PushForm};
use logpond_record::Labels;
use logpond_settings::{message_fields, time_fields};

use super::App;
use super::body::Body;
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::params::Params;
use super::push::{LABEL_VALUE_BYTES_MAX, LABELS_MAX};
use super::{intake, once};
use logpond_host::telemetry::Intake;

/// An argument: the parameter of the address, and the header that is the same.
struct Argument {
    parameter: &'static str,
    header: &'static str,
}

const TIME: Argument = Argument {
    parameter: "_time_field",
    header: "vl-time-field",
};
const MESSAGE: Argument = Argument {
    parameter: "_msg_field",
    header: "vl-msg-field",
};
const STREAMS: Argument = Argument {
    parameter: "_stream_fields",
    header: "vl-stream-fields",
};
const EXTRA: Argument = Argument {
    parameter: "extra_fields",
    header: "vl-extra-fields",
};
const IGNORED: Argument = Argument {
    parameter: "ignore_fields",
    header: "vl-ignore-fields",
};

/// Parameters of an ingestion.
pub(super) const PARAMS: [&str; 5] = [
    TIME.parameter,
    MESSAGE.parameter,
    STREAMS.parameter,
    EXTRA.parameter,
    IGNORED.parameter,
];

impl Argument {
    /// The text that was given: the parameter counts before the header.
    fn of(&self, params: &Params, request: &Request<Inflow>) -> Result<String, ApiError> {
        if let Some(text) = params.one(self.parameter)? {
            return Ok(text.trim().to_owned());
        }
        let header = HeaderName::from_static(self.header);
        Ok(intake::text_of(request.headers(), header)?
            .trim()
            .to_owned())
    }
}

/// Takes the lines of one request.
pub(super) async fn answer(
    app: &Arc<App>,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let params = Params::of(request.uri())?;
    params.only(&PARAMS)?;
    let labels = labels(&params, &request)?;
    let encoding = intake::encoding(request.headers())?;
    let line_bytes_max = app.line_bytes_max;
    let decode = move |body: &[u8]| {
        let decoded = decoder::decode(PushForm::NdJson, body, labels, line_bytes_max);
        decoded.map_err(|error| ApiError::new(Kind::BodyTooLarge, error.to_string()))
    };
    let pushed = intake::decode(app, request.into_body(), encoding, decode).await?;
    let identity = once::identity_of(&pushed.batch);
    once::submit_all(app, Intake::JsonLine, pushed, identity, "line").await?;
    Ok(Body::whole(StatusCode::OK, "text/plain", ""))
}

fn labels(params: &Params, request: &Request<Inflow>) -> Result<Labels, ApiError> {
    // Every field is indexed here, so none need be named for that; the names are checked by no one.
    STREAMS.of(params, request)?;
    if !IGNORED.of(params, request)?.is_empty() {
        let message = "ignore_fields is not supported: drop fields by a rule (--rules)";
        return Err(ApiError::bad_request(message));
    }
    let mut labels = Labels::new();
    let extra = EXTRA.of(params, request)?;
    for pair in extra.split(',').filter(|pair| !pair.is_empty()) {
        let is_right = |(name, value): &(&str, &str)| {
            !name.is_empty() && value.len() <= LABEL_VALUE_BYTES_MAX && labels.len() < LABELS_MAX
        };
        let Some((name, value)) = pair.split_once('=').filter(is_right) else {
            return Err(ApiError::bad_request(format!(
                "extra_fields is NAME=VALUE,… of at most {LABELS_MAX} fields, each value of at most \
                 {LABEL_VALUE_BYTES_MAX} bytes"
            )));
        };
        labels.push((name.into(), value.into()));
    }
    for (argument, read) in [
        (TIME, time_fields as fn(&str) -> _),
        (MESSAGE, message_fields),
    ] {
        let names = argument.of(params, request)?;
        if !names.is_empty() {
            let bad =
                |what: String| ApiError::bad_request(format!("{}: {what}", argument.parameter));
            labels.extend(read(&names).map_err(bad)?);
        }
    }
    Ok(labels)
}
