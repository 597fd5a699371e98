//! Which fields there are: how many records have each, of which types, and about how many
//! distinct values.
//!
//! Up to [`EXACT_VALUES_MAX`] values are counted by their fingerprints, which is exact but for
//! collisions of 64-bit hashes; beyond, they are estimated with HyperLogLog within about 2 %.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

use logpond_record::{Message, Record, Value};
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::streams::stream_of;
use super::value_type::TypeSet;
use crate::lru::allocated;

/// The most distinct values that are counted exactly per field.
pub const EXACT_VALUES_MAX: usize = 1024;

/// The most field names that are kept; at 30 KB at most each, 60 MB together.
const NAMES_MAX: usize = 2048;

/// Registers of the estimate: 2^12 give a standard error of 1.6 %.
const REGISTER_BITS: u32 = 12;

/// Collects what fields there are.
#[derive(Clone, Debug, Default)]
pub struct FieldStats {
    rows: u64,
    fields: BTreeMap<Box<str>, Field>,
    unlisted: u64,
}

#[derive(Clone, Debug, Default)]
struct Field {
    rows: u64,
    types: TypeSet,
    distinct: Distinct,
}

/// One field of the finished answer.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldRow {
    /// The field's name.
    pub name: Box<str>,
    /// Records that have it.
    pub rows: u64,
    /// Records that have it as a part of all, from 0 to 1.
    pub share: f64,
    /// Types of its values.
    pub types: TypeSet,
    /// Distinct values by their text.
    pub distinct: u64,
    /// Whether `distinct` was counted rather than estimated.
    pub distinct_is_exact: bool,
}

/// The finished answer.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldsAnswer {
    /// Records looked at.
    pub rows: u64,
    /// The fields, those of most records first, equal ones by name.
    pub fields: Vec<FieldRow>,
    /// Occurrences of fields that are not listed, as there were too many names.
    pub unlisted: u64,
}

impl FieldStats {
    /// Nothing seen yet.
    pub fn new() -> FieldStats {
        FieldStats::default()
    }

    /// Counts a record: its fields, and its message as `_msg` where that is a part of the line.
    pub fn add(&mut self, record: &Record<'_>) {
        self.add_rows(1);
        let in_line = record.fields().count() - record.labels.len();
        for (name, value) in record.fields().take(in_line) {
            self.add_value(name, value, 1);
        }
        for (at, (name, value)) in record.labels.iter().enumerate() {
            // Of a name that occurs twice the one of the line counts, then the first label.
            let mut before = record.labels[..at].iter();
            if record.shape.field_slot(name).is_none() && !before.any(|(other, _)| other == name) {
                self.add_value(name, value, 1);
            }
        }
        if let Message::Part(value) = &record.message {
            self.add_value("_msg", value, 1);
        }
    }

    /// Counts the labels of a record: what was declared beside its line, by the names that LogQL has
    /// for it, and the service. The record itself is counted with [`FieldStats::add_rows`].
    pub fn add_labels(&mut self, record: &Record<'_>) {
        for (name, value) in stream_of(record).iter() {
            self.add_value(name, &Value::Str(value), 1);
        }
    }

    /// Counts records; their fields follow with [`FieldStats::add_value`].
    pub fn add_rows(&mut self, rows: u64) {
        self.rows += rows;
    }

    /// Counts `rows` records with this value of this field.
    pub fn add_value(&mut self, name: &str, value: &Value<'_>, rows: u64) {
        let Some(field) = self.field(name) else {
            self.unlisted += rows;
            return;
        };
        field.rows += rows;
        field.types.merge(TypeSet::of(value));
        field.distinct.add(fingerprint(&value.to_text()));
    }

    /// About the memory that it takes.
    pub fn bytes(&self) -> usize {
        let fields = self.fields.iter();
        let bytes = fields.map(|(name, field)| {
            allocated(name.len()) + 2 * size_of::<(Box<str>, Field)>() + field.distinct.bytes()
        });
        bytes.sum()
    }

    fn field(&mut self, name: &str) -> Option<&mut Field> {
        if !self.fields.contains_key(name) {
            if self.fields.len() >= NAMES_MAX {
                return None;
            }
            self.fields.insert(name.into(), Field::default());
        }
        self.fields.get_mut(name)
    }

