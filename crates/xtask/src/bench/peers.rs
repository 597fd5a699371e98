//! The peers: line tools on the raw files, DuckDB on the segments, VictoriaLogs as a server.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::corpus::Corpus;
use super::http::{Client, encode};
use super::ingest::{self, Cost, bytes_below};
use super::pond::{cpu_seconds, memory_bytes, wait_until};
use crate::run::{Outcome, find_program, free_address, target_directory};

/// A VictoriaLogs server with data of its own.
pub(super) struct VictoriaLogs {
    child: Child,
    http: String,
    syslog: String,
    data: PathBuf,
}

impl VictoriaLogs {
    /// Starts the binary on free ports.
    pub(super) fn start(program: &Path, data: &Path) -> Outcome<VictoriaLogs> {
        let (http, syslog) = (free_address()?, free_address()?);
        let child = Command::new(program)
            .arg(format!("-storageDataPath={}", data.display()))
            .arg(format!("-httpListenAddr={http}"))
            .arg(format!("-syslog.listenAddr.tcp={syslog}"))
            .arg("-retentionPeriod=100y")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let server = VictoriaLogs {
            child,
            http,
            syslog,
            data: data.into(),
        };
        wait_until("VictoriaLogs is ready", || server.get("/health").is_ok())?;
        Ok(server)
    }

    fn get(&self, target: &str) -> Outcome<Vec<u8>> {
        let mut client = Client::connect(&self.http).map_err(|e| e.to_string())?;
        let response = client
            .send("GET", target, &[], b"")
            .map_err(|e| e.to_string())?;
        let status = response.status;
        let bytes = response.bytes().map_err(|e| e.to_string())?;
        match status {
            200..300 => Ok(bytes),
            _ => Err(format!(
                "{target}: {status} {}",
                String::from_utf8_lossy(&bytes)
            )),
        }
    }

    /// The process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// CPU seconds so far.
    pub(super) fn cpu(&self) -> Outcome<f64> {
        cpu_seconds(self.child.id())
    }

    /// Runs a query over all time; gives the bytes of the answer.
    pub(super) fn query(&self, query: &str) -> Outcome<usize> {
        let range = "start=2000-01-01T00:00:00Z&end=2100-01-01T00:00:00Z";
        let target = format!("/select/logsql/query?{range}&query={}", encode(query));
        Ok(self.get(&target)?.len())
    }

    /// Sends a corpus the way that its kind goes, and makes it visible.
    pub(super) fn load(&self, corpus: &Corpus) -> Outcome<()> {
        let insert = "/insert/jsonline?_stream_fields=";
        let kind = "application/stream+json";
        match corpus.kind {
            "app" => {
                let target = format!("{insert}service&_time_field=ts&_msg_field=msg");
                ingest::post(corpus, &self.http, &target, kind)?;
            }
            "mixed" => ingest::send_tcp(&self.syslog, corpus)?,
            _ => {
                let target = format!("{insert}app&_time_field=time&_msg_field=line");
                ingest::post(&as_json(corpus)?, &self.http, &target, kind)?;
            }
        }
        self.get("/internal/force_flush").map(drop)
    }

    /// Sends an access log with its fields, which it does not find in the lines by itself.
    pub(super) fn load_fields(&self, nginx: &Corpus) -> Outcome<()> {
        let target = "/insert/jsonline?_stream_fields=app&_time_field=time&_msg_field=line";
        let kind = "application/stream+json";
        ingest::post(&with_fields(nginx)?, &self.http, target, kind)?;
        self.get("/internal/force_flush").map(drop)
    }

    /// Loads a corpus and measures.
    pub(super) fn take(self, corpus: &Corpus) -> Outcome<Cost> {
        let start = Instant::now();
        let before = self.cpu()?;
        self.load(corpus)?;
        let wall = start.elapsed().as_secs_f64();
        let acknowledged = self.cpu()? - before;
        self.settle()?;
        let settled = self.cpu()? - before;
        let disk_settled = bytes_below(&self.data, "");
        self.get("/internal/force_merge")?;
        self.settle()?;
        Ok(Cost {
            wall,
            acknowledged,
            settled,
            peak: memory_bytes(self.child.id(), "VmHWM")?,
            disk: [disk_settled, bytes_below(&self.data, "")],
            merge: self.cpu()? - before - settled,
        })
    }

    /// Waits until it uses no CPU for a while, which is all that can be seen from outside.
    pub(super) fn settle(&self) -> Outcome<()> {
        /// Looks without any change that count as quiet: it flushes every five seconds.
        const QUIET_LOOKS: u32 = 3_000;
        let mut last = self.cpu()?;
        let mut quiet = 0;
        wait_until("VictoriaLogs is quiet", || {
            let now = self.cpu().unwrap_or(last);
            quiet = if now - last < 0.02 { quiet + 1 } else { 0 };
            if quiet == 0 {
                last = now;
            }
            quiet >= QUIET_LOOKS
        })
    }
}

