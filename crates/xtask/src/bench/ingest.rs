//! Taking logs in: CPU until acknowledged and until settled, memory, and bytes on disk.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use super::corpus::{Corpora, Corpus};
use super::http::Client;
use super::peers::VictoriaLogs;
use super::pond::{Scratch, TestServer, cpu_seconds, files_below, memory_bytes, wait_until};
use super::table::{Report, Target, megabytes};
use crate::run::Outcome;

/// The most bytes in one request.
const PIECE_BYTES: usize = 2 << 20;

/// Clients that send at once.
pub(super) const CLIENTS: usize = 4;

/// What taking one corpus in cost.
pub(super) struct Cost {
    /// Wall seconds until the last acknowledgement.
    pub(super) wall: f64,
    /// CPU seconds of the server until then.
    pub(super) acknowledged: f64,
    /// CPU seconds of the server until nothing was left to do.
    pub(super) settled: f64,
    /// Peak resident bytes.
    pub(super) peak: u64,
    /// Bytes on disk once settled, and after everything was merged.
    pub(super) disk: [u64; 2],
    /// CPU seconds of the final merge.
    pub(super) merge: f64,
}

/// Measures every corpus on a server of its own.
pub(super) fn measure(
    program: &Path,
    peer: Option<&Path>,
    corpora: &Corpora,
    report: &mut Report,
) -> Outcome<()> {
    let columns = [
        "corpus, input",
        "server",
        "records per CPU-s, settled",
        "MB per CPU-s, settled",
        "CPU-s acked / settled / merge",
        "wall s",
        "peak memory",
        "disk settled / merged",
        "of raw",
        "of zstd -3",
        "target",
    ];
    report.table("Ingestion", &columns);
    let ways = [
        (&corpora.app, "HTTP NDJSON, durable"),
        (&corpora.nginx, "HTTP text, durable"),
        (&corpora.mixed, "syslog TCP"),
    ];
    for (corpus, way) in ways {
        let scratch = Scratch::new("bench-ingest")?;
        let (cost, whole) = logpond(program, &scratch.path().join("data"), corpus)?;
        row(report, corpus, way, "Logpond", &cost, Some(corpus));
        if let Some(whole) = whole {
            let share = 100.0 * (1.0 - whole as f64 / corpus.lines as f64);
            report.note(format!(
                "{:.3} % of the {} lines are rebuilt from columns ({whole} kept whole).",
                share, corpus.kind
            ));
        }
        if let Some(peer) = peer {
            let scratch = Scratch::new("bench-peer")?;
            let cost = VictoriaLogs::start(peer, scratch.path())?.take(corpus)?;
            row(report, corpus, way, "VictoriaLogs", &cost, None);
        }
    }
    report.note(format!(
        "{CLIENTS} clients for HTTP, requests of at most {} MB; one connection for syslog. Settled: all \
         journal files are consumed. Merged: after `compact --wait --cold` (VictoriaLogs: after a forced \
         merge; data only in memory before it counts as 0). VictoriaLogs acknowledges before the data is on \
         disk, and stores access log lines as text without fields.",
        PIECE_BYTES >> 20
    ));
    Ok(())
}

/// One line of the table; `judged` is given where the targets of the issue apply.
fn row(
    report: &mut Report,
    corpus: &Corpus,
    way: &str,
    server: &str,
    cost: &Cost,
    judged: Option<&Corpus>,
) {
    let records = corpus.lines as f64 / cost.settled;
    let of_zstd = corpus
        .zstd_bytes
        .map(|zstd| cost.disk[1] as f64 / zstd as f64);
    let mut targets = Vec::new();
    if judged.is_some() {
        if corpus.kind == "app" {
            targets.push(Target::at_least(150e3, ">= 150k records").judged(records));
        }
        if let Some(ratio) = of_zstd {
            targets.push(Target::at_most(1.0, "<= zstd -3").judged(ratio));
        }
    }
    report.row(vec![
        format!("{}, {way}", corpus.kind),
        server.into(),
        format!("{:.0}k", records / 1e3),
        format!("{:.0}", corpus.bytes as f64 / 1e6 / cost.settled),
        format!(
            "{:.2} / {:.2} / {:.2}",
            cost.acknowledged, cost.settled, cost.merge
        ),
        format!("{:.1}", cost.wall),
        megabytes(cost.peak as f64),
        format!(
            "{} / {}",
            megabytes(cost.disk[0] as f64),
            megabytes(cost.disk[1] as f64)
        ),
        format!("{:.3}", cost.disk[1] as f64 / corpus.bytes as f64),
        of_zstd.map_or(String::new(), |ratio| format!("{ratio:.2}")),
        targets.join(", "),
    ]);
}

