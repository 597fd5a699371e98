//! The plain forms of LogsQL, VictoriaLogs' query language, as filters and a few pipes.
//!
//! ```text
//! error AND app:="shop" _time:1h | fields _time, _msg | limit 10
//! _time:5m level:error | stats by (host) count() as n
//! ```
//!
//! A word or a phrase stands alone in a text: `error` is found in `an error:`, and not in `errors`. What is not
//! supported is refused by its name, never left out: a filter that is not understood would find something else.

use std::fmt;

use jiff::tz::TimeZone;
use logpond_record::{TimeRange, Timestamp};

use crate::query::{Comparison, FieldTest, Filter, Pattern};
use crate::{size, when};

/// The longest query; it is the longest of our own.
pub const QUERY_BYTES_MAX: usize = crate::query::QUERY_BYTES_MAX;

/// Levels of parentheses and negations.
const DEPTH_MAX: usize = 50;

/// The field that is meant where none is named.
const MESSAGE: &str = "_msg";

/// VictoriaLogs groups records by streams; here fields do.
const NO_STREAMS: &str = "there are no streams here: write the fields, as in app:=\"shop\"";

/// The event time.
const TIME: &str = "_time";

/// A query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogsQuery {
    /// The records.
    pub filter: Filter,
    /// The times that its filters allow.
    pub range: TimeRange,
    /// The form of the answer.
    pub output: LogsOutput,
}

/// The form of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogsOutput {
    /// Records.
    Rows {
        /// The most of them.
        limit: Option<u64>,
        /// Only these fields; empty are all.
        fields: Vec<String>,
        /// True if the newest come first; `None` if no order is asked for.
        is_newest_first: Option<bool>,
    },
    /// The number of records.
    Count {
        /// The field by whose values they are counted.
        by: Option<String>,
        /// The name of the number.
        name: String,
        /// The most rows.
        limit: Option<u64>,
    },
}

/// Why a text is no such query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogsError {
    /// The byte at which it is wrong.
    pub at: usize,
    /// The fault, and the form to write instead.
    pub message: String,
}

impl fmt::Display for LogsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at, self.message)
    }
}

impl std::error::Error for LogsError {}

/// Reads a query; times in it are relative to `now`.
///
/// # Errors
/// When it is none, or has a form that is not supported.
pub fn parse(text: &str, now: Timestamp) -> Result<LogsQuery, LogsError> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
        now,
    };
    if text.len() > QUERY_BYTES_MAX {
        return Err(parser.error(format!("the query is longer than {QUERY_BYTES_MAX} bytes")));
    }
    let filter = parser.any_of(MESSAGE)?;
    let mut output = LogsOutput::Rows {
        limit: None,
        fields: Vec::new(),
        is_newest_first: None,
    };
    while parser.takes('|') {
        parser.pipe(&mut output)?;
    }
    parser.skip();
    if parser.at < text.len() {
        return Err(parser.error("expected an operator, a pipe or the end"));
    }
    let range = range_of(&filter);
    Ok(LogsQuery {
        filter,
        range,
        output,
    })
}

/// Any bytes as a query: what is read is a query of our own.
pub fn fuzz_logsql(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(query) = parse(&text, Timestamp(1_795_000_000_000_000_000)) {
        assert!(query.range.from >= Timestamp::MIN && query.range.to <= Timestamp::MAX);
        // Of limits of our own it may have too much.
        let _ = crate::query::parse(&query.filter.to_string());
    }
}

/// The times that the conditions of a conjunction allow.
fn range_of(filter: &Filter) -> TimeRange {
    let mut range = TimeRange {
        from: Timestamp::MIN,
        to: Timestamp::MAX,
    };
    let parts = match filter {
        Filter::And(parts) => parts.as_slice(),
        filter => std::slice::from_ref(filter),
    };
    for part in parts {
        let Filter::Field(condition) = part else {
            continue;
        };
        let FieldTest::Compare(comparison, text) = &condition.test else {
            continue;
        };
        let time = std::str::from_utf8(text).ok();
        let time = time.and_then(|text| when::parse(text, Timestamp(0), &TimeZone::UTC).ok());
        if let Some(time) = time.filter(|_| *condition.name == *TIME) {
            match comparison {
                Comparison::GreaterOrEqual | Comparison::Greater => {
                    range.from = range.from.max(time)
                }
                Comparison::Less => range.to = range.to.min(time),
                Comparison::LessOrEqual => range.to = range.to.min(time.saturating_add(1)),
                Comparison::Equal => {}
            }
        }
    }
    range
}

