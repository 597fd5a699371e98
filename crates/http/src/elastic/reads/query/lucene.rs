//! The syntax of Lucene: its tokens, and how its operators combine clauses.
//!
//! Operators work as in Lucene's classic parser: `AND` makes the clauses at both its sides required, `NOT` and `-`
//! prohibit one, and clauses that are neither are a choice, which only counts where none is required.

use logpond_search::Filter;

use super::super::json::bad;
use super::nothing;
use super::patterns::Piece;
use crate::error::ApiError;

/// A token of a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    And,
    Or,
    Not,
    Plus,
    Minus,
    Open,
    Close,
    /// A name with a colon behind it.
    Field(String),
    /// A word with its wildcards.
    Word(Vec<Piece>),
    Phrase(String),
    Regexp(String),
    /// `[a TO b]`, `{a TO b}` and both mixed; a star is no bound.
    Range {
        from: String,
        to: String,
        has_from: bool,
        has_to: bool,
    },
    /// `>=10` and the like.
    Comparison(&'static str, String),
    /// `~` with what is behind it.
    Tilde(String),
    /// `^` with what is behind it, which changes scores only.
    Boost,
}

/// Characters that end a word.
const SPECIAL: &str = "()[]{}\"^~:";

/// Splits a query into tokens.
///
/// # Errors
/// When a quotation mark, a slash or a bracket is not closed.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ApiError> {
    let mut lexer = Lexer {
        chars: text.chars().collect(),
        at: 0,
        tokens: Vec::new(),
    };
    while let Some(c) = lexer.peek(0) {
        lexer.token(c)?;
    }
    Ok(lexer.tokens)
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    tokens: Vec<Token>,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn push(&mut self, token: Token, length: usize) {
        self.tokens.push(token);
        self.at += length;
    }

    fn token(&mut self, c: char) -> Result<(), ApiError> {
        match c {
            c if c.is_whitespace() => self.at += 1,
            '(' => self.push(Token::Open, 1),
            ')' => self.push(Token::Close, 1),
            '+' => self.push(Token::Plus, 1),
            '-' => self.push(Token::Minus, 1),
            '!' => self.push(Token::Not, 1),
            '&' if self.peek(1) == Some('&') => self.push(Token::And, 2),
            '|' if self.peek(1) == Some('|') => self.push(Token::Or, 2),
            '"' => {
                let phrase = self.quoted('"')?;
                self.tokens.push(Token::Phrase(phrase));
            }
            '/' => {
                let source = self.regexp()?;
                self.tokens.push(Token::Regexp(source));
            }
            '[' | '{' => self.range(c == '[')?,
            '>' | '<' => {
                let has_equal = self.peek(1) == Some('=');
                let operator = match (c, has_equal) {
                    ('>', true) => "gte",
                    ('>', false) => "gt",
                    (_, true) => "lte",
                    (_, false) => "lt",
                };
                self.at += if has_equal { 2 } else { 1 };
                let value = self.comparison_value()?;
                self.tokens.push(Token::Comparison(operator, value));
            }
            '^' => {
                self.at += 1;
                self.number();
                self.tokens.push(Token::Boost);
            }
            '~' => {
                self.at += 1;
                let number = self.number();
                self.tokens.push(Token::Tilde(number));
            }
            ']' | '}' | ':' => {
                return Err(bad(format!("[query_string]: there is no place for [{c}]")));
            }
            _ => self.word(),
        }
        Ok(())
    }

    fn number(&mut self) -> String {
        let start = self.at;
        while self.peek(0).is_some_and(|c| c.is_ascii_digit() || c == '.') {
            self.at += 1;
        }
        self.chars
            .get(start..self.at)
            .unwrap_or_default()
            .iter()
            .collect()
    }

    /// The text up to a closing mark, which a backslash takes as it is.
    fn quoted(&mut self, mark: char) -> Result<String, ApiError> {
        let mut out = String::new();
        self.at += 1;
        while let Some(c) = self.peek(0) {
            self.at += 1;
            if c == mark {
                return Ok(out);
            }
            if c == '\\' {
                out.extend(self.peek(0));
                self.at += 1;
            } else {
                out.push(c);
            }
        }
        Err(bad(format!("[query_string]: a [{mark}] is not closed")))
    }

    /// A regular expression, whose backslashes stay, but for those before slashes.
    fn regexp(&mut self) -> Result<String, ApiError> {
        let mut out = String::new();
        self.at += 1;
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                '/' => return Ok(out),
                '\\' => {
                    let next = self.peek(0);
                    self.at += 1;
                    if next != Some('/') {
                        out.push('\\');
                    }
                    out.extend(next);
                }
                c => out.push(c),
            }
        }
        Err(bad(
            "[query_string]: a [/] is not closed; write \\/ for a slash",
        ))
    }

    fn skip_space(&mut self) {
        while self.peek(0).is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// A bound of a range: a quoted text, or one up to a space or a bracket.
    fn bound(&mut self) -> Result<String, ApiError> {
        self.skip_space();
        if self.peek(0) == Some('"') {
            return self.quoted('"');
        }
        let mut out = String::new();
        while let Some(c) = self.peek(0) {
            if c.is_whitespace() || matches!(c, ']' | '}') {
                break;
            }
            self.at += 1;
            if c == '\\' {
                out.extend(self.peek(0));
                self.at += 1;
            } else {
                out.push(c);
            }
        }
        Ok(out)
    }

    fn range(&mut self, has_from: bool) -> Result<(), ApiError> {
        self.at += 1;
        let from = self.bound()?;
        let to_word = self.bound()?;
        let to = self.bound()?;
        self.skip_space();
        let has_to = match self.peek(0) {
            Some(']') => true,
            Some('}') => false,
            _ => return Err(bad("[query_string]: a range is [a TO b] or {a TO b}")),
        };
        self.at += 1;
        if to_word != "TO" || from.is_empty() || to.is_empty() {
            return Err(bad("[query_string]: a range is [a TO b] or {a TO b}"));
        }
        self.tokens.push(Token::Range {
            from,
            to,
            has_from,
            has_to,
        });
        Ok(())
    }

    fn comparison_value(&mut self) -> Result<String, ApiError> {
        self.skip_space();
        if self.peek(0) == Some('"') {
            return self.quoted('"');
        }
        let start = self.at;
        while self
            .peek(0)
            .is_some_and(|c| !c.is_whitespace() && !"()".contains(c))
        {
            self.at += 1;
        }
        let value: String = self
            .chars
            .get(start..self.at)
            .unwrap_or_default()
            .iter()
            .collect();
        if value.is_empty() {
            return Err(bad("[query_string]: a comparison needs a value"));
        }
        Ok(value.replace('\\', ""))
    }

    fn word(&mut self) {
        let mut pieces = Vec::new();
        let mut is_plain = true;
        while let Some(c) = self.peek(0) {
            if c.is_whitespace() || SPECIAL.contains(c) {
                break;
            }
            self.at += 1;
            pieces.push(match c {
                '\\' => {
                    is_plain = false;
                    let next = self.peek(0).unwrap_or('\\');
                    self.at += 1;
                    Piece::Letter(next)
                }
                '*' => Piece::Star,
                '?' => Piece::Question,
                c => Piece::Letter(c),
            });
        }
        if self.peek(0) == Some(':') {
            self.at += 1;
            self.tokens.push(Token::Field(written(&pieces)));
            return;
        }
        let text = written(&pieces);
        self.tokens.push(match &*text {
            "AND" if is_plain => Token::And,
            "OR" if is_plain => Token::Or,
            "NOT" if is_plain => Token::Not,
            _ => Token::Word(pieces),
        });
    }
}

