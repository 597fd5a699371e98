//! From text to a [`Filter`]. The module above has the language.

use std::ops::Range;

use super::ast::{Comparison, FieldFilter, FieldTest, Filter, Pattern};
use super::ast::{is_bare_name, is_name_byte, is_name_start};
use super::quoted::{self, QuotedError, QuotedString};
use super::syntax_error::SyntaxError;
use crate::field::FieldMatcher;
use crate::label;
use crate::pattern::{Finder, RegexError};

/// The longest query in bytes.
pub const QUERY_BYTES_MAX: usize = 256 << 10;

/// The deepest nesting of parentheses and NOT; bounds the recursion here and in the matcher.
const DEPTH_MAX: usize = 50;

/// The most terms in a query; a row is compared with each.
const TERMS_MAX: usize = 1000;

/// The most regular expressions in a query; each may take megabytes when compiled. A condition on a
/// label that stands for many fields, such as `service_name`, is as many.
const REGEXES_MAX: usize = 64;

type Result<T> = std::result::Result<T, SyntaxError>;

/// Parses a query; an empty one wants every record.
pub fn parse(query: &str) -> Result<Filter> {
    let mut parser = Parser::new(query)?;
    parser.skip_space();
    if parser.at_end() {
        return Ok(Filter::All);
    }
    let filter = parser.disjunction()?;
    // Terms and operators are consumed as long as there are any: what is left is a parenthesis.
    if !parser.at_end() {
        let error = parser.error(parser.at..parser.at + 1, "`)` without `(`");
        return Err(error.with_hint("to search for this text, quote it"));
    }
    Ok(filter)
}

/// Parses one condition on a field, as an argument of its own (`-f`): everything after the
/// operator is the value, without quoting, unless it starts with a quote.
pub fn parse_condition(text: &str) -> Result<Filter> {
    let mut parser = Parser::new(text)?;
    let (name, name_end) = match text.as_bytes().first() {
        Some(b'"') => {
            let quoted = parser.quoted(0)?;
            (parser.name(&quoted, 0)?, quoted.end)
        }
        _ => {
            let end = text
                .bytes()
                .position(|b| b"=!<>~:".contains(&b))
                .unwrap_or(text.len());
            // Spaces around the operator are how people write, not parts of names.
            (Name::bare(text[..end].trim()), end)
        }
    };
    let is_spaced = text[..name_end].ends_with(' ');
    let missing = |parser: &Parser<'_>| {
        parser
            .error(name_end..text.len(), "a condition needs an operator")
            .with_hint(
                "write FIELD=VALUE, FIELD!=VALUE, FIELD>=N, FIELD~REGEX, FIELD:TEXT or FIELD:*",
            )
    };
    if name.text.is_empty() || name_end == text.len() {
        return Err(missing(&parser));
    }
    let (operator, mut value_start) = parser.operator(name_end)?;
    if is_spaced {
        value_start += text[value_start..].len() - text[value_start..].trim_start().len();
    }
    let value = &text[value_start..];
    if value.starts_with('"') || (operator == Operator::Contains && value == "*") {
        parser.at = value_start;
        let filter = parser.condition(name, operator, 0)?;
        return if parser.at_end() {
            Ok(filter)
        } else {
            Err(parser.error(parser.at..text.len(), "text after the closing quote"))
        };
    }
    let closed = parser.regex_at(value_start).filter(|r| r.end == text.len());
    match (operator, closed) {
        (Operator::Matches { .. }, Some(_)) => {
            parser.at = value_start;
            parser.condition(name, operator, 0)
        }
        _ => parser.build(&name, operator, Value::plain(value, value_start), 0),
    }
}

/// A condition on `level` with a word for a severity means the severity that any source says, `_level`.
/// Equality also means the text of the field itself, which another field may overrule.
pub(crate) fn by_severity(field: FieldFilter) -> Filter {
    let FieldTest::Compare(comparison, _) = &field.test else {
        return Filter::Field(field);
    };
    if !field.may_mean_severity() {
        return Filter::Field(field);
    }
    let severity = Filter::field(label::SEVERITY, field.test.clone());
    match comparison {
        Comparison::Equal => Filter::or([severity, Filter::Field(field)]),
        _ => severity,
    }
}

