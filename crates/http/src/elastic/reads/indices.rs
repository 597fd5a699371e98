//! Expressions of indices: `*`, `logs-*`, `logs-a,logs-b`, `-logs-c`.
//!
//! Shippers of Elasticsearch name an index, which is the field `_index`. Records without it are in the index
//! `logpond`. As for writers, every index exists: one without records has no hits.

use logpond_search::Filter;
use logpond_search::query::{Comparison, FieldTest, Pattern};

use super::json::{bad, unsupported};
use super::names::{DEFAULT_INDEX, INDEX, fits};
use crate::error::ApiError;

/// The most names of an expression.
const NAMES_MAX: usize = 100;

/// An expression, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexExpression {
    /// Names, with whether they take indices away.
    names: Vec<(bool, String)>,
}

impl IndexExpression {
    /// Reads an expression; an empty one is every index.
    ///
    /// # Errors
    /// When it names something that is not here, or too much.
    pub(super) fn read(text: &str) -> Result<IndexExpression, ApiError> {
        let mut names = Vec::new();
        for name in text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            if name.starts_with('<') {
                let instead = "write the name, or a pattern with *";
                return Err(unsupported("date math in names of indices", instead));
            }
            if name.contains(':') {
                return Err(unsupported(
                    "search across clusters",
                    "ask any node: it answers for its whole cluster",
                ));
            }
            names.push(match name.strip_prefix('-') {
                Some(name) if !names.is_empty() => (true, name.to_owned()),
                _ if name == "_all" => (false, "*".to_owned()),
                _ => (false, name.to_owned()),
            });
        }
        if names.len() > NAMES_MAX {
            return Err(bad(format!(
                "there are more than {NAMES_MAX} names of indices"
            )));
        }
        Ok(IndexExpression { names })
    }

    /// True if an index of this name is meant.
    pub(super) fn has(&self, index: &str) -> bool {
        if self.names.is_empty() {
            return true;
        }
        let mut is_in = false;
        for (is_excluded, name) in &self.names {
            if fits(name, index) {
                is_in = !is_excluded;
            }
        }
        is_in
    }

    /// The records of these indices.
    pub(super) fn filter(&self) -> Filter {
        let mut filter = None;
        for (is_excluded, name) in &self.names {
            let one = of_pattern(name);
            filter = Some(match (filter, is_excluded) {
                (None, false) => one,
                (None, true) => Filter::negate(one),
                (Some(before), false) => Filter::or([before, one]),
                (Some(before), true) => Filter::and([before, Filter::negate(one)]),
            });
        }
        filter.unwrap_or(Filter::All)
    }

    /// The names without wildcards.
    pub(super) fn whole_names(&self) -> impl Iterator<Item = &str> {
        let names = self.names.iter();
        let whole = names.filter(|(is_excluded, name)| !is_excluded && !name.contains('*'));
        whole.map(|(_, name)| name.as_str())
    }
}

fn of_pattern(pattern: &str) -> Filter {
    if !pattern.contains('*') {
        return of_name(pattern);
    }
    if pattern.chars().all(|c| c == '*') {
        return Filter::All;
    }
    let source = regex_syntax::escape(pattern).replace(r"\*", ".*");
    let test = FieldTest::Contains(Pattern::regex(&format!("^(?s:{source})$"), false));
    let named = Filter::field(INDEX, test);
    if fits(pattern, DEFAULT_INDEX) {
        Filter::or([named, without()])
    } else {
        named
    }
}

/// The records of the index of this name.
pub(super) fn of_name(name: &str) -> Filter {
    let test = FieldTest::Compare(Comparison::Equal, name.as_bytes().into());
    let named = Filter::field(INDEX, test);
    if name == DEFAULT_INDEX {
        Filter::or([named, without()])
    } else {
        named
    }
}

/// The records that name no index.
fn without() -> Filter {
    Filter::negate(Filter::field(INDEX, FieldTest::Exists))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_filters() {
        let table = [
            ("", "*"),
            ("*", "*"),
            ("_all", "*"),
            ("logs-a", "_index=logs-a"),
            ("logpond", "_index=logpond OR NOT _index:*"),
            ("logs-a,b", "_index=logs-a OR _index=b"),
            ("logs-*", r"_index~/^(?s:logs\-.*)$/"),
            ("log*", r"_index~/^(?s:log.*)$/ OR NOT _index:*"),
            ("*,-b", "_index!=b"),
        ];
        for (text, expected) in table {
            let found = IndexExpression::read(text).unwrap().filter().to_string();
            let expected = logpond_search::query::parse(expected).unwrap().to_string();
            assert_eq!(found, expected, "{text}");
        }
        for text in ["<logs-{now/d}>", "other:logs", &"a,".repeat(101)] {
            assert!(IndexExpression::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn expressions_have_names() {
        let expression = IndexExpression::read("logs-*,-logs-b").unwrap();
        assert!(expression.has("logs-a") && !expression.has("logs-b") && !expression.has("x"));
        assert!(IndexExpression::read("").unwrap().has("x"));
    }
}
