//! Collects records into batches, in their order.

use std::sync::Arc;

use logpond_record::limits::TRUNCATED_FIELD;
use logpond_record::{Batch, EntryKind, Labels};

use super::Context;
use logpond_settings::Form;

/// The kind of entries in which records of a form go to the journal. Those of GELF are decoded before.
pub(super) fn kind_of(form: Form) -> EntryKind {
    match form {
        Form::Line | Form::Gelf => EntryKind::Line,
        Form::Syslog => EntryKind::Syslog,
    }
}

/// Batches of one sender.
///
/// Invariant: batches come out in the order in which their records came in.
pub(super) struct Gather {
    kind: EntryKind,
    labels: Labels,
    done: Vec<Arc<Batch>>,
    current: Batch,
    bytes: usize,
    records: usize,
}

impl Gather {
    pub(super) fn new(kind: EntryKind, labels: Labels) -> Gather {
        let current = Batch::new(kind, labels.clone());
        Gather {
            kind,
            labels,
            done: Vec::new(),
            current,
            bytes: 0,
            records: 0,
        }
    }

    /// Payload bytes gathered, with four for each record's length.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub(super) fn push(&mut self, raw: &[u8]) {
        self.current.push(raw);
        self.bytes += raw.len() + 4;
        self.records += 1;
    }

    /// Adds a record that was cut from `sent_bytes`, in a batch of its own that says so.
    pub(super) fn push_cut(&mut self, raw: &[u8], sent_bytes: u64) {
        self.close_current();
        let mut labels = self.labels.clone();
        labels.push((TRUNCATED_FIELD.into(), sent_bytes.to_string().into()));
        let mut batch = Batch::new(self.kind, labels);
        batch.push(raw);
        self.done.push(Arc::new(batch));
        self.bytes += raw.len() + 4;
        self.records += 1;
    }

    /// Adds a record of which so many bytes are missing; counts it if it was cut.
    pub(super) fn add(&mut self, raw: &[u8], truncated_bytes: usize, context: &Context) {
        if truncated_bytes == 0 {
            return self.push(raw);
        }
        context.metrics.intake(context.intake).truncated.add(1);
        self.push_cut(raw, (raw.len() + truncated_bytes) as u64);
    }

    /// Everything gathered; the gather is empty afterwards.
    pub(super) fn take(&mut self) -> Vec<Arc<Batch>> {
        self.close_current();
        self.bytes = 0;
        self.records = 0;
        std::mem::take(&mut self.done)
    }

    fn close_current(&mut self) {
        if !self.current.is_empty() {
            let next = Batch::new(self.kind, self.labels.clone());
            self.done
                .push(Arc::new(std::mem::replace(&mut self.current, next)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_records_keep_their_place_and_are_marked() {
        let mut gather = Gather::new(EntryKind::Line, Labels::new());
        gather.push(b"a");
        gather.push_cut(b"b", 99);
        gather.push(b"c");
        assert_eq!(gather.bytes(), 15);
        let batches = gather.take();
        let payloads: Vec<_> = batches.iter().map(|b| b.payload()).collect();
        assert_eq!(payloads, [b"a", b"b", b"c"]);
        assert_eq!(batches[1].labels, [(TRUNCATED_FIELD.into(), "99".into())]);
        assert!(gather.is_empty() && gather.take().is_empty());
    }
}
