//! What Logpond costs, measured beside its peers: `cargo xtask bench`.
//!
//! CPU seconds of the server process are the figure to compare; wall times depend on what else the
//! machine does. Peers answer the same question on the same data in the same run, taking turns.

mod answers;
mod cluster;
mod corpus;
mod daemons;
mod dashboard;
mod growth;
mod ingest;
mod limits;
mod loki_corpus;
mod machine;
mod messages;
mod panels;
mod parser;
mod peers;
pub(crate) mod proxy;
mod push;
mod stall;
pub(crate) mod svg;
mod syslog;
mod table;
mod web;

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::e2e::{http, pond};
use crate::run::{Outcome, cargo, check, output, root, target_directory};
use corpus::Corpora;
use pond::Scratch;
use table::Report;

/// The size of each corpus unless told.
const BYTES_DEFAULT: &str = "200M";

/// What can be measured alone: these are of `docs/benchmarks.md`, which needs the corpora.
const STORE_PARTS: [&str; 3] = ["ingest", "answers", "limits"];

/// What is of `docs/benchmarks-dashboard.md`, by the same corpora, of 1 GB for its target.
const DASHBOARD_PART: &str = "dashboard";

/// What is of `docs/benchmarks-proxy.md`, and of no corpora.
const PROXY_PART: &str = "proxy";

/// What is of `docs/benchmarks-listener.md`, and of no corpora either.
const LISTENER_PART: &str = "listener";

/// What is of `docs/benchmarks-cluster.md`, and of no corpora.
const CLUSTER_PART: &str = "cluster";

/// What is of `docs/benchmarks-growth.md`, by corpora of several sizes.
const GROWTH_PART: &str = "growth";

/// Pages of their own, which are measured if they are named.
const OWN_PAGES: [&str; 5] = [
    DASHBOARD_PART,
    GROWTH_PART,
    PROXY_PART,
    LISTENER_PART,
    CLUSTER_PART,
];

/// And these of `docs/benchmarks-sources.md`.
const SOURCE_PARTS: [&str; 5] = ["parser", "syslog", "push", "web", "stall"];

/// Where the rest is.
const OTHER_PAGES: &str = "Other pages: [a dashboard](benchmarks-dashboard.md), [growth](benchmarks-growth.md), [sources](benchmarks-sources.md), \
    [the proxy](benchmarks-proxy.md), [the server's own listener](benchmarks-listener.md), \
    [segments in a bucket](bucket.md#measured), [a cluster](benchmarks-cluster.md).";

/// What the command line asks for.
pub(crate) struct Settings {
    bytes: String,
    /// The sizes of `growth`, of all corpora together.
    sizes: Vec<u64>,
    corpus: Option<PathBuf>,
    victoria_logs: Option<PathBuf>,
    loki: Option<PathBuf>,
    parts: Vec<String>,
    program: Option<PathBuf>,
    /// Of the rounds of the proxy and of the cluster: how many, and how long each measurement takes.
    rounds: Option<usize>,
    seconds: Option<f64>,
    writes: bool,
}

fn parse(arguments: &[String]) -> Outcome<Settings> {
    let mut settings = Settings {
        bytes: BYTES_DEFAULT.into(),
        sizes: growth::SIZES_DEFAULT.to_vec(),
        corpus: None,
        victoria_logs: None,
        loki: None,
        parts: parts()
            .filter(|part| !OWN_PAGES.contains(part))
            .map(String::from)
            .collect(),
        program: None,
        rounds: None,
        seconds: None,
        writes: true,
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let mut value = || rest.next().cloned().ok_or(format!("{flag} needs a value"));
        match flag.as_str() {
            "--bytes" => settings.bytes = value()?,
            "--sizes" => settings.sizes = sizes(&value()?)?,
            "--corpus" => settings.corpus = Some(value()?.into()),
            "--victoria-logs" => settings.victoria_logs = Some(value()?.into()),
            "--loki" => settings.loki = Some(value()?.into()),
            "--only" => settings.parts = value()?.split(',').map(String::from).collect(),
            "--program" => settings.program = Some(value()?.into()),
            "--rounds" => settings.rounds = Some(positive(flag, &value()?)?),
            "--seconds" => settings.seconds = Some(positive(flag, &value()?)?),
            "--no-write" => settings.writes = false,
            _ => return Err(format!("bench: unknown flag {flag}")),
        }
    }
    match settings
        .parts
        .iter()
        .find(|part| !parts().any(|known| known == part.as_str()))
    {
        Some(part) => {
            let known: Vec<_> = parts().collect();
            Err(format!(
                "bench: no part {part}; there are {}",
                known.join(", ")
            ))
        }
        None => Ok(settings),
    }
}

/// Sizes such as `300M,3G`, the smallest first.
fn sizes(text: &str) -> Outcome<Vec<u64>> {
    let size = |text: &str| {
        let (number, unit) = match text.strip_suffix('G') {
            Some(number) => (number, 1_000_000_000),
            None => (text.strip_suffix('M')?, 1_000_000),
        };
        let number: u64 = number.parse().ok()?;
        number.checked_mul(unit).filter(|bytes| *bytes > 0)
    };
    let sizes: Option<Vec<u64>> = text.split(',').map(size).collect();
    let sizes = sizes.filter(|sizes| sizes.is_sorted());
    sizes.ok_or_else(|| format!("bench: --sizes {text} are no sizes in order, as 300M,3G are"))
}

/// A number of which there is at least a little, and not more than anybody waits for.
fn positive<N: FromStr + PartialOrd + From<u8>>(flag: &str, text: &str) -> Outcome<N> {
    let number: Option<N> = text.parse().ok();
    let number = number.filter(|n| *n > N::from(0) && *n <= N::from(100));
    number.ok_or_else(|| format!("bench: {flag} {text} is no number up to 100"))
}

