//! `term` and `terms`: whole values.

use logpond_search::Filter;
use serde_json::Value as Json;

use super::super::json::{Object, bad, flag, object, only, scalar, single, unsupported};
use super::super::names;
use super::{Context, equals, whole_match, words};
use crate::error::ApiError;

/// Records whose field has this value; of the message, this word.
pub(super) fn term(body: &Json, context: &Context) -> Result<Filter, ApiError> {
    let (name, given) = single(body, "term")?;
    let empty = Object::new();
    let (value, members) = match given {
        Json::Object(members) => {
            only(members, &["value", "boost", "case_insensitive"], "term")?;
            let value = members.get("value");
            (value.ok_or_else(|| bad("[term] needs [value]"))?, members)
        }
        value => (value, &empty),
    };
    let value = scalar(value, name)?;
    if flag(members, "case_insensitive", false)? && !names::is_text(name) {
        return Ok(whole_match(name, &regex_syntax::escape(&value), true));
    }
    of_value(name, &value, context)
}

fn of_value(name: &str, value: &str, context: &Context) -> Result<Filter, ApiError> {
    if names::is_text(name) {
        return Ok(words::phrase(&words::Place::Field(name), value));
    }
    equals(name, value, context)
}

/// Records whose field has one of these values.
pub(super) fn terms(body: &Json, context: &Context) -> Result<Filter, ApiError> {
    let members = object(body, "terms")?;
    let mut fields = members.iter().filter(|(name, _)| *name != "boost");
    let (Some((name, values)), None) = (fields.next(), fields.next()) else {
        return Err(bad("[terms] needs one field with a list of values"));
    };
    let Json::Array(values) = values else {
        return Err(unsupported("terms lookup", "send the values as a list"));
    };
    let values = values.iter().map(|value| scalar(value, name));
    let filters: Result<Vec<Filter>, ApiError> = values
        .map(|value| of_value(name, &value?, context))
        .collect();
    Ok(Filter::or(filters?))
}