/// The name of a field as it was written.
struct Name {
    text: String,
    /// Whether it stood in quotes: then it is that field's and nothing else.
    is_quoted: bool,
}

impl Name {
    fn bare(text: &str) -> Name {
        Name {
            text: text.to_owned(),
            is_quoted: false,
        }
    }
}

struct Parser<'a> {
    query: &'a str,
    at: usize,
    depth: usize,
    terms: usize,
    regexes: usize,
    /// Opening parentheses that are closed, by place, with where.
    pairs: Vec<(usize, usize)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Compare {
        comparison: Comparison,
        negated: bool,
    },
    Matches {
        negated: bool,
    },
    Contains,
}

/// The operators, longer ones before their beginnings.
const OPERATORS: [(&str, Operator); 9] = [
    ("!=", compare(Comparison::Equal, true)),
    ("!~", Operator::Matches { negated: true }),
    ("<=", compare(Comparison::LessOrEqual, false)),
    (">=", compare(Comparison::GreaterOrEqual, false)),
    ("=", compare(Comparison::Equal, false)),
    ("<", compare(Comparison::Less, false)),
    (">", compare(Comparison::Greater, false)),
    ("~", Operator::Matches { negated: false }),
    (":", Operator::Contains),
];

/// What people write who come from other languages, and what it is here.
const FOREIGN_OPERATORS: [(&str, &str); 12] = [
    ("==", "="),
    ("=~", "~"),
    ("~=", "~"),
    ("!==", "!="),
    ("<>", "!="),
    ("=<", "<="),
    ("=>", ">="),
    (":=", "="),
    (":>", ">"),
    (":<", "<"),
    (":>=", ">="),
    (":<=", "<="),
];

const fn compare(comparison: Comparison, negated: bool) -> Operator {
    Operator::Compare {
        comparison,
        negated,
    }
}

/// The value of a condition as it was written.
struct Value {
    text: Vec<u8>,
    case_insensitive: bool,
    /// Bytes of the query that it takes.
    span: Range<usize>,
    /// For each byte of `text` its place in the query, where that is simple.
    origin: Option<usize>,
}

impl Value {
    fn plain(text: &str, start: usize) -> Value {
        Value {
            text: text.as_bytes().to_vec(),
            case_insensitive: false,
            span: start..start + text.len(),
            origin: Some(start),
        }
    }
}

/// A regular expression between slashes.
struct RegexLiteral {
    source: Range<usize>,
    case_insensitive: bool,
    end: usize,
}

impl<'a> Parser<'a> {
    fn new(query: &'a str) -> Result<Parser<'a>> {
        let mut parser = Parser {
            query,
            at: 0,
            depth: 0,
            terms: 0,
            regexes: 0,
            pairs: Vec::new(),
        };
        if query.len() > QUERY_BYTES_MAX {
            let message = format!("the query is longer than {QUERY_BYTES_MAX} bytes");
            return Err(parser.error(QUERY_BYTES_MAX..query.len(), message));
        }
        parser.pairs = pairs(query);
        Ok(parser)
    }

    fn disjunction(&mut self) -> Result<Filter> {
        let mut parts = vec![self.conjunction()?];
        while self.eat_keyword("OR") {
            parts.push(self.conjunction()?);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Filter::or(parts),
        })
    }

