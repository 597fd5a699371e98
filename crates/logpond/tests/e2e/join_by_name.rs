//! Nodes that are found by a name, as those of a headless service are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::nodes::{complete, push};
use crate::pond::{Outcome, Scratch, TestServer, wait_until};
use crate::surroundings::{program, skip};

/// A machine with names of its own: its processes read them from a file of the test.
struct Names {
    scratch: Scratch,
    file: PathBuf,
}

impl Names {
    /// `None` if this is not permitted here, which is said.
    fn new(name: &str) -> Option<Names> {
        let can_mount = Command::new("unshare").args(["--mount", "true"]).status();
        if !can_mount.is_ok_and(|status| status.success()) {
            skip(name, "mounting in a namespace is not permitted");
            return None;
        }
        let scratch = Scratch::new(name).unwrap();
        let file = scratch.path().join("hosts");
        let names = Names { scratch, file };
        names.write("");
        Some(names)
    }

    /// Writes lines of addresses and names into the file that is mounted.
    fn write(&self, lines: &str) {
        fs::write(&self.file, format!("127.0.0.1 localhost\n{lines}")).unwrap();
    }

    /// Starts a node that reads the names.
    fn start(&self, number: u8, port: u16, join: &str) -> Outcome<TestServer> {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-ec"])
            .arg("mount --bind \"$0\" /etc/hosts; exec \"$@\"")
            .arg(&self.file)
            .arg(program());
        let data = self.data(number);
        let gossip = format!("127.0.0.{number}:{port}");
        let flags = ["--gossip", &gossip, "--join", join, "--replication", "2"];
        TestServer::start_under(command, &data, &flags)
    }

    fn data(&self, number: u8) -> PathBuf {
        self.scratch.path().join(format!("node-{number}"))
    }
}

fn port_of(server: &TestServer) -> u16 {
    let address = server.address("gossip");
    address.rsplit(':').next().unwrap().parse().unwrap()
}

fn joined(data: &Path) -> bool {
    data.join("cluster/joined").is_file()
}

/// The name has the addresses of the first two nodes and one at which nobody listens. The third node's name has no
/// address when it starts.
#[test]
fn nodes_join_by_a_name_of_all() {
    let Some(names) = Names::new("nodes join by a name of all") else {
        return;
    };
    names.write("127.0.0.2 nodes.test\n127.0.0.3 nodes.test\n127.0.0.9 nodes.test\n");
    let first = names.start(2, 0, "off").unwrap();
    let port = port_of(&first);
    let of_all = format!("nodes.test:{port}");
    let second = names.start(3, port, &of_all).unwrap();
    push(&first, "{\"_msg\":\"one\"}\n");
    push(&second, "{\"_msg\":\"two\"}\n");
    assert_eq!(complete(&second, "/api/v1/query?q=*").len(), 2);

    let third = names.start(4, port, &format!("later.test:{port}")).unwrap();
    wait_until("the name is missed", || {
        third.stderr().contains("later.test")
    })
    .unwrap_or_else(|e| panic!("{e}: {}", third.stderr()));
    assert!(!joined(&names.data(4)));
    let refused = third.push("application/x-ndjson", b"{\"_msg\":\"three\"}\n");
    let refused = refused.unwrap();
    assert_eq!(refused.status, 503);
    let said = format!("{:?}", refused.body);
    assert!(
        said.contains("not_joined") && !said.contains("disk"),
        "{said}"
    );
    let trailer: Value = serde_json::from_str(
        third
            .get("/api/v1/query?q=*")
            .unwrap()
            .lines()
            .last()
            .unwrap(),
    )
    .unwrap();
    assert_eq!(trailer["_trailer"]["complete"], false, "{trailer}");
    names.write("127.0.0.3 later.test\n");
    push(&third, "{\"_msg\":\"three\"}\n");
    assert_eq!(complete(&third, "/api/v1/query?q=*").len(), 3);
    assert!(joined(&names.data(4)));
}

/// Nodes that are started at once with one list need no founder.
#[test]
fn nodes_with_one_list_found_a_cluster() {
    let Some(names) = Names::new("nodes with one list found a cluster") else {
        return;
    };
    names.write("127.0.0.5 all.test\n");
    let first = names.start(5, 0, "off").unwrap();
    let port = port_of(&first);
    first.terminate().unwrap();
    fs::remove_dir_all(names.data(5)).unwrap();
    let of_all = format!("all.test:{port}");
    let first = names.start(5, port, &of_all).unwrap();
    // The name is this node's alone: nobody has told it that there are no others.
    assert_eq!(
        first
            .push("application/x-ndjson", b"{\"_msg\":\"one\"}\n")
            .unwrap()
            .status,
        503
    );
    names.write("127.0.0.5 all.test\n127.0.0.6 all.test\n");
    let second = names.start(6, port, &of_all).unwrap();
    push(&first, "{\"_msg\":\"one\"}\n");
    push(&second, "{\"_msg\":\"two\"}\n");
    assert_eq!(complete(&first, "/api/v1/query?q=*").len(), 2);
}
