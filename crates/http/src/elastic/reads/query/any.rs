//! `match_all` and `match_none`.

use logpond_search::Filter;
use serde_json::Value as Json;

use super::super::json::{object, only};
use super::{Context, nothing};
use crate::error::ApiError;

/// Every record.
pub(super) fn match_all(body: &Json, _: &Context) -> Result<Filter, ApiError> {
    only(object(body, "match_all")?, &["boost"], "match_all")?;
    Ok(Filter::All)
}

/// No record.
pub(super) fn match_none(body: &Json, _: &Context) -> Result<Filter, ApiError> {
    only(object(body, "match_none")?, &["boost"], "match_none")?;
    Ok(nothing())
}
