//! The labels that a query names: which fields of records it takes for labels.

use super::ast::{Grouping, LabelFilter, LabelSource, LogQuery, Stage, StageKind, Unwrap};
use super::pushdown::is_of_errors;
use crate::pipeline::DUPLICATE_SUFFIX;

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

/// The labels that stages, what is unwrapped and the grouping look at: the others do not matter. `None` if
/// that is not known, because series have all labels, or a template may name any.
pub(crate) fn looked_at(
    stages: &[Stage],
    unwrap: Option<&Unwrap>,
    grouping: Option<&Grouping>,
) -> Option<Vec<Box<str>>> {
    let grouping = grouping.filter(|grouping| !grouping.is_without)?;
    let mut names = grouping.labels.clone();
    for stage in stages {
        match &stage.kind {
            StageKind::LabelFilter(filter) => add_filter(filter, &mut names),
            StageKind::LineFormat(_) => return None,
            StageKind::LabelFormat(formats) => {
                for format in formats {
                    match &format.from {
                        LabelSource::Label(name) => names.push(name.clone()),
                        LabelSource::Template(_) => return None,
                    }
                }
            }
            // These find labels, or look at those that they take away.
            StageKind::LineFilter(_)
            | StageKind::Json(_)
            | StageKind::Logfmt(_)
            | StageKind::Regexp(_)
            | StageKind::Pattern(_)
            | StageKind::Unpack
            | StageKind::Decolorize
            | StageKind::Drop(_)
            | StageKind::Keep(_) => {}
        }
    }
    if let Some(unwrap) = unwrap {
        names.push(unwrap.label.clone());
        let filters = unwrap.filters.iter();
        filters.for_each(|filter| add_filter(filter, &mut names));
    }
    // Whether there is such a label depends on the one without the suffix.
    for at in 0..names.len() {
        let mut name = &*names[at];
        let mut shorter = Vec::new();
        while let Some(rest) = name.strip_suffix(DUPLICATE_SUFFIX) {
            shorter.push(rest.into());
            name = rest;
        }
        names.extend(shorter);
    }
    names.retain(|name| !is_of_errors(name));
    names.sort_unstable();
    names.dedup();
    Some(names)
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
    fn what_is_looked_at_is_known_where_series_have_names() {
        let looked_at = |text: &str| {
            let Query::Metric(Metric::Range(range)) = parse(text).unwrap() else {
                panic!("no range: {text}");
            };
            let (unwrap, grouping) = (range.unwrap.as_ref(), range.grouping.as_ref());
            super::looked_at(&range.log.stages, unwrap, grouping).map(|names| names.join(" "))
        };
        let table = [
            (r#"max_over_time({a="1"} | unwrap b [1m])"#, None),
            (
                r#"max_over_time({a="1"} | unwrap b [1m]) without (c)"#,
                None,
            ),
            (r#"max_over_time({a="1"} | unwrap b [1m]) by ()"#, Some("b")),
            (
                r#"max_over_time({a="1"} | json | logfmt | d="x" or __error__="" | drop e, f="g" | unwrap b | h>1 [1m]) by (c)"#,
                Some("b c d h"),
            ),
            (
                r#"max_over_time({a="1"} | json | label_format d=e | unwrap b [1m]) by (c)"#,
                Some("b c e"),
            ),
            (
                r#"max_over_time({a="1"} | label_format d="{{.e}}" | unwrap b [1m]) by (c)"#,
                None,
            ),
            (
                r#"max_over_time({a="1"} | line_format "{{.e}}" | unwrap b [1m]) by (c)"#,
                None,
            ),
            (
                r#"max_over_time({a="1"} | json | unwrap b [1m]) by (c_extracted_extracted)"#,
                Some("b c c_extracted c_extracted_extracted"),
            ),
        ];
        for (text, expected) in table {
            assert_eq!(looked_at(text).as_deref(), expected, "{text}");
        }
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
