//! Which fields there are and of which types their values: what a table of columns is made of.
//!
//! Of a segment it is known from counts, so that next to nothing is read; these are of all records of a row group.

use std::collections::BTreeMap;

use logpond_record::{Record, Value};
use logpond_segment::rows::FieldCount;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::{TypeSet, ValueType};
use crate::lru::allocated;

/// The most names that are kept: some MiB. A reader that shows fewer of them chooses by their counts.
const NAMES_MAX: usize = 65_536;

/// A field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Field {
    types: TypeSet,
    /// The number of its values.
    count: u64,
}

/// Collects names and types of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldTypes {
    of_lines: bool,
    is_exact: bool,
    fields: BTreeMap<Box<str>, Field>,
    is_cut: bool,
}

impl FieldTypes {
    /// No fields yet; with `of_lines` only those that stand in lines count, without labels.
    pub fn new(of_lines: bool) -> FieldTypes {
        FieldTypes {
            of_lines,
            ..FieldTypes::default()
        }
    }

    /// The same, but each record is looked at: without it fields of other records of the same row groups are among
    /// them.
    #[must_use]
    pub fn exact(self) -> FieldTypes {
        FieldTypes {
            is_exact: true,
            ..self
        }
    }

    /// True if each record is looked at.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Whether only fields count that stand in lines.
    pub fn is_of_lines(&self) -> bool {
        self.of_lines
    }

    /// The fields in the order of their names, with the types of their values.
    pub fn fields(&self) -> impl Iterator<Item = (&str, TypeSet)> {
        let fields = self.fields.iter();
        fields.map(|(name, field)| (&**name, field.types))
    }

    /// The fields in the order of their names, with the number of their values.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        let fields = self.fields.iter();
        fields.map(|(name, field)| (&**name, field.count))
    }

    /// Whether there are more fields than have room.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// About the memory that it takes.
    pub fn bytes(&self) -> usize {
        let names = self.fields.keys();
        let bytes = names.map(|name| allocated(name.len()) + 2 * size_of::<(Box<str>, Field)>());
        bytes.sum()
    }

    /// Adds the fields of a record.
    pub fn add(&mut self, record: &Record<'_>) {
        let labels = if self.of_lines {
            record.labels.len()
        } else {
            0
        };
        let fields = record.fields().count() - labels;
        for (name, value) in record.fields().take(fields) {
            self.add_field(
                name,
                Field {
                    types: TypeSet::of(value),
                    count: 1,
                },
            );
        }
    }

    /// Adds a value of a field.
    pub fn add_value(&mut self, name: &str, value: &Value<'_>) {
        self.add_field(
            name,
            Field {
                types: TypeSet::of(value),
                count: 1,
            },
        );
    }

    /// Adds values of a field by their counts. Of those that no column holds nothing is added: they
    /// are nulls or bytes, which the counts do not tell apart.
    pub fn add_counts(&mut self, name: &str, count: &FieldCount) {
        let mut types = TypeSet::default();
        let counts = [
            (count.text, ValueType::String),
            (count.json, ValueType::Json),
            (count.int, ValueType::Int),
            (count.float, ValueType::Float),
            (count.bool, ValueType::Bool),
            (count.shape_null, ValueType::Null),
        ];
        let mut all = 0;
        for (count, kind) in counts.into_iter().filter(|(count, _)| *count > 0) {
            types.insert(kind);
            all += count;
        }
        self.add_field(name, Field { types, count: all });
    }

    fn add_field(&mut self, name: &str, field: Field) {
        let has_room = self.fields.len() < NAMES_MAX;
        match self.fields.get_mut(name) {
            Some(known) => {
                known.types.merge(field.types);
                known.count = known.count.saturating_add(field.count);
            }
            None if has_room => _ = self.fields.insert(name.into(), field),
            None => self.is_cut = true,
        }
    }

    /// Adds what another has.
    pub fn merge(&mut self, other: FieldTypes) {
        self.is_cut |= other.is_cut;
        for (name, field) in other.fields {
            self.add_field(&name, field);
        }
    }

    /// Appends the fields to a message between nodes.
    pub fn encode(&self, out: &mut Encoder) {
        out.flag(self.is_cut);
        out.count(self.fields.len());
        for (name, field) in &self.fields {
            out.bytes(name.as_bytes());
            out.number(u64::from(field.types.bits()));
            out.number(field.count);
        }
    }

    /// Adds what another node has, as [`FieldTypes::encode`] wrote it.
    ///
    /// # Errors
    /// When the bytes are something else; a part may have been added then.
    pub fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.is_cut |= from.flag("whether fields are left out")?;
        for _ in 0..from.count(3, "the fields")? {
            let name = from.text(usize::MAX, "a field")?;
            let types = TypeSet::from_bits(from.number("the types of a field")?);
            let types = types.ok_or(DecodeError::Malformed("the types of a field"))?;
            let count = from.number("the number of values of a field")?;
            self.add_field(name, Field { types, count });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_merge_and_come_back() {
        let (mut a, mut b) = (FieldTypes::new(false), FieldTypes::new(false));
        a.add_value("n", &Value::Int(1));
        b.add_value("n", &Value::Float(0.5));
        b.add_value("t", &Value::Str("x".into()));
        let mut out = Encoder::default();
        b.encode(&mut out);
        let bytes = out.finish();
        let mut encoded = a.clone();
        let mut from = Decoder::bare(&bytes);
        encoded.merge_encoded(&mut from).unwrap();
        from.finish().unwrap();
        a.merge(b);
        assert_eq!(a, encoded);
        let fields: Vec<_> = a.fields().map(|(name, _)| name).collect();
        assert_eq!(fields, ["n", "t"]);
        for length in 0..bytes.len() {
            let mut broken = FieldTypes::default();
            assert!(
                broken
                    .merge_encoded(&mut Decoder::bare(&bytes[..length]))
                    .is_err()
            );
        }
    }

    #[test]
    fn there_are_only_so_many() {
        let mut types = FieldTypes::new(false);
        for n in 0..=NAMES_MAX {
            assert!(!types.is_cut());
            types.add_value(&n.to_string(), &Value::Int(1));
        }
        assert!(types.is_cut());
        assert_eq!(types.fields().count(), NAMES_MAX);
    }
}
