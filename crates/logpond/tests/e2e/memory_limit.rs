//! Servers with little memory, to which somebody sends as many records as a few bytes can be.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use flate2::write::GzEncoder;

use crate::nodes::lines;
use crate::pond::{ALL_TIME, Scratch, TestServer, memory_bytes, wait_until, wait_within};
use crate::surroundings::{program, say};

/// The memory of a server.
const LIMIT_BYTES: u64 = 512 << 20;

/// What of it is enough, however many records there are: a step takes 192 MiB at most.
const PEAK_BYTES_MAX: u64 = 256 << 20;

/// The memory that is enough while bodies become as large as they may.
const LABELS_PEAK_BYTES_MAX: u64 = 448 << 20;

/// Clients that send such bodies at once.
const SENDERS: usize = 6;

/// Line ends that are sent over TCP. In one step they would take 350 MB.
const LINE_ENDS: usize = 4 << 20;

/// How long a slow machine may take to make segments of them.
const SLOW: Duration = Duration::from_secs(600);

/// Where a server is ended that takes more memory than it is given.
enum Limit {
    /// A control group of its own, as a container has.
    Group(PathBuf),
    /// A limit of the process, of all that it maps.
    Process,
}

impl Limit {
    fn new(name: &str) -> Limit {
        let name = format!("logpond-{name}-{}", std::process::id());
        for (root, file) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ] {
            let group = Path::new(root).join(&name);
            let made = fs::create_dir(&group)
                .and_then(|()| fs::write(group.join(file), LIMIT_BYTES.to_string()));
            if made.is_ok() {
                return Limit::Group(group);
            }
            let _ = fs::remove_dir(&group);
        }
        say("memory is limited by ulimit, because control groups are not permitted here");
        Limit::Process
    }

    /// What runs the program within the limit.
    fn command(&self) -> Command {
        let enter = match self {
            Limit::Group(group) => format!("echo $$ > '{}/cgroup.procs'", group.display()),
            Limit::Process => format!("ulimit -v {}", LIMIT_BYTES >> 10),
        };
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("{enter} && exec \"$0\" \"$@\""))
            .arg(program());
        command
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        if let Limit::Group(group) = self {
            // It is empty once its processes have ended.
            let _ = fs::remove_dir(group);
        }
    }
}

/// How many records a node finds.
fn count(server: &TestServer, q: &str) -> u64 {
    let target = format!("/api/v1/query?{ALL_TIME}&count=true&q={q}");
    let mut trailer = serde_json::Value::Null;
    wait_until("the answer is complete", || {
        trailer = lines(server, &target).1;
        trailer["complete"] == true
    })
    .unwrap_or_else(|e| panic!("{e}: {trailer}"));
    trailer["rows"].as_u64().unwrap()
}

fn push_line(server: &TestServer, line: &str) {
    let mut answer = None;
    wait_until("the node takes records", || {
        answer = server.push("text/plain", line.as_bytes()).ok();
        answer.as_ref().is_some_and(|answer| answer.status == 200)
    })
    .unwrap();
}

/// 61 KB that are 60 MiB of line ends.
fn bomb() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..60 {
        encoder.write_all(&vec![b'\n'; 1 << 20]).unwrap();
    }
    encoder.finish().unwrap()
}

/// Sends a compressed body of a content type to a path; gives the status and the text of the answer.
fn push_gzip(server: &TestServer, (path, kind): (&str, &str), body: &[u8]) -> (u16, String) {
    let headers = [("content-type", kind), ("content-encoding", "gzip")];
    let mut client = server.client().unwrap();
    let answer = client.send("POST", path, &headers, body).unwrap();
    (answer.status, answer.text().unwrap())
}

fn push_bomb(server: &TestServer) {
    let (status, text) = push_gzip(server, ("/api/v1/push", "text/plain"), &bomb());
    assert_eq!(status, 413, "{text}");
    assert!(text.contains("1048576 records"), "{text}");
}

/// Has everything put into segments, and waits until so many records are: every line end is one.
fn put_into_segments(server: &TestServer, records: usize) {
    let mut client = server.client().unwrap();
    let answer = client.send("POST", "/api/v1/compact", &[], b"").unwrap();
    assert_eq!(answer.status, 202);
    let rows = || {
        server
            .metric("logpond_segment_rows")
            .map(|rows| rows as usize)
    };
    let is_done = || rows().is_ok_and(|rows| rows == records);
    wait_within(SLOW, "all records are in segments", is_done)
        .unwrap_or_else(|e| panic!("{e}: {:?} {}", rows(), server.stderr()));
}

fn peak(server: &TestServer) -> u64 {
    memory_bytes(server.pid(), "VmHWM").unwrap()
}

