//! The labels that a query names: which fields of records it takes for labels.

use super::ast::{Grouping, LabelFilter, LogQuery, StageKind, Unwrap};
use super::pushdown::is_of_errors;

/// Labels that a query names. Any field of a record may be one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedLabels {
    /// Those of the selector: a record's stream has them.
    pub selected: Vec<Box<str>>,
    /// Those that conditions look at where no stage before has made labels. What a stage behind finds
    /// under such a name takes its place.
    pub referred: Vec<Box<str>>,
}

impl NamedLabels {
    /// Those of a query for lines.
    pub fn of(log: &LogQuery) -> NamedLabels {
        let mut named = NamedLabels {
            selected: log.matchers.iter().map(|m| m.name.clone()).collect(),
            referred: Vec::new(),
        };
        let before = log
            .stages
            .iter()
            .take_while(|stage| !stage.kind.makes_labels());
        for stage in before {
            if let StageKind::LabelFilter(filter) = &stage.kind {
                add_filter(filter, &mut named.referred);
            }
        }
        named.settle()
    }

    /// Those of a range aggregation; what is behind the stages counts where none makes labels.
    pub fn of_range(
        log: &LogQuery,
        unwrap: Option<&Unwrap>,
        grouping: Option<&Grouping>,
    ) -> NamedLabels {
        let mut named = NamedLabels::of(log);
        if log.stages.iter().any(|stage| stage.kind.makes_labels()) {
            return named;
        }
        if let Some(unwrap) = unwrap {
            named.referred.push(unwrap.label.clone());
            let filters = unwrap.filters.iter();
            filters.for_each(|filter| add_filter(filter, &mut named.referred));
        }
        let grouping = grouping.filter(|grouping| !grouping.is_without);
        let grouped = grouping.iter().flat_map(|grouping| &grouping.labels);
        named.referred.extend(grouped.cloned());
        named.settle()
    }

    /// Each name once.
    fn settle(mut self) -> NamedLabels {
        self.selected.sort_unstable();
        self.selected.dedup();
        let selected = &self.selected;
        self.referred
            .retain(|name| !is_of_errors(name) && selected.binary_search(name).is_err());
        self.referred.sort_unstable();
        self.referred.dedup();
        self
    }
}

/// Adds the labels that a condition looks at.
pub(crate) fn add_filter(filter: &LabelFilter, names: &mut Vec<Box<str>>) {
    match filter {
        LabelFilter::And(left, right) | LabelFilter::Or(left, right) => {
            add_filter(left, names);
            add_filter(right, names);
        }
        LabelFilter::Text(matcher) => names.push(matcher.name.clone()),
        LabelFilter::Ip { name, .. } | LabelFilter::Quantity { name, .. } => {
            names.push(name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Metric, Query, parse};
    use super::*;

    fn named(text: &str) -> String {
        let named = match parse(text).unwrap() {
            Query::Log(log) => NamedLabels::of(&log),
            Query::Metric(Metric::Range(range)) => {
                NamedLabels::of_range(&range.log, range.unwrap.as_ref(), range.grouping.as_ref())
            }
            Query::Metric(_) => panic!("no range: {text}"),
        };
        format!(
            "{} / {}",
            named.selected.join(" "),
            named.referred.join(" ")
        )
    }

    #[test]
    fn names_are_of_the_record_until_a_stage_makes_some() {
        let table = [
            (r#"{a="1"}"#, "a / "),
            (
                r#"{a="1"} | b=2 and (c="x" or a="y") | __error__="""#,
                "a / b c",
            ),
            (r#"{a="1"} | b=2 | json | c=3"#, "a / b"),
            (r#"{a="1"} |= "x" | drop b | c=3"#, "a / c"),
            (
                r#"max_over_time({a="1"} | unwrap b | c=3 [1m]) by (d, b)"#,
                "a / b c d",
            ),
            (
                r#"max_over_time({a="1"} | json | unwrap b [1m]) by (d)"#,
                "a / ",
            ),
            (
                r#"max_over_time({a="1"} | unwrap b [1m]) without (d)"#,
                "a / b",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(named(text), expected, "{text}");
        }
    }
}
