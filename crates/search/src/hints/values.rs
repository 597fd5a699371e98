//! Values that a question compares a field with, against those that records have.

use super::{
    Hint, HintRequest, clipped, counted, has_negation, is_unknown, mended_hint, suggested,
    with_fields,
};
use crate::Number;
use crate::nearest;
use crate::query::{Comparison, FieldFilter, FieldTest, Filter, Pattern};
use crate::size::{parse_duration, parse_size};

/// The most fields whose values are looked at.
const COMPARED_MAX: usize = 3;

/// The most values that a message lists.
const LISTED_MAX: usize = 5;

/// Signs between the parts of names, which people confuse.
const SEPARATORS: [char; 4] = ['-', '_', '.', ' '];

/// The same as an expression.
const ANY_SEPARATOR: &str = "[-_. ]";

/// Values that the records of the range have in a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldValues {
    /// The name of the field.
    pub name: String,
    /// The values, the most frequent first.
    pub values: Vec<String>,
    /// True if these are all.
    pub is_all: bool,
}

/// The text with which a condition compares a field for equality, unless it means a severity.
pub(super) fn equal_to(field: &FieldFilter) -> Option<&str> {
    let is_plain = !field.name.starts_with('_') && !field.may_mean_severity();
    match &field.test {
        FieldTest::Compare(Comparison::Equal, value) if is_plain => std::str::from_utf8(value).ok(),
        _ => None,
    }
}

/// True for a condition that one number is larger or smaller than another.
fn is_ordered(field: &FieldFilter) -> bool {
    let is_plain = !field.name.starts_with('_') && !field.may_mean_severity();
    let is_equal = matches!(&field.test, FieldTest::Compare(Comparison::Equal, _));
    is_plain && !is_equal && matches!(&field.test, FieldTest::Compare(..))
}

/// The fields whose values make a difference to what is said of this question.
pub fn compared_fields(filter: &Filter, names: Option<&[&str]>) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    with_fields(filter, &mut |field| {
        let is_compared = equal_to(field).is_some() || is_ordered(field);
        let is_compared = is_compared && !is_unknown(&field.name, names);
        let is_new = !fields.iter().any(|name| **name == *field.name);
        if is_compared && is_new && fields.len() < COMPARED_MAX {
            fields.push(field.name.to_string());
        }
        None
    });
    fields
}

/// Values that no record has. All of them are mended in one suggestion.
pub(super) fn unknown_values(request: &HintRequest<'_>) -> Option<Hint> {
    let mut said = Vec::new();
    // An exclusion is no reason to find nothing.
    if has_negation(request.filter) {
        return None;
    }
    let mended = with_fields(request.filter, &mut |field| {
        let known = known_values(request, &field.name)?;
        if is_ordered(field) {
            said.extend(no_numbers(field, known));
            return None;
        }
        let value = equal_to(field).filter(|_| known.is_all)?;
        let known = &known.values;
        if let Some(class) = status_class(value) {
            let name = clipped(&field.name);
            said.push(format!(
                "no record of the range has '{}' in '{name}'; numbers of a class are compared with an expression",
                clipped(value)
            ));
            return Some(FieldFilter {
                name: field.name.clone(),
                test: FieldTest::Contains(class),
            });
        }
        // Numbers are equal however they are written.
        let number = Number::parse(value.as_bytes());
        let is_same = |known: &String| {
            let known_number = Number::parse(known.as_bytes());
            let numbers = number.as_ref().zip(known_number.as_ref());
            known == value || numbers.is_some_and(|(number, known)| number.compare(known).is_eq())
        };
        if known.iter().any(is_same) {
            return None;
        }
        let is_list = |known: &String| known.starts_with('[') && known.contains(value);
        if known.iter().any(is_list) {
            let name = clipped(&field.name);
            said.push(format!(
                "'{name}' has lists in the range, and no '{}' alone; ':' finds a part of a list",
                clipped(value)
            ));
            return Some(FieldFilter {
                name: field.name.clone(),
                test: FieldTest::Contains(Pattern::substring(value.as_bytes(), false)),
            });
        }
        // A number that differs in a digit is another one.
        let meant = match number {
            Some(_) => None,
            None => nearest(value, known.iter().map(|known| &**known)),
        };
        let (name, value) = (clipped(&field.name), clipped(value));
        said.push(match meant {
            Some(meant) => format!(
                "no record of the range has '{value}' in '{name}'; the nearest is '{}'",
                clipped(meant)
            ),
            None => format!(
                "no record of the range has '{value}' in '{name}'; {}",
                listed(known)
            ),
        });
        Some(FieldFilter {
            name: field.name.clone(),
            test: FieldTest::Compare(Comparison::Equal, meant?.as_bytes().into()),
        })
    });
    mended_hint(request, &mended, &said)
}