#[test]
fn line_ends_without_end_do_not_end_the_server() {
    let scratch = Scratch::new("line-ends").unwrap();
    let limit = Limit::new("line-ends");
    let data = scratch.path().join("data");
    let server = TestServer::start_under(limit.command(), &data, &[]).unwrap();
    push_line(&server, "honest before");
    push_bomb(&server);
    server.send_tcp("fast", &vec![b'\n'; LINE_ENDS]).unwrap();
    push_line(&server, "honest behind");
    put_into_segments(&server, LINE_ENDS + 2);
    let (rows, trailer) = server.query("honest").unwrap();
    assert_eq!((rows.len(), &trailer["complete"]), (2, &true.into()));
    let newest = server.get(&format!("/api/v1/query?{ALL_TIME}&limit=500"));
    assert_eq!(newest.unwrap().lines().count(), 501);
    let machine: serde_json::Value =
        serde_json::from_str(&server.get("/machine").unwrap()).unwrap();
    let [from, to] = ["cutoff_from_realtime", "cutoff_to_realtime"].map(|name| {
        let text = machine[name].as_str();
        text.and_then(|us| us.parse::<u64>().ok()).unwrap_or(0)
    });
    assert!(0 < from && from < to, "{machine}");
    let peak = peak(&server);
    assert!(peak <= PEAK_BYTES_MAX, "{} MiB", peak >> 20);
    say(&format!("{LINE_ENDS} line ends took {} MiB", peak >> 20));
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// Signals of a stack that overflows, each as a bit of the lists of `/proc/PID/status`.
const OVERFLOWS: u64 = 1 << (SIGSEGV - 1) | 1 << (SIGBUS - 1);

const SIGBUS: u32 = 7;

const SIGSEGV: u32 = 11;

#[test]
fn threads_need_no_second_stack_where_addresses_are_limited() {
    let scratch = Scratch::new("second-stacks").unwrap();
    let command = Limit::Process.command();
    let server = TestServer::start_under(command, &scratch.path().join("data"), &[]).unwrap();
    let caught = caught_signals(server.pid());
    assert_eq!(caught & OVERFLOWS, 0, "{caught:x}");
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    // Without a limit the message of a stack that overflows stays.
    let server = TestServer::start(program(), &scratch.path().join("other"), &[]).unwrap();
    let caught = caught_signals(server.pid());
    assert_eq!(caught & OVERFLOWS, OVERFLOWS, "{caught:x}");
}

/// The signals that a process catches.
fn caught_signals(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    u64::from_str_radix(caught.unwrap().trim(), 16).unwrap()
}

/// A body whose labels stand once, and are repeated for each of its records.
fn repeated_labels(records: usize) -> Vec<u8> {
    let label = |number: usize| format!("\"label{number}\":\"{}\"", "x".repeat(2000));
    let labels: Vec<String> = (0..30).map(label).collect();
    let entries = vec!["[\"1795740000000000000\",\"\"]"; records].join(",");
    let labels = labels.join(",");
    let body = format!("{{\"streams\":[{{\"stream\":{{{labels}}},\"values\":[{entries}]}}]}}");
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(body.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn small_bodies_of_many_labels_do_not_end_the_server() {
    let scratch = Scratch::new("labels").unwrap();
    let limit = Limit::new("labels");
    let data = scratch.path().join("data");
    let server = TestServer::start_under(limit.command(), &data, &[]).unwrap();
    push_line(&server, "honest before");
    let bodies = [repeated_labels(100_000), repeated_labels(500)];
    thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                for (body, taken) in bodies.iter().zip([false, true]) {
                    let to = ("/loki/api/v1/push", "application/json");
                    let (status, text) = push_gzip(&server, to, body);
                    let expected: &[u16] = if taken { &[204, 429] } else { &[413, 429] };
                    assert!(expected.contains(&status), "{status}: {text}");
                }
            });
        }
    });
    push_line(&server, "honest behind");
    assert_eq!(count(&server, "honest"), 2);
    let peak = peak(&server);
    assert!(peak <= LABELS_PEAK_BYTES_MAX, "{} MiB", peak >> 20);
    say(&format!(
        "{SENDERS} senders of many labels took {} MiB",
        peak >> 20
    ));
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// A process that ends in a step leaves a mark, and the next one makes smaller steps.
#[test]
fn a_server_that_ended_in_a_step_goes_on_in_smaller_ones() {
    let scratch = Scratch::new("step").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    push_line(&server, "honest line");
    server.kill();
    let mark = data.join("steps").join("store");
    fs::create_dir_all(mark.parent().unwrap()).unwrap();
    fs::write(&mark, "1").unwrap();
    let server = TestServer::start(program(), &data, &[]).unwrap();
    server.said("with about 48 MiB of memory");
    server.compact().unwrap();
    assert_eq!(server.query("honest").unwrap().0.len(), 1);
    assert!(!mark.exists(), "the step has ended");
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn a_cluster_spreads_no_more_rows_than_a_node_can_hold() {
    let scratch = Scratch::new("line-ends-cluster").unwrap();
    let (mut limits, mut nodes): (Vec<Limit>, Vec<TestServer>) = (Vec::new(), Vec::new());
    for number in 0..2 {
        let limit = Limit::new(&format!("line-ends-{number}"));
        let data = scratch.path().join(format!("node-{number}"));
        let join = nodes
            .first()
            .map_or("off".to_owned(), |node| node.address("gossip"));
        let flags = [
            "--gossip",
            "127.0.0.1:0",
            "--replication",
            "2",
            "--join",
            &join,
        ];
        nodes.push(TestServer::start_under(limit.command(), &data, &flags).unwrap());
        limits.push(limit);
    }
    push_line(&nodes[1], "honest line");
    push_bomb(&nodes[0]);
    let sent = LINE_ENDS / 2;
    nodes[0].send_tcp("fast", &vec![b'\n'; sent]).unwrap();
    // Each has a copy of everything.
    nodes
        .iter()
        .for_each(|node| put_into_segments(node, sent + 1));
    for node in &nodes {
        assert_eq!(count(node, "honest"), 1);
        let peak = peak(node);
        assert!(peak <= PEAK_BYTES_MAX, "{} MiB", peak >> 20);
        say(&format!(
            "{sent} line ends took {} MiB of a node",
            peak >> 20
        ));
    }
    for node in nodes {
        assert_eq!(node.terminate().unwrap().code(), Some(0));
    }
}

/// Under a limit of address space the allocators have to do with what there is, however many threads start.
#[test]
fn a_server_with_little_address_space_starts() {
    let scratch = Scratch::new("address-space").unwrap();
    let data = scratch.path().join("data");
    for life in 0..4 {
        let server = TestServer::start_under(Limit::Process.command(), &data, &[]).unwrap();
        server.push("text/plain", b"one more\n").unwrap();
        assert_eq!(count(&server, "one"), life + 1);
        assert_eq!(server.terminate().unwrap().code(), Some(0));
    }
}

/// A command that runs the program within so many bytes of address space.
fn within_addresses(bytes: u64) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {} && exec \"$0\" \"$@\"", bytes >> 10);
    command.arg("-c").arg(script).arg(program());
    command
}

