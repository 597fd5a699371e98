//! Which values a label has.

use std::collections::BTreeSet;

use logpond_record::{Record, Value};
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use crate::label::{self, ComputedLabel};

/// The most memory that the values take.
const BYTES_MAX: usize = 64 << 20;

/// What a value costs beside its text: its part of the set.
const VALUE_OVERHEAD_BYTES: usize = 32;

/// Collects the values of a label.
#[derive(Clone, Debug)]
pub struct LabelValues {
    label: Box<str>,
    values: BTreeSet<Box<[u8]>>,
    bytes: usize,
    unlisted: u64,
}

impl LabelValues {
    /// No value yet. Any field may be a label.
    pub fn new(label: &str) -> LabelValues {
        LabelValues {
            label: label.into(),
            values: BTreeSet::new(),
            bytes: 0,
            unlisted: 0,
        }
    }

    /// The label, as LogQL names it.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// About the memory that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the value that a record has.
    pub fn add(&mut self, record: &Record<'_>) {
        let label = std::mem::take(&mut self.label);
        if let Some(computed) = ComputedLabel::named(&label) {
            self.add_text(&computed.of(record));
        } else if let Some(value) = label::value(record, &label) {
            self.add_value(value);
        }
        self.label = label;
    }

    /// Adds a value; a null and an empty text are none.
    pub fn add_value(&mut self, value: &Value<'_>) {
        if *value != Value::Null {
            self.add_text(&value.to_text());
        }
    }

    /// Adds a value by its text.
    pub fn add_text(&mut self, text: &[u8]) {
        if text.is_empty() || self.values.contains(text) {
            return;
        }
        let cost = text.len() + VALUE_OVERHEAD_BYTES;
        if self.bytes + cost > BYTES_MAX {
            self.unlisted += 1;
            return;
        }
        self.bytes += cost;
        self.values.insert(text.into());
    }

    /// Adds what another has of the same label.
    pub fn merge(&mut self, other: LabelValues) {
        debug_assert_eq!(self.label, other.label);
        self.unlisted += other.unlisted;
        other.values.iter().for_each(|text| self.add_text(text));
    }

    /// Appends the values to a message between nodes.
    pub fn encode(&self, out: &mut Encoder) {
        out.number(self.unlisted);
        out.count(self.values.len());
        self.values.iter().for_each(|text| out.bytes(text));
    }

    /// Adds what another node has, as [`LabelValues::encode`] wrote it.
    ///
    /// # Errors
    /// When the bytes are something else; a part may have been added then.
    pub fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.unlisted += from.number("the values without room")?;
        for _ in 0..from.count(1, "the values")? {
            self.add_text(from.bytes(usize::MAX, "a value")?);
        }
        Ok(())
    }

    /// The values in the order of their bytes, and how often one found no room.
    pub fn finish(self) -> (Vec<String>, u64) {
        let texts = self.values.iter();
        let texts = texts.map(|text| String::from_utf8_lossy(text).into_owned());
        (texts.collect(), self.unlisted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bounded_and_merge() {
        let (mut a, mut b) = (LabelValues::new("x"), LabelValues::new("x"));
        a.add_value(&Value::Str("b".into()));
        a.add_value(&Value::Null);
        a.add_text(b"");
        b.add_value(&Value::Int(7));
        let mut sent = Encoder::new(1);
        b.encode(&mut sent);
        let sent = sent.finish();
        a.merge_encoded(&mut Decoder::new(&sent, 1).unwrap())
            .unwrap();
        b.merge(a.clone());
        let expected = (vec!["7".to_owned(), "b".to_owned()], 0);
        assert_eq!((&a.clone().finish(), &b.finish()), (&expected, &expected));
        let long = vec![b'v'; BYTES_MAX];
        a.add_text(&long);
        assert_eq!(a.finish().1, 1);
    }
}
