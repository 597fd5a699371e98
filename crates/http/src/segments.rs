//! `GET /api/v1/segments`: the files of the store.

use std::sync::Arc;

use hyper::Response;

use super::App;
use super::body::Body;
use super::error::ApiError;
use super::params::Params;
use super::rows::Begins;
use logpond_engine::query::{Maintenance, Output, QueryError, Trailer};

/// Lists the files.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    params.only(&[])?;
    let maintenance = app.maintenance.clone();
    let run = move |(), out: &mut Output| list(&*maintenance, out);
    app.threads.stream(Begins::AtOnce, || Ok(()), run).await
}

/// Writes a line for each file.
pub(super) fn list(maintenance: &dyn Maintenance, out: &mut Output) -> Result<Trailer, QueryError> {
    let (files, trailer) = maintenance.files();
    for file in files {
        out.json(&file)?;
    }
    Ok(trailer)
}
