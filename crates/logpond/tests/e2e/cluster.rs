//! Several nodes: what one answers is what all have, whoever holds it, and who is missing is named.

use std::process::Command;

use serde_json::Value;

use crate::http::encode;
use crate::pond::{ALL_TIME, Outcome, Pond, Scratch, signal, wait_until};
use crate::surroundings::program;

/// Records of each node.
const RECORDS: usize = 400;

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

fn records(numbers: impl Iterator<Item = usize>) -> String {
    numbers.map(record).collect()
}

fn push(pond: &Pond, body: &str) {
    let pushed = || pond.push("application/x-ndjson", body.as_bytes());
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
fn node(scratch: &Scratch, number: usize, join: Option<&Pond>) -> Outcome<Pond> {
    let data = scratch.path().join(format!("node-{number}"));
    let join = join.map_or("off".to_string(), |pond| pond.address("gossip"));
    let extra = [
        "--gossip",
        "127.0.0.1:0",
        "--replication",
        "2",
        "--join",
        &join,
    ];
    Pond::start(program(), &data, &extra)
}

/// Three nodes, each with every third record.
fn three(scratch: &Scratch) -> Vec<Pond> {
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
fn lines(pond: &Pond, target: &str) -> (Vec<Value>, Value) {
    let text = pond.get(target).unwrap();
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
fn complete(pond: &Pond, target: &str) -> Vec<Value> {
    let mut answer = (Vec::new(), Value::Null);
    wait_until("the answer is complete", || {
        answer = lines(pond, target);
        answer.1["complete"] == true
    })
    .unwrap_or_else(|e| panic!("{e}: {target}: {}", answer.1));
    answer.0
}

fn targets() -> Vec<String> {
    let filter = encode("status>=404 NOT host=web-3");
    let mut targets = vec![
        format!("/api/v1/query?{ALL_TIME}&limit=0&q="),
        format!("/api/v1/query?{ALL_TIME}&limit=0&q={filter}"),
        format!("/api/v1/query?{ALL_TIME}&limit=7&direction=backward&q={filter}"),
        format!(
            "/api/v1/query?{ALL_TIME}&limit=0&before=2&after=1&q={}",
            encode("\"request 50 \"")
        ),
        format!("/api/v1/query?{ALL_TIME}&limit=5&before=1&after=3&direction=backward&q={filter}"),
        format!("/api/v1/top?{ALL_TIME}&field=host&q={filter}"),
        format!("/api/v1/fields?{ALL_TIME}&q="),
    ];
    let range = "from=2026-03-02T00:00:00Z&to=2026-03-02T01:00:00Z";
    targets.push(format!("/api/v1/histogram?{range}&step=5m&q={filter}"));
    targets
}

#[test]
fn every_node_answers_for_all() {
    let scratch = Scratch::new("cluster").unwrap();
    let nodes = three(&scratch);
    let alone = Pond::start(program(), &scratch.path().join("alone"), &[]).unwrap();
    push(&alone, &records(0..3 * RECORDS));
    for compacted in [false, true] {
        if compacted {
            // One node has segments, the others a journal.
            let mut client = nodes[0].client().unwrap();
            let target = "/api/v1/compact?wait=true";
            let response = client.send("POST", target, &[], b"").unwrap();
            assert_eq!(response.status, 200);
            response.text().unwrap();
        }
        for target in targets() {
            let expected = complete(&alone, &target);
            assert!(!expected.is_empty(), "{target}");
            for node in &nodes {
                assert_eq!(complete(node, &target), expected, "{target}");
            }
        }
    }
    let count = format!("/api/v1/query?{ALL_TIME}&count=true&q=");
    for node in &nodes {
        let (_, trailer) = lines(node, &count);
        assert_eq!(trailer["rows"], 3 * RECORDS, "{trailer}");
    }
}

#[test]
fn pages_of_a_cluster_follow_each_other() {
    let scratch = Scratch::new("cluster-pages").unwrap();
    let nodes = three(&scratch);
    complete(
        &nodes[1],
        &format!("/api/v1/query?{ALL_TIME}&count=true&q="),
    );
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let target = format!(
            "/api/v1/query?{ALL_TIME}&limit=101&q=&cursor={}",
            encode(&cursor)
        );
        let (page, trailer) = lines(&nodes[found.len() % 3], &target);
        found.extend(page.into_iter().map(|mut row| row["_msg"].take()));
        match trailer["cursor"].as_str() {
            Some(next) => cursor = next.to_string(),
            None => break,
        }
    }
    let expected: Vec<Value> = (0..3 * RECORDS)
        .map(|n| Value::from(format!("request {n} done")))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_dead_node_costs_its_own_records_and_is_named() {
    let scratch = Scratch::new("cluster-dead").unwrap();
    let mut nodes = three(&scratch);
    let all = format!("/api/v1/query?{ALL_TIME}&limit=0&q=");
    assert_eq!(complete(&nodes[0], &all).len(), 3 * RECORDS);
    let name = format!("node {}", nodes[2].address("gossip"));
    nodes.pop().unwrap().kill();
    let (rows, trailer) = lines(&nodes[0], &all);
    assert_eq!(rows.len(), 2 * RECORDS);
    assert_eq!(trailer["complete"], false, "{trailer}");
    assert_eq!(trailer["silent"][0], name, "{trailer}");
    assert!(
        trailer["missing"][0].as_str().unwrap().starts_with(&name),
        "{trailer}"
    );
    let output = Command::new(program())
        .args([
            "query",
            "",
            "-c",
            "--since",
            "2026-03-01",
            "--addr",
            &nodes[1].url(),
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{}\n", 2 * RECORDS)
    );
    // It comes back at another address, with all it had.
    let back = node(&scratch, 2, Some(&nodes[0])).unwrap();
    assert_eq!(complete(&nodes[0], &all).len(), 3 * RECORDS);
    assert_eq!(complete(&back, &all).len(), 3 * RECORDS);
}

#[test]
fn a_stopped_node_holds_up_an_answer_for_a_bounded_time() {
    let scratch = Scratch::new("cluster-stopped").unwrap();
    let nodes = three(&scratch);
    let all = format!("/api/v1/query?{ALL_TIME}&limit=0&q=");
    assert_eq!(complete(&nodes[0], &all).len(), 3 * RECORDS);
    signal("STOP", nodes[2].pid()).unwrap();
    let (rows, trailer) = lines(&nodes[0], &all);
    signal("CONT", nodes[2].pid()).unwrap();
    assert_eq!(rows.len(), 2 * RECORDS);
    assert_eq!(trailer["complete"], false, "{trailer}");
    assert_eq!(complete(&nodes[0], &all).len(), 3 * RECORDS);
}

#[test]
fn a_node_takes_nothing_that_nobody_else_could_know_of() {
    let scratch = Scratch::new("cluster-alone").unwrap();
    let first = node(&scratch, 0, None).unwrap();
    let second = node(&scratch, 1, Some(&first)).unwrap();
    push(&second, &records(0..5));
    let gossip = first.address("gossip");
    first.kill();
    drop(second);
    let data = scratch.path().join("node-2");
    let extra = ["--gossip", "127.0.0.1:0", "--join", &gossip];
    let third = Pond::start(program(), &data, &extra).unwrap();
    let answer = third
        .push("application/x-ndjson", records(0..5).as_bytes())
        .unwrap();
    assert_eq!(answer.status, 503, "{}", answer.body);
    let message = answer.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("0 of 1 other nodes"), "{message}");
}