    /// Adds what another saw.
    pub fn merge(&mut self, other: FieldStats) {
        self.rows += other.rows;
        self.unlisted += other.unlisted;
        for (name, theirs) in other.fields {
            let Some(mine) = self.field(&name) else {
                self.unlisted += theirs.rows;
                continue;
            };
            mine.rows += theirs.rows;
            mine.types.merge(theirs.types);
            mine.distinct.merge(theirs.distinct);
        }
    }

    /// Appends what was seen to a message between nodes.
    pub fn encode(&self, out: &mut Encoder) {
        out.number(self.rows);
        out.number(self.unlisted);
        out.count(self.fields.len());
        for (name, field) in &self.fields {
            out.bytes(name.as_bytes());
            out.number(field.rows);
            out.number(u64::from(field.types.bits()));
            field.distinct.encode(out);
        }
    }

    /// Adds what another node saw, as [`FieldStats::encode`] wrote it.
    ///
    /// # Errors
    /// When the bytes are something else; a part may have been added then.
    pub fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let mut other = FieldStats::new();
        other.rows = from.number("the records")?;
        other.unlisted = from.number("the values without room")?;
        for _ in 0..from.count(5, "the fields")? {
            let name = from.text(usize::MAX, "a field's name")?;
            let rows = from.number("a field's records")?;
            let types = TypeSet::from_bits(from.number("a field's types")?);
            let field = Field {
                rows,
                types: types.ok_or(DecodeError::Malformed("a field's types"))?,
                distinct: Distinct::decode(from)?,
            };
            other.fields.insert(name.into(), field);
        }
        self.merge(other);
        Ok(())
    }

    /// The finished answer.
    pub fn finish(self) -> FieldsAnswer {
        let all = self.rows.max(1) as f64;
        let mut fields: Vec<FieldRow> = self
            .fields
            .into_iter()
            .map(|(name, field)| FieldRow {
                name,
                rows: field.rows,
                share: field.rows as f64 / all,
                types: field.types,
                // An estimate may be too large, but there are no more values than records.
                distinct: field.distinct.count().min(field.rows),
                distinct_is_exact: matches!(field.distinct, Distinct::Exact(_)),
            })
            .collect();
        // Stable: names are in order already.
        fields.sort_by_key(|f| std::cmp::Reverse(f.rows));
        FieldsAnswer {
            rows: self.rows,
            fields,
            unlisted: self.unlisted,
        }
    }
}

/// A well-mixed hash of a value's text, the same everywhere.
fn fingerprint(text: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(text);
    hasher.finish()
}

/// A set of fingerprints, or what remains of one that grew too large.
#[derive(Clone, Debug)]
enum Distinct {
    Exact(BTreeSet<u64>),
    Estimate(Box<[u8]>),
}

impl Default for Distinct {
    fn default() -> Distinct {
        Distinct::Exact(BTreeSet::new())
    }
}

impl Distinct {
    fn add(&mut self, fingerprint: u64) {
        match self {
            Distinct::Exact(seen) => {
                seen.insert(fingerprint);
                if seen.len() > EXACT_VALUES_MAX {
                    *self = Distinct::Estimate(self.registers());
                }
            }
            Distinct::Estimate(registers) => register(registers, fingerprint),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            // The nodes of such a set are two thirds full.
            Distinct::Exact(seen) => seen.len() * size_of::<u64>() * 3 / 2,
            Distinct::Estimate(registers) => registers.len(),
        }
    }

    fn registers(&self) -> Box<[u8]> {
        match self {
            Distinct::Exact(seen) => {
                let mut registers = vec![0; 1 << REGISTER_BITS].into_boxed_slice();
                seen.iter().for_each(|f| register(&mut registers, *f));
                registers
            }
            Distinct::Estimate(registers) => registers.clone(),
        }
    }

    fn merge(&mut self, other: Distinct) {
        match other {
            Distinct::Exact(seen) => seen.into_iter().for_each(|f| self.add(f)),
            Distinct::Estimate(theirs) => {
                let mut mine = self.registers();
                for (a, b) in mine.iter_mut().zip(&theirs) {
                    *a = (*a).max(*b);
                }
                *self = Distinct::Estimate(mine);
            }
        }
    }

