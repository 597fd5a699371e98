//! The queries of patterns: `prefix`, `wildcard` and `regexp`.
//!
//! They match the whole value of a field; of the message, a word.

use logpond_search::Filter;
use serde_json::Value as Json;

use super::super::json::{Object, bad, flag, only, optional, scalar, single, unsupported};
use super::super::{lists, names};
use super::words::{self, Place};
use super::{Context, exists, whole_match};
use crate::error::ApiError;

/// `prefix`: values that begin so.
pub(super) fn prefix(body: &Json, _: &Context) -> Result<Filter, ApiError> {
    let (name, given) = single(body, "prefix")?;
    let (text, any_case) = read(given, "prefix", &["value"])?;
    if names::is_text(name) {
        return Ok(words::phrase_prefix(&Place::Field(name), &text));
    }
    Ok(of_prefix(name, &text, any_case))
}

/// Records whose field has a value that begins so.
pub(super) fn of_prefix(name: &str, text: &str, any_case: bool) -> Filter {
    let letters = text.chars().map(Piece::Letter);
    let pieces: Vec<Piece> = letters.chain([Piece::Star]).collect();
    of_pieces(&Target::Value(name), &pieces, any_case)
}

/// `wildcard`: `*` is any text, `?` any character.
pub(super) fn wildcard(body: &Json, _: &Context) -> Result<Filter, ApiError> {
    let (name, given) = single(body, "wildcard")?;
    let (text, any_case) = read(given, "wildcard", &["value", "wildcard"])?;
    let pieces = pieces(&text);
    Ok(of_pieces(&Target::of(name), &pieces, any_case))
}

/// `regexp`: a regular expression of Lucene.
pub(super) fn regexp(body: &Json, _: &Context) -> Result<Filter, ApiError> {
    let (name, given) = single(body, "regexp")?;
    let (text, any_case) = read(given, "regexp", &["value"])?;
    of_regexp(&Target::of(name), &text, any_case)
}

fn read(given: &Json, place: &str, values: &[&str]) -> Result<(String, bool), ApiError> {
    let members = match given {
        Json::Object(members) => members.clone(),
        value => return Ok((scalar(value, place)?, false)),
    };
    let mut known = values.to_vec();
    known.extend([
        "boost",
        "rewrite",
        "case_insensitive",
        "flags",
        "flags_value",
        "max_determinized_states",
    ]);
    only(&members, &known, place)?;
    let value = first(&members, values)?;
    let value = value.ok_or_else(|| bad(format!("[{place}] needs [value]")))?;
    Ok((value, flag(&members, "case_insensitive", false)?))
}

fn first(members: &Object, names: &[&str]) -> Result<Option<String>, ApiError> {
    for name in names {
        if let Some(text) = optional(members, name)? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// A place that patterns look at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'n> {
    /// Words.
    Words(Place<'n>),
    /// The value of a field.
    Value(&'n str),
}

impl<'n> Target<'n> {
    /// The target of a name.
    pub(super) fn of(name: &'n str) -> Target<'n> {
        if names::is_text(name) {
            Target::Words(Place::Field(name))
        } else {
            Target::Value(name)
        }
    }
}

/// A piece of a wildcard pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Any text.
    Star,
    /// Any character.
    Question,
    /// This character.
    Letter(char),
}

/// The pieces of a pattern, in which a backslash takes a character as it is.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        pieces.push(match c {
            '*' => Piece::Star,
            '?' => Piece::Question,
            '\\' => Piece::Letter(chars.next().unwrap_or('\\')),
            c => Piece::Letter(c),
        });
    }
    pieces
}

/// Records that a wildcard pattern matches.
pub(super) fn of_pieces(target: &Target<'_>, pieces: &[Piece], any_case: bool) -> Filter {
    let is_star = |piece: &Piece| *piece == Piece::Star;
    if pieces.iter().all(is_star) && !pieces.is_empty() {
        return match target {
            Target::Words(Place::Anywhere) => Filter::All,
            Target::Words(Place::Field(name)) | Target::Value(name) => exists::of_field(name),
        };
    }
    match target {
        Target::Value(name) => {
            let value = whole_match(name, &source(pieces, ".*", "."), any_case);
            Filter::or([value, of_elements(name, pieces, any_case)])
        }
        Target::Words(place) => {
            let letter = |piece: Option<&Piece>| match piece {
                Some(Piece::Letter(c)) => words::edge(Some(*c)),
                Some(Piece::Question) => r"\b",
                _ => "",
            };
            let (first, last) = (letter(pieces.first()), letter(pieces.last()));
            let start = pieces.iter().take_while(|piece| is_star(piece)).count();
            let end = pieces
                .iter()
                .rev()
                .take_while(|piece| is_star(piece))
                .count();
            let inner = pieces.get(start..pieces.len() - end).unwrap_or_default();
            let inner = source(inner, r"\w*", r"\w");
            place.matching(&format!("{first}{inner}{last}"))
        }
    }
}

/// Records whose field is a list with an element that a wildcard pattern matches.
fn of_elements(name: &str, pieces: &[Piece], any_case: bool) -> Filter {
    let mut source = String::from("\"");
    for piece in pieces {
        match piece {
            Piece::Star => source.push_str(lists::ANY_TEXT),
            Piece::Question => source.push_str(lists::ANY_CHARACTER),
            Piece::Letter(c) => source.push_str(&lists::literal(c.encode_utf8(&mut [0; 4]))),
        }
    }
    source.push('"');
    lists::matching(names::of_record(name), &source, any_case)
}

fn source(pieces: &[Piece], star: &str, question: &str) -> String {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Star => out.push_str(star),
            Piece::Question => out.push_str(question),
            Piece::Letter(c) => out.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

/// Records that a regular expression of Lucene matches.
pub(super) fn of_regexp(
    target: &Target<'_>,
    text: &str,
    any_case: bool,
) -> Result<Filter, ApiError> {
    let source = lucene_regex(text)?;
    Ok(match target {
        Target::Value(name) => whole_match(name, &source, any_case),
        Target::Words(place) => place.matching(&format!(r"\b(?:{source})\b")),
    })
}

/// A regular expression of Lucene in the syntax of the engine. `^` and `$` stand for themselves in it.
pub(in super::super) fn lucene_regex(text: &str) -> Result<String, ApiError> {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    let mut is_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let next = chars
                    .next()
                    .ok_or_else(|| bad("[regexp] ends with a backslash"))?;
                if next.is_ascii_alphanumeric() {
                    // `\d`, `\w`, `\s` and their opposites mean the same.
                    if !"dDwWsS".contains(next) {
                        out.push(next);
                        continue;
                    }
                    out.push('\\');
                    out.push(next);
                } else {
                    out.push_str(&regex_syntax::escape(next.encode_utf8(&mut [0; 4])));
                }
            }
            '[' if !is_class => {
                is_class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            ']' if is_class => {
                is_class = false;
                out.push(']');
            }
            '[' | '&' | '~' | '^' | '$' if is_class => {
                out.push('\\');
                out.push(c);
            }
            c if is_class => out.push(c),
            '"' => {
                let literal: String = chars.by_ref().take_while(|c| *c != '"').collect();
                out.push_str(&format!("(?:{})", regex_syntax::escape(&literal)));
            }
            '@' => out.push_str("(?:.*)"),
            '^' | '$' => {
                out.push('\\');
                out.push(c);
            }
            '~' | '&' | '<' | '>' | '#' => {
                let what = format!("regexp operator {c}");
                return Err(unsupported(
                    &what,
                    "write a backslash before it, or use a bool query",
                ));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}
