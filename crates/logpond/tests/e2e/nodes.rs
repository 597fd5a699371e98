//! Several nodes of one cluster, for tests that need more than one.

use std::path::Path;

use serde_json::Value;

use crate::pond::{Outcome, Scratch, TestServer, wait_until};
use crate::surroundings::program;

/// Records of each node.
pub(crate) const RECORDS: usize = 400;

/// A record that is known by its time.
fn record(number: usize) -> String {
    let (minute, second) = (number / 60, number % 60);
    let status = [200, 200, 404, 500][number % 4];
    format!(
        "{{\"time\":\"2026-03-02T{:02}:{:02}:{second:02}Z\",\"_msg\":\"request {number} done\",\
         \"status\":{status},\"host\":\"web-{}\"}}\n",
        minute / 60,
        minute % 60,
        number % 7
    )
}

pub(crate) fn records(numbers: impl Iterator<Item = usize>) -> String {
    numbers.map(record).collect()
}

/// Pushes records, once the node takes them.
pub(crate) fn push(server: &TestServer, body: &str) {
    let pushed = || server.push("application/x-ndjson", body.as_bytes());
    let mut last = String::new();
    // Until another node knows of it, a node takes nothing.
    wait_until("the node takes records", || {
        let answer = pushed();
        last = format!("{:?}", answer.as_ref().map(|a| (a.status, a.body.clone())));
        answer.is_ok_and(|answer| answer.status == 200)
    })
    .unwrap_or_else(|e| panic!("{e}: {last}"));
}

/// Starts a node that knows `join`.
pub(crate) fn node(
    scratch: &Scratch,
    number: usize,
    join: Option<&TestServer>,
) -> Outcome<TestServer> {
    let data = scratch.path().join(format!("node-{number}"));
    start_node(&data, "serve", join, &[])
}

/// Starts a node of this role that knows `join`, in a cluster that keeps two copies.
pub(crate) fn start_node(
    data: &Path,
    role: &str,
    join: Option<&TestServer>,
    more: &[&str],
) -> Outcome<TestServer> {
    let join = join.map_or("off".to_string(), |server| server.address("gossip"));
    let mut flags = vec!["--gossip", "127.0.0.1:0", "--replication", "2"];
    flags.extend(["--join", &join]);
    flags.extend(more);
    TestServer::start_as(program(), role, data, &flags)
}

/// Three nodes, each with every third record.
pub(crate) fn three(scratch: &Scratch) -> Vec<TestServer> {
    let first = node(scratch, 0, None).unwrap();
    let second = node(scratch, 1, Some(&first)).unwrap();
    let third = node(scratch, 2, Some(&second)).unwrap();
    let nodes = vec![first, second, third];
    for (number, node) in nodes.iter().enumerate() {
        push(node, &records((number..3 * RECORDS).step_by(3)));
    }
    nodes
}

/// The lines of an answer without what differs from pond to pond, and its trailer.
pub(crate) fn lines(server: &TestServer, target: &str) -> (Vec<Value>, Value) {
    let text = server.get(target).unwrap();
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let trailer = lines.pop().unwrap()["_trailer"].take();
    for line in &mut lines {
        if let Some(line) = line.as_object_mut() {
            line.remove("_id");
        }
    }
    (lines, trailer)
}

/// Asks until the answer is complete: nodes that were started a moment ago find each other.
pub(crate) fn complete(server: &TestServer, target: &str) -> Vec<Value> {
    let mut answer = (Vec::new(), Value::Null);
    wait_until("the answer is complete", || {
        answer = lines(server, target);
        answer.1["complete"] == true
    })
    .unwrap_or_else(|e| panic!("{e}: {target}: {}", answer.1));
    answer.0
}

/// Has a node close its journal, and waits until copies of everything are where they should be.
pub(crate) fn hand_over(server: &TestServer) {
    server.compact().unwrap();
    wait_until("everything has its copies", || {
        server.metric("logpond_unreplicated_bytes") == Ok(0.0)
    })
    .unwrap_or_else(|e| panic!("{e}: {}", server.stderr()));
}

/// Sends a batch by its name.
pub(crate) fn push_named(server: &TestServer, name: &str, body: &str) {
    let headers = [("content-type", "text/plain"), ("logpond-batch", name)];
    let target = "/api/v1/push?durable=true";
    let mut client = server.client().unwrap();
    let response = client
        .send("POST", target, &headers, body.as_bytes())
        .unwrap();
    let status = response.status;
    assert_eq!(status, 200, "{}", response.text().unwrap());
}
