//! What the tests find around them: the program, the shared fixtures, other tools.
//!
//! What is absent is said on stderr, where the test runner does not swallow it, and is a failure
//! if `CI=true`.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pond::Scratch;

/// The program under test.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_logpond"))
}

/// Says that a test did not run, and why; fails where nothing may be skipped.
pub(crate) fn skip(what: &str, reason: &str) {
    let is_ci = env::var("CI").is_ok_and(|v| v == "true");
    assert!(!is_ci, "{what}: {reason}, and CI=true allows no skipping");
    let _ = writeln!(std::io::stderr(), "skipped: {what} because {reason}");
}

/// Says something that a person should see although the test passed.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The folder with fixtures and the corpus generator, unless it is absent.
pub(crate) fn shared(what: &str) -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = env::var_os("LOGPOND_SHARED").map_or_else(default, PathBuf::from);
    if path.join("fixtures").is_dir() {
        return Some(path);
    }
    skip(
        what,
        "the folder with fixtures is absent (LOGPOND_SHARED or ../shared)",
    );
    None
}

/// Whether a program can be run.
pub(crate) fn has_program(name: &str) -> bool {
    let mut command = Command::new(name);
    command
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success())
}

/// A Python with the packages of `requirements.txt`, as `./test` sets it up.
pub(crate) fn python(what: &str) -> Option<PathBuf> {
    let path = installed("LOGPOND_PYTHON", "venv/bin/python3");
    let works = Command::new(&path)
        .args([
            "-c",
            "import deltalake, duckdb, duckdb_extensions, elasticsearch, fluent, graypy, logging_loki, loguru, \
             opentelemetry.sdk, psycopg, pygelf, pythonjsonlogger, splunk_handler, sqlalchemy, structlog",
        ])
        .output()
        .is_ok_and(|output| output.status.success());
    if works {
        return Some(path);
    }
    skip(
        what,
        "there is no Python with the packages of requirements.txt (./test installs them)",
    );
    None
}

/// A folder of packages that `./test` sets up: below `target/`, or as a variable says. `None` if the program that
/// takes them is missing, or a package that is known to be among them.
fn packages(
    what: &str,
    program: &str,
    (variable, default): (&str, &str),
    is_known: impl Fn(&str) -> bool,
) -> Option<PathBuf> {
    if !has_program(program) {
        skip(what, &format!("there is no {program}"));
        return None;
    }
    let path = installed(variable, default);
    let mut entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
    if entries.any(|entry| is_known(&entry.file_name().to_string_lossy())) {
        return Some(path);
    }
    skip(
        what,
        &format!("there are no packages (./test installs them below target/{default})"),
    );
    None
}

/// The place of something that `./test` installs: as a variable says, or below `target`.
fn installed(variable: &str, default: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    env::var_os(variable).map_or_else(|| target.join(default), PathBuf::from)
}

/// Node's packages of `testdata/clients/node`.
pub(crate) fn node_packages(what: &str) -> Option<PathBuf> {
    let place = ("LOGPOND_NODE_PACKAGES", "node/node_modules");
    packages(what, "node", place, |name| name == "winston")
}

/// The jars of `testdata/clients/java`, if there is a compiler, too.
pub(crate) fn java_packages(what: &str) -> Option<PathBuf> {
    let place = ("LOGPOND_JAVA_PACKAGES", "java");
    packages(what, "javac", place, |name| name.starts_with("log4j-core"))
}

/// The program of `testdata/clients/go`, as `./test` builds it.
pub(crate) fn go_program(what: &str) -> Option<PathBuf> {
    let path = installed("LOGPOND_GO_CLIENT", "go/ship");
    if path.is_file() {
        return Some(path);
    }
    skip(what, "there is no program of Go's (./test builds it)");
    None
}

/// True if there is PHP with Monolog.
pub(crate) fn monolog(what: &str) -> bool {
    let mut command = Command::new("php");
    command.args(["-r", "require 'Monolog/autoload.php';"]);
    let is_there = command.output().is_ok_and(|output| output.status.success());
    if !is_there {
        skip(what, "there is no PHP with Monolog (./test installs them)");
    }
    is_there
}

/// A generated corpus and its facts.
pub(crate) struct Corpus {
    /// The file.
    pub(crate) file: PathBuf,
    /// What is true of it.
    pub(crate) facts: serde_json::Value,
    _scratch: Scratch,
}

/// Generates a corpus of a kind; nothing if that is impossible here.
pub(crate) fn corpus(kind: &str, bytes: &str) -> Option<Corpus> {
    let what = format!("the exact answers of the {kind} corpus");
    let shared = shared(&what)?;
    if !has_program("python3") {
        skip(&what, "there is no python3 to generate it");
        return None;
    }
    let scratch = Scratch::new("corpus").unwrap();
    let output = Command::new("python3")
        .arg(shared.join("tools/make-corpus.py"))
        .args([kind, "--bytes", bytes, "--out"])
        .arg(scratch.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let facts = scratch.path().join(format!("FACTS.{kind}.json"));
    let facts: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(facts).unwrap()).unwrap();
    Some(Corpus {
        file: scratch.path().join(facts["file"].as_str().unwrap()),
        facts,
        _scratch: scratch,
    })
}
