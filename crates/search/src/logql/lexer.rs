//! A query as words and signs.
//!
//! Words are words whatever they mean: the parser knows where one is a function, so that labels may
//! be called like functions.

use super::error::ParseError;
use super::units;
use super::{QUERY_BYTES_MAX, Span};
use crate::number::Number;

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Word(Box<str>),
    /// A quoted text.
    Text(Box<str>),
    /// A number, exactly.
    Number(Number),
    /// Nanoseconds.
    Duration(i64),
    /// Bytes.
    Bytes(u64),
    /// `[5m]`, in nanoseconds.
    Range(i64),
    /// `--strict`
    Flag(Box<str>),
    /// Anything else.
    Sign(&'static str),
    /// The end of the query.
    End,
}

impl Kind {
    /// How an error names it.
    pub(super) fn describe(&self) -> String {
        match self {
            Kind::Word(word) if KEYWORDS.contains(&&**word) => word.to_string(),
            Kind::Word(_) => "IDENTIFIER".into(),
            Kind::Text(_) => "STRING".into(),
            Kind::Number(_) => "NUMBER".into(),
            Kind::Duration(_) => "DURATION".into(),
            Kind::Bytes(_) => "BYTES".into(),
            Kind::Range(_) => "RANGE".into(),
            Kind::Flag(_) => "PARSER_FLAG".into(),
            Kind::Sign(sign) => (*sign).into(),
            Kind::End => "$end".into(),
        }
    }
}

/// Words that mean something where an operator or a grouping may stand.
const KEYWORDS: [&str; 12] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
    "bool",
    "offset",
    "and",
    "or",
    "unless",
    "unwrap",
];

/// A token and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// Signs, longer ones first.
const SIGNS: [&str; 29] = [
    "|=", "|~", "|>", "!=", "!~", "!>", "=~", "==", ">=", "<=", "|", "=", ">", "<", "{", "}", "(",
    ")", ",", "+", "-", "*", "/", "%", "^", ".", ":", "@", "!",
];

