//! `POST /api/v1/forget?file=&all=`: accepts the loss of files that have vanished from the data directory.

use std::sync::Arc;

use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::App;
use super::body::Body;
use super::compact::refusal;
use super::error::{ApiError, Kind};
use super::params::Params;

/// Parameters of it.
pub(super) const PARAMS: [&str; 2] = ["all", "file"];

/// Forgets what is meant, and says what was lost with it.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    params.only(&PARAMS)?;
    let file = params.one("file")?.map(str::to_owned);
    if file.is_some() == params.flag("all", false)? {
        return Err(ApiError::bad_request(
            "say which file is meant, as in file=NAME, or all=true",
        ));
    }
    let store = app.store.clone();
    let name = file.clone();
    // Blocking work is only thrown away when the process ends.
    let forgotten = tokio::task::spawn_blocking(move || store.forget(name)).await;
    let forgotten = forgotten.map_err(|e| ApiError::new(Kind::Internal, e.to_string()))?;
    let forgotten = forgotten.map_err(refusal)?;
    if let (Some(file), true) = (file, forgotten.is_empty()) {
        let message = format!("no file named '{file}' is missing; answers name those that are");
        return Err(ApiError::new(Kind::NotFound, message));
    }
    let files = forgotten.iter().map(|absent| {
        json!({
            "file": absent.path,
            "records": absent.rows,
            "received_min": absent.received_min.to_string(),
            "received_max": absent.received_max.to_string(),
        })
    });
    let files: Vec<Value> = files.collect();
    Ok(Body::json(StatusCode::OK, &json!({ "forgotten": files })))
}
