//! `logpond config` and `logpond health` as they are typed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::{Serve, Server, TableOutput};

/// The ways to look at settings.
#[derive(Debug, Subcommand)]
pub enum Config {
    /// Check a settings file, without a server.
    Check(ConfigCheck),
    /// Show the value of each setting and its origin.
    Show(Box<ConfigShow>),
    /// Print a settings file with every setting commented out.
    Default,
}

/// Flags of `logpond config check`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 the settings are valid, 2 something is wrong.")]
pub struct ConfigCheck {
    /// The file, alone [default: the files and variables that serve reads].
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
}

/// Flags of `logpond config show`.
#[derive(Debug, Args)]
#[command(
    mut_arg("config", |config| config.hide_short_help(true)),
    mut_arg("output", |output| output.hide_short_help(true)),
)]
pub struct ConfigShow {
    /// Only settings that have another value than the default.
    #[arg(long)]
    pub changed: bool,
    /// How to print.
    #[command(flatten)]
    pub table: TableOutput,
    /// The flags of `serve`.
    #[command(flatten)]
    pub serve: Serve,
}

/// Flags of `logpond health`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 it answers, 1 it is about to stop, 2 it does not answer.")]
pub struct Health {
    /// Also ask if it takes requests: a server that stops answers, and takes none.
    #[arg(long)]
    pub ready: bool,
    /// How long the server may take.
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    pub within: String,
    /// Print nothing.
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// The server.
    #[command(flatten)]
    pub server: Server,
}
