//! Lines of one stream that are one record by a rule.
//!
//! Invariants: a record is its lines in their order, with the LFs between them that they had; its time
//! and attributes are those of the first one. Lines that are held belong to no record yet: a later line
//! takes them along, or they become records of their own. Memory is at most the limit of a line, and
//! [`HELD_BYTES_MAX`].

use std::time::Duration;

use logpond_record::Timestamp;

use super::joiner::Head;
use super::lines::clear;
use super::multiline::{Evidence, Hint, Progress, Rule, Step};

/// The most lines of a record. Dumps of all threads have thousands. A record with more lines shows a rule
/// that does not fit.
pub(super) const RECORD_LINES_MAX: usize = 10_000;

/// The most lines that are held until a later line shows whether they belong to the record: messages of
/// errors, such as differences of a test, are shorter.
pub(super) const HELD_LINES_MAX: usize = 100;

/// The most bytes of these lines.
pub(super) const HELD_BYTES_MAX: usize = 64 << 10;

/// The record of one stream that more lines may follow.
#[derive(Debug, Default)]
pub(super) struct Group {
    head: Option<Head<'static>>,
    text: Vec<u8>,
    lines: usize,
    progress: Progress,
    /// Knowledge of the line that was added last and is not in the record.
    hint: Hint,
    /// The time that the runtime gave the last line.
    time: Option<Timestamp>,
    held: Vec<HeldLine>,
    held_bytes: usize,
}

/// A line that only may belong to the record.
#[derive(Debug)]
pub(super) struct HeldLine {
    pub(super) head: Head<'static>,
    pub(super) text: Vec<u8>,
    /// The evidence before it.
    pub(super) evidence: Evidence,
}

impl HeldLine {
    /// The bytes that it takes, with its attributes.
    fn bytes(head: &Head<'_>, text: &[u8]) -> usize {
        let attributes = head.attributes.iter();
        text.len()
            + attributes
                .map(|(name, value)| name.len() + value.len())
                .sum::<usize>()
    }
}

/// The outcome of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineOutcome {
    /// It belongs to the record, or may.
    Taken,
    /// It begins another one.
    Other,
    /// It would belong to the record, which has no room for it.
    Full,
}

impl Group {
    /// The head of the record, if there is one.
    pub(super) fn head(&self) -> Option<&Head<'static>> {
        self.head.as_ref()
    }

    /// Has the record begin before the input does. Lines that are held belong to it from then on, since
    /// they are in the input before.
    pub(super) fn carry(&mut self) {
        self.take_held();
        if let Some(head) = &mut self.head {
            head.carry();
        }
    }

    /// True if a runtime read a line so much later than the one before it that nobody has waited for it.
    pub(super) fn is_late(&self, time: Option<Timestamp>, wait: Duration) -> bool {
        let (Some(last), Some(time)) = (self.time, time) else {
            return false;
        };
        let gap = u64::try_from(time.0.saturating_sub(last.0));
        self.head.is_some() && gap.is_ok_and(|gap| u128::from(gap) > wait.as_nanos())
    }

    /// Adds a line to the record if it belongs to it, or may.
    pub(super) fn add(
        &mut self,
        rule: &Rule,
        evidence: &Evidence,
        head: &Head<'_>,
        line: &[u8],
        bytes_max: usize,
    ) -> LineOutcome {
        self.hint = Hint::default();
        if self.head.is_none() {
            return LineOutcome::Other;
        }
        let (progress, is_held) = match rule.continued(self.progress, line) {
            Step::Take(progress) => (progress, false),
            Step::Hold(progress) => (progress, true),
            Step::Refuse(hint) => {
                self.hint = hint;
                return LineOutcome::Other;
            }
        };
        let held: usize = self.held.iter().map(|held| 1 + held.text.len()).sum();
        let is_full = self.lines + self.held.len() >= RECORD_LINES_MAX
            || self.text.len() + held + 1 + line.len() > bytes_max;
        if is_held {
            let bytes = HeldLine::bytes(head, line);
            let has_room =
                self.held.len() < HELD_LINES_MAX && self.held_bytes + bytes <= HELD_BYTES_MAX;
            if is_full || !has_room {
                return LineOutcome::Other;
            }
            self.held_bytes += bytes;
            self.held.push(HeldLine {
                head: head.clone().into_owned(),
                text: line.to_vec(),
                evidence: *evidence,
            });
        } else if is_full {
            return LineOutcome::Full;
        } else {
            self.take_held();
            self.push(line);
        }
        self.time = head.time;
        self.progress = progress;
        LineOutcome::Taken
    }

    /// Begins a record with the line that was added last; there is none.
    pub(super) fn begin(
        &mut self,
        rule: &Rule,
        evidence: &Evidence,
        head: Head<'static>,
        line: &[u8],
    ) {
        debug_assert!(self.head.is_none() && self.held.is_empty());
        self.time = head.time;
        self.head = Some(head);
        self.text.extend_from_slice(line);
        self.lines = 1;
        self.progress = rule.begin(evidence, line, self.hint);
    }

    /// Gives the record, if there is one, and returns the lines that are held. They are no part of it, but
    /// for empty ones behind a record of several lines, if it `takes_empty` ones.
    pub(super) fn finish(
        &mut self,
        takes_empty: bool,
        take: impl FnOnce(Head<'static>, &[u8]),
    ) -> Vec<HeldLine> {
        let is_empty = |held: &HeldLine| held.text.trim_ascii().is_empty();
        if takes_empty && self.lines > 1 && self.held.iter().all(is_empty) {
            self.take_held();
        }
        if let Some(head) = self.head.take() {
            take(head, &self.text);
            clear(&mut self.text);
        }
        self.held_bytes = 0;
        std::mem::take(&mut self.held)
    }

    /// Has the lines that are held belong to the record.
    fn take_held(&mut self) {
        self.held_bytes = 0;
        for held in std::mem::take(&mut self.held) {
            self.push(&held.text);
        }
    }

    fn push(&mut self, line: &[u8]) {
        self.text.push(b'\n');
        self.text.extend_from_slice(line);
        self.lines += 1;
    }
}