fn known_values<'r>(request: &HintRequest<'r>, name: &str) -> Option<&'r FieldValues> {
    let known = request.values.iter().find(|known| known.name == name);
    known.filter(|known| !known.values.is_empty())
}

/// Why an order finds nothing where records have texts.
fn no_numbers(field: &FieldFilter, known: &FieldValues) -> Option<String> {
    let is_number = |value: &String| Number::parse(value.as_bytes()).is_some();
    if known.values.iter().any(is_number) {
        return None;
    }
    let name = clipped(&field.name);
    let example = clipped(known.values.first()?);
    let is_amount = parse_duration(&example).is_ok() || parse_size(&example).is_ok();
    let instead = if is_amount {
        "; LogQL compares durations and sizes with their units"
    } else {
        ""
    };
    Some(format!(
        "larger and smaller are for numbers, and '{name}' has texts in the range, such as '{example}'{instead}"
    ))
}

/// The expression that is meant by a class of statuses: `5xx`.
fn status_class(value: &str) -> Option<Pattern> {
    let digit = value.strip_suffix("xx").or(value.strip_suffix("XX"))?;
    let is_class = matches!(digit, "1" | "2" | "3" | "4" | "5");
    is_class.then(|| Pattern::regex(&format!("^{digit}\\d\\d$"), false))
}

/// Some of the values that there are.
fn listed(values: &[String]) -> String {
    let some = values.iter().take(LISTED_MAX);
    let some: Vec<String> = some.map(|value| format!("'{}'", clipped(value))).collect();
    let more = values.len() - some.len();
    let some = some.join(", ");
    match more {
        0 => format!("there are {some}"),
        more => format!("there are {some} and {more} more"),
    }
}

/// The question with the signs between the parts of names alike, and upper and lower case, if that makes a difference.
pub fn in_any_separator(filter: &Filter) -> Option<Filter> {
    let loose = with_texts(filter);
    let loose = with_fields(&loose, &mut |field| {
        let source = loose_source(equal_to(field)?)?;
        Some(FieldFilter {
            name: field.name.clone(),
            test: FieldTest::Contains(Pattern::regex(&format!("^{source}$"), true)),
        })
    });
    (loose != *filter).then_some(loose)
}

fn with_texts(filter: &Filter) -> Filter {
    match filter {
        Filter::And(parts) => Filter::and(parts.iter().map(with_texts)),
        Filter::Or(parts) => Filter::or(parts.iter().map(with_texts)),
        Filter::Not(inner) => Filter::negate(with_texts(inner)),
        Filter::Text(Pattern::Substring { text, .. }) => {
            let source = std::str::from_utf8(text).ok().and_then(loose_source);
            source.map_or_else(|| filter.clone(), |source| Filter::regex(&source, true))
        }
        Filter::All | Filter::Text(_) | Filter::Field(_) => filter.clone(),
    }
}

/// An expression of a text in which each sign between two letters or digits stands for all of them. `None` if there is
/// none, or the text is a number.
fn loose_source(text: &str) -> Option<String> {
    if Number::parse(text.as_bytes()).is_some() {
        return None;
    }
    let mut source = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let (mut before, mut is_changed) = (None, false);
    while let Some(c) = characters.next() {
        let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        if SEPARATORS.contains(&c) && is_part(before) && is_part(characters.peek().copied()) {
            source.push_str(ANY_SEPARATOR);
            // Words of a sentence are no parts of a name.
            is_changed |= c != ' ';
        } else {
            source.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4])));
        }
        before = Some(c);
    }
    is_changed.then_some(source)
}

/// Records that match with other signs between the parts of names.
pub(super) fn other_separator(request: &HintRequest<'_>) -> Option<Hint> {
    let (count, is_all) = request.any_separator.filter(|(count, _)| *count > 0)?;
    let loose = in_any_separator(request.filter)?;
    let records = counted(count, is_all);
    Some(Hint {
        message: format!("{records} if '-', '_', '.' and spaces are alike"),
        ..suggested(Some(&loose))
    })
}
