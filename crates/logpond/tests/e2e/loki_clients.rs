//! Programs that are made for Loki, if there are any: what they ask and ship, they ask and ship here.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::http::encode;
use crate::loki_api::shop;
use crate::pond::{Scratch, TestServer, signal, wait_until};
use crate::proxy::{CutPoint, Proxy};
use crate::surroundings::{program, say};

/// A real client of Loki, if there is one.
#[test]
fn logcli_asks_what_it_asks_of_loki() {
    let Some(logcli) = std::env::var_os("LOGPOND_LOGCLI") else {
        // Its licence keeps it out of what CI sets up.
        return say("skipped: logcli because LOGPOND_LOGCLI names none");
    };
    let scratch = Scratch::new("loki-logcli").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    shop(&server);
    let range = ["--from=2023-11-14T22:00:00Z", "--to=2023-11-15T00:00:00Z"];
    let run = |arguments: &[&str]| {
        let (command, rest) = arguments.split_first().unwrap();
        let times: &[&str] = if *command == "instant-query" {
            &[]
        } else {
            &range
        };
        let output = Command::new(&logcli)
            .args(["--quiet", "--addr", &server.url(), command])
            .args(times)
            .args(rest)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(run(&["labels"]), "app\nenv\nhost\nk8s_pod\nservice_name\n");
    assert_eq!(run(&["labels", "app"]), "cart\nshop\n");
    assert!(run(&["series", "{}", "--analyze-labels"]).contains("Total Streams:  3"));
    assert!(run(&["stats", "{app=\"cart\"}"]).contains("entries: 2"));
    assert!(run(&["volume", "{app=~\".+\"}"]).contains("\"cart\""));
    assert!(run(&["detected-fields", "{}"]).contains("status"));
    let raw = ["query", "-o", "raw", "--forward", "{app=\"cart\"}"];
    assert_eq!(run(&raw), "level=info took=5ms\nlevel=debug took=7ms\n");
    let sum = "sum(count_over_time({app=\"shop\"}[1h]))";
    let instant = run(&["instant-query", "--now=2023-11-14T22:30:00Z", sum]);
    assert!(instant.contains("\"3\""), "{instant}");
    let range = run(&["query", "--step=1h", "-o", "raw", sum]);
    assert!(range.contains('3'), "{range}");
}

/// How often the server is killed while Promtail ships.
const KILLS: usize = 3;

/// Lines that are written to each file for a kill: more than are shipped before it.
const LINES_A_KILL: usize = 1_500;

/// Records that a server has taken when it is killed.
const TAKEN: f64 = 300.0;

/// More records than there are in a push: one of them may be stored and not answered when a server is killed.
const PUSHED_MAX: usize = 100;

/// What Promtail is told, but for the directory and the port.
///
/// Batches are small, so that there are many to be cut, and it never gives up on one.
const PROMTAIL: &str = r#"
server: {disable: true}
positions: {filename: DIRECTORY/positions.yaml}
clients:
- url: http://127.0.0.1:PORT/loki/api/v1/push
  batchsize: 4096
  batchwait: 50ms
  backoff_config: {min_period: 10ms, max_period: 100ms, max_retries: 100000}
  external_labels: {cluster: "home 1"}
scrape_configs:
- job_name: orders
  pipeline_stages:
  - json: {expressions: {ts: ts, level: level, msg: msg, trace: trace}}
  - regex: {source: msg, expression: 'user-(?P<user>\d+)'}
  - labels: {level: , user: }
  - structured_metadata: {trace: }
  - timestamp: {source: ts, format: RFC3339Nano}
  - output: {source: msg}
  static_configs: [{labels: {job: orders, __path__: DIRECTORY/orders/**/*.log}}]
- job_name: traces
  pipeline_stages:
  - multiline: {firstline: '^begin', max_wait_time: 1h}
  static_configs: [{labels: {job: traces, __path__: DIRECTORY/traces.log}}]
- job_name: packed
  pipeline_stages:
  - regex: {expression: '^(?P<word>\w+)'}
  - labels: {word: }
  - pack: {labels: [word, filename]}
  static_configs: [{labels: {job: packed, __path__: DIRECTORY/packed.log}}]
"#;

/// Promtail with the files that it reads.
struct Promtail<'p> {
    program: &'p OsStr,
    directory: &'p Path,
    files: [File; 3],
    child: Child,
}

