//! A bucket behind the nodes of a cluster: it holds what no disk holds any more, whoever is lost.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use serde_json::Value;

use crate::members::{cluster, counts};
use crate::nodes::{RECORDS, hand_over, push, records, start_node};
use crate::pond::{Scratch, TestServer, files_below, wait_until};
use crate::s3::{Gate, S3Server};
use crate::surroundings::{program, python};

/// A bucket in a directory, and nodes that have it.
struct BucketCluster {
    scratch: Scratch,
    nodes: Vec<TestServer>,
    /// Their data directories.
    disks: Vec<PathBuf>,
    started: usize,
}

impl BucketCluster {
    fn new(name: &str) -> BucketCluster {
        BucketCluster {
            scratch: Scratch::new(name).unwrap(),
            nodes: Vec::new(),
            disks: Vec::new(),
            started: 0,
        }
    }

    fn bucket(&self) -> PathBuf {
        self.scratch.path().join("bucket")
    }

    fn add(&mut self, role: &str) {
        let url = format!("file:{}", self.bucket().display());
        let data = self.scratch.path().join(format!("node-{}", self.started));
        let node = start_node(&data, role, self.nodes.last(), &["--bucket", &url]);
        self.nodes.push(node.unwrap());
        self.disks.push(data);
        self.started += 1;
    }

    /// The last link of each day.
    fn heads(&self) -> Vec<Value> {
        let mut links = files_below(&self.bucket().join("m"), ".json");
        links.sort();
        let heads = links.into_iter().map(|path| {
            let day = path.parent().unwrap().to_owned();
            (day, path)
        });
        let heads: BTreeMap<PathBuf, PathBuf> = heads.collect();
        let read = |path: &PathBuf| serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        heads.values().map(read).collect()
    }

    fn segments(&self) -> Vec<Value> {
        let heads = self.heads().into_iter();
        heads
            .flat_map(|mut head| head["segments"].take().as_array().unwrap().clone())
            .collect()
    }

    fn until_listed(&self, rows: usize) {
        let listed = || {
            let segments = self.segments();
            let rows = segments.iter().map(|s| s["rows"].as_u64().unwrap());
            rows.sum::<u64>()
        };
        wait_until("everything is in the bucket", || listed() == rows as u64)
            .unwrap_or_else(|e| panic!("{e}: {} of {rows}: {}", listed(), self.said()));
    }

    fn said(&self) -> String {
        self.nodes.iter().map(TestServer::stderr).collect()
    }

    /// A node loses its disk and never comes back.
    fn lose(&mut self, at: usize) -> String {
        let node = self.nodes.remove(at);
        let name = node.address("gossip");
        node.kill();
        fs::remove_dir_all(self.disks.remove(at)).unwrap();
        name
    }

    fn forget(&self, name: &str) {
        wait_until("it is given up", || {
            let forgotten = cluster(&self.nodes[0], &["forget", name]);
            forgotten.status.success()
        })
        .unwrap_or_else(|e| panic!("{e}: {}", self.said()));
    }
}

/// The segments on the disk of a node.
fn on_disk(data: &Path) -> Vec<PathBuf> {
    files_below(&data.join("segments"), ".parquet")
}

#[test]
fn what_the_bucket_lists_outlives_all_disks_but_one() {
    let mut shared = BucketCluster::new("bucket-cluster");
    (0..3).for_each(|_| shared.add("serve"));
    for (number, node) in shared.nodes.iter().enumerate() {
        push(node, &records((number..3 * RECORDS).step_by(3)));
    }
    shared.nodes.iter().for_each(hand_over);
    shared.until_listed(3 * RECORDS);
    shared.nodes.iter().for_each(|n| counts(n, 3 * RECORDS));
    // A second copy on a disk is kept no longer than it is needed.
    wait_until("each segment is on one disk", || {
        let files = shared.disks.iter().map(|disk| on_disk(disk).len());
        files.sum::<usize>() <= shared.segments().len()
    })
    .unwrap_or_else(|e| panic!("{e}: {}", shared.said()));
    for _ in 0..2 {
        let name = shared.lose(1);
        shared.forget(&name);
        counts(&shared.nodes[0], 3 * RECORDS);
    }
    // Nor is anything left but the bucket in the end: a cluster of its own begins with it.
    shared.add("serve");
    counts(&shared.nodes[1], 3 * RECORDS);
    let name = shared.lose(0);
    shared.forget(&name);
    counts(&shared.nodes[0], 3 * RECORDS);
    shared.lose(0);
    shared.add("serve");
    counts(&shared.nodes[0], 3 * RECORDS);
}

