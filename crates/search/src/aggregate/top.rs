//! The most frequent values of a field, counted exactly.
//!
//! Values are the same if their text is: 500 and `"500"` count together, 500 and 500.0 do not.

use logpond_record::{Record, Value};
use logpond_segment::overview::{Overview, Values};
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::TypeSet;
use super::{FixedMap, with_named};
use crate::field::Target;

/// The most distinct values that are counted.
const VALUES_MAX: usize = 1 << 20;

/// The most memory that the distinct values take, their map included.
const BYTES_MAX: usize = 64 << 20;

/// What one value costs beside its text: key, counters and the map's free places.
const VALUE_OVERHEAD_BYTES: usize = 64;

/// Counts records by the value of a field.
#[derive(Clone, Debug)]
pub struct Top {
    field: Box<str>,
    values: FixedMap<Box<[u8]>, Tally>,
    bytes: usize,
    missing: u64,
    uncounted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Tally {
    count: u64,
    types: TypeSet,
}

/// One value and how often it occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopRow {
    /// The value's text.
    pub value: Box<[u8]>,
    /// Records with it.
    pub count: u64,
    /// Which types it had.
    pub types: TypeSet,
}

/// The finished answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopAnswer {
    /// The most frequent values, most frequent first, equal ones by their bytes.
    pub rows: Vec<TopRow>,
    /// Distinct values that were counted, shown or not.
    pub distinct: u64,
    /// Records with a value that is not shown.
    pub other: u64,
    /// Records without the field.
    pub missing: u64,
    /// Records whose values found no room; while this is 0 the answer is exact.
    pub uncounted: u64,
}

impl TopAnswer {
    /// Whether every record was counted.
    pub fn is_exact(&self) -> bool {
        self.uncounted == 0
    }
}

impl Top {
    /// Counts by this field; reserved names such as `_msg` work too.
    pub fn new(field: &str) -> Top {
        Top {
            field: field.into(),
            values: FixedMap::default(),
            bytes: 0,
            missing: 0,
            uncounted: 0,
        }
    }

    /// The field whose values are counted.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// About the memory that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
            .max(self.values.capacity() * size_of::<(Box<[u8]>, Tally)>())
    }

    /// Counts a record.
    pub fn add(&mut self, record: &Record<'_>) {
        let field = std::mem::take(&mut self.field);
        with_named(record, &field, |value| self.add_value(value, 1));
        self.field = field;
    }

    /// Counts `rows` records with this value, or without the field.
    pub fn add_value(&mut self, value: Option<&Value<'_>>, rows: u64) {
        match value {
            Some(value) => self.add_text(&value.to_text(), rows, TypeSet::of(value)),
            None => self.add_missing(rows),
        }
    }

    /// Counts all records of a segment; `false` if its overview does not tell their values.
    pub fn add_overview(&mut self, overview: &Overview) -> bool {
        if !matches!(Target::new(&self.field), Target::Field(_)) {
            return false;
        }
        let Some(field) = overview.fields.get(&self.field) else {
            self.add_missing(overview.rows);
            return true;
        };
        let Values::Counted(counted) = &field.values else {
            return false;
        };
        for (text, count) in counted.iter() {
            self.add_text(text, count.rows, count.types);
        }
        self.add_missing(overview.rows - field.rows);
        true
    }

    /// Counts `rows` records without the field.
    pub fn add_missing(&mut self, rows: u64) {
        self.missing += rows;
    }

    fn add_text(&mut self, text: &[u8], rows: u64, types: TypeSet) {
        if let Some(tally) = self.values.get_mut(text) {
            tally.count += rows;
            tally.types.merge(types);
            return;
        }
        let cost = text.len() + VALUE_OVERHEAD_BYTES;
        if self.values.len() >= VALUES_MAX || self.bytes + cost > BYTES_MAX {
            self.uncounted += rows;
            return;
        }
        self.bytes += cost;
        self.values
            .insert(text.into(), Tally { count: rows, types });
    }

    /// Adds what another counted by the same field.
    pub fn merge(&mut self, mut other: Top) {
        debug_assert_eq!(self.field, other.field);
        if other.values.len() > self.values.len() {
            std::mem::swap(self, &mut other);
        }
        self.missing += other.missing;
        self.uncounted += other.uncounted;
        let has_room = self.values.len() + other.values.len() <= VALUES_MAX
            && self.bytes + other.bytes <= BYTES_MAX;
        if has_room {
            let values = other.values.into_iter();
            return values
                .for_each(|(value, tally)| self.add_text(&value, tally.count, tally.types));
        }
        // Frequent values first: if room runs out, it is for rare ones.
        for row in sorted(other.values) {
            self.add_text(&row.value, row.count, row.types);
        }
    }

    /// Appends what was counted to a message between nodes: values with their counts, the most
    /// frequent first.
    pub fn encode(&self, out: &mut Encoder) {
        out.number(self.missing);
        out.number(self.uncounted);
        out.count(self.values.len());
        for row in sorted(self.values.clone()) {
            out.bytes(&row.value);
            out.number(row.count);
            out.number(u64::from(row.types.bits()));
        }
    }

    /// Adds what another node counted by the same field, as [`Top::encode`] wrote it.
    ///
    /// # Errors
    /// When the bytes are something else; a part may have been added then.
    pub fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.missing += from.number("the records without the field")?;
        self.uncounted += from.number("the records without room")?;
        for _ in 0..from.count(3, "the values")? {
            let value = from.bytes(usize::MAX, "a value")?;
            let count = from.number("a count")?;
            let types = TypeSet::from_bits(from.number("the types of a value")?);
            self.add_text(
                value,
                count,
                types.ok_or(DecodeError::Malformed("the types"))?,
            );
        }
        Ok(())
    }

    /// The `n` most frequent values; all for 0.
    pub fn finish(self, n: usize) -> TopAnswer {
        let mut rows = sorted(self.values);
        let distinct = rows.len() as u64;
        let shown = if n == 0 {
            rows.len()
        } else {
            n.min(rows.len())
        };
        let other = rows.drain(shown..).map(|row| row.count).sum();
        TopAnswer {
            rows,
            distinct,
            other,
            missing: self.missing,
            uncounted: self.uncounted,
        }
    }
}

