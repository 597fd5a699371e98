//! What a query requires of records, as the filter that indexes, columns and statistics understand.
//!
//! Invariants:
//! - No record is left out that the query wants; the pipeline decides on the others.
//! - Of matchers alone ([`filter_of_matchers`]) the filter is exact.

use super::ast::{
    LabelMatcher, LineChoice, LineFilter, LineOperator, LogQuery, MatchOperator, StageKind,
};
use crate::label::{
    DETECTED_LEVEL, LABEL_PREFIX, LEVEL_LABELS, LEVELS, SERVICE_LABELS, SERVICE_NAME,
    UNKNOWN_LEVEL, UNKNOWN_SERVICE,
};
use crate::pattern::{Finder, check_expression};
use crate::pipeline;
use crate::query::{Comparison, FieldTest, Filter, Pattern};

/// The most line filters that become part of the filter; its language bounds the expressions of one.
const LINE_FILTERS_MAX: usize = 16;

/// Which records a query for lines may want.
pub fn filter_of(log: &LogQuery) -> Filter {
    let matchers = filter_of_matchers(&log.matchers);
    // Behind a stage that changes the line, a filter looks at another one.
    let is_of_line = |kind: &StageKind| {
        !matches!(
            kind,
            StageKind::LineFormat(_) | StageKind::Decolorize | StageKind::Unpack
        )
    };
    let stages = log.stages.iter().map(|stage| &stage.kind);
    let lines = stages
        .take_while(|kind| is_of_line(kind))
        .filter_map(|kind| match kind {
            StageKind::LineFilter(filter) => line_filter(filter),
            _ => None,
        });
    Filter::and([matchers].into_iter().chain(lines.take(LINE_FILTERS_MAX)))
}

