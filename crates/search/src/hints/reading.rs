//! Texts that look like queries: of this language, of LogQL, of SQL, or with wildcards.

use super::arguments::{escaped, shell_word};
use super::tokens::{Kind, tokens};
use super::translate::{has_stray_joint, translated};
use crate::label::ComputedLabel;
use crate::logql::{
    self, LabelFilter, LabelMatcher, LineChoice, LineFilter, LineOperator, LogQuery, MatchOperator,
    Quantity, Query, Stage, StageKind,
};
use crate::pattern::Finder;
use crate::query::{self, Comparison, FieldTest, Filter, Pattern};

/// The query language that a text resembles.
pub(super) struct Interpretation {
    /// With an article, for a sentence.
    pub(super) looks_like: String,
    /// What it means; `None` if the query language cannot say it.
    pub(super) meant: Option<Filter>,
    /// A command that asks it as it is, where it is of another language.
    pub(super) command: Option<String>,
}

/// What a text looks like, if it is not just text. `folded` says that it was searched for in any case.
pub(super) fn reading(text: &str, folded: bool) -> Option<Interpretation> {
    let fold = |filter| if folded { in_any_case(filter) } else { filter };
    let found = logql_of(text)
        .or_else(|| sql_of(text))
        .or_else(|| grep_of(text))
        .or_else(|| slashes(text))
        .or_else(|| commas(text))
        .or_else(|| language(text))
        .or_else(|| expression(text))
        .or_else(|| wildcards(text))
        .or_else(|| enclosed(text))
        .or_else(|| unclosed(text))
        .or_else(|| excluded(text))?;
    Some(Interpretation {
        meant: found.meant.map(fold),
        ..found
    })
}

/// The reading of a whole question, quotes and conditions included, if it is of another language.
pub(super) fn question(written: &str) -> Option<Interpretation> {
    logql_of(written)
        .or_else(|| sql_of(written))
        .or_else(|| grep_of(written))
        .or_else(|| commas(written))
        .or_else(|| language(written))
}

/// The same with texts in upper or lower case alike.
pub(super) fn in_any_case(filter: Filter) -> Filter {
    let folded = |parts: Vec<Filter>| parts.into_iter().map(in_any_case).collect::<Vec<_>>();
    match filter {
        Filter::And(parts) => Filter::And(folded(parts)),
        Filter::Or(parts) => Filter::Or(folded(parts)),
        Filter::Not(inner) => Filter::negate(in_any_case(*inner)),
        Filter::Text(Pattern::Substring { text, .. }) => {
            Filter::Text(Pattern::substring(&text, true))
        }
        Filter::Text(Pattern::Regex { source, .. }) => Filter::Text(Pattern::regex(&source, true)),
        other => other,
    }
}

fn logql_of(text: &str) -> Option<Interpretation> {
    // Braces in a text without a matcher, such as JSON, are no selector.
    let has_selector = text.contains('{') && text.contains('}');
    let query = logql::parse(text).ok().filter(|_| has_selector)?;
    let (is_bare, meant) = match &query {
        Query::Log(log) => (
            log.matchers.is_empty() && log.stages.is_empty(),
            filter_of(log),
        ),
        Query::Metric(_) => (false, None),
    };
    (!is_bare).then(|| Interpretation {
        looks_like: "LogQL".to_owned(),
        meant,
        command: Some(format!("logpond saved run {}", shell_word(text))),
    })
}

/// A query for lines in our language; `None` if that cannot say all of it.
fn filter_of(log: &LogQuery) -> Option<Filter> {
    let mut parts: Vec<Filter> = log.matchers.iter().map(matcher).collect();
    for stage in &log.stages {
        parts.push(stage_filter(stage)?);
    }
    let filter = Filter::and(parts);
    (filter != Filter::All).then_some(filter)
}

fn matcher(one: &LabelMatcher) -> Filter {
    if ComputedLabel::named(&one.name).is_some() {
        return logql::filter_of_matchers(std::slice::from_ref(one));
    }
    let equal = FieldTest::Compare(Comparison::Equal, one.value.as_bytes().into());
    let whole = format!("^(?:{})$", one.value);
    let matches = FieldTest::Contains(Pattern::regex(&whole, false));
    match one.operator {
        MatchOperator::Equal => Filter::field(&one.name, equal),
        MatchOperator::NotEqual => Filter::negate(Filter::field(&one.name, equal)),
        MatchOperator::Regex => Filter::field(&one.name, matches),
        MatchOperator::NotRegex => Filter::negate(Filter::field(&one.name, matches)),
    }
}

