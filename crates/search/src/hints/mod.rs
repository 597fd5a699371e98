//! What a question that found nothing probably meant.
//!
//! A text is searched for as it is, so `level=error`, `timeout OR error` or a query of another language is a
//! valid question that finds nothing. At zero rows, and only then, this module says what the text looks like
//! and how that is asked, which field was probably meant by a name that no record has, and that there are
//! matches outside of the range.
//!
//! Invariants:
//! - Pure: what is known of the records is an argument.
//! - A question that is suggested parses, and its arguments for the command line mean the same.
//! - No suggestion looks for the text of an operator, such as `or`.
//! - A name is called unknown only where all names are known.

mod arguments;
mod reading;
mod spans;
mod tokens;
mod translate;
mod values;
#[cfg(test)]
mod foreign_tests;
#[cfg(test)]
mod tests;

use logpond_record::Timestamp;

use crate::nearest;
use crate::query::{self, Comparison, FieldFilter, FieldTest, Filter, Pattern};
use reading::{Interpretation, reading};
use translate::has_stray_joint;
use values::{equal_to, other_separator, unknown_values};

pub use arguments::{arguments, shell_word};
pub use values::{FieldValues, compared_fields, in_any_separator};

/// The most hints of an answer: more is not read by people.
pub const HINTS_MAX: usize = 5;

/// The longest text that is looked at: people do not write longer queries by hand.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// The most characters of a text that a message repeats.
const SHOWN_CHARS_MAX: usize = 60;

/// The field that means the severity of any source.
const LEVEL: &str = "level";

/// Names by which other programs know what has a name of its own here.
const RESERVED: [(&str, &[&str]); 4] = [
    (
        LEVEL,
        &[
            "severity",
            "severity_text",
            "loglevel",
            "log_level",
            "log.level",
            "levelname",
            "lvl",
            "priority",
            "detected_level",
        ],
    ),
    (
        "_msg",
        &["message", "msg", "_message", "@message", "text", "body"],
    ),
    (
        "_time",
        &[
            "time",
            "timestamp",
            "@timestamp",
            "_timestamp",
            "ts",
            "date",
            "datetime",
        ],
    ),
    ("_raw", &["line", "_line", "raw", "log"]),
];

/// Suffixes of fields that Elasticsearch keeps whole, beside their words.
const WHOLE_SUFFIXES: [&str; 2] = [".keyword", ".raw"];

/// A suggestion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// What was probably meant, as a sentence without its end.
    pub message: String,
    /// The question that means it, in the query language.
    pub query: Option<String>,
    /// A command that asks it, quoted for a shell: `logpond query -f level=error`.
    pub command: Option<String>,
    /// Where the range of the question has to begin instead, if it has to.
    pub from: Option<Timestamp>,
    /// Where the range has to end instead, excluded, if it has to.
    pub to: Option<Timestamp>,
}

/// Matches on one side of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// How many were seen.
    pub count: u64,
    /// Whether these are all.
    pub is_all: bool,
    /// The event time of the one that is nearest to the range.
    pub nearest: Timestamp,
}

/// A question that found nothing, and what is known of the records.
#[derive(Clone, Copy, Debug)]
pub struct HintRequest<'a> {
    /// The question.
    pub filter: &'a Filter,
    /// The question as it was written, if it was: in another language it is one question, of which the filter
    /// only has pieces.
    pub written: Option<&'a str>,
    /// The field whose values were counted, if there is one.
    pub field: Option<&'a str>,
    /// The names of all fields that records have; `None` if not all are known.
    pub names: Option<&'a [&'a str]>,
    /// Values that the range has of the fields that are compared.
    pub values: &'a [FieldValues],
    /// How many records match if upper and lower case are alike, and whether these are all.
    pub any_case: Option<(u64, bool)>,
    /// The same if the signs between the parts of names are alike, too.
    pub any_separator: Option<(u64, bool)>,
    /// Matches before the range.
    pub before: Option<Outside>,
    /// Matches behind the range.
    pub behind: Option<Outside>,
}

