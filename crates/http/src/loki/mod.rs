//! The HTTP interface of Loki: what Grafana, its app for logs, logcli and shippers ask.
//!
//! Invariants:
//! - Errors are plain text, as these clients show them; their statuses are those of the table.
//! - Parameters are read as Loki reads them, in the address and in forms; unknown ones are passed
//!   over.
//! - There is no limit on series or rows: what answers hold in memory is bounded, and who asks for
//!   more is told so.
//! - An answer that lacks something says so in its `warnings`.

mod reply;
mod build_info;
mod delete;
mod detected_fields;
mod detected_labels;
mod drilldown_limits;
mod format_query;
mod index_stats;
mod index_volume;
mod label_values;
mod labels;
mod numbers;
mod patterns;
mod push;
mod query;
mod query_range;
mod rule_groups;
mod rules;
mod selector;
mod series;
mod streams;
mod tail;
mod times;

use std::sync::Arc;

use hyper::header::HeaderMap;
use hyper::{Request, Response};

use super::App;
use super::body::Body;
use super::error::ApiError;
use super::inflow::Inflow;
use super::params::Params;
use super::router;
use logpond_host::clock;
use logpond_record::Timestamp;

pub(super) use push::push;
pub(super) use reply::refusal;

/// Whether a path is one of Loki's, so that errors there have its form, too.
pub(super) fn is_path(path: &str) -> bool {
    path.starts_with("/loki/") || path.starts_with("/api/prom/")
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Query,
    QueryRange,
    Tail,
    Labels,
    LabelValues,
    Series,
    IndexStats,
    IndexVolume,
    IndexVolumeRange,
    DetectedLabels,
    DetectedFields,
    DetectedFieldValues,
    DrilldownLimits,
    FormatQuery,
    Patterns,
    BuildInfo,
    RuleGroups,
    Rules,
    Alerts,
    Delete,
}

/// A request, as far as endpoints look at it.
struct LokiRequest {
    params: Params,
    headers: HeaderMap,
    now: Timestamp,
}

impl LokiRequest {
    /// The first value of a parameter; an empty one is none.
    fn text(&self, name: &str) -> Option<&str> {
        self.params.all(name).next().filter(|text| !text.is_empty())
    }
}

/// Answers a question; `names` are those in its path.
pub(super) async fn answer(
    app: &Arc<App>,
    question: Question,
    names: &[&str],
    request: Request<Inflow>,
) -> Response<Body> {
    let answer = ask(app, question, names, request).await;
    answer.unwrap_or_else(reply::refusal)
}

async fn ask(
    app: &Arc<App>,
    question: Question,
    names: &[&str],
    mut request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (headers, method) = (request.headers().clone(), request.method().clone());
    let params = match question {
        // Whatever is in the body of what is refused, it is not looked at.
        Question::RuleGroups | Question::Delete => Params::of(request.uri())?,
        _ => router::params_of(app, request).await?.1,
    };
    let now = clock::now();
    let request = LokiRequest {
        params,
        headers,
        now,
    };
    match question {
        Question::Query => query::answer(app, request).await,
        Question::QueryRange => query_range::answer(app, request).await,
        Question::Tail => tail::answer(app, &request, upgrade).await,
        Question::DetectedFields => detected_fields::answer(app, request).await,
        Question::DetectedFieldValues => detected_fields::values(app, request, names).await,
        Question::Labels => labels::answer(app, request).await,
        Question::LabelValues => label_values::answer(app, request, names).await,
        Question::Series => series::answer(app, request).await,
        Question::IndexStats => index_stats::answer(app, request).await,
        Question::IndexVolume => index_volume::answer(app, request, false).await,
        Question::IndexVolumeRange => index_volume::answer(app, request, true).await,
        Question::DetectedLabels => detected_labels::answer(app, request).await,
        Question::DrilldownLimits => Ok(drilldown_limits::answer()),
        Question::FormatQuery => Ok(format_query::answer(&request)),
        Question::Patterns => patterns::answer(app, request).await,
        Question::BuildInfo => Ok(build_info::answer()),
        Question::RuleGroups => rule_groups::answer(app, &method, names),
        Question::Rules => rules::rules(app, request).await,
        Question::Alerts => rules::alerts(app).await,
        Question::Delete => Err(delete::refusal()),
    }
}