/// A token of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    text: String,
    is_quoted: bool,
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    now: Timestamp,
}

impl<'t> Parser<'t> {
    fn error(&self, message: impl Into<String>) -> LogsError {
        LogsError {
            at: self.at,
            message: message.into(),
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes this sign, if it is next.
    fn takes(&mut self, sign: char) -> bool {
        self.skip();
        let is_next = self.rest().starts_with(sign);
        if is_next {
            self.at += sign.len_utf8();
        }
        is_next
    }

    fn expect(&mut self, sign: char) -> Result<(), LogsError> {
        if self.takes(sign) {
            Ok(())
        } else {
            Err(self.error(format!("expected '{sign}'")))
        }
    }

    /// The word that is next, without taking it.
    fn word(&self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
        &rest[..end]
    }

    /// Takes this word in any case, if it is next.
    fn takes_word(&mut self, wanted: &str) -> bool {
        self.skip();
        let word = self.word();
        let is_next =
            word.eq_ignore_ascii_case(wanted) && !self.rest()[word.len()..].starts_with(':');
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    fn any_of(&mut self, field: &str) -> Result<Filter, LogsError> {
        let mut parts = vec![self.all_of(field)?];
        while self.takes_word("or") {
            parts.push(self.all_of(field)?);
        }
        Ok(Filter::or(parts))
    }

    fn all_of(&mut self, field: &str) -> Result<Filter, LogsError> {
        let mut parts = vec![self.one_of(field)?];
        loop {
            let is_joined = self.takes_word("and");
            self.skip();
            let rest = self.rest();
            let is_end = rest.is_empty() || rest.starts_with([')', '|']);
            if !is_joined && (is_end || self.word().eq_ignore_ascii_case("or")) {
                return Ok(Filter::and(parts));
            }
            parts.push(self.one_of(field)?);
        }
    }

    fn one_of(&mut self, field: &str) -> Result<Filter, LogsError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(format!("more than {DEPTH_MAX} levels")));
        }
        let filter = if self.takes_word("not") || self.takes('!') || self.takes('-') {
            Filter::Not(Box::new(self.one_of(field)?))
        } else if self.takes('(') {
            let filter = self.any_of(field)?;
            self.expect(')')?;
            filter
        } else {
            self.term(field)?
        };
        self.depth -= 1;
        Ok(filter)
    }

    /// A condition, perhaps behind the name of a field.
    fn term(&mut self, field: &str) -> Result<Filter, LogsError> {
        self.skip();
        let begin = self.at;
        if !self.rest().starts_with(['*', '=', '~', '<', '>', '[', '{']) {
            let name = self.token()?;
            if self.rest().starts_with(':') {
                self.at += 1;
                return self.condition(&name.text);
            }
            self.at = begin;
        }
        self.condition(field)
    }

