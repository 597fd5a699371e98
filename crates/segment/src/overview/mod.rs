//! What a segment holds, counted when it is made: its fields with their types, their records and their
//! values.
//!
//! Questions about all records of a segment are answered from here, without reading its rows. An overview
//! of a merged segment is made of those of its inputs. `docs/format/segment.md` is normative.
//!
//! Bounds: [`FIELDS_MAX`] fields; of each [`VALUES_MAX`] values with their records, or a [`Distinct`]; and
//! [`BYTES_MAX`] of all.

mod collect;
mod distinct;

use std::collections::BTreeMap;

use logpond_record::TypeSet;

pub use collect::OverviewBuilder;
pub use distinct::{Distinct, EXACT_VALUES_MAX, fingerprint};

use crate::wire::{DecodeError, Decoder, Encoder};

/// The most fields of an overview: where there are more, there is none.
pub const FIELDS_MAX: usize = 1 << 14;

/// About the most memory of an overview: where it takes more, there is none.
const BYTES_MAX: usize = 16 << 20;

/// The most values of a field that are kept with their records …
const VALUES_MAX: usize = 256;

/// … and the most bytes of their texts together.
const VALUES_BYTES_MAX: usize = 8 << 10;

/// The name of the message among the fields.
pub const MESSAGE: &str = "_msg";

/// The version of the bytes of an overview.
const VERSION: u64 = 1;

/// The largest overview that is read, in bytes after decompression.
pub(crate) const OVERVIEW_BYTES_MAX: usize = 64 << 20;

/// What a segment holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// Records.
    pub rows: u64,
    /// The fields, and the message as [`MESSAGE`] where it is a part of the line.
    pub fields: BTreeMap<Box<str>, FieldOverview>,
}

/// What is known of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldOverview {
    /// Records with the field.
    pub rows: u64,
    /// The types of its values.
    pub types: TypeSet,
    /// Its values.
    pub values: Values,
}

/// The values of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// All of them, by their texts.
    Counted(ValueCounts),
    /// How many they are.
    Distinct(Distinct),
}

/// Values with their records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueCounts {
    values: BTreeMap<Box<[u8]>, ValueCount>,
    bytes: usize,
}

/// The records of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueCount {
    /// How many they are.
    pub rows: u64,
    /// The types of the value.
    pub types: TypeSet,
}

impl Default for Values {
    fn default() -> Values {
        Values::Counted(ValueCounts::default())
    }
}

impl ValueCounts {
    /// The values in the order of their texts.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], ValueCount)> {
        self.values.iter().map(|(text, count)| (&**text, *count))
    }

    fn distinct(&self) -> Distinct {
        let mut distinct = Distinct::default();
        let texts = self.values.keys();
        texts.for_each(|text| distinct.add(fingerprint(text)));
        distinct
    }
}

impl Values {
    /// About the memory that they take.
    fn bytes(&self) -> usize {
        match self {
            Values::Counted(counted) => {
                counted.bytes + counted.values.len() * size_of::<(Box<[u8]>, ValueCount)>()
            }
            Values::Distinct(distinct) => distinct.bytes(),
        }
    }

    fn add(&mut self, text: &[u8], count: ValueCount) {
        match self {
            Values::Distinct(distinct) => distinct.add(fingerprint(text)),
            Values::Counted(counted) => {
                if let Some(known) = counted.values.get_mut(text) {
                    known.rows += count.rows;
                    known.types.merge(count.types);
                    return;
                }
                counted.bytes += text.len();
                if counted.values.len() < VALUES_MAX && counted.bytes <= VALUES_BYTES_MAX {
                    counted.values.insert(text.into(), count);
                    return;
                }
                let mut distinct = counted.distinct();
                distinct.add(fingerprint(text));
                *self = Values::Distinct(distinct);
            }
        }
    }

    fn merge(&mut self, other: &Values) {
        match (&mut *self, other) {
            (_, Values::Counted(theirs)) => {
                theirs
                    .iter()
                    .for_each(|(text, count)| self.add(text, count));
            }
            (Values::Distinct(mine), Values::Distinct(theirs)) => mine.merge(theirs),
            (Values::Counted(mine), Values::Distinct(theirs)) => {
                let mut distinct = mine.distinct();
                distinct.merge(theirs);
                *self = Values::Distinct(distinct);
            }
        }
    }
}

impl Overview {
    /// Adds a value of a field that some records have.
    pub(crate) fn add(&mut self, name: &str, text: &[u8], count: ValueCount) {
        let field = self.field(name);
        field.rows += count.rows;
        field.types.merge(count.types);
        field.values.add(text, count);
    }

