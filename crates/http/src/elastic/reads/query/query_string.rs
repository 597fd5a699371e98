//! `query_string`: a query in the syntax of Lucene.

use logpond_search::Filter;
use serde_json::Value as Json;

use super::super::dates::DateReader;
use super::super::json::{Object, bad, flag, object, only, optional, texts, unsupported};
use super::super::names;
use super::lucene::{Clauses, Conjunction, Occur, Token, tokens, written};
use super::patterns::{Piece, Target, of_pieces, of_regexp};
use super::phrase::without_boost;
use super::range::{Bound, of_bound};
use super::words::{self, Place};
use super::{Context, equals, exists};
use crate::error::ApiError;

/// The deepest nesting of parentheses.
const DEPTH_MAX: usize = 40;

/// The longest query, in bytes.
const QUERY_BYTES_MAX: usize = 64 << 10;

/// Translates the query.
pub(super) fn query_string(body: &Json, context: &Context) -> Result<Filter, ApiError> {
    let members = object(body, "query_string")?;
    let known = [
        "query",
        "default_field",
        "fields",
        "default_operator",
        "analyze_wildcard",
        "allow_leading_wildcard",
        "lenient",
        "time_zone",
        "boost",
        "type",
        "tie_breaker",
        "enable_position_increments",
        "auto_generate_synonyms_phrase_query",
        "max_determinized_states",
        "rewrite",
        "phrase_slop",
        "fuzziness",
        "fuzzy_prefix_length",
        "fuzzy_max_expansions",
        "fuzzy_transpositions",
        "escape",
    ];
    only(members, &known, "query_string")?;
    let text = optional(members, "query")?;
    let text = text.ok_or_else(|| bad("[query_string] needs [query]"))?;
    let text = if flag(members, "escape", false)? {
        escaped(&text)
    } else {
        text
    };
    if text.len() > QUERY_BYTES_MAX {
        let message = format!("[query_string] is longer than {QUERY_BYTES_MAX} bytes");
        return Err(bad(message));
    }
    if !matches!(
        optional(members, "phrase_slop")?.as_deref(),
        None | Some("0")
    ) {
        return Err(unsupported("phrase_slop", "use a phrase without it"));
    }
    if !matches!(
        optional(members, "type")?.as_deref(),
        None | Some("best_fields" | "most_fields" | "cross_fields")
    ) {
        return Err(unsupported(
            "type of query_string",
            "use match_phrase, or quotation marks",
        ));
    }
    let zone = optional(members, "time_zone")?;
    let parser = Parser {
        tokens: tokens(&text)?,
        at: 0,
        depth: 0,
        fields: default_fields(members)?,
        is_and_default: is_and(members)?,
        context,
        dates: DateReader::new(context.now).with(zone.as_deref(), None)?,
    };
    if text.trim().is_empty() {
        return Ok(super::nothing());
    }
    parser.parse()
}

/// A text with a backslash before each sign of the syntax.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if r#"\+-!():^[]"{}~*?|&/"#.contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// The fields of terms without one; none is the whole line.
pub(super) fn default_fields(members: &Object) -> Result<Vec<String>, ApiError> {
    let fields = match (members.get("fields"), members.get("default_field")) {
        (Some(fields), _) => texts(fields, "fields")?,
        (None, Some(field)) => texts(field, "default_field")?,
        (None, None) => Vec::new(),
    };
    let names = fields.iter().map(|field| without_boost(field).to_owned());
    let names: Vec<String> = names.collect();
    if names.iter().any(|name| name == "*" || name == "_all") {
        return Ok(Vec::new());
    }
    match names.iter().find(|name| name.contains('*')) {
        Some(_) => Err(unsupported(
            "fields with wildcards",
            "name the fields, or * for the whole line",
        )),
        None => Ok(names),
    }
}

/// True if clauses without a word between them must all hold.
pub(super) fn is_and(members: &Object) -> Result<bool, ApiError> {
    match optional(members, "default_operator")? {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("or") => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("and") => Ok(true),
        Some(text) => Err(bad(format!(
            "[default_operator] is and or or, not [{text}]"
        ))),
    }
}

struct Parser<'c> {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    fields: Vec<String>,
    is_and_default: bool,
    context: &'c Context,
    dates: DateReader,
}

