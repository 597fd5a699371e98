//! `ids`: records by the id that they have here, or that a shipper gave them.

use logpond_record::Id;
use logpond_search::Filter;
use logpond_search::query::{Comparison, FieldTest};
use serde_json::Value as Json;

use super::super::json::{bad, object, only, texts};
use super::super::names;
use super::Context;
use crate::error::ApiError;

/// Records with one of these ids.
pub(super) fn ids(body: &Json, _: &Context) -> Result<Filter, ApiError> {
    let members = object(body, "ids")?;
    only(members, &["values", "boost", "type"], "ids")?;
    let values = members.get("values");
    let values = values.ok_or_else(|| bad("[ids] needs [values]"))?;
    let values = texts(values, "values")?;
    Ok(Filter::or(values.iter().map(|id| of_id(id))))
}

/// Records with this id.
pub(in super::super) fn of_id(id: &str) -> Filter {
    let equals = |name: &str| {
        let test = FieldTest::Compare(Comparison::Equal, id.as_bytes().into());
        Filter::field(name, test)
    };
    let is_ours = id.parse::<Id>().is_ok();
    let own = is_ours.then(|| equals(names::ID));
    Filter::or(own.into_iter().chain([equals(names::DOCUMENT_ID)]))
}
