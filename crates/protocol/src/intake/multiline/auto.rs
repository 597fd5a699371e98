//! The rule that decides by the lines of a file.
//!
//! A record begins with a time, a level or an object of JSON. Behind such a line, the lines of a known shape
//! belong to it. Other lines are text. Text belongs to the record before it only if the file shows that
//! records of several lines are usual or rare, and not that another source writes into it:
//!
//! - behind a time, if little text is elsewhere, and at most half of the records with a time have text behind them, or nearly all;
//! - behind a level, if nearly all lines begin with one.
//!
//! Invariants:
//! - The evidence is that of lines before a record, so that its rule does not change within it.
//! - It is taken from the first [`EVIDENCE_BYTES_MAX`] of a file only, so that a reader that resumes has it
//!   again from these bytes.

use logpond_record::cast;

use super::leads::{Lead, begins_with_time, lead};
use super::traces::{self, State, Step as TraceStep};
use super::{Hint, Progress, Step};
use crate::intake::timestamps::TimeReader;

/// The bytes at the start of a file that its rule is decided by: thousands of lines.
pub const EVIDENCE_BYTES_MAX: u64 = 256 << 10;

/// Records with a time that are too few to tell that other lines are from another source.
const TIMES_MIN: u32 = 8;

/// Lines of text for each record with a time that are so many that the times are not what separates them.
const TEXT_LINES_USUAL_MAX: u32 = 20;

/// Lines of text behind no record that are no sign of another source: what a program prints when it starts.
const STRAY_LINES_USUAL_MAX: u32 = 16;

/// The most lines of text of a record: a longer text is the output of another program, or a list.
const TEXT_LINES_MAX: u16 = 500;

/// Records with a level that are needed to tell that other lines belong to them.
const LEVELS_MIN: u32 = 4;

/// State of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutoState {
    trace: State,
    /// How many more lines of text belong to it.
    text_lines: u16,
    /// Blanks before the first line.
    column: u8,
}

/// The rule of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Records begin with a time; all other lines belong to them.
    Timestamp,
    /// Records begin with a level; all other lines belong to them.
    Level,
    /// Only lines of known shapes belong together.
    Stacktrace,
}

impl Choice {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Choice::Timestamp => "timestamp",
            Choice::Level => "level",
            Choice::Stacktrace => "stacktrace",
        }
    }

    /// Its meaning in messages.
    pub fn meaning(self) -> &'static str {
        match self {
            Choice::Timestamp => "a record begins with a time",
            Choice::Level => "a record begins with a level",
            Choice::Stacktrace => "only traces and indented lines are joined",
        }
    }
}

/// The evidence of the lines of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    lines: u32,
    times: Tally,
    levels: Tally,
    /// Lines of text.
    text: u32,
    /// Those behind no record that they could belong to.
    stray: u32,
    trace: State,
    last: Option<Lead>,
    /// True if text was behind the last record that has a lead.
    is_followed: bool,
}

/// Records that begin alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    records: u32,
    /// Those with text behind them.
    followed: u32,
}

impl Evidence {
    /// Adds a line.
    pub(super) fn add(&mut self, times: &TimeReader, line: &[u8]) {
        self.lines = self.lines.saturating_add(1);
        let lead = lead(times, line);
        let step = match lead {
            Some(Lead::Time) => TraceStep::Refuse,
            _ => traces::continued(self.trace, line),
        };
        match (step, lead) {
            (TraceStep::Take(state), _) | (TraceStep::Hold(state), None) => self.trace = state,
            (_, Some(lead)) => {
                match lead {
                    Lead::Time => self.times.records += 1,
                    Lead::Level => self.levels.records += 1,
                    Lead::Alone => {}
                }
                (self.last, self.is_followed) = (Some(lead), false);
                self.trace = traces::begin(line);
            }
            (_, None) => {
                self.text = self.text.saturating_add(1);
                let is_first = !std::mem::replace(&mut self.is_followed, true);
                match self.last {
                    Some(Lead::Time) => self.times.followed += u32::from(is_first),
                    Some(Lead::Level) => self.levels.followed += u32::from(is_first),
                    _ => self.stray = self.stray.saturating_add(1),
                }
                self.trace = traces::begin(line);
            }
        }
    }