fn stage_filter(stage: &Stage) -> Option<Filter> {
    match &stage.kind {
        StageKind::LineFilter(filter) => line_filter(filter),
        // What stands in lines is fields here without being asked for.
        StageKind::Json(paths) if paths.is_empty() => Some(Filter::All),
        StageKind::Logfmt(logfmt) if logfmt.extractions.is_empty() => Some(Filter::All),
        StageKind::LabelFilter(filter) => label_filter(filter),
        _ => None,
    }
}

fn label_filter(filter: &LabelFilter) -> Option<Filter> {
    match filter {
        LabelFilter::And(left, right) => {
            Some(Filter::and([label_filter(left)?, label_filter(right)?]))
        }
        LabelFilter::Or(left, right) => {
            Some(Filter::or([label_filter(left)?, label_filter(right)?]))
        }
        LabelFilter::Text(one) => match matcher(one) {
            Filter::Field(field) => Some(query::by_severity(field)),
            Filter::Not(inner) => match *inner {
                Filter::Field(field) => Some(Filter::negate(query::by_severity(field))),
                other => Some(Filter::negate(other)),
            },
            other => Some(other),
        },
        LabelFilter::Quantity {
            name,
            comparison,
            quantity: Quantity::Number(number),
        } => {
            let operator = match comparison {
                logql::Comparison::Equal => "=",
                other => other.as_str(),
            };
            query::parse_condition(&format!("{name}{operator}{number}")).ok()
        }
        // There are no durations and amounts of bytes in this language.
        LabelFilter::Quantity { .. } | LabelFilter::Ip { .. } => None,
    }
}

fn line_filter(filter: &LineFilter) -> Option<Filter> {
    let choices = filter.choices.iter().map(|choice| {
        let LineChoice::Text(text) = choice else {
            return None;
        };
        match filter.operator {
            LineOperator::Contains | LineOperator::NotContains => {
                Some(Filter::substring(text.as_bytes(), false))
            }
            LineOperator::Matches | LineOperator::NotMatches => Some(Filter::regex(text, false)),
            LineOperator::Like | LineOperator::NotLike => None,
        }
    });
    let any = Filter::or(choices.collect::<Option<Vec<_>>>()?);
    Some(if filter.operator.is_negated() {
        Filter::negate(any)
    } else {
        any
    })
}

fn sql_of(text: &str) -> Option<Interpretation> {
    let lower = text.to_ascii_lowercase();
    let is_sql = lower.starts_with("select ") && lower.contains(" from ");
    is_sql.then(|| Interpretation {
        looks_like: "SQL".to_owned(),
        meant: None,
        command: Some(format!("logpond sql {}", shell_word(text))),
    })
}

/// Programs that search for lines.
const GREPS: [&str; 5] = ["grep", "egrep", "fgrep", "zgrep", "rg"];

/// The meaning of options of such a program.
#[derive(Default)]
struct GrepOptions {
    is_folded: bool,
    is_inverted: bool,
    is_literal: bool,
}

impl GrepOptions {
    /// Takes an option; gives false if it is none that changes a question in a known way.
    fn take(&mut self, option: &str) -> bool {
        match option {
            "--ignore-case" => self.is_folded = true,
            "--invert-match" => self.is_inverted = true,
            "--fixed-strings" => self.is_literal = true,
            _ => {
                let letters = option.strip_prefix('-').unwrap_or_default();
                if letters.is_empty() || !letters.bytes().all(|b| b"ivFEPnerHhoa".contains(&b)) {
                    return false;
                }
                self.is_folded |= letters.contains('i');
                self.is_inverted |= letters.contains('v');
                self.is_literal |= letters.contains('F');
            }
        }
        true
    }
}

/// `grep -i timeout app.log`; also its options without its name, at the beginning or the end of a text.
fn grep_of(text: &str) -> Option<Interpretation> {
    let parts = tokens(text);
    let written = |at: usize| parts.get(at).map(|token| &text[token.span.clone()]);
    let mut options = GrepOptions::default();
    let is_named = written(0).is_some_and(|program| GREPS.contains(&program));
    let pattern = if is_named {
        options.is_literal = written(0) == Some("fgrep");
        let mut at = 1;
        while written(at)?.starts_with('-') {
            if !options.take(written(at)?) {
                return None;
            }
            at += 1;
        }
        // Files come behind the pattern.
        match &parts[at].kind {
            Kind::Quoted(inner) => inner.clone(),
            _ => written(at)?.to_owned(),
        }
    } else {
        let is_option = |word: &str| matches!(word, "-i" | "-v" | "-iv" | "-vi");
        let (first, last) = (text.split_once(' ')?, text.rsplit_once(' ')?);
        let (option, rest) = match (is_option(first.0), is_option(last.1)) {
            (true, _) => first,
            (false, true) => (last.1, last.0),
            (false, false) => return None,
        };
        options.take(option);
        options.is_literal = true;
        rest.trim().to_owned()
    };
    let is_plain = options.is_literal || super::arguments::escaped(&pattern) == pattern;
    let pattern = if is_plain {
        Pattern::substring(pattern.as_bytes(), options.is_folded)
    } else {
        Pattern::regex(&pattern, options.is_folded)
    };
    Finder::new(&pattern).ok()?;
    let found = Filter::Text(pattern);
    let meant = if options.is_inverted {
        Filter::negate(found)
    } else {
        found
    };
    Some(Interpretation {
        looks_like: "a command of grep".to_owned(),
        meant: Some(meant),
        command: None,
    })
}

