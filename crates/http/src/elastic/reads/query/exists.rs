//! `exists`.

use logpond_search::Filter;
use logpond_search::query::FieldTest;
use serde_json::Value as Json;

use super::super::json::{bad, object, only, optional};
use super::super::names;
use super::Context;
use crate::error::ApiError;

/// Records with a field.
pub(super) fn exists(body: &Json, _: &Context) -> Result<Filter, ApiError> {
    let members = object(body, "exists")?;
    only(members, &["field", "boost"], "exists")?;
    let field = optional(members, "field")?;
    let field = field.ok_or_else(|| bad("[exists] needs [field]"))?;
    Ok(of_field(&field))
}

/// Records with a field of this name; every record has a time, an id and an index.
pub(super) fn of_field(name: &str) -> Filter {
    match names::of_record(name) {
        "_time" | names::ID | names::INDEX | "*" | "_source" => Filter::All,
        record => Filter::field(record, FieldTest::Exists),
    }
}
