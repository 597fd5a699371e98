//! The parts of a question in a language that is not known: words, quotes, parentheses, conditions.
//!
//! Each token is a range of the text, so that a question is rewritten in place and keeps the rest as it was.

use std::ops::Range;

use crate::query::is_bare_name;

/// A part of a question.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    /// Bytes of the text.
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Open,
    Close,
    /// A text in quotes of any kind, without these.
    Quoted(String),
    /// A regular expression between slashes, or a text that ignores case: this language has both.
    Native,
    /// `=`, `>=`, `<>` and the like between spaces.
    Operator,
    /// A field, an operator and a value.
    Condition(Condition),
    Word,
}

/// `status>=500` in any language.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    /// As this language writes names; quoted, perhaps.
    pub(super) name: String,
    /// One of this language.
    pub(super) operator: &'static str,
    /// As it is written; not empty.
    pub(super) value: String,
}

/// Operators of any language and what they are here.
const OPERATORS: [(&str, &str); 22] = [
    ("=", "="),
    ("!=", "!="),
    ("<", "<"),
    ("<=", "<="),
    (">", ">"),
    (">=", ">="),
    ("~", "~"),
    ("!~", "!~"),
    (":", ":"),
    ("==", "="),
    ("===", "="),
    ("!==", "!="),
    ("=~", "~"),
    ("~=", "~"),
    ("<>", "!="),
    ("=<", "<="),
    (":=", "="),
    (":~", "~"),
    (":>", ">"),
    (":<", "<"),
    (":>=", ">="),
    (":<=", "<="),
];

/// The operator of this language that one of any language means.
pub(super) fn ours(operator: &str) -> Option<&'static str> {
    let mut known = OPERATORS.iter().filter(|(theirs, _)| *theirs == operator);
    known.next().map(|(_, ours)| *ours)
}

/// Bytes of operators; `:` stands before some.
fn is_sign(byte: u8) -> bool {
    b"=!<>~".contains(&byte)
}

/// Takes a question apart.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens: Vec<Token> = Vec::new();
    while let Some(token) = lexer.next() {
        match joined(text, &tokens, &token) {
            Some((count, whole)) => {
                tokens.truncate(tokens.len() - count);
                tokens.push(whole);
            }
            None => tokens.push(token),
        }
    }
    tokens
}

/// The condition that the last tokens and the next one are together, and how many of the last ones are part of
/// it: operators may stand between spaces.
fn joined(text: &str, tokens: &[Token], next: &Token) -> Option<(usize, Token)> {
    let value = match next.kind {
        Kind::Quoted(_) | Kind::Word | Kind::Native => &text[next.span.clone()],
        _ => return None,
    };
    let last = tokens.last()?;
    let written = &text[last.span.clone()];
    let (count, name, operator, value) = match &last.kind {
        // `status = 500`, `level : "error"`
        Kind::Operator => {
            let name = tokens.get(tokens.len().checked_sub(2)?)?;
            (2, &text[name.span.clone()], written, value)
        }
        // `status= 500`, `level: "error"`
        Kind::Word if written.ends_with(|c: char| c == ':' || c.is_ascii() && is_sign(c as u8)) => {
            let name = written.trim_end_matches(|c: char| "=!<>~:".contains(c));
            (1, name, &written[name.len()..], value)
        }
        // `status =500`
        Kind::Word
            if ["=", "!=", ">=", "<="]
                .iter()
                .any(|sign| value.starts_with(sign)) =>
        {
            let length = value.bytes().take_while(|b| is_sign(*b)).count();
            (1, written, &value[..length], &value[length..])
        }
        _ => return None,
    };
    // Behind a colon a text goes on, as in `error: disk full`.
    let is_sentence = operator == ":" && !matches!(next.kind, Kind::Quoted(_));
    let name = name_of(name).filter(|_| !is_sentence && !value.is_empty())?;
    let condition = Condition {
        name,
        operator: ours(operator)?,
        value: value.to_owned(),
    };
    let start = tokens[tokens.len() - count].span.start;
    let token = Token {
        span: start..next.span.end,
        kind: Kind::Condition(condition),
    };
    Some((count, token))
}

