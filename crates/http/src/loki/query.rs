//! `GET|POST /loki/api/v1/query`: numbers at an instant.

use std::sync::Arc;

use hyper::Response;
use logpond_search::logql::{self, Query};
use logpond_search::metric::Plan;

use super::{LokiRequest, numbers, selector, times};
use crate::App;
use crate::body::Body;
use crate::error::ApiError;

/// Answers a query at an instant; lines need a range.
pub(super) async fn answer(
    app: &Arc<App>,
    request: LokiRequest,
) -> Result<Response<Body>, ApiError> {
    let text = request.text("query").unwrap_or_default();
    let Query::Metric(query) = logql::parse(text).map_err(selector::refused)? else {
        return Err(ApiError::bad_request(
            "log queries are not supported as an instant query type, please change your query to a \
             range query type",
        ));
    };
    // Said before the work, as every parameter that is wrong.
    times::limit(&request)?;
    times::direction(&request)?;
    let at = times::instant(&request, "time")?.unwrap_or(request.now);
    let plan = Plan::instant(query, at, request.now.0);
    let plan = plan.map_err(|e| ApiError::bad_request(e.to_string()))?;
    numbers::answer(app, &request, plan, at).await
}
