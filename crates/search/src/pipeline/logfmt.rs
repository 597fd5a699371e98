//! `| logfmt`: labels of `key=value` pairs, or of some of them.

use std::borrow::Cow;

use super::Work;
use super::json_text::unescaped;
use super::labels::StageError;
use crate::label::sanitised;
use crate::logql;

/// Which pairs become labels.
#[derive(Clone, Debug)]
pub(super) struct Logfmt {
    strict: bool,
    keep_empty: bool,
    /// Labels and the keys, as labels, whose values they get.
    wanted: Vec<(Box<str>, Box<str>)>,
}

impl Logfmt {
    pub(super) fn new(logfmt: &logql::Logfmt) -> Result<Logfmt, String> {
        let wanted = logfmt.extractions.iter().map(|extraction| {
            let key = extraction.expression.trim();
            let is_key = |b: u8| b > b' ' && b != b'=' && b != b'"';
            if !key.is_empty() && key.bytes().all(is_key) {
                Ok((extraction.label.clone(), sanitised(key).into()))
            } else {
                Err(format!(
                    "cannot parse expression [{}]",
                    extraction.expression
                ))
            }
        });
        Ok(Logfmt {
            strict: logfmt.strict,
            keep_empty: logfmt.keep_empty,
            wanted: wanted.collect::<Result<_, String>>()?,
        })
    }

    pub(super) fn run(&self, work: &mut Work<'_>) {
        work.labels.begin_parser();
        for (label, _) in &self.wanted {
            if !work.labels.is_base(label) {
                work.labels.extract_again(label, "");
            }
        }
        let line = std::mem::take(&mut work.line);
        let mut reader = Reader { line: &line, at: 0 };
        while let Some(pair) = reader.next() {
            match pair {
                Ok((key, value)) => self.take(key, &value, work),
                Err(error) if self.strict => {
                    work.labels.fail(StageError::Logfmt, error);
                    break;
                }
                Err(_) => {}
            }
        }
        work.line = line;
    }

    fn take(&self, key: &[u8], value: &str, work: &mut Work<'_>) {
        let key = String::from_utf8_lossy(key);
        let label = sanitised(&key);
        if self.wanted.is_empty() {
            if self.keep_empty || !value.is_empty() {
                work.labels.extract(&label, value);
            }
            return;
        }
        let mut is_wanted = false;
        for (wanted, _) in self.wanted.iter().filter(|(_, source)| **source == *label) {
            is_wanted = true;
            work.labels.extract_again(wanted, value);
        }
        if !is_wanted && self.wanted.iter().any(|(wanted, _)| **wanted == *label) {
            work.labels.extract_again(&label, value);
        }
    }
}

struct Reader<'l> {
    line: &'l [u8],
    at: usize,
}

type Pair<'l> = (&'l [u8], Cow<'l, str>);

impl<'l> Reader<'l> {
    fn rest(&self) -> &'l [u8] {
        &self.line[self.at..]
    }

    /// The next pair, or why there is none here; `None` at the end.
    fn next(&mut self) -> Option<Result<Pair<'l>, String>> {
        let blanks = self.rest().iter().take_while(|b| **b <= b' ').count();
        self.at += blanks;
        if self.rest().is_empty() {
            return None;
        }
        let is_key = |b: &u8| *b > b' ' && *b != b'=' && *b != b'"';
        let length = self.rest().iter().take_while(|b| is_key(b)).count();
        let key = &self.rest()[..length];
        self.at += length;
        match self.rest().first() {
            Some(b'=') if length > 0 => self.at += 1,
            Some(b'=' | b'"') => return Some(Err(self.unexpected())),
            _ => return Some(Ok((key, Cow::Borrowed("")))),
        }
        Some(self.value().map(|value| (key, value)))
    }

    fn value(&mut self) -> Result<Cow<'l, str>, String> {
        let rest = self.rest();
        if rest.first() == Some(&b'"') {
            return self.quoted();
        }
        let is_value = |b: &u8| *b > b' ' && *b != b'=' && *b != b'"';
        let length = rest.iter().take_while(|b| is_value(b)).count();
        self.at += length;
        match rest.get(length) {
            Some(b'=' | b'"') => Err(self.unexpected()),
            _ => Ok(String::from_utf8_lossy(&rest[..length])),
        }
    }

    fn quoted(&mut self) -> Result<Cow<'l, str>, String> {
        let inside = &self.rest()[1..];
        let mut is_escaped = false;
        let end = inside.iter().position(|b| {
            let ends = *b == b'"' && !is_escaped;
            is_escaped = *b == b'\\' && !is_escaped;
            ends
        });
        match end {
            Some(end) => {
                self.at += end + 2;
                Ok(unescaped(&inside[..end]))
            }
            None => {
                self.at = self.line.len();
                Err(self.error("unterminated quoted value"))
            }
        }
    }

    /// Names the byte at hand, and passes over the word that it is in.
    fn unexpected(&mut self) -> String {
        let byte = self.rest().first().copied().unwrap_or(b' ');
        let error = self.error(&format!("unexpected '{}'", char::from(byte)));
        self.at += self.rest().iter().take_while(|b| **b > b' ').count();
        error
    }

    fn error(&self, what: &str) -> String {
        format!("logfmt syntax error at pos {} : {what}", self.at + 1)
    }
}
