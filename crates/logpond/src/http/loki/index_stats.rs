//! `GET|POST /loki/api/v1/index/stats`: how much a selector means.

use std::sync::Arc;

use hyper::Response;
use logpond_search::aggregate::StreamsAsked;

use super::reply::{failed, gathered, write_warnings};
use super::{Asked, selector, times};
use crate::http::App;
use crate::http::body::Body;
use crate::http::error::ApiError;

/// Counts streams, records and bytes of lines. What Loki calls chunks are here as many as streams:
/// there are none.
pub(super) async fn answer(app: &Arc<App>, asked: Asked) -> Result<Response<Body>, ApiError> {
    let range = times::range(&asked)?;
    let query = asked.text("query").map(str::to_owned);
    let gather = move |app: &App, out: &mut _| {
        let scope = selector::scope(query.as_deref(), range)?;
        let asked = StreamsAsked::default();
        app.engine.streams(&scope, &asked, out).map_err(failed)
    };
    gathered(app, &asked.headers, gather, |streams, warnings, to| {
        let count = streams.len();
        let rows: u64 = streams.iter().map(|row| row.tally.rows).sum();
        let bytes: u64 = streams.iter().map(|row| row.tally.bytes).sum();
        write!(
            to,
            "{{\"streams\":{count},\"chunks\":{count},\"entries\":{rows},\"bytes\":{bytes}"
        )?;
        write_warnings(warnings, to)?;
        to.write_all(b"}\n")
    })
    .await
}