fn parts() -> impl Iterator<Item = &'static str> {
    STORE_PARTS.into_iter().chain(SOURCE_PARTS).chain(OWN_PAGES)
}

/// Builds the release program, measures it, prints the tables and writes them down.
pub(crate) fn run(arguments: &[String]) -> Outcome<()> {
    let settings = parse(arguments)?;
    let program = match settings.program.clone() {
        Some(program) => program,
        None => {
            let build = ["build", "--release", "--locked", "--package", "logpond"];
            check(cargo().args(build))?;
            target_directory().join("release/logpond")
        }
    };
    let measures = |part: &str| settings.parts.iter().any(|p| p == part);
    if STORE_PARTS.into_iter().any(measures) {
        let report = of_the_store(&settings, &program, arguments)?;
        finish(&settings, &report, "docs/benchmarks.md")?;
    }
    if measures(DASHBOARD_PART) {
        let scratch = Scratch::new("bench")?;
        let corpora = Corpora::make(&settings, scratch.path())?;
        let mut report = Report::new("Benchmark of a dashboard", arguments, Some(&corpora));
        dashboard::measure(&program, &settings, &corpora, &mut report)?;
        finish(&settings, &report, "docs/benchmarks-dashboard.md")?;
    }
    if measures(GROWTH_PART) {
        let mut report = Report::new("Benchmark of growth", arguments, None);
        let picture = growth::measure(&program, &settings, &mut report)?;
        finish(&settings, &report, "docs/benchmarks-growth.md")?;
        write(&settings, &format!("docs/{}", growth::PICTURE), &picture)?;
    }
    if measures(PROXY_PART) {
        let mut report = Report::new("Benchmark of the proxy", arguments, None);
        let picture = proxy::measure(&program, &settings, &mut report)?;
        finish(&settings, &report, "docs/benchmarks-proxy.md")?;
        write(&settings, &format!("docs/{}", proxy::PICTURE), &picture)?;
    }
    if measures(LISTENER_PART) {
        let mut report = Report::new("Benchmark of the server's own listener", arguments, None);
        proxy::listener::measure(&program, &settings, &mut report)?;
        finish(&settings, &report, "docs/benchmarks-listener.md")?;
    }
    if measures(CLUSTER_PART) {
        let mut report = Report::new("Benchmark of a cluster", arguments, None);
        cluster::measure(&program, &settings, &mut report)?;
        finish(&settings, &report, "docs/benchmarks-cluster.md")?;
    }
    if SOURCE_PARTS.into_iter().any(measures) {
        let mut report = Report::new("Benchmarks of sources", arguments, None);
        if measures("parser") {
            parser::measure(&mut report)?;
        }
        if measures("syslog") {
            syslog::measure(&program, &mut report)?;
        }
        if measures("push") {
            push::measure(&program, &mut report)?;
        }
        if measures("web") {
            web::measure(&program, &mut report)?;
        }
        if measures("stall") {
            stall::measure(&program, &mut report)?;
        }
        finish(&settings, &report, "docs/benchmarks-sources.md")?;
    }
    Ok(())
}

fn of_the_store(settings: &Settings, program: &Path, arguments: &[String]) -> Outcome<Report> {
    let scratch = Scratch::new("bench")?;
    let corpora = Corpora::make(settings, scratch.path())?;
    let mut report = Report::new("Benchmarks", arguments, Some(&corpora));
    report.fact(OTHER_PAGES.to_owned());
    let measures = |part: &str| settings.parts.iter().any(|p| p == part);
    let peer = settings.victoria_logs.as_deref();
    if measures("ingest") {
        ingest::measure(program, peer, &corpora, &mut report)?;
    }
    if measures("answers") {
        answers::measure(program, settings, &corpora, &mut report)?;
    }
    if measures("limits") {
        limits::measure(program, &corpora, &mut report)?;
    }
    Ok(report)
}

fn finish(settings: &Settings, report: &Report, page: &str) -> Outcome<()> {
    let text = report.text();
    println!("{text}");
    write(settings, page, &text)
}

fn write(settings: &Settings, page: &str, text: &str) -> Outcome<()> {
    if settings.writes {
        let path = root().join(page);
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        eprintln!("wrote {page}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Outcome<Settings> {
        let arguments: Vec<String> = line.split_whitespace().map(String::from).collect();
        parse(&arguments)
    }

    #[test]
    fn what_needs_to_be_named_is_not_measured_otherwise() {
        let settings = parsed("").unwrap();
        let own = OWN_PAGES.map(String::from);
        assert!(own.iter().all(|part| !settings.parts.contains(part)));
        assert_eq!(
            parsed("--only proxy,push").unwrap().parts,
            ["proxy", "push"]
        );
        assert!(parsed("--only nothing").is_err());
    }

    #[test]
    fn sizes_are_in_order() {
        let settings = parsed("--only growth --sizes 300M,3G").unwrap();
        assert_eq!(settings.sizes, [300_000_000, 3_000_000_000]);
        for wrong in ["3G,300M", "3", "0M", "G", "", "99999999999999999999G"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rounds_and_seconds_are_bounded() {
        let settings = parsed("--only proxy --rounds 5 --seconds 0.5 --no-write").unwrap();
        assert_eq!((settings.rounds, settings.seconds), (Some(5), Some(0.5)));
        assert!(!settings.writes);
        for wrong in [
            "--rounds 0",
            "--rounds 1.5",
            "--rounds 101",
            "--seconds -1",
            "--seconds NaN",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        assert!(parsed("--seconds").is_err());
    }
}