/// What was probably meant, the likeliest first; at most [`HINTS_MAX`].
pub fn hints(request: &HintRequest<'_>) -> Vec<Hint> {
    let mut hints = Vec::new();
    hints.extend(unknown_counted(request));
    match span(request).or_else(|| foreign(request)) {
        // The pieces mean nothing by themselves.
        Some(hint) => hints.push(hint),
        None => {
            hints.extend(unknown_fields(request));
            hints.extend(texts(request));
            let of_values = of_one_value(request).or_else(|| unknown_values(request));
            let of_values = of_values.or_else(|| other_case(request));
            hints.extend(of_values.or_else(|| other_separator(request)));
        }
    }
    hints.extend(outside(request));
    hints.truncate(HINTS_MAX);
    hints
}

/// A hint, once its suggestion was tried. `count` gives how many records of the range match a filter, and whether these
/// are all. A suggestion that finds nothing as it is written becomes one in any case, or its message says so.
pub fn tried(mut hint: Hint, mut count: impl FnMut(&Filter) -> Option<(u64, bool)>) -> Hint {
    let meant = hint
        .query
        .as_deref()
        .and_then(|text| query::parse(text).ok());
    let Some(meant) = meant.filter(|meant| count(meant) == Some((0, true))) else {
        return hint;
    };
    let folded = in_any_case(&meant);
    match folded.filter(|folded| count(folded).is_some_and(|(count, _)| count > 0)) {
        Some(folded) => {
            hint.message.push_str("; records match it in another case");
            let suggested = suggested(Some(&folded));
            (hint.query, hint.command) = (suggested.query, suggested.command);
        }
        None => hint
            .message
            .push_str("; no record of the range matches that, either"),
    }
    hint
}

/// True if names of fields make a difference to what is said of this question.
pub fn wants_names(filter: &Filter, written: Option<&str>) -> bool {
    let found = written.and_then(|written| foreign_reading(filter, written));
    let meant = found.and_then(|found| found.meant);
    meant.is_some_and(|meant| reading::has_field(&meant)) || filter_wants_names(filter)
}

fn filter_wants_names(filter: &Filter) -> bool {
    match filter {
        Filter::All => false,
        Filter::And(parts) | Filter::Or(parts) => parts.iter().any(filter_wants_names),
        Filter::Not(inner) => filter_wants_names(inner),
        Filter::Field(_) => true,
        Filter::Text(Pattern::Regex { .. }) => false,
        Filter::Text(Pattern::Substring { text, .. }) => {
            let text = std::str::from_utf8(text).unwrap_or_default().trim();
            if may_have_known_fields(text) {
                return true;
            }
            let found = (text.len() <= TEXT_BYTES_MAX).then(|| reading(text, false));
            let meant = found.flatten().and_then(|found| found.meant);
            meant.is_some_and(|meant| reading::has_field(&meant))
        }
    }
}

/// Whether a field of this name is known to be in no record.
fn is_unknown(name: &str, names: Option<&[&str]>) -> bool {
    // Reserved names, and those that mean several fields.
    let is_reserved = name.starts_with('_') && reserved_for(name).is_none();
    !is_reserved && names.is_some_and(|names| !names.is_empty() && !names.contains(&name))
}

fn nearest_of<'n>(name: &str, names: Option<&[&'n str]>) -> Option<&'n str> {
    let named = |name: &str| names?.iter().copied().find(|known| *known == name);
    let whole = WHOLE_SUFFIXES
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix));
    reserved_for(name)
        .or_else(|| named(whole?))
        .or_else(|| nearest(name, names?.iter().copied()))
}

/// The reserved name of what other programs know by this one.
fn reserved_for(name: &str) -> Option<&'static str> {
    let means = |others: &[&str]| others.iter().any(|other| other.eq_ignore_ascii_case(name));
    let found = RESERVED.iter().find(|(_, others)| means(others));
    found.map(|(reserved, _)| *reserved)
}

