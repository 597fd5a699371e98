//! A necessary condition on the raw bytes of an entry, so that journal data that cannot match is
//! not decoded.
//!
//! Invariant: if [`RawPrefilter::may_match`] says no, no record decoded from the entry is wanted.
//! It holds for each kind of entry, and for entries put together, because
//! - only text patterns take part: fields may come from labels, or be written in other ways;
//! - of a pattern, only runs of characters count that JSON, logfmt and syslog write as they are;
//!   runs neither start nor end with punctuation, as white space around JSON's may differ;
//! - runs that look like numbers do not count, as `1e3` may be rendered as `1000.0`;
//! - a blank may stand between two elements of a list, of which a message is made: where there are lists, the words
//!   of a run count each by itself;
//! - entries with escapes for ordinary characters (`\u0061`, `\/`) or NUL always pass, and so do those with such
//!   escapes in a text that is escaped itself, as JSON within JSON is (`\\u0061`).

use logpond_segment::tokens::is_token_byte;
use memchr::{memchr, memchr_iter, memmem};

use crate::grams::Grams;
use crate::literal::{RequiredLiterals, required};
use crate::query::{Comparison, FieldFilter, FieldTest, Filter, Pattern};

/// What is remembered of raw entries, in order that they need not be searched again.
#[derive(Clone, Debug)]
pub struct RawGrams {
    grams: Grams,
    /// Whether there are entries that always pass.
    has_unusual_escape: bool,
    has_list: bool,
}

impl RawGrams {
    /// Nothing yet; for entries of so many bytes together.
    pub fn for_bytes(bytes: usize) -> RawGrams {
        RawGrams {
            grams: Grams::for_bytes(bytes),
            has_unusual_escape: false,
            has_list: false,
        }
    }

    /// Adds one entry or several.
    pub fn add(&mut self, raw: &[u8]) {
        self.has_unusual_escape |= has_unusual_escape(raw);
        self.has_list = self.has_list || has_list(raw);
        self.grams.add(raw);
    }

    /// What it takes of the memory.
    pub fn bytes(&self) -> usize {
        self.grams.bytes()
    }
}

/// A compiled necessary condition.
#[derive(Clone, Debug)]
pub struct RawPrefilter {
    formula: Formula,
}