/// Takes a query apart; the last token is the end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ParseError> {
    if text.len() > QUERY_BYTES_MAX {
        let message = format!("the query is longer than {QUERY_BYTES_MAX} bytes");
        return Err(ParseError::new(text, Span::at(0), message));
    }
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space()?;
        let start = lexer.at;
        let kind = lexer.next()?;
        let is_end = kind == Kind::End;
        let span = Span {
            start,
            end: lexer.at,
        };
        tokens.push(Token { kind, span });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error(&self, start: usize, message: impl Into<String>) -> ParseError {
        let span = Span {
            start,
            end: self.at,
        };
        ParseError::new(self.text, span, message)
    }

    /// Passes over white space and comments: `# …`, `// …` and `/* … */`.
    fn skip_space(&mut self) -> Result<(), ParseError> {
        loop {
            let trimmed = self.rest().trim_start();
            self.at = self.text.len() - trimmed.len();
            if let Some(comment) = trimmed.strip_prefix("/*") {
                let start = self.at;
                let Some(end) = comment.find("*/") else {
                    self.at = self.text.len();
                    let error = self.error(start, "comment not terminated");
                    return Err(error.suggest("is the closing */ missing?"));
                };
                self.at += "/**/".len() + end;
            } else if trimmed.starts_with('#') || trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<Kind, ParseError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Kind::End);
        };
        match first {
            '"' | '`' => self.quoted(first),
            '[' => self.range(),
            '0'..='9' => self.quantity(),
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => self.quantity(),
            _ if first == '_' || first.is_alphabetic() => {
                let is_word = |c: &char| *c == '_' || c.is_alphanumeric();
                let length = rest.chars().take_while(is_word).map(char::len_utf8).sum();
                self.at += length;
                Ok(Kind::Word(rest[..length].into()))
            }
            '-' if rest.starts_with("--") && rest[2..].starts_with(char::is_alphabetic) => {
                let is_flag = |c: &char| *c == '-' || c.is_ascii_alphanumeric();
                let length = rest.chars().take_while(is_flag).count();
                self.at += length;
                Ok(Kind::Flag(rest[2..length].into()))
            }
            _ => self.sign(first),
        }
    }

    fn sign(&mut self, first: char) -> Result<Kind, ParseError> {
        let start = self.at;
        if let Some(sign) = SIGNS.iter().find(|sign| self.rest().starts_with(**sign)) {
            self.at += sign.len();
            return Ok(Kind::Sign(sign));
        }
        self.at += first.len_utf8();
        let error = self.error(
            start,
            format!("syntax error: unexpected character {first:?}"),
        );
        Err(match first {
            '\'' | '‘' | '’' | '“' | '”' => error.suggest("texts stand in \" or `"),
            _ => error,
        })
    }

    /// `[5m]`
    fn range(&mut self) -> Result<Kind, ParseError> {
        let start = self.at;
        let inside = &self.rest()[1..];
        let Some(end) = inside.find(']') else {
            self.at = self.text.len();
            let error = self.error(start, "missing closing ']' in duration");
            return Err(error.suggest("a range is a duration in brackets, such as [5m]"));
        };
        self.at += end + 2;
        let written = inside[..end].trim();
        let duration = units::duration_ns(written);
        match duration.filter(|_| !written.starts_with(['-', '+'])) {
            Some(range) if range > 0 => Ok(Kind::Range(range)),
            Some(_) => Err(self.error(start, "a range must be longer than nothing")),
            None if written.contains(':') => {
                let message = format!("not a valid duration string: {written:?}");
                Err(self
                    .error(start, message)
                    .suggest("there are no subqueries in LogQL"))
            }
            None => {
                let error = self.error(start, format!("not a valid duration string: {written:?}"));
                let is_number = written.parse::<u64>().is_ok();
                Err(if is_number {
                    error.suggest(format!("did you mean [{written}s] or [{written}m]?"))
                } else {
                    error.suggest("write numbers with units, such as [5m] or [1h30m]")
                })
            }
        }
    }

    /// A number, a duration or an amount of bytes.
    fn quantity(&mut self) -> Result<Kind, ParseError> {
        let start = self.at;
        let rest = self.rest();
        let is_part = |c: &char| c.is_alphanumeric() || matches!(c, '.' | '_');
        let mut length: usize = rest.chars().take_while(is_part).map(char::len_utf8).sum();
        // The sign of an exponent.
        if matches!(
            rest.as_bytes().get(length - 1),
            Some(b'e' | b'E' | b'p' | b'P')
        ) && matches!(rest.as_bytes().get(length), Some(b'+' | b'-'))
            && rest[..length - 1].starts_with(|c: char| c.is_ascii_digit() || c == '.')
        {
            let more = rest[length + 1..].chars().take_while(char::is_ascii_digit);
            let more = more.count();
            length += if more > 0 { more + 1 } else { 0 };
        }
        self.at += length;
        let written = &rest[..length];
        if let Some(number) = units::exact_number_of(written) {
            return Ok(Kind::Number(number));
        }
        if let Some(duration) = units::duration_ns(written) {
            return Ok(Kind::Duration(duration));
        }
        if let Some(bytes) = units::bytes_of(written) {
            return Ok(Kind::Bytes(bytes));
        }
        let message = format!("unable to parse literal as a float: {written:?} is no number");
        Err(self.error(start, message))
    }

    fn quoted(&mut self, quote: char) -> Result<Kind, ParseError> {
        let start = self.at;
        let inside = &self.rest()[1..];
        if quote == '`' {
            let Some(end) = inside.find('`') else {
                return Err(self.unclosed(start, quote));
            };
            self.at += end + 2;
            return Ok(Kind::Text(inside[..end].into()));
        }
        let mut text = Vec::new();
        let mut chars = inside.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 2;
                    let text = String::from_utf8_lossy(&text);
                    return Ok(Kind::Text(text.into()));
                }
                '\n' => return Err(self.unclosed(start, quote)),
                '\\' => {
                    let length = escape(&inside[at + 1..], &mut text);
                    let Some(length) = length else {
                        let escape_at = start + 1 + at;
                        let shown = inside[at + 1..].chars().next();
                        self.at = escape_at + 1 + shown.map_or(0, char::len_utf8);
                        let error = self.error(escape_at, "invalid char escape");
                        return Err(
                            error.suggest("write \\\\ for a backslash, or use ` for quotes")
                        );
                    };
                    for _ in inside[at + 1..at + 1 + length].chars() {
                        chars.next();
                    }
                }
                other => text.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        Err(self.unclosed(start, quote))
    }

    fn unclosed(&mut self, start: usize, quote: char) -> ParseError {
        self.at = self.text.len();
        let error = self.error(start, "literal not terminated");
        error.suggest(format!("is the closing {quote} missing?"))
    }
}

/// Reads what follows a backslash in a Go string; how many bytes it is.
pub(crate) fn escape(rest: &str, out: &mut Vec<u8>) -> Option<usize> {
    let first = rest.chars().next()?;
    let simple = match first {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        '"' => b'"',
        '\'' => b'\'',
        _ => 0,
    };
    if simple != 0 {
        out.push(simple);
        return Some(1);
    }
    let number = |from: usize, digits: usize, radix: u32| {
        let text = rest.get(from..from + digits)?;
        let all = text.bytes().all(|b| char::from(b).is_digit(radix));
        u32::from_str_radix(text, radix).ok().filter(|_| all)
    };
    match first {
        'x' => out.push(u8::try_from(number(1, 2, 16)?).ok()?),
        '0'..='7' => {
            out.push(u8::try_from(number(0, 3, 8)?).ok()?);
            return Some(3);
        }
        'u' | 'U' => {
            let digits = if first == 'u' { 4 } else { 8 };
            let c = char::from_u32(number(1, digits, 16)?)?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(1 + digits);
        }
        _ => return None,
    }
    Some(3)
}
