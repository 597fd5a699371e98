//! A forwarder with a spool is killed, and so is its server: every line is there once.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::pond::{Scratch, TestServer, signal, wait_until};
use crate::proxy::Proxy;
use crate::resends::{assert_each_once, line};
use crate::surroundings::{program, say};

/// Lines that are written to the followed file in all, in as many rounds.
const LINES: usize = 40_000;
const ROUNDS: usize = 8;

fn follow(url: &str, scratch: &Path) -> Child {
    let path = |name: &str| scratch.join(name).display().to_string();
    Command::new(program())
        .args([
            "forward",
            "--tail",
            "--addr",
            url,
            "--spool",
            &path("spool"),
        ])
        .args(["--state", &path("positions.json"), &path("app.log")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn spool_files(scratch: &Path) -> usize {
    fs::read_dir(scratch.join("spool/journal")).map_or(0, Iterator::count)
}

#[test]
fn killed_forwarders_lose_and_repeat_nothing() {
    let scratch = Scratch::new("spool").unwrap();
    let data = scratch.path().join("data");
    let mut server = TestServer::start(program(), &data, &[]).unwrap();
    let proxy = Proxy::start(&server.address("http"));
    let mut resends = 0.0;
    for round in 0..ROUNDS {
        let mut options = OpenOptions::new();
        let log = options
            .append(true)
            .create(true)
            .open(scratch.path().join("app.log"));
        let mut log = log.unwrap();
        for n in round * LINES / ROUNDS..(round + 1) * LINES / ROUNDS {
            log.write_all(line(n).as_bytes()).unwrap();
        }
        let mut forwarder = follow(&proxy.url(), scratch.path());
        let records = || server.metric("logpond_ingest_records_total").unwrap_or(0.0);
        let before = records();
        match round % 3 {
            // In the middle of reading and sending.
            0 => wait_until("something is in the spool", || {
                spool_files(scratch.path()) > 0
            }),
            _ => wait_until("something has arrived", || records() > before),
        }
        .unwrap();
        forwarder.kill().unwrap();
        forwarder.wait().unwrap();
        if round % 3 == 1 {
            resends += server.metric("logpond_ingest_resends_total").unwrap();
            server = proxy.replace(server, "http", || {
                TestServer::start(program(), &data, &[]).unwrap()
            });
        }
    }
    let mut forwarder = follow(&proxy.url(), scratch.path());
    let count = || {
        let text = server
            .get("/api/v1/query?from=@0&count=true&q=resend")
            .unwrap();
        let trailer: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
        trailer["_trailer"]["rows"].as_u64().unwrap() as usize
    };
    wait_until("everything has arrived", || count() >= LINES).unwrap();
    signal("TERM", forwarder.id()).unwrap();
    assert!(forwarder.wait().unwrap().success());
    assert_each_once(&server, LINES);
    resends += server.metric("logpond_ingest_resends_total").unwrap();
    let cuts = proxy.cuts();
    say(&format!(
        "spool: {LINES} lines, {ROUNDS} kills, {cuts} cuts, {resends} sent again"
    ));
}

/// A file of the spool in which nothing checks out is put aside, and its records are missed by nobody else.
#[test]
fn a_spool_file_that_cannot_be_used_is_said() {
    let scratch = Scratch::new("spool-garbage").unwrap();
    let input = scratch.path().join("app.log");
    let spool = scratch.path().join("spool");
    fs::write(&input, line(0)).unwrap();
    let forward = || {
        let mut command = Command::new(program());
        // Nobody answers there.
        command.args(["forward", "--addr", "http://127.0.0.1:9"]);
        command.args(["--give-up-after", "10ms", "--spool"]);
        let output = command.arg(&spool).arg(&input).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    forward();
    let mut files = fs::read_dir(spool.join("journal")).unwrap();
    let file = files.next().unwrap().unwrap().path();
    fs::write(&file, [b'x'; 500]).unwrap();
    let name = file.file_stem().unwrap().to_string_lossy().into_owned();
    let said = forward();
    let put_aside = format!("records in the spool are not sent: journal/{name}.quarantined: ");
    assert!(said.contains(&put_aside), "{said}");
}
