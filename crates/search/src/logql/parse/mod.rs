//! From tokens to a tree, by recursive descent.
//!
//! Bounds: [`super::DEPTH_MAX`] on nesting, [`super::PARTS_MAX`] on what a query is made of.

mod metric;
mod pipeline;
mod selector;

use super::ast::{LabelMatcher, LogQuery, Query};
use super::error::ParseError;
use super::lexer::{Kind, Token, tokens};
use super::{DEPTH_MAX, PARTS_MAX, Span};

type Result<T> = std::result::Result<T, ParseError>;

/// Parses a query.
///
/// # Errors
/// When the text is none.
pub fn parse(text: &str) -> Result<Query> {
    let mut parser = Parser::new(text)?;
    let query = if parser.begins_with_selector() {
        Query::Log(parser.log_query()?)
    } else {
        Query::Metric(parser.metric()?)
    };
    parser.end()?;
    Ok(query)
}

/// Parses a query for lines.
///
/// # Errors
/// When the text is none.
pub fn parse_log(text: &str) -> Result<LogQuery> {
    match parse(text)? {
        Query::Log(log) => Ok(log),
        Query::Metric(_) => {
            let span = Span {
                start: 0,
                end: text.len(),
            };
            let error = ParseError::new(text, span, "only log selector is supported");
            Err(error.suggest("take the query out of its aggregation"))
        }
    }
}

