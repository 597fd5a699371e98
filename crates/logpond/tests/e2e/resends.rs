//! `logpond forward` through connections that are cut and servers that are killed: every line is
//! there once.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::pond::{Scratch, TestServer};
use crate::proxy::Proxy;
use crate::surroundings::{program, say};

/// Lines that are sent, of some 600 bytes: enough for dozens of batches.
const LINES: usize = 50_000;

/// How often the server is killed meanwhile.
const KILLS: usize = 4;

pub(crate) fn line(n: usize) -> String {
    format!(
        "{{\"_msg\":\"resend\",\"n\":{n},\"pad\":\"{}\"}}\n",
        "x".repeat(560)
    )
}

fn forward(url: &str) -> Child {
    let mut command = Command::new(program());
    command
        .args(["forward", "--quiet", "--addr", url])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Asserts that each of so many lines is there once.
pub(crate) fn assert_each_once(server: &TestServer, lines: usize) {
    let output = Command::new(program())
        .args([
            "query",
            "--addr",
            &server.url(),
            "--since",
            "@0",
            "-c",
            "resend",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let (rows, trailer) = server.query("resend").unwrap();
    assert_eq!(trailer["complete"], true, "{trailer}");
    let mut numbers: Vec<usize> = rows
        .iter()
        .map(|row| row["n"].as_u64().unwrap() as usize)
        .collect();
    numbers.sort_unstable();
    let twice = numbers.windows(2).filter(|pair| pair[0] == pair[1]).count();
    numbers.dedup();
    assert_eq!((numbers.len(), twice), (lines, 0), "lines and repetitions");
    assert_eq!(said.trim(), lines.to_string(), "{output:?}");
}

fn start(data: &Path) -> TestServer {
    TestServer::start(program(), data, &[]).unwrap()
}

#[test]
fn cut_connections_and_killed_servers_repeat_nothing() {
    let scratch = Scratch::new("resends").unwrap();
    let data = scratch.path().join("data");
    let mut server = start(&data);
    let proxy = Proxy::start(&server.address("http"));
    let mut forwarder = forward(&proxy.url());
    let mut input = forwarder.stdin.take().unwrap();
    let (mut resends, mut known) = (0.0, 0.0);
    let mut note = |server: &TestServer| {
        resends += server.metric("logpond_ingest_resends_total").unwrap();
        known += server.metric("logpond_ingest_resends_known_total").unwrap();
    };
    for n in 0..LINES {
        // The forwarder reads no faster than it sends, so it is in the middle of it.
        if input.write_all(line(n).as_bytes()).is_err() {
            // It has ended: its status and its words, below, say why.
            break;
        }
        if n % (LINES / KILLS) == LINES / KILLS / 2 {
            note(&server);
            if n > LINES / 2 {
                // What was taken so far goes into segments.
                server.compact().unwrap();
            }
            server = proxy.replace(server, "http", || start(&data));
        }
    }
    drop(input);
    let output = forwarder.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    note(&server);
    assert_each_once(&server, LINES);
    let cuts = proxy.cuts();
    say(&format!(
        "resends: {LINES} lines, {cuts} connections cut, {KILLS} kills, {resends} batches sent \
         again, {known} of them known"
    ));
    assert!(cuts >= 5 && resends >= 5.0 && known >= 1.0);
    // In segments it is the same.
    server
        .client()
        .unwrap()
        .send("POST", "/api/v1/compact?wait", &[], b"")
        .unwrap();
    assert_each_once(&server, LINES);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}
