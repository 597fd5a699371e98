//! Matches: `FIELD=value` side by side.
//!
//! | written | means |
//! | --- | --- |
//! | `A=1 B=2` | both |
//! | `A=1 A=2` | one of them, as of all conditions on one field |
//! | `A=1 B=2 + C=3` | what is before the plus, or what is behind it |
//! | `A!=1` | no value of the field is this, be it that there is none |
//! | `A=~x.*` `A!~x` | some value, or none, matches a regular expression anywhere in it |
//!
//! The last two are not journalctl's. A value that begins with a tilde is written as an expression:
//! `A=~^~x$`.

use std::fmt;

use super::{equal, like};
use crate::matcher::Matcher;
use crate::query::Filter;

/// The longest name of a field that is asked for.
const NAME_BYTES_MAX: usize = 256;

/// One match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// `FIELD=value`
    Equal(String, Vec<u8>),
    /// `FIELD!=value`
    Unequal(String, Vec<u8>),
    /// `FIELD=~regex`
    Like(String, String),
    /// `FIELD!~regex`
    Unlike(String, String),
    /// A condition that matches stand beside: all of it holds, as of another field.
    Filter(Filter),
    /// `+`
    Or,
}

/// Why a text is no match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchError {
    /// It has no `=`.
    Form(String),
    /// Its name is empty, too long, or has other than letters, digits, and `_`, `.`, `-`, `@`.
    Name(String),
    /// Its regular expression is none; why.
    Regex(String, String),
    /// A plus has nothing on one of its sides.
    Plus,
}

impl fmt::Display for MatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatchError::Form(text) => write!(
                f,
                "`{text}` is no match; write FIELD=value, FIELD!=value, FIELD=~regex, FIELD!~regex, \
                 a path, or + between alternatives"
            ),
            MatchError::Name(text) => write!(f, "`{text}`: there is no field with such a name"),
            MatchError::Regex(text, why) => write!(f, "`{text}`: {why}"),
            MatchError::Plus => f.write_str("+ stands between matches: there is none on one side"),
        }
    }
}

impl std::error::Error for MatchError {}

/// Reads one match or plus.
///
/// # Errors
/// When it is none.
pub fn term(text: &[u8]) -> Result<Term, MatchError> {
    if text == b"+" {
        return Ok(Term::Or);
    }
    let shown = || String::from_utf8_lossy(text).into_owned();
    let at = memchr::memchr(b'=', text);
    let unlike = memchr::memmem::find(text, b"!~").filter(|found| at.is_none_or(|at| *found < at));
    let (at, is_negated) = match (unlike, at) {
        (Some(found), _) => (found, true),
        (None, Some(at)) => (at, at > 0 && text[at - 1] == b'!'),
        (None, None) => return Err(MatchError::Form(shown())),
    };
    let name = if is_negated && unlike.is_none() {
        &text[..at - 1]
    } else {
        &text[..at]
    };
    let name = std::str::from_utf8(name).map_err(|_| MatchError::Name(shown()))?;
    if !is_name(name) {
        return Err(MatchError::Name(shown()));
    }
    let name = name.to_owned();
    let regex = match unlike {
        Some(found) => Some(&text[found + 2..]),
        None => text[at + 1..].strip_prefix(b"~").filter(|_| !is_negated),
    };
    let Some(regex) = regex else {
        let value = text[at + 1..].to_vec();
        return Ok(if is_negated {
            Term::Unequal(name, value)
        } else {
            Term::Equal(name, value)
        });
    };
    let regex = std::str::from_utf8(regex)
        .map_err(|_| MatchError::Regex(shown(), "the expression is not UTF-8".to_owned()))?
        .to_owned();
    Matcher::new(&Filter::regex(&regex, false))
        .map_err(|error| MatchError::Regex(shown(), error.to_string()))?;
    Ok(match unlike {
        Some(_) => Term::Unlike(name, regex),
        None => Term::Like(name, regex),
    })
}

fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '@' | '/');
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.starts_with('/')
        && name.chars().all(is_allowed)
}

/// The records that these mean; all of them if there are none.
///
/// # Errors
/// When a plus has nothing on one of its sides.
pub fn matches(terms: &[Term]) -> Result<Filter, MatchError> {
    if terms.is_empty() {
        return Ok(Filter::All);
    }
    let mut alternatives = Vec::new();
    for group in terms.split(|term| *term == Term::Or) {
        if group.is_empty() {
            return Err(MatchError::Plus);
        }
        alternatives.push(all_of(group));
    }
    Ok(Filter::or(alternatives))
}

/// One of the conditions on each field.
fn all_of(group: &[Term]) -> Filter {
    let mut fields: Vec<(&str, Vec<Filter>)> = Vec::new();
    let mut parts = Vec::new();
    for term in group {
        let (name, condition) = match term {
            Term::Equal(name, value) => (name, equal(name, value)),
            Term::Like(name, regex) => (name, like(name, regex, false)),
            Term::Unequal(name, value) => {
                parts.push(Filter::negate(equal(name, value)));
                continue;
            }
            Term::Unlike(name, regex) => {
                parts.push(Filter::negate(like(name, regex, false)));
                continue;
            }
            Term::Filter(filter) => {
                parts.push(filter.clone());
                continue;
            }
            Term::Or => continue,
        };
        match fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, conditions)) => conditions.push(condition),
            None => fields.push((name, vec![condition])),
        }
    }
    let each = fields
        .into_iter()
        .map(|(_, conditions)| Filter::or(conditions));
    Filter::and(each.chain(parts))
}

/// Reads any bytes as matches, one a line, and checks that what they mean is a filter whose text reads
/// back as it. An entry point for fuzzing.
///
/// # Panics
///
/// If it is not.
pub fn fuzz_matches(data: &[u8]) {
    // Each match is a regular expression, too, of which a query has no more than 64.
    let lines = data.split(|b| *b == b'\n').take(64);
    let read: Result<Vec<Term>, MatchError> = lines.map(term).collect();
    let Ok(filter) = read.and_then(|terms| matches(&terms)) else {
        return;
    };
    let text = filter.to_string();
    assert!(Matcher::new(&filter).is_ok(), "{text}");
    if text.len() <= crate::query::QUERY_BYTES_MAX {
        assert_eq!(crate::query::parse(&text).as_ref(), Ok(&filter), "{text}");
    }
}
