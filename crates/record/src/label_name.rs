//! Names of labels whose own name the line has taken, and names that no field has.
//!
//! A field of the line keeps its name, and a label of the same name is kept as `app@label` beside it, so
//! that neither is lost. A line may have a field of that name, too: then the label gets the suffix once
//! more, so the name with the most suffixes is always that of the label.
//!
//! Some names mean something else in answers and in files ([`RESERVED_NAMES`]). A field of the line or a label that
//! is called so has the suffix, too: so it is not lost, and passes for nothing that the program says.

use crate::shape::Shape;

/// The field of a record that a recording rule has written: the rule's name. Only the server itself writes it,
/// as a label of a batch. Queries leave records with it out, so a sender that had it could hide its records.
pub const RULE_FIELD: &str = "_rule";

/// What stands behind the name of a label that a field of the line has, too.
pub const LABEL_SUFFIX: &str = "@label";

/// Names that are no field's, each with that of a field that was sent under it: of parts of a record, and
/// of what an answer says between and behind its rows.
pub const RESERVED_NAMES: [(&str, &str); 19] = [
    ("_time", "_time@label"),
    ("_id", "_id@label"),
    ("_msg", "_msg@label"),
    ("_msg_bin", "_msg_bin@label"),
    ("_line", "_line@label"),
    ("_line_b64", "_line_b64@label"),
    ("_received", "_received@label"),
    ("_time_source", "_time_source@label"),
    ("_level", "_level@label"),
    ("_level_number", "_level_number@label"),
    ("_raw", "_raw@label"),
    ("_more", "_more@label"),
    ("_trailer", "_trailer@label"),
    ("_gap", "_gap@label"),
    ("_notice", "_notice@label"),
    ("_position", "_position@label"),
    ("_progress", "_progress@label"),
    ("_columns", "_columns@label"),
    ("_clipped", "_clipped@label"),
];

/// The name of a field that was sent under a name of [`RESERVED_NAMES`]; `None` for all other names.
#[inline]
pub fn unreserved(name: &str) -> Option<&'static str> {
    match name.as_bytes().first() {
        Some(b'_') => among_reserved(name),
        _ => None,
    }
}

/// True for names that no field has by which a sender may call one: those of [`RESERVED_NAMES`], and [`RULE_FIELD`].
#[inline]
pub fn is_reserved_for_senders(name: &str) -> bool {
    unreserved(name).is_some() || name == RULE_FIELD
}

fn among_reserved(name: &str) -> Option<&'static str> {
    let found = RESERVED_NAMES.iter().find(|(known, _)| *known == name);
    found.map(|(_, other)| *other)
}

/// A name without its suffixes, and how many it has. A name that is nothing else keeps the first.
#[inline]
pub fn split_label_name(name: &str) -> (&str, usize) {
    // Most names end otherwise.
    match name.as_bytes().last() {
        Some(b'l') => split(name),
        _ => (name, 0),
    }
}

fn split(name: &str) -> (&str, usize) {
    let (mut own, mut suffixes) = (name, 0);
    while let Some(rest) = own.strip_suffix(LABEL_SUFFIX).filter(|r| !r.is_empty()) {
        (own, suffixes) = (rest, suffixes + 1);
    }
    (own, suffixes)
}

/// Which names a shape's fields may have, suffixes aside: mostly it says at once that a label's own name
/// is free.
#[derive(Clone, Copy, Default)]
pub(crate) struct TakenNames(u64);

impl TakenNames {
    /// Those of these fields.
    pub(crate) fn new<'n>(names: impl Iterator<Item = &'n str>) -> TakenNames {
        let bits = names.map(|name| name_bit(split_label_name(name).0));
        TakenNames(bits.fold(0, |all, bit| all | bit))
    }

    #[inline]
    fn may_have(self, own: &str) -> bool {
        self.0 & name_bit(own) != 0
    }
}

