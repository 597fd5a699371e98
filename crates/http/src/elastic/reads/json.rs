//! Members of a request's JSON, read so that none is passed over.

use serde_json::{Map, Value as Json};

use crate::error::{ApiError, Kind};

/// A JSON object of a request.
pub(super) type Object = Map<String, Json>;

/// A clause that is wrong, or is not supported.
pub(super) fn bad(message: impl Into<String>) -> ApiError {
    ApiError::new(Kind::BadQuery, message)
}

/// The error for something that this server does not have; `instead` is a remedy.
pub(super) fn unsupported(what: &str, instead: &str) -> ApiError {
    bad(format!("[{what}] is not supported: {instead}"))
}

/// The object at a place.
///
/// # Errors
/// When the value is something else.
pub(super) fn object<'j>(value: &'j Json, place: &str) -> Result<&'j Object, ApiError> {
    value
        .as_object()
        .ok_or_else(|| bad(format!("[{place}] is an object, not {}", kind_of(value))))
}

/// The one member of an object, such as a clause with its name.
///
/// # Errors
/// When there is none, or several.
pub(super) fn single<'j>(value: &'j Json, place: &str) -> Result<(&'j str, &'j Json), ApiError> {
    let members = object(value, place)?;
    let mut each = members.iter();
    match (each.next(), each.next()) {
        (Some((name, value)), None) => Ok((name, value)),
        (None, _) => Err(bad(format!("[{place}] is empty: it needs one member"))),
        (Some((first, _)), Some((second, _))) => Err(bad(format!(
            "[{place}] has one member, but there are [{first}] and [{second}]"
        ))),
    }
}

/// Refuses members that are not known.
///
/// # Errors
/// With the first such name.
pub(super) fn only(members: &Object, known: &[&str], place: &str) -> Result<(), ApiError> {
    match members.keys().find(|name| !known.contains(&&***name)) {
        None => Ok(()),
        Some(name) => Err(bad(format!(
            "[{place}] does not support [{name}]; it supports {}",
            known.join(", ")
        ))),
    }
}

/// A scalar as its text; `None` for null, lists and objects.
pub(super) fn text_of(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        Json::Bool(flag) => Some(flag.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

/// The text of a scalar at a place.
///
/// # Errors
/// When it is none.
pub(super) fn scalar(value: &Json, place: &str) -> Result<String, ApiError> {
    text_of(value).ok_or_else(|| bad(format!("[{place}] is a value, not {}", kind_of(value))))
}

/// The text of a member, if there is one.
///
/// # Errors
/// When it is no scalar.
pub(super) fn optional(members: &Object, name: &str) -> Result<Option<String>, ApiError> {
    match members.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(value) => scalar(value, name).map(Some),
    }
}

/// A truth value, also as text.
///
/// # Errors
/// When it is none.
pub(super) fn flag(members: &Object, name: &str, default: bool) -> Result<bool, ApiError> {
    match optional(members, name)?.as_deref() {
        None => Ok(default),
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(bad(format!("[{name}] is true or false, not [{other}]"))),
    }
}

/// A whole number from 0 on, also as text.
///
/// # Errors
/// When it is none.
pub(super) fn count(members: &Object, name: &str, default: u64) -> Result<u64, ApiError> {
    match optional(members, name)? {
        None => Ok(default),
        Some(text) => text
            .parse()
            .map_err(|_| bad(format!("[{name}] is a whole number, not [{text}]"))),
    }
}

/// A number, also as text.
///
/// # Errors
/// When it is none.
pub(super) fn number(members: &Object, name: &str) -> Result<Option<f64>, ApiError> {
    let Some(text) = optional(members, name)? else {
        return Ok(None);
    };
    let number: Option<f64> = text.parse().ok();
    match number.filter(|number| number.is_finite()) {
        Some(number) => Ok(Some(number)),
        None => Err(bad(format!("[{name}] is a number, not [{text}]"))),
    }
}

/// One value or a list of them.
pub(super) fn list(value: &Json) -> &[Json] {
    match value {
        Json::Array(values) => values,
        value => std::slice::from_ref(value),
    }
}

/// Texts, one or a list.
///
/// # Errors
/// When one is no scalar.
pub(super) fn texts(value: &Json, place: &str) -> Result<Vec<String>, ApiError> {
    list(value).iter().map(|one| scalar(one, place)).collect()
}

fn kind_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a truth value",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}