    /// The condition on a field.
    fn condition(&mut self, field: &str) -> Result<Filter, LogsError> {
        if field == TIME {
            return self.time();
        }
        if field.starts_with("_stream") || self.rest().starts_with('{') {
            return Err(self.error(NO_STREAMS));
        }
        self.skip();
        if self.takes('(') {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return Err(self.error(format!("more than {DEPTH_MAX} levels")));
            }
            let filter = self.any_of(field)?;
            self.depth -= 1;
            self.expect(')')?;
            return Ok(filter);
        }
        if self.takes('=') {
            let token = self.token()?;
            return Ok(equal(field, &token.text));
        }
        if self.takes('~') {
            let token = self.token()?;
            return Ok(matching(field, token.text));
        }
        if let Some(comparison) = self.comparison() {
            let number = self.token()?.text.into_bytes().into_boxed_slice();
            return Ok(Filter::field(field, FieldTest::Compare(comparison, number)));
        }
        if self.takes('*') {
            let is_all = field == MESSAGE;
            return Ok(if is_all { Filter::All } else { filled(field) });
        }
        let token = self.token()?;
        if !token.is_quoted && self.rest().starts_with('(') {
            return self.function(field, &token.text);
        }
        let is_prefix = self.rest().starts_with('*');
        if is_prefix {
            self.at += 1;
        }
        if token.text.is_empty() && !is_prefix {
            return Ok(Filter::Not(Box::new(filled(field))));
        }
        Ok(matching(field, bounded(&token.text, is_prefix)))
    }

    /// Takes the sign of a comparison, if one is next.
    fn comparison(&mut self) -> Option<Comparison> {
        let (sign, comparison) = [
            (">=", Comparison::GreaterOrEqual),
            ("<=", Comparison::LessOrEqual),
            (">", Comparison::Greater),
            ("<", Comparison::Less),
        ]
        .into_iter()
        .find(|(sign, _)| self.rest().starts_with(sign))?;
        self.at += sign.len();
        Some(comparison)
    }

    /// `i(word)`, `exact(word)`, `re(regex)` and `in(a, b)`.
    fn function(&mut self, field: &str, name: &str) -> Result<Filter, LogsError> {
        let known = ["i", "exact", "re", "in"];
        if !known.contains(&name) {
            return Err(self.error(format!(
                "the filter {name}(…) is not supported; there are {}",
                known.join("(…), ") + "(…)"
            )));
        }
        self.expect('(')?;
        let mut values = vec![self.token()?.text];
        while name == "in" && self.takes(',') {
            values.push(self.token()?.text);
        }
        self.expect(')')?;
        let first = values.first().cloned().unwrap_or_default();
        Ok(match name {
            "in" => Filter::or(values.iter().map(|value| equal(field, value))),
            "exact" => equal(field, &first),
            "re" => matching(field, first),
            _ => Filter::field(
                field,
                FieldTest::Contains(Pattern::Regex {
                    source: bounded(&first, false).into(),
                    case_insensitive: true,
                }),
            ),
        })
    }

    /// `_time:5m`, `_time:>=TIME` and `_time:[TIME, TIME]`, whose parentheses exclude an end.
    fn time(&mut self) -> Result<Filter, LogsError> {
        self.skip();
        if let Some(comparison) = self.comparison() {
            let time = self.moment()?;
            return Ok(at(comparison, time));
        }
        let is_included = self.takes('[');
        if is_included || self.takes('(') {
            let from = self.moment()?;
            self.expect(',')?;
            let to = self.moment()?;
            let is_last_included = self.takes(']');
            if !is_last_included {
                self.expect(')')?;
            }
            let first = if is_included {
                Comparison::GreaterOrEqual
            } else {
                Comparison::Greater
            };
            let last = if is_last_included {
                Comparison::LessOrEqual
            } else {
                Comparison::Less
            };
            return Ok(Filter::and([at(first, from), at(last, to)]));
        }
        let begin = self.at;
        let text = self.token()?.text;
        let Ok(age_ns) = size::parse_duration(&text) else {
            self.at = begin;
            let message = "expected a duration such as _time:5m, or a range such as \
                           _time:[2026-11-21T10:00:00Z, 2026-11-21T11:00:00Z)";
            return Err(self.error(message));
        };
        if self.takes_word("offset") {
            return Err(self.error("offset is not supported: write a range of times"));
        }
        let from = self.now.saturating_add(-age_ns);
        Ok(Filter::and([
            at(Comparison::GreaterOrEqual, from),
            at(Comparison::Less, self.now),
        ]))
    }

    /// An absolute time, whose colons are no end of a word here.
    fn moment(&mut self) -> Result<Timestamp, LogsError> {
        self.skip();
        let rest = self.rest();
        let end = rest.find(|c: char| !is_of_word(c) && !matches!(c, ':' | '+'));
        let text = &rest[..end.unwrap_or(rest.len())];
        let time = when::parse(text, self.now, &TimeZone::UTC);
        let time = time.map_err(|error| self.error(error.to_string()))?;
        self.at += text.len();
        Ok(time)
    }

    /// A word, or a text in quotes.
    fn token(&mut self) -> Result<Token, LogsError> {
        self.skip();
        let rest = self.rest();
        let quote = rest
            .chars()
            .next()
            .filter(|c| matches!(c, '"' | '\'' | '`'));
        let Some(quote) = quote else {
            let word = self.word();
            if word.is_empty() {
                return Err(self.error("expected a word or a text in quotes"));
            }
            self.at += word.len();
            return Ok(Token {
                text: word.to_owned(),
                is_quoted: false,
            });
        };
        let mut text = String::new();
        let mut characters = rest.char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            if character == quote {
                self.at += at + 1;
                return Ok(Token {
                    text,
                    is_quoted: true,
                });
            }
            if character != '\\' || quote == '`' {
                text.push(character);
                continue;
            }
            match characters.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, 'r')) => text.push('\r'),
                Some((_, sign @ ('\\' | '"' | '\'' | '/'))) => text.push(sign),
                _ => return Err(self.error("unknown escape: there are \\n \\t \\r \\\\ \\\" \\'")),
            }
        }
        Err(self.error("a text in quotes has no end"))
    }

    fn pipe(&mut self, output: &mut LogsOutput) -> Result<(), LogsError> {
        self.skip();
        let name = self.word().to_ascii_lowercase();
        self.at += name.len();
        match (&*name, output) {
            ("limit" | "head", LogsOutput::Rows { limit, .. } | LogsOutput::Count { limit, .. }) => {
                let given = self.number()?;
                *limit = Some(limit.map_or(given, |limit| limit.min(given)));
                Ok(())
            }
            ("fields" | "keep", LogsOutput::Rows { fields, .. }) => {
                *fields = self.names()?;
                Ok(())
            }
            ("sort", LogsOutput::Rows { is_newest_first, limit: None, .. }) => {
                self.takes_word("by");
                self.expect('(')?;
                let field = self.token()?.text;
                let is_descending = self.takes_word("desc");
                self.expect(')')?;
                if field != TIME {
                    return Err(self.error("rows are sorted by (_time) only"));
                }
                *is_newest_first = Some(is_descending || self.takes_word("desc"));
                Ok(())
            }
            ("stats", output @ LogsOutput::Rows { limit: None, .. }) => {
                *output = self.stats()?;
                Ok(())
            }
            _ => Err(self.error(format!(
                "the pipe '{name}' is not supported here; there are fields, limit, sort by (_time) and stats count(), \
                 in an order in which each works on what the one before gives"
            ))),
        }
    }

    /// `stats [by (field)] count() [as name]`.
    fn stats(&mut self) -> Result<LogsOutput, LogsError> {
        let mut by = None;
        self.takes_word("by");
        if self.takes('(') {
            let name = self.token()?.text;
            if name.starts_with("_stream") {
                return Err(self.error(NO_STREAMS));
            }
            by = Some(name);
            if !self.takes(')') {
                return Err(self.error("records are counted by one field: expected ')'"));
            }
        }
        if !self.takes_word("count") {
            return Err(self.error("the only function is count()"));
        }
        self.expect('(')?;
        self.takes('*');
        self.expect(')')?;
        self.takes_word("as");
        self.skip();
        let is_named = !self.rest().is_empty() && !self.rest().starts_with(['|', ',']);
        let name = if is_named {
            self.token()?.text
        } else {
            "count(*)".to_owned()
        };
        if self.takes(',') {
            return Err(self.error("there is one function only"));
        }
        Ok(LogsOutput::Count {
            by,
            name,
            limit: None,
        })
    }

    fn number(&mut self) -> Result<u64, LogsError> {
        self.skip();
        let word = self.word();
        let number = word.parse().map_err(|_| self.error("expected a number"))?;
        self.at += word.len();
        Ok(number)
    }

    fn names(&mut self) -> Result<Vec<String>, LogsError> {
        let mut names = vec![self.token()?.text];
        while self.takes(',') {
            names.push(self.token()?.text);
        }
        Ok(names)
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | '@' | '$' | '#' | '%')
}

