//! Regular expressions as LogQL has them, which is Go's syntax, in the syntax of our own engine.
//!
//! | written | here |
//! | --- | --- |
//! | `{` that begins no `{n}`, `{n,}` or `{n,m}` | the character |
//! | `\Q…\E`, `\012`, `\<` and every other escaped punctuation | the characters |
//! | `\d`, `\s`, `\w`, `\b` and their negations | of ASCII alone |
//! | `[[]`, `[]a]`, `[a&&b]`, `[+--]` | classes have no operators, and nest only names (`[:alpha:]`) |
//! | `(?i)`, `(?m)`, `(?s)`, `(?U)` | there are no other flags |
//! | `a**`, `a++`, `a{1001}` | refused |
//!
//! Invariants:
//! - What is translated compiles, unless it is too large or nests too deeply.
//! - Groups keep their numbers.
//! - A translated expression is closed: put into a group it means what it means alone.

mod class;
mod escape;
mod flags;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ops::Range;

use crate::pattern::RegexError;
use escape::{escaped_char, perl_class, push_literal, unicode_class};

/// The most times that something may be said to occur; what Go allows.
const REPETITIONS_MAX: u32 = 1000;

/// An expression in the syntax of our engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Translation {
    /// The expression. Of several groups of one name only the first has it.
    pub(crate) source: String,
    /// Where a name stands a second time in what was written.
    pub(crate) repeated_name: Option<Range<usize>>,
}

/// Translates an expression.
///
/// # Errors
/// When it is none; says which of its bytes are at fault.
pub(crate) fn translate(written: &str) -> Result<Translation, RegexError> {
    let mut translator = Translator {
        written,
        at: 0,
        out: String::with_capacity(written.len() + 8),
        before: Before::Nothing,
        open: Vec::new(),
        names: HashSet::new(),
        repeated_name: None,
    };
    while translator.at < written.len() {
        translator.step()?;
    }
    if let Some(open) = translator.open.first() {
        return Err(error(*open..written.len(), "a ( is not closed"));
    }
    Ok(Translation {
        source: translator.out,
        repeated_name: translator.repeated_name,
    })
}

fn error(span: Range<usize>, message: impl Into<String>) -> RegexError {
    RegexError {
        span,
        message: message.into(),
    }
}

/// The beginning of what an error names.
fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    text.chars().take(CHARS_MAX).collect()
}

/// What stands before the place that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// Nothing that could be repeated.
    Nothing,
    /// Something that can be repeated.
    Atom,
    /// A repetition, which begins there.
    Repetition(usize),
}

struct Translator<'w> {
    written: &'w str,
    at: usize,
    out: String,
    before: Before,
    /// Where the groups begin that are open.
    open: Vec<usize>,
    names: HashSet<&'w str>,
    repeated_name: Option<Range<usize>>,
}

