//! Fields of several layers of a record, such as its attributes and those of its resource.
//!
//! The first layer keeps the names. A field of a later one whose name is taken has `@label` behind it, as a label
//! has beside a field of the line: neither is lost.

use std::borrow::Cow;
use std::collections::HashSet;

use logpond_record::limits::FIELDS_MAX;
use logpond_record::{LABEL_SUFFIX, Value, name_bit};

/// A field by reference.
pub(super) type Field<'f> = (Cow<'f, str>, &'f Value<'f>);

/// The fields with names of their own; `None` if all have some already, or are too many to be kept. Of equal fields one
/// stays.
pub(super) fn apart<'f>(
    fields: impl Iterator<Item = (&'f str, &'f Value<'f>)> + Clone,
) -> Option<Vec<Field<'f>>> {
    let is_refused = fields.clone().count() > FIELDS_MAX;
    if is_refused || are_distinct(fields.clone().map(|(name, _)| name)) {
        return None;
    }
    let mut taken: HashSet<Cow<'f, str>> = HashSet::new();
    let mut kept: Vec<Field<'f>> = Vec::new();
    for (name, value) in fields {
        let mut name = Cow::Borrowed(name);
        let is_there = |name: &str, kept: &[Field<'f>]| {
            kept.iter()
                .any(|(known, there)| known == name && *there == value)
        };
        while taken.contains(&name) && !is_there(&name, &kept) {
            name = format!("{name}{LABEL_SUFFIX}").into();
        }
        if taken.insert(name.clone()) {
            kept.push((name, value));
        }
    }
    Some(kept)
}

/// True if no name is there twice: mostly a few bits of each tell.
fn are_distinct<'n>(names: impl Iterator<Item = &'n str> + Clone) -> bool {
    let mut seen = 0_u64;
    for name in names.clone() {
        let bit = name_bit(name);
        if seen & bit != 0 {
            let mut known = HashSet::new();
            return names.into_iter().all(|name| known.insert(name));
        }
        seen |= bit;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields of several layers, and how they are kept.
    type Case<'c> = (&'c [(&'c str, i64)], &'c [&'c str]);

    fn named(names: &[(&str, i64)]) -> Option<Vec<String>> {
        let values: Vec<Value<'_>> = names.iter().map(|(_, value)| Value::Int(*value)).collect();
        let fields = names
            .iter()
            .zip(&values)
            .map(|((name, _), value)| (*name, value));
        let apart = apart(fields)?;
        let shown = apart
            .iter()
            .map(|(name, value)| format!("{name}={value:?}"));
        Some(shown.collect())
    }

    #[test]
    fn later_layers_have_names_of_their_own() {
        assert_eq!(named(&[]), None);
        assert_eq!(named(&[("a", 1), ("b", 1), ("ab", 1), ("ba", 2)]), None);
        let many: Vec<(String, i64)> = (0..500).map(|n| (format!("field{n}"), n)).collect();
        let many: Vec<(&str, i64)> = many.iter().map(|(name, n)| (&**name, *n)).collect();
        assert_eq!(named(&many), None);
        let table: [Case<'_>; 4] = [
            (&[("a", 1), ("a", 2)], &["a=Int(1)", "a@label=Int(2)"]),
            (&[("a", 1), ("b", 7), ("a", 1)], &["a=Int(1)", "b=Int(7)"]),
            (
                &[("a", 1), ("a", 2), ("a", 3), ("a", 2)],
                &["a=Int(1)", "a@label=Int(2)", "a@label@label=Int(3)"],
            ),
            (
                &[("a", 1), ("a@label", 2), ("a", 3)],
                &["a=Int(1)", "a@label=Int(2)", "a@label@label=Int(3)"],
            ),
        ];
        for (fields, expected) in table {
            assert_eq!(named(fields).unwrap(), expected, "{fields:?}");
        }
    }
}