/// A compressed body that repeats a part up to so many bytes.
fn repeated(head: &str, part: &str, end: &str, bytes: usize) -> Vec<u8> {
    let parts = part.repeat(bytes.div_ceil(part.len()));
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
    for piece in [head, &parts, end] {
        encoder.write_all(piece.as_bytes()).unwrap();
    }
    encoder.finish().unwrap()
}

/// The standard library ends the process if the system refuses memory.
#[test]
fn large_bodies_do_not_end_a_server_of_few_addresses() {
    let scratch = Scratch::new("few-addresses").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start_under(Limit::Process.command(), &data, &[]).unwrap();
    let mapped = memory_bytes(server.pid(), "VmSize").unwrap();
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    let few = within_addresses(mapped + (64 << 20));
    let refused = TestServer::start_under(few, &data, &[]).map(drop);
    let refused = refused.unwrap_err().to_string();
    let needed = refused.split("a server needs ").nth(1);
    let needed = needed.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let needed = needed.unwrap_or_else(|| panic!("{refused}"));
    let enough = within_addresses((needed + 1) << 20);
    let server = TestServer::start_under(enough, &data, &[]).unwrap();
    push_line(&server, "honest before");
    let line = "z".repeat(900_000) + "\n";
    let record = format!("{{\"a\":\"{}\"}}\n", "x".repeat(900_000));
    let stream = r#"{"stream":{"a":"b"},"values":[["1795740000000000000","x"]]},"#;
    let last = r#"{"stream":{"a":"b"},"values":[]}]}"#;
    for bytes in [15 << 20, 60 << 20] {
        let bodies = [
            ("/api/v1/push", "text/plain", repeated("", &line, "", bytes)),
            (
                "/api/v1/push",
                "application/x-ndjson",
                repeated("", &record, "", bytes),
            ),
            (
                "/loki/api/v1/push",
                "application/json",
                repeated("{\"streams\":[", stream, last, bytes),
            ),
            (
                "/logs/_bulk",
                "application/x-ndjson",
                repeated("", "{\"create\":{}}\n{}\n", "", bytes),
            ),
        ];
        for (path, kind, body) in &bodies {
            for _ in 0..2 {
                let (status, text) = push_gzip(&server, (path, kind), body);
                let expected: &[u16] = match bytes >> 20 {
                    15 => &[200, 204, 413, 429],
                    _ => &[413, 429],
                };
                assert!(expected.contains(&status), "{path}: {status}: {text}");
            }
        }
    }
    push_line(&server, "honest behind");
    server.compact().unwrap();
    // A query may be asked to come again while the store is at work.
    let target = format!("/api/v1/query?{ALL_TIME}&count=true&q=honest");
    wait_until("both honest records are found", || {
        let answer = server.get(&target);
        answer.is_ok_and(|text| text.contains("\"complete\":true") && text.contains("\"rows\":2"))
    })
    .unwrap();
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}