impl<'w> Translator<'w> {
    fn rest(&self) -> &'w str {
        &self.written[self.at..]
    }

    /// Reads one part: a character, a class, a sign.
    fn step(&mut self) -> Result<(), RegexError> {
        let Some(first) = self.rest().chars().next() else {
            return Ok(());
        };
        match first {
            '(' if self.rest().starts_with("(?") => self.group()?,
            '(' => {
                self.open.push(self.at);
                self.copy(1, Before::Nothing);
            }
            ')' if self.open.pop().is_none() => {
                return Err(error(
                    self.at..self.at + 1,
                    "there is no ( that this ) closes",
                ));
            }
            ')' | '.' | '^' | '$' => self.copy(1, Before::Atom),
            '|' => self.copy(1, Before::Nothing),
            '*' | '+' | '?' => self.repetition(1)?,
            '{' => match counts(self.rest()) {
                Some(counts) => {
                    let span = self.at..self.at + counts.bytes;
                    if !counts.are_valid() {
                        let message =
                            format!("a count is wrong: `{}`", &self.written[span.clone()]);
                        return Err(error(span, message));
                    }
                    self.repetition(counts.bytes)?;
                }
                None => self.literal(first),
            },
            '[' => {
                self.at = class::translate(self.written, self.at, &mut self.out)?;
                self.before = Before::Atom;
            }
            '\\' => self.escape()?,
            _ => self.literal(first),
        }
        Ok(())
    }

    /// Takes over so many bytes as they are.
    fn copy(&mut self, bytes: usize, before: Before) {
        self.out.push_str(&self.rest()[..bytes]);
        self.at += bytes;
        self.before = before;
    }

    fn literal(&mut self, c: char) {
        push_literal(c, &mut self.out);
        self.at += c.len_utf8();
        self.before = Before::Atom;
    }

    /// A sign of so many bytes that repeats what stands before, and the `?` behind that makes it lazy.
    fn repetition(&mut self, bytes: usize) -> Result<(), RegexError> {
        let start = self.at;
        let lazy = usize::from(self.rest()[bytes..].starts_with('?'));
        let end = start + bytes + lazy;
        match self.before {
            Before::Nothing => {
                let shown = &self.written[start..start + bytes];
                let message = format!("there is nothing that `{shown}` could repeat");
                Err(error(start..start + bytes, message))
            }
            Before::Repetition(first) => {
                let shown = &self.written[first..end];
                let message = format!("a repetition cannot be repeated: `{shown}`");
                Err(error(first..end, message))
            }
            Before::Atom => {
                self.copy(bytes + lazy, Before::Repetition(start));
                Ok(())
            }
        }
    }

    /// What begins with `(?`.
    fn group(&mut self) -> Result<(), RegexError> {
        let rest = self.rest();
        for opening in ["(?P<", "(?<"] {
            if let Some(behind) = rest.strip_prefix(opening) {
                return self.named_group(behind, opening.len());
            }
        }
        let Some((flags, bytes)) = flags::read(rest) else {
            let end = rest.find([':', ')']).map_or(rest.len(), |end| end + 1);
            let message = format!("this is not supported: `{}`", shown(&rest[..end]));
            return Err(error(self.at..self.at + end, message));
        };
        if rest[..bytes].ends_with(':') {
            self.open.push(self.at);
            self.before = Before::Nothing;
            self.out.push_str(&format!("(?{flags}:"));
        } else if !flags.is_empty() {
            self.out.push_str(&format!("(?{flags})"));
            // What stands before can be repeated no more: the engine sees the flags between.
            self.before = Before::Nothing;
        }
        self.at += bytes;
        Ok(())
    }

    fn named_group(&mut self, behind: &'w str, opening: usize) -> Result<(), RegexError> {
        let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let name = behind.split('>').next().unwrap_or_default();
        if name.len() == behind.len() || name.is_empty() || !name.chars().all(is_part) {
            let end = (self.at + opening + name.len() + 1).min(self.written.len());
            let message = format!("this is no name of a group: `{}`", shown(name));
            return Err(error(self.at..end, message));
        }
        let start = self.at + opening;
        if self.names.contains(name) {
            let span = start..start + name.len();
            self.repeated_name.get_or_insert(span);
            self.out.push('(');
        } else {
            // Our engine has no names that begin with a digit, and labels have none either.
            let is_number_like = name.starts_with(|c: char| c.is_ascii_digit());
            let prefix = if is_number_like { "_" } else { "" };
            self.out.push_str(&format!("(?P<{prefix}{name}>"));
            self.names.insert(name);
        }
        self.open.push(self.at);
        self.at = start + name.len() + 1;
        self.before = Before::Nothing;
        Ok(())
    }

    /// What begins with a backslash.
    fn escape(&mut self) -> Result<(), RegexError> {
        let rest = self.rest();
        let known = match rest.as_bytes().get(1) {
            Some(b'A') => Some(r"\A"),
            Some(b'z') => Some(r"\z"),
            Some(b'b') => Some(r"(?-u:\b)"),
            Some(b'B') => Some(r"(?-u:\B)"),
            Some(b'Q') => {
                self.quoted();
                return Ok(());
            }
            _ => None,
        };
        if let Some(known) = known.or_else(|| perl_class(rest).map(|class| class.alone)) {
            self.out.push_str(known);
            self.at += 2;
        } else if let Some(class) = unicode_class(self.written, self.at)? {
            self.out.push_str(&class.text);
            self.at = class.end;
        } else {
            let (c, end) = escaped_char(self.written, self.at)?;
            match char::from_u32(c) {
                Some(c) => push_literal(c, &mut self.out),
                // Half of a pair of UTF-16 is in no text.
                None => self.out.push_str(class::NOTHING),
            }
            self.at = end;
        }
        self.before = Before::Atom;
        Ok(())
    }

    /// `\Q…\E`, or up to the end.
    fn quoted(&mut self) {
        let inside = &self.rest()[2..];
        let (text, end) = match inside.find(r"\E") {
            Some(end) => (&inside[..end], end + 4),
            None => (inside, inside.len() + 2),
        };
        for c in text.chars() {
            push_literal(c, &mut self.out);
            self.before = Before::Atom;
        }
        self.at += end;
    }
}

/// How often something occurs.
struct Counts {
    min: Option<u32>,
    /// Without an upper bound it is the lower one.
    max: Option<u32>,
    /// How many bytes say so.
    bytes: usize,
}

impl Counts {
    fn are_valid(&self) -> bool {
        let are_small = |count: Option<u32>| count.is_some_and(|count| count <= REPETITIONS_MAX);
        are_small(self.min) && are_small(self.max) && self.min <= self.max
    }
}

/// Reads `{n}`, `{n,}` or `{n,m}`; `None` if it is none. A number too large to be one is none.
fn counts(text: &str) -> Option<Counts> {
    let behind = text.strip_prefix('{')?;
    let is_part = |b: &u8| b.is_ascii_digit() || *b == b',';
    let bytes = behind.bytes().take_while(is_part).count();
    let inside = &behind[..bytes];
    if !behind[bytes..].starts_with('}') {
        return None;
    }
    let (min, max) = inside.split_once(',').unwrap_or((inside, inside));
    let number = |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let has_zero = digits.len() > 1 && digits.starts_with('0');
        (is_number && !has_zero).then(|| digits.parse().ok())
    };
    let min = number(min)?;
    let max = match max {
        "" => min,
        max => number(max)?,
    };
    Some(Counts {
        min,
        max,
        bytes: bytes + 2,
    })
}
