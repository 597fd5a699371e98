//! `GET /api/v1/batches`: what has become of named batches.

use std::sync::Arc;

use hyper::{Response, StatusCode};
use logpond_segment::batches::BatchSet;
use logpond_segment::sources::Interval;
use serde_json::{Value, json};

use super::App;
use super::body::Body;
use super::error::ApiError;
use super::params::Params;

/// Parameters.
pub(super) const PARAMS: [&str; 2] = ["epoch", "run"];

/// Says which batches are durable and which are replicated.
pub(super) fn answer(app: &Arc<App>, params: &Params) -> Result<Response<Body>, ApiError> {
    params.only(&PARAMS)?;
    let given = params.one("epoch")?.unwrap_or_default();
    let is_lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let epoch = match u128::from_str_radix(given, 16) {
        Ok(epoch) if given.len() == 32 && given.bytes().all(is_lower_hex) => epoch,
        _ => {
            let message = "parameter 'epoch': expected 32 lower-case hexadecimal digits";
            return Err(ApiError::bad_request(message));
        }
    };
    let mut wanted = BatchSet::default();
    for text in params.all("run") {
        let run = run(text).ok_or_else(|| {
            ApiError::bad_request(format!("parameter 'run': '{text}' is not FIRST-LAST"))
        })?;
        wanted.insert_run(epoch, run);
    }
    let states = app.ingest.durability().states(&wanted);
    let runs = |batches: &BatchSet| {
        let runs = batches.runs().map(|(_, run)| json!([run.from, run.to]));
        Value::Array(runs.collect())
    };
    let answer = json!({
        "epoch": given,
        "durable": runs(&states.durable),
        "replicated": runs(&states.replicated),
    });
    Ok(Body::json(StatusCode::OK, &answer))
}

fn run(text: &str) -> Option<Interval> {
    let (from, to) = text.split_once('-')?;
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    (from <= to).then_some(Interval { from, to })
}
