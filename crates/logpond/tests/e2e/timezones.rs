//! Times without a zone: the one that a server, a peer's network, a forwarder or a file has, which goes
//! with the records wherever they are read.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::program;

/// In rules, so that no machine's database is needed.
const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

/// Times by message.
fn times(server: &TestServer) -> Vec<Value> {
    let (rows, trailer) = server.query("").unwrap();
    assert_eq!(trailer["complete"], true, "{trailer}");
    let mut told: Vec<Value> = rows
        .iter()
        .map(|row| {
            assert_eq!(row["_timezone"], Value::Null, "{row}");
            let message = row["_msg"].as_str().unwrap();
            let last = message.rsplit(' ').next().unwrap();
            json!([last, row["_time"]])
        })
        .collect();
    told.sort_by_key(|row| row[0].to_string());
    told
}

/// Sends lines without a zone in several ways.
fn send(server: &TestServer, directory: &Path) {
    server
        .push("text/plain", b"2026-07-02 00:00:00 pushed\n")
        .unwrap();
    server
        .send_tcp("syslog_tcp", b"<13>1 2026-03-02T09:00:00 h a - - - peer\n")
        .unwrap();
    let (file, other) = (directory.join("berlin.log"), directory.join("other.log"));
    let lines =
        "2026-03-02 01:00:00 winter\n2026-07-02 02:00:00 summer\n2026-07-02T00:00:00Z whole\n";
    fs::write(&file, lines).unwrap();
    fs::write(&other, "2026-03-02 00:00:00 other\n").unwrap();
    let glob = format!("{}/ber*.log={BERLIN}", directory.display());
    let forwarded = Command::new(program())
        .args(["forward", "--addr", &server.url(), "--timezone", &glob])
        .args(["--timezone", "-01:00"])
        .args([&file, &other])
        .env("TZ", "JST-9")
        .status();
    assert!(forwarded.unwrap().success());
}

#[test]
fn zones_go_with_the_records() {
    let scratch = Scratch::new("timezones").unwrap();
    let data = scratch.path().join("data");
    let zones = [
        "--timezone",
        "EST5EDT,M3.2.0,M11.1.0",
        "--timezone",
        "127.0.0.0/8=+09:00",
    ];
    let server = TestServer::start(program(), &data, &zones).unwrap();
    send(&server, scratch.path());
    wait_until("all are there", || times(&server).len() == 6).unwrap();
    let expected = json!([
        ["other", "2026-03-02T01:00:00.000000000Z"],
        ["peer", "2026-03-02T00:00:00.000000000Z"],
        ["pushed", "2026-07-02T04:00:00.000000000Z"],
        ["summer", "2026-07-02T00:00:00.000000000Z"],
        ["whole", "2026-07-02T00:00:00.000000000Z"],
        ["winter", "2026-03-02T00:00:00.000000000Z"],
    ]);
    assert_eq!(Value::from(times(&server)), expected);
    // Another zone, or the one of the machine, changes nothing of what is there.
    server.terminate().unwrap();
    let server = TestServer::start(program(), &data, &["--timezone", "UTC"]).unwrap();
    assert_eq!(Value::from(times(&server)), expected);
    server.compact().unwrap();
    assert_eq!(Value::from(times(&server)), expected);
}

/// The zone of the machine is that of `TZ`, for servers, forwarders and queries of files.
#[test]
fn the_zone_of_the_machine_counts_where_none_is_named() {
    let scratch = Scratch::new("timezone-local").unwrap();
    let file = scratch.path().join("app.log");
    let read = |zone: &[&str]| {
        fs::write(&file, "2026-03-02 01:00:00 x\n").unwrap();
        let output = Command::new(program())
            .args(["query", "-o", "json", "--file"])
            .arg(&file)
            .args(zone)
            .env("TZ", BERLIN)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let row: Value = serde_json::from_slice(&output.stdout).unwrap();
        row["_time"].as_str().unwrap().to_owned()
    };
    assert_eq!(read(&[]), "2026-03-02T00:00:00.000000000Z");
    assert_eq!(
        read(&["--timezone", "UTC"]),
        "2026-03-02T01:00:00.000000000Z"
    );
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let forwarded = Command::new(program())
        .args(["forward", "--addr", &server.url()])
        .arg(&file)
        .env("TZ", BERLIN)
        .status();
    assert!(forwarded.unwrap().success());
    assert_eq!(times(&server)[0][1], "2026-03-02T00:00:00.000000000Z");
}

#[test]
fn a_zone_that_is_none_is_refused() {
    for command in ["serve", "forward", "import", "query"] {
        let scratch = Scratch::new("timezone-refused").unwrap();
        let output = Command::new(program())
            .arg(command)
            .args(["--timezone", "Mars/Phobos"])
            .args(
                (command == "query")
                    .then_some(["--file", "/dev/null"])
                    .into_iter()
                    .flatten(),
            )
            .env("XDG_DATA_HOME", scratch.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        let why = "the zone 'Mars/Phobos' is not known: expected a name of this machine's database";
        assert!(text.contains(why), "{command}: {text}");
    }
}

/// Formats of access logs are for files of `query`, too, and for nothing else.
#[test]
fn files_are_queried_by_declared_formats() {
    let scratch = Scratch::new("query-access-log").unwrap();
    let file = scratch.path().join("access.log");
    fs::write(&file, "1772409606.250 404 0.125\nno line of those\n").unwrap();
    let query = |arguments: &[&str]| {
        let output = Command::new(program())
            .args([
                "query",
                "-o",
                "json",
                "--access-log",
                "a=$msec $status $request_time",
            ])
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let rows: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        (
            rows,
            String::from_utf8(output.stderr).unwrap(),
            output.status.code(),
        )
    };
    let path = file.display().to_string();
    let (rows, _, status) = query(&["--file", &path, "--field", "status=404"]);
    assert_eq!((rows.len(), status), (1, Some(0)));
    assert_eq!(rows[0]["access_log"], "a");
    assert_eq!(rows[0]["duration_s"], 0.125);
    assert_eq!(query(&["--file", &path]).0.len(), 2);
    let (_, error, status) = query(&["text"]);
    assert_eq!(status, Some(2));
    assert!(
        error.contains("--access-log, --time-field, --message-field and --timezone are for files"),
        "{error}"
    );
}