    /// True if text belongs to a record with this lead.
    fn takes_text(&self, lead: Option<Lead>) -> bool {
        match lead {
            Some(Lead::Time) => {
                let Tally { records, followed } = self.times;
                let is_rare = followed <= records / 2;
                let is_usual = followed + records / 10 + 1 >= records;
                let is_listing = self.text / TEXT_LINES_USUAL_MAX > records.max(1);
                let is_mixed = self.stray > STRAY_LINES_USUAL_MAX && self.stray > records / 4;
                !is_listing && !is_mixed && (records < TIMES_MIN || is_rare || is_usual)
            }
            Some(Lead::Level) => {
                let Tally { records, followed } = self.levels;
                records >= LEVELS_MIN && followed <= records / 4 && self.text <= records
            }
            Some(Lead::Alone) | None => false,
        }
    }

    /// The rule; `None` before the first line.
    pub(in super::super) fn choice(&self) -> Option<Choice> {
        if self.lines == 0 {
            return None;
        }
        let has_times = self.times.records > self.levels.records;
        Some(if has_times && self.takes_text(Some(Lead::Time)) {
            Choice::Timestamp
        } else if !has_times && self.takes_text(Some(Lead::Level)) {
            Choice::Level
        } else {
            Choice::Stacktrace
        })
    }
}

/// State of a record from its first line, which has this lead.
pub(super) fn begin(evidence: &Evidence, line: &[u8], lead: Option<Lead>) -> AutoState {
    let takes_text = evidence.takes_text(lead);
    AutoState {
        trace: traces::begin(line),
        text_lines: if takes_text { TEXT_LINES_MAX } else { 0 },
        column: column(line),
    }
}

/// Effect of a line on its record.
pub(super) fn continued(times: &TimeReader, state: AutoState, line: &[u8]) -> Step {
    let step = traces::continued(state.trace, line);
    let takes_text = state.text_lines > 0;
    if step == TraceStep::Refuse && !takes_text {
        return Step::Refuse(Hint::default());
    }
    let lead = lead(times, line);
    let refuse = Step::Refuse(Hint(Some(lead)));
    // If the first line is indented, others with a time are no quotations.
    let is_indented_lead = state.column > 0 && begins_with_time(times, line.trim_ascii_start());
    if lead == Some(Lead::Time) || is_indented_lead {
        return refuse;
    }
    // Columns that are aligned to the right are no continuation of each other.
    let is_aligned = state.column > 0 && column(line) > 0 && column(line) <= state.column;
    let is_blank = line.trim_ascii().is_empty();
    let at = |trace| Progress::Auto(AutoState { trace, ..state });
    let text = |trace| {
        Progress::Auto(AutoState {
            trace,
            text_lines: state.text_lines - 1,
            ..state
        })
    };
    match step {
        TraceStep::Take(trace) if !is_aligned || traces::is_shaped(state.trace) => {
            Step::Take(at(trace))
        }
        _ if lead.is_some() => refuse,
        // Empty lines belong to a record if more of it follows.
        TraceStep::Hold(trace) if takes_text && !is_blank => Step::Take(text(trace)),
        TraceStep::Hold(trace) => Step::Hold(at(trace)),
        _ if takes_text && is_blank => Step::Hold(at(state.trace)),
        _ if takes_text && !traces::is_own(line) => Step::Take(text(state.trace)),
        _ => refuse,
    }
}

/// Blanks before a line.
fn column(line: &[u8]) -> u8 {
    let blanks = line.iter().take_while(|b| matches!(b, b' ' | b'\t'));
    cast::low_u8(blanks.take(u8::MAX.into()).count())
}
