//! `logpond forward --bulk` through connections that are cut and nodes that are lost: every line is
//! there once, and what was answered is on other nodes.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::nodes::node;
use crate::pond::{Scratch, TestServer, wait_until};
use crate::proxy::Proxy;
use crate::resends::{assert_each_once, line};
use crate::surroundings::{program, say};

/// Inputs: each is an upload.
const FILES: usize = 24;

/// Lines of each.
const LINES: usize = 1_000;

/// Writes the inputs.
fn inputs(scratch: &Scratch) -> Vec<PathBuf> {
    let each = (0..FILES).map(|file| {
        let path = scratch.path().join(format!("input-{file}.log"));
        let text: String = (file * LINES..(file + 1) * LINES).map(line).collect();
        std::fs::write(&path, text).unwrap();
        path
    });
    each.collect()
}

fn command(addresses: &str) -> Command {
    let mut command = Command::new(program());
    command
        .args(["forward", "--bulk", "--addr", addresses])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn assert_success(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn uploads_over_cut_connections_count_once() {
    let scratch = Scratch::new("bulk-cuts").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let proxy = Proxy::start(&server.address("bulk"));
    let address = proxy.url().replace("http://", "");
    let output = command(&address).args(inputs(&scratch)).output().unwrap();
    let said = assert_success(&output);
    let bytes: usize = (0..FILES * LINES).map(|n| line(n).len()).sum();
    let megabytes = format!("({:.1} MB) replicated by", bytes as f64 / 1e6);
    let records = format!("{},000 records {megabytes}", FILES * LINES / 1000);
    assert!(said.contains(&records), "{said} is not {records}");
    assert_each_once(&server, FILES * LINES);
    let resends = server.metric("logpond_ingest_resends_total").unwrap();
    let cuts = proxy.cuts();
    say(&format!(
        "bulk: {FILES} uploads, {cuts} connections cut, {resends} batches sent again"
    ));
    assert!(cuts >= 5 && resends >= 5.0);
}

/// The numbers of all lines that a node finds, sorted.
fn numbers(server: &TestServer) -> (Vec<u64>, Value) {
    let (rows, trailer) = server.query("resend").unwrap();
    let numbers = rows.iter().map(|row| row["n"].as_u64().unwrap());
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    (numbers, trailer)
}

#[test]
fn what_was_answered_survives_the_node_that_took_it() {
    let scratch = Scratch::new("bulk-lost").unwrap();
    let first = node(&scratch, 0, None).unwrap();
    let second = node(&scratch, 1, Some(&first)).unwrap();
    let third = node(&scratch, 2, Some(&second)).unwrap();
    let addresses = format!("{},{}", first.address("bulk"), second.address("bulk"));
    // Without the first node the others could not join any more.
    wait_until("all have joined", || {
        let joined = |number| format!("node-{number}/cluster/joined");
        (0..3).all(|number| scratch.path().join(joined(number)).exists())
    })
    .unwrap();
    let mut forwarder = command(&addresses);
    let forwarder = forwarder.args(inputs(&scratch)).spawn().unwrap();
    // In the middle of it the node goes, and its disk with it.
    wait_until("the node takes uploads", || {
        first
            .metric("logpond_ingest_records_total")
            .is_ok_and(|records| records > 0.0)
    })
    .unwrap();
    first.kill();
    let output = forwarder.wait_with_output().unwrap();
    let said = assert_success(&output);
    std::fs::remove_dir_all(scratch.path().join("node-0")).unwrap();
    let all: Vec<u64> = (0..(FILES * LINES) as u64).collect();
    for node in [&second, &third] {
        let (found, trailer) = numbers(node);
        assert!(found == all, "{} lines, {trailer}, {said}", found.len());
    }
}
