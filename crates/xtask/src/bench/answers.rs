//! Asking: latency, CPU and bytes scanned of each kind of question, beside the peers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::Settings;
use super::corpus::Corpora;
use super::http::{Client, encode};
use super::ingest::{compact, load, settle};
use super::loki_corpus;
use super::peers::{VictoriaLogs, children_cpu, duckdb, line_tool};
use super::pond::{ALL_TIME, Scratch, TestServer, cpu_seconds};
use super::table::{Report, Target, median};
use crate::loki::Loki;
use crate::run::Outcome;

/// Runs of a question to a server; the median counts.
const RUNS: usize = 15;

/// Runs of a tool that reads everything each time.
const TOOL_RUNS: usize = 3;

/// Everything in LogQL.
const ALL_LINES: &str = r#"{app=~".+"}"#;

/// A question in the languages of all who are asked.
struct Question {
    name: &'static str,
    /// Path and parameters of Logpond's API, without the time range.
    target: String,
    victoria_logs: Option<String>,
    loki: Option<loki_corpus::Question>,
    /// Arguments of `grep -c` and its like.
    lines: Vec<String>,
    sql: Option<String>,
    target_ms: Option<Target>,
    /// Whether nothing but reading everything can answer, so that GB per CPU-second is meant.
    is_scan: bool,
    /// The most of the raw bytes that may be scanned, in percent.
    scanned_percent: Option<f64>,
    /// Whether Logpond keeps what it counted, so that the first run tells more than the others.
    is_kept: bool,
}

fn query(q: &str, more: &str) -> String {
    format!("/api/v1/query?{ALL_TIME}&limit=1000&q={}{more}", encode(q))
}

/// Counts the matches without sending them.
fn count(q: &str) -> String {
    format!("/api/v1/histogram?{ALL_TIME}&step=36500d&q={}", encode(q))
}

fn question(name: &'static str, target: String) -> Question {
    Question {
        name,
        target,
        victoria_logs: None,
        loki: None,
        lines: Vec::new(),
        sql: None,
        target_ms: None,
        is_scan: false,
        scanned_percent: None,
        is_kept: false,
    }
}

/// A number of all time in LogQL, which Logpond keeps parts of.
fn number(name: &'static str, query: &str) -> Question {
    Question {
        is_kept: true,
        ..question(name, loki_corpus::number(query))
    }
}

fn texts(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|a| a.to_string()).collect()
}

/// Questions for words, texts and patterns.
fn text_questions(corpora: &Corpora) -> Outcome<Vec<Question>> {
    let once = corpora.mixed.needle("ONCE")?;
    let common = "GET";
    let inner = corpora.nginx.needle("zzTRAP")?.trim_matches('z')[1..].to_string() + "z";
    let any_case = corpora.nginx.needle("mixcase")?;
    let trace = corpora.app.facts["checks"][2]["what"]
        .as_str()
        .unwrap_or_default();
    let trace = trace.trim_start_matches("trace_id ").to_string();
    Ok(vec![
        Question {
            victoria_logs: Some(once.clone()),
            loki: loki_corpus::lines(format!("{ALL_LINES} |= `{once}`")),
            lines: texts(&["-F", &once]),
            target_ms: Some(Target::at_most(5.0, "<= 5 ms")),
            scanned_percent: Some(2.0),
            ..question("rare word (3 records)", query(&once, ""))
        },
        Question {
            victoria_logs: Some("nosuchword9q".into()),
            loki: loki_corpus::lines(format!("{ALL_LINES} |= `nosuchword9q`")),
            lines: texts(&["-F", "nosuchword9q"]),
            ..question("absent word", query("nosuchword9q", ""))
        },
        Question {
            victoria_logs: Some(format!("trace_id:={trace}")),
            loki: loki_corpus::lines(format!(
                r#"{{app="app"}} |= `{trace}` | json trace_id="trace_id" | trace_id=`{trace}`"#
            )),
            lines: texts(&["-F", &trace]),
            sql: Some(format!(
                "SELECT count(*) FROM logs WHERE trace_id = '{trace}'"
            )),
            ..question(
                "trace id, by field",
                query(&format!("trace_id={trace}"), ""),
            )
        },
        Question {
            victoria_logs: Some(format!("{common} | stats count()")),
            loki: loki_corpus::total(&format!("{ALL_LINES} |= `{common}`")),
            lines: texts(&["-F", common]),
            ..question("count of a common word", count(common))
        },
        Question {
            victoria_logs: Some(format!("~\"{inner}\" | stats count()")),
            loki: loki_corpus::total(&format!("{ALL_LINES} |= `{inner}`")),
            lines: texts(&["-F", &inner]),
            ..question("rare substring inside a word", count(&inner))
        },
        Question {
            victoria_logs: Some(format!("i({any_case}) | stats count()")),
            loki: loki_corpus::total(&format!("{ALL_LINES} |~ `(?i){any_case}`")),
            lines: texts(&["-iF", &any_case]),
            ..question("rare word, any case", count(&format!("i\"{any_case}\"")))
        },
    ])
}

