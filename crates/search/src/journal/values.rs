//! Where the values that entries have under a name are, to be counted: in which fields of which records.

use std::borrow::Cow;

use super::level::{LEVEL_FIELDS, level_of};
use super::names::{ENTRY_PREFIX, may_be_another};
use super::{MESSAGE, of_journals};
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
            name if LEVEL_FIELDS.contains(&name) => {
                Some(Cow::Owned(level_of(value)?.to_string().into_bytes()))
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
            let of_others = Filter::and([of_others(), lacks(name)]);
            let levels = LEVEL_FIELDS.iter();
            let levels = levels.map(|field| ValuesAt::new(field, of_others.clone()));
            let own = ValuesAt::new(name, Filter::All);
            std::iter::once(own).chain(levels).collect()
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
        let table: [(&str, &str, Option<&str>); 6] = [
            ("_raw", "", None),
            ("_raw", "[1]", Some("[1]")),
            ("MESSAGE", "", Some("")),
            ("level", "Error", Some("3")),
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
        assert_eq!(fields("SRC"), ["_entry.SRC"]);
        assert_eq!(fields("_UID"), ["_UID"]);
        assert_eq!(fields("http.method"), ["http.method"]);
        assert_eq!(fields("MESSAGE").len(), 4);
    }
}