/// The pieces as text.
pub(super) fn written(pieces: &[Piece]) -> String {
    let letters = pieces.iter().map(|piece| match piece {
        Piece::Star => '*',
        Piece::Question => '?',
        Piece::Letter(c) => *c,
    });
    letters.collect()
}

/// How a clause counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occur {
    Must,
    Should,
    MustNot,
}

/// The word between two clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conjunction {
    None,
    And,
    Or,
}

/// Clauses of one level.
#[derive(Debug, Default)]
pub(super) struct Clauses {
    list: Vec<(Occur, Filter)>,
}

impl Clauses {
    /// Adds a clause behind the others.
    pub(super) fn add(
        &mut self,
        conjunction: Conjunction,
        modifier: Option<Occur>,
        filter: Filter,
        is_and_default: bool,
    ) {
        if let Some((occur, _)) = self.list.last_mut()
            && *occur != Occur::MustNot
        {
            if conjunction == Conjunction::And {
                *occur = Occur::Must;
            } else if conjunction == Conjunction::Or && is_and_default {
                *occur = Occur::Should;
            }
        }
        let is_required = if is_and_default {
            conjunction != Conjunction::Or
        } else {
            conjunction == Conjunction::And
        };
        let occur = match modifier {
            Some(occur) => occur,
            None if is_required => Occur::Must,
            None => Occur::Should,
        };
        self.list.push((occur, filter));
    }

    /// The filter of all; no clause at all wants nothing.
    pub(super) fn filter(self) -> Filter {
        let of = |wanted: Occur| {
            let clauses = self.list.iter().filter(move |(occur, _)| *occur == wanted);
            clauses.map(|(_, filter)| filter.clone())
        };
        if self.list.is_empty() {
            return nothing();
        }
        let mut parts: Vec<Filter> = of(Occur::Must).collect();
        if parts.is_empty() && of(Occur::Should).next().is_some() {
            parts.push(Filter::or(of(Occur::Should)));
        }
        parts.extend(of(Occur::MustNot).map(Filter::negate));
        Filter::and(parts)
    }
}