/// Takes a corpus in with Logpond; also gives how many lines were kept whole.
fn logpond(program: &Path, data: &Path, corpus: &Corpus) -> Outcome<(Cost, Option<u64>)> {
    let pond = TestServer::start(program, data, &[])?;
    let start = Instant::now();
    let before = cpu_seconds(pond.pid())?;
    load(&pond, corpus)?;
    let wall = start.elapsed().as_secs_f64();
    let acknowledged = cpu_seconds(pond.pid())? - before;
    settle(data)?;
    let settled = cpu_seconds(pond.pid())? - before;
    let disk_settled = bytes_below(&data.join("segments"), ".parquet");
    let merge_start = cpu_seconds(pond.pid())?;
    compact(&pond)?;
    let cost = Cost {
        wall,
        acknowledged,
        settled,
        peak: memory_bytes(pond.pid(), "VmHWM")?,
        disk: [
            disk_settled,
            bytes_below(&data.join("segments"), ".parquet"),
        ],
        merge: cpu_seconds(pond.pid())? - merge_start,
    };
    Ok((cost, kept_whole(&pond)?))
}

/// Sends a corpus the way that its kind goes.
pub(super) fn load(pond: &TestServer, corpus: &Corpus) -> Outcome<()> {
    match corpus.kind {
        "mixed" => {
            let before = pond.metric("logpond_ingest_records_total").unwrap_or(0.0);
            send_tcp(&pond.address("syslog_tcp"), corpus)?;
            wait_until("all syslog records are taken", || {
                let now = pond.metric("logpond_ingest_records_total").unwrap_or(0.0);
                now - before >= corpus.lines as f64
            })
        }
        "app" => post(
            corpus,
            &pond.address("http"),
            "/api/v1/push",
            "application/x-ndjson",
        ),
        _ => post(corpus, &pond.address("http"), "/api/v1/push", "text/plain"),
    }
}

/// Posts a corpus in pieces from several clients; every piece must be accepted.
pub(super) fn post(corpus: &Corpus, address: &str, target: &str, kind: &str) -> Outcome<()> {
    let pieces = Mutex::new(corpus.pieces(PIECE_BYTES)?);
    let send = || -> Outcome<()> {
        let mut client = Client::connect(address).map_err(|e| e.to_string())?;
        loop {
            let piece = pieces.lock().map_err(|e| e.to_string())?.pop();
            let Some(piece) = piece else { return Ok(()) };
            let headers = [("content-type", kind)];
            let response = client
                .send("POST", target, &headers, &piece)
                .map_err(|e| e.to_string())?;
            let status = response.status;
            let text = response.text().map_err(|e| e.to_string())?;
            if !(200..300).contains(&status) {
                return Err(format!("{target}: {status} {text}"));
            }
        }
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(send)).collect();
        clients
            .into_iter()
            .try_for_each(|client| client.join().map_err(|_| "a client panicked".to_string())?)
    })
}

/// Writes a corpus to a TCP listener.
pub(super) fn send_tcp(address: &str, corpus: &Corpus) -> Outcome<()> {
    let mut stream = TcpStream::connect(address).map_err(|e| format!("{address}: {e}"))?;
    for piece in corpus.pieces(PIECE_BYTES)? {
        stream
            .write_all(&piece)
            .map_err(|e| format!("{address}: {e}"))?;
    }
    Ok(())
}

/// Waits until every journal file has become part of a segment.
pub(super) fn settle(data: &Path) -> Outcome<()> {
    wait_until("the journal is consumed", || {
        let journal = data.join("journal");
        files_below(&journal, ".journal").is_empty() && files_below(&journal, ".open").is_empty()
    })
}

/// Merges and recompresses everything.
pub(super) fn compact(pond: &TestServer) -> Outcome<()> {
    let mut client = pond.client()?;
    let response = client
        .send("POST", "/api/v1/compact?cold=true&wait=true", &[], b"")
        .map_err(|e| format!("compact: {e}"))?;
    let status = response.status;
    let text = response.text().map_err(|e| format!("compact: {e}"))?;
    match status {
        200..300 => Ok(()),
        _ => Err(format!("compact: {status} {text}")),
    }
}

/// Bytes of the files below a directory whose names end so.
pub(super) fn bytes_below(directory: &Path, suffix: &str) -> u64 {
    let files = files_below(directory, suffix);
    files
        .iter()
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum()
}

/// The number of lines that segments keep whole, if they say so.
fn kept_whole(pond: &TestServer) -> Outcome<Option<u64>> {
    let text = pond.get("/api/v1/segments")?;
    let mut total = None;
    for line in text.lines() {
        let Ok(segment) = serde_json::from_str::<serde_json::Value>(line) else {
            continue;
        };
        let Some(object) = segment.as_object() else {
            continue;
        };
        let whole = object.iter().find(|(name, _)| name.contains("whole"));
        if let Some(count) = whole.and_then(|(_, count)| count.as_u64()) {
            *total.get_or_insert(0) += count;
        }
    }
    Ok(total)
}
