//! Everything that a change must pass, in the order of cost.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::run::{
    FEATURES, Outcome, cargo, cargo_test, check, find_program, is_ci, lint_on_the_way, missing,
    root,
};
use crate::{docs, fuzz, interface, torture};

/// How many inputs each fuzz target is given at night: the same on each machine. Longer runs, by other seeds, find new
/// things.
const FUZZ_LENGTH: &str = "20000x";

/// How long a cluster is tortured for each change, in minutes, and by which seed: some ten faults, half of the kinds.
/// Longer runs, by other seeds, find more.
const TORTURE: [&str; 4] = ["--minutes", "0.35", "--seed", "1"];

/// The same at night.
const TORTURE_AT_NIGHT: [&str; 4] = ["--minutes", "5", "--seed", "2"];

/// The cluster that is: with copies on disks and in a bucket.
const TORTURED: &[&str] = &["bucket"];

/// Those that are at night: also with copies on disks only.
const TORTURED_AT_NIGHT: &[&str] = &["roles", "bucket"];

/// Says how many seeds the simulation of a cluster runs, and how many it does at night.
const SEEDS: (&str, &str) = ("LOGPOND_SIM_SEEDS", "10000");

/// Says that what runs at night runs, too.
const ALL: &str = "--all";

/// How much is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// The steps that each change must pass.
    Change,
    /// Those that take hours, too.
    Night,
}

type Step = (&'static str, Extent, fn(Extent) -> Outcome<()>);

const STEPS: [Step; 9] = [
    ("format", Extent::Change, |_| format()),
    ("lint", Extent::Change, |_| lint()),
    ("deny", Extent::Change, |_| deny()),
    ("advisories", Extent::Change, |_| advisories()),
    ("test", Extent::Change, test),
    ("interface", Extent::Change, |extent| {
        interface::test(extent == Extent::Night)
    }),
    ("torture", Extent::Change, torture),
    ("docs", Extent::Change, |_| {
        docs::run(&["--check".to_string()])
    }),
    // Its targets take some inputs in `test`, without looking for new branches.
    ("fuzz", Extent::Night, |_| {
        fuzz::run(&[FUZZ_LENGTH.to_string()])
    }),
];

/// Runs the steps that each change must pass, all of them with `--all`, or those that are named. Stops at the first
/// that fails.
pub(crate) fn run(arguments: &[String]) -> Outcome<()> {
    let (all, names): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| *argument == ALL);
    for name in &names {
        if !STEPS.iter().any(|(step, ..)| step == name) {
            let known: Vec<&str> = STEPS.iter().map(|(step, ..)| *step).collect();
            return Err(format!("no step {name}; there are {}", known.join(", ")));
        }
    }
    let extent = if all.is_empty() {
        Extent::Change
    } else {
        Extent::Night
    };
    let mut times: Vec<(&str, Duration)> = Vec::new();
    for (name, of, step) in STEPS {
        let is_chosen = if names.is_empty() {
            of == Extent::Change || extent == Extent::Night
        } else {
            names.iter().any(|n| *n == name)
        };
        if !is_chosen {
            continue;
        }
        eprintln!("== {name}");
        let start = Instant::now();
        step(extent).map_err(|e| format!("== {name} failed: {e}"))?;
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
    check(cargo().args(["fmt", "--all", "--check"]))
}

/// With all features, which is how it is tested, and the program without any, which is how most build it.
///
/// The second run takes the packages of others from the first: `xtask/packages` brings those of the features, since
/// without them nearly all would have other features of their own, and be looked at again for minutes.
fn lint() -> Outcome<()> {
    let plain = ["--locked", "--workspace", "--bins"];
    let packages = ["--features", "xtask/packages"];
    if is_ci() {
        check(tests().arg("--no-run"))?;
        let mut build = cargo();
        build.args(["build", "--quiet"]).args(plain).args(packages);
        // Nobody runs it.
        build.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
        lint_on_the_way(&mut build);
        return check(&mut build);
    }
    let warnings = ["--", "--deny", "warnings"];
    let all = ["clippy", "--locked", "--workspace", "--all-targets"];
    check(cargo().args(all).args(FEATURES).args(warnings))?;
    check(
        cargo()
            .arg("clippy")
            .args(plain)
            .args(packages)
            .args(warnings),
    )
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

fn torture(extent: Extent) -> Outcome<()> {
    let (length, topologies) = match extent {
        Extent::Change => (TORTURE, TORTURED),
        Extent::Night => (TORTURE_AT_NIGHT, TORTURED_AT_NIGHT),
    };
    topologies.iter().try_for_each(|topology| {
        let arguments = [&length[..], &["--topology", topology]].concat();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        torture::run(&arguments)
    })
}

/// All tests of cargo but those in documentation, of which there are none.
fn tests() -> Command {
    let mut tests = cargo_test();
    tests.args(["--lib", "--bins", "--examples", "--tests"]);
    tests
}

fn test(extent: Extent) -> Outcome<()> {
    let mut tests = tests();
    if extent == Extent::Night {
        let (name, seeds) = SEEDS;
        tests.env(name, seeds);
    }
    check(&mut tests)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::run::output;

    /// The packages of others that a check of the workspace takes, with their features.
    fn packages(arguments: &[&str]) -> BTreeSet<String> {
        let tree = ["tree", "--locked", "--workspace", "--prefix", "none"];
        let format = ["--format", "{p} [{f}]"];
        let listed = output(cargo().args(tree).args(format).args(arguments)).unwrap();
        let lines = listed.lines().map(|line| line.trim_end_matches(" (*)"));
        let of_others = lines.filter(|line| !line.is_empty() && !line.contains("(/"));
        of_others.map(str::to_owned).collect()
    }

    /// If this fails, add what is missing to the feature `packages` of this crate.
    #[test]
    fn the_second_check_of_lint_takes_all_packages_of_others_from_the_first() {
        let edges = ["--edges", "normal,build,dev"];
        let all = packages(&[edges, FEATURES].concat());
        let plain = ["--edges", "normal,build", "--features", "xtask/packages"];
        let plain = packages(&plain);
        assert!(plain.len() > 300, "{}", plain.len());
        let others: Vec<&String> = plain.difference(&all).collect();
        assert!(others.is_empty(), "{others:#?}");
    }
}
