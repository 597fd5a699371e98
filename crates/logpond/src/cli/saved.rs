//! `logpond saved` as it is typed.

use clap::{Args, Subcommand};

use super::{Server, TableOutput};

/// What is done with saved queries.
#[derive(Debug, Subcommand)]
pub enum SavedCommand {
    /// List the queries.
    List(SavedList),
    /// Print a query.
    Show(SavedShow),
    /// Save a query, in the place of another one of its name.
    Set(SavedSet),
    /// Remove a query.
    Remove(SavedRemove),
    /// Ask a query and print what it finds.
    Run(SavedRun),
}

/// Flags of `logpond saved list`.
#[derive(Debug, Args)]
pub struct SavedList {
    /// How to print.
    #[command(flatten)]
    pub table: TableOutput,
    /// The server.
    #[command(flatten)]
    pub server: Server,
}

/// Flags of `logpond saved show`.
#[derive(Debug, Args)]
pub struct SavedShow {
    /// The query.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How to print: as JSON it has all its parts.
    #[command(flatten)]
    pub table: TableOutput,
    /// The server.
    #[command(flatten)]
    pub server: Server,
}

/// Flags of `logpond saved set`.
#[derive(Debug, Args)]
#[command(
    after_help = "Try:  logpond saved set errors-by-app --variable app=.+ --legend '{{app}}' \\\n      \
                        'sum by (app) (count_over_time({app=~\"$app\", detected_level=\"error\"}[$__interval]))'\n\n\
                        It needs a token of the role admin where tokens are asked for."
)]
pub struct SavedSet {
    /// What to call it: letters, digits, '.', '-' and '_'.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// LogQL, with $NAME for variables, $__interval and $__range; '-' is standard input.
    #[arg(value_name = "QUERY")]
    pub query: String,
    /// The language of the query: logql, native or sql.
    #[arg(long, value_name = "LANGUAGE")]
    pub language: Option<String>,
    /// What it is for.
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// How series are called, with {{label}} for labels.
    #[arg(long, value_name = "TEXT")]
    pub legend: Option<String>,
    /// How numbers are shown: time_series or table.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// A variable with its default; may be given several times.
    #[arg(long, value_name = "NAME=DEFAULT")]
    pub variable: Vec<String>,
    /// The server.
    #[command(flatten)]
    pub server: Server,
}

/// Flags of `logpond saved remove`.
#[derive(Debug, Args)]
pub struct SavedRemove {
    /// The query.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The server.
    #[command(flatten)]
    pub server: Server,
}

/// Flags of `logpond saved run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Try:  logpond saved run top-articles --since 7d --variable own_address=203.0.113.7"
)]
pub struct SavedRun {
    /// The query's name, or LogQL.
    #[arg(value_name = "NAME|LOGQL")]
    pub query: String,
    /// The value of a variable; given several times, each of them.
    #[arg(long, value_name = "NAME=VALUE")]
    pub variable: Vec<String>,
    /// Earliest time, as for query [default: 1h].
    #[arg(
        short = 'S',
        long,
        value_name = "TIME",
        alias = "from",
        allow_hyphen_values = true
    )]
    pub since: Option<String>,
    /// Latest time, excluded [default: now].
    #[arg(
        short = 'U',
        long,
        value_name = "TIME",
        alias = "to",
        allow_hyphen_values = true
    )]
    pub until: Option<String>,
    /// Time between two points of a series, such as 1m.
    #[arg(long, value_name = "DURATION")]
    pub step: Option<String>,
    /// How many lines; 0 is no limit.
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 1000)]
    pub limit: u64,
    /// How to print: as JSON lines have all their labels.
    #[command(flatten)]
    pub table: TableOutput,
    /// The server.
    #[command(flatten)]
    pub server: Server,
}
