//! Nodes that do one thing each: what some take in others keep, and all answer for all.

use std::path::Path;
use std::process::Command;

use crate::members::{RECORDS, counts, push};
use crate::nodes::{hand_over, start_node};
use crate::pond::{ALL_TIME, Outcome, Scratch, TestServer, files_below};
use crate::surroundings::program;

fn start(
    scratch: &Scratch,
    role: &str,
    number: usize,
    join: Option<&TestServer>,
) -> Outcome<TestServer> {
    let data = scratch.path().join(format!("{role}-{number}"));
    start_node(&data, role, join, &[])
}

fn segment_rows(server: &TestServer) -> f64 {
    server.metric("logpond_segment_rows").unwrap()
}

#[test]
fn ingesters_take_stores_keep_and_all_answer() {
    let scratch = Scratch::new("roles").unwrap();
    let first = start(&scratch, "ingest", 0, None).unwrap();
    let second = start(&scratch, "ingest", 1, Some(&first)).unwrap();
    let stores = [0, 1].map(|n| start(&scratch, "store", n, Some(&first)).unwrap());
    let asked = start(&scratch, "query-node", 0, Some(&second)).unwrap();
    push(&first, "first");
    push(&second, "second");
    let all = [&first, &second, &stores[0], &stores[1], &asked];
    all.iter().for_each(|node| counts(node, 2 * RECORDS));
    for ingester in [&first, &second] {
        hand_over(ingester);
        assert_eq!(segment_rows(ingester), 0.0, "an ingester keeps no segments");
    }
    for store in &stores {
        assert_eq!(segment_rows(store), 2.0 * RECORDS as f64);
    }
    assert_eq!(segment_rows(&asked), 0.0);
    all.iter().for_each(|node| counts(node, 2 * RECORDS));
    // What a store has is not lost with the ingester; what else that had nobody knows.
    first.kill();
    let target = format!("/api/v1/query?{ALL_TIME}&count=true&q=first");
    let answer = asked.get(&target).unwrap();
    assert!(answer.contains(&format!("\"rows\":{RECORDS}")), "{answer}");
    assert!(answer.contains("\"complete\":false"), "{answer}");
    let back = start(&scratch, "ingest", 0, Some(&second)).unwrap();
    counts(&back, 2 * RECORDS);
}

#[test]
fn stores_and_query_nodes_take_nothing_and_say_who_does() {
    let scratch = Scratch::new("roles-refuse").unwrap();
    let ingester = start(&scratch, "ingest", 0, None).unwrap();
    let store = start(&scratch, "store", 0, Some(&ingester)).unwrap();
    let asked = start(&scratch, "query-node", 0, Some(&ingester)).unwrap();
    for node in [&store, &asked] {
        let refused = node.push("text/plain", b"a line\n").unwrap();
        assert_eq!(refused.status, 421);
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("logpond ingest"), "{message}");
    }
    // A forwarder that is told of several servers finds the one that takes records.
    let file = scratch.path().join("lines");
    std::fs::write(&file, "one\ntwo\n").unwrap();
    let addresses = format!("{},{},{}", store.url(), asked.url(), ingester.url());
    let forwarded = Command::new(program())
        .args(["forward", "--addr", &addresses])
        .arg(&file)
        .output()
        .unwrap();
    assert!(forwarded.status.success(), "{forwarded:?}");
    counts(&asked, 2);
}

/// Rules are those of the node that takes a record in, and hold wherever it is kept and asked for.
#[test]
fn rules_hold_for_what_a_node_takes_in() {
    let scratch = Scratch::new("roles-rules").unwrap();
    let rules = scratch.path().join("rules.toml");
    let text = "[[rule]]\nwhere = 'healthz'\ndrop = true\n\
                [[rule]]\nredact = ['password']\nadd = { team = 'shop' }\n";
    std::fs::write(&rules, text).unwrap();
    let flags = ["--rules", &rules.display().to_string()];
    let ruled = start_node(&scratch.path().join("ruled"), "ingest", None, &flags).unwrap();
    let plain = start(&scratch, "ingest", 1, Some(&ruled)).unwrap();
    let stores = [0, 1].map(|n| start(&scratch, "store", n, Some(&ruled)).unwrap());
    let asked = start(&scratch, "query-node", 0, Some(&ruled)).unwrap();
    let lines = |secret: &str| format!("GET /healthz\nlevel=info password={secret} user=ann\n");
    ruled
        .push("text/plain", lines("geheim").as_bytes())
        .unwrap();
    plain.push("text/plain", lines("offen").as_bytes()).unwrap();
    let check = || {
        counts(&asked, 3);
        counts(&stores[0], 3);
        let (rows, trailer) = asked.query("user=ann").unwrap();
        assert_eq!(trailer["complete"], true, "{trailer}");
        let mut told: Vec<_> = rows
            .iter()
            .map(|row| format!("{} {}", row["password"], row["team"]))
            .collect();
        told.sort();
        assert_eq!(told, ["\"REDACTED\" \"shop\"", "\"offen\" null"]);
    };
    check();
    hand_over(&ruled);
    hand_over(&plain);
    stores
        .iter()
        .for_each(|store| assert_eq!(segment_rows(store), 3.0));
    check();
    for file in files_below(scratch.path(), "") {
        let held = std::fs::read(&file).unwrap_or_default();
        let found = memchr::memmem::find(&held, b"geheim");
        assert!(found.is_none(), "it is in {}", file.display());
    }
}

#[test]
fn a_node_of_a_cluster_is_not_started_alone() {
    for role in ["ingest", "store", "query-node"] {
        let output = Command::new(program())
            .args([role, "--data", "never-made", "--http", "127.0.0.1:0"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("--gossip") && said.contains("--join"),
            "{said}"
        );
        assert!(!Path::new("never-made").exists());
    }
    let refused = Command::new(program())
        .args(["store", "--syslog-udp", "127.0.0.1:0"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
}