/// The name of a field; jq writes a point before it.
fn name_of(written: &str) -> Option<String> {
    let name = written.strip_prefix('$').unwrap_or(written);
    let name = name.strip_prefix('.').unwrap_or(name);
    let inner = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    let is_quoted = inner.is_some_and(|inner| !inner.is_empty() && !inner.contains(['"', '\\']));
    (is_bare_name(name) || is_quoted).then(|| name.to_owned())
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<Token> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        let start = self.at;
        let first = *self.text.as_bytes().get(start)?;
        let (end, kind) = match first {
            b'(' => (start + 1, Kind::Open),
            b')' => (start + 1, Kind::Close),
            // `!(a=1 or b=2)`
            b'!' if self.text[start + 1..].starts_with('(') => (start + 1, Kind::Word),
            b'&' | b'|'
                if ["&&", "||"]
                    .iter()
                    .any(|sign| self.text[start..].starts_with(sign)) =>
            {
                (start + 2, Kind::Word)
            }
            _ => self.quoted_or_word(start),
        };
        self.at = end;
        let span = start..end;
        Some(Token { span, kind })
    }

    fn quoted_or_word(&self, start: usize) -> (usize, Kind) {
        let bytes = self.text.as_bytes();
        let is_boundary = |at: usize| {
            let byte = bytes.get(at);
            byte.is_none_or(|b| b.is_ascii_whitespace() || b"),;".contains(b))
        };
        if let Some((end, inner)) = self.quoted(start)
            && is_boundary(end)
        {
            return (end, Kind::Quoted(inner));
        }
        let folded = bytes[start] == b'i' && bytes.get(start + 1) == Some(&b'"');
        let native = match bytes[start] {
            b'/' => self.slashed(start),
            _ if folded => self.quoted(start + 1).map(|(end, _)| end),
            _ => None,
        };
        if let Some(end) = native.filter(|end| is_boundary(*end)) {
            return (end, Kind::Native);
        }
        let end = self.word_end(start);
        let word = &self.text[start..end];
        let kind = match condition_of(word) {
            _ if word != "!" && (word == ":" || word.bytes().all(is_sign)) => Kind::Operator,
            Some(condition) => Kind::Condition(condition),
            None => Kind::Word,
        };
        (end, kind)
    }

    /// The end of the quotes that open here, and the text between them.
    fn quoted(&self, start: usize) -> Option<(usize, String)> {
        let quote = self.text[start..].chars().next()?;
        if !matches!(quote, '"' | '\'' | '`') {
            return None;
        }
        let mut inner = String::new();
        let mut chars = self.text[start + 1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if quote != '`' => {
                    let (_, escaped) = chars.next()?;
                    match escaped {
                        'n' => inner.push('\n'),
                        'r' => inner.push('\r'),
                        't' => inner.push('\t'),
                        '"' | '\'' | '\\' => inner.push(escaped),
                        other => inner.extend(['\\', other]),
                    }
                }
                _ if c == quote => return Some((start + 1 + at + 1, inner)),
                _ => inner.push(c),
            }
        }
        None
    }

    /// The end of the regular expression that a slash begins here.
    fn slashed(&self, start: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        while *bytes.get(at)? != b'/' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        let folded = bytes.get(at + 1) == Some(&b'i');
        (at > start + 1).then_some(at + 1 + usize::from(folded))
    }

    /// The end of a word with what it opens: parentheses, and the quotes, brackets and slashes of a value.
    fn word_end(&self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = start;
        while let Some(byte) = bytes.get(at) {
            let before = at.checked_sub(1).filter(|before| *before >= start);
            let before = before.map(|before| bytes[before]);
            let is_value = before.is_some_and(|b| is_sign(b) || b == b':');
            let opened = match byte {
                b')' => break,
                b if b.is_ascii_whitespace() => break,
                b'&' | b'|' if self.ends_condition(start, at) => break,
                b'(' => closing(bytes, at, b'(', b')'),
                b'"' if at == start => self.quoted(at).map(|(end, _)| end),
                // `+"order paid"`
                b'"' if at == start + 1 && b"+-".contains(&bytes[start]) => {
                    self.quoted(at).map(|(end, _)| end)
                }
                b'"' | b'\'' | b'`' if is_value => self.quoted(at).map(|(end, _)| end),
                b'/' if is_value => self.slashed(at),
                b'[' if is_value => closing(bytes, at, b'[', b']'),
                b'{' if is_value => closing(bytes, at, b'{', b'}'),
                _ => None,
            };
            at = opened.unwrap_or(at + 1);
        }
        at.max(start + 1)
    }

    /// True if `||` or `&&` stands here, behind a condition: `status>499||status<100`.
    fn ends_condition(&self, start: usize, at: usize) -> bool {
        let rest = &self.text[at..];
        let is_joint = rest.starts_with("||") || rest.starts_with("&&");
        is_joint && at > start && condition_of(&self.text[start..at]).is_some()
    }
}

/// The end of the brackets that open here.
fn closing(bytes: &[u8], start: usize, open: u8, close: u8) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        depth += usize::from(*byte == open);
        if *byte == close {
            depth -= 1;
            if depth == 0 {
                return Some(at + 1);
            }
        }
    }
    None
}

/// The word as a condition. A word with a colon is often none: `std::vec`, `http://x`, `C:\x`.
pub(super) fn condition_of(word: &str) -> Option<Condition> {
    let quoted = word.starts_with('"').then(|| word[1..].find('"'));
    let from = quoted.flatten().map_or(0, |end| end + 2);
    let place = from + word[from..].find(|c: char| "=!<>~:".contains(c))?;
    let name = name_of(&word[..place])?;
    let behind = &word[place..];
    let colon = usize::from(behind.starts_with(':'));
    let signs = behind.bytes().skip(colon).take_while(|b| is_sign(*b));
    let (operator, value) = behind.split_at(colon + signs.count());
    let is_text = operator == ":" && value.starts_with([':', '\\']) || value.starts_with("//");
    // Lucene's `"order paid"~5` asks for words near each other.
    let is_distance = from > 0 && operator == "~" && value.bytes().all(|b| b.is_ascii_digit());
    let operator = ours(operator).filter(|_| !is_text && !is_distance && !value.is_empty())?;
    Some(Condition {
        name,
        operator,
        value: value.to_owned(),
    })
}
