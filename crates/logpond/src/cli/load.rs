//! `logpond load` as it is typed.

use clap::Args;

use super::{Servers, TableOutput};

/// Flags of `logpond load`.
#[derive(Debug, Args)]
#[command(
    mut_arg("addr", |addr| addr.help("Servers; connections take turns")),
    mut_arg("output", |output| output.help("How to print what comes of it")),
    after_help = "Times count from when a record was due, so a stall shows in all records behind \
                  it. What is refused or lost is counted and not sent again.\n\
                  Exit status: 0 everything was acknowledged, 2 something was not."
)]
pub struct Load {
    /// The servers.
    #[command(flatten)]
    pub servers: Servers,
    /// Records a second of all connections together; 0 is as fast as they are taken.
    #[arg(long, value_name = "RATE", default_value_t = 1000.0)]
    pub rate: f64,
    /// Length of a line.
    #[arg(long, value_name = "SIZE", default_value = "512B")]
    pub size: String,
    /// Connections.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub connections: usize,
    /// How long [default: until it is interrupted].
    #[arg(long = "for", value_name = "DURATION")]
    pub time: Option<String>,
    /// A word in all lines, by which they can be found.
    #[arg(long, value_name = "WORD", default_value = "load")]
    pub id: String,
    /// Count records as acknowledged once they are written, not once they are on the disk.
    #[arg(long)]
    pub fast: bool,
    /// How often to say on standard error how it goes.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub report_every: String,
    /// How to print.
    #[command(flatten)]
    pub table: TableOutput,
}
