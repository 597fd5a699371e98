//! `logpond demo` as it is typed.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Access;

/// Flags of `logpond demo`.
#[derive(Debug, Args)]
#[command(
    after_help = "The records have the field demo. A server removes records only by its retention, so \
                  --clean is for ponds of the demo.\n\
                  Try:  logpond demo      then open the page, and answer the five questions"
)]
pub struct Demo {
    /// Keep the pond in this directory, and go on with it next time [default: a temporary one].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: Option<PathBuf>,
    /// Address of the page and the API of the demo's own pond [default: 7650, or any free port].
    #[arg(long, value_name = "ADDR", conflicts_with_all = ["addr", "clean"])]
    pub http: Option<String>,
    /// Fill this server instead of a pond of the demo's own.
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    pub addr: Option<String>,
    /// The token and the authorities for the server.
    #[command(flatten)]
    pub access: Access,
    /// Remove the pond of an earlier demo in --data, and end.
    #[arg(long)]
    pub clean: bool,
    /// End once the day is there, without live records.
    #[arg(long, conflicts_with = "clean")]
    pub once: bool,
    /// Another day: each number has its own lines.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write the address into this file once the day is there.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub ready_file: Option<PathBuf>,
}
