//! `GET|POST /loki/api/v1/series`: the streams that selectors mean.

use std::collections::BTreeSet;
use std::sync::Arc;

use hyper::Response;
use logpond_search::Filter;
use logpond_search::aggregate::{LabelSet, StreamsRequest};
use logpond_search::logql;

use super::reply::{failed, gathered, write_labels, write_warnings};
use super::{LokiRequest, selector, times};
use crate::App;
use crate::body::Body;
use crate::error::ApiError;

/// Lists the streams that at least one of the selectors means, all if there is none.
pub(super) async fn answer(
    app: &Arc<App>,
    request: LokiRequest,
) -> Result<Response<Body>, ApiError> {
    let range = times::range(&request)?;
    let given = ["match[]", "match"].into_iter();
    let selectors: Vec<String> = given
        .flat_map(|name| request.params.all(name))
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
        .collect();
    let gather = move |app: &App, out: &mut _| {
        let scope = selector::scope_of_filter(filter(&selectors)?, range)?;
        let request = StreamsRequest::default();
        let (streams, trailer) = app.engine.streams(&scope, &request, out).map_err(failed)?;
        let streams: BTreeSet<LabelSet> = streams.into_iter().map(|row| row.labels).collect();
        Ok((streams, trailer))
    };
    gathered(app, &request.headers, gather, |streams, warnings, to| {
        to.write_all(b"{\"status\":\"success\",\"data\":[")?;
        for (at, labels) in streams.iter().enumerate() {
            if at > 0 {
                to.write_all(b",")?;
            }
            write_labels(labels.iter(), to)?;
        }
        to.write_all(b"]")?;
        write_warnings(warnings, to)?;
        to.write_all(b"}\n")
    })
    .await
}

fn filter(selectors: &[String]) -> Result<Filter, ApiError> {
    let mut filters = Vec::new();
    for text in selectors {
        let matchers = selector::matchers(Some(text))?;
        filters.push(logql::filter_of_matchers(&matchers));
    }
    Ok(if filters.is_empty() {
        Filter::All
    } else {
        Filter::or(filters)
    })
}
