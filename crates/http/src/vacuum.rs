//! `POST /api/v1/vacuum?age=&size=&files=&rotate=`: removes the oldest files of this server now.

use std::sync::Arc;

use hyper::{Response, StatusCode};
use logpond_search::size::{Size, parse_duration, parse_size};
use serde_json::json;

use super::App;
use super::body::Body;
use super::compact::refusal;
use super::error::{ApiError, Kind};
use super::params::Params;
use logpond_engine::store::Vacuum;

/// Parameters of it.
pub(super) const PARAMS: [&str; 4] = ["age", "size", "files", "rotate"];

/// Removes what is beyond the limits, and says how much that was.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    params.only(&PARAMS)?;
    let limits = limits(&params)?;
    let store = app.store.clone();
    // Blocking work is only thrown away when the process ends.
    let removed = tokio::task::spawn_blocking(move || store.vacuum(limits)).await;
    let removed = removed.map_err(|e| ApiError::new(Kind::Internal, e.to_string()))?;
    let removed = removed.map_err(refusal)?;
    Ok(Body::json(
        StatusCode::OK,
        &json!({ "files": removed.files, "records": removed.records, "bytes": removed.bytes }),
    ))
}

/// Zero would be all there is, where journalctl means no limit by it.
fn limits(params: &Params) -> Result<Vacuum, ApiError> {
    let read = |name: &str, read: fn(&str) -> Result<u64, String>| {
        let value = params.one(name)?.map(read).transpose();
        let value = value.map_err(|e| ApiError::bad_request(format!("parameter '{name}': {e}")))?;
        match value {
            Some(0) => Err(ApiError::bad_request(format!(
                "parameter '{name}' is more than 0; leave it out for no limit"
            ))),
            value => Ok(value),
        }
    };
    let (age, size, files) = (
        read("age", age_ns)?,
        read("size", size_bytes)?,
        read("files", whole)?,
    );
    let limits = Vacuum {
        age_ns: age.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX)),
        size_bytes: size,
        files_max: files.map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
        rotate: params.flag("rotate", false)?,
    };
    if limits == Vacuum::default() {
        Err(ApiError::bad_request(
            "say how much is to stay: age, size or files; or rotate=true",
        ))
    } else {
        Ok(limits)
    }
}

fn age_ns(text: &str) -> Result<u64, String> {
    let ns = parse_duration(text).map_err(|e| e.to_string())?;
    u64::try_from(ns).map_err(|_| format!("an age is not negative, as '{text}' is"))
}

fn size_bytes(text: &str) -> Result<u64, String> {
    // Zero needs no unit, and has an error of its own.
    if text.trim() == "0" {
        return Ok(0);
    }
    match parse_size(text).map_err(|e| e.to_string())? {
        Size::Bytes(bytes) => Ok(bytes),
        Size::Percent(_) => Err(format!("expected a size such as 2GiB, not '{text}'")),
    }
}

fn whole(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("expected a whole number, not '{text}'"))
}
