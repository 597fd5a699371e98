//! The fuzz targets of `fuzz/`, on the pinned stable toolchain.
//!
//! The compiler's coverage instrumentation is reached by stable code generation options; only our
//! own crates get it, by a compiler wrapper, so that dependencies are neither slowed nor listed.

use std::env;
use std::process::Command;

use crate::run::{Outcome, cargo, check, root, target_directory};

/// How long a target runs unless told.
const SECONDS_DEFAULT: u64 = 10;

/// Builds the targets and runs each of them, or those that are named, for so many seconds.
pub(crate) fn run(arguments: &[String]) -> Outcome<()> {
    let seconds = match arguments.first() {
        None => SECONDS_DEFAULT,
        Some(text) => text
            .parse()
            .map_err(|_| format!("{text} is not a number of seconds"))?,
    };
    let directory = target_directory().join("fuzz");
    let wrapper = root().join("fuzz/instrument");
    let mut build = cargo();
    build
        .args([
            "build",
            "--locked",
            "--quiet",
            "--manifest-path",
            "fuzz/Cargo.toml",
        ])
        .arg("--target-dir")
        .arg(&directory)
        .env("RUSTC_WRAPPER", wrapper);
    check(&mut build)?;
    let mut command = Command::new(directory.join("debug/logpond-fuzz"));
    command
        .current_dir(root())
        .arg(seconds.to_string())
        .args(arguments.get(1..).unwrap_or_default());
    if env::var_os("LOGPOND_SHARED").is_none() {
        command.env("LOGPOND_SHARED", root().join("../shared"));
    }
    check(&mut command)
}
