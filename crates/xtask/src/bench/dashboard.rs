//! A dashboard over a week of access logs: ten panels as Grafana asks for them, beside the peers.

use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use super::Settings;
use super::corpus::{Corpora, Corpus};
use super::http::{Client, encode};
use super::ingest::{compact, post, settle};
use super::loki_corpus;
use super::panels::{PANELS, Panel};
use super::peers::VictoriaLogs;
use super::pond::{Scratch, TestServer, cpu_seconds};
use super::table::{Report, Target, median};
use crate::loki::Loki;
use crate::run::Outcome;

/// Times that Logpond is asked for a panel after the first; the median counts.
const RUNS: usize = 9;

/// The same of the peers, some of which take a while.
const PEER_RUNS: usize = 1;

/// Wall and CPU milliseconds.
#[derive(Clone, Copy, Default)]
struct Cost {
    wall_ms: f64,
    cpu_ms: f64,
}

impl Cost {
    fn cell(self) -> String {
        format!("{:.1} ({:.0})", self.wall_ms, self.cpu_ms)
    }
}

/// A server that answers panels.
trait PanelSource: Sync {
    fn pid(&self) -> u32;

    /// Asks for a panel; an answer without anything is a failure.
    fn ask(&self, panel: &Panel) -> Outcome<()>;
}

/// Measures each panel alone, and all of them at once as a browser asks.
pub(super) fn measure(
    program: &Path,
    settings: &Settings,
    corpora: &Corpora,
    report: &mut Report,
) -> Outcome<()> {
    let scratch = Scratch::new("bench-dashboard")?;
    let data = scratch.path().join("data");
    fill(program, &data, &corpora.nginx)?;
    let start = || TestServer::start(program, &data, &[]);
    let peers = start_peers(settings, &scratch, &corpora.nginx)?;
    let records = corpora.nginx.lines as f64 / 1e6;
    let title = format!("A dashboard over 7 days, {records:.1} M requests");
    let mut columns = vec!["panel", "Logpond first", "again"];
    for (name, _) in &peers {
        columns.extend([*name, "again"]);
    }
    columns.push("target");
    report.table(&title, &columns);
    let server = start()?;
    for panel in &PANELS {
        let mut cells = vec![panel.name.to_owned()];
        cells.extend(ask_often(&server, RUNS, || server.ask(panel)));
        for (_, peer) in &peers {
            cells.extend(ask_often(&**peer, PEER_RUNS, || peer.ask(panel)));
        }
        cells.push(String::new());
        report.row(cells);
    }
    server.terminate()?;
    let server = start()?;
    let cold = timed(server.pid(), || ask_all(&server))?;
    let warm = again(&server, RUNS, || ask_all(&server))?;
    let mut cells = vec!["all at once".to_owned(), cold.cell(), warm.cell()];
    for (_, peer) in &peers {
        cells.extend(ask_often(&**peer, PEER_RUNS, || ask_all(&**peer)));
    }
    let targets = [
        Target::at_most(500.0, "first <= 500 ms").judged(cold.wall_ms),
        Target::at_most(100.0, "again <= 100 ms").judged(warm.wall_ms),
    ];
    cells.push(targets.join(", "));
    report.row(cells);
    report.note(format!(
        "Wall milliseconds, and CPU milliseconds of the server in parentheses. Segments are merged, and files \
         are in the page cache. First: Logpond was restarted before, the peers were not. Again: medians of \
         {RUNS} runs, {PEER_RUNS} of the peers. Logpond and Loki get unparsed lines, VictoriaLogs gets parsed \
         fields. Loki caches no results here."
    ));
    Ok(())
}

fn fill(program: &Path, data: &Path, nginx: &Corpus) -> Outcome<()> {
    let server = TestServer::start(program, data, &[])?;
    let target = "/api/v1/push?label=app=nginx";
    post(nginx, &server.address("http"), target, "text/plain")?;
    settle(data)?;
    compact(&server)?;
    server.terminate().map(drop)
}

