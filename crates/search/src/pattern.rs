//! Compiled patterns: what finds a [`Pattern`] in bytes, whether they are UTF-8 or not.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use logpond_record::cast;
use logpond_segment::tokens::fold;
use memchr::memmem;
use regex_automata::meta;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::literal::{RequiredLiterals, required, required_of};
use crate::query::Pattern;

/// The most memory a compiled regular expression may take; enough for a hundred Unicode classes.
const REGEX_BYTES_MAX: usize = 4 << 20;

/// The deepest nesting of a regular expression; keeps the recursion of its compiler shallow.
const REGEX_DEPTH_MAX: u32 = 50;

/// A required text of at least so many bytes is worth looking for before the expression is tried.
const PREFILTER_BYTES_MIN: usize = 3;

/// Finds a pattern.
#[derive(Clone, Debug)]
pub struct Finder {
    kind: Kind,
    alphabet: Alphabet,
    looks_around: bool,
    /// True if texts of letters, digits, signs and points alone may match.
    may_match_plain: bool,
    /// The text of a search in any case, as [`fold`] gives it.
    folded: Option<Box<[u8]>>,
}

/// A text that is searched for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needle<'a> {
    /// The text, not empty; a folded one as [`fold`] gives it.
    pub(crate) text: &'a [u8],
    /// Whether it is looked for in any case.
    pub(crate) folded: bool,
}

impl Needle<'_> {
    /// A text in the form in which it can be compared with this one.
    pub(crate) fn fold<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        if self.folded {
            fold(text)
        } else {
            Cow::Borrowed(text)
        }
    }
}

/// The bytes that a match can consist of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alphabet([u64; 4]);

impl Alphabet {
    const ALL: Alphabet = Alphabet([u64::MAX; 4]);

    /// These bytes.
    pub(crate) fn of(bytes: &[u8]) -> Alphabet {
        let mut alphabet = Alphabet::default();
        bytes.iter().for_each(|b| alphabet.insert(*b));
        alphabet
    }

    fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte) / 64] |= 1 << (byte % 64);
    }

    /// Whether a match can hold this byte.
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte) / 64] >> (byte % 64) & 1 == 1
    }

    fn unite(&mut self, other: Alphabet) {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a |= b);
    }

    fn of_class(class: &Class) -> Alphabet {
        let mut alphabet = Alphabet::default();
        match class {
            Class::Bytes(class) => {
                let ranges = class.ranges().iter();
                ranges
                    .flat_map(|r| r.start()..=r.end())
                    .for_each(|b| alphabet.insert(b));
            }
            Class::Unicode(class) => {
                for range in class.ranges() {
                    let ascii = (range.start() as u32).min(128)..=(range.end() as u32).min(127);
                    ascii.for_each(|c| alphabet.insert(cast::low_u8(c)));
                    if range.end() as u32 >= 128 {
                        (128..=255).for_each(|b| alphabet.insert(b));
                    }
                }
            }
        }
        alphabet
    }

    /// The parser bounds how deeply expressions nest, and so this recursion.
    fn of_hir(hir: &Hir) -> Alphabet {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Alphabet::default(),
            HirKind::Literal(text) => Alphabet::of(&text.0),
            HirKind::Class(class) => Alphabet::of_class(class),
            HirKind::Repetition(repetition) => Alphabet::of_hir(&repetition.sub),
            HirKind::Capture(capture) => Alphabet::of_hir(&capture.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                let mut alphabet = Alphabet::default();
                parts
                    .iter()
                    .for_each(|part| alphabet.unite(Alphabet::of_hir(part)));
                alphabet
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Kind {
    /// The empty substring.
    Everywhere,
    Literal(Box<memmem::Finder<'static>>),
    Regex(meta::Regex),
}

/// Why a regular expression does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexError {
    /// Bytes of the expression that are at fault; all of them if it is too large as a whole.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for RegexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "regular expression: {}", self.message)
    }
}

impl std::error::Error for RegexError {}

impl Finder {
    /// Compiles a pattern; fails for a wrong or too large regular expression.
    pub fn new(pattern: &Pattern) -> Result<Finder, RegexError> {
        let kind = match pattern {
            Pattern::Substring { text, .. } if text.is_empty() => Kind::Everywhere,
            Pattern::Substring {
                text,
                case_insensitive: false,
            } => Kind::Literal(Box::new(memmem::Finder::new(text).into_owned())),
            folded => Kind::Regex(compile(folded, WhichCaptures::Implicit)?),
        };
        let (alphabet, looks_around) = match (&kind, hir(pattern)) {
            (Kind::Regex(_), Ok(hir)) => (
                Alphabet::of_hir(&hir),
                !hir.properties().look_set().is_empty(),
            ),
            (Kind::Literal(finder), _) => (Alphabet::of(finder.needle()), false),
            _ => (Alphabet::ALL, true),
        };
        let folded = match pattern {
            Pattern::Substring {
                text,
                case_insensitive: true,
            } if text.is_ascii() && !text.is_empty() => Some(fold(text).into()),
            _ => None,
        };
        Ok(Finder {
            kind,
            alphabet,
            looks_around,
            may_match_plain: may_be_plain(&required(pattern)),
            folded,
        })
    }

    /// The bytes that a match can consist of.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// Whether the pattern is in `text`.
    pub fn is_match(&self, text: &[u8]) -> bool {
        match &self.kind {
            Kind::Everywhere => true,
            Kind::Literal(finder) => finder.find(text).is_some(),
            Kind::Regex(regex) => regex.is_match(text),
        }
    }

    /// The first match at or after `start`. Looks around the start at what stands before it.
    pub fn find(&self, text: &[u8], start: usize) -> Option<Range<usize>> {
        match &self.kind {
            Kind::Everywhere => (start <= text.len()).then_some(start..start),
            Kind::Literal(finder) => {
                let found = start + finder.find(text.get(start..)?)?;
                Some(found..found + finder.needle().len())
            }
            Kind::Regex(regex) if start <= text.len() => {
                let input = Input::new(text).range(start..).anchored(Anchored::No);
                regex.find(input).map(|found| found.range())
            }
            Kind::Regex(_) => None,
        }
    }

    /// Whether a match in a part of a text is one in the whole text too: true unless the pattern
    /// looks at what stands around it (`^`, `\b`).
    pub(crate) fn ignores_ends(&self) -> bool {
        !self.looks_around
    }

    /// False if all matches have something else than letters, digits, `+`, `-` and `.`, of which the texts of numbers
    /// and of truth values are made.
    pub(crate) fn may_match_plain(&self) -> bool {
        self.may_match_plain
    }

    /// The text that is searched for, if it is no regular expression.
    pub(crate) fn needle(&self) -> Option<Needle<'_>> {
        let (text, folded) = match (&self.kind, &self.folded) {
            (Kind::Literal(finder), _) => (finder.needle(), false),
            (_, Some(text)) => (&text[..], true),
            _ => return None,
        };
        Some(Needle { text, folded })
    }
}

fn may_be_plain(required: &RequiredLiterals) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    match required {
        RequiredLiterals::Nothing => true,
        RequiredLiterals::Literal(text) | RequiredLiterals::Folded(text) => {
            text.iter().all(is_plain)
        }
        RequiredLiterals::And(parts) => parts.iter().all(may_be_plain),
        RequiredLiterals::Or(parts) => parts.iter().any(may_be_plain),
    }
}

/// Compiles a pattern, with these of its groups.
pub(crate) fn compile(pattern: &Pattern, groups: WhichCaptures) -> Result<meta::Regex, RegexError> {
    let hir = hir(pattern)?;
    let config = meta::Config::new()
        .utf8_empty(false)
        // Lines are short: looking for a single byte that an expression requires, and from there
        // to both sides, costs several times the plain search.
        .auto_prefilter(requires_literal(&required_of(&hir)))
        .nfa_size_limit(Some(REGEX_BYTES_MAX))
        .which_captures(groups);
    meta::Builder::new()
        .configure(config)
        .build_from_hir(&hir)
        .map_err(|_| RegexError {
            span: 0..source_bytes(pattern),
            message: format!("it takes more than {REGEX_BYTES_MAX} bytes when compiled"),
        })
}

/// Whether every match contains a text that is rare enough to look for it first.
fn requires_literal(required: &RequiredLiterals) -> bool {
    match required {
        RequiredLiterals::Nothing => false,
        RequiredLiterals::Literal(text) | RequiredLiterals::Folded(text) => {
            text.len() >= PREFILTER_BYTES_MIN
        }
        RequiredLiterals::And(parts) => parts.iter().any(requires_literal),
        RequiredLiterals::Or(parts) => parts.iter().all(requires_literal),
    }
}

