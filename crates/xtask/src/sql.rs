//! The feature `sql`: linted and tested by itself, as its query engine takes a quarter of an hour to build, and
//! the features `acme` and `kafka` with it, so that the program is built once for all.
//!
//! All is left out while nothing has changed that it is made from since they passed last.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::run::{Outcome, cargo, cargo_test, check, root, target_directory};

/// What the answers to SQL, certificates by ACME and the reading of Kafka are made from.
const MADE_FROM: [&str; 23] = [
    "Cargo.lock",
    "Cargo.toml",
    "rust-toolchain.toml",
    "crates/record",
    "crates/segment",
    "crates/search",
    "crates/sql",
    "crates/tls",
    "crates/proxy",
    "crates/logpond/Cargo.toml",
    "crates/logpond/src/query",
    "crates/logpond/src/http",
    "crates/logpond/src/cli",
    "crates/logpond/src/commands",
    "crates/logpond/src/settings",
    "crates/logpond/src/ingest",
    "crates/logpond/src/kafka",
    "crates/logpond/tests/acme",
    "crates/logpond/tests/e2e",
    "crates/logpond/tests/kafka",
    "crates/logpond/tests/sql",
    "docs/sql.md",
    "test",
];

/// Where it is kept what passed last.
const STAMP: &str = "sql-passed";

/// The packages and the features. One set for all commands, so that dependencies are built once.
const BUILD: [&str; 7] = [
    "--locked",
    "--package",
    "logpond",
    "--package",
    "logpond-sql",
    "--features",
    "logpond/sql,logpond/acme,logpond/kafka",
];

/// The tests of these features.
const TESTS: [&str; 9] = [
    "--lib", "--test", "engine", "--test", "sql", "--test", "acme", "--test", "kafka",
];

/// Lints and tests the features, unless that passed with the same files.
///
/// Of the end-to-end tests only those of the features: the others run with the program as most users build
/// it.
pub(crate) fn run() -> Outcome<()> {
    let now = fingerprint()?;
    let stamp = target_directory().join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|passed| passed == now) {
        eprintln!("nothing has changed that SQL, ACME and Kafka are made from since they passed");
        return Ok(());
    }
    // The tests first: what they build the linter cannot use, and they say more.
    check(cargo_test().arg("--quiet").args(BUILD).args(TESTS))?;
    let lint = ["--bins", "--", "--deny", "warnings"];
    check(cargo().arg("clippy").args(BUILD).args(TESTS).args(lint))?;
    fs::write(&stamp, now).map_err(|e| format!("{}: {e}", stamp.display()))
}

/// What the files are, as text.
fn fingerprint() -> Outcome<String> {
    let mut files = Vec::new();
    for path in MADE_FROM {
        collect(&root().join(path), &mut files)?;
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.hash(&mut hasher);
        let bytes = fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        bytes.hash(&mut hasher);
    }
    Ok(format!("{:016x}\n", hasher.finish()))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Outcome<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(|e| format!("{}: {e}", path.display()))?;
    for entry in entries {
        let entry = entry.map_err(|e| format!("{}: {e}", path.display()))?;
        collect(&entry.path(), files)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_sql_is_made_from_is_there() {
        for path in MADE_FROM {
            assert!(root().join(path).exists(), "{path}");
        }
        assert_eq!(fingerprint(), fingerprint());
    }
}