    fn conjunction(&mut self) -> Result<Filter> {
        let mut parts = vec![self.negation()?];
        loop {
            self.skip_space();
            let joined = self.eat_keyword("AND");
            let ended = self.at_end() || self.byte() == Some(b')') || self.keyword() == Some("OR");
            if !joined && ended {
                break;
            }
            parts.push(self.negation()?);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Filter::and(parts),
        })
    }

    fn negation(&mut self) -> Result<Filter> {
        self.skip_space();
        let start = self.at;
        if self.eat_keyword("NOT") {
            self.enter(start)?;
            let inner = self.negation()?;
            self.depth -= 1;
            return Ok(Filter::negate(inner));
        }
        if self.byte() != Some(b'(') {
            return self.term();
        }
        self.at += 1;
        self.enter(start)?;
        self.skip_space();
        if self.byte() == Some(b')') {
            let error = self.error(start..self.at + 1, "nothing between the parentheses");
            return Err(error.with_hint("to search for this text, quote it"));
        }
        let inner = self.disjunction()?;
        self.skip_space();
        if self.byte() != Some(b')') {
            let error = self.error(start..start + 1, "`(` without `)`");
            return Err(error.with_hint("close it, or quote the text"));
        }
        self.at += 1;
        self.depth -= 1;
        Ok(inner)
    }

    fn enter(&mut self, start: usize) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("the query nests deeper than {DEPTH_MAX} levels");
            return Err(self.error(start..start + 1, message));
        }
        Ok(())
    }

    fn term(&mut self) -> Result<Filter> {
        self.terms += 1;
        if self.terms > TERMS_MAX {
            let message = format!("the query has more than {TERMS_MAX} terms");
            return Err(self.error(self.at..self.query.len(), message));
        }
        let start = self.at;
        if let Some(operator) = self.keyword() {
            let message = format!("a term is missing before `{operator}`");
            let error = self.error(start..start + operator.len(), message);
            return Err(
                error.with_hint(format!("to search for the word, quote it: \"{operator}\""))
            );
        }
        match self.byte() {
            None => Err(self.error(start..start, "the query ends where a term is expected")),
            Some(b')') => {
                let error = self.error(start..start + 1, "a term is missing before `)`");
                Err(error.with_hint("to search for this text, quote it"))
            }
            Some(b'"') => self.quoted_term(),
            Some(b'i') if self.rest().starts_with("i\"") => {
                let quoted = self.quoted(start + 1)?;
                self.finish(quoted.end, start)?;
                self.text(Pattern::substring(&quoted.text, true), start)
            }
            Some(b'/') if self.regex_at(start).is_some() => {
                let value = self.regex_value(start)?;
                self.regex(value).map(Filter::Text)
            }
            Some(_) => self.bare_term(),
        }
    }

    /// A quoted string: text, or the name of a field if an operator follows.
    fn quoted_term(&mut self) -> Result<Filter> {
        let start = self.at;
        let quoted = self.quoted(start)?;
        let operator_follows = matches!(
            self.query.as_bytes().get(quoted.end),
            Some(b'=' | b'!' | b'<' | b'>' | b'~' | b':')
        );
        if operator_follows {
            let name = self.name(&quoted, start)?;
            let (operator, value_start) = self.operator(quoted.end)?;
            self.at = value_start;
            return self.condition(name, operator, start);
        }
        self.finish(quoted.end, start)?;
        self.text(Pattern::substring(&quoted.text, false), start)
    }

    fn name(&self, quoted: &QuotedString, start: usize) -> Result<Name> {
        let text = String::from_utf8(quoted.text.clone())
            .map_err(|_| self.error(start..quoted.end, "a field's name must be UTF-8"))?;
        let is_quoted = true;
        Ok(Name { text, is_quoted })
    }

    /// A condition, or words up to the next thing that is not text.
    fn bare_term(&mut self) -> Result<Filter> {
        let start = self.at;
        if let Some(name_end) = self.condition_at(start) {
            let (operator, value_start) = self.operator(name_end)?;
            let name = Name::bare(&self.query[start..name_end]);
            self.at = value_start;
            return self.condition(name, operator, start);
        }
        let mut end = start;
        while !self.at_end() && (end == start || self.continues_words()) {
            let word_end = self.word_end(self.at);
            let word = &self.query[self.at..word_end];
            if is_operator(word) {
                return Err(self.spaced_operator(self.at..word_end));
            }
            end = word_end;
            self.at = word_end;
            self.skip_space();
        }
        self.at = end;
        match &self.query[start..end] {
            "*" => Ok(Filter::All),
            words => self.text(Pattern::substring(words.as_bytes(), false), start),
        }
    }

    fn continues_words(&self) -> bool {
        let other_term = match self.byte() {
            Some(b'"' | b'(' | b')') => true,
            Some(b'i') => self.rest().starts_with("i\""),
            Some(b'/') => self.regex_at(self.at).is_some(),
            _ => false,
        };
        !other_term && self.keyword().is_none() && self.condition_at(self.at).is_none()
    }

    fn spaced_operator(&self, span: Range<usize>) -> SyntaxError {
        let operator = &self.query[span.clone()];
        let message = format!("`{operator}` stands alone");
        self.error(span, message).with_hint(format!(
            "write conditions without spaces (FIELD{operator}VALUE), or quote the text"
        ))
    }

    /// Where the name ends if a condition starts at this byte.
    fn condition_at(&self, start: usize) -> Option<usize> {
        let bytes = self.query.as_bytes();
        if !is_name_start(*bytes.get(start)?) {
            return None;
        }
        let length = bytes[start..].iter().position(|b| !is_name_byte(*b))?;
        let end = start + length;
        let rest = &self.query[end..];
        let next = rest.chars().nth(1);
        let follows = match rest.as_bytes()[0] {
            b'=' | b'<' | b'>' | b'~' => true,
            b'!' => matches!(next, Some('=' | '~')),
            b':' => {
                let text = matches!(next, None | Some(')' | ':' | '\\'));
                let spaced = next.is_some_and(|c| c.is_ascii_whitespace());
                !text && !spaced && !rest.starts_with("://")
            }
            _ => false,
        };
        (follows && is_bare_name(&self.query[start..end])).then_some(end)
    }

    /// Reads the operator at this byte; gives the first byte of the value too.
    fn operator(&self, start: usize) -> Result<(Operator, usize)> {
        let rest = &self.query[start..];
        let signs = |b: &u8| b"=!<>~".contains(b);
        let after_colon = usize::from(rest.starts_with(':'));
        let length = after_colon + rest.bytes().skip(after_colon).take_while(signs).count();
        let written = &rest[..length];
        if let Some((_, operator)) = OPERATORS.iter().find(|(text, _)| *text == written) {
            return Ok((*operator, start + length));
        }
        let error = self.error(
            start..start + length,
            format!("unknown operator `{written}`"),
        );
        let foreign = FOREIGN_OPERATORS.iter().find(|(text, _)| *text == written);
        Err(error.with_hint(match foreign {
            Some((_, ours)) => format!("did you mean `{ours}`? To search for this text, quote it"),
            None => "operators are = != < <= > >= ~ !~ and :; quote the value or the text".into(),
        }))
    }

    /// Reads the value of a condition at the current byte. `start` is where the condition starts.
    fn condition(&mut self, name: Name, operator: Operator, start: usize) -> Result<Filter> {
        if operator == Operator::Contains && self.byte() == Some(b'*') {
            let end = self.word_end(self.at);
            if end == self.at + 1 {
                self.at = end;
                return Ok(Filter::field(&name.text, FieldTest::Exists));
            }
        }
        let value = self.value(operator, start)?;
        self.build(&name, operator, value, start)
    }

    fn value(&mut self, operator: Operator, start: usize) -> Result<Value> {
        let at = self.at;
        let is_match = matches!(operator, Operator::Matches { .. });
        let folded = usize::from(self.rest().starts_with("i\""));
        if folded == 1 && operator != Operator::Contains {
            let error = self.error(at..at + 2, "i\"…\" works with `:` only");
            return Err(error.with_hint("write FIELD:i\"text\" or FIELD~/^text$/i"));
        }
        if folded == 1 || self.byte() == Some(b'"') {
            let quoted = self.quoted(at + folded)?;
            self.finish(quoted.end, start)?;
            return Ok(Value {
                text: quoted.text,
                case_insensitive: folded == 1,
                span: at..self.at,
                origin: None,
            });
        }
        if is_match && self.byte() == Some(b'/') {
            return self.regex_value(at);
        }
        let end = self.word_end(at);
        if end == at {
            let error = self.error(start..at, "the value is missing");
            return Err(error.with_hint("an empty value is written \"\""));
        }
        let value = Value::plain(&self.query[at..end], at);
        if !is_match && operator != Operator::Contains && value.text == b"*" {
            let error = self.error(start..end, "`*` is no value");
            let hint = "write FIELD:* for records that have the field, or \"*\" for a star";
            return Err(error.with_hint(hint));
        }
        self.at = end;
        Ok(value)
    }

    /// Reads the regular expression between slashes at this byte.
    fn regex_value(&mut self, start: usize) -> Result<Value> {
        let Some(slashed) = self.regex_at(start) else {
            let error = self.error(start..self.word_end(start), "the expression does not end");
            let hint = "end it with `/` or `/i`, and write slashes inside as `\\/`";
            return Err(error.with_hint(hint));
        };
        self.at = slashed.end;
        let source = &self.query[slashed.source.clone()];
        Ok(Value {
            text: source.as_bytes().to_vec(),
            case_insensitive: slashed.case_insensitive,
            span: start..slashed.end,
            origin: Some(slashed.source.start),
        })
    }

    /// A regular expression between slashes at this byte: the first slash that is not escaped
    /// must end it, with nothing but `i` behind.
    fn regex_at(&self, start: usize) -> Option<RegexLiteral> {
        let bytes = self.query.as_bytes();
        if bytes.get(start) != Some(&b'/') {
            return None;
        }
        let mut at = start + 1;
        while *bytes.get(at)? != b'/' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        let case_insensitive = bytes.get(at + 1) == Some(&b'i');
        let end = at + 1 + usize::from(case_insensitive);
        let usable = at > start + 1 && self.is_boundary(end);
        usable.then_some(RegexLiteral {
            source: start + 1..at,
            case_insensitive,
            end,
        })
    }

    fn build(&mut self, name: &Name, op: Operator, value: Value, start: usize) -> Result<Filter> {
        let span = value.span.clone();
        let (test, negated) = match op {
            Operator::Compare {
                comparison,
                negated,
            } => (FieldTest::Compare(comparison, value.text.into()), negated),
            Operator::Matches { negated } => (FieldTest::Contains(self.regex(value)?), negated),
            Operator::Contains => {
                let pattern = Pattern::substring(&value.text, value.case_insensitive);
                (FieldTest::Contains(self.checked(pattern, start)?), false)
            }
        };
        let field = FieldFilter {
            name: name.text.as_str().into(),
            test,
        };
        let filter = if name.is_quoted {
            Filter::Field(field)
        } else {
            by_severity(field)
        };
        if let Filter::Field(field) = &filter
            && matches!(field.test, FieldTest::Compare(..))
        {
            FieldMatcher::new(field).map_err(|error| {
                let wrong = self.error(span, error.to_string());
                wrong.with_hint(error.hint())
            })?;
        }
        Ok(if negated {
            Filter::negate(filter)
        } else {
            filter
        })
    }

    fn text(&mut self, pattern: Pattern, start: usize) -> Result<Filter> {
        self.checked(pattern, start).map(Filter::Text)
    }

    /// Counts and tries a substring, which is compiled like an expression if it folds case.
    fn checked(&mut self, pattern: Pattern, start: usize) -> Result<Pattern> {
        if let Pattern::Substring {
            case_insensitive: true,
            ..
        } = pattern
        {
            self.count_regex(start)?;
            Finder::new(&pattern).map_err(|e| self.error(start..self.at, e.message))?;
        }
        Ok(pattern)
    }

    fn regex(&mut self, value: Value) -> Result<Pattern> {
        self.count_regex(value.span.start)?;
        let written = String::from_utf8(value.text)
            .map_err(|_| self.error(value.span.clone(), "an expression must be UTF-8"))?;
        let pattern = Pattern::regex(&written, value.case_insensitive);
        match Finder::new(&pattern) {
            Ok(_) => Ok(pattern),
            Err(error) => Err(self.regex_error(error, &written, &value.span, value.origin)),
        }
    }

    /// Where in the query an expression is wrong: its own places count without the backslashes
    /// before slashes.
    fn regex_error(
        &self,
        error: RegexError,
        written: &str,
        span: &Range<usize>,
        origin: Option<usize>,
    ) -> SyntaxError {
        let message = error.to_string();
        let Some(origin) = origin else {
            return self.error(span.clone(), message);
        };
        let place = |at: usize| origin + with_escaped_slashes(written, at);
        let (start, end) = (place(error.span.start), place(error.span.end));
        self.error(start..end, message)
            .with_hint("write a backslash before special characters, or quote the text")
    }

    fn count_regex(&mut self, start: usize) -> Result<()> {
        self.regexes += 1;
        if self.regexes > REGEXES_MAX {
            let message = format!("the query has more than {REGEXES_MAX} regular expressions");
            return Err(self.error(start..self.query.len(), message));
        }
        Ok(())
    }

    fn quoted(&self, open: usize) -> Result<QuotedString> {
        quoted::read(self.query.as_bytes(), open).map_err(|error| match error {
            QuotedError::Unclosed => self
                .error(open..self.query.len(), "the quote is not closed")
                .with_hint("end it with `\"`; a quote inside is written `\\\"`"),
            QuotedError::Escape(span) => self
                .error(span, "unknown escape")
                .with_hint("escapes are \\\" \\\\ \\n \\r \\t and \\xNN; a backslash is `\\\\`"),
        })
    }

    /// Ends a quoted term; nothing may follow its closing quote directly.
    fn finish(&mut self, end: usize, start: usize) -> Result<()> {
        if !self.is_boundary(end) {
            let error = self.error(start..self.word_end(end), "text after the closing quote");
            let hint = "put a space between terms; a quote inside a quote is written `\\\"`";
            return Err(error.with_hint(hint));
        }
        self.at = end;
        Ok(())
    }

    /// The end of the word that starts at this byte: a space, or a parenthesis that it did not
    /// open itself. What it has in parentheses belongs to it, spaces included.
    fn word_end(&self, start: usize) -> usize {
        let bytes = self.query.as_bytes();
        let mut at = start;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'(' => at = self.closing(at).unwrap_or(at),
                b')' => break,
                b if b.is_ascii_whitespace() => break,
                _ => {}
            }
            at += 1;
        }
        at
    }

    /// Where the parenthesis that opens at this byte is closed.
    fn closing(&self, open: usize) -> Option<usize> {
        let found = self.pairs.binary_search_by_key(&open, |pair| pair.0).ok()?;
        Some(self.pairs[found].1)
    }

    fn keyword(&self) -> Option<&'static str> {
        let found = ["AND", "OR", "NOT"]
            .into_iter()
            .find(|k| self.rest().starts_with(k))?;
        let after = self.query.as_bytes().get(self.at + found.len());
        let ends = after.is_none_or(|b| b.is_ascii_whitespace() || b"()\"".contains(b));
        ends.then_some(found)
    }

    fn eat_keyword(&mut self, word: &str) -> bool {
        self.skip_space();
        let found = self.keyword() == Some(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn is_boundary(&self, at: usize) -> bool {
        let byte = self.query.as_bytes().get(at);
        byte.is_none_or(|b| b.is_ascii_whitespace() || *b == b')')
    }

    fn skip_space(&mut self) {
        while self.byte().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn byte(&self) -> Option<u8> {
        self.query.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        &self.query[self.at..]
    }

    fn at_end(&self) -> bool {
        self.at == self.query.len()
    }

    fn error(&self, span: Range<usize>, message: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.query, span, message.into())
    }
}

/// Parentheses that belong together, in the order of the opening ones.
fn pairs(query: &str) -> Vec<(usize, usize)> {
    let (mut open, mut pairs) = (Vec::new(), Vec::new());
    for (at, byte) in query.bytes().enumerate() {
        match byte {
            b'(' => open.push(at),
            b')' => pairs.extend(open.pop().map(|start| (start, at))),
            _ => {}
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Whether a word is nothing but an operator, also one of another language.
fn is_operator(word: &str) -> bool {
    let ours = OPERATORS
        .iter()
        .any(|(text, _)| *text == word && word != ":");
    ours || ["==", "=~", "<>"].contains(&word)
}

/// The place in `written` of byte `at` of the same expression with `\/` replaced by `/`.
fn with_escaped_slashes(written: &str, at: usize) -> usize {
    let bytes = written.as_bytes();
    let (mut place, mut seen) = (0, 0);
    while place < bytes.len() && seen < at {
        match (bytes[place], bytes.get(place + 1)) {
            (b'\\', Some(b'/')) => (place, seen) = (place + 2, seen + 1),
            (b'\\', Some(_)) if seen + 1 < at => (place, seen) = (place + 2, seen + 2),
            _ => (place, seen) = (place + 1, seen + 1),
        }
    }
    place
}
