//! What Logpond costs, measured beside its peers: `cargo xtask bench`.
//!
//! CPU seconds of the server process are the figure to compare; wall times depend on what else the
//! machine does. Peers answer the same question on the same data in the same run, taking turns.

mod answers;
mod corpus;
mod ingest;
mod limits;
mod peers;
mod table;

use std::fs;
use std::path::PathBuf;

use crate::e2e::{http, pond};
use crate::run::{Outcome, cargo, check, output, root, target_directory};
use corpus::Corpora;
use pond::Scratch;
use table::Report;

/// The size of each corpus unless told.
const BYTES_DEFAULT: &str = "200M";

/// What can be measured alone.
const PARTS: [&str; 3] = ["ingest", "answers", "limits"];

/// What the command line asks for.
pub(crate) struct Settings {
    bytes: String,
    corpus: Option<PathBuf>,
    victoria_logs: Option<PathBuf>,
    parts: Vec<String>,
    writes: bool,
}

fn parse(arguments: &[String]) -> Outcome<Settings> {
    let mut settings = Settings {
        bytes: BYTES_DEFAULT.into(),
        corpus: None,
        victoria_logs: None,
        parts: PARTS.map(String::from).to_vec(),
        writes: true,
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let mut value = || rest.next().cloned().ok_or(format!("{flag} needs a value"));
        match flag.as_str() {
            "--bytes" => settings.bytes = value()?,
            "--corpus" => settings.corpus = Some(value()?.into()),
            "--victoria-logs" => settings.victoria_logs = Some(value()?.into()),
            "--only" => settings.parts = value()?.split(',').map(String::from).collect(),
            "--no-write" => settings.writes = false,
            _ => return Err(format!("bench: unknown flag {flag}")),
        }
    }
    match settings
        .parts
        .iter()
        .find(|part| !PARTS.contains(&part.as_str()))
    {
        Some(part) => Err(format!(
            "bench: no part {part}; there are {}",
            PARTS.join(", ")
        )),
        None => Ok(settings),
    }
}

/// Builds the release program, measures it, prints the table and writes it down.
pub(crate) fn run(arguments: &[String]) -> Outcome<()> {
    let settings = parse(arguments)?;
    let build = ["build", "--release", "--locked", "--package", "logpond"];
    check(cargo().args(build))?;
    let program = target_directory().join("release/logpond");
    let scratch = Scratch::new("bench")?;
    let corpora = Corpora::make(&settings, scratch.path())?;
    let mut report = Report::new(arguments, &corpora);
    let measures = |part: &str| settings.parts.iter().any(|p| p == part);
    let peer = settings.victoria_logs.as_deref();
    if measures("ingest") {
        ingest::measure(&program, peer, &corpora, &mut report)?;
    }
    if measures("answers") {
        answers::measure(&program, peer, &corpora, &mut report)?;
    }
    if measures("limits") {
        limits::measure(&program, &corpora, &mut report)?;
    }
    let text = report.text();
    println!("{text}");
    if settings.writes {
        let path = root().join("docs/benchmarks.md");
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        eprintln!("wrote docs/benchmarks.md");
    }
    Ok(())
}