    fn field(&mut self, name: &str) -> &mut FieldOverview {
        if !self.fields.contains_key(name) {
            self.fields.insert(name.into(), FieldOverview::default());
        }
        self.fields.entry(name.into()).or_default()
    }

    /// Whether it has no more fields than it may.
    pub(crate) fn has_few_fields(&self) -> bool {
        self.fields.len() <= FIELDS_MAX
    }

    /// True if it is within its bounds.
    pub(crate) fn is_bounded(&self) -> bool {
        let fields = self.fields.iter();
        let bytes = fields.map(|(name, field)| name.len() + field.values.bytes());
        self.has_few_fields() && bytes.sum::<usize>() <= BYTES_MAX
    }

    /// Adds what other records have.
    pub fn merge(&mut self, other: &Overview) {
        self.rows += other.rows;
        for (name, theirs) in &other.fields {
            let mine = self.field(name);
            mine.rows += theirs.rows;
            mine.types.merge(theirs.types);
            mine.values.merge(&theirs.values);
        }
    }

    /// The overview as it is stored, before compression.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new(VERSION);
        out.number(self.rows);
        out.count(self.fields.len());
        for (name, field) in &self.fields {
            out.bytes(name.as_bytes());
            out.number(field.rows);
            out.number(u64::from(field.types.bits()));
            match &field.values {
                Values::Distinct(distinct) => {
                    out.flag(false);
                    distinct.encode(&mut out);
                }
                Values::Counted(counted) => {
                    out.flag(true);
                    out.count(counted.values.len());
                    for (text, count) in counted.iter() {
                        out.bytes(text);
                        out.number(count.rows);
                        out.number(u64::from(count.types.bits()));
                    }
                }
            }
        }
        out.finish()
    }

    /// Reads what [`Overview::encode`] wrote.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Overview, DecodeError> {
        let mut from = Decoder::new(bytes, VERSION)?;
        let mut overview = Overview {
            rows: from.number("the records")?,
            fields: BTreeMap::new(),
        };
        for _ in 0..from.count(5, "the fields")? {
            let name = from.text(usize::MAX, "a field's name")?.into();
            let rows = from.number("a field's records")?;
            let types = types_of(&mut from)?;
            let values = if from.flag("whether values were counted")? {
                Values::Counted(counted_of(&mut from)?)
            } else {
                Values::Distinct(Distinct::decode(&mut from)?)
            };
            overview.fields.insert(
                name,
                FieldOverview {
                    rows,
                    types,
                    values,
                },
            );
        }
        from.finish()?;
        Ok(overview)
    }
}

fn counted_of(from: &mut Decoder<'_>) -> Result<ValueCounts, DecodeError> {
    let mut counted = ValueCounts::default();
    for _ in 0..from.count(3, "the values")? {
        let text = from.bytes(usize::MAX, "a value")?;
        let rows = from.number("a value's records")?;
        let types = types_of(from)?;
        counted.bytes += text.len();
        counted
            .values
            .insert(text.into(), ValueCount { rows, types });
    }
    Ok(counted)
}

fn types_of(from: &mut Decoder<'_>) -> Result<TypeSet, DecodeError> {
    let types = from.number("the types")?;
    TypeSet::from_bits(types).ok_or(DecodeError::Malformed("the types"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Names, texts and types, few and many.
    fn values() -> impl Strategy<Value = Vec<(u8, u16, u8)>> {
        proptest::collection::vec((0u8..4, 0u16..2000, 0u8..7), 0..3000)
    }

    fn overview(values: &[(u8, u16, u8)]) -> Overview {
        let mut overview = Overview::default();
        for (name, text, kind) in values {
            overview.rows += 1;
            let text = text % 10u16.pow(u32::from(*name));
            let count = ValueCount {
                rows: 1,
                types: TypeSet::from_bits(1 << kind).unwrap(),
            };
            overview.add(&format!("f{name}"), text.to_string().as_bytes(), count);
        }
        overview
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn parts_merge_to_the_whole_and_come_back(values in values(), at in any::<usize>()) {
            let whole = overview(&values);
            let (first, second) = values.split_at(at % (values.len() + 1));
            let mut merged = overview(first);
            merged.merge(&overview(second));
            prop_assert_eq!(&merged, &whole);
            let bytes = whole.encode();
            prop_assert_eq!(Overview::decode(&bytes), Ok(whole));
            prop_assert!(Overview::decode(&bytes[..bytes.len() - 1]).is_err() || bytes.len() <= 1);
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Overview::decode(&bytes);
        }
    }
}