fn unknown_counted(request: &HintRequest<'_>) -> Option<Hint> {
    let name = request
        .field
        .filter(|name| is_unknown(name, request.names))
        .map(clipped)?;
    let message = match nearest_of(&name, request.names) {
        Some(meant) => {
            format!("no record of the range has a field '{name}'; did you mean '{meant}'?")
        }
        None => format!(
            "no record of the range has a field '{name}'; 'logpond fields' lists those there are"
        ),
    };
    Some(Hint {
        message,
        ..Hint::default()
    })
}

/// Names in conditions that no record has. All of them are mended in one suggestion.
fn unknown_fields(request: &HintRequest<'_>) -> Option<Hint> {
    let (mended, said) = mended(request.filter, request.names);
    mended_hint(request, &mended, &said)
}

/// The hint of what is wrong with a filter, with the mended one if it is another.
fn mended_hint(request: &HintRequest<'_>, mended: &Filter, said: &[String]) -> Option<Hint> {
    let message = said.first()?.clone();
    Some(Hint {
        message,
        ..suggested(Some(mended).filter(|mended| *mended != request.filter))
    })
}

/// The filter with the nearest names in place of unknown ones, and with texts to find in place of whole messages, and
/// what is said of these.
fn mended(filter: &Filter, names: Option<&[&str]>) -> (Filter, Vec<String>) {
    let mut said = Vec::new();
    let mended = with_fields(filter, &mut |field| {
        let name = &*field.name;
        if let Some((meant, why)) = of_whole_text(field) {
            said.push(why);
            return Some(meant);
        }
        if !is_unknown(name, names) {
            return None;
        }
        let meant = nearest_of(name, names).filter(|meant| {
            let means_severity = || {
                let name = (*meant).into();
                let test = field.test.clone();
                FieldFilter { name, test }.may_mean_severity()
            };
            *meant != LEVEL || names.is_some_and(|names| names.contains(meant)) || means_severity()
        });
        let name = clipped(name);
        said.push(match meant {
            Some(meant) => {
                format!("no record of the range has a field '{name}'; the nearest is '{meant}'")
            }
            None => format!("no record of the range has a field '{name}'"),
        });
        let test = match &field.test {
            // A message is hardly one word.
            FieldTest::Compare(Comparison::Equal, text) if meant == Some("_msg") => {
                FieldTest::Contains(Pattern::substring(text, false))
            }
            other => other.clone(),
        };
        Some(FieldFilter {
            name: meant?.into(),
            test,
        })
    });
    (mended, said)
}

/// The same filter with other conditions on fields.
fn with_fields(
    filter: &Filter,
    changed: &mut dyn FnMut(&FieldFilter) -> Option<FieldFilter>,
) -> Filter {
    match filter {
        Filter::All | Filter::Text(_) => filter.clone(),
        Filter::And(parts) => Filter::and(parts.iter().map(|p| with_fields(p, &mut *changed))),
        Filter::Or(parts) => Filter::or(parts.iter().map(|p| with_fields(p, &mut *changed))),
        Filter::Not(inner) => Filter::negate(with_fields(inner, changed)),
        Filter::Field(field) => match changed(field) {
            Some(field) => query::by_severity(field),
            None => filter.clone(),
        },
    }
}

fn has_negation(filter: &Filter) -> bool {
    match filter {
        Filter::All | Filter::Text(_) | Filter::Field(_) => false,
        Filter::And(parts) | Filter::Or(parts) => parts.iter().any(has_negation),
        Filter::Not(_) => true,
    }
}

/// The condition that is probably meant by a message or a line that is compared as a whole, and what is said of it.
fn of_whole_text(field: &FieldFilter) -> Option<(FieldFilter, String)> {
    let FieldTest::Compare(Comparison::Equal, text) = &field.test else {
        return None;
    };
    let what = match &*field.name {
        "_msg" => "message",
        "_raw" => "line",
        _ => return None,
    };
    let name = &field.name;
    let said = format!("'{name}=' compares the whole {what}; '{name}:' finds a text in it");
    let meant = FieldFilter {
        name: name.clone(),
        test: FieldTest::Contains(Pattern::substring(text, false)),
    };
    Some((meant, said))
}

