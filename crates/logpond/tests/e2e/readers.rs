//! Segments are ordinary Parquet: another engine reads them and agrees.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::pond::{Scratch, TestServer, files_below};
use crate::surroundings::{corpus, program, python};

/// The rows that a statement gives, as DuckDB sees the files.
fn ask(python: &Path, files: &[PathBuf], sql: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/read_with_duckdb.py");
    let output = Command::new(python)
        .arg(script)
        .arg(sql)
        .args(files)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{sql}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `[["key", count], …]` as a sorted list.
fn pairs(rows: &Value) -> Vec<(String, u64)> {
    let mut pairs: Vec<(String, u64)> = rows
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| !row[0].is_null())
        .map(|row| {
            let key = row[0]
                .as_str()
                .map_or_else(|| row[0].to_string(), String::from);
            (key, row[1].as_u64().unwrap())
        })
        .collect();
    pairs.sort();
    pairs
}

fn fact_pairs(fact: &Value) -> Vec<(String, u64)> {
    let object = fact.as_object().unwrap();
    let mut pairs: Vec<_> = object
        .iter()
        .map(|(k, v)| (k.clone(), v.as_u64().unwrap()))
        .collect();
    pairs.sort();
    pairs
}

/// The statement of the README, as it is given to DuckDB there.
fn statement_of_the_readme() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let mut lines = readme.lines();
    let line = lines.find(|line| line.contains("duckdb -c") && line.contains("DATA/segments"));
    let quoted = line.unwrap().split_once("-c \"").unwrap().1;
    quoted.strip_suffix('"').unwrap().to_owned()
}

#[test]
fn the_command_of_the_readme_reads_segments_of_different_fields() {
    let Some(python) = python("the DuckDB command of the README") else {
        return;
    };
    let scratch = Scratch::new("readme-duckdb").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    for body in [
        r#"{"message":"one","a":1}"#,
        r#"{"message":"two","b":"x"}"#,
        r#"{"message":"two","a":"y"}"#,
    ] {
        let pushed = server
            .push("application/x-ndjson", body.as_bytes())
            .unwrap();
        assert_eq!(pushed.accepted(), 1);
        server.compact().unwrap();
    }
    let directory = data.join("segments");
    let sql = statement_of_the_readme().replace("DATA/segments", directory.to_str().unwrap());
    let any = files_below(&directory, ".parquet");
    let rows = ask(&python, &any, &sql);
    assert_eq!(pairs(&rows), [("one".to_owned(), 1), ("two".to_owned(), 2)]);
}

#[test]
fn duckdb_agrees_on_counts_and_sums() {
    let Some(python) = python("reading segments with DuckDB") else {
        return;
    };
    let Some(corpus) = corpus("nginx", "5M") else {
        return;
    };
    let scratch = Scratch::new("duckdb").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    let bytes = fs::read(&corpus.file).unwrap();
    // Two halves, so that there are several segments before the compaction.
    let middle = bytes.len() / 2
        + bytes[bytes.len() / 2..]
            .iter()
            .position(|b| *b == b'\n')
            .unwrap()
        + 1;
    for (half, arguments) in [
        (&bytes[..middle], &["compact", "--wait"][..]),
        (&bytes[middle..], &["compact", "--wait", "--cold"][..]),
    ] {
        assert_eq!(server.push("text/plain", half).unwrap().status, 200);
        let output = Command::new(program())
            .args(arguments)
            .args(["--addr", &server.url()])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let files = files_below(&data.join("segments"), ".parquet");
        assert!(!files.is_empty(), "no segments");
        let count = ask(&python, &files, "SELECT count(*) FROM logs");
        let (rows, _) = server.query("").unwrap();
        assert_eq!(count[0][0].as_u64(), Some(rows.len() as u64));
    }
    let files = files_below(&data.join("segments"), ".parquet");
    let sums = "SELECT count(*), sum(bytes)::BIGINT, count(DISTINCT remote_addr) FROM logs";
    let sums = ask(&python, &files, sums);
    assert_eq!(sums[0][0], corpus.facts["lines"]);
    assert_eq!(sums[0][1], corpus.facts["body_bytes_sum"]);
    assert_eq!(sums[0][2], corpus.facts["distinct_ips"]);
    for (field, fact) in [
        ("status", "status"),
        ("host", "hosts"),
        ("method", "methods"),
    ] {
        let rows = ask(
            &python,
            &files,
            &format!("SELECT {field}, count(*) FROM logs GROUP BY ALL"),
        );
        assert_eq!(pairs(&rows), fact_pairs(&corpus.facts[fact]), "{field}");
    }
    let days =
        "SELECT strftime(_time AT TIME ZONE 'UTC', '%Y-%m-%d'), count(*) FROM logs GROUP BY ALL";
    assert_eq!(
        pairs(&ask(&python, &files, days)),
        fact_pairs(&corpus.facts["per_day"])
    );
}
