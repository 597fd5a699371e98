//! The `logpond` program: parse, run, exit code.

use clap::Parser;

fn main() -> std::process::ExitCode {
    let cli = logpond::cli::Cli::parse();
    logpond::commands::run(cli).into()
}
