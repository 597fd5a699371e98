//! `range`: instants and numbers. Texts of other fields than the time are compared as instants, too.

use logpond_record::{TimeRange, Timestamp};
use logpond_search::query::{Comparison, FieldTest};
use logpond_search::{Filter, Number};
use serde_json::Value as Json;

use super::super::dates::DateReader;
use super::super::json::{Object, bad, object, only, optional, scalar, single, unsupported};
use super::super::names;
use super::Context;
use crate::error::ApiError;

/// A bound of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Above,
    From,
    Below,
    To,
}

impl Bound {
    fn of(name: &str) -> Option<Bound> {
        Some(match name {
            "gt" => Bound::Above,
            "gte" => Bound::From,
            "lt" => Bound::Below,
            "lte" => Bound::To,
            _ => return None,
        })
    }

    /// The comparison with an instant, where a date stands for the whole of its last unit.
    fn of_span(self, span: TimeRange) -> (Comparison, Timestamp) {
        match self {
            Bound::Above => (Comparison::GreaterOrEqual, span.to),
            Bound::From => (Comparison::GreaterOrEqual, span.from),
            Bound::Below => (Comparison::Less, span.from),
            Bound::To => (Comparison::Less, span.to),
        }
    }

    fn comparison(self) -> Comparison {
        match self {
            Bound::Above => Comparison::Greater,
            Bound::From => Comparison::GreaterOrEqual,
            Bound::Below => Comparison::Less,
            Bound::To => Comparison::LessOrEqual,
        }
    }
}

/// Values between bounds.
pub(super) fn range(body: &Json, context: &Context) -> Result<Filter, ApiError> {
    let (name, given) = single(body, "range")?;
    let members = object(given, name)?;
    let known = [
        "gt",
        "gte",
        "lt",
        "lte",
        "from",
        "to",
        "include_lower",
        "include_upper",
        "format",
        "time_zone",
        "boost",
        "relation",
    ];
    only(members, &known, "range")?;
    if let Some(relation) = optional(members, "relation")?
        && !relation.eq_ignore_ascii_case("intersects")
    {
        return Err(unsupported("relation", "fields hold values, not ranges"));
    }
    let zone = optional(members, "time_zone")?;
    let format = optional(members, "format")?;
    let reader = context.dates().with(zone.as_deref(), format.as_deref())?;
    let mut parts = Vec::new();
    for (bound, value) in bounds(members)? {
        parts.push(of_bound(name, bound, &value, &reader)?);
    }
    if parts.is_empty() {
        return Ok(super::exists::of_field(name));
    }
    Ok(Filter::and(parts))
}

/// The bounds that are given; `from` and `to` are the old names.
fn bounds(members: &Object) -> Result<Vec<(Bound, String)>, ApiError> {
    let mut bounds = Vec::new();
    for (name, value) in members {
        let is_open = |flag: &str| members.get(flag) == Some(&Json::Bool(false));
        let bound = match &**name {
            "from" if is_open("include_lower") => Some(Bound::Above),
            "from" => Some(Bound::From),
            "to" if is_open("include_upper") => Some(Bound::Below),
            "to" => Some(Bound::To),
            name => Bound::of(name),
        };
        if let (Some(bound), false) = (bound, value.is_null()) {
            bounds.push((bound, scalar(value, name)?));
        }
    }
    Ok(bounds)
}

/// Records whose field is on this side of a bound.
pub(super) fn of_bound(
    name: &str,
    bound: Bound,
    value: &str,
    reader: &DateReader,
) -> Result<Filter, ApiError> {
    let record = names::of_record(name);
    if names::is_time(name) {
        let (comparison, at) = bound.of_span(reader.span(value)?);
        return Ok(instant(record, comparison, at));
    }
    if Number::parse(value.as_bytes()).is_none() {
        let wrong = |_| {
            bad(format!(
                "[range] on [{name}] compares numbers and dates, and [{value}] is neither: use prefix, wildcard or \
                 regexp for texts"
            ))
        };
        let (comparison, at) = bound.of_span(reader.span(value).map_err(wrong)?);
        return Ok(instant(record, comparison, at));
    }
    let test = FieldTest::Compare(bound.comparison(), value.as_bytes().into());
    Ok(Filter::field(record, test))
}

/// Records whose time is within a span.
pub(super) fn of_span(name: &str, span: TimeRange) -> Filter {
    let record = names::of_record(name);
    Filter::and([
        instant(record, Comparison::GreaterOrEqual, span.from),
        instant(record, Comparison::Less, span.to),
    ])
}

fn instant(record: &str, comparison: Comparison, at: Timestamp) -> Filter {
    let text = at.to_string();
    Filter::field(
        record,
        FieldTest::Compare(comparison, text.as_bytes().into()),
    )
}