/// `/expression/`.
fn slashes(text: &str) -> Option<Interpretation> {
    let filter = query::parse(text).ok().filter(|_| text.starts_with('/'))?;
    let is_expression = matches!(filter, Filter::Text(Pattern::Regex { .. }));
    is_expression.then(|| Interpretation {
        looks_like: "a regular expression".to_owned(),
        meant: Some(filter),
        command: None,
    })
}

/// `app=web-1,level=error`: conditions with commas between them.
fn commas(text: &str) -> Option<Interpretation> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() < 2 || parts.len() > CONDITIONS_MAX {
        return None;
    }
    let condition = |part: &&str| {
        let is_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        let name = part.find(['=', '<', '>', '!', '~']).map(|at| &part[..at])?;
        let is_whole = !part.contains(char::is_whitespace) || part.ends_with('"');
        let is_named = !name.is_empty() && name.chars().all(is_name);
        structured(part).filter(|filter| is_named && is_whole && filter.is_condition())
    };
    let conditions: Option<Vec<Filter>> = parts.iter().map(condition).collect();
    Some(Interpretation {
        looks_like: "conditions with commas between them".to_owned(),
        meant: Some(Filter::and(conditions?)),
        command: None,
    })
}

/// Conditions on fields, and words joined by AND, OR and NOT, also as other languages write them.
fn language(text: &str) -> Option<Interpretation> {
    // First with signs of other languages: this one takes `or` for a text between others.
    let filter = translated(text).and_then(|text| structured(&text));
    let filter = filter.or_else(|| structured(text))?;
    if has_stray_joint(&filter) {
        return None;
    }
    let looks_like = match &filter {
        one if one.is_condition() => "a condition on a field",
        Filter::Not(_) => "a negation",
        Filter::Text(_) => return None,
        _ if has_field(&filter) => "conditions of the query language",
        _ => "words joined by AND, OR or NOT",
    };
    Some(Interpretation {
        looks_like: looks_like.to_owned(),
        meant: Some(filter),
        command: None,
    })
}

/// Whether there is a condition on a field.
pub(super) fn has_field(filter: &Filter) -> bool {
    match filter {
        Filter::And(parts) | Filter::Or(parts) => parts.iter().any(has_field),
        Filter::Not(inner) => has_field(inner),
        Filter::Field(_) => true,
        Filter::All | Filter::Text(_) => false,
    }
}

/// The most conditions between commas that are read.
const CONDITIONS_MAX: usize = 16;

/// The text as a query, if it is more than one text.
fn structured(text: &str) -> Option<Filter> {
    let filter = query::parse(text).ok()?;
    (!matches!(
        filter,
        Filter::All | Filter::Text(Pattern::Substring { .. })
    ))
    .then_some(filter)
}

/// Signs that hardly stand in texts but in regular expressions.
const OF_EXPRESSIONS: [&str; 10] = [".*", ".+", "\\.", "]+", "]*", "]{", ")?", ")+", "(?", "[^"];

/// The same, where no letter follows: else it is a path of Windows.
const ESCAPES: [&str; 4] = ["\\d", "\\w", "\\s", "\\b"];

/// A regular expression without slashes.
fn expression(text: &str) -> Option<Interpretation> {
    let is_path = text.contains(":\\");
    let has_escape = ESCAPES.iter().any(|escape| {
        let mut behind = text.match_indices(escape).map(|(at, _)| &text[at + 2..]);
        text.starts_with("\\b") || behind.any(|rest| !rest.starts_with(char::is_alphanumeric))
    });
    let has_sign = has_escape || OF_EXPRESSIONS.iter().any(|sign| text.contains(sign));
    let has_choice = text.split('|').count() > 1
        && text.split('|').all(|choice| {
            choice.starts_with(|c: char| c.is_alphanumeric() || c == '(')
                && choice.ends_with(|c: char| c.is_alphanumeric() || c == ')')
        });
    let is_anchored = text.len() > 1 && (text.starts_with('^') || text.ends_with('$'));
    if is_path || !(has_sign || has_choice || is_anchored) {
        return None;
    }
    let pattern = Pattern::regex(text, false);
    Finder::new(&pattern).is_ok().then(|| Interpretation {
        looks_like: "a regular expression".to_owned(),
        meant: Some(Filter::Text(pattern)),
        command: None,
    })
}

