//! `/api/v1/saved-queries`: queries by name.

use std::sync::Arc;

use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use super::App;
use super::body::{self, Body};
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::params::{self, Params};
use logpond_engine::saved::{
    DESCRIPTION_BYTES_MAX, LEGEND_BYTES_MAX, QUERY_BYTES_MAX, SavedError, SavedQueries, SavedQuery,
    VIEW_BYTES_MAX,
};
use logpond_host::clock;

/// The longest body: all parts of a query, each of their bytes escaped.
const BODY_BYTES_MAX: usize = 1 << 20;

const _: () = assert!(
    6 * (QUERY_BYTES_MAX + DESCRIPTION_BYTES_MAX + LEGEND_BYTES_MAX + VIEW_BYTES_MAX)
        < BODY_BYTES_MAX,
    "every query fits that can be saved"
);

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    List,
    Show,
    Change,
}

/// Answers a question; `names` are those in its path.
pub(super) async fn answer(
    app: &Arc<App>,
    question: Question,
    names: &[&str],
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    Params::of(request.uri())?.only(&[])?;
    let name = params::of_path(names.first().copied().unwrap_or_default())?;
    match question {
        Question::List => Ok(Body::json(StatusCode::OK, &list(&app.saved))),
        Question::Show => show(&app.saved, &name, StatusCode::OK),
        Question::Change if request.method() == Method::DELETE => {
            let gone = name.clone();
            change(app, move |saved| saved.remove(&gone, clock::now())).await?;
            Ok(Body::json(StatusCode::OK, &json!({ "removed": name })))
        }
        Question::Change => {
            let body = body::receive(request.into_body(), BODY_BYTES_MAX, &app.bodies).await?;
            let query = read(&body.bytes)?;
            let known = app.saved.catalog().get(&name).is_some();
            let target = name.clone();
            change(app, move |saved| saved.set(&target, query, clock::now())).await?;
            let status = if known {
                StatusCode::OK
            } else {
                StatusCode::CREATED
            };
            show(&app.saved, &name, status)
        }
    }
}

fn read(body: &[u8]) -> Result<SavedQuery, ApiError> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("the body is no JSON: {error}")))?;
    SavedQuery::from_json(&value).map_err(refusal)
}

fn list(saved: &SavedQueries) -> Value {
    let all = saved.all().into_iter();
    let all: Vec<Value> = all
        .map(|(name, query, is_built_in)| shown(&name, &query, is_built_in))
        .collect();
    json!({ "queries": all })
}

fn show(saved: &SavedQueries, name: &str, status: StatusCode) -> Result<Response<Body>, ApiError> {
    let Some(query) = saved.get(name) else {
        return Err(refusal(SavedError::Unknown(name.to_owned())));
    };
    let is_built_in = saved.catalog().get(name).is_none();
    Ok(Body::json(status, &shown(name, &query, is_built_in)))
}

fn shown(name: &str, query: &SavedQuery, is_built_in: bool) -> Value {
    let mut value = query.to_json(name);
    value["built_in"] = is_built_in.into();
    value
}

/// Changes what is saved, on a thread that may wait for the disk.
async fn change(
    app: &Arc<App>,
    work: impl FnOnce(&SavedQueries) -> Result<(), SavedError> + Send + 'static,
) -> Result<(), ApiError> {
    let saved = app.saved.clone();
    let done = tokio::task::spawn_blocking(move || work(&saved)).await;
    let done = done.map_err(|error| ApiError::new(Kind::Internal, error.to_string()))?;
    done.map_err(refusal)
}

fn refusal(error: SavedError) -> ApiError {
    let kind = match &error {
        SavedError::Name(_) | SavedError::Part { .. } => Kind::BadRequest,
        SavedError::Variable(_) | SavedError::Query(_) => Kind::BadQuery,
        SavedError::Unknown(_) => Kind::NotFound,
        SavedError::TooMany | SavedError::TooLarge | SavedError::BuiltIn(_) => Kind::Conflict,
        SavedError::File { .. } => Kind::Internal,
        SavedError::Disk(_) => Kind::DiskFull,
    };
    let message = match &error {
        SavedError::Disk(source) => format!("{error}: {source}"),
        error => error.to_string(),
    };
    ApiError::new(kind, message)
}
