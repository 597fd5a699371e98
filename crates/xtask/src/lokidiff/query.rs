//! Queries as trees, so that one that is answered differently can be made smaller.

use std::fmt;

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Query {
    Log(Log),
    Metric(Metric),
    /// Something like a query, which may be none.
    Mutated(String),
}

/// A query for lines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Log {
    pub(super) matchers: Vec<Matcher>,
    pub(super) stages: Vec<Stage>,
}

/// A condition of a selector.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matcher {
    pub(super) name: String,
    /// The operator and the value in quotes.
    pub(super) rest: String,
}

/// What a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    LineFilter,
    Json,
    Logfmt,
    Regexp,
    Pattern,
    Unpack,
    LabelFilter,
    LineFormat,
    LabelFormat,
    Drop,
    Keep,
    Decolorize,
    Unwrap,
}

/// A stage of a pipeline, with the operator in front of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stage {
    pub(super) kind: Kind,
    pub(super) text: String,
}

/// By which labels, or without which.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grouping {
    pub(super) is_without: bool,
    pub(super) labels: Vec<String>,
}

/// A query for numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Metric {
    Range {
        operator: &'static str,
        parameter: Option<String>,
        log: Log,
        range: String,
        offset: Option<String>,
        grouping: Option<Grouping>,
    },
    Vector {
        operator: &'static str,
        parameter: Option<String>,
        grouping: Option<Grouping>,
        inner: Box<Metric>,
    },
    Binary {
        operator: &'static str,
        modifiers: String,
        left: Box<Metric>,
        right: Box<Metric>,
    },
    /// `label_replace`, with what is behind the vector.
    Replace { rest: String, inner: Box<Metric> },
    /// A number or `vector(…)`.
    Number(String),
}

impl Query {
    /// Queries that are parts of this one.
    pub(super) fn smaller(&self) -> Vec<Query> {
        match self {
            Query::Log(log) => log.smaller().into_iter().map(Query::Log).collect(),
            Query::Metric(metric) => {
                let smaller = metric.smaller().into_iter();
                smaller.map(Query::Metric).collect()
            }
            Query::Mutated(_) => Vec::new(),
        }
    }

    /// The same query with one more condition in all of its selectors.
    pub(super) fn with_matcher(&self, matcher: &Matcher) -> Query {
        let mut query = self.clone();
        match &mut query {
            Query::Log(log) => log.matchers.push(matcher.clone()),
            Query::Metric(metric) => metric.change_logs(&|log| log.matchers.push(matcher.clone())),
            Query::Mutated(text) => {
                let with = format!("{{{}{}, ", matcher.name, matcher.rest);
                *text = text.replace('{', &with);
            }
        }
        query
    }

    /// The same query over lines that have a text for this label.
    pub(super) fn with_text(&self, label: &str) -> Query {
        let mut query = self.clone();
        if let Query::Metric(metric) = &mut query {
            metric.change_logs(&|log| {
                log.stages.push(Stage {
                    kind: Kind::LabelFilter,
                    text: format!("| {label}!=\"\""),
                });
            });
        }
        query
    }

    /// What the query is made of, without names and values: queries of one cause often share it.
    pub(super) fn shape(&self) -> String {
        match self {
            Query::Log(log) => log.shape(),
            Query::Metric(metric) => metric.shape(),
            Query::Mutated(_) => "mutated".to_owned(),
        }
    }

    /// All labels that something is grouped by or without.
    pub(super) fn groupings(&self) -> Vec<String> {
        let mut labels = Vec::new();
        if let Query::Metric(metric) = self {
            metric.groupings(&mut labels);
        }
        labels
    }

    /// The pipelines of the query.
    pub(super) fn logs(&self) -> Vec<&Log> {
        let mut logs = Vec::new();
        match self {
            Query::Log(log) => logs.push(log),
            Query::Metric(metric) => metric.logs(&mut logs),
            Query::Mutated(_) => {}
        }
        logs
    }
}

