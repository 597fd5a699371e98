//! Results of recording rules are shown only to those who name them.
//!
//! Invariants:
//! - A filter that names neither [`RULE_FIELD`] nor asks for [`RECORD_FIELD`] wants no result of a rule:
//!   else a rule over all streams would count what it has written itself.
//! - [`Filter::without_rule_results`] of its own outcome changes nothing, so that each node may do it.

use super::ast::{Comparison, FieldTest, Filter};
use crate::label::LABEL_PREFIX;

pub use logpond_record::RULE_FIELD;

/// The field by which people ask for such records: the rule's name, too. Records of others may have it.
pub const RECORD_FIELD: &str = "record";

/// The place of conditions on results of rules in a filter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RuleMention {
    Nowhere,
    Somewhere,
}

impl Filter {
    /// Everything but results of rules.
    pub fn no_rule_results() -> Filter {
        Filter::negate(Filter::field(RULE_FIELD, FieldTest::Exists))
    }

    /// The same without results of rules, unless it names them.
    #[must_use]
    pub fn without_rule_results(self) -> Filter {
        if self.names_rule_results() {
            self
        } else {
            Filter::and([self, Filter::no_rule_results()])
        }
    }

    /// True if it asks for results of rules, or says itself that it does not want them.
    pub fn names_rule_results(&self) -> bool {
        named(self, true) == RuleMention::Somewhere
    }
}

/// Looks for the fields; `is_wanted` is false below a negation: who leaves out one rule's results does not
/// ask for those of others.
fn named(filter: &Filter, is_wanted: bool) -> RuleMention {
    let any = |parts: &[Filter]| {
        let mut parts = parts.iter();
        if parts.any(|part| named(part, is_wanted) == RuleMention::Somewhere) {
            RuleMention::Somewhere
        } else {
            RuleMention::Nowhere
        }
    };
    match filter {
        Filter::All | Filter::Text(_) => RuleMention::Nowhere,
        Filter::And(parts) | Filter::Or(parts) => any(parts),
        Filter::Not(inner) => named(inner, !is_wanted),
        Filter::Field(field) => {
            let name = field.name.strip_prefix(LABEL_PREFIX);
            match name.unwrap_or(&field.name) {
                RULE_FIELD => RuleMention::Somewhere,
                // The empty text is that of records without the field. Labels that are missing have it, too.
                RECORD_FIELD if is_wanted && !takes_none(&field.test, name.is_some()) => {
                    RuleMention::Somewhere
                }
                _ => RuleMention::Nowhere,
            }
        }
    }
}

/// True if a test does not ask for the field, since records without it pass.
fn takes_none(test: &FieldTest, is_label: bool) -> bool {
    match test {
        FieldTest::Compare(Comparison::Equal, value) => value.is_empty(),
        FieldTest::Contains(pattern) => is_label && pattern.may_match_nothing(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::logql;
    use crate::query::{Filter, parse};

    #[test]
    fn only_who_names_them_is_shown_results_of_rules() {
        let table = [
            ("", false),
            ("error", false),
            ("app=x", false),
            ("record=app:errors", true),
            ("app=x (record:* OR status=500)", true),
            ("_rule:*", true),
            ("NOT _rule:*", true),
            ("NOT record=app:errors", false),
            ("record!=app:errors", false),
            ("NOT (app=x NOT record:*)", true),
            ("recorder=1", false),
        ];
        for (text, names) in table {
            let filter = parse(text).unwrap();
            assert_eq!(filter.names_rule_results(), names, "{text}");
            let shown = filter.clone().without_rule_results();
            assert_eq!(shown == filter, names, "{text}");
            assert_eq!(shown.clone().without_rule_results(), shown, "{text}");
            assert_eq!(parse(&shown.to_string()).as_ref(), Ok(&shown), "{text}");
        }
    }

    #[test]
    fn selectors_name_them_by_a_label() {
        let table = [
            (r#"{app=~".+"}"#, false),
            (r#"{app="x", record!="y"}"#, false),
            (r#"{app="x", record=""}"#, false),
            (r#"{app="x", record!=""}"#, true),
            (r#"{record="app:errors"}"#, true),
            (r#"{record=~"app:.+"}"#, true),
            (r#"{record=~".+"}"#, true),
            (r#"{record=~".*"}"#, false),
            (r#"{record=~"app:.+|"}"#, false),
            (r#"{_rule=~".+"}"#, true),
            (r#"{app=~".+"} | record="app:errors""#, true),
        ];
        for (text, names) in table {
            let logql::Query::Log(log) = logql::parse(text).unwrap() else {
                panic!("{text}");
            };
            let filter: Filter = logql::filter_of(&log);
            assert_eq!(filter.names_rule_results(), names, "{text}: {filter}");
        }
    }
}
