//! Tables of labels: their names, their values, and the streams that they make.

use logpond_record::Record;
use logpond_search::aggregate::{FieldStats, FieldsAnswer, LabelValues, Streams};
use logpond_search::scan::{GroupScan, Selected};
use logpond_segment::file::ReadError;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::reads::{Table, TableKind};

/// The names of labels, and about how many values each has.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels(FieldStats);

impl Labels {
    /// The finished answer.
    pub(super) fn finish(self) -> FieldsAnswer {
        self.0.finish()
    }
}

impl Table for Labels {
    fn add(&mut self, record: &Record<'_>) {
        self.0.add_rows(1);
        self.0.add_labels(record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &Selected,
    ) -> Result<(), ReadError> {
        scan.add_to_labels(selected, &mut self.0)
    }

    fn merge(&mut self, other: Labels) {
        self.0.merge(other.0);
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn kind(&self) -> TableKind {
        TableKind::Labels
    }

    fn encode(&self, out: &mut Encoder) {
        self.0.encode(out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.0.merge_encoded(from)
    }
}

impl Table for LabelValues {
    fn add(&mut self, record: &Record<'_>) {
        LabelValues::add(self, record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &Selected,
    ) -> Result<(), ReadError> {
        scan.add_to_label_values(selected, self)
    }

    fn merge(&mut self, other: LabelValues) {
        LabelValues::merge(self, other);
    }

    fn bytes(&self) -> usize {
        LabelValues::bytes(self)
    }

    fn kind(&self) -> TableKind {
        TableKind::LabelValues(self.label().to_owned())
    }

    fn encode(&self, out: &mut Encoder) {
        LabelValues::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        LabelValues::merge_encoded(self, from)
    }
}

impl Table for Streams {
    fn add(&mut self, record: &Record<'_>) {
        Streams::add(self, record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &Selected,
    ) -> Result<(), ReadError> {
        scan.add_to_streams(selected, self)
    }

    fn merge(&mut self, other: Streams) {
        Streams::merge(self, other);
    }

    fn bytes(&self) -> usize {
        Streams::bytes(self)
    }

    fn kind(&self) -> TableKind {
        TableKind::Streams(self.asked().clone())
    }

    fn encode(&self, out: &mut Encoder) {
        Streams::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        Streams::merge_encoded(self, from)
    }
}
