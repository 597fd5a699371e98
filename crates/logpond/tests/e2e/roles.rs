//! Nodes that do one thing each: what some take in others keep, and all answer for all.

use std::path::Path;
use std::process::Command;

use crate::cluster::{hand_over, start_node};
use crate::members::{RECORDS, counts, push};
use crate::pond::{ALL_TIME, Outcome, Pond, Scratch};
use crate::surroundings::program;

fn start(scratch: &Scratch, role: &str, number: usize, join: Option<&Pond>) -> Outcome<Pond> {
    let data = scratch.path().join(format!("{role}-{number}"));
    start_node(&data, role, join, &[])
}

fn segment_rows(pond: &Pond) -> f64 {
    pond.metric("logpond_segment_rows").unwrap()
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
