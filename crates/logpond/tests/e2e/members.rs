//! Nodes that come, go, and are gone: there stay as many copies as there are to be.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::damage::copy_directory;
use crate::nodes::{hand_over, start_node};
use crate::pond::{ALL_TIME, Scratch, TestServer, wait_until};
use crate::surroundings::program;

/// Records of each node that takes some in.
pub(crate) const RECORDS: usize = 200;

/// A cluster in a directory.
struct Cluster {
    scratch: Scratch,
    nodes: Vec<TestServer>,
    flags: [&'static str; 2],
}

impl Cluster {
    /// So many nodes with two copies of everything.
    fn new(name: &str, count: usize, repair_after: &'static str) -> Cluster {
        Cluster::start_all(name, count, ["--repair-after", repair_after])
    }

    /// The same, each of which reads all its segments in this time.
    fn scrubbed(name: &str, count: usize, every: &'static str) -> Cluster {
        Cluster::start_all(name, count, ["--scrub-every", every])
    }

    fn start_all(name: &str, count: usize, flags: [&'static str; 2]) -> Cluster {
        let mut cluster = Cluster {
            scratch: Scratch::new(name).unwrap(),
            nodes: Vec::new(),
            flags,
        };
        for number in 0..count {
            let node = cluster.start(number);
            cluster.nodes.push(node);
        }
        cluster
    }

    fn start(&self, number: usize) -> TestServer {
        self.start_with(number, &[])
    }

    fn start_with(&self, number: usize, settings: &[&str]) -> TestServer {
        let data = self.scratch.path().join(format!("node-{number}"));
        let settings = [&self.flags[..], settings].concat();
        start_node(&data, "serve", self.nodes.first(), &settings).unwrap()
    }

    /// Each node takes some records, and hands them on.
    fn fill(&self) {
        for (number, node) in self.nodes.iter().enumerate() {
            push(node, &format!("node-{number}"));
            hand_over(node);
        }
        for node in &self.nodes {
            counts(node, self.nodes.len() * RECORDS);
        }
    }
}

impl Cluster {
    /// Has the first node take records that make a segment long enough that it is not read as a whole
    /// when it is opened. Gives how many records there are then.
    fn fill_with_noise(&self) -> usize {
        let noise =
            (0..20_000u64).map(|n| format!("{:016x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let noise: String = noise.collect();
        let pushed = self.nodes[0].push("text/plain", noise.as_bytes()).unwrap();
        assert_eq!(pushed.status, 200);
        hand_over(&self.nodes[0]);
        20_000 + self.nodes.len() * RECORDS
    }

    /// The longest live segment of a node, with its length.
    fn longest(&self, number: usize) -> (u64, PathBuf) {
        let segments = self.scratch.path().join(format!("node-{number}/segments"));
        let files = std::fs::read_dir(segments).unwrap();
        let files = files.map(|entry| entry.unwrap().path());
        let live = files.filter(|path| path.extension().is_some_and(|end| end == "parquet"));
        let sized = live.filter_map(|path| Some((path.metadata().ok()?.len(), path)));
        sized.max().unwrap()
    }

    /// Damages the longest segment of a node. The pages come first; the footer, which says what is in
    /// the file, stays whole.
    fn damage(&self, number: usize) {
        let (bytes, path) = self.longest(number);
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&[0xa5; 64], bytes / 2).unwrap();
    }
}

/// Has a node take [`RECORDS`] records that begin so.
pub(crate) fn push(server: &TestServer, name: &str) {
    let lines: String = (0..RECORDS).map(|n| format!("{name} {n}\n")).collect();
    let mut last = String::new();
    wait_until("the node takes records", || {
        let answer = server.push("text/plain", lines.as_bytes());
        last = format!("{:?}", answer.as_ref().map(|a| (a.status, a.body.clone())));
        answer.is_ok_and(|answer| answer.status == 200)
    })
    .unwrap_or_else(|e| panic!("{e}: {last}"));
}

/// Waits until a node counts so many records, in a complete answer.
pub(crate) fn counts(server: &TestServer, expected: usize) {
    let target = format!("/api/v1/query?{ALL_TIME}&count=true&q=");
    let mut last = String::new();
    wait_until("all is counted", || {
        last = server.get(&target).unwrap();
        let trailer: Value = serde_json::from_str(last.trim()).unwrap();
        let trailer = &trailer["_trailer"];
        trailer["complete"] == true && trailer["rows"] == expected
    })
    .unwrap_or_else(|e| panic!("{e}: {last}"));
}

/// Rows in the segments of some nodes.
fn stored(nodes: &[TestServer]) -> usize {
    let rows = nodes.iter().map(|node| node.metric("logpond_segment_rows"));
    rows.map(|rows| rows.unwrap() as usize).sum()
}

fn waits_for(what: &str, nodes: &[TestServer], mut is_so: impl FnMut() -> bool) {
    wait_until(what, &mut is_so).unwrap_or_else(|e| {
        let said: Vec<String> = nodes.iter().map(TestServer::stderr).collect();
        panic!("{e}: {} rows: {said:#?}", stored(nodes));
    });
}

pub(crate) fn cluster(server: &TestServer, arguments: &[&str]) -> Output {
    Command::new(program())
        .arg("cluster")
        .args(arguments)
        .args(["--addr", &server.url()])
        .output()
        .unwrap()
}

fn status(server: &TestServer) -> Value {
    serde_json::from_str(&server.get("/api/v1/cluster").unwrap()).unwrap()
}

#[test]
fn copies_of_a_lost_node_are_made_anew() {
    let mut cluster = Cluster::new("members-repair", 3, "1s");
    cluster.fill();
    cluster.nodes.pop().unwrap().kill();
    std::fs::remove_dir_all(cluster.scratch.path().join("node-2")).unwrap();
    let nodes = &cluster.nodes;
    // Two nodes are left for two copies: each has everything in the end.
    waits_for("there are two copies again", nodes, || {
        nodes
            .iter()
            .all(|node| node.metric("logpond_segment_rows") == Ok(3.0 * RECORDS as f64))
    });
    waits_for("nothing lacks copies", nodes, || {
        status(&nodes[0])["copies_lacking"] == 0
    });
}

#[test]
fn a_node_that_comes_back_costs_no_copies() {
    let mut cluster = Cluster::new("members-back", 3, "1h");
    cluster.fill();
    let before = stored(&cluster.nodes);
    cluster.nodes.pop().unwrap().kill();
    let lacking = status(&cluster.nodes[0])["copies_lacking"].clone();
    let back = cluster.start(2);
    cluster.nodes.push(back);
    for node in &cluster.nodes {
        counts(node, 3 * RECORDS);
        assert_eq!(
            node.metric("logpond_repair_copies_total"),
            Ok(0.0),
            "{lacking}"
        );
    }
    assert_eq!(stored(&cluster.nodes), before);
}

#[test]
fn a_node_leaves_with_nothing_lost() {
    let mut cluster = Cluster::new("members-drain", 3, "1h");
    cluster.fill();
    // What is still in its journal goes along.
    push(&cluster.nodes[2], "late");
    let leaving = cluster.nodes.pop().unwrap();
    let name = leaving.address("gossip");
    let said = self::cluster(&cluster.nodes[0], &["drain", &name, "--wait"]);
    assert!(said.status.success(), "{said:?} {}", leaving.stderr());
    let status_code = leaving.ended().unwrap();
    assert!(status_code.success(), "{status_code}");
    let nodes = &cluster.nodes;
    for node in nodes {
        counts(node, 4 * RECORDS);
    }
    assert_eq!(stored(nodes), 2 * 4 * RECORDS);
    let left = status(&nodes[1]);
    let states: Vec<&Value> = left["nodes"].as_array().unwrap().iter().collect();
    assert_eq!(states.len(), 3, "{left}");
    assert_eq!(states[2]["state"], "forgotten", "{left}");
    // It may come again, with an empty hand.
    let back = cluster.start(2);
    counts(&back, 4 * RECORDS);
    push(&back, "again");
    counts(&cluster.nodes[0], 5 * RECORDS);
}

#[test]
fn a_node_that_leaves_takes_nothing_and_may_stay() {
    // The only other node is too few for two copies: it cannot get away.
    let cluster = Cluster::new("members-stay", 2, "1h");
    cluster.fill();
    let leaving = &cluster.nodes[1];
    assert!(self::cluster(leaving, &["drain"]).status.success());
    let mut taken = 0;
    waits_for("it refuses records", &cluster.nodes, || {
        let answer = leaving.push("text/plain", b"more\n").unwrap();
        taken += answer.accepted() as usize;
        answer.status == 503 && answer.body["error"]["code"] == "leaving"
    });
    waits_for("it is shown as leaving", &cluster.nodes, || {
        let shown = self::cluster(&cluster.nodes[0], &["status"]);
        String::from_utf8_lossy(&shown.stdout).contains("is leaving: ")
    });
    assert!(
        self::cluster(leaving, &["drain", "--cancel"])
            .status
            .success()
    );
    waits_for("it takes records again", &cluster.nodes, || {
        leaving.push("text/plain", b"more\n").unwrap().status == 200
    });
    for node in &cluster.nodes {
        counts(node, 2 * RECORDS + taken + 1);
    }
}

#[test]
fn a_node_that_is_gone_is_forgotten_and_waited_for_no_more() {
    let mut cluster = Cluster::new("members-forget", 3, "1h");
    cluster.fill();
    let gone = cluster.nodes.pop().unwrap();
    let name = gone.address("gossip");
    let refused = self::cluster(&cluster.nodes[0], &["forget", &name]);
    assert_eq!(refused.status.code(), Some(2), "it is there");
    gone.kill();
    let nodes = &cluster.nodes;
    let target = format!("/api/v1/query?{ALL_TIME}&count=true&q=");
    let answer = nodes[0].get(&target).unwrap();
    assert!(answer.contains("\"complete\":false"), "{answer}");
    let shown = self::cluster(&nodes[0], &["status"]);
    assert_eq!(shown.status.code(), Some(3));
    waits_for("it is given up", nodes, || {
        self::cluster(&nodes[0], &["forget", &name])
            .status
            .success()
    });
    let again = self::cluster(&nodes[0], &["forget", &name]);
    assert!(
        again.status.success(),
        "asking again is no mistake: {again:?}"
    );
    // All it had was handed on; and its copies are made up for at once.
    for node in nodes {
        counts(node, 3 * RECORDS);
    }
    waits_for("there are two copies again", nodes, || {
        stored(nodes) == 2 * 3 * RECORDS
    });
    // It was not dead after all.
    let back = cluster.start(2);
    for node in [&back, &cluster.nodes[0]] {
        counts(node, 3 * RECORDS);
    }
    // One copy too many of what it has goes again.
    cluster.nodes.push(back);
    let unknown = self::cluster(&cluster.nodes[0], &["forget", "nobody"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains(&cluster.nodes[1].address("gossip")));
}

/// Starts a node with an empty disk at an address where another one was.
fn start_at(cluster: &Cluster, name: &str, address: &str) -> TestServer {
    let data = cluster.scratch.path().join(name);
    let join = cluster.nodes[0].address("gossip");
    let mut flags = vec!["--gossip", address, "--replication", "2", "--join", &join];
    flags.extend(cluster.flags);
    TestServer::start_as(program(), "serve", &data, &flags).unwrap()
}

/// The nodes as one of them sees them: ids, addresses and states.
fn states(server: &TestServer) -> Vec<[String; 3]> {
    let status = status(server);
    let nodes = status["nodes"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    nodes
        .map(|node| [&node["node"], &node["address"], &node["state"]].map(text))
        .collect()
}

#[test]
fn who_answers_at_the_address_of_a_node_is_not_taken_for_it() {
    let mut cluster = Cluster::new("members-address", 3, "1h");
    cluster.fill();
    let gone = cluster.nodes.pop().unwrap();
    let address = gone.address("gossip");
    let all = states(&cluster.nodes[0]);
    let [id, ..] = all.iter().find(|node| node[1] == address).unwrap().clone();
    gone.kill();
    let other = start_at(&cluster, "other", &address);
    let nodes = &cluster.nodes;
    waits_for("both are shown", nodes, || {
        let all = states(&nodes[0]);
        let at_address = all.iter().filter(|node| node[1] == address);
        let mut seen: Vec<(bool, &str)> = at_address.map(|n| (n[0] == id, &*n[2])).collect();
        seen.sort_unstable();
        seen == [(false, "live"), (true, "gone")]
    });
    let target = format!("/api/v1/query?{ALL_TIME}&count=true&q=");
    let answer = nodes[0].get(&target).unwrap();
    assert!(answer.contains("\"complete\":false"), "{answer}");
    let shown = self::cluster(&nodes[0], &["status"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let advice = format!("logpond cluster forget {id}\n");
    assert!(
        shown.contains(&advice) && shown.contains("another node ("),
        "{shown}"
    );
    let shared = self::cluster(&nodes[0], &["forget", &address]);
    assert_eq!(shared.status.code(), Some(2), "{shared:?}");
    waits_for("it is given up", nodes, || {
        self::cluster(&nodes[0], &["forget", &id]).status.success()
    });
    for node in nodes.iter().chain([&other]) {
        counts(node, 3 * RECORDS);
    }
    // The other one takes part.
    push(&other, "other");
    counts(&nodes[1], 4 * RECORDS);
}

#[test]
fn a_node_that_has_left_is_never_missing() {
    let mut cluster = Cluster::new("members-left", 3, "1h");
    cluster.fill();
    let leaving = cluster.nodes.pop().unwrap();
    let address = leaving.address("gossip");
    let said = self::cluster(&cluster.nodes[0], &["drain", &address, "--wait"]);
    assert!(said.status.success(), "{said:?} {}", leaving.stderr());
    assert!(leaving.ended().unwrap().success());
    let other = start_at(&cluster, "other", &address);
    for node in cluster.nodes.iter().chain([&other]) {
        counts(node, 3 * RECORDS);
    }
    let all = states(&other);
    let at_address = all.iter().filter(|node| node[1] == address);
    let mut seen: Vec<&str> = at_address.map(|node| &*node[2]).collect();
    seen.sort_unstable();
    assert_eq!(seen, ["forgotten", "live"], "{all:?}");
    let shown = self::cluster(&cluster.nodes[0], &["status"]);
    assert!(!String::from_utf8_lossy(&shown.stdout).contains("is gone"));
}

/// Both have the name of one node, and only one of them is asked.
#[test]
fn a_copied_data_directory_is_said_until_it_is_another_node() {
    let mut cluster = Cluster::new("members-twins", 2, "1h");
    cluster.fill();
    let path = |name: &str| cluster.scratch.path().join(name);
    let (own, copy) = (path("node-1"), path("copy"));
    assert!(cluster.nodes.pop().unwrap().terminate().unwrap().success());
    copy_directory(&own, &copy);
    let start = |data: &Path| {
        let first = cluster.nodes.first();
        start_node(data, "serve", first, &cluster.flags).unwrap()
    };
    let twins = [start(&own), start(&copy)];
    for (number, twin) in twins.iter().enumerate() {
        push(twin, &format!("twin-{number}"));
    }
    let addresses = twins.each_ref().map(|twin| twin.address("gossip"));
    let target = format!("/api/v1/query?{ALL_TIME}&count=true&q=");
    for node in cluster.nodes.iter().chain(&twins) {
        waits_for(
            "an answer says so",
            std::slice::from_ref(&cluster.nodes[0]),
            || {
                let answer = node.get(&target).unwrap();
                let names_all = addresses.iter().all(|address| answer.contains(address));
                answer.contains("copies of one data directory") && names_all
            },
        );
        waits_for("the log says so", &cluster.nodes, || {
            node.stderr()
                .contains("run on copies of one data directory")
        });
    }
    for twin in twins {
        assert!(twin.terminate().unwrap().success());
    }
    std::fs::remove_file(copy.join("cluster/node")).unwrap();
    let nodes = [start(&own), start(&copy)];
    for node in nodes.iter().chain(&cluster.nodes) {
        counts(node, 4 * RECORDS);
    }
}

/// A bad page costs one answer: then another copy is read, and a new one made.
#[test]
fn a_damaged_copy_is_made_anew() {
    let cluster = Cluster::new("members-damage", 2, "1h");
    cluster.fill();
    let expected = cluster.fill_with_noise();
    cluster.damage(0);
    let nodes = &cluster.nodes;
    let all = format!("/api/v1/query?{ALL_TIME}&limit=0&q=");
    let damaged = nodes[0].get(&all).unwrap();
    let trailer = damaged.lines().last().unwrap();
    assert!(trailer.contains("wrong checksum"), "{trailer}");
    let rows = |node: &TestServer| node.query("").unwrap().0.len();
    waits_for("all rows are read again", nodes, || {
        nodes.iter().all(|node| rows(node) == expected)
    });
    // Its rows are read elsewhere before it is counted.
    waits_for("the damaged copy is given up", nodes, || {
        nodes[0].metric("logpond_repair_damaged_total") == Ok(1.0)
    });
    waits_for("there are two copies again", nodes, || {
        stored(nodes) == 2 * expected
    });
    for node in nodes {
        counts(node, expected);
    }
}

/// A bit that nobody asks for is found in time: the copy is given up and made anew, and every answer
/// is complete meanwhile.
#[test]
fn a_scrub_has_a_damaged_copy_made_anew_before_anybody_asks() {
    let cluster = Cluster::scrubbed("members-scrub", 3, "1s");
    cluster.fill();
    let expected = cluster.fill_with_noise();
    // A merge reads everything, too; none is left to be made.
    cluster.nodes.iter().for_each(hand_over);
    // Which of the nodes it was sent to depends on who was first.
    let damaged = (0..3).max_by_key(|number| cluster.longest(*number).0);
    let damaged = damaged.unwrap();
    let (bytes, path) = cluster.longest(damaged);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, bytes / 2).unwrap();
    file.write_all_at(&[byte[0] ^ 1], bytes / 2).unwrap();
    let nodes = &cluster.nodes;
    waits_for("the damaged copy is given up", nodes, || {
        nodes.iter().for_each(|node| is_whole(node, expected));
        nodes[damaged].metric("logpond_repair_damaged_total") == Ok(1.0)
    });
    assert_eq!(
        nodes[damaged].metric("logpond_scrub_damaged_total"),
        Ok(1.0)
    );
    // Of what was in a segment with it there may be a third copy then.
    waits_for("there are two copies again", nodes, || {
        nodes.iter().for_each(|node| is_whole(node, expected));
        let lacks = |node: &TestServer| status(node)["copies_lacking"] != 0;
        stored(nodes) >= 2 * expected && !nodes.iter().any(lacks)
    });
    let rows = |node: &TestServer| node.query("").unwrap().0.len();
    assert!(nodes.iter().all(|node| rows(node) == expected));
}

/// Counts all that is there, in one answer; no page is read for that.
fn is_whole(node: &TestServer, expected: usize) {
    let target = format!("/api/v1/query?{ALL_TIME}&count=true&q=");
    let answer = node.get(&target).unwrap();
    let trailer: Value = serde_json::from_str(answer.trim()).unwrap();
    let trailer = &trailer["_trailer"];
    assert_eq!(trailer["rows"], expected, "{trailer}");
    assert_eq!(trailer["complete"], true, "{trailer}");
}

/// What a node took in after the image was taken is named as lost, also after its next start, and
/// answers do not wait for it.
#[test]
fn a_disk_that_comes_back_as_it_was_says_what_is_lost() {
    let mut cluster = Cluster::new("members-image", 2, "1h");
    cluster.fill();
    let data = cluster.scratch.path().join("node-1");
    let image = cluster.scratch.path().join("image");
    cluster.nodes.pop().unwrap().terminate().unwrap();
    let copy = |from: &Path, to: &Path| {
        let copied = Command::new("cp").arg("-a").args([from, to]).status();
        assert!(copied.unwrap().success());
    };
    copy(&data, &image);
    let later = cluster.start(1);
    push(&later, "later");
    counts(&cluster.nodes[0], 3 * RECORDS);
    later.kill();
    std::fs::remove_dir_all(&data).unwrap();
    copy(&image, &data);
    for _ in 0..2 {
        let back = cluster.start(1);
        let target = format!("/api/v1/query?{ALL_TIME}&count=true&q=");
        let mut last = String::new();
        waits_for("the answer says what is lost", &cluster.nodes, || {
            last = cluster.nodes[0].get(&target).unwrap();
            let trailer: Value = serde_json::from_str(last.trim()).unwrap();
            let trailer = &trailer["_trailer"];
            let lost = trailer["lost"].as_array().map_or(0, Vec::len);
            trailer["complete"] == true && lost == 1
        });
        assert!(last.contains("lost"), "{last}");
        losses_are_in_heads(&cluster.nodes[0]);
        back.terminate().unwrap();
    }
}

/// Answers without a trailer name what is lost in their heads.
fn losses_are_in_heads(node: &TestServer) {
    let of_elastic = ["/_count", "/_search?size=0", "/_cat/count"];
    let of_others = [
        "/api/v1/query?format=csv",
        "/select/logsql/query?query=*",
        "/entries",
        "/fields/MESSAGE",
        #[cfg(feature = "sql")]
        "/api/v1/sql?format=csv&query=select+count(*)+from+logs",
        #[cfg(feature = "sql")]
        "/api/v1/sql?format=parquet&query=select+1",
    ];
    let of_grafana = [
        ("/variable", r#"{"payload":{"target":"label_values(app)"}}"#),
        ("/variable", r#"{"payload":{"target":"{app=~\".+\"}"}}"#),
        ("/search", r#"{"target":"label_names()"}"#),
        ("/tag-keys", "{}"),
        ("/tag-values", r#"{"key":"app"}"#),
        ("/metric-payload-options", r#"{"name":"app"}"#),
        (
            "/annotations",
            r#"{"annotation":{"query":"{app=~\".+\"}"}}"#,
        ),
    ];
    let header_of = |method: &str, path: &str, body: &str, wanted: &str| {
        let mut client = node.client().unwrap();
        let answer = client.send(method, path, &[], body.as_bytes()).unwrap();
        let found = answer.headers.iter().find(|(name, _)| name == wanted);
        found.map(|(_, text)| text.clone()).unwrap_or_default()
    };
    let header = |path: &str, wanted: &str| header_of("GET", path, "", wanted);
    for path in of_elastic {
        let text = header(path, "warning");
        assert!(text.starts_with("299 logpond"), "{path}: {text}");
        assert!(text.contains("\"lost for good: node "), "{path}: {text}");
    }
    for path in of_others {
        let text = header(path, "logpond-warning");
        assert!(text.starts_with("lost for good: node "), "{path}: {text}");
    }
    for (path, body) in of_grafana {
        let text = header_of("POST", path, body, "logpond-warning");
        assert!(
            text.starts_with("lost for good: node "),
            "{path} {body}: {text}"
        );
    }
}

#[test]
fn a_canary_shows_how_soon_records_are_found() {
    let scratch = Scratch::new("members-canary").unwrap();
    let start = |number: usize, join: &str| {
        let data = scratch.path().join(format!("node-{number}"));
        let gossip = [
            "--gossip",
            "127.0.0.1:0",
            "--canary",
            "50ms",
            "--join",
            join,
        ];
        TestServer::start(program(), &data, &gossip).unwrap()
    };
    let first = start(0, "off");
    let nodes = [start(1, &first.address("gossip")), first];
    waits_for("canaries of both are found", &nodes, || {
        let status = status(&nodes[0]);
        let nodes = status["nodes"].as_array().unwrap();
        let measured = nodes
            .iter()
            .filter(|n| n["status"]["canary_ms"].as_f64() > Some(0.0));
        measured.count() == 2
    });
    assert!(nodes[0].metric("logpond_canary_seconds_count").unwrap() > 0.0);
    waits_for("both have compared their clocks", &nodes, || {
        let status = status(&nodes[1]);
        let mut nodes = status["nodes"].as_array().unwrap().iter();
        // They are the same clock; answers have it to the second, and take a moment.
        nodes.all(|n| {
            let ahead_ms = n["status"]["clock_ahead_ms"].as_i64();
            ahead_ms.is_some_and(|ahead_ms| ahead_ms.abs() < 60_000)
        })
    });
    let (rows, _) = nodes[0].query("app=logpond-canary").unwrap();
    assert!(rows.len() >= 2);
}

/// Of three nodes two are in one room: the third one has a copy of everything. When it is gone, what is
/// taken in stays where it is as well until there is another room.
#[test]
fn copies_are_in_different_zones() {
    let mut cluster = Cluster::new("members-zones", 0, "1s");
    for (number, zone) in ["north", "north", "south"].into_iter().enumerate() {
        let node = cluster.start_with(number, &["--zone", zone]);
        cluster.nodes.push(node);
    }
    cluster.fill();
    let has_all = |node: &TestServer, count: usize| {
        node.metric("logpond_segment_rows") == Ok((count * RECORDS) as f64)
    };
    waits_for("the other zone has a copy of all", &cluster.nodes, || {
        has_all(&cluster.nodes[2], 3) && status(&cluster.nodes[0])["copies_lacking"] == 0
    });
    let zones = status(&cluster.nodes[0])["nodes"].clone();
    let zones = zones.as_array().unwrap().iter();
    let mut zones: Vec<_> = zones.map(|node| node["zone"].clone()).collect();
    zones.sort_by_key(Value::to_string);
    assert_eq!(zones, ["north", "north", "south"]);

    let lost = cluster.nodes.remove(2);
    let lost_address = lost.address("gossip");
    lost.kill();
    push(&cluster.nodes[0], "later");
    waits_for("copies of one zone are too few", &cluster.nodes, || {
        status(&cluster.nodes[0])["copies_lacking"] != 0
    });
    cluster.nodes[0].compact().unwrap();
    waits_for("what came in waits", &cluster.nodes, || {
        let waiting = cluster.nodes[0].metric("logpond_unreplicated_bytes");
        waiting.is_ok_and(|bytes| bytes > 0.0)
    });
    let another = cluster.start_with(3, &["--zone", "east"]);
    cluster.nodes.push(another);
    hand_over(&cluster.nodes[0]);
    waits_for("the new zone has a copy of all", &cluster.nodes, || {
        has_all(&cluster.nodes[2], 4) && status(&cluster.nodes[0])["copies_lacking"] == 0
    });
    let forgotten = self::cluster(&cluster.nodes[0], &["forget", &lost_address]);
    assert!(forgotten.status.success(), "{forgotten:?}");
    counts(&cluster.nodes[1], 4 * RECORDS);
}
