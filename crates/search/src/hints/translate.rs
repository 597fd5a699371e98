//! Questions of other languages in this one: SQL's conditions, Lucene, KQL, Splunk, jq, and operators between words.

use super::tokens::{Condition, Kind, Token, condition_of, ours, tokens};
use crate::query::{Filter, Pattern};

/// The most words of a text in which `or` and `and` join: in longer ones they are words of a sentence.
const SHORT_MAX: usize = 5;

/// How deep calls such as `select(…)` may stand in each other.
const DEPTH_MAX: usize = 4;

/// Steps of pipelines, which choose or count what a search has found.
const STEPS: [&str; 22] = [
    "chart",
    "count",
    "dedup",
    "eval",
    "extend",
    "fields",
    "head",
    "limit",
    "order",
    "project",
    "rare",
    "rename",
    "rex",
    "sort",
    "stats",
    "summarize",
    "table",
    "tail",
    "take",
    "timechart",
    "top",
    "uniq",
];

/// Steps that read fields in lines, which are fields here without being asked for.
const PARSERS: [&str; 3] = ["json", "logfmt", "unpack"];

/// The most words before the condition of a `select` without a table.
const COLUMNS_MAX: usize = 16;

/// Steps whose rest is a condition.
const FILTER_STEPS: [&str; 3] = ["where", "search", "filter"];

/// The text with signs of other languages as ours; `None` if it has none.
pub(super) fn translated(text: &str) -> Option<String> {
    translated_within(text, DEPTH_MAX)
}

fn translated_within(text: &str, depth: usize) -> Option<String> {
    let tokens = tokens(text);
    let mut writer = Writer {
        text,
        tokens: &tokens,
        at: 0,
        out: String::new(),
        written_end: 0,
        is_changed: false,
        depth,
    };
    while writer.at < tokens.len() {
        writer.step();
    }
    let Writer {
        out, is_changed, ..
    } = writer;
    is_changed.then(|| out.trim().to_owned())
}

/// The connective between two terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joint {
    And,
    Or,
    Not,
}

struct Writer<'t> {
    text: &'t str,
    tokens: &'t [Token],
    /// The next token.
    at: usize,
    out: String,
    /// How far the text is written.
    written_end: usize,
    is_changed: bool,
    depth: usize,
}

