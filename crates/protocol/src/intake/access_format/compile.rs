//! From the parts of a definition to the steps of a format.

use std::collections::HashSet;

use logpond_record::limits::FIELD_NAME_BYTES_MAX;

use super::quoting::unquote;
use super::{
    AccessFormat, Clock, End, Escape, FieldMeaning, FormatError, FormatReason, Step, VARIABLES_MAX,
    Variable, apache, nginx,
};
use crate::intake::outline::BODY_PREFIX;

/// The longest name that a variable gives its field: there is room for what is put around it.
const NAME_BYTES_MAX: usize = FIELD_NAME_BYTES_MAX - BODY_PREFIX.len() - "_123".len();

/// The fields that a request is.
const REQUEST_FIELDS: [&str; 5] = ["method", "path", "query", "protocol", "request"];

/// The fields that a target is.
const TARGET_FIELDS: [&str; 2] = ["path", "query"];

/// A part of a definition.
pub(super) enum Item {
    Literal(String),
    Named(NamedVariable),
}

/// A variable or directive.
pub(super) struct NamedVariable {
    /// Its first byte in the definition.
    pub(super) at: usize,
    /// As it stands there.
    pub(super) written: String,
    /// What its field is called if another one has the usual name already.
    pub(super) own_name: String,
    pub(super) meaning: FieldMeaning,
    pub(super) is_list: bool,
}

pub(super) fn compile(definition: &str) -> Result<AccessFormat, FormatError> {
    let unquoted = unquote(definition)?;
    let text = unquoted.text.as_str();
    let mut items = if has_variable(text) {
        nginx::items(text)?
    } else {
        apache::items(text)?
    };
    name_fields(&mut items)?;
    let steps = steps(items, unquoted.escape)?;
    Ok(AccessFormat {
        steps: steps.into(),
        escape: unquoted.escape,
        is_json: text.trim_start().starts_with('{'),
        listed: None,
    })
}

fn has_variable(text: &str) -> bool {
    let bytes = text.as_bytes();
    let pairs = bytes.windows(2);
    pairs
        .filter(|pair| pair[0] == b'$')
        .any(|pair| pair[1].is_ascii_alphabetic() || matches!(pair[1], b'{' | b'_'))
}

/// Sees to it that each field has a name of its own, and that one time is the record's.
fn name_fields(items: &mut [Item]) -> Result<(), FormatError> {
    let whole = |reason| Err(FormatError { at: 0, reason });
    let named = || items.iter().filter_map(Item::named);
    match named().count() {
        0 => return whole(FormatReason::NoVariables),
        1..=VARIABLES_MAX => {}
        _ => return whole(FormatReason::TooMany),
    }
    let is_fit = |name: &str| (1..=NAME_BYTES_MAX).contains(&name.len());
    if let Some(named) = named().find(|named| !is_fit(&named.own_name)) {
        let (at, reason) = (named.at, FormatReason::Name(named.written.clone()));
        return Err(FormatError { at, reason });
    }
    let Some(time) = named().filter_map(NamedVariable::precision).max() else {
        return whole(FormatReason::NoTime);
    };
    let mut has_time = false;
    let mut taken = HashSet::new();
    for named in items.iter_mut().filter_map(Item::named_mut) {
        if named.precision() == Some(time) && !has_time {
            has_time = true;
            taken.insert(named.own_name.clone());
            continue;
        }
        named.claim(&mut taken);
    }
    Ok(())
}

impl Item {
    fn named(&self) -> Option<&NamedVariable> {
        match self {
            Item::Named(named) => Some(named),
            Item::Literal(_) => None,
        }
    }

    fn named_mut(&mut self) -> Option<&mut NamedVariable> {
        match self {
            Item::Named(named) => Some(named),
            Item::Literal(_) => None,
        }
    }
}

impl NamedVariable {
    /// How exactly it says the time, if it does.
    fn precision(&self) -> Option<u8> {
        match self.meaning {
            FieldMeaning::Time(Clock::Access, _) => Some(1),
            FieldMeaning::Time(Clock::Iso, _) => Some(2),
            FieldMeaning::Time(Clock::Other, _) => Some(3),
            _ => None,
        }
    }

    /// Takes the names of its fields, or falls back to its own one.
    fn claim(&mut self, taken: &mut HashSet<String>) {
        let fields: &[&str] = match &self.meaning {
            FieldMeaning::Request => &REQUEST_FIELDS,
            FieldMeaning::Target => &TARGET_FIELDS,
            FieldMeaning::Text(name)
            | FieldMeaning::Plain(name)
            | FieldMeaning::Number(name)
            | FieldMeaning::Duration(name, _) => &[name],
            // Another time is the record's.
            FieldMeaning::Time(_, _) => &[],
        };
        let is_free = !fields.is_empty() && !fields.iter().any(|name| taken.contains(*name));
        if is_free {
            taken.extend(fields.iter().map(|name| (*name).to_owned()));
            return;
        }
        let mut name = self.own_name.clone();
        for number in 2..=VARIABLES_MAX + 1 {
            if taken.insert(name.clone()) {
                break;
            }
            name = format!("{}_{number}", self.own_name);
        }
        self.meaning = match self.meaning {
            FieldMeaning::Number(_) => FieldMeaning::Number(name.into()),
            _ => FieldMeaning::Text(name.into()),
        };
    }
}

fn steps(items: Vec<Item>, escape: Escape) -> Result<Vec<Step>, FormatError> {
    let mut steps = Vec::with_capacity(items.len());
    let mut items = items.into_iter().peekable();
    while let Some(item) = items.next() {
        let named = match item {
            Item::Literal(text) => {
                steps.push(Step::Literal(text.into()));
                continue;
            }
            Item::Named(named) => named,
        };
        let end = end(&named, items.peek(), escape)?;
        let meaning = named.meaning;
        steps.push(Step::Variable(Variable { meaning, end }));
    }
    Ok(steps)
}

/// Where a variable ends, by what follows it.
fn end(named: &NamedVariable, next: Option<&Item>, escape: Escape) -> Result<End, FormatError> {
    Ok(match next {
        None => End::Line,
        Some(Item::Literal(text)) if text.starts_with('"') && escape != Escape::None => End::Quote,
        Some(Item::Literal(text)) if named.is_list => End::List(text.as_str().into()),
        Some(Item::Literal(text)) => End::Text(text.as_str().into()),
        // `$host$request_uri`: a path begins with a slash, and no name of a host has one.
        Some(Item::Named(next)) if is_path(&next.meaning) && is_host(&named.meaning) => {
            End::Text("/".into())
        }
        Some(Item::Named(next)) => {
            let at = next.at;
            let reason = FormatReason::Adjacent(named.written.clone(), next.written.clone());
            return Err(FormatError { at, reason });
        }
    })
}

fn is_path(meaning: &FieldMeaning) -> bool {
    *meaning == FieldMeaning::Target
        || matches!(meaning, FieldMeaning::Text(name) if &**name == "path")
}

fn is_host(meaning: &FieldMeaning) -> bool {
    matches!(meaning, FieldMeaning::Text(name) if matches!(&**name, "host" | "server_name"))
}
