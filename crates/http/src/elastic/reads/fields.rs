//! `_mapping` and `_field_caps`: the fields that there are, and their types.
//!
//! Texts are `keyword`, as they are searched as a whole; the message is `text`. The fields are those of all records:
//! indices share them.

use logpond_engine::query::{Output, Scope};
use logpond_record::{TimeRange, TypeSet, ValueType};
use serde_json::{Value as Json, json};

use super::completeness::Completeness;
use super::indices::IndexExpression;
use super::json::{Object, only, texts};
use super::names::{self, fits};
use super::query::{Context, translate};
use super::request::read_body;
use super::{Answer, Call, listing, scope};
use crate::App;
use crate::error::{ApiError, Kind};
use crate::logql::run::failed;

/// The most fields of an answer.
pub(super) const FIELDS_MAX: usize = 10_000;

const PARAMETERS: [&str; 15] = [
    "features",
    "flat_settings",
    "fields",
    "ignore_unavailable",
    "allow_no_indices",
    "expand_wildcards",
    "include_unmapped",
    "filters",
    "types",
    "local",
    "master_timeout",
    "include_type_name",
    "pretty",
    "human",
    "error_trace",
];

/// The type that Elasticsearch has for values of these types.
fn type_of(types: TypeSet) -> &'static str {
    let has = |kind| types.contains(kind);
    let has_text = [ValueType::String, ValueType::Json, ValueType::Bytes]
        .into_iter()
        .any(has);
    match (
        has(ValueType::Bool),
        has(ValueType::Int),
        has(ValueType::Float),
    ) {
        _ if has_text => "keyword",
        (true, false, false) => "boolean",
        (false, true, false) => "long",
        (false, _, true) => "double",
        _ => "keyword",
    }
}

