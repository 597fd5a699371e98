//! `logpond sql` and `logpond export` as they are typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{Selection, Server};

/// Flags of `logpond sql`.
#[derive(Debug, Args)]
#[command(
    after_help = "Records are the table logs; \"DESCRIBE logs\" lists its columns, \"SHOW TABLES\" all tables.\n\
                  Try:  logpond sql \"SELECT level, count(*) FROM logs GROUP BY level\"\n\
                  Exit status: 0 rows, 1 none in a complete answer, 2 error, 3 answer incomplete, or records lost for good."
)]
pub struct Sql {
    /// The statement; '-' or none is standard input.
    #[arg(value_name = "STATEMENT")]
    pub statement: Option<String>,
    /// How to print.
    #[arg(
        short = 'o',
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    pub output: SqlFormat,
    /// With -o csv: an apostrophe before texts that spreadsheets would take for formulas.
    #[arg(long)]
    pub defuse: bool,
    /// Which times the tables have.
    #[command(flatten)]
    pub times: Times,
    /// Give no answer that lacks something: say what it is and exit with 3.
    #[arg(long)]
    pub strict: bool,
    /// Print rows, bytes and time to standard error.
    #[arg(long)]
    pub stats: bool,
    /// The server.
    #[command(flatten)]
    pub server: Server,
}

/// Flags of `logpond export`.
#[derive(Debug, Args)]
#[command(
    mut_arg("since", |since| since.help(
        "Earliest time: 1h, yesterday, 09:00, 2026-11-21 10:00, RFC 3339, @epoch [default: all]"
    )),
    mut_arg("until", |until| until.help("Latest time, excluded [default: all]")),
    mut_arg("filter", |filter| filter.alias("query")),
    after_help = "A file is there under its name once it is complete; what is not stays beside it as FILE.partial.\n\
                  Without --since and --until all times are written, where 'logpond query' searches the last hour.\n\
                  Parquet takes a server with the feature sql, as releases have it.\n\
                  Exit status: 0 everything was written, 2 error, 3 something is missing."
)]
pub struct Export {
    /// Text to search for, as it is [default: all records].
    #[arg(value_name = "TEXT")]
    pub text: Option<OsString>,
    /// Which records.
    #[command(flatten)]
    pub selection: Selection,
    /// The form: an object on each line, or a Parquet file with a column for each field.
    #[arg(
        short = 'o',
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "ndjson"
    )]
    pub output: ExportFormat,
    /// Only these, with commas: names as they are in this form, such as _time in lines and time in Parquet.
    #[arg(long = "fields", value_name = "NAMES", value_delimiter = ',')]
    pub only_fields: Vec<String>,
    /// Where to write [default: standard output].
    #[arg(short = 'O', long = "output-file", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Replace FILE if it is there.
    #[arg(long, requires = "file")]
    pub force: bool,
    /// Send control characters of records to a terminal as they are.
    #[arg(long = "unsafe", hide_short_help = true)]
    pub control_characters: bool,
    /// The server.
    #[command(flatten)]
    pub server: Server,
    /// Do not say what was written.
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Print rows, bytes and time to standard error.
    #[arg(long)]
    pub stats: bool,
}

/// Times of records.
#[derive(Clone, Debug, Default, Args)]
pub struct Times {
    /// Earliest time: 1h, yesterday, 09:00, 2026-11-21 10:00, RFC 3339, @epoch [default: all].
    #[arg(
        short = 'S',
        long,
        value_name = "TIME",
        alias = "from",
        allow_hyphen_values = true
    )]
    pub since: Option<String>,
    /// Latest time, excluded [default: all].
    #[arg(
        short = 'U',
        long,
        value_name = "TIME",
        alias = "to",
        allow_hyphen_values = true
    )]
    pub until: Option<String>,
}

/// How answers to SQL are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SqlFormat {
    /// Columns for people.
    Table,
    /// A JSON object on each line.
    Json,
    /// Comma-separated values below a line of names.
    Csv,
}

/// What records are exported as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A JSON object on each line, as `logpond query -o json` prints it.
    Ndjson,
    /// A Parquet file.
    Parquet,
}