/// The question with upper and lower case alike, if that makes a difference.
pub fn in_any_case(filter: &Filter) -> Option<Filter> {
    let folded = reading::in_any_case(filter.clone());
    let folded = with_fields(&folded, &mut |field| {
        let source = match &field.test {
            FieldTest::Compare(Comparison::Equal, _) => {
                let value = equal_to(field)?;
                let has_case = value.chars().any(char::is_alphabetic);
                let source = format!("^{}$", regex_syntax::escape(value));
                has_case.then(|| Pattern::regex(&source, true))?
            }
            FieldTest::Contains(Pattern::Substring { text, .. }) => Pattern::substring(text, true),
            FieldTest::Contains(Pattern::Regex { source, .. }) => Pattern::regex(source, true),
            _ => return None,
        };
        Some(FieldFilter {
            name: field.name.clone(),
            test: FieldTest::Contains(source),
        })
    });
    (folded != *filter).then_some(folded)
}

fn other_case(request: &HintRequest<'_>) -> Option<Hint> {
    let (count, is_all) = request.any_case.filter(|(count, _)| *count > 0)?;
    let folded = in_any_case(request.filter)?;
    let records = counted(count, is_all);
    Some(Hint {
        message: format!("{records} if upper and lower case are alike"),
        ..suggested(Some(&folded))
    })
}

/// A number of matches, in words.
fn counted(count: u64, is_all: bool) -> String {
    match (count, is_all) {
        (1, true) => "1 record matches".to_owned(),
        (1, false) => "at least 1 record matches".to_owned(),
        (count, true) => format!("{count} records match"),
        (count, false) => format!("at least {count} records match"),
    }
}

/// A range of time within the question, beside which it is given.
fn span(request: &HintRequest<'_>) -> Option<Hint> {
    let span = spans::span_of(request.filter)?;
    let rest = suggested((span.rest != Filter::All).then_some(&span.rest));
    let (written, since) = (clipped(&span.written), span.since);
    let command = format!("logpond query --since {since}");
    let arguments = arguments(&span.rest);
    Some(Hint {
        message: format!(
            "'{written}' was looked for in the records; a range of time is given beside the question, as \
             --since {since}"
        ),
        command: Some(format!("{command} {arguments}").trim_end().to_owned()),
        ..rest
    })
}

/// A question of another language that is valid here, too, but as conditions and texts.
fn foreign(request: &HintRequest<'_>) -> Option<Hint> {
    let written = request.written?.trim();
    let found = foreign_reading(request.filter, written)?;
    let (text, here) = (clipped(written), clipped(&request.filter.to_string()));
    let said = format!("'{text}' means {here} here; it looks like");
    Some(hint_of(found, &said, request.names, Filter::clone))
}

fn foreign_reading(filter: &Filter, written: &str) -> Option<Interpretation> {
    let written = written.trim();
    let is_text = matches!(filter, Filter::All | Filter::Text(_));
    // Programs write questions of this language in one way, and one text is looked at as such.
    if is_text || written.len() > TEXT_BYTES_MAX || written == filter.to_string() {
        return None;
    }
    reading::question(written).filter(|found| found.meant.as_ref() != Some(filter))
}

/// A value that looks like more than a value: `app=web-1,level=error`, `app=web*`.
fn of_one_value(request: &HintRequest<'_>) -> Option<Hint> {
    let Filter::Field(field) = request.filter else {
        return None;
    };
    let value = equal_to(field).filter(|value| value.len() <= TEXT_BYTES_MAX)?;
    let written = format!("{}={value}", field.name);
    let found = reading::question(&written)?;
    if found
        .meant
        .as_ref()
        .is_none_or(|meant| meant == request.filter)
    {
        return None;
    }
    let said = format!("'{}' is one value here; it looks like", clipped(value));
    Some(hint_of(found, &said, request.names, Filter::clone))
}

