//! Patterns of messages, with counts for each step of a range.

use logpond_record::{Record, TimeRange};
use logpond_search::aggregate::{Patterns, PatternsAnswer};
use logpond_search::scan::{GroupScan, SelectedRows};
use logpond_segment::file::ReadError;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::super::output::Output;
use super::super::segment_rows::{Summary, SummaryKind};
use super::super::{Engine, QueryError, Scope, Trailer};
use super::{AnyTable, Table, ask_steps, read_steps};

impl dyn Engine + '_ {
    /// The `count_max` most frequent patterns of messages in `range`; buckets are of `step_ns`, as in
    /// a histogram.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn patterns(
        &self,
        scope: &Scope,
        (range, step_ns): (TimeRange, i64),
        count_max: usize,
        out: &mut Output,
    ) -> Result<(PatternsAnswer, Trailer), QueryError> {
        let patterns = Patterns::new(range, step_ns);
        let empty = patterns.map_err(|e| QueryError::Impossible(e.to_string()))?;
        let (patterns, trailer) = self.filled(scope, empty, out)?;
        Ok((patterns.finish(count_max), trailer))
    }
}

pub(super) fn read(from: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    let (range, step_ns) = read_steps(from)?;
    match Patterns::new(range, step_ns) {
        Ok(empty) => Ok(Box::new(empty)),
        Err(_) => Err(DecodeError::Malformed("the steps of patterns")),
    }
}

impl Table for Patterns {
    fn add(&mut self, record: &Record<'_>) {
        Patterns::add(self, record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &SelectedRows,
    ) -> Result<(), ReadError> {
        scan.add_to_patterns(selected, self)
    }

    fn told_by(&self) -> Option<SummaryKind> {
        self.may_be_of_tables().then_some(SummaryKind::Patterns)
    }

    fn add_summary(&mut self, summary: &Summary) -> bool {
        matches!(summary, Summary::Patterns(table) if self.add_table(table))
    }

    /// Samples are the newest messages: older ones need not be read then.
    fn wants_newest_first(&self) -> bool {
        true
    }

    fn merge(&mut self, other: Patterns) {
        Patterns::merge(self, other);
    }

    fn bytes(&self) -> usize {
        Patterns::bytes(self)
    }

    fn ask(&self, out: &mut Encoder) {
        out.number(7);
        ask_steps(self.range(), self.step_ns(), out);
    }

    fn encode(&self, out: &mut Encoder) {
        Patterns::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        Patterns::merge_encoded(self, from)
    }
}
