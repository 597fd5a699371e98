//! Several nodes: what one answers is what all have, whoever holds it, and who is missing is named.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use serde_json::Value;

use crate::http::encode;
use crate::nodes::{RECORDS, complete, hand_over, lines, node, push, push_named, records, three};
use crate::pond::{ALL_TIME, Scratch, TestServer, signal, wait_until};
use crate::surroundings::program;

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
        format!("/api/v1/query?{ALL_TIME}&limit=1&before=3&direction=backward&q="),
        format!(
            "/api/v1/query?from=2026-03-02T00:00:20Z&to=2026-03-02T00:00:40Z&before=4&after=4&q={filter}"
        ),
        format!("/api/v1/top?{ALL_TIME}&field=host&q={filter}"),
        format!("/api/v1/fields?{ALL_TIME}&q="),
    ];
    let range = "from=2026-03-02T00:00:00Z&to=2026-03-02T01:00:00Z";
    targets.push(format!("/api/v1/histogram?{range}&step=5m&q={filter}"));
    // Of more values than are shown, all show the same ones.
    for field in ["_msg", "status", "_level_number"] {
        targets.push(format!("/api/v1/histogram?{range}&step=5m&by={field}&q="));
    }
    targets.push(format!("/api/v1/patterns?{range}&step=5m&q={filter}"));
    targets
}

