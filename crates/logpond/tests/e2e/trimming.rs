//! Segments that are superfluous in part: what enough other nodes hold is left out of them.

use std::fs;
use std::path::PathBuf;

use logpond_host::disk::RealDisk;
use logpond_record::{Id, SourceId};
use logpond_segment::build::{self, DIRECTORY, SUFFIX_LIVE};
use logpond_segment::file::{Profile, SegmentFile};
use logpond_segment::sources::SourceSet;

use crate::members::{RECORDS, counts, push};
use crate::nodes::{hand_over, start_node};
use crate::pond::{Scratch, TestServer, wait_until};

const NODES: usize = 4;

fn data(scratch: &Scratch, number: usize) -> PathBuf {
    scratch.path().join(format!("node-{number}"))
}

/// Starts all nodes; a node that is away is waited for, and what is superfluous looked at, for some
/// seconds only.
fn start(scratch: &Scratch) -> Vec<TestServer> {
    let mut nodes: Vec<TestServer> = Vec::new();
    for number in 0..NODES {
        let more = ["--repair-after", "10s"];
        let node = start_node(&data(scratch, number), "serve", nodes.first(), &more);
        nodes.push(node.unwrap());
    }
    nodes
}

/// Gives the first two nodes a segment of the first three sources, and the others one of the last two:
/// as if two stores had made segments of the same journal files, of which the third is in both.
fn overlap(scratch: &Scratch) {
    let disks: Vec<RealDisk> = (0..NODES)
        .map(|number| RealDisk::open(&data(scratch, number)).unwrap())
        .collect();
    let found = |disk| build::open_all(disk).unwrap().live;
    let all: Vec<SegmentFile> = disks.iter().flat_map(|disk| found(disk)).collect();
    build::merge(&disks[0], Id(1), &all, Profile::Hot, &|| false).unwrap();
    let merged = build::open(&disks[0], Id(1)).unwrap();
    let entries = merged.manifest().sources.iter();
    let sources: Vec<SourceId> = entries.map(|entry| entry.source).collect();
    assert_eq!(
        sources.len(),
        NODES,
        "each node has written one journal file"
    );
    let names: Vec<Id> = all.iter().map(|segment| segment.manifest().id).collect();
    drop(all);
    for (number, disk) in disks.iter().enumerate() {
        let (id, left_out) = match number {
            0 | 1 => (Id(2), &sources[3..]),
            _ => (Id(3), &sources[..2]),
        };
        let left_out: SourceSet = left_out.iter().copied().collect();
        build::trim(disk, id, &merged, &left_out, Profile::Hot, &|| false).unwrap();
        for name in names.iter().chain([&Id(1)]) {
            let path = data(scratch, number).join(DIRECTORY);
            // Not all of them are here.
            let _ = fs::remove_file(path.join(format!("{name}{SUFFIX_LIVE}")));
        }
    }
}

fn rows(node: &TestServer) -> usize {
    node.metric("logpond_segment_rows").unwrap() as usize
}

fn sum(nodes: &[TestServer], metric: &str) -> f64 {
    nodes.iter().map(|node| node.metric(metric).unwrap()).sum()
}

#[test]
fn what_two_groupings_share_is_left_with_two_nodes() {
    let scratch = Scratch::new("trimming").unwrap();
    let nodes = start(&scratch);
    for (number, node) in nodes.iter().enumerate() {
        push(node, &format!("node-{number}"));
        hand_over(node);
    }
    for node in &nodes {
        counts(node, NODES * RECORDS);
    }
    for node in nodes {
        assert!(node.terminate().unwrap().success());
    }
    overlap(&scratch);
    let nodes = start(&scratch);
    let said = || nodes.iter().map(TestServer::stderr).collect::<Vec<_>>();
    let mut checked = 0;
    wait_until("there are two copies of everything", || {
        // Whatever stage it is at, each record counts once.
        counts(&nodes[checked % NODES], NODES * RECORDS);
        checked += 1;
        nodes.iter().map(rows).sum::<usize>() == 2 * NODES * RECORDS
    })
    .unwrap_or_else(|e| {
        panic!(
            "{e}: {:?} {:#?}",
            nodes.iter().map(rows).collect::<Vec<_>>(),
            said()
        )
    });
    let trimmed = sum(&nodes, "logpond_repair_trimmed_sources_total");
    assert!(trimmed >= 1.0, "{:#?}", said());
    // On a machine that is so slow that nodes gave each other up meanwhile, others may have it. So they may if a node made
    // a segment of a journal file again before it heard that two nodes have one.
    let further = [
        "logpond_repair_copies_total",
        "logpond_handoff_consumed_files_total",
    ];
    if further.iter().all(|metric| sum(&nodes, metric) == 0.0) {
        let held: Vec<usize> = nodes.iter().map(rows).collect();
        assert_eq!(held, [3, 3, 1, 1].map(|sources| sources * RECORDS));
        assert_eq!(trimmed, 2.0);
        assert!(sum(&nodes, "logpond_repair_trimmed_bytes_total") > 0.0);
    }
    for node in &nodes {
        counts(node, NODES * RECORDS);
    }
}
