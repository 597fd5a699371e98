//! The fuzz targets of `crates/fuzz`, on the pinned stable toolchain.
//!
//! The compiler's coverage instrumentation is reached by stable code generation options; only our
//! own crates get it, by a compiler wrapper, so that dependencies are neither slowed nor listed.

use std::path::Path;
use std::process::Command;
use std::thread;

use crate::run::{Outcome, cargo, check, output, root, target_directory};

/// How long a target runs unless told, in seconds.
const LENGTH_DEFAULT: &str = "10";

/// Builds the targets and runs each of them, or those that are named, for so many seconds (`60`) or inputs (`10000x`).
pub(crate) fn run(arguments: &[String]) -> Outcome<()> {
    let length = arguments.first().map_or(LENGTH_DEFAULT, String::as_str);
    let directory = target_directory().join("fuzz");
    let wrapper = root().join("crates/fuzz/instrument");
    let mut build = cargo();
    build
        .args([
            "build",
            "--locked",
            "--quiet",
            "--package",
            "logpond-fuzz",
            "--profile",
            "fuzz",
        ])
        .arg("--target-dir")
        .arg(&directory)
        .env("RUSTC_WRAPPER", wrapper);
    check(&mut build)?;
    let program = directory.join("fuzz/logpond-fuzz");
    let chosen = match arguments.get(1..).unwrap_or_default() {
        [] => targets(&program)?,
        named => named.to_vec(),
    };
    run_side_by_side(&program, length, &chosen)
}

/// The names of all targets.
fn targets(program: &Path) -> Outcome<Vec<String>> {
    let list = output(Command::new(program).arg("list"))?;
    Ok(list.lines().map(str::to_owned).collect())
}

/// Runs targets in as many processes as there are processors: counters of coverage are a process's own.
fn run_side_by_side(program: &Path, length: &str, targets: &[String]) -> Outcome<()> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let turns = (0..processors.min(targets.len())).map(|first| {
        let mut command = Command::new(program);
        command.current_dir(root()).arg(length);
        command.args(targets.iter().skip(first).step_by(processors));
        thread::spawn(move || check(&mut command))
    });
    let running: Vec<_> = turns.collect();
    let ended = running.into_iter().map(|run| match run.join() {
        Ok(outcome) => outcome,
        Err(_) => Err("a run of targets ended with a panic".to_owned()),
    });
    // All are waited for, so that none runs on behind a failure.
    ended.collect::<Vec<_>>().into_iter().collect()
}
