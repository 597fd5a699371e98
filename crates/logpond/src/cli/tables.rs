//! `logpond histogram` and `patterns` as they are typed, and how tables are printed.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::{Selection, Server};

/// How tables are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Columns, for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// How a command that gives a table prints it.
#[derive(Clone, Copy, Debug, Args)]
pub struct TableOutput {
    /// How to print.
    #[arg(
        short = 'o',
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text"
    )]
    pub output: TableFormat,
}

/// The records of a table.
#[derive(Debug, Args)]
pub struct RecordFilter {
    /// Text to search for, as it is.
    #[arg(value_name = "TEXT")]
    pub text: Option<OsString>,
    /// The conditions on the records.
    #[command(flatten)]
    pub selection: Selection,
}

/// The form of the answer.
#[derive(Debug, Args)]
pub struct OutputOptions {
    /// How to print.
    #[command(flatten)]
    pub table: TableOutput,
    /// Print rows, bytes and time to standard error.
    #[arg(long)]
    pub stats: bool,
    /// The server.
    #[command(flatten)]
    pub server: Server,
}

/// Flags of `logpond histogram`.
#[derive(Debug, Args)]
pub struct Histogram {
    /// The records.
    #[command(flatten)]
    pub matching: RecordFilter,
    /// Width of a bucket [default: one that gives about 60].
    #[arg(long, value_name = "DURATION")]
    pub step: Option<String>,
    /// Count by the values of this field, too, such as level.
    #[arg(long, value_name = "FIELD")]
    pub by: Option<String>,
    /// The form of the answer.
    #[command(flatten)]
    pub printing: OutputOptions,
}

/// Flags of `logpond patterns`.
#[derive(Debug, Args)]
pub struct Patterns {
    /// The records.
    #[command(flatten)]
    pub matching: RecordFilter,
    /// How many patterns; 0 is no limit.
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 20)]
    pub limit: u64,
    /// Print up to three messages below each pattern.
    #[arg(long)]
    pub samples: bool,
    /// The form of the answer.
    #[command(flatten)]
    pub printing: OutputOptions,
}
