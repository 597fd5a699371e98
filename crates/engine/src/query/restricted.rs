//! An engine that answers from a part of the records: those that a condition wants.
//!
//! Invariants:
//! - The condition is added to the filter of every question before the question is planned, so that caches, tables of
//!   files and other nodes see a filter like any other.
//! - Rows around a match are subject to the condition, too.
//! - What says something of all records is left out of the trailer, or refused.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use logpond_record::Timestamp;
use logpond_search::Matcher;
use logpond_search::aggregate::FieldTypes;
use logpond_search::label::LABEL_PREFIX;
use logpond_search::logql::{LabelMatcher, LogQuery, MatchOperator, Span, filter_of};
use logpond_search::metric::Plan;
use logpond_search::query::{Comparison, FieldFilter, FieldTest, Filter, RULE_FIELD, parse};

use super::output::Output;
use super::{
    AnyTable, ColumnsQuery, Engine, LineAnswer, LineQuery, NumberAnswer, QueryError, Scope, Search,
    TakeColumns, Trailer,
};
use logpond_host::telemetry::Metrics;

/// The longest condition of a token, in bytes: it is parsed and compiled for every question.
pub const CONDITION_BYTES_MAX: usize = 4096;

/// The value of the field `_rule` of records of the audit.
pub const AUDIT_STREAM: &str = "logpond.audit";

/// The records that may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restriction {
    /// The condition; [`Filter::All`] if all records may be read.
    only: Filter,
    /// True if records of the audit may not be read.
    hides_audit: bool,
}

/// A condition that no token can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionError {
    /// It wants every record.
    Empty,
    /// It is longer than [`CONDITION_BYTES_MAX`].
    TooLong,
    /// It is no filter; why.
    Syntax(String),
    /// It names results of recording rules.
    RuleResults,
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConditionError::Empty => f.write_str("an empty condition restricts nothing"),
            ConditionError::TooLong => {
                write!(f, "a condition has up to {CONDITION_BYTES_MAX} bytes")
            }
            ConditionError::Syntax(message) => write!(f, "the condition is no filter: {message}"),
            ConditionError::RuleResults => {
                f.write_str("a condition cannot name results of recording rules")
            }
        }
    }
}

impl std::error::Error for ConditionError {}

impl Restriction {
    /// All records but those of the audit.
    pub fn without_audit() -> Restriction {
        Restriction {
            only: Filter::All,
            hides_audit: true,
        }
    }

    /// The records that a condition wants, without those of the audit.
    ///
    /// # Errors
    /// See [`ConditionError`].
    pub fn of_condition(text: &str) -> Result<Restriction, ConditionError> {
        if text.len() > CONDITION_BYTES_MAX {
            return Err(ConditionError::TooLong);
        }
        let filter = parse(text).map_err(|error| ConditionError::Syntax(error.message))?;
        if filter == Filter::All {
            return Err(ConditionError::Empty);
        }
        if filter.names_rule_results() {
            return Err(ConditionError::RuleResults);
        }
        let only = labels_first(filter);
        Matcher::new(&only).map_err(|error| ConditionError::Syntax(error.message))?;
        Ok(Restriction {
            only,
            hides_audit: true,
        })
    }

    /// The records whose label has one of these texts exactly, without those of the audit.
    pub fn of_label<'t>(name: &str, values: impl Iterator<Item = &'t str>) -> Restriction {
        let of_value = |value: &str| {
            filter_of(&LogQuery {
                matchers: vec![LabelMatcher {
                    name: name.into(),
                    operator: MatchOperator::Equal,
                    value: value.into(),
                    span: Span::default(),
                }],
                stages: Vec::new(),
            })
        };
        Restriction {
            only: Filter::or(values.map(of_value)),
            hides_audit: true,
        }
    }

    /// The records that both allow.
    #[must_use]
    pub fn and(self, other: Restriction) -> Restriction {
        Restriction {
            only: Filter::and([self.only, other.only]),
            hides_audit: self.hides_audit || other.hides_audit,
        }
    }

    /// True if it leaves out records of others, and not only those of the audit.
    pub fn is_partial(&self) -> bool {
        self.only != Filter::All
    }

    /// The filter beside another one, which shows results of recording rules if `shows_results`.
    pub(super) fn beside(&self, shows_results: bool) -> Filter {
        let no_audit = if self.hides_audit && shows_results {
            let is_audit = FieldTest::Compare(Comparison::Equal, AUDIT_STREAM.as_bytes().into());
            Filter::negate(Filter::field(RULE_FIELD, is_audit))
        } else {
            Filter::All
        };
        Filter::and([self.only.clone(), no_audit])
    }

    /// A filter that wants what the other one wants and this allows.
    pub(super) fn of_filter(&self, filter: &Filter) -> Filter {
        Filter::and([filter.clone(), self.beside(filter.names_rule_results())])
    }
}

