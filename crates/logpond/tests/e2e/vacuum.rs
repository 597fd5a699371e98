//! `logpond journal --vacuum-…`: the oldest files go when somebody asks for it.

use std::process::{Command, Output};

use crate::nodes::{RECORDS, complete, hand_over, lines, push, records, three};
use crate::pond::{ALL_TIME, Scratch, TestServer, files_below, wait_until};
use crate::surroundings::program;

fn journal(server: &TestServer, options: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.arg("journal").args(options);
    command.env("LOGPOND_ADDR", server.url()).output().unwrap()
}

/// What it says of a vacuum that succeeds.
fn vacuumed(server: &TestServer, options: &[&str]) -> String {
    let output = journal(server, options);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(output.stdout.is_empty());
    said
}

fn count(server: &TestServer) -> u64 {
    let (_, trailer) = lines(server, &format!("/api/v1/query?{ALL_TIME}&count=true&q="));
    assert_eq!(trailer["complete"], true, "{trailer}");
    trailer["rows"].as_u64().unwrap()
}

#[test]
fn what_is_old_goes_and_what_is_new_stays() {
    let scratch = Scratch::new("vacuum").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    push(&server, &records(0..RECORDS));
    // All that there is was received within a day, and is one file.
    server.compact().unwrap();
    for limit in [
        "--vacuum-time=1d",
        "--vacuum-size=1B",
        "--vacuum-files=1",
        "--vacuum-size=1T",
    ] {
        let said = vacuumed(&server, &[limit]);
        let nothing = "Vacuuming done, freed 0B of archived journals: 0 files with 0 records.\n";
        assert_eq!(said, nothing, "{limit}");
    }
    // What came last is in an open file, which stays.
    push(&server, &records(RECORDS..RECORDS + 7));
    let said = vacuumed(&server, &["--vacuum-time=1us"]);
    let removed = format!(" of archived journals: 1 file with {RECORDS} records.\n");
    assert!(said.ends_with(&removed), "{said}");
    assert_eq!(count(&server), 7);
    assert!(files_below(&data, ".parquet").is_empty());
    server.said(" were removed, as was asked for");
    // With all files closed everything goes.
    let said = vacuumed(&server, &["--rotate", "--vacuum-time=1us"]);
    assert!(said.ends_with("1 file with 7 records.\n"), "{said}");
    assert_eq!(count(&server), 0);
    assert_eq!(vacuumed(&server, &["--rotate"]), "");
    push(&server, &records(0..3));
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    let server = TestServer::start(program(), &data, &[]).unwrap();
    assert_eq!(count(&server), 3);
}

/// Small files are merged whenever there is time, so how many there are before is not known.
#[test]
fn the_newest_file_stays() {
    let scratch = Scratch::new("vacuum-limits").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let mut sent = 0;
    for limit in ["--vacuum-files=1", "--vacuum-size=1B"] {
        for _ in 0..3 {
            push(&server, &records(0..RECORDS));
            sent += RECORDS as u64;
            vacuumed(&server, &["--rotate"]);
        }
        let said = vacuumed(&server, &[limit]);
        let removed = said
            .split(" with ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        sent -= removed.unwrap().replace(',', "").parse::<u64>().unwrap();
        assert_eq!(count(&server), sent, "{limit}: {said}");
        assert!(sent >= RECORDS as u64, "{limit}: {said}");
        let (files, _) = lines(&server, "/api/v1/segments");
        assert_eq!(files.len(), 1, "{limit}: {files:?}");
    }
}

#[test]
fn what_is_no_limit_is_refused() {
    let scratch = Scratch::new("vacuum-refused").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    push(&server, &records(0..3));
    let table: [(&[&str], &str); 9] = [
        (&["--vacuum-time=0"], "parameter 'age'"),
        (&["--vacuum-time=-1h"], "parameter 'age'"),
        (&["--vacuum-time=soon"], "parameter 'age'"),
        (
            &["--vacuum-size=0"],
            "more than 0; leave it out for no limit",
        ),
        (&["--vacuum-size=10"], "the unit is missing; write `10GiB`"),
        (&["--vacuum-size=10%"], "expected a size such as 2GiB"),
        (&["--vacuum-files=many"], "expected a whole number"),
        (
            &["--vacuum-time=1d", "-u", "nginx"],
            "leave out what chooses records",
        ),
        (
            &["--rotate", "-D", "/var/log/journal"],
            "journalctl removes journal files",
        ),
    ];
    for (options, expected) in table {
        let output = journal(&server, options);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
        assert!(said.contains(expected), "{options:?}: {said}");
    }
    let mut client = server.client().unwrap();
    let answer = client.send("POST", "/api/v1/vacuum", &[], b"").unwrap();
    assert_eq!(answer.status, 400);
    assert_eq!(count(&server), 3);
}

/// Copies on other nodes count no more.
#[test]
fn what_a_node_of_a_cluster_removes_is_gone_for_all() {
    let scratch = Scratch::new("vacuum-cluster").unwrap();
    let nodes = three(&scratch);
    nodes.iter().for_each(hand_over);
    assert_eq!(count(&nodes[0]), 3 * RECORDS as u64);
    for node in &nodes {
        vacuumed(node, &["--rotate", "--vacuum-time=1us"]);
    }
    let target = format!("/api/v1/query?{ALL_TIME}&limit=0&q=");
    let is_gone = |node: &TestServer| complete(node, &target).is_empty();
    wait_until("all nodes know", || nodes.iter().all(is_gone)).unwrap();
}
