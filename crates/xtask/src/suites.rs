//! All tests, in two lanes side by side: most of those that take long wait for processes, disks and clocks.
//!
//! ```text
//! build ─┬▶ end to end
//!        └▶ all others of cargo ─▶ the interface: units ─▶ in a browser
//! ```

use std::io::{self, Write as _};
use std::process::Command;
use std::thread;
use std::time::Instant;

use crate::run::{Outcome, cargo_test, check, find_program, missing, root, tested_program};

/// The longest suite has a lane of its own: as long as all others together.
const LONGEST: [&str; 2] = ["--test", "e2e"];

/// All others: those whose names do not begin with an e, and of each crate its own. No documentation has tests.
const OTHERS: [&str; 5] = ["--lib", "--bins", "--examples", "--test", "[!e]*"];

/// The browsers that can be driven.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// How `web/build` ends without npm of Node 20 or later.
const NO_NODE: i32 = 3;

/// Builds all tests, and runs them with more variables, if any.
pub(crate) fn run(variables: &[(&str, &str)]) -> Outcome<()> {
    check(cargo_test().arg("--no-run"))?;
    let of_cargo = |chosen: &[&str]| {
        let mut command = cargo_test();
        command.args(chosen);
        command.envs(variables.iter().copied());
        command
    };
    let (longest, others) = thread::scope(|scope| {
        let longest = scope.spawn(|| finish("end to end", of_cargo(&LONGEST)));
        let others = scope.spawn(|| {
            // Both are run, so that one run shows all that is wrong.
            let of_crates = finish("all others", of_cargo(&OTHERS));
            of_crates.and(interface())
        });
        (joined(longest), joined(others))
    });
    longest.and(others)
}

fn joined(lane: thread::ScopedJoinHandle<'_, Outcome<()>>) -> Outcome<()> {
    let ended = lane.join();
    ended.unwrap_or_else(|_| Err("a lane of tests panicked".to_owned()))
}

/// The tests of the interface: its formatting, its units, and all of it in a browser.
fn interface() -> Outcome<()> {
    let lack = |tool: &str| missing(tool, "the interface was not tested");
    let web = root().join("web");
    let built = Command::new(web.join("build")).status();
    let built = built.map_err(|error| format!("web/build cannot be run: {error}"))?;
    let (Some(npm), false) = (find_program("npm"), built.code() == Some(NO_NODE)) else {
        return lack("npm of Node 20");
    };
    if !built.success() {
        return Err(format!("the interface cannot be built: {built}"));
    }
    let Some(browser) = BROWSERS.into_iter().find_map(find_program) else {
        return lack("chromium");
    };
    for (name, script) in [
        ("formatting of the interface", "style"),
        ("units of the interface", "test"),
    ] {
        let mut command = Command::new(&npm);
        command.args(["run", "--silent", script]).current_dir(&web);
        finish(name, command)?;
    }
    let mut command = Command::new(&npm);
    command.args(["run", "--silent", "e2e"]).current_dir(&web);
    command.env("LOGPOND", tested_program());
    command.env("CHROMIUM", browser);
    finish("the interface in a browser", command)
}

/// Runs a suite to its end, and shows then what it has printed, since another one prints meanwhile.
fn finish(name: &str, mut command: Command) -> Outcome<()> {
    eprintln!("== {name}: begins");
    let began = Instant::now();
    let output = command.output();
    let output = output.map_err(|error| format!("{name} cannot be run: {error}"))?;
    let took_s = began.elapsed().as_secs_f64();
    // Nobody else writes in between.
    let mut shown = io::stderr().lock();
    let written = writeln!(shown, "== {name}: {} after {took_s:.0} s", output.status)
        .and_then(|()| shown.write_all(&output.stdout))
        .and_then(|()| shown.write_all(&output.stderr));
    written.map_err(|error| format!("what {name} printed cannot be shown: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("{name}: {}", output.status))
    }
}
