//! `simple_query_string`: words, phrases, `+`, `|`, `-`, `*` at the end of a word, and parentheses. It has no errors of
//! syntax.

use logpond_search::Filter;
use serde_json::Value as Json;

use super::super::json::{bad, object, only, optional, unsupported};
use super::patterns::{Piece, Target, of_pieces};
use super::query_string::{default_fields, is_and};
use super::words::{self, Place};
use super::{Context, equals};
use crate::elastic::reads::names;
use crate::error::ApiError;

/// The deepest nesting; parentheses beyond it are passed over.
const DEPTH_MAX: usize = 40;

/// Translates the query.
pub(super) fn simple_query_string(body: &Json, context: &Context) -> Result<Filter, ApiError> {
    let members = object(body, "simple_query_string")?;
    let known = [
        "query",
        "fields",
        "default_operator",
        "analyze_wildcard",
        "lenient",
        "boost",
        "flags",
        "fuzzy_prefix_length",
        "fuzzy_max_expansions",
        "fuzzy_transpositions",
        "auto_generate_synonyms_phrase_query",
    ];
    only(members, &known, "simple_query_string")?;
    if !matches!(
        optional(members, "flags")?.as_deref(),
        None | Some("ALL" | "-1")
    ) {
        return Err(unsupported("flags", "all operators are on"));
    }
    let text = optional(members, "query")?;
    let text = text.ok_or_else(|| bad("[simple_query_string] needs [query]"))?;
    let mut reader = Reader {
        chars: text.chars().collect(),
        at: 0,
        fields: default_fields(members)?,
        is_and_default: is_and(members)?,
        context,
    };
    let filter = reader.level(0)?;
    Ok(filter.unwrap_or_else(super::nothing))
}

struct Reader<'c> {
    chars: Vec<char>,
    at: usize,
    fields: Vec<String>,
    is_and_default: bool,
    context: &'c Context,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// Reads up to the end of a level: its parts from left to right, each combined with all before it.
    fn level(&mut self, depth: usize) -> Result<Option<Filter>, ApiError> {
        let mut found: Option<Filter> = None;
        let mut is_and = None;
        let mut is_negated = false;
        while let Some(c) = self.peek() {
            let part = match c {
                ')' if depth > 0 => {
                    self.at += 1;
                    break;
                }
                '(' if depth < DEPTH_MAX => {
                    self.at += 1;
                    self.level(depth + 1)?
                }
                '+' | '|' => {
                    self.at += 1;
                    is_and = Some(c == '+');
                    continue;
                }
                '-' => {
                    self.at += 1;
                    is_negated = !is_negated;
                    continue;
                }
                c if c.is_whitespace() || matches!(c, '(' | ')') => {
                    self.at += 1;
                    continue;
                }
                '"' => {
                    let text = self.phrase();
                    Some(self.of_text(&text, None)?)
                }
                _ => self.word()?,
            };
            let Some(mut part) = part else {
                continue;
            };
            if std::mem::take(&mut is_negated) {
                part = Filter::negate(part);
            }
            let joins = is_and.take().unwrap_or(self.is_and_default);
            found = Some(match found {
                None => part,
                Some(before) if joins => Filter::and([before, part]),
                Some(before) => Filter::or([before, part]),
            });
        }
        Ok(found)
    }

    fn phrase(&mut self) -> String {
        let mut out = String::new();
        self.at += 1;
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                '"' => break,
                '\\' => {
                    out.extend(self.peek());
                    self.at += 1;
                }
                c => out.push(c),
            }
        }
        out
    }

    fn word(&mut self) -> Result<Option<Filter>, ApiError> {
        let mut pieces = Vec::new();
        while let Some(c) = self.peek() {
            if c.is_whitespace() || "\"()|+".contains(c) {
                break;
            }
            self.at += 1;
            pieces.push(match c {
                '\\' => {
                    let next = self.peek().unwrap_or('\\');
                    self.at += 1;
                    Piece::Letter(next)
                }
                '~' => return Err(unsupported("~", "use query_string with a wildcard")),
                c => Piece::Letter(c),
            });
        }
        let is_prefix = pieces.last() == Some(&Piece::Letter('*'))
            && self.at.checked_sub(2).and_then(|at| self.chars.get(at)) != Some(&'\\');
        if is_prefix && let Some(last) = pieces.last_mut() {
            *last = Piece::Star;
        }
        let text = super::lucene::written(&pieces);
        if text.is_empty() {
            self.at += 1;
            return Ok(None);
        }
        self.of_text(&text, is_prefix.then_some(&pieces)).map(Some)
    }

    fn of_text(&self, text: &str, pieces: Option<&Vec<Piece>>) -> Result<Filter, ApiError> {
        let of = |name: Option<&str>| match (pieces, name) {
            (Some(pieces), None) => Ok(of_pieces(&Target::Words(Place::Anywhere), pieces, false)),
            (Some(pieces), Some(name)) => Ok(of_pieces(&Target::of(name), pieces, false)),
            (None, None) => Ok(words::phrase(&Place::Anywhere, text)),
            (None, Some(name)) if names::is_text(name) => {
                Ok(words::phrase(&Place::Field(name), text))
            }
            (None, Some(name)) => equals(name, text, self.context),
        };
        if self.fields.is_empty() {
            return of(None);
        }
        let filters: Result<Vec<Filter>, ApiError> =
            self.fields.iter().map(|name| of(Some(name))).collect();
        Ok(Filter::or(filters?))
    }
}