#[derive(Clone, Debug)]
enum Formula {
    Literal(Box<memmem::Finder<'static>>),
    /// A run with blanks, and its words, which may stand in a list.
    Phrase(Box<memmem::Finder<'static>>, Vec<Formula>),
    And(Vec<Formula>),
    Or(Vec<Formula>),
}

impl RawPrefilter {
    pub(crate) fn new(filter: &Filter) -> Option<RawPrefilter> {
        formula(filter).map(|formula| RawPrefilter { formula })
    }

    /// Whether records decoded from these bytes may be wanted.
    ///
    /// `raw` is one entry or several, whatever separates them; one pass over a journal frame's
    /// payload decides for all of its entries.
    pub fn may_match(&self, raw: &[u8]) -> bool {
        self.formula.holds(raw) || has_unusual_escape(raw)
    }

    /// Whether [`RawPrefilter::may_match`] may say yes to anything that was added there.
    pub fn may_match_any(&self, seen: &RawGrams) -> bool {
        seen.has_unusual_escape || self.formula.may_hold(seen)
    }
}

impl Formula {
    fn holds(&self, raw: &[u8]) -> bool {
        match self {
            Formula::Literal(finder) => finder.find(raw).is_some(),
            Formula::Phrase(finder, words) => {
                let is_there = finder.find(raw).is_some();
                is_there || has_list(raw) && words.iter().all(|word| word.holds(raw))
            }
            Formula::And(parts) => parts.iter().all(|p| p.holds(raw)),
            Formula::Or(parts) => parts.iter().any(|p| p.holds(raw)),
        }
    }

    fn may_hold(&self, seen: &RawGrams) -> bool {
        match self {
            Formula::Literal(finder) => seen.grams.may_hold(finder.needle()),
            Formula::Phrase(finder, words) => {
                let is_there = seen.grams.may_hold(finder.needle());
                is_there || seen.has_list && words.iter().all(|word| word.may_hold(seen))
            }
            Formula::And(parts) => parts.iter().all(|p| p.may_hold(seen)),
            Formula::Or(parts) => parts.iter().any(|p| p.may_hold(seen)),
        }
    }
}

/// Whether a character that a literal may contain can be written as something else in `raw`.
fn has_unusual_escape(raw: &[u8]) -> bool {
    // UTF-16 text is full of NULs.
    if memchr(0, raw).is_some() {
        return true;
    }
    let mut skipped = None;
    memchr_iter(b'\\', raw).any(|at| {
        if skipped == Some(at) {
            return false;
        }
        skipped = Some(at + 1);
        // These stand for bytes that end a literal, or for nothing at the end of the entry.
        raw.get(at + 1).is_some_and(|b| !b"\"\\nrtbf".contains(b))
            || raw[at..].starts_with(br"\\") && is_inner_escape(&raw[at + 2..])
    })
}

/// True if what stands behind an escaped backslash is the rest of an escape for an ordinary character: `u0061`, `x61` or
/// a sign. Behind a backslash of a path stand letters.
fn is_inner_escape(rest: &[u8]) -> bool {
    let has_digits = |count: usize| {
        let digits = rest.get(1..=count);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    match rest.first() {
        Some(b'u') => has_digits(4),
        Some(b'x') => has_digits(2),
        Some(b'"' | b'\\') | None => false,
        Some(byte) => byte.is_ascii_punctuation(),
    }
}

/// True if a list may be the value of a member.
fn has_list(raw: &[u8]) -> bool {
    memchr_iter(b'[', raw).any(|at| raw[..at].trim_ascii_end().ends_with(b":"))
}

fn formula(filter: &Filter) -> Option<Formula> {
    match filter {
        Filter::All | Filter::Not(_) => None,
        Filter::And(parts) => and(parts.iter().filter_map(formula)),
        Filter::Or(parts) => parts
            .iter()
            .map(formula)
            .collect::<Option<_>>()
            .map(Formula::Or),
        Filter::Text(pattern) => from_pattern(pattern),
        Filter::Field(FieldFilter { name, test }) => match test {
            _ if !matches!(&**name, "_msg" | "_raw") => None,
            FieldTest::Contains(pattern) => from_pattern(pattern),
            FieldTest::Compare(Comparison::Equal, value) => from_literal(value),
            FieldTest::Compare(..) | FieldTest::Exists => None,
        },
    }
}

fn and(parts: impl Iterator<Item = Formula>) -> Option<Formula> {
    let mut parts: Vec<Formula> = parts.collect();
    match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(Formula::And(parts)),
    }
}

fn from_pattern(pattern: &Pattern) -> Option<Formula> {
    from_required(&required(pattern))
}

fn from_required(required: &RequiredLiterals) -> Option<Formula> {
    match required {
        // Other cases of a letter would have to be looked for too.
        RequiredLiterals::Nothing | RequiredLiterals::Folded(_) => None,
        RequiredLiterals::Literal(text) => from_literal(text),
        RequiredLiterals::And(parts) => and(parts.iter().filter_map(from_required)),
        RequiredLiterals::Or(parts) => parts
            .iter()
            .map(from_required)
            .collect::<Option<_>>()
            .map(Formula::Or),
    }
}

/// The longest run of the literal that stands in the raw bytes as it is.
fn from_literal(literal: &[u8]) -> Option<Formula> {
    let longest = literal
        .split(|b| !is_written_as_it_is(*b))
        .filter_map(trimmed)
        .filter(|run| !looks_like_number(run))
        .max_by_key(|run| run.len())?;
    let finder = |run: &[u8]| Box::new(memmem::Finder::new(run).into_owned());
    if !longest.contains(&b' ') {
        return Some(Formula::Literal(finder(longest)));
    }
    let words = longest.split(|b| *b == b' ').filter_map(trimmed);
    let words = words.filter(|word| !looks_like_number(word));
    let words = words.map(|word| Formula::Literal(finder(word))).collect();
    Some(Formula::Phrase(finder(longest), words))
}

/// Without what surrounds the first and last token byte.
fn trimmed(run: &[u8]) -> Option<&[u8]> {
    let start = run.iter().position(|b| is_token_byte(*b))?;
    let end = run.iter().rposition(|b| is_token_byte(*b))?;
    Some(&run[start..=end])
}

fn looks_like_number(run: &[u8]) -> bool {
    run.iter()
        .all(|b| b.is_ascii_digit() || b".+-eE".contains(b))
}

/// Whether no format escapes this byte (other than needlessly), or may put white space beside it
/// inside of a value.
fn is_written_as_it_is(byte: u8) -> bool {
    is_token_byte(byte) || b" !#$%&'()*+-.:;<=>?@^`|~".contains(&byte)
}
