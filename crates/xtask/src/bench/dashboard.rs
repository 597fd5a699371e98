//! A dashboard over a week of access logs: ten panels as Grafana asks for them.

use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use super::corpus::Corpora;
use super::http::encode;
use super::ingest::{compact, post, settle};
use super::pond::{Pond, Scratch, cpu_seconds};
use super::table::{Report, Target, median};
use crate::run::Outcome;

/// Times that a panel is asked for after the first; the median counts.
const RUNS: usize = 9;

/// The week of the corpus, and the steps that a panel of some thousand points has.
const RANGE: &str = "start=2026-03-02T00:00:00Z&end=2026-03-09T00:00:00Z&step=600&limit=100";

/// The end of the week.
const INSTANT: &str = "time=2026-03-09T00:00:00Z";

/// A panel: its name, where it asks, the rest of the parameters and the query.
type Panel = (&'static str, &'static str, &'static str, &'static str);

const PANELS: [Panel; 10] = [
    (
        "requests",
        "query_range",
        RANGE,
        r#"sum(count_over_time({app="nginx"}[10m]))"#,
    ),
    (
        "requests by status",
        "query_range",
        RANGE,
        r#"sum by (status) (count_over_time({app="nginx"}[10m]))"#,
    ),
    (
        "requests by virtual host",
        "query_range",
        RANGE,
        r#"sum by (host) (count_over_time({app="nginx"}[10m]))"#,
    ),
    (
        "outbound bytes by virtual host",
        "query_range",
        RANGE,
        r#"sum by (host) (sum_over_time({app="nginx"} | unwrap bytes [10m]))"#,
    ),
    (
        "errors by virtual host",
        "query_range",
        RANGE,
        r#"sum by (host) (count_over_time({app="nginx"} | status >= 500 [10m]))"#,
    ),
    (
        "95th percentile of bytes",
        "query_range",
        RANGE,
        r#"quantile_over_time(0.95, {app="nginx"} | unwrap bytes [10m]) by (host)"#,
    ),
    (
        "top referers, own pages excluded",
        "query",
        INSTANT,
        r#"topk(10, sum by (referer) (count_over_time({app="nginx"} | referer!="-" | referer!~"https?://[^/]*semicomplete.com.*" [7d])))"#,
    ),
    (
        "top paths",
        "query",
        INSTANT,
        r#"topk(10, sum by (path) (count_over_time({app="nginx"}[7d])))"#,
    ),
    (
        "distinct clients",
        "query",
        INSTANT,
        r#"count(sum by (remote_addr) (count_over_time({app="nginx"}[7d])))"#,
    ),
    (
        "last errors",
        "query_range",
        RANGE,
        r#"{app="nginx"} | status >= 500"#,
    ),
];

/// Measures each panel alone, and all of them at once as a browser asks.
pub(super) fn measure(program: &Path, corpora: &Corpora, report: &mut Report) -> Outcome<()> {
    let scratch = Scratch::new("bench-dashboard")?;
    let data = scratch.path().join("data");
    let pond = Pond::start(program, &data, &[])?;
    let address = pond.address("http");
    let target = "/api/v1/push?label=app=nginx";
    post(&corpora.nginx, &address, target, "text/plain")?;
    settle(&data)?;
    compact(&pond)?;
    let records = corpora.nginx.lines as f64 / 1e6;
    let title = format!("A dashboard over 7 days, {records:.1} M requests");
    let columns = ["panel", "first ms (CPU ms)", "again ms (CPU ms)", "target"];
    report.table(&title, &columns);
    pond.terminate()?;
    let pond = Pond::start(program, &data, &[])?;
    for panel in &PANELS {
        let (first, first_cpu) = timed(&pond, || ask(&pond, panel))?;
        let (mut again, mut again_cpu) = (Vec::new(), 0.0);
        for _ in 0..RUNS {
            let (ms, cpu_ms) = timed(&pond, || ask(&pond, panel))?;
            again.push(ms);
            again_cpu += cpu_ms / RUNS as f64;
        }
        report.row(vec![
            panel.0.into(),
            format!("{first:.1} ({first_cpu:.0})"),
            format!("{:.1} ({again_cpu:.1})", median(&mut again)),
            String::new(),
        ]);
    }
    pond.terminate()?;
    let pond = Pond::start(program, &data, &[])?;
    let (cold, cold_cpu) = timed(&pond, || ask_all(&pond))?;
    let (mut warm, mut warm_cpu) = (Vec::new(), 0.0);
    for _ in 0..RUNS {
        let (ms, cpu_ms) = timed(&pond, || ask_all(&pond))?;
        warm.push(ms);
        warm_cpu += cpu_ms / RUNS as f64;
    }
    let warm = median(&mut warm);
    let targets = [
        Target::at_most(500.0, "first <= 500 ms").judged(cold),
        Target::at_most(100.0, "again <= 100 ms").judged(warm),
    ];
    report.row(vec![
        "all at once".into(),
        format!("{cold:.1} ({cold_cpu:.0})"),
        format!("{warm:.1} ({warm_cpu:.1})"),
        targets.join(", "),
    ]);
    report.note(format!(
        "Segments merged, the server started anew before the first of each kind of run, the files in the \
         page cache; again: medians of {RUNS} runs."
    ));
    Ok(())
}

/// Wall and CPU milliseconds that something takes.
fn timed(pond: &Pond, run: impl FnOnce() -> Outcome<()>) -> Outcome<(f64, f64)> {
    let (start, cpu) = (Instant::now(), cpu_seconds(pond.pid())?);
    run()?;
    let wall_ms = start.elapsed().as_secs_f64() * 1e3;
    Ok((wall_ms, (cpu_seconds(pond.pid())? - cpu) * 1e3))
}

fn ask_all(pond: &Pond) -> Outcome<()> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = PANELS
            .iter()
            .map(|panel| scope.spawn(move || ask(pond, panel)))
            .collect();
        asked
            .into_iter()
            .try_for_each(|asked| asked.join().map_err(|_| "a client failed".to_owned())?)
    })
}

/// Asks for a panel; an answer without anything is a failure.
fn ask(pond: &Pond, (name, endpoint, times, query): &Panel) -> Outcome<()> {
    let query = encode(query);
    let text = pond.get(&format!("/loki/api/v1/{endpoint}?{times}&query={query}"))?;
    let answer: Value = serde_json::from_str(&text).map_err(|e| format!("{name}: {e}"))?;
    let series = answer["data"]["result"].as_array();
    match series.is_some_and(|series| !series.is_empty()) {
        true => Ok(()),
        false => Err(format!("{name}: nothing found: {text:.200}")),
    }
}
