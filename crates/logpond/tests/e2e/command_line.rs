//! The command line against a real server: exit codes, streams, formats.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::pond::{Scratch, TestServer};
use crate::surroundings::program;

/// A server with a few records, and what is needed to ask it.
struct CommandServer {
    server: TestServer,
    data: PathBuf,
    _scratch: Scratch,
}

fn start(lines: &str) -> CommandServer {
    let scratch = Scratch::new("cli").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    let pushed = server.push("text/plain", lines.as_bytes()).unwrap();
    assert_eq!(pushed.status, 200, "{}", pushed.body);
    CommandServer {
        server,
        data,
        _scratch: scratch,
    }
}

impl CommandServer {
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(program());
        command.args(arguments).args(["--addr", &self.server.url()]);
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Exit code and stdout.
    fn answer(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    }
}

const ACCESS: &str = "\
203.0.113.9 - - [02/Mar/2026:00:01:17 +0000] \"GET /a?b=c HTTP/1.1\" 200 512 \"-\" \"probe/1\" \"shop.example.com\"\n\
203.0.113.9 - - [02/Mar/2026:00:01:18 +0000] \"POST /a HTTP/1.1\" 503 0 \"-\" \"probe/1\" \"shop.example.com\"\n\
198.51.100.7 - - [02/Mar/2026:00:01:19 +0000] \"GET /b HTTP/1.1\" 404 9 \"-\" \"probe/2\" \"www.example.com\"\n";

