//! `GET|POST /loki/api/v1/index/stats`: how much a selector means.

use std::sync::Arc;

use hyper::Response;
use logpond_search::aggregate::{StreamRow, StreamsRequest};

use super::reply::{failed, gathered, write_warnings};
use super::{LokiRequest, selector};
use crate::App;
use crate::body::Body;
use crate::error::ApiError;
use logpond_engine::query::{Output, QueryError, Scope, Trailer};

/// What a selector means.
struct Stats {
    streams: u64,
    rows: u64,
    bytes: u64,
}

/// Counts streams, records and bytes of lines. What Loki calls chunks are here as many as streams:
/// there are none.
pub(super) async fn answer(
    app: &Arc<App>,
    request: LokiRequest,
) -> Result<Response<Body>, ApiError> {
    let scope = selector::scope_of_request(&request)?;
    let gather = move |app: &App, out: &mut Output| stats(app, &scope, out).map_err(failed);
    gathered(app, &request.headers, gather, |stats, warnings, to| {
        let Stats {
            streams,
            rows,
            bytes,
        } = stats;
        write!(
            to,
            "{{\"streams\":{streams},\"chunks\":{streams},\"entries\":{rows},\"bytes\":{bytes}"
        )?;
        write_warnings(warnings, to)?;
        to.write_all(b"}\n")
    })
    .await
}

fn stats(app: &App, scope: &Scope, out: &mut Output) -> Result<(Stats, Trailer), QueryError> {
    let sum = |streams: &[StreamRow], count: u64| Stats {
        streams: count,
        rows: streams.iter().map(|row| row.tally.rows).sum(),
        bytes: streams.iter().map(|row| row.tally.bytes).sum(),
    };
    match app.engine.streams(scope, &StreamsRequest::default(), out) {
        Ok((streams, trailer)) => Ok((sum(&streams, streams.len() as u64), trailer)),
        // More streams than there is room for, as where each line has an id among its labels: there are at
        // least as many as a label has values.
        Err(QueryError::Impossible(_)) => {
            let (labels, _) = app.engine.labels(scope, out)?;
            let most = labels.fields.iter().map(|label| label.distinct).max();
            let by_nothing = StreamsRequest {
                by: Some(Vec::new()),
                steps: None,
            };
            let (streams, trailer) = app.engine.streams(scope, &by_nothing, out)?;
            Ok((sum(&streams, most.unwrap_or_default()), trailer))
        }
        Err(error) => Err(error),
    }
}
