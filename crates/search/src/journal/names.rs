//! What records of other origin have under the names of journals, and the reverse: [`field_name`] makes the
//! name that a field is shown under, [`value`] finds the field by it.
//!
//! Invariant: of an entry of a journal a name means the field of exactly this name. Its other fields are
//! made of these, or are what a program said in its message, and never stand for what the journal vouches
//! for.

use std::borrow::Cow;

use logpond_record::{Record, Value};

use super::{ALIASES, OF_JOURNALS};

/// What the name of a condition begins with if it means what the entry that a record is shown as has under
/// a name of journals, rather than a field.
pub const ENTRY_PREFIX: &str = "_logpond_entry.";

/// The longest name that journals have.
const NAME_BYTES_MAX: usize = 64;

/// Whether a field of a journal may have this name: capitals, digits and underscores, at most 64, no
/// digit first.
pub fn is_journal_name(name: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(is_allowed)
}

/// The name that journals have for a field of another record, or would have: capitals, digits and
/// underscores.
pub fn field_name(name: &str) -> Cow<'_, str> {
    if is_journal_name(name) {
        return Cow::Borrowed(name);
    }
    if let Some((theirs, _)) = ALIASES.iter().find(|(_, ours)| *ours == name) {
        return Cow::Borrowed(theirs);
    }
    let capital = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let made: String = name.chars().take(NAME_BYTES_MAX).map(capital).collect();
    // An underscore in front would say that a journal vouches for it.
    let made = made.trim_start_matches('_');
    Cow::Owned(
        if made.starts_with(|c: char| c.is_ascii_digit()) || made.is_empty() {
            format!("F_{}", &made[..made.len().min(NAME_BYTES_MAX - 2)])
        } else {
            made.to_owned()
        },
    )
}

/// The place of a field among those of another record that a name of journals means, the least counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place<'f> {
    rank: u8,
    field: &'f str,
}

/// The place of a field among those of another record that a name of journals means: the one of exactly this
/// name, then the one that [`ALIASES`] names, then others by name. `None` if the name does not mean it.
pub fn place<'f>(name: &str, field: &'f str) -> Option<Place<'f>> {
    let rank = match field {
        _ if field == name => 0,
        _ if ALIASES.contains(&(name, field)) => 1,
        _ if field_name(field) == name => 2,
        _ => return None,
    };
    Some(Place { rank, field })
}

/// Whether another record may have under a name of journals what has another name.
pub(crate) fn may_be_another(name: &str) -> bool {
    let mut aliases = ALIASES.iter();
    let may_be_made = is_journal_name(name) && !name.starts_with('_');
    may_be_made || aliases.any(|(theirs, _)| *theirs == name)
}

/// What the entry that a record is shown as has under this name: of an entry of a journal its field, of
/// another record the first of the fields that the name means, see [`place`]. A null is no value of these.
pub fn value<'r, 'a>(record: &'r Record<'a>, name: &str) -> Option<&'r Value<'a>> {
    if !may_be_another(name) || is_of_journal(record) {
        return record.field(name);
    }
    let fields = record.fields().filter(|(_, value)| **value != Value::Null);
    let meant = fields.filter_map(|(field, value)| Some((place(name, field)?, value)));
    // The first one of a name counts, as everywhere.
    let best = meant.reduce(|best, other| if other.0 < best.0 { other } else { best });
    best.map(|(_, value)| value)
}

fn is_of_journal(record: &Record<'_>) -> bool {
    record.fields().any(|(name, _)| OF_JOURNALS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_is_shown_under_them() {
        let table = [
            ("SRC", "src", Some(2)),
            ("SRC", "SRC", Some(0)),
            ("HTTP_METHOD", "http.method", Some(2)),
            ("F_5XX", "5xx", Some(2)),
            ("SYSLOG_IDENTIFIER", "app", Some(1)),
            ("APP", "app", None),
            ("_PID", "procid", Some(1)),
            ("SYSLOG_PID", "procid", Some(1)),
            ("_PID", "pid", None),
            ("_UID", "uid", None),
            ("UID", "_uid", Some(2)),
            ("src", "src", Some(0)),
        ];
        for (name, field, rank) in table {
            let found = place(name, field).map(|place| place.rank);
            assert_eq!(found, rank, "{name} {field}");
            let shown = field_name(field) == name;
            assert!(!shown || found.is_some(), "{name} {field}");
            assert!(found.is_none_or(|rank| rank == 0) || may_be_another(name));
        }
    }
}
