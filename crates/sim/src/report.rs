//! What a run did, for people and for comparing runs.

use std::fmt;

/// Counts of a run, and what happened in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows that were handed over.
    pub rows: u64,
    /// Rows whose durability was acknowledged.
    pub acknowledgements: u64,
    /// Batches that the writer refused or lost, with an error.
    pub errors: u64,
    /// Power losses.
    pub crashes: u64,
    /// Ends of the process without power loss.
    pub kills: u64,
    /// Ranges that recovery cut, because no sync had covered them.
    pub cuts: u64,
    /// Comparisons of the disk with the ledger.
    pub checks: u64,
    /// Rows that were looked at in those.
    pub rows_checked: u64,
    /// Journal files whose rows went to segments.
    pub files_consumed: u64,
    /// Segments that were put into larger or smaller ones.
    pub segments_merged: u64,
    /// Steps of the segments that the disk made fail.
    pub segment_errors: u64,
    /// One line for each thing that happened.
    pub trace: Vec<String>,
}

impl Report {
    /// Adds the counts of another run; not its trace.
    pub fn add(&mut self, other: &Report) {
        self.rows += other.rows;
        self.acknowledgements += other.acknowledgements;
        self.errors += other.errors;
        self.crashes += other.crashes;
        self.kills += other.kills;
        self.cuts += other.cuts;
        self.checks += other.checks;
        self.rows_checked += other.rows_checked;
        self.files_consumed += other.files_consumed;
        self.segments_merged += other.segments_merged;
        self.segment_errors += other.segment_errors;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} rows, {} acknowledged; {} errors, {} crashes, {} kills, {} cuts; {} files consumed; \
             {} segments merged, {} errors; {} checks of {} rows",
            self.rows,
            self.acknowledgements,
            self.errors,
            self.crashes,
            self.kills,
            self.cuts,
            self.files_consumed,
            self.segments_merged,
            self.segment_errors,
            self.checks,
            self.rows_checked
        )
    }
}
