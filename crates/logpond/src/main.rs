//! The `logpond` program: parse, run, exit code.

fn main() -> std::process::ExitCode {
    let cli = logpond::cli::parse();
    logpond::commands::run(cli).into()
}