impl Writer<'_> {
    fn step(&mut self) {
        let done = self.prefix()
            || self.signed()
            || self.membership()
            || self.grouped()
            || self.between()
            || self.null()
            || self.comparison_word()
            || self.piped()
            || self.joint();
        if !done {
            self.term();
        }
    }

    fn token(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    fn written(&self, token: &Token) -> &str {
        &self.text[token.span.clone()]
    }

    /// The word so far ahead, as it is written.
    fn word(&self, ahead: usize) -> Option<&str> {
        let token = self.token(ahead)?;
        (token.kind == Kind::Word).then(|| self.written(token))
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        self.word(ahead)
            .is_some_and(|written| written.eq_ignore_ascii_case(word))
    }

    /// True if the word is written in upper case, as SQL's keywords are.
    fn is_upper(&self, ahead: usize) -> bool {
        self.word(ahead)
            .is_some_and(|word| !word.bytes().any(|b| b.is_ascii_lowercase()))
    }

    /// Writes the next tokens as they are, or as something else.
    fn write(&mut self, count: usize, instead: Option<&str>) {
        let (Some(first), Some(last)) = (self.token(0), self.token(count - 1)) else {
            return;
        };
        let (start, end) = (first.span.start, last.span.end);
        self.out.push_str(&self.text[self.written_end..start]);
        let written = &self.text[start..end];
        match instead.filter(|instead| *instead != written) {
            Some(instead) => {
                self.out.push_str(instead);
                self.is_changed = true;
            }
            None => self.out.push_str(written),
        }
        self.written_end = end;
        self.at += count;
    }

    /// `where status = 500`, `.[] | select(…)`, `T | where …`: what stands before the question.
    fn prefix(&mut self) -> bool {
        let first = self.word(0).unwrap_or_default().to_ascii_lowercase();
        let is_compared = self.word(2).is_some_and(is_comparison);
        let is_step = FILTER_STEPS.contains(&&*first) && (self.is_structured(1) || is_compared);
        let is_jq = matches!(&*first, "." | ".[]") && self.is_word(1, "|");
        let is_filter = |ahead: usize| {
            let word = self.word(ahead).unwrap_or_default();
            FILTER_STEPS.contains(&&*word.to_ascii_lowercase())
        };
        let is_kusto = self.word(0).is_some_and(is_table) && self.is_word(1, "|") && is_filter(2);
        let is_piped = first == "|" && is_filter(1);
        let count = match self.at {
            0 if is_step => 1,
            0 if is_jq || is_piped => 2,
            0 if is_kusto => 3,
            0 if first == "select" => match self.columns() {
                Some(count) => count,
                None => return false,
            },
            _ => return false,
        };
        self.write(count, Some(""));
        true
    }

    /// The words before the condition of `select * where user = "ann"`, which names no table.
    fn columns(&self) -> Option<usize> {
        let mut words = (1..=COLUMNS_MAX).map(|ahead| (ahead, self.word(ahead)));
        let ends = |word: &str| word.eq_ignore_ascii_case("where");
        let (ahead, _) = words.find(|(_, word)| word.is_none_or(ends))?;
        (ahead > 1 && self.is_word(ahead, "where")).then_some(ahead + 1)
    }

    /// `+order -user:bob`: Lucene's signs of words that must be there and of those that must not.
    fn signed(&mut self) -> bool {
        let is_signed = |token: &Token| {
            let written = self.written(token);
            let rest = written.trim_start_matches(['+', '-']);
            rest.len() + 1 == written.len() && !rest.is_empty()
        };
        let are_signed = self.tokens.iter().all(is_signed);
        let has_plus = |token: &Token| self.written(token).starts_with('+');
        if !are_signed || !self.tokens.iter().any(has_plus) {
            return false;
        }
        let Some(token) = self.token(0) else {
            return false;
        };
        let written = self.written(token);
        let rest = &written[1..];
        let condition = condition_of(rest).and_then(|condition| self.condition(&condition));
        let negation = if written.starts_with('-') { "NOT " } else { "" };
        let joint = if self.at > 0 { "AND " } else { "" };
        let term = format!("{joint}{negation}{}", condition.as_deref().unwrap_or(rest));
        self.write(1, Some(&term));
        true
    }

    /// `level in (error, warn)`, `level NOT IN ('error')`.
    fn membership(&mut self) -> bool {
        let Some(name) = self.name(0) else {
            return false;
        };
        let not = usize::from(self.is_word(1, "not"));
        let Some(word) = self.word(1 + not) else {
            return false;
        };
        let (list, count) = match word.to_ascii_lowercase().as_str() {
            "in" | "in~" => {
                let bare = self.word(2 + not).filter(|list| list.contains(','));
                let list = self.brackets(2 + not);
                let Some((inner, count)) = list.or(bare.map(|list| (list.to_owned(), 1))) else {
                    return false;
                };
                (inner, 2 + not + count)
            }
            lower if lower.starts_with("in(") && lower.ends_with(')') => {
                (word["in(".len()..word.len() - 1].to_owned(), 2 + not)
            }
            _ => return false,
        };
        let Some(choices) = choices(&name, "=", &list) else {
            return false;
        };
        let negation = if not == 1 { "NOT " } else { "" };
        self.write(count, Some(&format!("{negation}{choices}")));
        true
    }

    /// `level = (error OR warn)`, `level= (error warn)`.
    fn grouped(&mut self) -> bool {
        let next = self.token(1);
        let apart = next.filter(|token| token.kind == Kind::Operator);
        let apart = apart.map(|token| self.written(token));
        let word = self.word(0).unwrap_or_default();
        let name = word.trim_end_matches(|c: char| "=!<>~:".contains(c));
        let (operator, ahead) = match apart {
            Some(operator) => (operator, 2),
            None => (&word[name.len()..], 1),
        };
        let Some(operator) = ours(operator) else {
            return false;
        };
        let condition = condition_of(&format!("{name}=x"));
        let list = self.brackets(ahead);
        let (Some(condition), Some((list, count))) = (condition, list) else {
            return false;
        };
        let Some(choices) = listed(&condition.name, operator, &list) else {
            return false;
        };
        self.write(ahead + count, Some(&choices));
        true
    }

    /// The tokens in the parentheses or brackets that open so far ahead, and how many they are.
    fn brackets(&self, ahead: usize) -> Option<(String, usize)> {
        let open = self.token(ahead)?;
        let is_list = self.word(ahead).is_some_and(|word| word.starts_with('['));
        if open.kind != Kind::Open && !is_list {
            return None;
        }
        let ends = |token: &Token| {
            if is_list {
                self.written(token).ends_with(']')
            } else {
                token.kind == Kind::Close
            }
        };
        let rest = &self.tokens[self.at + ahead..];
        let last = rest.iter().position(ends)?;
        let inner = open.span.start + 1..rest[last].span.end - 1;
        Some((self.text[inner].to_owned(), last + 1))
    }

    /// `status between 400 and 499`.
    fn between(&mut self) -> bool {
        let not = usize::from(self.is_word(1, "not"));
        let is_meant = self.is_word(1 + not, "between") && self.is_word(3 + not, "and");
        let (Some(name), Some(low), Some(high)) =
            (self.name(0), self.word(2 + not), self.word(4 + not))
        else {
            return false;
        };
        let are_numbers = [low, high].iter().all(|n| n.parse::<f64>().is_ok());
        if !is_meant || !are_numbers {
            return false;
        }
        let negation = if not == 1 { "NOT " } else { "" };
        let range = format!("{negation}({name}>={low} AND {name}<={high})");
        self.write(5 + not, Some(&range));
        true
    }

    /// `user IS NOT NULL`.
    fn null(&mut self) -> bool {
        let not = usize::from(self.is_word(2, "not"));
        let is_meant = self.is_word(1, "is") && self.is_word(2 + not, "null");
        let Some(name) = self.name(0).filter(|_| is_meant && self.is_upper(1)) else {
            return false;
        };
        let negation = if not == 1 { "" } else { "NOT " };
        self.write(3 + not, Some(&format!("{negation}{name}:*")));
        true
    }

    /// `path LIKE '/api%'`, `msg contains "pay"`, and jq's `.msg | contains("pay")`.
    fn comparison_word(&mut self) -> bool {
        let Some(name) = self.name(0) else {
            return false;
        };
        let not = usize::from(self.is_word(1, "not"));
        let Some(word) = self.word(1 + not).map(str::to_ascii_lowercase) else {
            return false;
        };
        let (test, text, count) = match self.token(2 + not).map(|token| &token.kind) {
            Some(Kind::Quoted(text)) => (word.clone(), text.clone(), 3 + not),
            Some(Kind::Word) if matches!(&*word, "like" | "ilike") => {
                let text = self.word(2 + not).unwrap_or_default();
                if !text.contains('%') && !self.is_upper(1 + not) {
                    return false;
                }
                (word.clone(), text.to_owned(), 3 + not)
            }
            Some(Kind::Native) if matches!(&*word, "like" | "ilike") => {
                return self.like_expression(&name, not);
            }
            Some(Kind::Word) if word == "|" => match self.call(2) {
                Some((function, text)) => (function, text, 3),
                None => return false,
            },
            _ => return false,
        };
        let Some(condition) = by_word(&name, test.trim_start_matches('!'), &text) else {
            return false;
        };
        let is_negated = not == 1 || test.starts_with('!');
        let negation = if is_negated { "NOT " } else { "" };
        self.write(count, Some(&format!("{negation}{condition}")));
        true
    }

    /// `@message like /order [0-9]+/`, as CloudWatch has it.
    fn like_expression(&mut self, name: &str, not: usize) -> bool {
        let Some(token) = self.token(2 + not) else {
            return false;
        };
        let negation = if not == 1 { "NOT " } else { "" };
        let condition = format!("{negation}{name}~{}", self.written(token));
        self.write(3 + not, Some(&condition));
        true
    }

    /// A function and the text that it is given: `contains("pay")`.
    fn call(&self, ahead: usize) -> Option<(String, String)> {
        let (function, rest) = self.word(ahead)?.split_once('(')?;
        let given = tokens(rest.strip_suffix(')')?);
        let [token] = &given[..] else {
            return None;
        };
        match &token.kind {
            Kind::Quoted(text) => Some((function.to_owned(), text.clone())),
            _ => None,
        }
    }

    /// A pipeline: filters go on, of other steps the search before them is left.
    fn piped(&mut self) -> bool {
        let Some(token) = self.token(0).filter(|_| self.at > 0) else {
            return false;
        };
        let sign = self.written(token);
        if let Some(Kind::Quoted(text)) = self.token(1).map(|token| &token.kind) {
            let term = match sign {
                "|=" => quoted(text),
                "|~" => Pattern::regex(text, false).to_string(),
                "!=" => format!("NOT {}", quoted(text)),
                "!~" => format!("NOT {}", Pattern::regex(text, false)),
                _ => return false,
            };
            self.write(2, Some(&format!("AND {term}")));
            return true;
        }
        let next = self.word(1).unwrap_or_default().to_ascii_lowercase();
        if sign != "|" {
            return false;
        }
        if PARSERS.contains(&&*next) {
            self.write(2, Some(""));
        } else if FILTER_STEPS.contains(&&*next) {
            self.write(2, Some("AND"));
        } else if STEPS.contains(&&*next) {
            self.write(self.tokens.len() - self.at, Some(""));
        } else if self.is_step_before() && self.is_structured(1) {
            self.write(1, Some("AND"));
        } else {
            return false;
        }
        true
    }

    /// `or`, `&&`, `not` and the like between terms.
    fn joint(&mut self) -> bool {
        let Some(joint) = self.joint_at(self.at) else {
            return false;
        };
        let ours = match joint {
            Joint::And => "AND",
            Joint::Or => "OR",
            Joint::Not => "NOT",
        };
        // `a=1||b=2`
        let start = self.tokens[self.at].span.start;
        if self.written_end == start && start > 0 {
            self.out.push(' ');
        }
        self.write(1, Some(ours));
        let next = self.token(0).map(|next| next.span.start);
        if next == Some(self.written_end) {
            self.out.push(' ');
        }
        true
    }

    /// The connective that stands here, if any does.
    fn joint_at(&self, at: usize) -> Option<Joint> {
        let token = self
            .tokens
            .get(at)
            .filter(|token| token.kind == Kind::Word)?;
        let written = self.written(token);
        let joint = match written {
            "OR" | "or" | "Or" | "||" | "|" => Joint::Or,
            "AND" | "and" | "And" | "&&" => Joint::And,
            "NOT" | "not" | "Not" | "!" => Joint::Not,
            _ => return None,
        };
        let kind = |at: Option<usize>| at.and_then(|at| self.tokens.get(at)).map(|t| &t.kind);
        let is_behind = !matches!(kind(at.checked_sub(1)), None | Some(Kind::Open));
        let is_before = !matches!(kind(Some(at + 1)), None | Some(Kind::Close));
        let is_sure = written
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b"|&".contains(&b));
        let is_meant = match joint {
            Joint::Not => {
                let joint_before = at.checked_sub(1).and_then(|before| self.joint_at(before));
                let begins = at
                    .checked_sub(1)
                    .is_none_or(|before| self.is_structured_at(before));
                let is_of_condition = begins && self.is_structured_at(at + 1);
                is_sure || joint_before.is_some() || is_of_condition
            }
            Joint::And | Joint::Or => {
                let is_short = self.tokens.len() <= SHORT_MAX;
                let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
                let mut beside = beside.map(|at| self.is_structured_at(at));
                is_behind && (is_sure || is_short || beside.any(|is_structured| is_structured))
            }
        };
        (is_before && is_meant).then_some(joint)
    }

    /// True if a token is more than a word of a sentence.
    fn is_structured_at(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| match token.kind {
            Kind::Word => {
                let written = self.written(token);
                let inner = written.trim_start_matches(['-', '!']);
                let is_call = call_of(written).is_some();
                is_call || inner != written && condition_of(inner).is_some()
            }
            Kind::Operator => false,
            _ => true,
        })
    }

    fn is_structured(&self, ahead: usize) -> bool {
        self.is_structured_at(self.at + ahead)
    }

    /// True if a condition or a parser of lines stands before this.
    fn is_step_before(&self) -> bool {
        let before = self.at.checked_sub(1);
        before.is_some_and(|before| {
            let written = self.written(&self.tokens[before]);
            self.is_structured_at(before) || PARSERS.contains(&written)
        })
    }

    fn is_beside_joint(&self) -> bool {
        let beside = [self.at.checked_sub(1), Some(self.at + 1)];
        let mut beside = beside.into_iter().flatten();
        beside.any(|at| self.joint_at(at).is_some())
    }

    /// The name of a field that stands alone so far ahead.
    fn name(&self, ahead: usize) -> Option<String> {
        condition_of(&format!("{}=x", self.word(ahead)?)).map(|condition| condition.name)
    }

    /// Anything else.
    fn term(&mut self) {
        let Some(token) = self.token(0) else {
            return;
        };
        let written = self.written(token);
        let instead = match &token.kind {
            Kind::Condition(condition) => self.condition(condition),
            // Other quotes are quotes beside an operator only: `user 'ann' is not there`.
            Kind::Quoted(text) if !written.starts_with('"') && self.is_beside_joint() => {
                Some(quoted(text))
            }
            Kind::Word => self
                .negated(written)
                .or_else(|| self.selected(written))
                .or_else(|| presence(written))
                .or_else(|| nearby(written)),
            _ => None,
        };
        self.write(1, instead.as_deref());
    }

    /// `-status=200`, `!status=200`.
    fn negated(&self, written: &str) -> Option<String> {
        let rest = written.strip_prefix(['-', '!'])?;
        let is_term = rest.starts_with(|c: char| c.is_alphabetic() || c == '"' || c == '_');
        let condition = condition_of(rest).and_then(|condition| self.condition(&condition));
        is_term.then(|| format!("NOT {}", condition.as_deref().unwrap_or(rest)))
    }

    /// jq's `select(.status == 500)`.
    fn selected(&self, written: &str) -> Option<String> {
        let inner = call_of(written).filter(|_| self.depth > 0)?;
        let inner = translated_within(inner, self.depth - 1).unwrap_or_else(|| inner.to_owned());
        Some(format!("({inner})"))
    }

    /// A condition in this language; `None` if it cannot be told.
    fn condition(&self, condition: &Condition) -> Option<String> {
        let is_last = self.at + 1 == self.tokens.len();
        let Condition {
            name,
            operator,
            value,
        } = condition;
        // `a=1, b=2`
        let value = if is_last {
            value.as_str()
        } else {
            value.strip_suffix(',').unwrap_or(value)
        };
        if name == "_exists_" && *operator == ":" {
            return Some(format!("{value}:*"));
        }
        let plain = || Some(format!("{name}{operator}{value}"));
        let first = value.chars().next()?;
        match first {
            '"' | 'i' if value.ends_with('"') => return plain(),
            '\'' | '`' => {
                let given = tokens(value);
                let [token] = &given[..] else {
                    return None;
                };
                return match &token.kind {
                    Kind::Quoted(text) => Some(format!("{name}{operator}{}", quoted(text))),
                    _ => None,
                };
            }
            '/' if value.len() > 1 && matches!(*operator, ":" | "=") && value.ends_with('/') => {
                return Some(format!("{name}~{value}"));
            }
            '(' if value.ends_with(')') && matches!(*operator, ":" | "=" | "!=") => {
                return listed(name, operator, &value[1..value.len() - 1]);
            }
            '[' | '{' if *operator == ":" => return range(name, value),
            _ => {}
        }
        // Lists of choices, as regular expressions and SQL's lists have them.
        if *operator == "=" && value.split(['|', ',']).count() > 1 {
            let is_word =
                |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
            if value.split(['|', ',']).all(is_word) {
                return choices(name, "=", value);
            }
        }
        match wildcard(name, operator, value) {
            Some(condition) => Some(condition),
            None => plain(),
        }
    }
}