#[test]
fn exit_codes_say_what_was_found() {
    let asked = start(ACCESS);
    let since = ["--since", "2026-03-01", "--until", "2026-03-03"];
    let with = |first: &[&'static str]| [first, &since[..]].concat();
    assert_eq!(asked.run(&with(&["query", "probe"])).status.code(), Some(0));
    let none = asked.run(&with(&["query", "nowhere to be found"]));
    assert_eq!(none.status.code(), Some(1));
    assert!(none.stdout.is_empty());
    assert!(
        String::from_utf8_lossy(&none.stderr).contains("2026"),
        "names the newest record"
    );
    let said =
        |arguments: &[&str]| String::from_utf8_lossy(&asked.run(arguments).stderr).into_owned();
    assert!(said(&["query", "probe"]).contains("in the last hour (--since"));
    assert!(!said(&["query", "probe", "--since", "2h"]).contains("last hour"));
    assert_eq!(asked.run(&["query", "-e", "("]).status.code(), Some(2));
    assert_eq!(
        asked
            .run(&["query", "--since", "the day before"])
            .status
            .code(),
        Some(2)
    );
    assert_eq!(
        asked.run(&["query", "--no-such-flag"]).status.code(),
        Some(2)
    );
    let nobody = Command::new(program())
        .args(["query", "x", "--addr", "http://127.0.0.1:1"])
        .output()
        .unwrap();
    assert_eq!(nobody.status.code(), Some(2));
}

#[test]
fn filters_count_and_group() {
    let asked = start(ACCESS);
    let since = ["--since", "2026-03-01", "--until", "2026-03-03"];
    let count = |first: &[&'static str]| asked.answer(&[first, &since[..]].concat());
    let one = |text: &str| (Some(0), format!("{text}\n"));
    assert_eq!(count(&["query", "", "-c"]), one("3"));
    assert_eq!(count(&["query", "PROBE", "-i", "-c"]), one("3"));
    assert_eq!(count(&["query", "", "-c", "-f", "status>=500"]), one("1"));
    assert_eq!(count(&["query", "", "-c", "-f", "status!=200"]), one("2"));
    assert_eq!(count(&["query", "probe/1", "-v", "-c"]), one("1"));
    assert_eq!(count(&["query", "-e", "GET /[ab]", "-c"]), one("2"));
    assert_eq!(
        count(&[
            "query",
            "",
            "-c",
            "-f",
            "host=shop.example.com",
            "-f",
            "method=GET"
        ]),
        one("1")
    );
    assert_eq!(count(&["query", "nothing", "-c"]), (Some(1), "0\n".into()));
    let (code, top) = count(&["top", "host", "-o", "json"]);
    assert_eq!(code, Some(0));
    let expected = "{\"value\":\"shop.example.com\",\"count\":2}\n{\"value\":\"www.example.com\",\"count\":1}\n";
    assert_eq!(top, expected);
    let (_, raw) = count(&["query", "", "-n", "0", "-o", "raw"]);
    assert_eq!(raw, ACCESS);
    let (_, newest) = count(&["query", "", "-n", "1", "-o", "raw"]);
    assert_eq!(Some(newest.trim_end()), ACCESS.lines().last());
    let (_, reversed) = count(&["query", "", "-r", "-o", "raw"]);
    let mut lines: Vec<&str> = ACCESS.lines().collect();
    lines.reverse();
    assert_eq!(reversed.lines().collect::<Vec<_>>(), lines);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let line = "pipe ".repeat(200);
    let asked = start(&vec![line.as_str(); 3_000].join("\n"));
    let mut child = Command::new(program())
        .args(["query", "pipe", "-n", "0", "--addr", &asked.server.url()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut few = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut few).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn forward_sends_stdin_and_ends_when_it_is_durable() {
    let asked = start("something before\n");
    let mut child = Command::new(program())
        .args(["forward", "-", "--addr", &asked.server.url()])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let body = "forwarded 100%d \u{1}\nforwarded last without newline";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(body.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let data = asked.data.clone();
    asked.server.kill();
    let server = TestServer::start(program(), &data, &[]).unwrap();
    let (rows, _) = server.query("forwarded").unwrap();
    assert_eq!(rows.len(), 2);
    assert!(
        rows.iter().all(|row| row["hostname"].is_string()),
        "{rows:?}"
    );
}

#[test]
fn files_are_searched_without_a_server() {
    let scratch = Scratch::new("file").unwrap();
    let file = scratch.path().join("access.log");
    std::fs::write(&file, ACCESS).unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(program())
            .args(["query"])
            .args(arguments)
            .arg("--file")
            .arg(&file)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    assert_eq!(
        run(&["", "-o", "raw", "-n", "0"]),
        (Some(0), ACCESS.to_string())
    );
    assert_eq!(
        run(&["", "-c", "-f", "status=404"]),
        (Some(0), "1\n".into())
    );
    assert_eq!(run(&["absent", "-c"]), (Some(1), "0\n".into()));
}

/// Neighbours of the newest matches are shown, match or not; from a server as from a file.
#[test]
fn the_newest_matches_have_their_context() {
    let lines: String = (0..6)
        .map(|n| {
            format!(
                "{{\"time\":\"2026-03-02T00:00:0{n}Z\",\"msg\":\"m{n}\",\"even\":{}}}\n",
                n % 2 == 0
            )
        })
        .collect();
    let scratch = Scratch::new("cli-context").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    let asked = CommandServer {
        server,
        data,
        _scratch: scratch,
    };
    let pushed = asked.server.push("application/x-ndjson", lines.as_bytes());
    assert_eq!(pushed.unwrap().status, 200);
    let file = asked.data.with_extension("jsonl");
    std::fs::write(&file, &lines).unwrap();
    let file = file.display().to_string();
    let table: [(&[&str], &str); 7] = [
        (&["m", "-n", "1", "-B", "3"], "m2 m3 m4 m5"),
        (&["m", "-n", "2", "-B", "1"], "m3 m4 m5"),
        (&["m", "-n", "1", "-B", "3", "-r"], "m5 m4 m3 m2"),
        (&["", "-f", "even=true", "-n", "1", "-A", "3"], "m4 m5"),
        (&["", "-f", "even=true", "-n", "1", "-C", "1"], "m3 m4 m5"),
        (
            &["", "-f", "even=true", "-n", "2", "-B", "1"],
            "m1 m2 m3 m4",
        ),
        (
            &["m2", "-B", "1", "-A", "1", "-U", "2026-03-02T00:00:03Z"],
            "m1 m2 m3",
        ),
    ];
    for (arguments, expected) in table {
        let since = if arguments[0] == "m2" {
            "2026-03-02T00:00:02Z"
        } else {
            "2026-03-01"
        };
        let asking = [
            &["query"],
            arguments,
            &["-S", since, "-o", "logfmt", "--fields", "_msg"],
        ]
        .concat();
        let in_file = Command::new(program())
            .args(&asking)
            .args(["--file", &file])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let found = [
            asked.answer(&asking),
            (
                in_file.status.code(),
                String::from_utf8(in_file.stdout).unwrap(),
            ),
        ];
        for (code, text) in found {
            let messages = text.lines().filter_map(|line| line.split("msg=").nth(1));
            let messages: Vec<&str> = messages.collect();
            assert_eq!(messages.join(" "), expected, "{arguments:?}: {text}");
            assert_eq!(code, Some(0), "{arguments:?}");
        }
    }
}
