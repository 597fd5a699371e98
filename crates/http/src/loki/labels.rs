//! `GET|POST /loki/api/v1/labels`: the names of labels.

use std::sync::Arc;

use hyper::Response;

use super::reply::{self, Writer, failed, gathered, write_warnings};
use super::{LokiRequest, selector};
use crate::App;
use crate::body::Body;
use crate::error::ApiError;

/// Lists what was declared beside lines, and the service.
pub(super) async fn answer(
    app: &Arc<App>,
    request: LokiRequest,
) -> Result<Response<Body>, ApiError> {
    let scope = selector::scope_of_request(&request)?;
    let gather = move |app: &App, out: &mut _| {
        let (labels, trailer) = app.engine.labels(&scope, out).map_err(failed)?;
        let mut names: Vec<_> = labels.fields.into_iter().map(|f| f.name).collect();
        names.sort_unstable();
        Ok((names, trailer))
    };
    gathered(app, &request.headers, gather, |names, warnings, to| {
        write(&names, warnings, to)
    })
    .await
}

/// Writes a list of texts; without any there is no list, as clients expect it.
pub(super) fn write<S: AsRef<str>>(
    texts: &[S],
    warnings: &[String],
    to: Writer<'_>,
) -> std::io::Result<()> {
    to.write_all(b"{\"status\":\"success\"")?;
    if !texts.is_empty() {
        to.write_all(b",\"data\":")?;
        reply::write_texts(texts, to)?;
    }
    write_warnings(warnings, to)?;
    to.write_all(b"}\n")
}
