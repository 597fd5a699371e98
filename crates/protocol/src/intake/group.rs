//! Lines of one stream that are one record, as a rule says.
//!
//! Invariants: a record is its lines in their order, with the LFs between them that they had; its time
//! and attributes are those of the first one. Memory is at most the limit of a line.

use super::joiner::Head;
use super::lines::clear;
use super::multiline::{Progress, Rule};

/// The most lines of a record. Dumps of all threads have thousands; what has more is no record that
/// anybody reads, but a rule that does not fit.
pub(super) const RECORD_LINES_MAX: usize = 10_000;

/// The record of one stream that more lines may follow.
#[derive(Debug, Default)]
pub(super) struct Group {
    head: Option<Head<'static>>,
    text: Vec<u8>,
    lines: usize,
    progress: Progress,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It belongs to the record.
    Taken,
    /// It begins another one.
    Other,
    /// It would belong to the record, which has no room for it.
    Full,
}

impl Group {
    /// What is known of the record, if there is one.
    pub(super) fn head(&self) -> Option<&Head<'static>> {
        self.head.as_ref()
    }

    /// What is known of the record, if there is one.
    pub(super) fn head_mut(&mut self) -> Option<&mut Head<'static>> {
        self.head.as_mut()
    }

    /// Adds a line to the record if it belongs to it.
    pub(super) fn add(&mut self, rule: &Rule, line: &[u8], bytes_max: usize) -> Added {
        if self.head.is_none() {
            return Added::Other;
        }
        let Some(progress) = rule.continued(self.progress, line) else {
            return Added::Other;
        };
        if self.lines >= RECORD_LINES_MAX || self.text.len() + 1 + line.len() > bytes_max {
            return Added::Full;
        }
        self.text.push(b'\n');
        self.text.extend_from_slice(line);
        self.lines += 1;
        self.progress = progress;
        Added::Taken
    }

    /// Begins a record; there is none.
    pub(super) fn begin(&mut self, rule: &Rule, head: Head<'static>, line: &[u8]) {
        debug_assert!(self.head.is_none());
        self.head = Some(head);
        self.text.extend_from_slice(line);
        self.lines = 1;
        self.progress = rule.begin(line);
    }

    /// Gives the record, if there is one.
    pub(super) fn finish(&mut self, take: impl FnOnce(Head<'static>, &[u8])) {
        if let Some(head) = self.head.take() {
            take(head, &self.text);
            clear(&mut self.text);
        }
    }
}
