//! What a query requires of records, as the filter that indexes, columns and statistics understand.
//!
//! Invariants:
//! - No record is left out that the query wants; the pipeline decides on the others.
//! - What a parser finds in a line is, as a rule, a field of its record, as lines are parsed when they come
//!   in; where the record has no such field, the parser itself must look.
//! - Of matchers alone ([`filter_of_matchers`]) the filter is exact.

use super::ast::{
    LabelFilter, LabelMatcher, LineChoice, LineFilter, LineOperator, LogQuery, MatchOperator,
    Quantity, Stage, StageKind,
};
use super::expressions::{Place, in_line, whole_label};
use crate::label::{ComputedLabel, LABEL_PREFIX};
use crate::logql;
use crate::pattern::Finder;
use crate::pipeline;
use crate::query::{Comparison, FieldTest, Filter, Pattern};

/// The most line filters that become part of the filter; its language bounds the expressions of one.
const LINE_FILTERS_MAX: usize = 16;

/// The most conditions on labels that become part of the filter.
const LABEL_FILTERS_MAX: usize = 16;

/// What is left of a query's stages once the filter has done its part.
#[derive(Clone, Debug)]
pub struct Pushdown {
    /// Which records the query may want.
    pub filter: Filter,
    /// The stages that decide among these; stages that the filter does exactly are not there.
    pub rest: Vec<Stage>,
}

/// Which records a query for lines may want.
pub fn filter_of(log: &LogQuery) -> Filter {
    pushdown(log).filter
}

/// Parts a query into a filter and the stages that are left.
pub fn pushdown(log: &LogQuery) -> Pushdown {
    let mut parts = vec![filter_of_matchers(&log.matchers)];
    let (mut lines, mut labels) = (LINE_FILTERS_MAX, LABEL_FILTERS_MAX);
    let mut rest: Vec<Stage> = Vec::new();
    let (mut is_of_line, mut seen) = (true, LabelOrigin::Record);
    for stage in &log.stages {
        is_of_line &= !changes_line(&stage.kind);
        seen = seen.behind(&stage.kind);
        let pushed = match &stage.kind {
            StageKind::LineFilter(filter) if is_of_line && lines > 0 => {
                lines -= 1;
                line_filter(filter)
            }
            StageKind::LabelFilter(filter) if labels > 0 => {
                labels -= 1;
                match seen {
                    LabelOrigin::Record => label_filter(filter),
                    LabelOrigin::Parsed => parsed_filter(filter).map(|filter| StageFilter {
                        filter,
                        is_exact: false,
                    }),
                    LabelOrigin::Other => None,
                }
            }
            _ => None,
        };
        let is_done = pushed.as_ref().is_some_and(|pushed| pushed.is_exact);
        parts.extend(pushed.map(|pushed| pushed.filter));
        if !is_done {
            rest.push(stage.clone());
        }
    }
    let filter = Filter::and(parts);
    Pushdown { filter, rest }
}

/// Whether a line filter behind the stage looks at another line.
fn changes_line(kind: &StageKind) -> bool {
    matches!(
        kind,
        StageKind::LineFormat(_) | StageKind::Decolorize | StageKind::Unpack
    )
}

/// The kind of labels that a condition reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LabelOrigin {
    /// Those of the record.
    Record,
    /// What a parser found in the line, too.
    Parsed,
    /// What other stages made of them.
    Other,
}

impl LabelOrigin {
    fn behind(self, kind: &StageKind) -> LabelOrigin {
        match kind {
            StageKind::LineFilter(_) | StageKind::LabelFilter(_) => self,
            StageKind::Json(paths) if paths.is_empty() && self != LabelOrigin::Other => {
                LabelOrigin::Parsed
            }
            StageKind::Logfmt(logfmt)
                if logfmt.extractions.is_empty() && self != LabelOrigin::Other =>
            {
                LabelOrigin::Parsed
            }
            _ => LabelOrigin::Other,
        }
    }
}

/// The condition of a stage on records.
struct StageFilter {
    filter: Filter,
    /// Whether it is all that the stage does.
    is_exact: bool,
}

/// The records of the streams that matchers want.
pub fn filter_of_matchers(matchers: &[LabelMatcher]) -> Filter {
    let matchers = matchers.iter();
    Filter::and(matchers.map(|one| matcher(one, Place::Selector)))
}

