//! What it takes at rest, at the start, and when a reader stalls.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use super::corpus::Corpora;
use super::http::Client;
use super::ingest::{compact, load, settle};
use super::pond::{ALL_TIME, Scratch, TestServer, memory_bytes};
use super::table::{Report, Target, median, megabytes};
use crate::run::Outcome;

/// Starts whose median counts.
const STARTS: usize = 7;

/// How long a stalled reader stalls: many times what filling any buffer takes.
const STALL: Duration = Duration::from_secs(10);

/// What a reader takes before it stalls.
const TAKEN_BYTES: usize = 1 << 20;

/// Measures memory and start time, empty and with all corpora.
pub(super) fn measure(program: &Path, corpora: &Corpora, report: &mut Report) -> Outcome<()> {
    report.table(
        "At rest and under pressure",
        &["what", "measured", "target"],
    );
    let scratch = Scratch::new("bench-limits")?;
    let empty = scratch.path().join("empty");
    let data = scratch.path().join("data");
    starts(program, &empty, "empty", report)?;
    let server = TestServer::start(program, &data, &[])?;
    for corpus in corpora.all() {
        load(&server, corpus)?;
    }
    settle(&data)?;
    compact(&server)?;
    server.terminate()?;
    let what = format!("{:.1} M records stored", corpora.lines() as f64 / 1e6);
    starts(program, &data, &what, report)?;
    export(program, &data, report)
}

/// Start time and idle memory.
fn starts(program: &Path, data: &Path, what: &str, report: &mut Report) -> Outcome<()> {
    let mut times = Vec::new();
    let mut resident = 0;
    for _ in 0..STARTS {
        let server = TestServer::start(program, data, &[])?;
        times.push(server.start_time.as_secs_f64() * 1e3);
        server.get("/-/ready")?;
        resident = memory_bytes(server.pid(), "VmRSS")?;
        server.terminate()?;
    }
    let ms = median(&mut times);
    report.row(vec![
        format!("start to ready, {what}"),
        format!("{ms:.0} ms"),
        Target::at_most(100.0, "<= 100 ms").judged(ms),
    ]);
    report.row(vec![
        format!("idle memory, {what}"),
        megabytes(resident as f64),
        Target::at_most(12e6, "<= 12 MB").judged(resident as f64),
    ]);
    Ok(())
}

/// Exports everything to a reader that stalls and then goes on.
fn export(program: &Path, data: &Path, report: &mut Report) -> Outcome<()> {
    let server = TestServer::start(program, data, &[])?;
    let mut client = Client::connect(&server.address("http")).map_err(|e| e.to_string())?;
    let target = format!("/api/v1/query?{ALL_TIME}&limit=0&q=");
    let mut response = client
        .send("GET", &target, &[], b"")
        .map_err(|e| e.to_string())?;
    let mut buffer = vec![0; TAKEN_BYTES];
    response
        .read_exact(&mut buffer)
        .map_err(|e| format!("export: {e}"))?;
    std::thread::sleep(STALL);
    let stalled = memory_bytes(server.pid(), "VmHWM")?;
    let start = Instant::now();
    let mut bytes = TAKEN_BYTES;
    loop {
        match response
            .read(&mut buffer)
            .map_err(|e| format!("export: {e}"))?
        {
            0 => break,
            count => bytes += count,
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let peak = memory_bytes(server.pid(), "VmHWM")?;
    report.row(vec![
        format!("peak memory, reader stalled for {} s", STALL.as_secs()),
        megabytes(stalled as f64),
        Target::at_most(120e6, "<= 120 MB").judged(stalled as f64),
    ]);
    report.row(vec![
        format!(
            "peak memory, {} exported after that in {seconds:.1} s",
            megabytes(bytes as f64)
        ),
        megabytes(peak as f64),
        Target::at_most(120e6, "<= 120 MB").judged(peak as f64),
    ]);
    Ok(())
}