/// `pay*failed`: stars, and question marks within words, stand for any text.
fn wildcards(text: &str) -> Option<Interpretation> {
    let characters: Vec<char> = text.chars().collect();
    let is_wild = |at: usize| match characters[at] {
        '*' => true,
        // At the end of a word it ends a question, in an address the path.
        '?' if !text.contains('/') => {
            let beside = |at: Option<usize>| {
                let beside = at.and_then(|at| characters.get(at));
                beside.is_some_and(|c| c.is_alphanumeric())
            };
            beside(at.checked_sub(1)) && beside(Some(at + 1))
        }
        _ => false,
    };
    let wild: Vec<usize> = (0..characters.len()).filter(|at| is_wild(*at)).collect();
    if wild.is_empty() || wild.len() == characters.len() {
        return None;
    }
    let is_edge = |at: usize| at == 0 || at + 1 == characters.len();
    let mut source = String::new();
    for (at, c) in characters.iter().enumerate() {
        match (wild.contains(&at), c) {
            (true, '*') if is_edge(at) => {}
            (true, '*') => source.push_str(".*"),
            (true, _) => source.push('.'),
            _ => source.push_str(&escaped(c.encode_utf8(&mut [0; 4]))),
        }
    }
    let inner = text.trim_matches('*');
    let meant = if wild.iter().all(|at| is_edge(*at)) {
        Filter::substring(inner.as_bytes(), false)
    } else {
        Filter::regex(&source, false)
    };
    Some(Interpretation {
        looks_like: "a pattern with wildcards".to_owned(),
        meant: Some(meant),
        command: None,
    })
}

/// Marks that stand around a text in other languages: quotes, and those of `LIKE`.
const ENCLOSING: [(char, &str); 3] = [
    ('"', "a text in quotes, which are part of it here"),
    ('\'', "a text in quotes, which are part of it here"),
    ('%', "a pattern of LIKE"),
];

/// `"connection refused"`, `%failed%`
fn enclosed(text: &str) -> Option<Interpretation> {
    let around = |mark: char| Some(text.strip_prefix(mark)?.strip_suffix(mark)?.trim());
    let (inner, looks_like) = ENCLOSING
        .iter()
        .find_map(|(mark, looks_like)| Some((around(*mark)?, *looks_like)))?;
    let is_one = !inner.is_empty() && !ENCLOSING.iter().any(|(mark, _)| inner.contains(*mark));
    is_one.then(|| Interpretation {
        looks_like: looks_like.to_owned(),
        meant: Some(Filter::substring(inner.as_bytes(), false)),
        command: None,
    })
}

/// The most parentheses that are closed for a question.
const UNCLOSED_MAX: usize = 4;

/// `(timeout OR refused`, `"connection refused`
fn unclosed(text: &str) -> Option<Interpretation> {
    if let Some(inner) = text.strip_prefix('"').filter(|inner| !inner.contains('"')) {
        let inner = inner.trim();
        return (!inner.is_empty()).then(|| Interpretation {
            looks_like: "a text in quotes that are not closed".to_owned(),
            meant: Some(Filter::substring(inner.as_bytes(), false)),
            command: None,
        });
    }
    let count = |sign: char| text.chars().filter(|c| *c == sign).count();
    let missing = count('(').checked_sub(count(')'))?;
    if missing == 0 || missing > UNCLOSED_MAX {
        return None;
    }
    let found = language(&format!("{text}{}", ")".repeat(missing)))?;
    Some(Interpretation {
        looks_like: format!("{} with a parenthesis that is not closed", found.looks_like),
        ..found
    })
}

/// Words behind `not` that messages have.
const STATES: [&str; 12] = [
    "allowed",
    "authorized",
    "available",
    "enough",
    "exist",
    "found",
    "implemented",
    "permitted",
    "ready",
    "set",
    "supported",
    "valid",
];

/// `not paid`
fn excluded(text: &str) -> Option<Interpretation> {
    let (not, word) = text.split_once(' ')?;
    let is_word = word.chars().all(char::is_alphanumeric) && !word.is_empty();
    let is_meant = not.eq_ignore_ascii_case("not") && is_word && !STATES.contains(&word);
    is_meant.then(|| Interpretation {
        looks_like: "a negation".to_owned(),
        meant: Some(Filter::negate(Filter::substring(word.as_bytes(), false))),
        command: None,
    })
}