/// `exists(user)`, `isnull(user)`: functions that ask whether a field is there.
fn presence(written: &str) -> Option<String> {
    let (function, name) = written.strip_suffix(')')?.split_once('(')?;
    let name = condition_of(&format!("{name}=x"))?.name;
    match &*function.to_ascii_lowercase() {
        "exists" | "has" | "isnotnull" | "isnotempty" => Some(format!("{name}:*")),
        "isnull" | "isempty" | "missing" => Some(format!("NOT {name}:*")),
        _ => None,
    }
}

/// Lucene's `"order paid"~5`, words that are near each other: here those that one record has.
fn nearby(written: &str) -> Option<String> {
    let (phrase, distance) = written.strip_prefix('"')?.split_once("\"~")?;
    let is_distance = !distance.is_empty() && distance.bytes().all(|b| b.is_ascii_digit());
    let words: Vec<String> = phrase.split_whitespace().map(quoted).collect();
    (is_distance && words.len() > 1).then(|| format!("({})", words.join(" AND ")))
}

/// The condition in jq's `select(…)`.
fn call_of(written: &str) -> Option<&str> {
    written.strip_prefix("select(")?.strip_suffix(')')
}

/// One of several values, or none of them behind `!=`. `None` for operators that have no lists.
fn listed(name: &str, operator: &str, list: &str) -> Option<String> {
    match operator {
        "=" | ":" => choices(name, operator, list),
        "!=" => choices(name, "=", list).map(|choices| format!("NOT {choices}")),
        _ => None,
    }
}

