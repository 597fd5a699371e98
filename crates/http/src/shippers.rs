//! Senders of records, each with its form.

use std::sync::Arc;

use hyper::{Request, Response};

use super::body::Body;
use super::error::ApiError;
use super::inflow::Inflow;
use super::params::Params;
use super::{
    App, datadog, elastic, firehose, gelf, journal_upload, logplex, logpush, loki, otlp, pubsub,
    push, splunk, victoria,
};

/// A sender of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shipper {
    Own,
    Loki,
    Otlp,
    Gelf,
    Splunk(splunk::Question),
    Elastic(elastic::Question),
    Journal,
    Logplex,
    Datadog,
    Firehose,
    PubSub,
    Logpush,
    JsonLine,
}

impl Shipper {
    /// The parameter with the token, where senders have no other place for it.
    pub(super) fn token_param(self) -> Option<&'static str> {
        match self {
            Shipper::Datadog => Some(datadog::TOKEN_PARAM),
            Shipper::PubSub => Some(pubsub::TOKEN_PARAM),
            _ => None,
        }
    }
}

/// Takes records in; their bodies are no parameters.
pub(super) async fn take_in(
    app: &Arc<App>,
    shipper: Shipper,
    names: &[&str],
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    Ok(match shipper {
        Shipper::Own => push::answer(app, Params::of(request.uri())?, request).await?,
        Shipper::Loki => loki::push(app, request).await,
        Shipper::Otlp => otlp::push(app, request).await,
        Shipper::Gelf => gelf::push(app, request).await?,
        Shipper::Splunk(question) => splunk::answer(app, question, request).await,
        Shipper::Elastic(question) => elastic::answer(app, question, names, request).await,
        Shipper::Logplex => logplex::answer(app, request).await?,
        Shipper::Datadog => datadog::push(app, request).await,
        Shipper::Firehose => firehose::push(app, request).await,
        Shipper::PubSub => pubsub::answer(app, request).await?,
        Shipper::Logpush => logpush::answer(app, request).await?,
        Shipper::JsonLine => victoria::answer(app, request).await?,
        Shipper::Journal => journal_upload::answer(app, request).await,
    })
}