/// The fields of records with their types, in the order of their names. They are those of whole row groups.
fn all(
    app: &App,
    scope: &Scope,
    out: &mut Output,
) -> Result<Vec<(String, &'static str)>, ApiError> {
    let (types, trailer) = app.engine.field_types(scope, false, out).map_err(failed)?;
    Completeness::default().note(app, trailer, false, out)?;
    let fields = types.fields().filter(|(name, _)| *name != names::INDEX);
    let mut fields: Vec<(String, &'static str)> = fields
        .take(FIELDS_MAX)
        .map(|(name, types)| (names::of_field(name).to_owned(), type_of(types)))
        .collect();
    fields.push((names::TIME.to_owned(), "date"));
    fields.push((names::MESSAGE.to_owned(), "text"));
    fields.sort_unstable();
    Ok(fields)
}

/// `_mapping`
pub(super) fn mapping(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    call.params.only(&PARAMETERS)?;
    let fields = all(app, &Scope::all(TimeRange::ALL), out)?;
    if let Some(patterns) = call.names.get(1) {
        return of_fields(app, call, (&fields, patterns), out);
    }
    let properties = properties(&fields);
    let expression = IndexExpression::read(call.index())?;
    let mut answer = Object::new();
    for index in listing::indices(app, &expression, out)? {
        let mapping = json!({ "mappings": { "properties": properties } });
        answer.insert(index.name, mapping);
    }
    Ok(Json::Object(answer).into())
}

/// `GET /INDEX`: the indices of an expression with their fields. One without records is none.
pub(super) fn index(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    call.params.only(&PARAMETERS)?;
    let expression = IndexExpression::read(call.index())?;
    let mut found = listing::indices(app, &expression, out)?;
    found.retain(|index| index.records > 0);
    if call.index().starts_with('_') || found.is_empty() && !call.index().contains('*') {
        let message = format!(
            "there is nothing at /{0}, and no record is of an index [{0}]",
            call.index()
        );
        return Err(ApiError::new(Kind::NotFound, message));
    }
    let properties = properties(&all(app, &Scope::all(TimeRange::ALL), out)?);
    let mut answer = Object::new();
    for index in found {
        let settings = json!({
            "number_of_shards": "1", "number_of_replicas": "0", "provided_name": index.name,
        });
        let described = json!({
            "aliases": {},
            "mappings": { "properties": properties },
            "settings": { "index": settings },
        });
        answer.insert(index.name, described);
    }
    Ok(Json::Object(answer).into())
}

/// `_mapping/field/NAMES`
fn of_fields(
    app: &App,
    call: &Call,
    (fields, patterns): (&[(String, &'static str)], &str),
    out: &mut Output,
) -> Result<Answer, ApiError> {
    let mut mappings = Object::new();
    for (name, kind) in fields {
        if patterns.split(',').any(|pattern| fits(pattern, name)) {
            let short = name.rsplit('.').next().unwrap_or(name);
            let mapping = json!({ short: { "type": kind } });
            let field = json!({ "full_name": name, "mapping": mapping });
            mappings.insert(name.clone(), field);
        }
    }
    let expression = IndexExpression::read(call.index())?;
    let mut answer = Object::new();
    for index in listing::indices(app, &expression, out)? {
        answer.insert(index.name, json!({ "mappings": mappings }));
    }
    Ok(Json::Object(answer).into())
}

/// Fields as a mapping describes them.
fn properties(fields: &[(String, &str)]) -> Object {
    let mut properties = Object::new();
    for (name, kind) in fields {
        insert(&mut properties, name, json!({ "type": kind }));
    }
    properties
}

/// Puts a field into the objects that its name says; one whose object is a value has its whole name.
fn insert(properties: &mut Object, name: &str, mapping: Json) {
    if let Some((outer, inner)) = name.split_once('.')
        && !outer.is_empty()
        && !inner.is_empty()
    {
        let object = properties
            .entry(outer)
            .or_insert_with(|| json!({ "properties": {} }));
        if let Some(Json::Object(members)) = object.get_mut("properties") {
            return insert(members, inner, mapping);
        }
    }
    match properties.get_mut(name) {
        // The value is beside the object of the same name.
        Some(Json::Object(object)) if object.contains_key("properties") => {
            object.insert("type".to_owned(), "object".into());
        }
        _ => {
            properties.insert(name.to_owned(), mapping);
        }
    }
}

/// `_field_caps`
pub(super) fn capabilities(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    call.params.only(&PARAMETERS)?;
    let body = read_body(&call.body)?;
    only(&body, &["fields", "index_filter"], "field_caps")?;
    let filter = body.get("index_filter").filter(|query| !query.is_null());
    let scope = match filter {
        Some(query) => scope::of_filter(&translate(query, &Context { now: call.now })?)?,
        None => Scope::all(TimeRange::ALL),
    };
    let patterns = match (body.get("fields"), call.params.one("fields")?) {
        (Some(fields), _) => texts(fields, "fields")?,
        (None, Some(fields)) => fields.split(',').map(str::to_owned).collect(),
        (None, None) => vec!["*".to_owned()],
    };
    let mut fields = Object::new();
    let own = [
        (names::ID.to_owned(), "_id"),
        (names::INDEX.to_owned(), "_index"),
    ];
    let wants = |name: &str| patterns.iter().any(|pattern| fits(pattern, name));
    for (name, kind) in all(app, &scope, out)?.into_iter().chain(own) {
        let plain = format!("{name}.keyword");
        if wants(&name) {
            let is_own = kind.starts_with('_');
            let capability = json!({
                "type": kind,
                "metadata_field": is_own,
                "searchable": true,
                "aggregatable": kind != "_id",
            });
            fields.insert(name, json!({ kind: capability }));
        } else if patterns.contains(&plain) {
            let capability = json!({
                "type": "keyword", "metadata_field": false, "searchable": true, "aggregatable": true,
            });
            fields.insert(plain, json!({ "keyword": capability }));
        }
    }
    let expression = IndexExpression::read(call.index())?;
    let indices = listing::indices(app, &expression, out)?;
    let indices: Vec<String> = indices.into_iter().map(|index| index.name).collect();
    Ok(json!({ "indices": indices, "fields": fields }).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_dots_are_objects() {
        let mut properties = Object::new();
        for name in ["a", "a.b", "c.d.e", "c.d.f", ".x", "y."] {
            insert(&mut properties, name, json!({ "type": "long" }));
        }
        let long = json!({ "type": "long" });
        let expected = json!({
            "a": long, "a.b": long,
            "c": { "properties": { "d": { "properties": { "e": long, "f": long } } } },
            ".x": long, "y.": long,
        });
        assert_eq!(Json::Object(properties), expected);
    }
}
