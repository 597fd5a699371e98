//! Words of texts: the message, or the line where no field is named.
//!
//! A word is a run of letters, digits and `_`. Words are found in any case, and a phrase is words in a row
//! with anything but letters, digits and `_` between.

use logpond_search::Filter;

use super::super::names;
use super::{contains, nothing};

/// A place in which words are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'n> {
    /// The line and the message.
    Anywhere,
    /// A field of text.
    Field(&'n str),
}

impl<'n> Place<'n> {
    /// The place of a name: `*` is everywhere. None of a field that has one value.
    pub(super) fn of(name: &'n str) -> Option<Place<'n>> {
        match name {
            "*" => Some(Place::Anywhere),
            name => names::is_text(name).then_some(Place::Field(name)),
        }
    }

    /// Records with a match of a regular expression there, in any case.
    pub(super) fn matching(self, source: &str) -> Filter {
        match self {
            Place::Anywhere => Filter::regex(source, true),
            Place::Field(name) => contains(name, source, true),
        }
    }
}

/// The words of a text.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c)).filter(|word| !word.is_empty())
}

/// The tokens of a text that `match` looks for, each by itself: words, and words with a dot, a comma or an apostrophe
/// between, such as addresses of hosts and numbers. So Elasticsearch's standard analyzer has them.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let joins = |c: char| matches!(c, '.' | ',' | '\'');
    text.split(move |c: char| !is_word(c) && !joins(c))
        .flat_map(move |part| part.split(", "))
        .map(move |token| token.trim_matches(joins))
        .filter(|token| words(token).next().is_some())
}

/// True for what a word has: as the `\w` of regular expressions.
pub(super) fn is_word(c: char) -> bool {
    // Marks that are combined with the letter before.
    c.is_alphanumeric() || c == '_' || ('\u{300}'..='\u{36f}').contains(&c)
}

/// True for letters of scripts that are written without spaces, where words have no ends.
fn is_unspaced(c: char) -> bool {
    ('\u{2e80}'..='\u{d7ff}').contains(&c) || ('\u{e00}'..='\u{edf}').contains(&c)
}

/// The end of a word in front of a letter or behind one.
pub(super) fn edge(letter: Option<char>) -> &'static str {
    match letter {
        Some(c) if is_word(c) && !is_unspaced(c) => r"\b",
        _ => "",
    }
}

/// Records with these words in a row; none if there is no word.
pub(super) fn phrase(place: &Place<'_>, text: &str) -> Filter {
    source(text, true).map_or_else(nothing, |source| place.matching(&source))
}

/// Records with these words in a row, of which the last is the beginning of one.
pub(super) fn phrase_prefix(place: &Place<'_>, text: &str) -> Filter {
    source(text, false).map_or_else(nothing, |source| place.matching(&source))
}

/// The regular expression of words in a row.
fn source(text: &str, ends_with_word: bool) -> Option<String> {
    let escaped: Vec<_> = words(text).map(regex_syntax::escape).collect();
    let first = words(text).next()?.chars().next();
    let last = words(text).last()?.chars().next_back();
    let end = if ends_with_word { edge(last) } else { "" };
    Some(format!("{}{}{end}", edge(first), escaped.join(r"\W+")))
}