/// Questions for regular expressions, and the one that no index helps with.
fn pattern_questions(corpora: &Corpora) -> Vec<Question> {
    let literals = corpora.mixed.facts["regex"]["pattern"]
        .as_str()
        .unwrap_or_default();
    let classes = r"[0-9]{3,5}\.[0-9]+ seconds";
    // No word in it, so no index can help: every text is read.
    let scanned = "}; {";
    vec![
        Question {
            victoria_logs: Some(peer_pattern(literals)),
            loki: loki_corpus::total(&format!("{ALL_LINES} |~ `{literals}`")),
            lines: texts(&["-E", literals]),
            ..question("regex with literals", count(&slashed(literals)))
        },
        Question {
            victoria_logs: Some(peer_pattern(classes)),
            loki: loki_corpus::total(&format!("{ALL_LINES} |~ `{classes}`")),
            lines: texts(&["-E", classes]),
            ..question("regex that starts with classes", count(&slashed(classes)))
        },
        Question {
            victoria_logs: Some(peer_pattern("}; [{]")),
            loki: loki_corpus::total(&format!("{ALL_LINES} |= `{scanned}`")),
            lines: texts(&["-F", scanned]),
            is_scan: true,
            ..question(
                "full scan (text without a word)",
                count(&format!("\"{scanned}\"")),
            )
        },
    ]
}

/// A regular expression in our language.
fn slashed(pattern: &str) -> String {
    format!("/{}/", pattern.replace('/', "\\/"))
}

/// The count of what matches a regular expression in the peer's language.
fn peer_pattern(pattern: &str) -> String {
    let escaped = pattern.replace('\\', "\\\\").replace('"', "\\\"");
    format!("~\"{escaped}\" | stats count()")
}