fn sorted(values: FixedMap<Box<[u8]>, Tally>) -> Vec<TopRow> {
    let mut rows: Vec<TopRow> = values
        .into_iter()
        .map(|(value, tally)| TopRow {
            value,
            count: tally.count,
            types: tally.types,
        })
        .collect();
    rows.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.value.cmp(&b.value)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn text(value: &str) -> Value<'_> {
        Value::Str(value.into())
    }

    #[test]
    fn equal_counts_are_ordered_by_bytes() {
        let mut top = Top::new("x");
        for value in [text("b"), text("a"), Value::Int(5), text("5"), text("c")] {
            top.add_value(Some(&value), 1);
        }
        top.add_value(None, 7);
        let answer = top.finish(2);
        let rows: Vec<_> = answer.rows.iter().map(|r| (&*r.value, r.count)).collect();
        assert_eq!(rows, [(&b"5"[..], 2), (b"a", 1)]);
        assert_eq!((answer.distinct, answer.other, answer.missing), (4, 2, 7));
        assert!(answer.is_exact() && !answer.rows[0].types.is_bare_json());
    }

    #[test]
    fn memory_is_bounded_and_told() {
        let mut top = Top::new("x");
        let long = "v".repeat(1 << 20);
        for i in 0..100 {
            top.add_value(Some(&text(&format!("{long}{i}"))), 1);
        }
        let answer = top.finish(0);
        assert!(answer.distinct <= 64 && !answer.is_exact());
        assert_eq!(answer.distinct + answer.uncounted, 100);
    }

    proptest! {
        #[test]
        fn merging_in_any_order_equals_counting_at_once(
            values in proptest::collection::vec(0u8..20, 0..200),
            split in 0usize..200,
            n in 0usize..25,
        ) {
            let split = split.min(values.len());
            let count = |values: &[u8]| {
                let mut top = Top::new("x");
                for v in values {
                    top.add_value(Some(&Value::Int(i64::from(*v))), 1);
                }
                top
            };
            let (mut a, b) = (count(&values[..split]), count(&values[split..]));
            let mut sent = Encoder::new(1);
            b.encode(&mut sent);
            let sent = sent.finish();
            let mut received = a.clone();
            let mut from = Decoder::new(&sent, 1).expect("this version");
            prop_assert_eq!(received.merge_encoded(&mut from), Ok(()));
            let mut reversed = b.clone();
            reversed.merge(a.clone());
            a.merge(b);
            let answer = a.finish(n);
            prop_assert_eq!(&answer, &reversed.finish(n));
            prop_assert_eq!(&answer, &received.finish(n));
            let mut model: BTreeMap<String, u64> = BTreeMap::new();
            for v in &values {
                *model.entry(v.to_string()).or_default() += 1;
            }
            let mut model: Vec<_> = model.into_iter().collect();
            model.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            let shown = if n == 0 { model.len() } else { n };
            let rows: Vec<_> = answer
                .rows
                .iter()
                .map(|r| (String::from_utf8_lossy(&r.value).into_owned(), r.count))
                .collect();
            prop_assert_eq!(rows, model.into_iter().take(shown).collect::<Vec<_>>());
        }
    }
}