/// One of several values: `(level=error OR level=warn)`.
fn choices(name: &str, operator: &str, list: &str) -> Option<String> {
    let list = spaced(list);
    let mut values: Vec<String> = Vec::new();
    let mut is_all = false;
    for token in tokens(&list) {
        let written = &list[token.span.clone()];
        match &token.kind {
            Kind::Quoted(text) => values.push(format!("{name}{operator}{}", quoted(text))),
            Kind::Word if written.eq_ignore_ascii_case("or") || written == "||" => {}
            Kind::Word if written.eq_ignore_ascii_case("and") || written == "&&" => is_all = true,
            Kind::Word if written.eq_ignore_ascii_case("not") => return None,
            Kind::Word | Kind::Condition(_) => {
                let plain = format!("{name}{operator}{}", valued(written));
                values.push(wildcard(name, operator, written).unwrap_or(plain));
            }
            _ => return None,
        }
    }
    let joint = if is_all { " AND " } else { " OR " };
    (!values.is_empty()).then(|| format!("({})", values.join(joint)))
}

/// A list with spaces between its elements.
fn spaced(list: &str) -> String {
    let mut quote = None;
    let between = |c: char| match (quote, c) {
        (None, ',' | '|') => ' ',
        (None, '"' | '\'') => {
            quote = Some(c);
            c
        }
        (Some(open), _) if open == c => {
            quote = None;
            c
        }
        _ => c,
    };
    list.chars().map(between).collect()
}