impl Log {
    fn smaller(&self) -> Vec<Log> {
        let mut smaller = Vec::new();
        for at in 0..self.stages.len() {
            let mut log = self.clone();
            log.stages.remove(at);
            smaller.push(log);
        }
        for at in 0..self.matchers.len() {
            if self.matchers.len() > 1 {
                let mut log = self.clone();
                log.matchers.remove(at);
                smaller.push(log);
            }
        }
        smaller
    }

    fn shape(&self) -> String {
        let kinds = self.stages.iter().map(|stage| format!(" {:?}", stage.kind));
        format!("{{}}{}", kinds.collect::<String>())
    }
}

impl Metric {
    fn smaller(&self) -> Vec<Metric> {
        let mut smaller = Vec::new();
        match self {
            Metric::Range {
                log,
                offset,
                grouping,
                ..
            } => {
                if offset.is_some() {
                    smaller.push(self.with(|_, offset, _| *offset = None));
                }
                if grouping.is_some() {
                    smaller.push(self.with(|_, _, grouping| *grouping = None));
                }
                for part in log.smaller() {
                    smaller.push(self.with(|log, _, _| *log = part));
                }
            }
            Metric::Vector { inner, .. } => {
                smaller.push((**inner).clone());
                smaller.extend(inner.smaller().into_iter().map(|part| self.around(part)));
            }
            Metric::Replace { inner, .. } => {
                smaller.push((**inner).clone());
                smaller.extend(inner.smaller().into_iter().map(|part| self.around(part)));
            }
            Metric::Binary { left, right, .. } => {
                smaller.extend([(**left).clone(), (**right).clone()]);
                let lefts = left.smaller().into_iter();
                smaller.extend(lefts.map(|part| self.between(part, (**right).clone())));
                let rights = right.smaller().into_iter();
                smaller.extend(rights.map(|part| self.between((**left).clone(), part)));
            }
            Metric::Number(_) => {}
        }
        smaller
    }

    /// A range aggregation with something changed.
    fn with(
        &self,
        change: impl FnOnce(&mut Log, &mut Option<String>, &mut Option<Grouping>),
    ) -> Metric {
        let mut changed = self.clone();
        if let Metric::Range {
            log,
            offset,
            grouping,
            ..
        } = &mut changed
        {
            change(log, offset, grouping);
        }
        changed
    }

    /// The same around something else.
    fn around(&self, part: Metric) -> Metric {
        let mut changed = self.clone();
        if let Metric::Vector { inner, .. } | Metric::Replace { inner, .. } = &mut changed {
            **inner = part;
        }
        changed
    }

    fn between(&self, new_left: Metric, new_right: Metric) -> Metric {
        let mut changed = self.clone();
        if let Metric::Binary { left, right, .. } = &mut changed {
            (**left, **right) = (new_left, new_right);
        }
        changed
    }

    fn shape(&self) -> String {
        match self {
            Metric::Range {
                operator,
                log,
                offset,
                grouping,
                ..
            } => {
                let by = grouping.as_ref().map_or("", |_| " by");
                let offset = offset.as_ref().map_or("", |_| " offset");
                format!("{operator}({}{offset}){by}", log.shape())
            }
            Metric::Vector {
                operator, inner, ..
            } => format!("{operator}({})", inner.shape()),
            Metric::Binary {
                operator,
                left,
                right,
                ..
            } => format!("({} {operator} {})", left.shape(), right.shape()),
            Metric::Replace { inner, .. } => format!("label_replace({})", inner.shape()),
            Metric::Number(text) if text.starts_with('v') => "vector".to_owned(),
            Metric::Number(_) => "number".to_owned(),
        }
    }

    fn change_logs(&mut self, change: &dyn Fn(&mut Log)) {
        match self {
            Metric::Range { log, .. } => change(log),
            Metric::Vector { inner, .. } | Metric::Replace { inner, .. } => {
                inner.change_logs(change);
            }
            Metric::Binary { left, right, .. } => {
                left.change_logs(change);
                right.change_logs(change);
            }
            Metric::Number(_) => {}
        }
    }

