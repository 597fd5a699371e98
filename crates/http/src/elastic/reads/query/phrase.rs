//! The queries of words: `match`, `match_phrase`, `match_phrase_prefix` and `multi_match`.
//!
//! A field other than the message has one value, which is compared as a whole.

use logpond_search::Filter;
use serde_json::Value as Json;

use super::super::json::{Object, bad, object, only, optional, scalar, single, texts, unsupported};
use super::words::{self, Place};
use super::{Context, bools, equals, nothing, patterns};
use crate::error::ApiError;

const OPTIONS: [&str; 13] = [
    "query",
    "analyzer",
    "operator",
    "minimum_should_match",
    "boost",
    "lenient",
    "zero_terms_query",
    "auto_generate_synonyms_phrase_query",
    "fuzzy_transpositions",
    "prefix_length",
    "max_expansions",
    "slop",
    "fuzziness",
];

/// `match`: any word, or all of them.
pub(super) fn match_any(body: &Json, context: &Context) -> Result<Filter, ApiError> {
    let (name, given) = single(body, "match")?;
    let (text, members) = read(given, "match", &OPTIONS)?;
    any_word(name, &text, &members, context)
}

/// `match_bool_prefix`: any word, of which the last is the beginning of one.
pub(super) fn match_bool_prefix(body: &Json, _: &Context) -> Result<Filter, ApiError> {
    let (name, given) = single(body, "match_bool_prefix")?;
    let (text, members) = read(given, "match_bool_prefix", &OPTIONS)?;
    bool_prefix(name, &text, &members)
}

fn bool_prefix(name: &str, text: &str, members: &Object) -> Result<Filter, ApiError> {
    let Some(place) = Place::of(name) else {
        return Ok(patterns::of_prefix(name, text, false));
    };
    let mut each: Vec<Filter> = words::tokens(text)
        .map(|token| words::phrase(&place, token))
        .collect();
    if let (Some(last), Some(token)) = (each.last_mut(), words::tokens(text).last()) {
        *last = words::phrase_prefix(&place, token);
    }
    chosen(each, members)
}

/// `match_phrase`: words in a row.
pub(super) fn match_phrase(body: &Json, context: &Context) -> Result<Filter, ApiError> {
    let (name, given) = single(body, "match_phrase")?;
    let (text, members) = read(given, "match_phrase", &OPTIONS)?;
    in_a_row(name, &text, &members, context)
}

/// `match_phrase_prefix`: words in a row, of which the last is the beginning of one.
pub(super) fn match_phrase_prefix(body: &Json, _: &Context) -> Result<Filter, ApiError> {
    let (name, given) = single(body, "match_phrase_prefix")?;
    let (text, _) = read(given, "match_phrase_prefix", &OPTIONS)?;
    Ok(row_prefix(name, &text))
}

fn row_prefix(name: &str, text: &str) -> Filter {
    match Place::of(name) {
        Some(place) => words::phrase_prefix(&place, text),
        None => patterns::of_prefix(name, text, false),
    }
}

/// `multi_match`: a query of several fields.
pub(super) fn multi_match(body: &Json, context: &Context) -> Result<Filter, ApiError> {
    let mut known = OPTIONS.to_vec();
    known.extend(["fields", "type", "tie_breaker"]);
    let (text, members) = read(body, "multi_match", &known)?;
    let fields = match members.get("fields") {
        None => vec!["*".to_owned()],
        Some(fields) => texts(fields, "fields")?,
    };
    let kind = optional(&members, "type")?;
    let of_field = |field: &String| {
        let name = without_boost(field);
        if name != "*" && name.contains('*') {
            let instead = "name the fields, or * for the whole line";
            return Err(unsupported("fields with wildcards", instead));
        }
        match kind.as_deref() {
            None | Some("best_fields" | "most_fields" | "cross_fields") => {
                any_word(name, &text, &members, context)
            }
            Some("phrase") => in_a_row(name, &text, &members, context),
            Some("phrase_prefix") => Ok(row_prefix(name, &text)),
            Some("bool_prefix") => bool_prefix(name, &text, &members),
            Some(other) => Err(unsupported(
                &format!("multi_match of type {other}"),
                "use best_fields or phrase",
            )),
        }
    };
    let filters: Result<Vec<Filter>, ApiError> = fields.iter().map(of_field).collect();
    Ok(Filter::or(filters?))
}

/// The name of a field that may have a boost behind it.
pub(super) fn without_boost(field: &str) -> &str {
    field.split_once('^').map_or(field, |(name, _)| name)
}

/// The text of a query, with its options.
fn read(given: &Json, place: &str, known: &[&str]) -> Result<(String, Object), ApiError> {
    let members = match given {
        Json::Object(members) => members.clone(),
        value => {
            let text = scalar(value, place)?;
            return Ok((text, Object::new()));
        }
    };
    only(&members, known, place)?;
    object(given, place)?;
    for (name, allowed, instead) in [
        ("fuzziness", "0", "use wildcard or regexp"),
        ("slop", "0", "use wildcard or regexp"),
        (
            "analyzer",
            "standard",
            "leave it out: words are those of the standard analyzer",
        ),
    ] {
        let value = optional(&members, name)?;
        if value.is_some_and(|value| value != allowed) {
            return Err(unsupported(name, instead));
        }
    }
    let text = optional(&members, "query")?;
    let text = text.ok_or_else(|| bad(format!("[{place}] needs [query]")))?;
    Ok((text, members))
}

fn in_a_row(
    name: &str,
    text: &str,
    members: &Object,
    context: &Context,
) -> Result<Filter, ApiError> {
    let Some(place) = Place::of(name) else {
        return equals(name, text, context);
    };
    if words::words(text).next().is_none() {
        return no_words(members);
    }
    Ok(words::phrase(&place, text))
}

fn any_word(
    name: &str,
    text: &str,
    members: &Object,
    context: &Context,
) -> Result<Filter, ApiError> {
    let Some(place) = Place::of(name) else {
        return equals(name, text, context);
    };
    let each: Vec<Filter> = words::tokens(text)
        .map(|token| words::phrase(&place, token))
        .collect();
    chosen(each, members)
}

/// As many of the conditions on words as the options ask for.
fn chosen(each: Vec<Filter>, members: &Object) -> Result<Filter, ApiError> {
    if each.is_empty() {
        return no_words(members);
    }
    let operator = optional(members, "operator")?.map(|text| text.to_ascii_lowercase());
    match operator.as_deref() {
        Some("and") => Ok(Filter::and(each)),
        None | Some("or") => match optional(members, "minimum_should_match")? {
            None => Ok(Filter::or(each)),
            Some(least) => {
                let least = bools::least(&least, each.len())?.max(1);
                bools::at_least(least, each)
            }
        },
        Some(other) => Err(bad(format!("[operator] is and or or, not [{other}]"))),
    }
}

/// The meaning of a text without words.
fn no_words(members: &Object) -> Result<Filter, ApiError> {
    match optional(members, "zero_terms_query")?.as_deref() {
        None | Some("none") => Ok(nothing()),
        Some("all") => Ok(Filter::All),
        Some(other) => Err(bad(format!(
            "[zero_terms_query] is none or all, not [{other}]"
        ))),
    }
}
