//! Queries of queries: `bool`, `constant_score`, `dis_max` and `boosting`.

use logpond_search::Filter;
use serde_json::Value as Json;

use super::super::json::{Object, bad, list, object, only, optional};
use super::{Context, nothing, translate};
use crate::error::ApiError;

/// The most combinations that `minimum_should_match` may mean.
const COMBINATIONS_MAX: usize = 256;

/// `bool`: of `must`, `filter`, `should` and `must_not`.
pub(super) fn bool(body: &Json, context: &Context) -> Result<Filter, ApiError> {
    let members = object(body, "bool")?;
    let known = [
        "must",
        "filter",
        "should",
        "must_not",
        "minimum_should_match",
        "boost",
        "adjust_pure_negative",
    ];
    only(members, &known, "bool")?;
    let mut parts = each(members, "must", context)?;
    parts.extend(each(members, "filter", context)?);
    let should = each(members, "should", context)?;
    let given = optional(members, "minimum_should_match")?;
    // Without another condition one of these must hold, whatever is asked for.
    let least_of_none = usize::from(parts.is_empty() && !should.is_empty());
    let least = match given {
        Some(text) => least(&text, should.len())?.max(least_of_none),
        None => least_of_none,
    };
    if least > 0 {
        parts.push(at_least(least, should)?);
    }
    let not = each(members, "must_not", context)?;
    parts.extend(not.into_iter().map(Filter::negate));
    Ok(Filter::and(parts))
}

fn each(members: &Object, name: &str, context: &Context) -> Result<Vec<Filter>, ApiError> {
    let Some(clauses) = members.get(name) else {
        return Ok(Vec::new());
    };
    list(clauses)
        .iter()
        .map(|clause| translate(clause, context))
        .collect()
}

/// How many of so many must hold: `2`, `-1`, `75%`, `-25%`, or one of these behind conditions: `2<75% 9<-3` asks for all
/// of up to two, for three quarters of up to nine, and for all but three of more.
pub(super) fn least(text: &str, count: usize) -> Result<usize, ApiError> {
    if !text.contains('<') {
        return plain_least(text.trim(), count);
    }
    let mut least = count;
    for condition in text.split_whitespace() {
        let parts = condition.split_once('<');
        let parts = parts.and_then(|(above, rest)| Some((above.parse::<usize>().ok()?, rest)));
        let Some((above, rest)) = parts else {
            return Err(bad(format!(
                "[minimum_should_match] has conditions such as 2<75%, not [{condition}]"
            )));
        };
        if count > above {
            least = plain_least(rest, count)?;
        }
    }
    Ok(least)
}

fn plain_least(text: &str, count: usize) -> Result<usize, ApiError> {
    let wrong = || {
        bad(format!(
            "[minimum_should_match] is a number or a percentage, not [{text}]"
        ))
    };
    let count = i64::try_from(count).map_err(|_| wrong())?;
    let least = match text.strip_suffix('%') {
        Some(percent) => {
            let percent: i64 = percent.parse().map_err(|_| wrong())?;
            if !(-100..=100).contains(&percent) {
                return Err(wrong());
            }
            let part = count * percent / 100;
            if percent < 0 { count + part } else { part }
        }
        None => {
            let number: i64 = text.parse().map_err(|_| wrong())?;
            if number < 0 {
                count.saturating_add(number)
            } else {
                number
            }
        }
    };
    usize::try_from(least.max(0)).map_err(|_| wrong())
}

/// Records that at least so many filters want.
pub(super) fn at_least(least: usize, filters: Vec<Filter>) -> Result<Filter, ApiError> {
    if least > filters.len() {
        return Ok(nothing());
    }
    if least == filters.len() {
        return Ok(Filter::and(filters));
    }
    if least <= 1 {
        return Ok(if least == 0 {
            Filter::All
        } else {
            Filter::or(filters)
        });
    }
    let mut chosen = vec![Vec::new()];
    let mut done = Vec::new();
    for (at, filter) in filters.iter().enumerate() {
        let left = filters.len() - at;
        let mut next: Vec<Vec<&Filter>> = Vec::new();
        for choice in chosen {
            let mut with = choice.clone();
            with.push(filter);
            if with.len() == least {
                done.push(with);
            } else {
                next.push(with);
            }
            if choice.len() + left > least {
                next.push(choice);
            }
        }
        if next.len() + done.len() > COMBINATIONS_MAX {
            return Err(bad(format!(
                "[minimum_should_match] {least} of {} are more than {COMBINATIONS_MAX} combinations",
                filters.len()
            )));
        }
        chosen = next;
    }
    let all = |choice: Vec<&Filter>| Filter::and(choice.into_iter().cloned());
    Ok(Filter::or(done.into_iter().map(all)))
}

/// `constant_score`: its filter.
pub(super) fn constant_score(body: &Json, context: &Context) -> Result<Filter, ApiError> {
    let members = object(body, "constant_score")?;
    only(members, &["filter", "boost"], "constant_score")?;
    let filter = members.get("filter");
    let filter = filter.ok_or_else(|| bad("[constant_score] needs [filter]"))?;
    translate(filter, context)
}

/// `dis_max`: any of its queries.
pub(super) fn dis_max(body: &Json, context: &Context) -> Result<Filter, ApiError> {
    let members = object(body, "dis_max")?;
    only(members, &["queries", "tie_breaker", "boost"], "dis_max")?;
    Ok(Filter::or(each(members, "queries", context)?))
}

/// `boosting`: its positive query; the negative one changes scores alone.
pub(super) fn boosting(body: &Json, context: &Context) -> Result<Filter, ApiError> {
    let members = object(body, "boosting")?;
    let known = ["positive", "negative", "negative_boost", "boost"];
    only(members, &known, "boosting")?;
    let positive = members.get("positive");
    let positive = positive.ok_or_else(|| bad("[boosting] needs [positive]"))?;
    if let Some(negative) = members.get("negative") {
        translate(negative, context)?;
    }
    translate(positive, context)
}
