//! Labels that records of a sender have over whatever it says.
//!
//! Invariants: after [`Stamp::apply`] no label of a batch and no field beside a line has the name of a stamped label, with
//! or without suffixes; a field of the line keeps its name, and the label comes before it where a label is meant.

use logpond_protocol::intake::rewrite::push_bounded;
use logpond_record::{Batch, EntryKind, Labels, Value, line_of, split_label_name};
use xxhash_rust::xxh3::Xxh3;

/// Labels that records of a sender have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    labels: Labels,
    /// A number that differs where the labels do; zero without labels.
    digest: u128,
    /// The labels as text, by which usage is counted.
    tenant: String,
}

impl Stamp {
    /// A stamp of these labels.
    pub fn new(labels: Labels) -> Stamp {
        let mut hash = Xxh3::new();
        for part in labels.iter().flat_map(|(name, value)| [name, value]) {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let digest = if labels.is_empty() {
            0
        } else {
            hash.digest128()
        };
        let texts = labels.iter().map(|(name, value)| format!("{name}={value}"));
        Stamp {
            tenant: texts.collect::<Vec<_>>().join(","),
            labels,
            digest,
        }
    }

    /// True if there are no labels.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The labels as text, by which usage is counted; `None` without labels.
    pub(super) fn tenant(&self) -> Option<&str> {
        (!self.tenant.is_empty()).then_some(&*self.tenant)
    }

    /// The labels.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The identity of what a sender sent: what two senders with different labels send is different, though it be the
    /// same bytes.
    pub fn identity(&self, of_bytes: u128) -> u128 {
        of_bytes ^ self.digest
    }

    /// Labels all records of a batch.
    pub fn apply(&self, batch: &mut Batch) {
        batch.labels.retain(|(name, _)| !self.has(name));
        batch.labels.extend(self.labels.iter().cloned());
        let is_said = |held| {
            let (_, envelope, _) = line_of(EntryKind::Enveloped, held);
            envelope.fields().any(|(name, _)| self.has(name))
        };
        if batch.kind != EntryKind::Enveloped || !batch.iter().any(is_said) {
            return;
        }
        let mut stamped = Batch::new(EntryKind::Enveloped, std::mem::take(&mut batch.labels));
        for held in batch.iter() {
            let (kind, envelope, line) = line_of(EntryKind::Enveloped, held);
            let fields = envelope.fields().filter(|(name, _)| !self.has(name));
            let fields: Vec<(&str, Value<'_>)> = fields.collect();
            let fields = fields.iter().map(|(name, value)| (*name, value));
            // There are fewer than before.
            push_bounded(&mut stamped, kind, envelope.time, fields, line);
        }
        *batch = stamped;
    }

    fn has(&self, name: &str) -> bool {
        let own = split_label_name(name).0;
        self.labels.iter().any(|(label, _)| **label == *own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp() -> Stamp {
        Stamp::new(vec![("team".into(), "payments".into())])
    }

    #[test]
    fn labels_of_the_sender_give_way() {
        let sent = ["app", "team", "team@label"].map(|name| (name.into(), "x".into()));
        let mut batch = Batch::new(EntryKind::Line, sent.to_vec());
        batch.push(b"hello");
        stamp().apply(&mut batch);
        let expected = [("app", "x"), ("team", "payments")];
        let expected = expected.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(batch.labels, expected);
    }

    #[test]
    fn fields_beside_a_line_give_way() {
        let value = Value::Str("x".into());
        let fields = ["team", "app", "team@label@label"].map(|name| (name, &value));
        let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
        batch.push_enveloped(EntryKind::Line, None, fields, b"hello");
        batch.push_enveloped(EntryKind::Line, None, [], b"world");
        stamp().apply(&mut batch);
        let names: Vec<Vec<String>> = batch
            .iter()
            .map(|held| {
                let (_, envelope, _) = line_of(EntryKind::Enveloped, held);
                envelope.fields().map(|(name, _)| name.to_owned()).collect()
            })
            .collect();
        assert_eq!(names, [vec!["app".to_owned()], vec![]]);
        let lines = batch
            .iter()
            .map(|held| line_of(EntryKind::Enveloped, held).2);
        assert!(lines.eq([&b"hello"[..], b"world"]));
    }

    #[test]
    fn the_same_bytes_of_two_senders_are_different() {
        let other = Stamp::new(vec![("team".into(), "fraud".into())]);
        assert_ne!(stamp().identity(7), other.identity(7));
        assert_ne!(stamp().identity(7), 7);
        assert_eq!(Stamp::default().identity(7), 7);
    }
}
