//! The indices that there are: values of the field `_index`, and the index of all other records.

use logpond_engine::query::{Output, Scope, ValueCount};
use logpond_record::TimeRange;
use logpond_search::Filter;
use serde_json::{Value as Json, json};

use super::completeness::Completeness;
use super::indices::IndexExpression;
use super::json::Object;
use super::names::{DEFAULT_INDEX, INDEX};
use super::search;
use super::{Answer, Call, cat};
use crate::App;
use crate::error::ApiError;
use crate::logql::run::failed;

/// The most indices of an answer.
pub(super) const INDICES_MAX: usize = 1000;

/// An index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) name: String,
    /// How many records it has.
    pub(super) records: u64,
}

/// The indices of an expression, in the order of their names. Names without wildcards are there, too.
///
/// # Errors
/// When they cannot be counted.
pub(super) fn indices(
    app: &App,
    expression: &IndexExpression,
    out: &mut Output,
) -> Result<Vec<Index>, ApiError> {
    let scope = Scope::all(TimeRange::ALL);
    let values = app.engine.top_values(&scope, INDEX, INDICES_MAX, out);
    let (values, trailer) = values.map_err(failed)?;
    Completeness::default().note(app, trailer, false, out)?;
    let values = values.into_iter().filter(|value| !value.is_null());
    let found = values.map(|ValueCount { text, count, .. }| Index {
        name: text,
        records: count,
    });
    let mut found: Vec<Index> = found.collect();
    let total = search::count(app, &Filter::All, out, &mut Completeness::default(), false)?;
    let named: u64 = found.iter().map(|index| index.records).sum();
    let others = total.saturating_sub(named);
    match found.iter_mut().find(|index| index.name == DEFAULT_INDEX) {
        Some(index) => index.records += others,
        None => found.push(Index {
            name: DEFAULT_INDEX.to_owned(),
            records: others,
        }),
    }
    found.retain(|index| expression.has(&index.name));
    for name in expression.whole_names() {
        if !found.iter().any(|index| index.name == name) {
            found.push(Index {
                name: name.to_owned(),
                records: 0,
            });
        }
    }
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The columns of `_cat/indices`.
const COLUMNS: [&str; 10] = [
    "health",
    "status",
    "index",
    "uuid",
    "pri",
    "rep",
    "docs.count",
    "docs.deleted",
    "store.size",
    "pri.store.size",
];

/// Parameters of `_cat/indices`.
const CAT_PARAMETERS: [&str; 15] = [
    "format",
    "v",
    "h",
    "s",
    "bytes",
    "expand_wildcards",
    "health",
    "pri",
    "time",
    "local",
    "include_unloaded_segments",
    "master_timeout",
    "pretty",
    "help",
    "human",
];

/// `_cat/indices`, as a table or as JSON.
pub(super) fn cat_indices(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    call.params.only(&CAT_PARAMETERS)?;
    let expression = IndexExpression::read(call.index())?;
    let indices = indices(app, &expression, out)?;
    let row = |index: &Index| COLUMNS.map(|column| cell(index, column)).to_vec();
    cat::answer(call, &COLUMNS, indices.iter().map(row))
}

/// A cell of `_cat/indices`. Indices share their files, so that none has a size of its own.
fn cell(index: &Index, column: &str) -> String {
    match column {
        "health" => "green".to_owned(),
        "status" => "open".to_owned(),
        "index" | "uuid" => index.name.clone(),
        "pri" => "1".to_owned(),
        "docs.count" => index.records.to_string(),
        "store.size" | "pri.store.size" => "0b".to_owned(),
        _ => "0".to_owned(),
    }
}

/// `_resolve/index`
pub(super) fn resolve_index(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    call.params.only(&[
        "expand_wildcards",
        "ignore_unavailable",
        "allow_no_indices",
        "pretty",
        "human",
    ])?;
    let expression = IndexExpression::read(call.index())?;
    let indices = indices(app, &expression, out)?;
    let indices: Vec<Json> = indices
        .into_iter()
        .map(|index| json!({ "name": index.name, "attributes": ["open"] }))
        .collect();
    Ok(json!({ "indices": indices, "aliases": [], "data_streams": [] }).into())
}

/// `_stats`: how many records indices have. They share their files, so that none has a size of its own.
pub(super) fn stats(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    call.params.only(&[
        "level",
        "expand_wildcards",
        "ignore_unavailable",
        "allow_no_indices",
        "forbid_closed_indices",
        "pretty",
        "human",
        "error_trace",
    ])?;
    let expression = IndexExpression::read(call.index())?;
    let numbers = |records: u64| {
        let both = json!({
            "docs": { "count": records, "deleted": 0 }, "store": { "size_in_bytes": 0 },
        });
        json!({ "primaries": both, "total": both })
    };
    let found = indices(app, &expression, out)?;
    let all = found.iter().map(|index| index.records).sum();
    let mut indices = Object::new();
    for Index { name, records } in found {
        let mut one = numbers(records);
        one["uuid"] = name.as_str().into();
        indices.insert(name, one);
    }
    let shards = json!({ "total": 1, "successful": 1, "failed": 0 });
    Ok(json!({ "_shards": shards, "_all": numbers(all), "indices": indices }).into())
}
