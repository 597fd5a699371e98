//! The `logpond` program: parse, run, exit code.

fn main() -> std::process::ExitCode {
    logpond_host::memory::begin_within_limits();
    let cli = logpond::cli::parse();
    logpond::commands::run(cli).into()
}