/// The same condition, for which a label comes before a field of the line of its name: a sender whose records are
/// labelled cannot pass for another by what it writes into lines.
fn labels_first(filter: Filter) -> Filter {
    match filter {
        Filter::And(parts) => Filter::And(parts.into_iter().map(labels_first).collect()),
        Filter::Or(parts) => Filter::Or(parts.into_iter().map(labels_first).collect()),
        Filter::Not(inner) => Filter::negate(labels_first(*inner)),
        Filter::Field(FieldFilter { name, test }) if is_plain_name(&name) => {
            Filter::field(&format!("{LABEL_PREFIX}{name}"), test)
        }
        other => other,
    }
}

/// True for a name that no other name of a field is mistaken for: letters and digits.
pub fn is_plain_name(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
    begins && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Another engine, of whose records only a part is shown.
pub struct RestrictedEngine {
    engine: Arc<dyn Engine>,
    restriction: Arc<Restriction>,
    metrics: Arc<Metrics>,
}

impl RestrictedEngine {
    /// This engine within a restriction.
    pub fn new(
        engine: Arc<dyn Engine>,
        restriction: Restriction,
        metrics: Arc<Metrics>,
    ) -> RestrictedEngine {
        RestrictedEngine {
            engine,
            restriction: Arc::new(restriction),
            metrics,
        }
    }

    fn scope(&self, scope: &Scope) -> Result<Scope, QueryError> {
        let restricted = scope.within(&self.restriction);
        restricted.map_err(|error| QueryError::Impossible(error.message))
    }

    /// Losses, without names of files and nodes of which some records may not be read.
    fn without_names(&self, lost: Vec<String>) -> Vec<String> {
        if lost.is_empty() || !self.restriction.is_partial() {
            return lost;
        }
        vec![LOST.to_owned()]
    }

    /// The trailer of an answer, without what it says of records that may not be read.
    fn shown(&self, mut trailer: Trailer) -> Trailer {
        if !self.restriction.is_partial() {
            return trailer;
        }
        self.metrics.query_bytes.add(trailer.bytes_scanned);
        (trailer.bytes_scanned, trailer.bucket_requests) = (0, 0);
        (trailer.bucket_bytes, trailer.newest) = (0, None);
        if trailer.missing_count > 0 {
            trailer.missing_count = 1;
            trailer.missing = vec![MISSING.to_owned()];
        }
        trailer.lost = self.without_names(trailer.lost);
        trailer.silent.clear();
        trailer
    }
}

/// Stands for the names of files and nodes.
const MISSING: &str =
    "some files or nodes could not be read; a token that may read all records is told which";

/// Stands for the names of files that are lost.
const LOST: &str = "some files are lost; a token that may read all records is told which";

impl Engine for RestrictedEngine {
    fn search(&self, search: &Search, out: &mut Output) -> Result<Trailer, QueryError> {
        let mut within = search.in_scope(self.scope(&search.scope)?);
        // Progress is told in bytes of all files.
        within.wants_progress &= !self.restriction.is_partial();
        let trailer = self.engine.search(&within, out)?;
        Ok(self.shown(trailer))
    }

    fn table(
        &self,
        scope: &Scope,
        empty: Box<dyn AnyTable>,
        out: &mut Output,
    ) -> Result<(Box<dyn AnyTable>, Trailer), QueryError> {
        let kind: &dyn Any = &*empty;
        // Row groups list names and types of all their records, also of those that may not be read.
        let empty = match kind.downcast_ref::<FieldTypes>() {
            Some(types) if self.restriction.is_partial() => Box::new(types.clone().exact()),
            _ => empty,
        };
        let (table, trailer) = self.engine.table(&self.scope(scope)?, empty, out)?;
        Ok((table, self.shown(trailer)))
    }

    fn lines(&self, query: &LineQuery, out: &mut Output) -> Result<LineAnswer, QueryError> {
        let mut answer = self.engine.lines(&query.within(&self.restriction), out)?;
        answer.trailer = self.shown(answer.trailer);
        Ok(answer)
    }

    fn numbers(&self, plan: &Plan, out: &mut Output) -> Result<NumberAnswer, QueryError> {
        let plan = plan.filtered(|filter| self.restriction.of_filter(filter));
        let mut answer = self.engine.numbers(&plan, out)?;
        answer.trailer = self.shown(answer.trailer);
        Ok(answer)
    }

    fn columns(
        &self,
        query: &ColumnsQuery,
        take: TakeColumns<'_>,
        out: &mut Output,
    ) -> Result<Trailer, QueryError> {
        let within = ColumnsQuery {
            scope: self.scope(&query.scope)?,
            columns: Arc::clone(&query.columns),
            order: query.order,
            limit: query.limit,
        };
        let trailer = self.engine.columns(&within, take, out)?;
        Ok(self.shown(trailer))
    }

    fn newest(&self) -> Option<Timestamp> {
        if self.restriction.is_partial() {
            return None;
        }
        self.engine.newest()
    }

    fn losses(&self) -> Vec<String> {
        self.without_names(self.engine.losses())
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::TimeRange;

    use super::*;

    fn shown(restriction: &Restriction, text: &str) -> String {
        let scope = Scope::new(text, TimeRange::ALL).unwrap();
        scope.within(restriction).unwrap().text
    }

    #[test]
    fn a_condition_is_added_to_every_filter() {
        let of_team = Restriction::of_condition("team=payments").unwrap();
        let table = [
            ("", "_logpond_label.team=payments"),
            ("error", "error _logpond_label.team=payments"),
            ("a OR b", "(a OR b) _logpond_label.team=payments"),
            (
                "record:*",
                "record:* _logpond_label.team=payments NOT _rule=logpond.audit",
            ),
        ];
        for (text, expected) in table {
            let expected = parse(expected).unwrap();
            assert_eq!(parse(&shown(&of_team, text)).unwrap(), expected, "{text}");
        }
        let all = Restriction::without_audit();
        assert!(!all.is_partial());
        assert_eq!(shown(&all, "error"), "error");
        let both = of_team.and(Restriction::of_label("tenant", ["5", "b"].into_iter()));
        let text = shown(&both, "x");
        assert!(text.contains("_logpond_label.team=payments"), "{text}");
        // A number is a text here.
        assert!(text.contains("/^5$/"), "{text}");
    }

    #[test]
    fn rows_around_a_match_are_restricted_too() {
        let of_team = Restriction::of_condition("team=payments").unwrap();
        let scope = Scope::new("x", TimeRange::ALL).unwrap();
        let scope = scope.within(&of_team).unwrap();
        let around = scope.around();
        assert_eq!(around.unwrap().filter, scope.surroundings());
        let only = of_team.beside(false);
        assert_eq!(
            scope.surroundings(),
            Filter::and([Filter::no_rule_results(), only.clone()])
        );
        let everything = Scope::all(TimeRange::ALL).within(&of_team).unwrap();
        assert_eq!(everything.surroundings(), of_team.beside(true));
    }

    #[test]
    fn bad_conditions_are_named() {
        let long = format!("team={}", "x".repeat(CONDITION_BYTES_MAX));
        let table = [
            ("", ConditionError::Empty),
            ("*", ConditionError::Empty),
            ("NOT _rule:*", ConditionError::RuleResults),
            ("record=x", ConditionError::RuleResults),
            (&long, ConditionError::TooLong),
        ];
        for (text, expected) in table {
            assert_eq!(Restriction::of_condition(text), Err(expected), "{text}");
        }
        for text in ["(", "team~/(/", "status>x"] {
            let refused = Restriction::of_condition(text);
            assert!(matches!(refused, Err(ConditionError::Syntax(_))), "{text}");
        }
    }
}