/// One of 64 bits by the name: names with different bits differ.
#[inline]
pub fn name_bit(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return 1;
    };
    1 << ((bytes.len() * 23 + usize::from(*first) * 7 + usize::from(*last)) % 64)
}

impl Shape {
    /// True if a field may have a label's name, or no field may; otherwise the label keeps it. Found without
    /// looking at fields.
    #[inline]
    pub fn may_have_field(&self, label: &str) -> bool {
        let own = split_label_name(label).0;
        self.taken().may_have(own) || is_reserved_for_senders(own)
    }

    /// The name under which a label is kept beside lines of this shape; `None` if that is its own.
    #[inline]
    pub fn label_name(&self, label: &str) -> Option<String> {
        if self.may_have_field(label) {
            self.free_name(label)
        } else {
            None
        }
    }

    fn free_name(&self, label: &str) -> Option<String> {
        let (own, suffixes) = split_label_name(label);
        let slots = self.slots().iter();
        let taken = slots.filter(|slot| slot.name.starts_with(own) && slot.is_field());
        let taken = taken.map(|slot| split_label_name(&slot.name));
        let taken = taken.filter(|(name, _)| *name == own);
        let reserved = is_reserved_for_senders(own).then_some(0);
        let most = taken.map(|(_, suffixes)| suffixes).chain(reserved).max()?;
        (most >= suffixes).then(|| own.to_owned() + &LABEL_SUFFIX.repeat(most + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_names_that_no_field_has() {
        let table = [
            (r#"{"app":"⟨app:j⟩"}"#, "app", Some("app@label")),
            (r#"{"app":⟨app:n⟩}"#, "app", Some("app@label")),
            (r#"{"app":"⟨app:j⟩"}"#, "apt", None),
            (r#"{"app":"⟨app:j⟩"}"#, "app@label", None),
            (
                r#"{"app@label":"⟨app@label:j⟩"}"#,
                "app",
                Some("app@label@label"),
            ),
            (
                r#"{"app@label":"⟨app@label:j⟩","app":⟨app:i⟩}"#,
                "app@label",
                Some("app@label@label"),
            ),
            ("⟨_time:%s⟩ ⟨_msg:t⟩", "_msg", Some("_msg@label")),
            (Shape::TEXT, "_trailer", Some("_trailer@label")),
            (Shape::TEXT, "_trailer@label", None),
            (Shape::TEXT, "_rule", Some("_rule@label")),
            (r#"{"_id":"⟨_id@label:j⟩"}"#, "_id", Some("_id@label@label")),
            (Shape::TEXT, "_PID", None),
            (Shape::TEXT, "app", None),
        ];
        for (shape, label, expected) in table {
            let name = Shape::new(shape).unwrap().label_name(label);
            assert_eq!(name.as_deref(), expected, "{shape} {label}");
        }
    }

    #[test]
    fn reserved_names_have_others() {
        for (name, other) in RESERVED_NAMES {
            assert_eq!(unreserved(name), Some(other));
            assert_eq!(split_label_name(other), (name, 1));
            assert_eq!(unreserved(other), None);
        }
        for name in ["", "_", "_PID", "time", "_timezone", "_times"] {
            assert_eq!(unreserved(name), None, "{name}");
            assert!(!is_reserved_for_senders(name), "{name}");
        }
        assert_eq!(
            unreserved(RULE_FIELD),
            None,
            "a name that the server writes"
        );
        assert!(is_reserved_for_senders(RULE_FIELD));
    }

    #[test]
    fn suffixes_are_told_apart() {
        let table = [
            ("app", ("app", 0)),
            ("app@label", ("app", 1)),
            ("app@label@label", ("app", 2)),
            ("@label", ("@label", 0)),
            ("@label@label", ("@label", 1)),
            ("app@labels", ("app@labels", 0)),
            ("", ("", 0)),
        ];
        for (name, expected) in table {
            assert_eq!(split_label_name(name), expected, "{name}");
        }
    }
}