/// Texts that look like something else than text.
fn texts(request: &HintRequest<'_>) -> Vec<Hint> {
    let parts = match request.filter {
        Filter::And(parts) => &parts[..],
        one => std::slice::from_ref(one),
    };
    let mut hints = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let Filter::Text(Pattern::Substring {
            text,
            case_insensitive,
        }) = part
        else {
            continue;
        };
        let text = std::str::from_utf8(text).unwrap_or_default().trim();
        if text.len() > TEXT_BYTES_MAX {
            continue;
        }
        let rewritten = with_known_fields(text, request.names);
        let read = rewritten.as_deref().unwrap_or(text);
        let Some(found) = reading(read, *case_insensitive) else {
            continue;
        };
        let text = clipped(text);
        let said = format!("'{text}' was searched for as text; it looks like");
        hints.push(hint_of(found, &said, request.names, |meant| {
            let others = parts.iter().enumerate().filter(|(other, _)| *other != at);
            let others = others.map(|(_, part)| part.clone());
            Filter::and(std::iter::once(meant.clone()).chain(others))
        }));
    }
    hints
}

/// A text that is a condition where a field has the name in it, and a sentence where none has: `level: error`,
/// `user is null`. `None` if it is none.
fn with_known_fields(text: &str, names: Option<&[&str]>) -> Option<String> {
    let names = names.unwrap_or_default();
    let is_field = |name: &str| name == LEVEL || names.contains(&name);
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [name, "is", "null"] if is_field(name) => return Some(format!("{name} IS NULL")),
        [name, "is", "not", "null"] if is_field(name) => {
            return Some(format!("{name} IS NOT NULL"));
        }
        _ => {}
    }
    let mut joined = String::with_capacity(text.len());
    let mut is_changed = false;
    for (at, word) in words.iter().enumerate() {
        joined.push_str(word);
        let name = word.trim_start_matches('(').strip_suffix(':');
        if at + 1 < words.len() && name.is_some_and(is_field) {
            is_changed = true;
        } else {
            joined.push(' ');
        }
    }
    is_changed.then(|| joined.trim_end().to_owned())
}

/// True if [`with_known_fields`] depends on names.
fn may_have_known_fields(text: &str) -> bool {
    text.contains(": ") || text.ends_with(" null")
}

/// The hint of a reading; `whole` makes the question of its meaning.
fn hint_of(
    found: Interpretation,
    said: &str,
    names: Option<&[&str]>,
    whole: impl FnOnce(&Filter) -> Filter,
) -> Hint {
    let Interpretation {
        looks_like,
        meant,
        command,
    } = found;
    let (meant, unknown) = match &meant {
        Some(meant) => mended(meant, names),
        None => (Filter::All, Vec::new()),
    };
    let mut message = format!("{said} {looks_like}");
    if let Some(unknown) = unknown.first() {
        message.push_str("; ");
        message.push_str(unknown);
    }
    let whole = (meant != Filter::All).then(|| whole(&meant));
    let suggested = suggested(whole.as_ref());
    Hint {
        message,
        command: suggested.command.or(command),
        query: suggested.query,
        ..Hint::default()
    }
}

/// A hint without its message.
fn suggested(filter: Option<&Filter>) -> Hint {
    let filter = filter.filter(|filter| !has_stray_joint(filter));
    let query = filter.map(Filter::to_string);
    // What is suggested has to work.
    let query = query.filter(|query| query::parse(query).is_ok());
    let command = |filter| format!("logpond query {}", arguments(filter));
    Hint {
        command: filter.filter(|_| query.is_some()).map(command),
        query,
        ..Hint::default()
    }
}

fn outside(request: &HintRequest<'_>) -> Vec<Hint> {
    let sides = [
        (request.before, "before", true),
        (request.behind, "after", false),
    ];
    let mut hints = Vec::new();
    for (side, place, is_before) in sides {
        let Some(side) = side.filter(|side| side.count > 0) else {
            continue;
        };
        let records = counted(side.count, side.is_all);
        let nearest = side.nearest;
        let end = if is_before { "newest" } else { "oldest" };
        hints.push(Hint {
            message: format!("{records} {place} the range; the {end} is of {nearest}"),
            from: is_before.then_some(nearest),
            to: (!is_before).then(|| nearest.saturating_add(1)),
            ..Hint::default()
        });
    }
    hints
}

/// A text for a message: without control characters, and no longer than is read.
fn clipped(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).map(clean).collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}