/// A value without quotes, with them if it needs some.
fn valued(written: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_./:+@-".contains(&b);
    if written.bytes().all(is_plain) {
        written.to_owned()
    } else {
        quoted(written)
    }
}

/// Lucene's `status:[400 TO 499]`; braces leave the ends out.
fn range(name: &str, value: &str) -> Option<String> {
    let inner = value.get(1..value.len().checked_sub(1)?)?;
    let mut words = inner.split_whitespace();
    let (low, to, high) = (words.next()?, words.next()?, words.next()?);
    if to != "TO" || words.next().is_some() {
        return None;
    }
    let above = if value.starts_with('[') { ">=" } else { ">" };
    let below = if value.ends_with(']') { "<=" } else { "<" };
    let ends = [(above, low), (below, high)];
    let ends = ends.iter().filter(|(_, end)| *end != "*");
    let ends: Vec<String> = ends
        .map(|(sign, end)| format!("{name}{sign}{end}"))
        .collect();
    if ends.is_empty() {
        Some(format!("{name}:*"))
    } else {
        Some(format!("({})", ends.join(" AND ")))
    }
}

/// `user=an*`: stars stand for any text. `None` if there is none.
fn wildcard(name: &str, operator: &str, value: &str) -> Option<String> {
    let is_wild = value.contains('*') && !value.contains(['"', '\\']);
    let is_negated = operator == "!=";
    if !is_wild || !matches!(operator, "=" | ":" | "!=") {
        return None;
    }
    let negation = if is_negated { "NOT " } else { "" };
    if value == "*" {
        return Some(format!("{negation}{name}:*"));
    }
    Some(format!("{negation}{}", like(name, value, '*', false)))
}

