//! Repository automation: `cargo xtask ci|dist|docs|site|fuzz|logqltest|lokidiff|bench|torture`.
//!
//! No step needs more than the pinned toolchain, a C compiler and the packages of the lock file;
//! what needs another tool says so when it is absent, and fails there if `CI=true`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a tool casts numbers that it measures or draws"
)]

mod ci;
mod dist;
mod docs;
mod draw;
mod e2e;
mod fuzz;
mod interface;
mod logqltest;
mod loki;
mod lokidiff;
mod run;
mod bench;
mod site;
#[cfg(test)]
mod tidy;
mod torture;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci [STEP...]     everything that a change must pass, or only the named steps;
                   --all is for a night: 10,000 seeds of the simulation, longer torture, fuzzing
  dist [--target TRIPLE]... [--program PATH]
                   make the files of a release below target/dist: archives, packages, an image, checksums
  docs [--check]   write docs/reference/ from the program, or compare with it
  site             build the documentation as a site below target/site, by mdBook
  fuzz [SECONDS] [TARGET...]   run the fuzz targets, 10 seconds each by default
  logqltest DIR    run Loki's declarative tests of LogQL from a directory, and count what passes
  lokidiff --loki PATH [--program LOGPOND] [--queries N] [--seed N] [--stay]
                   send generated data and queries to this Loki binary and to Logpond, and report every
                   difference that is not on purpose; --stay leaves both running until a line is entered
  bench [--bytes N] [--sizes N,...] [--victoria-logs PATH] [--corpus DIR]
        [--only PART,...] [--program PATH] [--rounds N] [--seconds N] [--no-write]
                   measure the release build beside its peers and write docs/benchmarks.md and
                   docs/benchmarks-sources.md; the parts are ingest, answers, limits of the one, and
                   syslog, push, web, stall of the other; dashboard, which is meant for --bytes 1G,
                   only by its name, for docs/benchmarks-dashboard.md; proxy, only by its name, for
                   docs/benchmarks-proxy.md, of --rounds that take turns, with --seconds for each figure;
                   listener likewise for docs/benchmarks-listener.md, by h2load, and cluster for
                   docs/benchmarks-cluster.md; growth, of --sizes 300M,3G, for docs/benchmarks-growth.md
  torture [--minutes N] [--seed S] [--topology roles|serve|bucket] [--program PATH] [--keep]
          [--everything] [--report PAGE] [--patience N] [--only KIND]...
                   break a cluster of real processes, and check that nothing is lost, doubled or
                   claimed wrongly; one minute by default. --everything adds all sources and interfaces,
                   and runs every topology for its share of the time; --report writes figures and
                   pictures to this page; --patience multiplies all deadlines, for a busy machine";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let noted = run::note_own_program();
    let result = noted.and_then(|()| run_command(&arguments));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run_command(arguments: &[String]) -> run::Outcome<()> {
    let rest = arguments.get(1..).unwrap_or_default();
    match arguments.first().map(String::as_str) {
        Some("ci") => ci::run(rest),
        Some("dist") => dist::run(rest),
        Some("docs") => docs::run(rest),
        Some("site") => site::run(rest),
        Some("fuzz") => fuzz::run(rest),
        Some("logqltest") => logqltest::run(rest),
        Some("lokidiff") => lokidiff::run(rest),
        Some("bench") => bench::run(rest),
        // The application of the benchmark of the proxy, which starts it.
        Some("bench-echo") => bench::proxy::echo::serve(rest.first().map_or("", String::as_str)),
        Some("torture") => torture::run(rest),
        _ => Err(USAGE.to_string()),
    }
}
