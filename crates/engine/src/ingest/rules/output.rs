//! The batch that is made of what is kept of another one.

use std::sync::Arc;

use logpond_protocol::intake::declared::{declarations_of, fields_of_batch};
use logpond_protocol::intake::rewrite::{Draft, push_bounded};
use logpond_record::{Batch, EntryKind, Labels, Value, line_of};

/// Collects entries of a batch in their order. As long as all are kept as they are, nothing is copied.
pub(super) struct Output<'b> {
    source: &'b Arc<Batch>,
    /// Entries that are kept as they are, while that is true of all.
    untouched: usize,
    made: Option<Batch>,
    /// Whether labels are beside each line.
    are_labels_own: bool,
    fields_left_out: usize,
}

impl<'b> Output<'b> {
    pub(super) fn new(source: &'b Arc<Batch>) -> Output<'b> {
        Output {
            source,
            untouched: 0,
            made: None,
            are_labels_own: false,
            fields_left_out: 0,
        }
    }

    /// Keeps the next entry as it is.
    pub(super) fn keep(&mut self, held: &[u8]) {
        match &mut self.made {
            None => self.untouched += 1,
            Some(made) if made.kind == self.source.kind && !self.are_labels_own => made.push(held),
            Some(made) => {
                let labels = if self.are_labels_own {
                    &self.source.labels
                } else {
                    &Labels::new()
                };
                self.fields_left_out += push_held(made, self.source.kind, held, labels);
            }
        }
    }

    /// Leaves the next entry out.
    pub(super) fn leave_out(&mut self) {
        self.begin();
    }

    /// Keeps the next entry as a draft of it says, which is settled.
    pub(super) fn keep_changed(&mut self, draft: &Draft<'_>) {
        self.begin();
        if draft.are_labels_own() && !self.are_labels_own {
            self.make_anew(true);
        }
        let kind = self.made.as_ref().map(|made| made.kind);
        if kind.is_some_and(|kind| kind != EntryKind::Enveloped && draft.needs_envelope(kind)) {
            self.make_anew(self.are_labels_own);
        }
        if let Some(made) = &mut self.made {
            self.fields_left_out += draft.push_to(made, self.are_labels_own);
        }
    }

    /// What is kept, and how many fields had to be left out.
    pub(super) fn finish(self) -> (Arc<Batch>, u64) {
        let batch = self.made.map_or_else(|| self.source.clone(), Arc::new);
        (batch, self.fields_left_out as u64)
    }

    fn begin(&mut self) {
        if self.made.is_some() {
            return;
        }
        let mut made = Batch::new(self.source.kind, self.source.labels.clone());
        let kept = self.source.iter().take(self.untouched);
        kept.for_each(|held| made.push(held));
        self.made = Some(made);
    }

    /// Makes what there is anew, with an envelope each, and the labels in it if they are to be there.
    fn make_anew(&mut self, with_labels: bool) {
        let Some(made) = self.made.take() else {
            return;
        };
        let moves = with_labels && !self.are_labels_own;
        let moved = if moves { &made.labels } else { &Labels::new() };
        let labels = if with_labels {
            declarations_of(&made.labels)
        } else {
            made.labels.clone()
        };
        let mut anew = Batch::new(EntryKind::Enveloped, labels);
        for held in made.iter() {
            self.fields_left_out += push_held(&mut anew, made.kind, held, moved);
        }
        self.are_labels_own = with_labels;
        self.made = Some(anew);
    }
}

/// Appends an entry of a batch of this kind to one of entries with envelopes, with these labels in it.
fn push_held(batch: &mut Batch, kind: EntryKind, held: &[u8], labels: &Labels) -> usize {
    let (kind, envelope, line) = line_of(kind, held);
    let own: Vec<(&str, Value<'_>)> = envelope.fields().collect();
    let labels = fields_of_batch(labels).map(|(name, value)| (name, Value::Str(value.into())));
    let all: Vec<(&str, Value<'_>)> = own.into_iter().chain(labels).collect();
    let fields = all.iter().map(|(name, value)| (*name, value));
    push_bounded(batch, kind, envelope.time, fields, line)
}