fn source_bytes(pattern: &Pattern) -> usize {
    match pattern {
        Pattern::Substring { text, .. } => text.len(),
        Pattern::Regex { source, .. } => source.len(),
    }
}

/// Checks that a regular expression compiles.
pub(crate) fn check_expression(source: &str) -> Result<(), RegexError> {
    compile(&Pattern::regex(source, false), WhichCaptures::Implicit).map(|_| ())
}

/// Compiles an expression that says where its groups are.
pub(crate) fn compile_with_groups(source: &str) -> Result<meta::Regex, RegexError> {
    let pattern = Pattern::regex(source, false);
    let hir = hir(&pattern)?;
    let config = meta::Config::new()
        .utf8_empty(false)
        .nfa_size_limit(Some(REGEX_BYTES_MAX));
    meta::Builder::new()
        .configure(config)
        .build_from_hir(&hir)
        .map_err(|_| {
            whole(
                source,
                format!("it takes more than {REGEX_BYTES_MAX} bytes when compiled"),
            )
        })
}

/// The pattern as a parsed regular expression.
pub(crate) fn hir(pattern: &Pattern) -> Result<Hir, RegexError> {
    match pattern {
        Pattern::Regex {
            source,
            case_insensitive,
        } => parse(source, *case_insensitive),
        Pattern::Substring {
            text,
            case_insensitive: false,
        } => Ok(Hir::literal(text.clone())),
        Pattern::Substring { text, .. } => match std::str::from_utf8(text) {
            Ok(text) => parse(&regex_syntax::escape(text), true),
            Err(_) => parse(&escape_bytes(text), true),
        },
    }
}

/// An expression for bytes that are not UTF-8: only ASCII letters fold.
fn escape_bytes(text: &[u8]) -> String {
    let mut out = String::from("(?-u)");
    for byte in text {
        out.push_str(&format!("\\x{byte:02x}"));
    }
    out
}

fn parse(source: &str, case_insensitive: bool) -> Result<Hir, RegexError> {
    let config = syntax::Config::new()
        .utf8(false)
        .case_insensitive(case_insensitive)
        .nest_limit(REGEX_DEPTH_MAX);
    syntax::parse_with(source, &config).map_err(|error| {
        let (span, message) = match &error {
            regex_syntax::Error::Parse(e) => (*e.span(), e.kind().to_string()),
            regex_syntax::Error::Translate(e) => (*e.span(), e.kind().to_string()),
            other => return whole(source, other.to_string()),
        };
        RegexError {
            span: span.start.offset..span.end.offset,
            message,
        }
    })
}

fn whole(source: &str, message: String) -> RegexError {
    RegexError {
        span: 0..source.len(),
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: Pattern, text: &[u8]) -> Option<Range<usize>> {
        Finder::new(&pattern).unwrap().find(text, 0)
    }

    #[test]
    fn patterns_are_found_in_any_bytes() {
        type Case = (Pattern, &'static [u8], Option<Range<usize>>);
        let table: [Case; 9] = [
            (Pattern::substring(b"", false), b"abc", Some(0..0)),
            (Pattern::substring(b"bc", false), b"abc", Some(1..3)),
            (Pattern::substring(b"BC", false), b"abc", None),
            (Pattern::substring(b"BC", true), b"\xffabc", Some(2..4)),
            (
                Pattern::substring("É.".as_bytes(), true),
                "xé.".as_bytes(),
                Some(1..4),
            ),
            (Pattern::substring(b"\xffA", true), b"\0\xffa", Some(1..3)),
            (Pattern::regex("a.c$", false), b"\xffabc", Some(1..4)),
            (Pattern::regex("a.c", false), b"a\xffc", None),
            (Pattern::regex(r"(?-u:\xff)b", false), b"a\xffb", Some(1..3)),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(
                found(pattern.clone(), text),
                expected,
                "{pattern} in {text:?}"
            );
        }
    }

    #[test]
    fn wrong_expressions_say_where() {
        let error = Finder::new(&Pattern::regex("ab(c", false)).unwrap_err();
        assert_eq!(
            (error.span, error.message.as_str()),
            (2..3, "unclosed group")
        );
        let large = Finder::new(&Pattern::regex(r"(\w{100}){100}", false)).unwrap_err();
        assert_eq!(large.span, 0..14);
        let deep = "(".repeat(100) + &")".repeat(100);
        assert!(Finder::new(&Pattern::regex(&deep, false)).is_err());
    }
}