/// A text that stands alone, as a regular expression.
fn bounded(text: &str, is_prefix: bool) -> String {
    let is_of_text = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let begin = if is_of_text(text.chars().next()) {
        r"\b"
    } else {
        ""
    };
    let end = if !is_prefix && is_of_text(text.chars().next_back()) {
        r"\b"
    } else {
        ""
    };
    format!("{begin}{}{end}", regex_syntax::escape(text))
}

fn matching(field: &str, source: String) -> Filter {
    if source.is_empty() {
        return Filter::All;
    }
    let pattern = Pattern::Regex {
        source: source.into(),
        case_insensitive: false,
    };
    Filter::field(field, FieldTest::Contains(pattern))
}

fn equal(field: &str, value: &str) -> Filter {
    if value.is_empty() {
        return Filter::Not(Box::new(filled(field)));
    }
    let value = value.as_bytes().into();
    Filter::field(field, FieldTest::Compare(Comparison::Equal, value))
}

/// The field is there, and not empty.
fn filled(field: &str) -> Filter {
    let empty = Filter::field(field, FieldTest::Compare(Comparison::Equal, Box::default()));
    Filter::and([
        Filter::field(field, FieldTest::Exists),
        Filter::Not(Box::new(empty)),
    ])
}

fn at(comparison: Comparison, time: Timestamp) -> Filter {
    let time = time.to_string().into_bytes().into_boxed_slice();
    Filter::field(TIME, FieldTest::Compare(comparison, time))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_000_000_000_000_000);

    fn filter(text: &str) -> String {
        parse(text, NOW).unwrap().filter.to_string()
    }

    #[test]
    fn filters_are_those_of_our_own_language() {
        let table = [
            ("*", "*"),
            ("error", r"_msg~/\berror\b/"),
            ("\"disk full\"", r"_msg~/\bdisk full\b/"),
            ("err*", r"_msg~/\berr/"),
            ("host:web1 -debug", r"host~/\bweb1\b/ NOT _msg~/\bdebug\b/"),
            ("a or b and c", r"_msg~/\ba\b/ OR _msg~/\bb\b/ _msg~/\bc\b/"),
            (
                "(a OR b) AND not c",
                r"(_msg~/\ba\b/ OR _msg~/\bb\b/) NOT _msg~/\bc\b/",
            ),
            ("app:(a or b)", r"app~/\ba\b/ OR app~/\bb\b/"),
            ("app:=shop", "app=shop"),
            ("status:>=500", "status>=500"),
            ("app:in(a, \"b c\")", "app=a OR app=\"b c\""),
            ("path:~\"^/api\"", r"path~/^\/api/"),
            ("i(Error)", r"_msg~/\bError\b/i"),
            ("user:*", "user:* NOT user=\"\""),
            ("\"odd name\":x", "\"odd name\"~/\\bx\\b/"),
        ];
        for (text, expected) in table {
            let expected = crate::query::parse(expected).unwrap().to_string();
            assert_eq!(filter(text), expected, "{text}");
        }
    }

    #[test]
    fn times_bound_the_range() {
        let query = parse("error _time:5m", NOW).unwrap();
        assert_eq!(query.range.from, NOW.saturating_add(-300_000_000_000));
        assert_eq!(query.range.to, NOW);
        let query = parse(
            "_time:[2026-11-21T10:00:00Z, 2026-11-21T11:00:00Z] and x",
            NOW,
        )
        .unwrap();
        assert_eq!(
            query.range.from.to_string(),
            "2026-11-21T10:00:00.000000000Z"
        );
        assert_eq!(query.range.to.to_string(), "2026-11-21T11:00:00.000000001Z");
        // Another alternative has no bound.
        let query = parse("_time:5m or x", NOW).unwrap();
        assert_eq!(
            (query.range.from, query.range.to),
            (Timestamp::MIN, Timestamp::MAX)
        );
    }

    #[test]
    fn pipes_give_the_form() {
        let output = |text: &str| parse(text, NOW).unwrap().output;
        assert_eq!(
            output("x | fields _time, _msg | limit 10 | head 5"),
            LogsOutput::Rows {
                limit: Some(5),
                fields: vec!["_time".to_owned(), "_msg".to_owned()],
                is_newest_first: None,
            }
        );
        assert_eq!(
            output("x | sort by (_time) desc"),
            LogsOutput::Rows {
                limit: None,
                fields: Vec::new(),
                is_newest_first: Some(true),
            }
        );
        let count = |by: Option<&str>, name: &str| LogsOutput::Count {
            by: by.map(str::to_owned),
            name: name.to_owned(),
            limit: None,
        };
        assert_eq!(
            output("* | stats by (host) count() as n"),
            count(Some("host"), "n")
        );
        assert_eq!(output("* | stats count() rows"), count(None, "rows"));
        assert_eq!(
            output("* | stats (host) count()"),
            count(Some("host"), "count(*)")
        );
    }

    #[test]
    fn what_is_not_supported_is_refused_by_its_name() {
        let table = [
            ("", "expected a word"),
            ("x |", "the pipe ''"),
            ("x | uniq by (a)", "the pipe 'uniq'"),
            ("x | limit 5 | stats count()", "the pipe 'stats'"),
            ("x | stats by (a, b) count()", "one field"),
            ("x | stats by (_stream) count()", "no streams"),
            ("x | stats sum(a)", "only function is count()"),
            ("x | stats count() a, count() b", "one function only"),
            ("{app=\"shop\"} x", "no streams"),
            ("_stream:x", "no streams"),
            ("seq(a, b)", "seq(…) is not supported"),
            ("_time:5m offset 1h x", "offset is not supported"),
            ("_time:noon", "expected a duration"),
            ("(a", "expected ')'"),
            ("a)", "expected an operator"),
            ("\"a", "has no end"),
            ("a and", "expected a word"),
            ("x | sort by (host)", "by (_time) only"),
        ];
        for (text, reason) in table {
            let error = parse(text, NOW).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let deep = "(".repeat(100_000);
        assert!(
            parse(&deep, NOW)
                .unwrap_err()
                .to_string()
                .contains("levels")
        );
        let deep = "a:".to_owned() + &"(".repeat(100_000);
        assert!(parse(&deep, NOW).is_err());
    }
}