#[test]
fn nodes_with_one_role_each_share_a_bucket() {
    let mut shared = BucketCluster::new("bucket-roles");
    for role in ["ingest", "store", "store", "query-node"] {
        shared.add(role);
    }
    for round in 0..3 {
        let numbers = round * RECORDS..(round + 1) * RECORDS;
        push(&shared.nodes[0], &records(numbers));
        hand_over(&shared.nodes[0]);
        // Both stores merge what they have, and one of them is first.
        thread::scope(|scope| {
            for store in &shared.nodes[1..3] {
                scope.spawn(|| store.compact().unwrap());
            }
        });
        shared.until_listed((round + 1) * RECORDS);
        for node in &shared.nodes {
            counts(node, (round + 1) * RECORDS);
        }
    }
    for _ in 0..2 {
        let name = shared.lose(1);
        shared.forget(&name);
    }
    for node in &shared.nodes {
        counts(node, 3 * RECORDS);
    }
}

/// It has the same bucket and other settings: nobody told it that the bucket is behind a cluster.
#[test]
fn what_a_server_beside_the_cluster_lets_go_is_missed_nowhere() {
    let mut shared = BucketCluster::new("bucket-beside");
    (0..2).for_each(|_| shared.add("serve"));
    push(&shared.nodes[0], &records(0..RECORDS));
    shared.nodes.iter().for_each(hand_over);
    shared.until_listed(RECORDS);
    let url = format!("file:{}", shared.bucket().display());
    let data = shared.scratch.path().join("beside");
    let flags = ["--bucket", &url, "--retain-age", "1ms"];
    let flags = [&flags[..], &["--confirm-retention"]].concat();
    let beside = TestServer::start(program(), &data, &flags).unwrap();
    shared.until_listed(0);
    for node in &shared.nodes {
        wait_until("it has expired here, too", || {
            let (rows, trailer) = node.query("").unwrap();
            (rows.len(), trailer["complete"] == true) == (0, true)
        })
        .unwrap_or_else(|e| panic!("{e}: {:?}: {}", node.query(""), shared.said()));
    }
    beside.terminate().unwrap();
    // What comes from now on counts as ever.
    push(&shared.nodes[1], &records(RECORDS..2 * RECORDS));
    shared.nodes.iter().for_each(hand_over);
    shared.nodes.iter().for_each(|node| counts(node, RECORDS));
}

/// A node of a cluster that keeps one copy, in a store at this endpoint.
fn with_one_copy(store: SocketAddr, data: &Path) -> TestServer {
    let mut command = Command::new(program());
    for (name, value) in [
        ("AWS_ENDPOINT_URL", format!("http://{store}")),
        ("AWS_REGION", "us-east-1".to_string()),
        ("AWS_ACCESS_KEY_ID", "test".to_string()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_string()),
    ] {
        command.env(name, value);
    }
    let mut flags = vec!["--gossip", "127.0.0.1:0", "--replication", "1"];
    flags.extend(["--bucket", "s3://logs/pond"]);
    TestServer::start_under(command, data, &flags).unwrap()
}

#[test]
fn one_copy_is_the_one_in_the_bucket() {
    let Some(python) = python("a cluster with one copy in a bucket") else {
        return;
    };
    let s3 = S3Server::start(&python);
    let gate = Gate::before(s3.address());
    let scratch = Scratch::new("bucket-one-copy").unwrap();
    let data = scratch.path().join("node");
    let node = with_one_copy(gate.address(), &data);
    push(&node, &records(0..RECORDS));
    hand_over(&node);
    assert_eq!(s3.listed_rows("pond"), RECORDS as u64);
    gate.close();
    push(&node, &records(RECORDS..2 * RECORDS));
    // This ends when everything has been handed over, or after a time.
    node.compact().unwrap();
    counts(&node, 2 * RECORDS);
    // It is in a segment by now, and the journal is there still.
    assert_eq!(
        node.metric("logpond_segment_rows"),
        Ok(2.0 * RECORDS as f64)
    );
    let journal = files_below(&data.join("journal"), ".journal");
    assert!(!journal.is_empty());
    assert!(node.metric("logpond_unreplicated_bytes").unwrap() > 0.0);
    gate.open();
    wait_until("the journal is let go", || {
        node.metric("logpond_unreplicated_bytes") == Ok(0.0)
    })
    .unwrap();
    assert_eq!(s3.listed_rows("pond"), 2 * RECORDS as u64);
}
