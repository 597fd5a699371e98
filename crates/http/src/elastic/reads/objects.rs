//! Conditions that a field is there, where its name is that of an object or a pattern: `user` of `user.name`, `user.*`.
//!
//! Objects are no fields. So such a condition becomes one on their members, which are looked up only for questions that
//! have one.

use logpond_engine::query::{Output, Scope};
use logpond_record::TimeRange;
use logpond_search::Filter;
use logpond_search::query::{FieldFilter, FieldTest};

use super::completeness::Completeness;
use super::json::bad;
use super::names::{self, fits};
use crate::App;
use crate::error::ApiError;
use crate::logql::run::failed;

/// The most members of an object that a condition stands for.
const MEMBERS_MAX: usize = 1024;

/// The filter with the members of objects in place of these.
///
/// # Errors
/// When the fields cannot be read, or are too many.
pub(super) fn with_members(
    app: &App,
    filter: Filter,
    out: &mut Output,
) -> Result<Filter, ApiError> {
    if !asks_for_fields(&filter) {
        return Ok(filter);
    }
    let scope = Scope::all(TimeRange::ALL);
    let (types, trailer) = app.engine.field_types(&scope, false, out).map_err(failed)?;
    Completeness::default().note(app, trailer, false, out)?;
    let fields: Vec<&str> = types.fields().map(|(name, _)| name).collect();
    replaced(filter, &fields)
}

/// True for the condition that a field is there which may be an object.
fn may_be_object(field: &FieldFilter) -> bool {
    matches!(field.test, FieldTest::Exists) && *field.name != *names::INDEX
}

fn asks_for_fields(filter: &Filter) -> bool {
    match filter {
        Filter::All | Filter::Text(_) => false,
        Filter::And(parts) | Filter::Or(parts) => parts.iter().any(asks_for_fields),
        Filter::Not(inner) => asks_for_fields(inner),
        Filter::Field(field) => may_be_object(field),
    }
}

fn replaced(filter: Filter, fields: &[&str]) -> Result<Filter, ApiError> {
    let each = |parts: Vec<Filter>| -> Result<Vec<Filter>, ApiError> {
        let parts = parts.into_iter();
        parts.map(|part| replaced(part, fields)).collect()
    };
    Ok(match filter {
        Filter::And(parts) => Filter::and(each(parts)?),
        Filter::Or(parts) => Filter::or(each(parts)?),
        Filter::Not(inner) => Filter::negate(replaced(*inner, fields)?),
        Filter::Field(field) if may_be_object(&field) => of_members(field, fields)?,
        other => other,
    })
}

/// The condition itself where it names a field, otherwise that one of the members is there.
fn of_members(field: FieldFilter, fields: &[&str]) -> Result<Filter, ApiError> {
    let name = &*field.name;
    let is_pattern = name.contains('*');
    let is_meant = |known: &&&str| {
        let inner = known.strip_prefix(name).unwrap_or_default();
        **known == name || inner.starts_with('.') || is_pattern && fits(name, known)
    };
    let meant: Vec<&str> = fields.iter().filter(is_meant).copied().collect();
    if meant.len() > MEMBERS_MAX {
        return Err(bad(format!(
            "[exists] of [{name}] stands for more than {MEMBERS_MAX} fields: name one of them"
        )));
    }
    if meant.is_empty() {
        return Ok(Filter::Field(field));
    }
    let exists = |name: &str| Filter::field(name, FieldTest::Exists);
    Ok(Filter::or(meant.into_iter().map(exists)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_there_if_a_member_is() {
        let fields = ["user.id", "user.name", "username", "status"];
        let table = [
            ("user:*", "\"user.id\":* OR \"user.name\":*"),
            ("\"user.*\":*", "\"user.id\":* OR \"user.name\":*"),
            (
                "NOT user:* AND status=5",
                "NOT (\"user.id\":* OR \"user.name\":*) AND status=5",
            ),
            ("status:*", "status:*"),
            ("nowhere:*", "nowhere:*"),
        ];
        let parse = |text: &str| logpond_search::query::parse(text).unwrap();
        for (asked, expected) in table {
            let found = replaced(parse(asked), &fields).unwrap();
            assert_eq!(found.to_string(), parse(expected).to_string(), "{asked}");
        }
        let many: Vec<String> = (0..2000).map(|n| format!("o.f{n}")).collect();
        let many: Vec<&str> = many.iter().map(|name| &**name).collect();
        assert!(replaced(parse("o:*"), &many).is_err());
    }
}