/// The labels that a query's matchers name, each once.
pub fn names_of(matchers: &[LabelMatcher]) -> Vec<Box<str>> {
    let mut names: Vec<Box<str>> = matchers
        .iter()
        .map(|matcher| matcher.name.clone())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The records of the streams that matchers want.
pub fn filter_of_matchers(matchers: &[LabelMatcher]) -> Filter {
    Filter::and(matchers.iter().map(matcher))
}

fn matcher(matcher: &LabelMatcher) -> Filter {
    let is_wanted = |value: &str| matcher.accepts(value);
    match &*matcher.name {
        SERVICE_NAME => service(matcher, &is_wanted),
        DETECTED_LEVEL => level(&is_wanted),
        name => plain(name, matcher, is_wanted("")),
    }
}

/// A condition on a label that is a field; `takes_empty` says whether a record without it is wanted.
fn plain(name: &str, matcher: &LabelMatcher, takes_empty: bool) -> Filter {
    let positive = match matcher.operator {
        MatchOperator::Equal | MatchOperator::NotEqual if matcher.value.is_empty() => {
            return match takes_empty {
                true => Filter::negate(is_there(name)),
                false => is_there(name),
            };
        }
        MatchOperator::Equal | MatchOperator::NotEqual => equal(name, &matcher.value),
        MatchOperator::Regex | MatchOperator::NotRegex => {
            on_label(name, Pattern::regex(&anchored(&matcher.value), false))
        }
    };
    let is_negated = matches!(
        matcher.operator,
        MatchOperator::NotEqual | MatchOperator::NotRegex
    );
    match (is_negated, takes_empty) {
        (false, false) => positive,
        (false, true) => Filter::or([positive, Filter::negate(is_there(name))]),
        (true, true) => Filter::negate(positive),
        (true, false) => Filter::and([is_there(name), Filter::negate(positive)]),
    }
}

/// Records whose label has a text.
fn is_there(name: &str) -> Filter {
    let name = format!("{LABEL_PREFIX}{name}");
    let is_empty = FieldTest::Compare(Comparison::Equal, Box::default());
    let exists = Filter::field(&name, FieldTest::Exists);
    Filter::and([exists, Filter::negate(Filter::field(&name, is_empty))])
}

fn on_label(name: &str, pattern: Pattern) -> Filter {
    Filter::field(
        &format!("{LABEL_PREFIX}{name}"),
        FieldTest::Contains(pattern),
    )
}

/// A label with exactly this text. Texts that are numbers are compared as texts, too: `5.0` is not
/// `5`.
fn equal(name: &str, text: &str) -> Filter {
    match crate::number::Number::parse(text.as_bytes()) {
        None => Filter::field(
            &format!("{LABEL_PREFIX}{name}"),
            FieldTest::Compare(Comparison::Equal, text.as_bytes().into()),
        ),
        Some(_) => {
            let source = format!("^{}$", regex_syntax::escape(text));
            on_label(name, Pattern::regex(&source, false))
        }
    }
}

/// The expression that matches where this one matches all of a label.
pub(crate) fn anchored(expression: &str) -> String {
    format!("^(?s:{expression})$")
}

impl LabelMatcher {
    /// Whether the matcher wants a label with this text; of one that is not there, the empty one.
    pub fn accepts(&self, text: &str) -> bool {
        let finds = || {
            let pattern = Pattern::regex(&anchored(&self.value), false);
            // The parser has seen that the expression compiles.
            Finder::new(&pattern).is_ok_and(|finder| finder.is_match(text.as_bytes()))
        };
        match self.operator {
            MatchOperator::Equal => *self.value == *text,
            MatchOperator::NotEqual => *self.value != *text,
            MatchOperator::Regex => finds(),
            MatchOperator::NotRegex => !finds(),
        }
    }
}

/// Everything or nothing.
fn constant(is_wanted: bool) -> Filter {
    match is_wanted {
        true => Filter::All,
        false => Filter::negate(Filter::All),
    }
}

/// The service is the first of some labels that is there.
fn service(matcher: &LabelMatcher, is_wanted: &dyn Fn(&str) -> bool) -> Filter {
    if matcher.value.is_empty() && matcher.operator != MatchOperator::Regex {
        // Each record has one.
        return constant(is_wanted(UNKNOWN_SERVICE));
    }
    let names = [SERVICE_NAME].into_iter().chain(SERVICE_LABELS);
    names
        .rev()
        .fold(constant(is_wanted(UNKNOWN_SERVICE)), |rest, name| {
            let is_it = plain(name, matcher, false);
            let is_it = match (matcher.operator, is_wanted("")) {
                (MatchOperator::Regex, true) => Filter::and([is_there(name), is_it]),
                _ => is_it,
            };
            let rest = match rest {
                Filter::All => Filter::negate(is_there(name)),
                // There is no further one that could be wanted.
                rest if rest == constant(false) => return is_it,
                rest => Filter::and([Filter::negate(is_there(name)), rest]),
            };
            Filter::or([is_it, rest])
        })
}

/// The level is what the first of some labels says that is there.
fn level(is_wanted: &dyn Fn(&str) -> bool) -> Filter {
    let words_of = |wanted: bool| {
        let levels = LEVELS
            .iter()
            .filter(move |(level, _)| is_wanted(level) == wanted);
        levels.flat_map(|(_, words)| words.iter().copied())
    };
    // Words that are not known are as wanted as no word is.
    let wants_unknown = is_wanted(UNKNOWN_LEVEL);
    let words: Vec<&str> = words_of(!wants_unknown).collect();
    if words.is_empty() {
        return constant(wants_unknown);
    }
    let source = format!(r"^\s*(?i:{})\s*$", words.join("|"));
    let names = [DETECTED_LEVEL].into_iter().chain(LEVEL_LABELS);
    let says = names.rev().fold(constant(false), |rest, name| {
        let says = on_label(name, Pattern::regex(&source, false));
        match rest == constant(false) {
            true => says,
            false => Filter::or([says, Filter::and([Filter::negate(is_there(name)), rest])]),
        }
    });
    match wants_unknown {
        true => Filter::negate(says),
        false => says,
    }
}

/// What a line filter requires. The filter's text conditions look at decoded messages, too; so what a
/// line must not hold is not said here.
fn line_filter(filter: &LineFilter) -> Option<Filter> {
    if filter.operator.is_negated() {
        return None;
    }
    let choices: Option<Vec<Filter>> = filter
        .choices
        .iter()
        .map(|choice| match (filter.operator, choice) {
            (LineOperator::Contains, LineChoice::Text(text)) => {
                Some(Filter::substring(text.as_bytes(), false))
            }
            (LineOperator::Matches, LineChoice::Text(source)) => {
                let source = format!("(?s:{source})");
                check_expression(&source).ok()?;
                Some(Filter::regex(&source, false))
            }
            (LineOperator::Like, LineChoice::Text(pattern)) => {
                let literals = pipeline::like::literals(pattern);
                let texts = literals.iter().map(|text| Filter::substring(text, false));
                Some(Filter::and(texts))
            }
            _ => None,
        })
        .collect();
    Some(Filter::or(choices?)).filter(|filter| *filter != Filter::All)
}
