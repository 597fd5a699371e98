//! The query DSL as a filter of the engine: a pure translation.
//!
//! Invariants: a clause that is not supported is an error, and so is a member of a clause; none is passed
//! over that would change the result. Members that only change scores are accepted: there are none here.

mod any;
mod bools;
mod exists;
pub(super) mod ids;
mod lucene;
mod patterns;
mod phrase;
mod query_string;
mod range;
mod simple;
mod terms;
mod words;

use logpond_record::Timestamp;
use logpond_search::Filter;
use logpond_search::query::{Comparison, FieldTest, Pattern};
use serde_json::Value as Json;

use super::dates::DateReader;
use super::json::{bad, single, unsupported};
use super::names;
use crate::error::ApiError;
pub(super) use patterns::lucene_regex;

/// The environment of a translation.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// The time of the request.
    pub(super) now: Timestamp,
}

impl Context {
    fn dates(&self) -> DateReader {
        DateReader::new(self.now)
    }
}

type Translate = fn(&Json, &Context) -> Result<Filter, ApiError>;

/// The clauses that are supported.
const CLAUSES: [(&str, Translate); 21] = [
    ("bool", bools::bool),
    ("boosting", bools::boosting),
    ("constant_score", bools::constant_score),
    ("dis_max", bools::dis_max),
    ("exists", exists::exists),
    ("ids", ids::ids),
    ("match", phrase::match_any),
    ("match_all", any::match_all),
    ("match_bool_prefix", phrase::match_bool_prefix),
    ("match_none", any::match_none),
    ("match_phrase", phrase::match_phrase),
    ("match_phrase_prefix", phrase::match_phrase_prefix),
    ("multi_match", phrase::multi_match),
    ("prefix", patterns::prefix),
    ("query_string", query_string::query_string),
    ("range", range::range),
    ("regexp", patterns::regexp),
    ("simple_query_string", simple::simple_query_string),
    ("term", terms::term),
    ("terms", terms::terms),
    ("wildcard", patterns::wildcard),
];

/// The names of the clauses that are supported.
#[cfg(test)]
pub(super) fn clauses() -> Vec<&'static str> {
    CLAUSES.iter().map(|(name, _)| *name).collect()
}

/// Clauses of Elasticsearch that are refused, with the remedy.
const REFUSED: [(&str, &str); 14] = [
    (
        "nested",
        "members of objects are fields such as outer.inner; ask for them in a bool query",
    ),
    ("has_child", "records have no parents"),
    ("has_parent", "records have no parents"),
    ("parent_id", "records have no parents"),
    (
        "function_score",
        "there are no scores; use its query alone, and sort by @timestamp",
    ),
    (
        "script_score",
        "there are no scores; use its query alone, and sort by @timestamp",
    ),
    ("rank_feature", "there are no scores; sort by @timestamp"),
    ("script", "use range, term or query_string on fields"),
    ("fuzzy", "use wildcard or regexp"),
    ("more_like_this", "use match or match_phrase"),
    ("span_near", "use match_phrase or regexp"),
    ("intervals", "use match_phrase or regexp"),
    ("knn", "there are no vectors"),
    ("terms_set", "use bool with should and minimum_should_match"),
];

/// Translates a query: an object of one clause.
///
/// # Errors
/// With the clause that is wrong or not supported.
pub(super) fn translate(query: &Json, context: &Context) -> Result<Filter, ApiError> {
    let (name, body) = single(query, "query")?;
    if let Some((_, translate)) = CLAUSES.iter().find(|(clause, _)| *clause == name) {
        return translate(body, context);
    }
    let remedy = REFUSED.iter().find(|(clause, _)| *clause == name);
    if let Some((_, instead)) = remedy {
        return Err(unsupported(name, instead));
    }
    let known: Vec<_> = CLAUSES.iter().map(|(clause, _)| *clause).collect();
    Err(bad(format!(
        "unknown query [{name}]; supported are {}",
        known.join(", ")
    )))
}

/// Nothing.
fn nothing() -> Filter {
    Filter::negate(Filter::All)
}

/// Records whose field has this value.
fn equals(name: &str, value: &str, context: &Context) -> Result<Filter, ApiError> {
    let test = |name: &str| {
        let value = value.as_bytes().into();
        Filter::field(name, FieldTest::Compare(Comparison::Equal, value))
    };
    Ok(match names::of_record(name) {
        names::ID => ids::of_id(value),
        names::INDEX => super::indices::of_name(value),
        _ if names::is_time(name) => range::of_span(name, context.dates().span(value)?),
        record => test(record),
    })
}

/// Records whose field has a value that this regular expression matches as a whole.
fn whole_match(name: &str, source: &str, is_case_insensitive: bool) -> Filter {
    let source = format!("^(?s:{source})$");
    contains(name, &source, is_case_insensitive)
}

/// Records whose field has a match of this regular expression.
fn contains(name: &str, source: &str, is_case_insensitive: bool) -> Filter {
    let pattern = Pattern::regex(source, is_case_insensitive);
    Filter::field(names::of_record(name), FieldTest::Contains(pattern))
}

#[cfg(test)]
mod tests;