/// Questions for order, fields and aggregates.
fn field_questions() -> Vec<Question> {
    let top = |field: &str| format!("/api/v1/top?{ALL_TIME}&n=10&field={field}");
    vec![
        Question {
            victoria_logs: Some("* | sort by (_time desc) limit 100".into()),
            loki: Some(loki_corpus::Question::Lines {
                query: ALL_LINES.into(),
                limit: 100,
                direction: "backward",
            }),
            target_ms: Some(Target::at_most(10.0, "<= 10 ms")),
            ..question(
                "last 100",
                format!("/api/v1/query?{ALL_TIME}&direction=backward&limit=100&q="),
            )
        },
        Question {
            sql: Some("SELECT remote_addr, count(*) c FROM logs GROUP BY 1 ORDER BY c DESC LIMIT 10".into()),
            loki: loki_corpus::top("remote_addr", r#"{app="nginx"} | pattern `<remote_addr> - <_>` "#),
            ..question("top 10 remote_addr", top("remote_addr"))
        },
        Question {
            victoria_logs: Some("* | top 10 by (user.id)".into()),
            loki: loki_corpus::top("user_id", r#"{app="app"} | json user_id="user.id" "#),
            ..question("top 10 user.id", top("user.id"))
        },
        Question {
            victoria_logs: Some("* | top 10 by (trace_id)".into()),
            loki: loki_corpus::top("trace_id", r#"{app="app"} | json trace_id="trace_id" "#),
            sql: Some("SELECT trace_id, count(*) c FROM logs GROUP BY 1 ORDER BY c DESC LIMIT 10".into()),
            ..question("top 10 trace_id", top("trace_id"))
        },
        Question {
            victoria_logs: Some("* | stats by (_time:1h) count()".into()),
            loki: loki_corpus::hourly(ALL_LINES),
            sql: Some("SELECT date_trunc('hour', _time), count(*) FROM logs GROUP BY 1".into()),
            ..question(
                "histogram per hour, everything",
                "/api/v1/histogram?from=2026-03-01T00:00:00Z&to=2026-03-10T00:00:00Z&step=1h&q=".into(),
            )
        },
        Question {
            victoria_logs: Some("level:=error | stats by (_time:1h) count()".into()),
            loki: loki_corpus::hourly(r#"{app="app"} |= `error` | json level="level" | level=`error`"#),
            ..question(
                "histogram per hour, level=error",
                "/api/v1/histogram?from=2026-03-01T00:00:00Z&to=2026-03-10T00:00:00Z&step=1h&q=level%3Derror".into(),
            )
        },
        Question {
            sql: Some("SELECT count(*) FROM logs WHERE status >= 500".into()),
            loki: loki_corpus::total(r#"{app="nginx"} | pattern `<_> "<_>" <status> <_>` | status >= 500"#),
            ..question("count of status>=500", count("status>=500"))
        },
    ]
}

/// How many values a field has.
fn distinct(name: &'static str, field: &str) -> Question {
    let count = |lines: &str| format!("count(count by ({field}) (count_over_time({lines} [10d])))");
    let of_loki = format!(r#"{{app="app"}} | json {field}="{field}""#);
    Question {
        victoria_logs: Some(format!("* | stats count_uniq({field})")),
        loki: Some(loki_corpus::Question::Total(count(&of_loki))),
        sql: Some(format!("SELECT count(DISTINCT {field}) FROM logs")),
        ..number(name, &count(&format!(r#"{{{field}!=""}}"#)))
    }
}

/// Questions whose answers take all values there are.
fn exact_questions() -> Vec<Question> {
    vec![
        distinct("distinct trace_id", "trace_id"),
        distinct("distinct span_id", "span_id"),
        Question {
            victoria_logs: Some("* | stats quantile(0.99, latency_ms)".into()),
            loki: Some(loki_corpus::Question::Total(
                r#"quantile_over_time(0.99, {app="app"} | json latency_ms="latency_ms" | unwrap latency_ms | __error__="" [10d]) by ()"#.into(),
            )),
            sql: Some("SELECT quantile_cont(latency_ms, 0.99) FROM logs".into()),
            ..number(
                "0.99 quantile of latency_ms",
                r#"quantile_over_time(0.99, {latency_ms!=""} | unwrap latency_ms | __error__="" [10d]) by ()"#,
            )
        },
    ]
}

/// The servers that are compared.
struct BenchTargets<'a> {
    server: TestServer,
    client: Client,
    peer: Option<VictoriaLogs>,
    loki: Option<Loki>,
    segments: PathBuf,
    corpora: &'a Corpora,
}

/// Measures every question on one server that holds all corpora.
pub(super) fn measure(
    program: &Path,
    settings: &Settings,
    corpora: &Corpora,
    report: &mut Report,
) -> Outcome<()> {
    let scratch = Scratch::new("bench-answers")?;
    let data = scratch.path().join("data");
    let server = TestServer::start(program, &data, &[])?;
    let of_peer = |program: &PathBuf| VictoriaLogs::start(program, &scratch.path().join("peer"));
    let peer = settings.victoria_logs.as_ref().map(of_peer).transpose()?;
    let of_loki = |program: &PathBuf| Loki::start(program, &scratch.path().join("loki"));
    let loki = settings.loki.as_ref().map(of_loki).transpose()?;
    for corpus in corpora.all() {
        load(&server, corpus)?;
        peer.as_ref().map_or(Ok(()), |peer| peer.load(corpus))?;
        loki.as_ref()
            .map_or(Ok(()), |loki| loki_corpus::load(loki, corpus))?;
    }
    settle(&data)?;
    compact(&server)?;
    peer.as_ref().map_or(Ok(()), VictoriaLogs::settle)?;
    let client = server.client()?;
    let mut asked = BenchTargets {
        server,
        client,
        peer,
        loki,
        segments: data.join("segments"),
        corpora,
    };
    let columns = [
        "query",
        "Logpond ms (CPU ms)",
        "scanned of raw",
        "VictoriaLogs ms (CPU ms)",
        "Loki ms (CPU ms)",
        "grep",
        "rg",
        "zstdgrep",
        "DuckDB on the segments",
        "target",
    ];
    let title = format!("Queries, {:.1} M records", corpora.lines() as f64 / 1e6);
    report.table(&title, &columns);
    let questions = text_questions(corpora)?
        .into_iter()
        .chain(pattern_questions(corpora))
        .chain(field_questions())
        .chain(exact_questions());
    for question in questions {
        let cells = asked.ask(&question)?;
        report.row(cells);
    }
    report.note(format!(
        "Medians of {RUNS} warm runs over one connection. Loki and tools: medians of {TOOL_RUNS}. Tools include \
         the start of the process; `zstdgrep` reads files made by `zstd -3`. CPU is the mean of the runs. Loki \
         has a stream for each corpus, and no caches. Logpond caches LogQL counts of a segment; such rows also \
         have the first run. Empty cells: not installed, or the query has no form there."
    ));
    Ok(())
}

/// Wall milliseconds and CPU milliseconds of something.
#[derive(Default)]
struct Times {
    wall_ms: Vec<f64>,
    cpu_ms: f64,
    /// The CPU milliseconds of the first run.
    first_cpu_ms: Option<f64>,
}

impl Times {
    fn add(&mut self, wall_ms: f64, cpu_ms: f64) {
        self.wall_ms.push(wall_ms);
        self.cpu_ms += cpu_ms;
        self.first_cpu_ms.get_or_insert(cpu_ms);
    }

    /// The first run.
    fn first(&self) -> String {
        match (self.wall_ms.first(), self.first_cpu_ms) {
            (Some(wall), Some(cpu)) => format!("{wall:.1} ({cpu:.1})"),
            _ => String::new(),
        }
    }

    fn cell(&mut self) -> String {
        if self.wall_ms.is_empty() {
            return String::new();
        }
        let cpu = self.cpu_ms / self.wall_ms.len() as f64;
        format!("{:.1} ({cpu:.1})", median(&mut self.wall_ms))
    }
}

impl BenchTargets<'_> {
    fn ask(&mut self, question: &Question) -> Outcome<Vec<String>> {
        let (mut own, mut peers) = (Times::default(), Times::default());
        let mut scanned = None;
        for _ in 0..RUNS {
            scanned = self.ask_pond(question, &mut own)?;
            if let (Some(peer), Some(query)) = (&self.peer, &question.victoria_logs) {
                let (start, cpu) = (Instant::now(), peer.cpu()?);
                peer.query(query)?;
                let wall_ms = start.elapsed().as_secs_f64() * 1e3;
                peers.add(wall_ms, (peer.cpu()? - cpu) * 1e3);
            }
        }
        // Before the runs are put in order for their median.
        let first = if question.is_kept {
            format!("; first {}", own.first())
        } else {
            String::new()
        };
        let percent = scanned.map(|bytes| 100.0 * bytes as f64 / self.corpora.bytes() as f64);
        let targets = self.judge(question, &mut own, percent);
        let mut cells = vec![
            question.name.to_string(),
            own.cell() + &first,
            percent.map_or(String::new(), |p| format!("{p:.2} %")),
            peers.cell(),
            self.ask_loki(question)?.cell(),
        ];
        cells.extend(self.ask_tools(question)?);
        cells.push(targets);
        Ok(cells)
    }

    /// Asks Logpond once; gives the trailer's `bytes_scanned`.
    fn ask_pond(&mut self, question: &Question, times: &mut Times) -> Outcome<Option<u64>> {
        let (start, cpu) = (Instant::now(), cpu_seconds(self.server.pid())?);
        let response = self
            .client
            .send("GET", &question.target, &[], b"")
            .map_err(|e| format!("{}: {e}", question.name))?;
        let status = response.status;
        let text = response
            .text()
            .map_err(|e| format!("{}: {e}", question.name))?;
        if status != 200 {
            return Err(format!("{}: {status} {text}", question.name));
        }
        let wall_ms = start.elapsed().as_secs_f64() * 1e3;
        times.add(wall_ms, (cpu_seconds(self.server.pid())? - cpu) * 1e3);
        let last: Value = text
            .lines()
            .last()
            .and_then(|line| serde_json::from_str(line).ok())
            .unwrap_or_default();
        Ok(last["_trailer"]["bytes_scanned"].as_u64())
    }

    /// Asks Loki, which has no index of what is in lines, a few times.
    fn ask_loki(&self, question: &Question) -> Outcome<Times> {
        let mut times = Times::default();
        let (Some(loki), Some(asked)) = (&self.loki, &question.loki) else {
            return Ok(times);
        };
        for _ in 0..TOOL_RUNS {
            let (start, cpu) = (Instant::now(), cpu_seconds(loki.pid())?);
            asked.ask(loki)?;
            let wall_ms = start.elapsed().as_secs_f64() * 1e3;
            times.add(wall_ms, (cpu_seconds(loki.pid())? - cpu) * 1e3);
        }
        Ok(times)
    }

    fn judge(&self, question: &Question, own: &mut Times, percent: Option<f64>) -> String {
        let mut targets = Vec::new();
        if let Some(target) = &question.target_ms {
            targets.push(target.judged(median(&mut own.wall_ms)));
        }
        if let (Some(bound), Some(percent)) = (question.scanned_percent, percent) {
            targets.push(Target::at_most(bound, "<= 2 % scanned").judged(percent));
        }
        if question.is_scan {
            let cpu_s = own.cpu_ms / own.wall_ms.len().max(1) as f64 / 1e3;
            let rate = self.corpora.bytes() as f64 / 1e9 / cpu_s;
            let judged = Target::at_least(0.7, ">= 0.7 GB per CPU-s").judged(rate);
            targets.push(format!("{rate:.2}: {judged}"));
        }
        targets.join(", ")
    }

    /// The tools' cells: grep, rg, zstdgrep, DuckDB.
    fn ask_tools(&self, question: &Question) -> Outcome<Vec<String>> {
        let raw: Vec<PathBuf> = self.corpora.all().iter().map(|c| c.file.clone()).collect();
        let compressed: Option<Vec<PathBuf>> =
            self.corpora.all().iter().map(|c| c.compressed()).collect();
        let pattern: Vec<&str> = question.lines.iter().map(String::as_str).collect();
        // rg takes regular expressions as they are; -E means an encoding there.
        let rg_pattern: Vec<&str> = pattern.iter().copied().filter(|p| *p != "-E").collect();
        let with_pattern = |name: &str, pattern: &[&str], files: &[PathBuf]| match pattern {
            [] => None,
            pattern => line_tool(name, pattern, files),
        };
        let tools = [
            with_pattern("grep", &pattern, &raw),
            with_pattern("rg", &rg_pattern, &raw),
            compressed.and_then(|files| with_pattern("zstdgrep", &pattern, &files)),
            question
                .sql
                .as_deref()
                .and_then(|sql| duckdb(sql, &self.segments)),
        ];
        tools
            .into_iter()
            .map(|tool| tool.map_or(Ok(String::new()), run_tool))
            .collect()
    }
}

/// Runs a tool a few times.
fn run_tool(mut command: Command) -> Outcome<String> {
    let mut times = Times::default();
    let before = children_cpu();
    for _ in 0..TOOL_RUNS {
        let start = Instant::now();
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("{command:?}: {e}"))?;
        times.wall_ms.push(start.elapsed().as_secs_f64() * 1e3);
        // Line tools exit with 1 where nothing matches.
        if !matches!(output.status.code(), Some(0 | 1)) {
            return Ok("failed".into());
        }
    }
    times.cpu_ms = (children_cpu() - before) * 1e3;
    Ok(times.cell())
}