#[test]
fn every_node_answers_for_all() {
    let scratch = Scratch::new("cluster").unwrap();
    let nodes = three(&scratch);
    let alone = TestServer::start(program(), &scratch.path().join("alone"), &[]).unwrap();
    push(&alone, &records(0..3 * RECORDS));
    for compacted in [false, true] {
        if compacted {
            // One node has segments, the others a journal.
            nodes[0].compact().unwrap();
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

/// Rows in the segments of a node.
fn stored(server: &TestServer) -> u64 {
    let text = server.get("/api/v1/segments").unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let own = format!("node {}", server.address("gossip"));
    let own = lines.filter(|line| line["node"] == own);
    let segments = own.filter(|line| matches!(line["state"].as_str(), Some("hot" | "cold")));
    segments
        .map(|segment| segment["rows"].as_u64().unwrap())
        .sum()
}

#[test]
fn records_survive_the_loss_of_a_node() {
    let scratch = Scratch::new("cluster-loss").unwrap();
    let mut nodes = three(&scratch);
    let all = format!("/api/v1/query?{ALL_TIME}&limit=0&q=");
    assert_eq!(complete(&nodes[0], &all).len(), 3 * RECORDS);
    nodes.iter().for_each(hand_over);
    let copies: u64 = nodes.iter().map(stored).sum();
    // More than two are harmless, and come of a copy whose receipt came late.
    assert!(
        copies >= 2 * 3 * RECORDS as u64,
        "two copies of each record: {copies} rows"
    );
    let before = complete(&nodes[0], &all);
    assert_eq!(before.len(), 3 * RECORDS, "copies count once");
    nodes.pop().unwrap().kill();
    std::fs::remove_dir_all(scratch.path().join("node-2")).unwrap();
    let (rows, trailer) = lines(&nodes[0], &all);
    assert_eq!(rows, before, "{trailer}");
    // What else the node may have acknowledged nobody knows.
    assert_eq!(trailer["complete"], false, "{trailer}");
    let missing = trailer["missing"].as_array().unwrap();
    assert_eq!(missing.len(), 1, "{trailer}");
    assert!(
        missing[0].as_str().unwrap().contains("or later"),
        "{trailer}"
    );
}

/// Sends numbered records until it is told to stop; gives the numbers that were acknowledged and
/// how many were sent.
fn send_numbers(
    address: &str,
    name: &str,
    acknowledged: &AtomicU64,
    stop: &AtomicBool,
) -> (Vec<String>, Vec<String>) {
    let (mut acked, mut sent) = (Vec::new(), Vec::new());
    let Ok(mut client) = crate::http::Client::connect(address) else {
        return (acked, sent);
    };
    for batch in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let names: Vec<String> = (0..20).map(|n| format!("{name}-{batch}-{n}")).collect();
        let body = names
            .iter()
            .map(|name| format!("{name}\n"))
            .collect::<String>();
        sent.extend(names.iter().cloned());
        match crate::pond::push(&mut client, "text/plain", "", body.as_bytes()) {
            Ok(pushed) if pushed.status == 200 => {
                acknowledged.fetch_add(pushed.accepted(), Ordering::SeqCst);
                acked.extend(names);
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    (acked, sent)
}

#[test]
fn nothing_acknowledged_is_lost_or_doubled_while_nodes_are_killed() {
    let scratch = Scratch::new("cluster-kill").unwrap();
    let mut nodes = three(&scratch);
    let all = format!("/api/v1/query?{ALL_TIME}&limit=0&q=round");
    let (mut acked, mut sent) = (Vec::new(), Vec::new());
    for round in 0..4 {
        let victim = round % 3;
        let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            let senders: Vec<_> = nodes
                .iter()
                .enumerate()
                .map(|(at, node)| {
                    let (address, name) = (node.address("http"), format!("round-{round}-{at}"));
                    let (stop, count) = (&stop, &count);
                    scope.spawn(move || send_numbers(&address, &name, count, stop))
                })
                .collect();
            let enough = 1_000 + 500 * round as u64;
            wait_until("enough is acknowledged", || {
                count.load(Ordering::SeqCst) >= enough
            })
            .unwrap();
            signal("KILL", nodes[victim].pid()).unwrap();
            stop.store(true, Ordering::SeqCst);
            for sender in senders {
                let (a, s) = sender.join().unwrap();
                acked.extend(a);
                sent.extend(s);
            }
        });
        let other = (victim + 1) % 3;
        nodes[victim] = node(&scratch, victim, Some(&nodes[other])).unwrap();
        let rows = complete(&nodes[round % 2], &all);
        let mut found: Vec<&str> = rows.iter().map(|r| r["_msg"].as_str().unwrap()).collect();
        let count = found.len();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), count, "round {round}: a record is there twice");
        let missing = acked
            .iter()
            .filter(|name| found.binary_search(&name.as_str()).is_err());
        assert_eq!(
            missing.count(),
            0,
            "round {round}: acknowledged records are missing"
        );
        let known: std::collections::BTreeSet<&String> = sent.iter().collect();
        assert!(found.iter().all(|name| known.contains(&name.to_string())));
    }
    nodes.iter().for_each(hand_over);
    assert!(complete(&nodes[2], &all).len() >= acked.len());
    assert!(acked.len() >= 7_000, "too little load: {}", acked.len());
}

/// Runs a subcommand that must succeed.
fn run(arguments: &[&str]) {
    let output = Command::new(program()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// A directory with the certificate of a node, made by an authority.
fn certificate(scratch: &Scratch, authority: &str, name: &str) -> String {
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let (ca, out) = (path(authority), path(&format!("{authority}-{name}")));
    if !std::path::Path::new(&ca).exists() {
        run(&["cluster", "ca", "create", "--out", &ca]);
    }
    let address = ["--address", "127.0.0.1"];
    let rest = [
        "cluster",
        "certificate",
        "--ca",
        &ca,
        "--name",
        name,
        "--out",
        &out,
    ];
    run(&[&rest[..], &address[..]].concat());
    out
}

#[test]
fn nodes_know_each_other_by_their_certificates() {
    let scratch = Scratch::new("cluster-tls").unwrap();
    let start = |name: &str, authority: &str, join: &str| {
        let tls = certificate(&scratch, authority, name);
        let data = scratch.path().join(format!("data-{name}"));
        let gossip = [
            "--gossip",
            "127.0.0.1:0",
            "--replication",
            "2",
            "--cluster-tls",
            &tls,
        ];
        TestServer::start(program(), &data, &[&gossip[..], &["--join", join]].concat()).unwrap()
    };
    let first = start("first", "ours", "off");
    let join = first.address("gossip");
    let second = start("second", "ours", &join);
    push(&first, &records(0..RECORDS));
    push(&second, &records(RECORDS..2 * RECORDS));
    let all = format!("/api/v1/query?{ALL_TIME}&limit=0&q=");
    assert_eq!(complete(&second, &all).len(), 2 * RECORDS);
    hand_over(&first);
    assert_eq!(complete(&first, &all).len(), 2 * RECORDS);
    // One of another authority is told so, and gets nothing.
    let foreign = start("foreign", "theirs", &join);
    let answer = foreign
        .push("application/x-ndjson", records(0..1).as_bytes())
        .unwrap();
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert_eq!(complete(&first, &all).len(), 2 * RECORDS);
    // Its operator is told why, once, and so is who pushes.
    let why = format!("--join: {join} does not answer, and is asked again: its certificate is");
    foreign.said(&why);
    let answer = foreign
        .push("application/x-ndjson", records(0..1).as_bytes())
        .unwrap();
    let said = format!("{join}: its certificate is");
    assert!(answer.body.to_string().contains(&said), "{}", answer.body);
}

#[test]
fn a_batch_that_is_sent_again_to_another_node_is_there_once() {
    let scratch = Scratch::new("cluster-resend").unwrap();
    let nodes = three(&scratch);
    let epoch = "0123456789abcdef0123456789abcdef";
    let body = "again one\nagain two\n";
    // The answer of the first was lost on its way, say, and the second had no chance.
    push_named(&nodes[0], &format!("{epoch}-0-0@1772409600000"), body);
    push_named(&nodes[1], &format!("{epoch}-0-1@1772409600000"), body);
    push_named(
        &nodes[2],
        &format!("{epoch}-1-1@1772409600000"),
        "again three\n",
    );
    push_named(
        &nodes[1],
        &format!("{epoch}-1-2@1772409600000"),
        "again three\n",
    );
    let target = format!("/api/v1/query?{ALL_TIME}&limit=0&q=again");
    let count = format!("/api/v1/query?{ALL_TIME}&count=true&q=again");
    for handed_over in [false, true] {
        if handed_over {
            nodes.iter().for_each(hand_over);
        }
        for node in &nodes {
            let mut rows: Vec<Value> = complete(node, &target);
            rows.sort_by_key(|row| row["_msg"].as_str().unwrap().to_owned());
            let found: Vec<&str> = rows.iter().map(|r| r["_msg"].as_str().unwrap()).collect();
            assert_eq!(found, ["again one", "again three", "again two"]);
            assert_eq!(lines(node, &count).1["rows"], 3);
        }
    }
}

#[test]
fn a_node_that_has_not_met_all_does_not_claim_to_know_all() {
    let scratch = Scratch::new("cluster-unmet").unwrap();
    // A node that hears nobody: its address is taken, and nobody answers there.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let data = scratch.path().join("node-0");
    let extra = ["--gossip", "127.0.0.1:0", "--join", &address];
    let server = TestServer::start(program(), &data, &extra).unwrap();
    let all = format!("/api/v1/query?{ALL_TIME}&limit=0&q=");
    let (rows, trailer) = lines(&server, &all);
    assert!(rows.is_empty());
    assert_eq!(trailer["complete"], false, "{trailer}");
    let missing = trailer["missing"][0].as_str().unwrap();
    assert!(missing.contains(&address), "{trailer}");
    // One that was told of nobody is the first of its cluster.
    let first = node(&scratch, 1, None).unwrap();
    assert_eq!(complete(&first, &all).len(), 0);
    // Nor does it know all once it has met some: each could know what no other does.
    let join = format!("{},{address}", first.address("gossip"));
    let extra = ["--gossip", "127.0.0.1:0", "--join", &join];
    let server = TestServer::start(program(), &scratch.path().join("node-2"), &extra).unwrap();
    push(&first, &records(0..5));
    wait_until("it has met the other", || lines(&server, &all).0.len() == 5).unwrap();
    let (_, trailer) = lines(&server, &all);
    assert_eq!(trailer["complete"], false, "{trailer}");
    assert!(
        trailer["missing"][0].as_str().unwrap().contains(&address),
        "{trailer}"
    );
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
    let third = TestServer::start(program(), &data, &extra).unwrap();
    let answer = third
        .push("application/x-ndjson", records(0..5).as_bytes())
        .unwrap();
    assert_eq!(answer.status, 503, "{}", answer.body);
    let message = answer.body["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("before one of --join has answered"),
        "{message}"
    );
}

#[test]
fn the_files_of_all_nodes_are_listed() {
    let scratch = Scratch::new("cluster-segments").unwrap();
    let mut nodes = three(&scratch);
    let all = format!("/api/v1/query?{ALL_TIME}&limit=0&q=");
    assert_eq!(complete(&nodes[0], &all).len(), 3 * RECORDS);
    let (files, trailer) = lines(&nodes[0], "/api/v1/segments");
    assert_eq!(trailer["complete"], true, "{trailer}");
    let names: Vec<String> = nodes
        .iter()
        .map(|node| format!("node {}", node.address("gossip")))
        .collect();
    for name in &names {
        let own = files.iter().filter(|file| file["node"] == name.as_str());
        let rows = own.map(|file| file["rows"].as_u64().unwrap());
        assert!(rows.sum::<u64>() >= RECORDS as u64, "{name}: {files:?}");
    }
    nodes.pop().unwrap().kill();
    let (files, trailer) = lines(&nodes[0], "/api/v1/segments");
    assert_eq!(trailer["complete"], false, "{trailer}");
    assert_eq!(trailer["silent"][0], names[2].as_str(), "{trailer}");
    let silent = files.iter().find(|file| file["state"] == "no-answer");
    assert_eq!(silent.unwrap()["node"], names[2].as_str());
    let output = Command::new(program())
        .args(["segments", "--addr", &nodes[1].url()])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(names.iter().all(|name| table.contains(name)), "{table}");
    assert!(table.starts_with("node"), "{table}");
}

#[test]
fn strict_answers_are_complete_or_none() {
    let scratch = Scratch::new("cluster-strict").unwrap();
    let mut nodes = three(&scratch);
    let all = format!("/api/v1/query?{ALL_TIME}&limit=0&q=");
    assert_eq!(complete(&nodes[0], &all).len(), 3 * RECORDS);
    let targets = [
        all,
        format!("/api/v1/query?{ALL_TIME}&count=true&q="),
        format!("/api/v1/top?{ALL_TIME}&field=host&q="),
        format!("/api/v1/fields?{ALL_TIME}&q="),
        "/api/v1/histogram?from=2026-03-02T00:00:00Z&to=2026-03-02T01:00:00Z&step=5m&q=".into(),
    ];
    for target in &targets {
        let (strict, trailer) = lines(&nodes[0], &format!("{target}&strict=true"));
        assert_eq!(trailer["complete"], true, "{trailer}");
        assert_eq!(strict, lines(&nodes[0], target).0, "{target}");
    }
    nodes.pop().unwrap().kill();
    for target in &targets {
        let mut client = nodes[0].client().unwrap();
        let target = format!("{target}&strict=true");
        let response = client.send("GET", &target, &[], b"").unwrap();
        assert_eq!(response.status, 503, "{target}");
        let error: Value = serde_json::from_str(&response.text().unwrap()).unwrap();
        assert_eq!(error["error"]["code"], "incomplete");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("or later"), "{message}");
    }
    let followed = nodes[0].get("/api/v1/query?follow=true&strict=true");
    assert!(followed.unwrap_err().contains("status 400"));
    let commands = [
        &["query", ""][..],
        &["query", "", "-c"],
        &["query", "", "-n", "5"],
        &["top", "host"],
        &["fields"],
        &["histogram"],
    ];
    for command in commands {
        for strict in [true, false] {
            let flag = if strict { "--strict" } else { "--partial" };
            let output = Command::new(program())
                .args(command)
                .args([flag, "--since", "2026-03-01", "--addr", &nodes[1].url()])
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(3), "{command:?} {output:?}");
            assert_eq!(output.stdout.is_empty(), strict, "{command:?} {output:?}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("not complete"), "{command:?}: {said}");
        }
    }
}
