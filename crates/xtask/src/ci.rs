//! Everything that a change must pass, in the order of cost.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::run::{FEATURES, Outcome, cargo, cargo_test, check, find_program, is_ci, root};
use crate::{docs, fuzz, torture};

/// How many inputs each fuzz target is given here: the same on each machine. It shows that the targets work;
/// longer runs, by other seeds, find new things.
const FUZZ_LENGTH: &str = "20000x";

/// How long a cluster is tortured here, in minutes, and by which seed: some ten faults, half of the kinds.
/// Longer runs, by other seeds, find more.
const TORTURE: [&str; 4] = ["--minutes", "0.35", "--seed", "1"];

/// The clusters that are: with copies on disks, and with one in a bucket.
const TORTURED: [&str; 2] = ["roles", "bucket"];

type Step = (&'static str, fn() -> Outcome<()>);

const STEPS: [Step; 8] = [
    ("format", format),
    ("lint", lint),
    ("deny", deny),
    ("advisories", advisories),
    ("test", test),
    ("torture", torture),
    ("docs", || docs::run(&["--check".to_string()])),
    ("fuzz", || fuzz::run(&[FUZZ_LENGTH.to_string()])),
];

/// Runs all steps, or those that are named. Stops at the first that fails.
pub(crate) fn run(names: &[String]) -> Outcome<()> {
    for name in names {
        if !STEPS.iter().any(|(step, _)| step == name) {
            let known: Vec<&str> = STEPS.iter().map(|(step, _)| *step).collect();
            return Err(format!("no step {name}; there are {}", known.join(", ")));
        }
    }
    let mut times: Vec<(&str, Duration)> = Vec::new();
    for (name, step) in STEPS {
        if !names.is_empty() && !names.iter().any(|n| n == name) {
            continue;
        }
        eprintln!("== {name}");
        let start = Instant::now();
        step().map_err(|e| format!("== {name} failed: {e}"))?;
        times.push((name, start.elapsed()));
    }
    let total: Duration = times.iter().map(|(_, time)| *time).sum();
    eprintln!("== passed in {:.0} s", total.as_secs_f64());
    for (name, time) in times {
        eprintln!("   {name:<12} {:>5.0} s", time.as_secs_f64());
    }
    Ok(())
}

fn format() -> Outcome<()> {
    check(cargo().args(["fmt", "--all", "--check"]))?;
    let fuzz = ["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"];
    check(cargo().args(fuzz))
}

/// With all features, which is how it is tested, and the program without any, which is how most build it.
fn lint() -> Outcome<()> {
    let warnings = ["--", "--deny", "warnings"];
    let all = ["clippy", "--locked", "--workspace", "--all-targets"];
    check(cargo().args(all).args(FEATURES).args(warnings))?;
    let plain = ["clippy", "--locked", "--package", "logpond", "--bins"];
    check(cargo().args(plain).args(warnings))
}

/// Licences, banned and duplicate packages, and sources of packages.
fn deny() -> Outcome<()> {
    let Some(mut command) = cargo_deny() else {
        return missing("cargo-deny", "licences and bans were not checked");
    };
    // It looks at the packages of all platforms, of which a build has only its own.
    check(cargo().args(["fetch", "--locked", "--quiet"]))?;
    check(command.args(["--offline", "check", "licenses", "bans", "sources"]))
}

/// Known vulnerabilities. Their database is elsewhere, so this is said and not a failure when it
/// cannot be had; what it finds is a failure.
fn advisories() -> Outcome<()> {
    let Some(mut fetch) = cargo_deny() else {
        return missing("cargo-deny", "advisories were not checked");
    };
    let fetched = fetch.args(["fetch", "db"]).output();
    if !fetched.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: advisories were not checked because their database is out of reach");
        return Ok(());
    }
    let mut command = cargo_deny().ok_or("cargo-deny has gone")?;
    check(command.args(["--offline", "check", "advisories"]))
}

fn cargo_deny() -> Option<Command> {
    let mut command = Command::new(find_program("cargo-deny")?);
    command.current_dir(root());
    Some(command)
}

fn missing(tool: &str, consequence: &str) -> Outcome<()> {
    if is_ci() {
        return Err(format!("{tool} is not installed; ./test installs it"));
    }
    eprintln!("skipped: {consequence} because {tool} is not installed (./test installs it)");
    Ok(())
}

fn torture() -> Outcome<()> {
    TORTURED.iter().try_for_each(|topology| {
        let arguments = [&TORTURE[..], &["--topology", topology]].concat();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        torture::run(&arguments)
    })
}

fn test() -> Outcome<()> {
    // The end-to-end tests run last, so that a broken unit test shows first.
    check(&mut cargo_test())
}
