//! `logpond alerts` as it is typed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::{Server, TableOutput};

/// What is done with alert rules.
#[derive(Debug, Subcommand)]
pub enum Alerts {
    /// Check files of alert rules, without a server.
    Check(AlertsCheck),
    /// List the rules of a server, and what became of them.
    List(AlertsList),
}

/// Flags of `logpond alerts check`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 all are well, 2 something is wrong.")]
pub struct AlertsCheck {
    /// Files, or directories whose *.yml and *.yaml files are checked.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath, required = true)]
    pub paths: Vec<PathBuf>,
}

/// Flags of `logpond alerts list`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 there are rules, 1 there are none, 2 error, 3 some could not be \
                        evaluated."
)]
pub struct AlertsList {
    /// Only rules with alerts that are pending or firing.
    #[arg(long)]
    pub active: bool,
    /// How to print.
    #[command(flatten)]
    pub table: TableOutput,
    /// The server.
    #[command(flatten)]
    pub server: Server,
}
