//! `logpond mcp` as it is typed.

use clap::Args;

use super::Server;

/// Flags of `logpond mcp`.
#[derive(Debug, Args)]
#[command(
    after_help = "An assistant starts it and speaks the Model Context Protocol with it. A server speaks it itself, \
                        too, at its path /mcp.\n\n\
                        Try:  logpond mcp --addr http://logs.example:7650 --token-file token"
)]
pub struct Mcp {
    /// The server.
    #[command(flatten)]
    pub server: Server,
}