impl Drop for VictoriaLogs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The access log as JSON lines, since the peer takes no plain text. Written beside the corpus.
fn as_json(corpus: &Corpus) -> Outcome<Corpus> {
    let path = corpus.file.with_extension("as.jsonl");
    if !path.is_file() {
        let bytes = fs::read(&corpus.file).map_err(|e| e.to_string())?;
        let mut json = String::with_capacity(bytes.len() * 5 / 4);
        for line in String::from_utf8_lossy(&bytes).lines() {
            let time = access_time(line).unwrap_or_else(|| "0".into());
            let line = serde_json::Value::from(line);
            json.push_str(&format!(
                "{{\"app\":\"nginx\",\"time\":\"{time}\",\"line\":{line}}}\n"
            ));
        }
        fs::write(&path, json).map_err(|e| e.to_string())?;
    }
    Ok(Corpus {
        kind: corpus.kind,
        bytes: corpus.bytes,
        lines: corpus.lines,
        zstd_bytes: corpus.zstd_bytes,
        facts: corpus.facts.clone(),
        file: path,
    })
}

/// The access log as JSON lines with the fields that panels ask for. Written beside the corpus.
fn with_fields(corpus: &Corpus) -> Outcome<Corpus> {
    let path = corpus.file.with_extension("fields.jsonl");
    if !path.is_file() {
        let file = fs::File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut out = BufWriter::new(file);
        for piece in corpus.pieces(8 << 20)? {
            for line in String::from_utf8_lossy(&piece).lines() {
                let fields = access_fields(line).unwrap_or_default();
                let object = serde_json::json!({
                    "app": "nginx",
                    "time": access_time(line).unwrap_or_else(|| "0".into()),
                    "line": line,
                    "remote_addr": fields.remote_addr,
                    "path": fields.path,
                    "status": fields.status,
                    "bytes": fields.bytes,
                    "referer": fields.referer,
                    "host": fields.host,
                });
                writeln!(out, "{object}").map_err(|e| e.to_string())?;
            }
        }
        out.flush().map_err(|e| e.to_string())?;
    }
    Ok(Corpus {
        kind: corpus.kind,
        bytes: corpus.bytes,
        lines: corpus.lines,
        zstd_bytes: corpus.zstd_bytes,
        facts: corpus.facts.clone(),
        file: path,
    })
}

/// What panels ask for of a line of an access log.
#[derive(Default)]
pub(super) struct AccessFields<'l> {
    /// Seconds of Unix time.
    pub(super) time_s: i64,
    remote_addr: &'l str,
    path: &'l str,
    status: u64,
    bytes: u64,
    referer: &'l str,
    host: &'l str,
}

/// The fields of a line of the corpus: the combined format with the virtual host behind it.
pub(super) fn access_fields(line: &str) -> Option<AccessFields<'_>> {
    let mut quoted = line.split('"');
    let (head, request) = (quoted.next()?, quoted.next()?);
    let mut numbers = quoted.next()?.split_ascii_whitespace();
    let referer = quoted.next()?;
    let time: jiff::Timestamp = access_time(line)?.parse().ok()?;
    Some(AccessFields {
        time_s: time.as_second(),
        remote_addr: head.split(' ').next()?,
        path: request.split(' ').nth(1).unwrap_or_default(),
        status: numbers.next()?.parse().ok()?,
        bytes: numbers.next()?.parse().unwrap_or(0),
        referer,
        host: line.trim_end().trim_end_matches('"').rsplit('"').next()?,
    })
}

/// `[02/Mar/2026:00:01:17 +0000]` as `2026-03-02T00:01:17+00:00`.
fn access_time(line: &str) -> Option<String> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let (_, rest) = line.split_once('[')?;
    let part = |range: std::ops::Range<usize>| rest.get(range);
    let month = MONTHS.find(part(3..6)?)? / 3 + 1;
    Some(format!(
        "{}-{month:02}-{}T{}{}:{}",
        part(7..11)?,
        part(0..2)?,
        part(12..20)?,
        part(21..24)?,
        part(24..26)?
    ))
}

/// CPU seconds of all processes that this one has waited for.
pub(super) fn children_cpu() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text
        .rsplit_once(") ")
        .map(|(_, rest)| rest.split(' ').collect())
        .unwrap_or_default();
    let ticks = |index: usize| fields.get(index).and_then(|f| f.parse::<f64>().ok());
    (ticks(13).unwrap_or(0.0) + ticks(14).unwrap_or(0.0)) / 100.0
}

/// A line tool that counts matching lines of files, if it is installed.
pub(super) fn line_tool(name: &str, pattern: &[&str], files: &[PathBuf]) -> Option<Command> {
    let program = find_program(name)?;
    let mut command = Command::new(program);
    command
        .env("LC_ALL", "C")
        .arg("-c")
        .args(pattern)
        .args(files);
    Some(command)
}

/// DuckDB on segment files, if the Python that `./test` sets up is there.
pub(super) fn duckdb(sql: &str, segments: &Path) -> Option<Command> {
    let python = target_directory().join("venv/bin/python3");
    let script = crate::run::root().join("crates/logpond/tests/e2e/read_with_duckdb.py");
    let files = super::pond::files_below(segments, ".parquet");
    if !python.is_file() || files.is_empty() {
        return None;
    }
    let mut command = Command::new(python);
    command.arg(script).arg(sql).args(files);
    Some(command)
}