type Peers = Vec<(&'static str, Box<dyn PanelSource>)>;

/// The peers whose programs are given, with the same requests.
fn start_peers(settings: &Settings, scratch: &Scratch, nginx: &Corpus) -> Outcome<Peers> {
    let mut peers: Peers = Vec::new();
    if let Some(program) = &settings.victoria_logs {
        let peer = VictoriaLogs::start(program, &scratch.path().join("victoria-logs"))?;
        peer.load_fields(nginx)?;
        peer.settle()?;
        peers.push(("VictoriaLogs first", Box::new(peer)));
    }
    if let Some(program) = &settings.loki {
        let peer = Loki::start(program, &scratch.path().join("loki"))?;
        loki_corpus::load(&peer, nginx)?;
        peers.push(("Loki first", Box::new(peer)));
    }
    Ok(peers)
}

/// The cells of the first time and of later ones; what is refused is told.
fn ask_often(asked: &dyn PanelSource, runs: usize, ask: impl Fn() -> Outcome<()>) -> [String; 2] {
    let both = timed(asked.pid(), &ask)
        .and_then(|first| Ok([first.cell(), again(asked, runs, &ask)?.cell()]));
    both.unwrap_or_else(|error| {
        eprintln!("{error}");
        ["refused".to_owned(), String::new()]
    })
}

/// The median of the wall times and the mean of the CPU times.
fn again(asked: &dyn PanelSource, runs: usize, ask: impl Fn() -> Outcome<()>) -> Outcome<Cost> {
    let costs = (0..runs).map(|_| timed(asked.pid(), &ask));
    let costs: Vec<Cost> = costs.collect::<Outcome<_>>()?;
    let mut walls: Vec<f64> = costs.iter().map(|cost| cost.wall_ms).collect();
    Ok(Cost {
        wall_ms: median(&mut walls),
        cpu_ms: costs.iter().map(|cost| cost.cpu_ms).sum::<f64>() / runs as f64,
    })
}

fn timed(pid: u32, run: impl FnOnce() -> Outcome<()>) -> Outcome<Cost> {
    let (start, cpu) = (Instant::now(), cpu_seconds(pid)?);
    run()?;
    Ok(Cost {
        wall_ms: start.elapsed().as_secs_f64() * 1e3,
        cpu_ms: (cpu_seconds(pid)? - cpu) * 1e3,
    })
}

fn ask_all(asked: &dyn PanelSource) -> Outcome<()> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = PANELS
            .iter()
            .map(|panel| scope.spawn(move || asked.ask(panel)))
            .collect();
        asked
            .into_iter()
            .try_for_each(|asked| asked.join().map_err(|_| "a client failed".to_owned())?)
    })
}

/// Asks an interface like Loki's.
fn ask_in_logql(address: &str, panel: &Panel, query: &str) -> Outcome<()> {
    let Panel {
        endpoint,
        times,
        name,
        ..
    } = panel;
    let target = format!("/loki/api/v1/{endpoint}?{times}&query={}", encode(query));
    let mut client = Client::connect(address).map_err(|e| e.to_string())?;
    let answer = client.send("GET", &target, &[], b"");
    let text = answer
        .and_then(|answer| answer.text())
        .map_err(|e| format!("{name}: {e}"))?;
    let answer: Value =
        serde_json::from_str(&text).map_err(|e| format!("{name}: {e}: {text:.200}"))?;
    let series = answer["data"]["result"].as_array();
    if series.is_some_and(|series| !series.is_empty()) {
        Ok(())
    } else {
        Err(format!("{name}: nothing found: {text:.200}"))
    }
}

impl PanelSource for TestServer {
    fn pid(&self) -> u32 {
        TestServer::pid(self)
    }

    fn ask(&self, panel: &Panel) -> Outcome<()> {
        ask_in_logql(&self.address("http"), panel, &panel.of_logpond())
    }
}

impl PanelSource for Loki {
    fn pid(&self) -> u32 {
        Loki::pid(self)
    }

    fn ask(&self, panel: &Panel) -> Outcome<()> {
        ask_in_logql(self.http(), panel, &panel.of_loki())
    }
}

impl PanelSource for VictoriaLogs {
    fn pid(&self) -> u32 {
        VictoriaLogs::pid(self)
    }

    fn ask(&self, panel: &Panel) -> Outcome<()> {
        match self.query(panel.logsql)? {
            0 => Err(format!("{}: nothing found", panel.name)),
            _ => Ok(()),
        }
    }
}