impl Parser<'_> {
    fn parse(mut self) -> Result<Filter, ApiError> {
        let filter = self.clauses(None)?;
        match self.tokens.get(self.at) {
            None => Ok(filter),
            Some(_) => Err(bad("[query_string]: a [)] has no [(] before it")),
        }
    }

    fn next_is(&mut self, token: &Token) -> bool {
        let is_there = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(is_there);
        is_there
    }

    fn clauses(&mut self, field: Option<&str>) -> Result<Filter, ApiError> {
        let mut clauses = Clauses::default();
        loop {
            let conjunction = if self.next_is(&Token::And) {
                Conjunction::And
            } else if self.next_is(&Token::Or) {
                Conjunction::Or
            } else {
                Conjunction::None
            };
            let mut modifier = None;
            loop {
                if self.next_is(&Token::Not) || self.next_is(&Token::Minus) {
                    modifier = Some(Occur::MustNot);
                } else if self.next_is(&Token::Plus) {
                    modifier = Some(Occur::Must);
                } else {
                    break;
                }
            }
            let has_begun = conjunction != Conjunction::None || modifier.is_some();
            match self.tokens.get(self.at) {
                None | Some(Token::Close) if has_begun => {
                    return Err(bad("[query_string]: an operator has nothing behind it"));
                }
                None | Some(Token::Close) => break,
                Some(_) => {}
            }
            let filter = self.clause(field)?;
            clauses.add(conjunction, modifier, filter, self.is_and_default);
        }
        Ok(clauses.filter())
    }

    fn clause(&mut self, field: Option<&str>) -> Result<Filter, ApiError> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        let filter = match token {
            Some(Token::Field(name)) => {
                // A field of a field is none.
                if field.is_some() {
                    return Err(bad(format!(
                        "[query_string]: [{name}:] is within another field"
                    )));
                }
                match self.tokens.get(self.at) {
                    None | Some(Token::Close | Token::And | Token::Or) => {
                        return Err(bad(format!("[query_string]: [{name}:] has no value")));
                    }
                    Some(_) => return self.clause(Some(&name)),
                }
            }
            Some(Token::Open) => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    let message = format!("[query_string] nests deeper than {DEPTH_MAX} levels");
                    return Err(bad(message));
                }
                let inner = self.clauses(field)?;
                self.depth -= 1;
                if !self.next_is(&Token::Close) {
                    return Err(bad("[query_string]: a [(] is not closed"));
                }
                inner
            }
            // A minus within a field is a sign.
            Some(Token::Minus) if field.is_some() => match self.tokens.get(self.at).cloned() {
                Some(Token::Word(mut pieces)) => {
                    self.at += 1;
                    pieces.insert(0, Piece::Letter('-'));
                    self.of_fields(field, |parser, name| parser.word(name, &pieces))?
                }
                _ => return Err(bad("[query_string]: there is no place for [-]")),
            },
            Some(token) => self.of_fields(field, |parser, name| parser.value(name, &token))?,
            None => return Err(bad("[query_string]: a value is missing")),
        };
        self.suffixes()?;
        Ok(filter)
    }

    /// Passes boosts over, and refuses what is fuzzy.
    fn suffixes(&mut self) -> Result<(), ApiError> {
        loop {
            match self.tokens.get(self.at) {
                Some(Token::Boost) => self.at += 1,
                Some(Token::Tilde(number)) if number == "0" => self.at += 1,
                Some(Token::Tilde(_)) => {
                    return Err(unsupported("~", "use a wildcard or a regular expression"));
                }
                _ => return Ok(()),
            }
        }
    }

    fn of_fields(
        &self,
        field: Option<&str>,
        of: impl Fn(&Self, Option<&str>) -> Result<Filter, ApiError>,
    ) -> Result<Filter, ApiError> {
        if field.is_some() || self.fields.is_empty() {
            return of(self, field);
        }
        let filters: Result<Vec<Filter>, ApiError> = self
            .fields
            .iter()
            .map(|name| of(self, Some(name)))
            .collect();
        Ok(Filter::or(filters?))
    }

    fn value(&self, name: Option<&str>, token: &Token) -> Result<Filter, ApiError> {
        match token {
            Token::Word(pieces) => self.word(name, pieces),
            Token::Phrase(text) => match name {
                Some("_exists_") => Ok(exists::of_field(text)),
                Some(name) if !names::is_text(name) => equals(name, text, self.context),
                Some(name) => Ok(words::phrase(&Place::Field(name), text)),
                None => Ok(words::phrase(&Place::Anywhere, text)),
            },
            Token::Regexp(source) => of_regexp(&target(name), source, false),
            Token::Range {
                from,
                to,
                has_from,
                has_to,
            } => {
                let low = if *has_from { Bound::From } else { Bound::Above };
                let high = if *has_to { Bound::To } else { Bound::Below };
                self.between(name, &[(low, from), (high, to)])
            }
            Token::Comparison(operator, value) => {
                let bound = match *operator {
                    "gt" => Bound::Above,
                    "gte" => Bound::From,
                    "lt" => Bound::Below,
                    _ => Bound::To,
                };
                self.between(name, &[(bound, value)])
            }
            _ => Err(bad("[query_string]: an operator is at a place of a value")),
        }
    }

    fn between(&self, name: Option<&str>, bounds: &[(Bound, &String)]) -> Result<Filter, ApiError> {
        let Some(name) = name else {
            return Err(bad(
                "[query_string]: a range needs a field, such as status:[400 TO 499]",
            ));
        };
        let mut parts = Vec::new();
        for (bound, value) in bounds.iter().filter(|(_, value)| *value != "*") {
            parts.push(of_bound(name, *bound, value, &self.dates)?);
        }
        if parts.is_empty() {
            return Ok(exists::of_field(name));
        }
        Ok(Filter::and(parts))
    }

    fn word(&self, name: Option<&str>, pieces: &[Piece]) -> Result<Filter, ApiError> {
        let is_letter = |piece: &Piece| matches!(piece, Piece::Letter(_));
        let text = written(pieces);
        match name {
            Some("_exists_") => return Ok(exists::of_field(&text)),
            // `*:*` is everything.
            Some("*") if text == "*" => return Ok(Filter::All),
            Some("*") => return self.word(None, pieces),
            _ => {}
        }
        if !pieces.iter().all(is_letter) {
            return Ok(of_pieces(&target(name), pieces, false));
        }
        match name {
            Some(name) if names::is_text(name) => Ok(words::phrase(&Place::Field(name), &text)),
            Some(name) => equals(name, &text, self.context),
            None => Ok(words::phrase(&Place::Anywhere, &text)),
        }
    }
}

fn target(name: Option<&str>) -> Target<'_> {
    name.map_or(Target::Words(Place::Anywhere), Target::of)
}