impl<'p> Promtail<'p> {
    fn start(program: &'p OsStr, directory: &'p Path, port: u16) -> Promtail<'p> {
        fs::create_dir_all(directory.join("orders/a/b")).unwrap();
        let settings = PROMTAIL
            .replace("DIRECTORY", directory.to_str().unwrap())
            .replace("PORT", &port.to_string());
        fs::write(directory.join("promtail.yaml"), settings).unwrap();
        let names = ["orders/a/b/1.log", "traces.log", "packed.log"];
        Promtail {
            program,
            directory,
            files: names.map(|name| File::create(directory.join(name)).unwrap()),
            child: Promtail::run(program, directory),
        }
    }

    fn run(program: &OsStr, directory: &Path) -> Child {
        let log = File::create(directory.join("promtail.txt")).unwrap();
        let mut command = Command::new(program);
        command
            .arg("-config.file")
            .arg(directory.join("promtail.yaml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        command.spawn().unwrap()
    }

    /// Has it stop, as a service is stopped, and start again with what it remembers.
    fn restart(&mut self) {
        signal("TERM", self.child.id()).unwrap();
        self.child.wait().unwrap();
        self.child = Promtail::run(self.program, self.directory);
    }

    /// Writes the lines with these numbers; gives what is to be stored of them.
    fn write(&mut self, numbers: std::ops::Range<usize>) -> BTreeSet<String> {
        let mut expected = BTreeSet::new();
        let [mut orders, mut traces, mut packed] = [const { Vec::new() }; 3];
        for n in numbers {
            let (level, user) = (["info", "warn"][n % 2], n % 7);
            let (minute, second) = (n / 60 % 60, n % 60);
            let ts = format!("2026-01-01T00:{minute:02}:{second:02}.{n:09}Z");
            let msg = format!("naïve \"order\" {n} of user-{user}\ttook {n}ms");
            let trace = format!("{n:032x}");
            let order =
                json!({ "ts": ts, "level": level, "msg": msg, "trace": trace, "dropped": n });
            writeln!(orders, "{order}").unwrap();
            let time: jiff::Timestamp = ts.parse().unwrap();
            let time = time.as_nanosecond().to_string();
            expected
                .insert(json!([level, user.to_string(), trace, time, "home 1", msg]).to_string());
            // Blanks, a line without text, and an end of Windows are parts of the record.
            let text = format!("begin {n}\n\tat a.b({n})\n\n\tat c  \r");
            writeln!(traces, "{text}").unwrap();
            expected.insert(json!(["trace", text]).to_string());
            let text = format!("word{} \"{n}\" \\", n % 3);
            writeln!(packed, "{text}").unwrap();
            expected.insert(json!([format!("word{}", n % 3), "home 1", text]).to_string());
        }
        let texts = [orders, traces, packed];
        for (file, text) in self.files.iter_mut().zip(texts) {
            file.write_all(&text).unwrap();
        }
        expected
    }
}

impl Drop for Promtail<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All that was shipped, as [`Promtail::write`] gives it.
fn shipped(server: &TestServer) -> Vec<String> {
    let mut all = Vec::new();
    for query in [
        "{job=\"orders\"}",
        "{job=\"traces\"}",
        "{job=\"packed\"} | unpack",
    ] {
        let target = format!(
            "/loki/api/v1/query_range?start=0&end=2100-01-01T00:00:00Z&limit=100000&query={}",
            encode(query)
        );
        let answer: Value = serde_json::from_str(&server.get(&target).unwrap()).unwrap();
        for stream in answer["data"]["result"].as_array().unwrap() {
            let labels = &stream["stream"];
            let label = |name: &str| labels[name].as_str().unwrap_or("none");
            for value in stream["values"].as_array().unwrap() {
                let line = &value[1];
                let record = match label("job") {
                    "orders" => json!([
                        label("level"),
                        label("user"),
                        label("trace"),
                        value[0],
                        label("cluster"),
                        line
                    ]),
                    "traces" => json!(["trace", line]),
                    _ => json!([label("word"), label("cluster"), line]),
                };
                all.push(record.to_string());
            }
        }
    }
    all
}

/// Waits until each of these records is there, be it twice: a server that was killed does not know what it has
/// stored and not answered.
fn all_are_here(
    promtail: &mut Promtail<'_>,
    server: &TestServer,
    expected: &BTreeSet<String>,
) -> Vec<String> {
    // The last of several lines is held until the next one begins.
    promtail.files[1].write_all(b"begin\n").unwrap();
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    let waited = wait_until("all records are here", || {
        found = shipped(server);
        let once: BTreeSet<String> = found.iter().cloned().collect();
        missing = expected.difference(&once).take(3).cloned().collect();
        missing.is_empty()
    });
    let log = promtail.directory.join("promtail.txt");
    let said = || fs::read_to_string(log).unwrap_or_default();
    waited.unwrap_or_else(|e| panic!("{e}: not {missing:?}; {}", said()));
    found
}

/// A real shipper for Loki, if there is one.
#[test]
fn promtail_ships_each_record_whatever_breaks() {
    let Some(promtail) = std::env::var_os("LOGPOND_PROMTAIL") else {
        // Its licence keeps it out of what CI sets up.
        return say("skipped: promtail because LOGPOND_PROMTAIL names none");
    };
    let scratch = Scratch::new("loki-promtail").unwrap();
    let data = scratch.path().join("data");
    let start = || TestServer::start(program(), &data, &[]).unwrap();
    let mut server = start();
    let cut = |number| match number % 3 {
        0 => (number % 7, CutPoint::Request(1 + number * 7919 % 9_000)),
        _ => (number % 7, CutPoint::Answer),
    };
    let proxy = Proxy::start_cutting(&server.address("http"), cut);
    let mut promtail = Promtail::start(&promtail, scratch.path(), proxy.port());
    let mut expected = BTreeSet::new();
    for kill in 0..KILLS {
        let first = kill * LINES_A_KILL;
        expected.append(&mut promtail.write(first..first + LINES_A_KILL));
        wait_until("some are taken", || {
            server.metric("logpond_ingest_records_total").unwrap() >= TAKEN
        })
        .unwrap();
        server = proxy.replace(server, "http", start);
    }
    all_are_here(&mut promtail, &server, &expected);
    // What it holds of several lines when it ends would be its own to lose, so that it ends at rest.
    promtail.restart();
    let first = KILLS * LINES_A_KILL;
    expected.append(&mut promtail.write(first..first + LINES_A_KILL));
    let found = all_are_here(&mut promtail, &server, &expected);
    let once: BTreeSet<String> = found.iter().cloned().collect();
    let (records, twice) = (once.len(), found.len() - once.len());
    say(&format!(
        "Promtail: {KILLS} kills, {} connections cut, {records} records, {twice} of them twice",
        proxy.cuts(),
    ));
    assert!(
        twice <= KILLS * PUSHED_MAX,
        "{twice} of {records} are there twice"
    );
    let end = json!(["trace", "begin"]).to_string();
    let invented: Vec<_> = once.difference(&expected).filter(|&r| *r != end).collect();
    assert!(invented.is_empty(), "{invented:?}");
}
