//! Where the values that entries have under a name are, to be counted: in which fields of which records.

use std::borrow::Cow;

use logpond_record::Severity;

use super::level::{LEVEL_FIELDS, emergencies, priority_of, without_priority};
use super::names::{ENTRY_PREFIX, may_be_another};
use super::{MESSAGE, of_journals};
use crate::label;
use crate::query::{FieldTest, Filter};

/// A field of some records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuesAt {
    /// The field, or a reserved name.
    pub field: String,
    /// Of which records.
    pub of: Filter,
}

impl ValuesAt {
    fn new(field: &str, of: Filter) -> ValuesAt {
        let field = field.to_owned();
        ValuesAt { field, of }
    }

    /// What a value of the field is shown as; `None` if it is not shown.
    pub fn shown<'v>(&self, value: &'v [u8]) -> Option<Cow<'v, [u8]>> {
        match &*self.field {
            // A line is empty where there is no message.
            "_raw" if value.is_empty() => None,
            name if name == label::SEVERITY || LEVEL_FIELDS.contains(&name) => {
                let severity = Severity::of_field(LEVEL_FIELDS[0], value)?;
                let priority = priority_of(severity, value);
                Some(Cow::Owned(priority.to_string().into_bytes()))
            }
            _ => Some(Cow::Borrowed(value)),
        }
    }

    /// Whether a value that looks like a list is one: a line may look like anything.
    pub fn has_lists(&self) -> bool {
        !matches!(&*self.field, "_raw" | "_msg")
    }
}

/// Where the values of a name are.
pub fn values_of(name: &str) -> Vec<ValuesAt> {
    let of_others = || Filter::negate(of_journals());
    let lacks = |name| Filter::negate(Filter::field(name, FieldTest::Exists));
    match name {
        MESSAGE => vec![
            ValuesAt::new("_raw", of_journals()),
            ValuesAt::new("_msg", of_others()),
            ValuesAt::new("_raw", Filter::and([of_others(), lacks("_msg")])),
            ValuesAt::new(MESSAGE, of_journals()),
        ],
        "PRIORITY" => {
            let is_emergency = || Filter::and([without_priority(), emergencies()]);
            let is_other = Filter::and([without_priority(), Filter::negate(emergencies())]);
            let words = LEVEL_FIELDS.iter();
            let words = words.map(|field| ValuesAt::new(field, is_emergency()));
            let rest = [
                ValuesAt::new(name, Filter::All),
                ValuesAt::new(label::SEVERITY, is_other),
            ];
            rest.into_iter().chain(words).collect()
        }
        name if may_be_another(name) => {
            vec![ValuesAt::new(&format!("{ENTRY_PREFIX}{name}"), Filter::All)]
        }
        name => vec![ValuesAt::new(name, Filter::All)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_entries_have_them() {
        let table: [(&str, &str, Option<&str>); 9] = [
            ("_raw", "", None),
            ("_raw", "[1]", Some("[1]")),
            ("MESSAGE", "", Some("")),
            ("level", "Error", Some("3")),
            ("level", "panic", Some("0")),
            ("_level", "fatal", Some("2")),
            ("_level", "warn", Some("4")),
            ("level", "odd", None),
            ("PRIORITY", "9", Some("9")),
        ];
        for (field, value, wanted) in table {
            let at = ValuesAt::new(field, Filter::All);
            let shown = at.shown(value.as_bytes());
            assert_eq!(
                shown.as_deref(),
                wanted.map(str::as_bytes),
                "{field} {value}"
            );
        }
        let fields = |name| -> Vec<String> {
            let each = values_of(name).into_iter();
            each.map(|at| at.field).collect()
        };
        assert_eq!(fields("SRC"), ["_logpond_entry.SRC"]);
        assert_eq!(fields("_UID"), ["_UID"]);
        assert_eq!(fields("http.method"), ["http.method"]);
        assert_eq!(fields("MESSAGE").len(), 4);
    }
}