/// A field whose text is like a pattern with one sign for any text.
fn like(name: &str, pattern: &str, any: char, folded: bool) -> String {
    let inner = pattern.trim_matches(any);
    let (at_start, at_end) = (!pattern.starts_with(any), !pattern.ends_with(any));
    if !at_start && !at_end && !inner.contains(any) && !inner.is_empty() {
        let prefix = if folded { "i" } else { "" };
        return format!("{name}:{prefix}{}", quoted(inner));
    }
    let parts: Vec<String> = inner.split(any).map(super::arguments::escaped).collect();
    let source = format!(
        "{}{}{}",
        if at_start { "^" } else { "" },
        parts.join(".*"),
        if at_end { "$" } else { "" }
    );
    format!("{name}~{}", Pattern::regex(&source, folded))
}

/// True for what is called as tables are in Kusto's language, and ours in SQL: `SecurityEvent`, `logs`.
fn is_table(word: &str) -> bool {
    let is_name = word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    word == "logs" || is_name && word.starts_with(|c: char| c.is_ascii_uppercase())
}

/// True if a word compares the field before it with what follows.
fn is_comparison(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    matches!(&*word, "in" | "not" | "between" | "is") || by_word("x", &word, "x").is_some()
}

/// A comparison that other languages write as a word.
fn by_word(name: &str, test: &str, text: &str) -> Option<String> {
    let escaped = super::arguments::escaped(text);
    let regex = |source: &str| format!("{name}~{}", Pattern::regex(source, false));
    Some(match test {
        "like" if !text.is_empty() => like(name, text, '%', false),
        "ilike" if !text.is_empty() => like(name, text, '%', true),
        "contains" | "has" | "includes" => format!("{name}:{}", quoted(text)),
        "startswith" | "starts_with" => regex(&format!("^{escaped}")),
        "endswith" | "ends_with" => regex(&format!("{escaped}$")),
        "test" | "match" | "matches" | "rlike" | "regexp" => regex(text),
        _ => return None,
    })
}

/// A text in this language's quotes.
fn quoted(text: &str) -> String {
    Pattern::substring(text.as_bytes(), false).to_string()
}

/// True if a text begins or ends with what joins terms in some language: nobody looks for such a text.
pub(super) fn has_stray_joint(filter: &Filter) -> bool {
    match filter {
        Filter::All | Filter::Field(_) => false,
        Filter::And(parts) | Filter::Or(parts) => parts.iter().any(has_stray_joint),
        Filter::Not(inner) => has_stray_joint(inner),
        Filter::Text(Pattern::Regex { .. }) => false,
        Filter::Text(Pattern::Substring { text, .. }) => {
            const ENDS: [&str; 8] = ["or", "and", "||", "&&", "|", "&", "|=", "|~"];
            // `not found` and `in progress` are texts.
            const LAST: [&str; 6] = ["not", "in", "like", "is", "!=", "where"];
            let text = String::from_utf8_lossy(text).to_ascii_lowercase();
            let words: Vec<&str> = text.split_whitespace().collect();
            let (first, last) = (words.first(), words.last());
            let ends = [first, last].into_iter().flatten();
            ends.into_iter().any(|word| ENDS.contains(word))
                || last.is_some_and(|word| LAST.contains(word))
        }
    }
}
