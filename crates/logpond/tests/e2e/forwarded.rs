//! What forwarders of other systems have lost or changed on the way: the bytes of lines, long lines
//! and what follows them, last lines. Each as it is, with a spool and in whole segments. What is lost with a connection
//! or with a forwarder that is killed is in `resends` and `spool`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::pond::{Scratch, TestServer};
use crate::surroundings::program;

/// How lines go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Batches,
    Spool,
    Bulk,
}

/// Forwards an input and gives the lines that are stored, in their order in time.
fn forwarded(name: &str, input: &[u8], way: Way, extra: &[&str]) -> Vec<String> {
    let scratch = Scratch::new(name).unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let mut command = Command::new(program());
    command.args(["forward", "--quiet"]).args(extra);
    match way {
        Way::Batches => command.args(["--addr", &server.url()]),
        Way::Spool => {
            command.args(["--addr", &server.url(), "--spool"]);
            command.arg(scratch.path().join("spool"))
        }
        Way::Bulk => command.args(["--bulk", "--addr", &server.address("bulk")]),
    };
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut lines = Vec::new();
    for is_stored in [false, true] {
        if is_stored {
            server.compact().unwrap();
        }
        let found = server.get("/api/v1/query?from=@0&fields=raw").unwrap();
        let rows = found
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let found: Vec<String> = rows
            .filter_map(|row| Some(row["_line"].as_str()?.to_owned()))
            .collect();
        assert!(!is_stored || found == lines, "it is the same in segments");
        lines = found;
    }
    lines
}

fn assert_arrives(name: &str, lines: &[&str], input: &str) {
    assert_arrives_by(name, &[], lines, input);
}

fn assert_arrives_by(name: &str, extra: &[&str], lines: &[&str], input: &str) {
    for way in [Way::Batches, Way::Spool, Way::Bulk] {
        let found = forwarded(name, input.as_bytes(), way, extra);
        assert!(found == lines, "{} lines by {way:?}", found.len());
    }
}

#[test]
fn percent_signs_are_text() {
    let line = "cpu 100%d done 50% x %s%n %";
    assert_arrives("percent", &[line], &format!("{line}\n"));
}

#[test]
fn a_line_beyond_64_kib_and_all_behind_it_arrive() {
    let long = format!("long {}", "x".repeat(200_000));
    let lines = ["before", &long, "behind"];
    assert_arrives("long", &lines, &format!("{}\n", lines.join("\n")));
}

#[test]
fn a_last_line_without_its_end_arrives() {
    assert_arrives("last", &["first", "last"], "first\nlast");
}

/// Line ends in a record stay where they are.
#[test]
fn records_of_several_lines_are_one() {
    let records = [
        "first",
        "failed\njava.lang.Error: 100%\n\tat a.b(c:1)\n... 2 more",
        "last\n\tindented",
    ];
    let input = records.join("\n");
    assert_arrives_by("several", &["--multiline", "stacktrace"], &records, &input);
    assert_arrives_by("several", &["--multiline", "auto"], &records, &input);
    let extra = ["--multiline-start", "^(first|failed|last)"];
    assert_arrives_by("several", &extra, &records, &input);
    assert_arrives("several", &input.lines().collect::<Vec<_>>(), &input);
}

/// A line that is too long for others, sent past the forwarder: what is behind it is stored and
/// found all the same.
#[test]
fn a_long_line_on_a_raw_port_holds_nothing_up() {
    let scratch = Scratch::new("raw").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let long = "x".repeat(200_000);
    let answers = server.send_tcp("durable", format!("wide {long}\nwide behind\n").as_bytes());
    let counts = answers.unwrap();
    let counts = counts
        .lines()
        .map(|l| l.trim_start_matches("OK ").parse::<u64>().unwrap());
    assert_eq!(counts.sum::<u64>(), 2);
    server.compact().unwrap();
    assert_eq!(server.query("wide").unwrap().0.len(), 2);
    assert_eq!(server.query("\"wide behind\"").unwrap().0.len(), 1);
}
