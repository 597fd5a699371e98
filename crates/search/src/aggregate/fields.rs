//! Which fields there are: how many records have each, of which types, and about how many
//! distinct values.
//!
//! Up to [`EXACT_VALUES_MAX`] values are counted by their fingerprints; beyond, they are estimated, see
//! [`Distinct`].

use std::collections::BTreeMap;

use logpond_record::{Message, Record, Value, cast};
pub use logpond_segment::overview::EXACT_VALUES_MAX;
use logpond_segment::overview::{Distinct, Overview, Values, fingerprint};
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::TypeSet;
use super::streams::stream_of;
use crate::lru::allocated;

/// The most field names that are kept; at 30 KB at most each, 60 MB together.
const NAMES_MAX: usize = 2048;

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

    /// Counts all records of a segment.
    pub fn add_overview(&mut self, overview: &Overview) {
        self.add_rows(overview.rows);
        for (name, theirs) in &overview.fields {
            let Some(field) = self.field(name) else {
                self.unlisted += theirs.rows;
                continue;
            };
            field.rows += theirs.rows;
            field.types.merge(theirs.types);
            match &theirs.values {
                Values::Distinct(distinct) => field.distinct.merge(distinct),
                Values::Counted(counted) => {
                    let texts = counted.iter().map(|(text, _)| text);
                    texts.for_each(|text| field.distinct.add(fingerprint(text)));
                }
            }
        }
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
            mine.distinct.merge(&theirs.distinct);
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
        let all = cast::float(self.rows.max(1));
        let mut fields: Vec<FieldRow> = self
            .fields
            .into_iter()
            .map(|(name, field)| FieldRow {
                name,
                rows: field.rows,
                share: cast::float(field.rows) / all,
                types: field.types,
                // An estimate may be too large, but there are no more values than records.
                distinct: field.distinct.count().min(field.rows),
                distinct_is_exact: field.distinct.is_exact(),
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
