//! What takes the place of a match: a text, in which groups of the match may stand.
//!
//! | text | stands for |
//! | --- | --- |
//! | `$1`, `${1}` | the first group; `$0` is the whole match |
//! | `${name}` | the group `(?<name>…)` |
//! | `$$` | a dollar sign |
//!
//! A `$` before anything else is a dollar sign, too. A group that is not part of a match is nothing.

use std::fmt;
use std::ops::Range;

use regex_automata::meta;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::{Anchored, Input, PatternID};

use crate::pattern::{RegexError, compile};
use crate::query::Pattern;

/// A text with places for groups.
#[derive(Clone, Debug)]
pub struct Replacement {
    parts: Box<[Part]>,
    /// The pattern, if it is asked for its groups.
    groups: Option<meta::Regex>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    /// The whole match has number 0.
    Group(usize),
}

/// Why a text is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplacementError {
    /// The pattern has no group of this number or name.
    Group(String),
    /// A brace is not closed.
    Unclosed,
    /// The pattern is none.
    Pattern(RegexError),
}

impl fmt::Display for ReplacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplacementError::Group(name) => write!(
                f,
                "the pattern has no group '{name}'; a dollar sign is written $$"
            ),
            ReplacementError::Unclosed => f.write_str("a '${' is not closed by '}'"),
            ReplacementError::Pattern(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ReplacementError {}

impl Replacement {
    /// Reads a text that takes the place of what a pattern finds.
    ///
    /// # Errors
    /// When it names a group that the pattern has not.
    pub fn new(text: &str, pattern: &Pattern) -> Result<Replacement, ReplacementError> {
        let mut names = Vec::new();
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            literal.push_str(before);
            let (name, behind) = group_of(after)?;
            rest = behind;
            match name {
                None => literal.push('$'),
                Some(name) => {
                    if !literal.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut literal).into()));
                    }
                    // Its number is known once the pattern is compiled.
                    parts.push(Part::Group(names.len()));
                    names.push(name);
                }
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal.into()));
        }
        let mut groups = None;
        if !names.is_empty() {
            let regex = compile(pattern, WhichCaptures::All).map_err(ReplacementError::Pattern)?;
            let numbers: Result<Vec<usize>, _> =
                names.iter().map(|name| number_of(name, &regex)).collect();
            let numbers = numbers?;
            for part in &mut parts {
                if let Part::Group(group) = part {
                    *group = numbers[*group];
                }
            }
            groups = Some(regex);
        }
        let parts = parts.into();
        Ok(Replacement { parts, groups })
    }

    /// Appends what takes the place of the match `found` in a text.
    pub fn write(&self, text: &[u8], found: Range<usize>, out: &mut Vec<u8>) {
        let captures = self.groups.as_ref().map(|regex| {
            let mut captures = regex.create_captures();
            let input = Input::new(text)
                .range(found.start..)
                .anchored(Anchored::Yes);
            regex.search_captures(&input, &mut captures);
            captures
        });
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Group(0) => out.extend_from_slice(&text[found.clone()]),
                Part::Group(number) => {
                    let group = captures.as_ref().and_then(|found| found.get_group(*number));
                    out.extend(group.map_or(&[][..], |group| &text[group.range()]));
                }
            }
        }
    }
}

/// The group that stands behind a dollar sign, if one does, and what is behind that.
fn group_of(after: &str) -> Result<(Option<&str>, &str), ReplacementError> {
    if let Some(named) = after.strip_prefix('{') {
        let (name, behind) = named.split_once('}').ok_or(ReplacementError::Unclosed)?;
        return Ok((Some(name), behind));
    }
    if let Some(behind) = after.strip_prefix('$') {
        return Ok((None, behind));
    }
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let (name, behind) = after.split_at(digits);
    Ok(((digits > 0).then_some(name), behind))
}

fn number_of(name: &str, regex: &meta::Regex) -> Result<usize, ReplacementError> {
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_number {
        name.parse()
            .ok()
            .filter(|number| *number < regex.captures_len())
    } else {
        regex.group_info().to_index(PatternID::ZERO, name)
    };
    number.ok_or_else(|| ReplacementError::Group(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Finder;

    fn replaced(pattern: &str, with: &str, text: &str) -> Result<String, ReplacementError> {
        let pattern = Pattern::regex(pattern, false);
        let replacement = Replacement::new(with, &pattern)?;
        let found = Finder::new(&pattern).unwrap().find(text.as_bytes(), 0);
        let mut out = Vec::new();
        replacement.write(text.as_bytes(), found.unwrap(), &mut out);
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn groups_take_their_places() {
        let table = [
            (r"\d+", "<n>", "a 12 b", "<n>"),
            (r"(\d+)-(\d+)", "$2-$1", "a 12-34 b", "34-12"),
            (r"(\d+)-(\d+)", "${2}0$0", "a 12-34 b", "34012-34"),
            (
                r"(?<user>\w+)@(?<host>\w+)",
                "***@${host}",
                "ann@example",
                "***@example",
            ),
            (r"(a)|(b)", "[$1|$2]", "xb", "[|b]"),
            (r"x", "$$1 $ $x 5$", "x", "$1 $ $x 5$"),
            // What stands before a match is looked at for its groups, too.
            (r"\b(\w)\w*", "$1.", "-word", "w."),
            (r"(?:é)(.)", "$1", "aéü", "ü"),
            (r"(((\w)))$", "$3$2$1", "ab", "bbb"),
        ];
        for (pattern, with, text, want) in table {
            assert_eq!(replaced(pattern, with, text).as_deref(), Ok(want), "{with}");
        }
    }

    #[test]
    fn groups_that_are_none_are_refused() {
        let group = |name: &str| Err(ReplacementError::Group(name.to_owned()));
        let table = [
            ("a(b)", "$2", group("2")),
            ("a(b)", "${name}", group("name")),
            ("a(b)", "${}", group("")),
            ("a", "$99999999999999999999", group("99999999999999999999")),
            ("a", "${1", Err(ReplacementError::Unclosed)),
        ];
        for (pattern, with, error) in table {
            assert_eq!(replaced(pattern, with, "ab"), error, "{with}");
        }
    }
}
