//! Records of each step of a range.

use logpond_record::Record;
use logpond_search::aggregate::{Histogram, HistogramAnswer, HistogramSpec};
use logpond_search::scan::{GroupScan, SelectedRows};
use logpond_segment::file::ReadError;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::super::output::Output;
use super::super::segment_rows::{Summary, SummaryKind};
use super::super::{Engine, QueryError, Scope, Trailer};
use super::{AnyTable, Table, ask_steps, read_field, read_steps};

impl dyn Engine + '_ {
    /// Counts for every bucket of the histogram, empty ones too, and for the values of a field, if one splits it.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn histogram(
        &self,
        scope: &Scope,
        spec: &HistogramSpec,
        out: &mut Output,
    ) -> Result<(HistogramAnswer, Trailer), QueryError> {
        let empty = spec.empty();
        let empty = empty.map_err(|e| QueryError::Impossible(e.to_string()))?;
        let (histogram, mut trailer) = self.filled(scope, empty, out)?;
        let answer = histogram.finish();
        if answer.unplaced > 0 {
            let unplaced = answer.unplaced;
            trailer.miss(format_args!(
                "{unplaced} records with values that found no room"
            ));
        }
        Ok((answer, trailer))
    }
}

pub(super) fn read(from: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    let (range, step_ns) = read_steps(from)?;
    let by = None;
    Ok(Box::new(made(&HistogramSpec { range, step_ns, by })?))
}

/// Reads one that a field splits, for a node that reads the largest values only.
pub(super) fn read_first_split(from: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    Ok(Box::new(split(from)?.of_first_version()))
}

/// Reads one that a field splits. Earlier nodes do not know it.
pub(super) fn read_split(from: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    Ok(Box::new(split(from)?))
}

fn split(from: &mut Decoder<'_>) -> Result<Histogram, DecodeError> {
    let (range, step_ns) = read_steps(from)?;
    let by = Some(read_field(from)?.into());
    made(&HistogramSpec { range, step_ns, by })
}

fn made(spec: &HistogramSpec) -> Result<Histogram, DecodeError> {
    let empty = spec.empty();
    empty.map_err(|_| DecodeError::Malformed("the steps of a histogram"))
}

impl Table for Histogram {
    fn add(&mut self, record: &Record<'_>) {
        Histogram::add(self, record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &SelectedRows,
    ) -> Result<(), ReadError> {
        scan.add_to_histogram(selected, self)
    }

    fn told_by(&self) -> Option<SummaryKind> {
        self.may_be_of_timelines().then_some(SummaryKind::Timeline)
    }

    fn add_summary(&mut self, summary: &Summary) -> bool {
        matches!(summary, Summary::Timeline(timeline) if self.add_timeline(timeline))
    }

    fn merge(&mut self, other: Histogram) {
        Histogram::merge(self, other);
    }

    fn bytes(&self) -> usize {
        Histogram::bytes(self)
    }

    fn ask(&self, out: &mut Encoder) {
        let spec = self.spec();
        out.number(match spec.by {
            None => 1,
            Some(_) if self.is_of_first_version() => 9,
            Some(_) => 12,
        });
        ask_steps(spec.range, spec.step_ns, out);
        if let Some(field) = &spec.by {
            out.bytes(field.as_bytes());
        }
    }

    fn encode(&self, out: &mut Encoder) {
        Histogram::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        Histogram::merge_encoded(self, from)
    }
}