    fn groupings(&self, labels: &mut Vec<String>) {
        if let Metric::Range { grouping, .. } | Metric::Vector { grouping, .. } = self {
            labels.extend(grouping.iter().flat_map(|grouping| grouping.labels.clone()));
        }
        match self {
            Metric::Vector { inner, .. } | Metric::Replace { inner, .. } => inner.groupings(labels),
            Metric::Binary { left, right, .. } => {
                left.groupings(labels);
                right.groupings(labels);
            }
            Metric::Range { .. } | Metric::Number(_) => {}
        }
    }

    pub(super) fn logs<'m>(&'m self, logs: &mut Vec<&'m Log>) {
        match self {
            Metric::Range { log, .. } => logs.push(log),
            Metric::Vector { inner, .. } | Metric::Replace { inner, .. } => inner.logs(logs),
            Metric::Binary { left, right, .. } => {
                left.logs(logs);
                right.logs(logs);
            }
            Metric::Number(_) => {}
        }
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Query::Log(log) => log.fmt(f),
            Query::Metric(metric) => metric.fmt(f),
            Query::Mutated(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (at, matcher) in self.matchers.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{}{}", matcher.name, matcher.rest)?;
        }
        f.write_str("}")?;
        let mut stages = self.stages.iter();
        stages.try_for_each(|stage| write!(f, " {}", stage.text))
    }
}

impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_without { "without" } else { "by" };
        write!(f, " {word} ({})", self.labels.join(", "))
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Range {
                operator,
                parameter,
                log,
                range,
                offset,
                grouping,
            } => {
                write!(f, "{operator}(")?;
                if let Some(parameter) = parameter {
                    write!(f, "{parameter}, ")?;
                }
                write!(f, "{log} [{range}]")?;
                if let Some(offset) = offset {
                    write!(f, " offset {offset}")?;
                }
                f.write_str(")")?;
                grouping.iter().try_for_each(|grouping| grouping.fmt(f))
            }
            Metric::Vector {
                operator,
                parameter,
                grouping,
                inner,
            } => {
                write!(f, "{operator}")?;
                grouping.iter().try_for_each(|grouping| grouping.fmt(f))?;
                f.write_str("(")?;
                if let Some(parameter) = parameter {
                    write!(f, "{parameter}, ")?;
                }
                write!(f, "{inner})")
            }
            Metric::Binary {
                operator,
                modifiers,
                left,
                right,
            } => write!(f, "({left} {operator}{modifiers} {right})"),
            Metric::Replace { rest, inner } => write!(f, "label_replace({inner}, {rest})"),
            Metric::Number(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Log {
        let stage = |kind, text: &str| Stage {
            kind,
            text: text.into(),
        };
        Log {
            matchers: vec![Matcher {
                name: "app".into(),
                rest: "=\"a\"".into(),
            }],
            stages: vec![
                stage(Kind::Json, "| json"),
                stage(Kind::Unwrap, "| unwrap n"),
            ],
        }
    }

    fn metric() -> Metric {
        let range = Metric::Range {
            operator: "sum_over_time",
            parameter: None,
            log: log(),
            range: "5m".into(),
            offset: Some("1m".into()),
            grouping: Some(Grouping {
                is_without: false,
                labels: vec!["x".into()],
            }),
        };
        Metric::Vector {
            operator: "topk",
            parameter: Some("2".into()),
            grouping: None,
            inner: Box::new(range),
        }
    }

    #[test]
    fn queries_are_printed() {
        assert_eq!(
            metric().to_string(),
            "topk(2, sum_over_time({app=\"a\"} | json | unwrap n [5m] offset 1m) by (x))"
        );
    }

    #[test]
    fn parts_are_smaller() {
        let query = Query::Metric(metric());
        let smaller = query.smaller();
        assert_eq!(smaller.len(), 5);
        let length = query.to_string().len();
        assert!(smaller.iter().all(|part| part.to_string().len() < length));
        assert_eq!(
            query.shape(),
            "topk(sum_over_time({} Json Unwrap offset) by)"
        );
        assert_eq!(query.logs(), [&log()]);
        let filtered = query.with_text("x");
        assert_eq!(filtered.logs()[0].stages.last().unwrap().text, "| x!=\"\"");
    }
}
