//! The bucket as a table: other engines count each record once while segments are merged.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use serde_json::Value;

use crate::pond::{Scratch, TestServer, files_below, wait_until};
use crate::surroundings::{program, python, say};

/// Records in a batch.
const BATCH: u64 = 40;

/// So many versions are read while records come and segments are merged.
const VERSIONS: usize = 12;

/// The statement of the recipe for DuckDB in `docs/open-tables.md`, for the bucket in this directory.
fn recipe(bucket: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("docs/open-tables.md")).unwrap();
    let (_, recipe) = text.split_once("```sql\n").unwrap();
    let (recipe, _) = recipe.split_once("```").unwrap();
    let mut statements = recipe.split(';').map(str::trim);
    let question = statements.find(|s| s.starts_with("SELECT")).unwrap();
    question.replace("/srv/pond", bucket.to_str().unwrap())
}

/// Engines that read a table.
struct Readers {
    process: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Readers {
    fn start(python: &Path, bucket: &Path) -> Readers {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/read_open_table.py");
        let mut process = Command::new(python)
            .arg(script)
            .args([bucket.to_str().unwrap(), &recipe(bucket)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Readers {
            questions: process.stdin.take(),
            answers: BufReader::new(process.stdout.take().unwrap()),
            process,
        }
    }

    /// What both see now: records, and how many of them are different. Nothing if there is no table.
    fn read(&mut self) -> Option<[(u64, u64); 2]> {
        writeln!(self.questions.as_ref().unwrap(), "read").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).expect("an answer");
        if answer.is_null() {
            return None;
        }
        let number = |value: &Value| value.as_u64().unwrap();
        let pair = |engine: &str| (number(&answer[engine][0]), number(&answer[engine][1]));
        Some([pair("duckdb"), pair("delta-rs")])
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        drop(self.questions.take());
        let _ = self.process.wait();
    }
}

/// Pushes records and has segments merged until it is told to stop; `sent` counts before they are.
fn push_and_merge(server: &TestServer, sent: &AtomicU64, is_done: &AtomicBool) {
    while !is_done.load(Ordering::SeqCst) {
        let first = sent.fetch_add(BATCH, Ordering::SeqCst);
        let lines = (first..first + BATCH).map(|n| format!("{{\"_msg\":\"ledger\",\"n\":{n}}}\n"));
        let pushed = server.push("application/x-ndjson", lines.collect::<String>().as_bytes());
        assert_eq!(pushed.unwrap().accepted(), BATCH);
        server.compact().unwrap();
    }
}

fn versions(bucket: &Path) -> usize {
    files_below(&bucket.join("_delta_log"), ".json").len()
}

#[test]
fn other_engines_count_once_while_segments_are_merged() {
    let Some(python) = python("reading an open table") else {
        return;
    };
    let scratch = Scratch::new("open-table").unwrap();
    let bucket = scratch.path().join("bucket");
    let url = format!("file:{}", bucket.display());
    let arguments = ["--bucket", &url, "--open-table", "0s"];
    // Two servers, so that they race for versions.
    let ponds = ["one", "two"]
        .map(|name| TestServer::start(program(), &scratch.path().join(name), &arguments).unwrap());
    let mut readers = Readers::start(&python, &bucket);
    let (sent, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut reads = 0;
    thread::scope(|scope| {
        for server in &ponds {
            scope.spawn(|| push_and_merge(server, &sent, &is_done));
        }
        let mut before = [0, 0];
        while versions(&bucket) < VERSIONS {
            let Some(found) = readers.read() else {
                continue;
            };
            reads += 1;
            for ((rows, numbers), before) in found.into_iter().zip(&mut before) {
                assert_eq!(rows, numbers, "records are there twice");
                assert!(
                    rows <= sent.load(Ordering::SeqCst),
                    "{rows} were never sent"
                );
                assert!(rows >= *before, "{rows} of {before} are left");
                *before = rows;
            }
        }
        is_done.store(true, Ordering::SeqCst);
    });
    let sent = sent.load(Ordering::SeqCst);
    wait_until("all is in the table", || {
        readers.read() == Some([(sent, sent); 2])
    })
    .unwrap();
    // What was merged lies there for a day, and counts for nothing.
    let segments = files_below(&bucket.join("segments"), ".parquet").len();
    say(&format!(
        "open table: {sent} records in {} versions, read {reads} times; {segments} objects",
        versions(&bucket)
    ));
}