/// Parses matchers alone, such as `{app="shop"}`; nothing at all is no matchers.
///
/// # Errors
/// When the text is something else.
pub fn parse_matchers(text: &str) -> Result<Vec<LabelMatcher>> {
    let mut parser = Parser::new(text)?;
    if parser.kind() == &Kind::End {
        return Ok(Vec::new());
    }
    let matchers = parser.matchers()?;
    if parser.kind() != &Kind::End {
        return Err(parser.error_here("only label matchers are supported"));
    }
    Ok(matchers)
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    parts: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>> {
        Ok(Parser {
            text,
            tokens: tokens(text)?,
            at: 0,
            depth: 0,
            parts: 0,
        })
    }

    fn token(&self, ahead: usize) -> &Token {
        // The last token is the end, and follows itself.
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn kind(&self) -> &Kind {
        &self.token(0).kind
    }

    fn span(&self) -> Span {
        self.token(0).span
    }

    /// Where the last token stands.
    fn span_before(&self) -> Span {
        match self.at.checked_sub(1) {
            Some(before) => self.tokens[before].span,
            None => Span::at(0),
        }
    }

    fn advance(&mut self) -> Kind {
        let kind = self.kind().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        kind
    }

    fn is_sign(&self, sign: &str) -> bool {
        self.is_sign_ahead(0, sign)
    }

    fn is_sign_ahead(&self, ahead: usize, sign: &str) -> bool {
        matches!(&self.token(ahead).kind, Kind::Sign(found) if *found == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.kind(), Kind::Word(found) if found.eq_ignore_ascii_case(word))
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let is_there = self.is_sign(sign);
        if is_there {
            self.advance();
        }
        is_there
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(word);
        if is_there {
            self.advance();
        }
        is_there
    }

    fn expect_sign(&mut self, sign: &'static str) -> Result<()> {
        if self.take_sign(sign) {
            Ok(())
        } else {
            Err(self.unexpected(sign))
        }
    }

    /// A name.
    fn expect_word(&mut self) -> Result<Box<str>> {
        match self.kind() {
            Kind::Word(word) => {
                let word = word.clone();
                self.advance();
                Ok(word)
            }
            _ => Err(self.unexpected("IDENTIFIER")),
        }
    }

    /// A quoted text.
    fn expect_text(&mut self) -> Result<Box<str>> {
        match self.kind() {
            Kind::Text(text) => {
                let text = text.clone();
                self.advance();
                Ok(text)
            }
            Kind::Word(word) => {
                let suggestion = format!("did you forget the quotes? write \"{word}\"");
                Err(self.unexpected("STRING").suggest(suggestion))
            }
            _ => Err(self.unexpected("STRING")),
        }
    }

    /// A number with a sign.
    fn expect_number(&mut self) -> Result<f64> {
        let is_negative = self.take_sign("-");
        let _ = !is_negative && self.take_sign("+");
        match self.kind() {
            Kind::Number(number) => {
                // Numbers of metrics are floats, as their samples are.
                let number = number.to_float();
                self.advance();
                Ok(if is_negative { -number } else { number })
            }
            _ => Err(self.unexpected("NUMBER")),
        }
    }

    /// Names between parentheses, none perhaps.
    fn names(&mut self) -> Result<Vec<Box<str>>> {
        if let Kind::Word(name) = self.kind() {
            let hint = format!("labels stand in parentheses: ({name})");
            return Err(self.unexpected("(").suggest(hint));
        }
        self.expect_sign("(")?;
        let mut names = Vec::new();
        if self.take_sign(")") {
            return Ok(names);
        }
        loop {
            names.push(self.expect_word()?);
            if self.take_sign(")") {
                return Ok(names);
            }
            if !self.take_sign(",") {
                return Err(self.unexpected(") or ,"));
            }
            self.count_part()?;
        }
    }

    fn error(&self, span: Span, message: impl Into<String>) -> ParseError {
        ParseError::new(self.text, span, message)
    }

    fn error_here(&self, message: impl Into<String>) -> ParseError {
        self.error(self.span(), message)
    }

    fn unexpected(&self, expected: &str) -> ParseError {
        let found = self.kind().describe();
        let message = format!("syntax error: unexpected {found}, expecting {expected}");
        self.error_here(message)
    }

    fn end(&self) -> Result<()> {
        match self.kind() {
            Kind::End => Ok(()),
            Kind::Sign("@") => {
                let error = self.error_here("syntax error: unexpected @");
                Err(error.suggest("there is no `@` in LogQL: ask for the time itself"))
            }
            Kind::Sign(")") => {
                let error = self.error_here("syntax error: unexpected )");
                Err(error.suggest("there is no ( that it closes"))
            }
            Kind::Sign("|") if self.is_unwrap_ahead() => {
                let error = self.error(self.token(1).span, "syntax error: unexpected unwrap");
                Err(error.suggest(
                    "it stands within an aggregation of a range: sum_over_time({…} | unwrap LABEL [5m])",
                ))
            }
            kind => {
                let message = format!("syntax error: unexpected {}", kind.describe());
                Err(self
                    .error_here(message)
                    .maybe_suggest(self.hint_behind_end()))
            }
        }
    }

    /// What may be meant by a word behind what could be a whole query.
    fn hint_behind_end(&self) -> Option<String> {
        let is_set = ["or", "and", "unless"]
            .iter()
            .any(|word| self.is_word(word));
        if self.is_word("offset") {
            Some("the offset stands behind the range: [5m] offset 1h".to_owned())
        } else if is_set && self.is_sign_ahead(1, "{") {
            Some("one selector asks for several streams: {app=~\"a|b\"}".to_owned())
        } else {
            None
        }
    }

    /// Goes a level down, as long as there are any.
    fn descend(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("the query nests deeper than {DEPTH_MAX} levels");
            return Err(self.error_here(message));
        }
        Ok(())
    }

    fn ascend(&mut self) {
        self.depth -= 1;
    }

    fn count_part(&mut self) -> Result<()> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            let message = format!("the query has more than {PARTS_MAX} parts");
            return Err(self.error_here(message));
        }
        Ok(())
    }

    /// Whether a selector follows, in parentheses perhaps.
    fn begins_with_selector(&self) -> bool {
        let mut ahead = 0;
        while self.is_sign_ahead(ahead, "(") && ahead < self.tokens.len() {
            ahead += 1;
        }
        self.is_sign_ahead(ahead, "{")
    }
}
