//! `logpond import` as it is typed.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Servers;

/// Flags of `logpond import`.
#[derive(Debug, Args)]
#[command(
    mut_arg("addr", |addr| addr.help("Servers; one takes everything until it fails")),
    after_help = "Reads journal files, what `journalctl -o export` prints, and what `journalctl -o json \
                  --all` prints. Entries with a cursor, as all of these have, are at the server once, \
                  however often they are imported.\n\
                  Exit status: 0 everything was taken, 2 something was not."
)]
pub struct Import {
    /// Files, and directories with files named *.journal; '-' or none is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub inputs: Vec<PathBuf>,
    /// The servers.
    #[command(flatten)]
    pub servers: Servers,
    /// A field for all records.
    #[arg(short = 'l', long, value_name = "NAME=VALUE")]
    pub label: Vec<String>,
    /// The zone of times that say none [default: that of the server].
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub timezone: Option<String>,
    /// Give up when no server took entries for this long.
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub give_up_after: String,
    /// Do not print progress and totals.
    #[arg(short, long)]
    pub quiet: bool,
}