fn matcher(matcher: &LabelMatcher, place: Place) -> Filter {
    let name = &*matcher.name;
    match ComputedLabel::named(name) {
        Some(_) => computed(name, matcher, place),
        None => plain(name, matcher, place, matcher.accepts("")),
    }
}

/// A condition on a label that each record has, with a text.
fn computed(name: &str, matcher: &LabelMatcher, place: Place) -> Filter {
    let is_it = match matcher.operator {
        MatchOperator::Equal | MatchOperator::NotEqual if matcher.value.is_empty() => {
            constant(false)
        }
        MatchOperator::Equal | MatchOperator::NotEqual => equal(name, &matcher.value),
        MatchOperator::Regex | MatchOperator::NotRegex => match &*matcher.value {
            ".+" | ".*" => constant(true),
            _ => on_label(name, parsed(matcher, place)),
        },
    };
    match matcher.operator {
        MatchOperator::Equal | MatchOperator::Regex => is_it,
        MatchOperator::NotEqual | MatchOperator::NotRegex => Filter::negate(is_it),
    }
}

/// A condition on a label that is a field; `takes_empty` says whether a record without it is wanted.
fn plain(name: &str, matcher: &LabelMatcher, place: Place, takes_empty: bool) -> Filter {
    let positive = match matcher.operator {
        MatchOperator::Equal | MatchOperator::NotEqual if matcher.value.is_empty() => {
            return if takes_empty {
                Filter::negate(is_there(name))
            } else {
                is_there(name)
            };
        }
        MatchOperator::Equal | MatchOperator::NotEqual => equal(name, &matcher.value),
        MatchOperator::Regex | MatchOperator::NotRegex => on_label(name, parsed(matcher, place)),
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

/// What the expression of a matcher stands for.
fn parsed(matcher: &LabelMatcher, place: Place) -> Pattern {
    // The parser has refused matchers whose expression is none.
    let unread = |_| Pattern::regex(&matcher.value, false);
    whole_label(&matcher.value, place).unwrap_or_else(unread)
}

impl LabelMatcher {
    /// Whether the matcher wants a label with this text; of one that is not there, the empty one.
    pub fn accepts(&self, text: &str) -> bool {
        let finds = || {
            // The parser has seen that the expression compiles.
            let finder = Finder::new(&parsed(self, Place::Selector));
            finder.is_ok_and(|finder| finder.is_match(text.as_bytes()))
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
    if is_wanted {
        Filter::All
    } else {
        Filter::negate(Filter::All)
    }
}

/// What a line filter requires.
fn line_filter(filter: &LineFilter) -> Option<StageFilter> {
    let is_negated = filter.operator.is_negated();
    let mut is_exact = true;
    let choice = |choice: &LineChoice| match (filter.operator, choice) {
        (LineOperator::Contains | LineOperator::NotContains, LineChoice::Text(text)) => {
            Some(on_line(Pattern::substring(text.as_bytes(), false)))
        }
        (LineOperator::Matches | LineOperator::NotMatches, LineChoice::Text(source)) => {
            let pattern = in_line(source).ok()?;
            Finder::new(&pattern).ok()?;
            Some(on_line(pattern))
        }
        (LineOperator::Like, LineChoice::Text(pattern)) => {
            is_exact = false;
            let literals = pipeline::like::literals(pattern);
            let texts = literals.iter().map(|text| Pattern::substring(text, false));
            Some(Filter::and(texts.map(on_line)))
        }
        _ => None,
    };
    let choices: Option<Vec<Filter>> = filter.choices.iter().map(choice).collect();
    let any = Filter::or(choices?);
    let filter = if is_negated { Filter::negate(any) } else { any };
    (filter != Filter::All).then_some(StageFilter { filter, is_exact })
}

/// Lines that hold this. Text that is looked for otherwise is found in decoded messages, too.
fn on_line(pattern: Pattern) -> Filter {
    let is_everywhere = matches!(&pattern, Pattern::Substring { text, .. } if text.is_empty());
    if is_everywhere {
        Filter::All
    } else {
        Filter::field("_raw", FieldTest::Contains(pattern))
    }
}

/// What a condition on labels requires of records whose labels no stage has changed.
fn label_filter(filter: &LabelFilter) -> Option<StageFilter> {
    match filter {
        LabelFilter::And(left, right) => {
            let (left, right) = (label_filter(left), label_filter(right));
            let is_exact = [&left, &right]
                .iter()
                .all(|part| part.as_ref().is_some_and(|part| part.is_exact));
            let parts: Vec<Filter> = left.into_iter().chain(right).map(|p| p.filter).collect();
            let filter = (!parts.is_empty()).then(|| Filter::and(parts))?;
            Some(StageFilter { filter, is_exact })
        }
        LabelFilter::Or(left, right) => {
            let (left, right) = (label_filter(left)?, label_filter(right)?);
            Some(StageFilter {
                is_exact: left.is_exact && right.is_exact,
                filter: Filter::or([left.filter, right.filter]),
            })
        }
        LabelFilter::Text(matched) if !is_of_errors(&matched.name) => Some(StageFilter {
            filter: matcher(matched, Place::LabelFilter),
            is_exact: true,
        }),
        LabelFilter::Quantity {
            name,
            comparison,
            quantity,
        } if !is_computed(name) => Some(StageFilter {
            filter: quantity_filter(name, *comparison, quantity),
            is_exact: false,
        }),
        LabelFilter::Text(_) | LabelFilter::Quantity { .. } | LabelFilter::Ip { .. } => None,
    }
}

/// What a condition behind a parser requires of records: those with a field that the condition wants, and
/// those without the field, whose line must be looked at. `None` if labels that are not there are wanted.
fn parsed_filter(filter: &LabelFilter) -> Option<Filter> {
    let (name, wanted) = match filter {
        LabelFilter::And(left, right) => {
            let parts = [parsed_filter(left), parsed_filter(right)];
            let parts: Vec<Filter> = parts.into_iter().flatten().collect();
            return (!parts.is_empty()).then(|| Filter::and(parts));
        }
        LabelFilter::Or(left, right) => {
            return Some(Filter::or([parsed_filter(left)?, parsed_filter(right)?]));
        }
        LabelFilter::Text(matcher)
            if matcher.operator == MatchOperator::Equal
                && !matcher.value.is_empty()
                && !matcher.value.contains(char::REPLACEMENT_CHARACTER) =>
        {
            // Numbers are compared as such: a line may write one in many ways.
            let test = FieldTest::Compare(Comparison::Equal, matcher.value.as_bytes().into());
            let name = &matcher.name;
            (name, Filter::field(&format!("{LABEL_PREFIX}{name}"), test))
        }
        LabelFilter::Quantity {
            name,
            comparison,
            quantity: quantity @ Quantity::Number(_),
        } => (name, quantity_filter(name, *comparison, quantity)),
        LabelFilter::Text(_) | LabelFilter::Quantity { .. } | LabelFilter::Ip { .. } => {
            return None;
        }
    };
    // A parser puts a suffix behind a name that the stream has, too.
    let is_field = !is_computed(name) && !name.ends_with("_extracted");
    is_field.then(|| Filter::or([wanted, Filter::negate(is_there(name))]))
}

/// Whether a label says what a stage could not do.
pub(super) fn is_of_errors(name: &str) -> bool {
    [pipeline::ERROR, pipeline::ERROR_DETAILS].contains(&name)
}

/// Whether no field is the label.
fn is_computed(name: &str) -> bool {
    is_of_errors(name) || ComputedLabel::named(name).is_some()
}

/// Records whose label is a number like this, or no number: of these the condition itself says that
/// it cannot tell.
fn quantity_filter(name: &str, comparison: logql::Comparison, quantity: &Quantity) -> Filter {
    use logql::Comparison as Asked;
    let Quantity::Number(number) = quantity else {
        return is_there(name);
    };
    let text = number.to_string();
    let compare = |comparison: Comparison| {
        let test = FieldTest::Compare(comparison, text.as_bytes().into());
        Filter::field(&format!("{LABEL_PREFIX}{name}"), test)
    };
    let unwanted = match comparison {
        Asked::Equal => Filter::or([compare(Comparison::Less), compare(Comparison::Greater)]),
        Asked::NotEqual => {
            let both = [Comparison::LessOrEqual, Comparison::GreaterOrEqual];
            Filter::and(both.map(compare))
        }
        Asked::Greater => compare(Comparison::LessOrEqual),
        Asked::GreaterOrEqual => compare(Comparison::Less),
        Asked::Less => compare(Comparison::GreaterOrEqual),
        Asked::LessOrEqual => compare(Comparison::Greater),
    };
    Filter::and([is_there(name), Filter::negate(unwanted)])
}
