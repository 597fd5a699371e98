//! The parameter `query` where only the streams that it selects matter.

use logpond_record::TimeRange;
use logpond_search::Filter;
use logpond_search::logql::{self, LabelMatcher, ParseError};

use super::{LokiRequest, times};
use crate::error::{ApiError, Kind};
use logpond_engine::query::Scope;

/// The records of streams that a request selects by `query`, in its time range; of all streams if it has no selector.
pub(super) fn scope_of_request(request: &LokiRequest) -> Result<Scope, ApiError> {
    let range = times::range(request)?;
    scope_of(&matchers(request.text("query"))?, range)
}

/// The matchers of a selector.
pub(super) fn matchers(text: Option<&str>) -> Result<Vec<LabelMatcher>, ApiError> {
    match text {
        None => Ok(Vec::new()),
        Some(text) => logql::parse_matchers(text).map_err(refused),
    }
}

/// The records that matchers want.
pub(super) fn scope_of(matchers: &[LabelMatcher], range: TimeRange) -> Result<Scope, ApiError> {
    scope_of_filter(logql::filter_of_matchers(matchers), range)
}

/// The records that a filter wants.
pub(super) fn scope_of_filter(filter: Filter, range: TimeRange) -> Result<Scope, ApiError> {
    Scope::of_filter(&filter, range).map_err(|e| ApiError::new(Kind::BadQuery, e.message))
}

/// A query that is none.
pub(super) fn refused(error: ParseError) -> ApiError {
    ApiError::new(Kind::BadQuery, error.to_string())
}