    fn encode(&self, out: &mut Encoder) {
        match self {
            Distinct::Exact(seen) => {
                out.flag(true);
                out.count(seen.len());
                let mut last = 0;
                for fingerprint in seen {
                    out.number(fingerprint.wrapping_sub(last));
                    last = *fingerprint;
                }
            }
            Distinct::Estimate(registers) => {
                out.flag(false);
                out.bytes(registers);
            }
        }
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Distinct, DecodeError> {
        if !from.flag("how values were counted")? {
            let registers = from.bytes(1 << REGISTER_BITS, "the registers")?;
            return match registers.len() == 1 << REGISTER_BITS {
                true => Ok(Distinct::Estimate(registers.into())),
                false => Err(DecodeError::Malformed("the registers")),
            };
        }
        let mut distinct = Distinct::default();
        let mut last = 0u64;
        for _ in 0..from.count(1, "the fingerprints")? {
            last = last.wrapping_add(from.number("a fingerprint")?);
            distinct.add(last);
        }
        Ok(distinct)
    }

    fn count(&self) -> u64 {
        match self {
            Distinct::Exact(seen) => seen.len() as u64,
            Distinct::Estimate(registers) => estimate(registers),
        }
    }
}

/// Keeps the longest run of leading zeros seen by the register that the hash's last bits choose.
fn register(registers: &mut [u8], fingerprint: u64) {
    let index = (fingerprint & ((1 << REGISTER_BITS) - 1)) as usize;
    let rank = ((fingerprint >> REGISTER_BITS).leading_zeros() - REGISTER_BITS + 1) as u8;
    registers[index] = registers[index].max(rank);
}

/// Flajolet et al., "HyperLogLog: the analysis of a near-optimal cardinality estimation
/// algorithm", with its correction for small sets.
fn estimate(registers: &[u8]) -> u64 {
    let m = registers.len() as f64;
    let alpha = 0.7213 / (1.0 + 1.079 / m);
    let sum: f64 = registers.iter().map(|r| 0.5f64.powi(i32::from(*r))).sum();
    let raw = alpha * m * m / sum;
    let empty = registers.iter().filter(|r| **r == 0).count();
    let corrected = match empty {
        1.. if raw <= 2.5 * m => m * (m / empty as f64).ln(),
        _ => raw,
    };
    corrected.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_listed_by_share() {
        let mut stats = FieldStats::new();
        stats.add_rows(10);
        stats.add_value("b", &Value::Int(1), 4);
        stats.add_value("a", &Value::Str("x".into()), 3);
        stats.add_value("a", &Value::Null, 1);
        stats.add_value("c", &Value::Bool(true), 10);
        let answer = stats.finish();
        let found: Vec<_> = answer
            .fields
            .iter()
            .map(|f| (&*f.name, f.rows, f.distinct))
            .collect();
        assert_eq!(found, [("c", 10, 1), ("a", 4, 2), ("b", 4, 1)]);
        let types: Vec<_> = answer.fields[1].types.iter().map(|t| t.as_str()).collect();
        assert_eq!(types, ["null", "string"]);
        assert_eq!(answer.fields[1].share, 0.4);
    }

    #[test]
    fn many_values_are_estimated() {
        for (values, exact) in [(1024i64, true), (2000, false), (100_000, false)] {
            let (mut a, mut b) = (FieldStats::new(), FieldStats::new());
            for i in 0..values {
                let half = if i % 3 == 0 { &mut a } else { &mut b };
                half.add_value("id", &Value::Int(i), 1);
                a.add_value("id", &Value::Int(i / 2), 1);
            }
            let mut sent = Encoder::new(1);
            b.encode(&mut sent);
            let sent = sent.finish();
            let mut received = a.clone();
            let mut from = Decoder::new(&sent, 1).unwrap();
            assert_eq!(received.merge_encoded(&mut from), Ok(()));
            a.merge(b);
            assert_eq!(a.clone().finish(), received.finish());
            let row = a.finish().fields.remove(0);
            assert_eq!(row.distinct_is_exact, exact);
            assert!(row.distinct <= row.rows);
            let off = (row.distinct as f64 / values as f64 - 1.0).abs();
            assert!(
                off <= if exact { 0.0 } else { 0.05 },
                "{values}: {}",
                row.distinct
            );
        }
    }

    #[test]
    fn names_are_bounded() {
        let mut stats = FieldStats::new();
        for i in 0..NAMES_MAX + 5 {
            stats.add_value(&format!("f{i}"), &Value::Null, 1);
        }
        let answer = stats.finish();
        assert_eq!((answer.fields.len(), answer.unlisted), (NAMES_MAX, 5));
    }
}
