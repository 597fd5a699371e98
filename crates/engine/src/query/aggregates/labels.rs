//! Tables of labels: their names, their values, and the streams that they make.

use logpond_record::{Record, Timestamp};
use logpond_search::aggregate::{
    FieldStats, FieldsAnswer, LabelValues, STREAMS_BYTES_MAX, StreamRow, Streams, StreamsRequest,
};
use logpond_search::scan::{GroupScan, SelectedRows};
use logpond_segment::file::ReadError;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::super::output::Output;
use super::super::question::{decode_names, encode_names};
use super::super::{Engine, QueryError, Scope, Trailer};
use super::{AnyTable, Table, read_field};

impl dyn Engine + '_ {
    /// The labels of a scope's records, each with how many have it and about how many values it has.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn labels(
        &self,
        scope: &Scope,
        out: &mut Output,
    ) -> Result<(FieldsAnswer, Trailer), QueryError> {
        let (labels, mut trailer) = self.filled(scope, Labels::default(), out)?;
        let answer = labels.finish();
        if answer.unlisted > 0 {
            let unlisted = answer.unlisted;
            trailer.miss(format_args!(
                "{unlisted} labels beyond the number that is listed"
            ));
        }
        Ok((answer, trailer))
    }

    /// The values that a label has in a scope's records. Any field may be a label.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn label_values(
        &self,
        scope: &Scope,
        label: &str,
        out: &mut Output,
    ) -> Result<(Vec<String>, Trailer), QueryError> {
        let (values, mut trailer) = self.filled(scope, LabelValues::new(label), out)?;
        let (values, unlisted) = values.finish();
        if unlisted > 0 {
            trailer.miss(format_args!("values of '{label}' that found no room"));
        }
        Ok((values, trailer))
    }

    /// The streams of a scope's records. It fails if there are more than there is room for: some of them
    /// would be no answer.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn streams(
        &self,
        scope: &Scope,
        asked: &StreamsRequest,
        out: &mut Output,
    ) -> Result<(Vec<StreamRow>, Trailer), QueryError> {
        let (streams, trailer) = self.filled(scope, Streams::new(asked.clone()), out)?;
        let answer = streams.finish();
        if answer.uncounted > 0 {
            return Err(QueryError::Impossible(format!(
                "the labels of {} streams take {} MiB, and there are more: ask for a shorter time, \
                 select by labels, or name the labels that matter",
                answer.streams.len(),
                STREAMS_BYTES_MAX >> 20
            )));
        }
        Ok((answer.streams, trailer))
    }
}

pub(super) fn read(_: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    Ok(Box::new(Labels::default()))
}

pub(super) fn read_values(from: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    Ok(Box::new(LabelValues::new(&read_field(from)?)))
}

pub(super) fn read_streams(from: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    let is_by = from.flag("how streams are told apart")?;
    let by = decode_names(from)?;
    let has_steps = from.flag("whether time counts")?;
    let begin = from.time("the first step")?;
    let step_ns = i64::try_from(from.number("a step")?);
    let step_ns = step_ns.map_err(|_| DecodeError::Malformed("a step"))?;
    let asked = StreamsRequest {
        by: is_by.then_some(by),
        steps: has_steps.then_some((begin, step_ns)),
    };
    Ok(Box::new(Streams::new(asked)))
}

fn ask_streams(asked: &StreamsRequest, out: &mut Encoder) {
    out.flag(asked.by.is_some());
    encode_names(asked.by.as_deref().unwrap_or_default(), out);
    out.flag(asked.steps.is_some());
    let (from, step_ns) = asked.steps.unwrap_or((Timestamp(0), 0));
    out.time(from);
    out.number(step_ns.unsigned_abs());
}

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
        selected: &SelectedRows,
    ) -> Result<(), ReadError> {
        scan.add_to_labels(selected, &mut self.0)
    }

    fn merge(&mut self, other: Labels) {
        self.0.merge(other.0);
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn ask(&self, out: &mut Encoder) {
        out.number(3);
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
        selected: &SelectedRows,
    ) -> Result<(), ReadError> {
        scan.add_to_label_values(selected, self)
    }

    fn merge(&mut self, other: LabelValues) {
        LabelValues::merge(self, other);
    }

    fn bytes(&self) -> usize {
        LabelValues::bytes(self)
    }

    fn ask(&self, out: &mut Encoder) {
        out.number(4);
        out.bytes(self.label().as_bytes());
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
        selected: &SelectedRows,
    ) -> Result<(), ReadError> {
        scan.add_to_streams(selected, self)
    }

    fn merge(&mut self, other: Streams) {
        Streams::merge(self, other);
    }

    fn bytes(&self) -> usize {
        Streams::bytes(self)
    }

    fn ask(&self, out: &mut Encoder) {
        out.number(5);
        ask_streams(self.asked(), out);
    }

    fn encode(&self, out: &mut Encoder) {
        Streams::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        Streams::merge_encoded(self, from)
    }
}
