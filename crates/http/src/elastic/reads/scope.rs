//! Filters as scopes: what they say of times becomes the range that is read.

use logpond_engine::query::Scope;
use logpond_record::{TimeRange, Timestamp};
use logpond_search::Filter;
use logpond_search::query::{Comparison, FieldTest};

use super::json::bad;
use super::lists;
use crate::error::ApiError;

/// The scope of a filter.
///
/// # Errors
/// When the filter is larger than filters may be.
pub(super) fn of_filter(filter: &Filter) -> Result<Scope, ApiError> {
    let (rest, range) = split(filter);
    Scope::of_filter(&lists::with_elements(&rest), range).map_err(|error| bad(error.message))
}

/// The conditions on times that always hold, as a range; and the others.
fn split(filter: &Filter) -> (Filter, TimeRange) {
    let parts = match filter {
        Filter::And(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut range = TimeRange::ALL;
    let mut rest = Vec::new();
    for part in parts {
        match bound(part) {
            Some((Comparison::GreaterOrEqual, at)) => range.from = range.from.max(at),
            Some((Comparison::Less, at)) => range.to = range.to.min(at),
            _ => rest.push(part.clone()),
        }
    }
    range.to = range.to.max(range.from);
    (Filter::and(rest), range)
}

fn bound(filter: &Filter) -> Option<(Comparison, Timestamp)> {
    match filter {
        Filter::Field(field) if &*field.name == "_time" => match &field.test {
            FieldTest::Compare(comparison, text) => {
                let text = std::str::from_utf8(text).ok()?;
                Some((*comparison, logpond_search::when::absolute(text)?))
            }
            FieldTest::Exists | FieldTest::Contains(_) => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_on_times_are_ranges() {
        let table = [
            (
                "a=b _time>=1970-01-01T00:00:01Z _time<1970-01-01T00:00:03Z _time<1970-01-01T00:00:02Z",
                "a=b",
                1,
                2,
            ),
            (
                "_time>=1970-01-01T00:00:05Z _time<1970-01-01T00:00:02Z",
                "*",
                5,
                5,
            ),
        ];
        for (text, expected, from_s, to_s) in table {
            let filter = logpond_search::query::parse(text).unwrap();
            let (rest, range) = split(&filter);
            assert_eq!(rest.to_string(), expected);
            let seconds = |s: i64| Timestamp(s * 1_000_000_000);
            assert_eq!(
                (range.from, range.to),
                (seconds(from_s), seconds(to_s)),
                "{text}"
            );
        }
        let either = logpond_search::query::parse("a=b OR _time<1970-01-01T00:00:02Z").unwrap();
        assert_eq!(split(&either), (either, TimeRange::ALL));
    }
}
