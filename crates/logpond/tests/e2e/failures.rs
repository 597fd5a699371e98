//! Failures that a well-known log store of this kind was seen to have, each as a test here or
//! elsewhere. What is in brackets is what happened there.
//!
//! | what | test |
//! | --- | --- |
//! | `%` in a forwarded line (changed) | `forwarded::percent_signs_are_text` |
//! | a line beyond 64 KiB (the forwarder ends, the rest is dropped) | `forwarded::a_line_beyond_64_kib_and_all_behind_it_arrive` |
//! | the same on a raw port (what is behind it is never found) | `forwarded::a_long_line_on_a_raw_port_holds_nothing_up` |
//! | a last line without its end (dropped) | `forwarded::a_last_line_without_its_end_arrives` |
//! | a torn record at the end of a journal (no start any more) | [`a_torn_end_of_a_journal_costs_what_was_torn`] |
//! | the same in a file of the store (no start any more) | [`what_a_merge_left_behind_is_not_counted`] |
//! | a longer torn record (glued to the next) | [`a_torn_end_of_a_journal_costs_what_was_torn`] |
//! | a crash between merged and purged (records lost) | [`what_a_merge_left_behind_is_not_counted`] |
//! | a file with an unknown name (deleted by a query) | [`unknown_files_are_kept`] |
//! | bytes that anybody sends to a node (panics, also after a restart) | [`bytes_of_strangers_are_refused`], `cluster::nodes_know_each_other_by_their_certificates` |
//! | a forwarder loses its connection (records lost) | `resends::cut_connections_and_killed_servers_repeat_nothing`, `spool::killed_forwarders_lose_and_repeat_nothing` |
//! | the first byte of a node takes longer than 5 s (no records) | [`a_slow_node_is_waited_for`] |
//! | an answer is partial (no records, exit 1) | [`a_partial_answer_is_shown_and_said`] |
//! | one of three nodes dies, with two copies (no answers for 10 s) | [`answers_go_on_while_one_of_three_nodes_is_dead_or_paused`] |
//! | a node is paused (no answer) | the same, `cluster::a_stopped_node_holds_up_an_answer_for_a_bounded_time` |
//! | an error in the middle of an answer (cut in silence) | [`a_node_that_dies_in_the_middle_of_an_answer_costs_nothing`], `damage::damaged_files_cost_only_what_was_in_them` |
//! | questions that are not read to their end (leak threads and descriptors) | [`what_is_not_read_to_its_end_leaves_nothing_behind`] |
//! | 80 slow connections (a file each; new records are not found) | [`many_slow_connections_hold_nothing_up`] |
//! | the disk is full (connections end in silence, the process panics) | `disk_full::a_full_disk_refuses_and_recovers` |
//! | a bad regular expression (was fine: an error that says so) | [`a_bad_expression_is_an_error_that_says_so`] |
//! | a directory in use (was fine: refused) | `process::a_second_server_on_the_same_data_is_refused` |
//!
//! Without a counterpart: a question without a time range, which was an error, means the last hour
//! here.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::encode;
use crate::nodes::{RECORDS, complete, hand_over, lines, node, three};
use crate::pond::{ALL_TIME, Scratch, TestServer, files_below, signal, wait_until};
use crate::surroundings::program;

/// A server alone.
fn start(data: &Path) -> TestServer {
    TestServer::start(program(), data, &[]).unwrap()
}

fn push(server: &TestServer, body: &str) {
    let pushed = server.push("text/plain", body.as_bytes()).unwrap();
    assert_eq!(pushed.status, 200, "{}", pushed.body);
}

/// The messages that a complete answer has, sorted.
fn messages(server: &TestServer, q: &str) -> Vec<String> {
    let (rows, trailer) = server.query(q).unwrap();
    assert_eq!(trailer["complete"], true, "{trailer}");
    let texts = rows
        .iter()
        .map(|row| row["_msg"].as_str().unwrap().to_owned());
    let mut found: Vec<String> = texts.collect();
    found.sort_unstable();
    found
}

#[test]
fn a_torn_end_of_a_journal_costs_what_was_torn() {
    let scratch = Scratch::new("torn").unwrap();
    let whole = scratch.path().join("whole");
    let server = start(&whole);
    push(&server, "torn first");
    let file = files_below(&whole, ".open").remove(0);
    push(&server, &format!("torn second {}", "x".repeat(100)));
    server.kill();
    let bytes = fs::read(&file).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
    // Less than a header and more; the second record is longer than any of these.
    for cut in [1, 2, 7, 20, 25, 26, 27, 40, 90, 110] {
        let data = scratch.path().join(format!("cut-{cut}"));
        let copy = data.join(file.strip_prefix(&whole).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(&copy, &bytes[..(end - cut) as usize]).unwrap();
        for life in 0..3 {
            let server = start(&data);
            push(&server, &format!("torn later {life}"));
            let mut expected: Vec<String> = (0..=life)
                .map(|life| format!("torn later {life}"))
                .collect();
            expected.insert(0, "torn first".to_owned());
            expected.sort_unstable();
            assert_eq!(
                messages(&server, "torn"),
                expected,
                "{cut} bytes cut, life {life}"
            );
            server.kill();
        }
    }
}

#[test]
fn what_a_merge_left_behind_is_not_counted() {
    const PARTS: usize = 3;
    let scratch = Scratch::new("merge").unwrap();
    let data = scratch.path().join("data");
    let server = start(&data);
    let mut inputs = Vec::new();
    for part in 0..PARTS {
        push(&server, &format!("merge {part} one\nmerge {part} two"));
        server.compact().unwrap();
        for file in files_below(&data.join("segments"), ".parquet") {
            let bytes = fs::read(&file).unwrap();
            inputs.push((file, bytes));
        }
    }
    let expected = messages(&server, "merge");
    assert_eq!(expected.len(), 2 * PARTS);
    let mut client = server.client().unwrap();
    let target = "/api/v1/compact?wait=true&cold=true";
    client
        .send("POST", target, &[], b"")
        .unwrap()
        .text()
        .unwrap();
    drop(client);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    // As if it had been killed before any, some or all of what was merged was purged, and while the
    // next file was written.
    for kept in 0..1_usize << inputs.len().min(4) {
        for (number, (file, bytes)) in inputs.iter().enumerate() {
            match kept >> number & 1 {
                1 => fs::write(file, bytes).unwrap(),
                _ => continue,
            }
        }
        let torn = &inputs[0].1;
        let name = data.join("segments/01M80EWMRQ2465WKH10T6KCK33.parquet.tmp");
        fs::write(name, &torn[..torn.len() / 2]).unwrap();
        let server = start(&data);
        assert_eq!(messages(&server, "merge"), expected, "{kept:b}");
        server.compact().unwrap();
        assert_eq!(messages(&server, "merge"), expected, "{kept:b}, compacted");
        server.kill();
    }
}

#[test]
fn unknown_files_are_kept() {
    let scratch = Scratch::new("unknown").unwrap();
    let data = scratch.path().join("data");
    let server = start(&data);
    push(&server, "unknown");
    server.compact().unwrap();
    server.kill();
    let names = [
        "segments/my-backup.flushed",
        "segments/my-backup.parquet",
        "segments/notes.txt",
        "journal/my-backup.journal",
        "journal/0-0.open",
        "notes.txt",
    ];
    for name in names {
        fs::write(data.join(name), format!("mine: {name}")).unwrap();
    }
    for life in 2..=4 {
        let server = start(&data);
        push(&server, "unknown");
        server.compact().unwrap();
        // What is called like a segment and is none is named in every answer.
        assert_eq!(server.query("unknown").unwrap().0.len(), life);
        assert_eq!(server.terminate().unwrap().code(), Some(0));
    }
    let contents = files_below(&data, "")
        .into_iter()
        .map(|file| fs::read(file).unwrap());
    let contents: BTreeSet<Vec<u8>> = contents.collect();
    for name in names {
        assert!(
            contents.contains(format!("mine: {name}").as_bytes()),
            "{name} is gone"
        );
    }
}

#[test]
fn bytes_of_strangers_are_refused() {
    let scratch = Scratch::new("strangers").unwrap();
    let mut nodes = three(&scratch);
    let all = format!("/api/v1/query?{ALL_TIME}&limit=0&q=");
    let before = complete(&nodes[0], &all);
    let id = "01M80EWMRQ2465WKH10T6KCK33";
    let targets = [
        ("PUT", format!("/cluster/v1/segment?id={id}")),
        ("POST", "/cluster/v1/registry".to_owned()),
        ("POST", "/cluster/v1/question".to_owned()),
        ("POST", "/cluster/v1/originals".to_owned()),
        ("POST", "/cluster/v1/taken".to_owned()),
        ("POST", "/cluster/v1/claim".to_owned()),
        ("POST", "/cluster/v1/report".to_owned()),
        ("POST", "/cluster/v1/holds".to_owned()),
        ("POST", "/cluster/v1/gossip".to_owned()),
        ("POST", "/store/replicate".to_owned()),
    ];
    let address = nodes[1].address("gossip");
    for (method, target) in &targets {
        for body in [&b"sixby\n"[..], b"", &[0xff; 5_000]] {
            let mut client = crate::http::Client::connect(&address).unwrap();
            let headers = [("logpond-xxh3", "00"), ("logpond-from", "127.0.0.1:1")];
            let response = client.send(method, target, &headers, body).unwrap();
            let is_refused = (400..500).contains(&response.status);
            // What a message of gossip says is looked at later, or never.
            let status = response.status;
            assert!(
                is_refused || target.ends_with("gossip"),
                "{method} {target}: {status}"
            );
        }
    }
    // Bytes that are not even a request.
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(&[0x16; 300]).unwrap();
    drop(stream);
    assert_eq!(complete(&nodes[0], &all), before);
    let other = nodes.remove(1);
    assert!(!other.stderr().contains("panicked"), "{}", other.stderr());
    other.kill();
    let back = node(&scratch, 1, Some(&nodes[0])).unwrap();
    assert_eq!(complete(&back, &all), before);
    let segments = files_below(scratch.path(), &format!("{id}.parquet"));
    assert!(segments.is_empty(), "{segments:?}");
}

/// Lets a process run for a fifth of the time.
struct Throttle {
    stop: std::sync::Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Throttle {
    fn new(pid: u32) -> Throttle {
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let is_over = stop.clone();
        let thread = thread::spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                for (name, ms) in [("STOP", 120), ("CONT", 30)] {
                    signal(name, pid).unwrap();
                    thread::park_timeout(Duration::from_millis(ms));
                }
            }
        });
        Throttle {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

#[test]
fn a_slow_node_is_waited_for() {
    let scratch = Scratch::new("slow").unwrap();
    let first = node(&scratch, 0, None).unwrap();
    let second = node(&scratch, 1, Some(&first)).unwrap();
    crate::nodes::push(&second, "{\"_msg\":\"slow\"}\n");
    // Text on which the search has no shortcut, and as much of it as takes a while.
    let patterns = [190, 200, 210].map(|n| format!("/[a-f][0-9a-f]{{{n}}}[a-f]{{40}}/"));
    let q = encode(&format!("{} OR slow", patterns.join(" OR ")));
    let target = format!("/api/v1/query?{ALL_TIME}&count=true&q={q}");
    let mut state = 1_u64;
    let mut word = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{:08x}", state >> 32)
    };
    let mut before = Value::Null;
    wait_until("a question takes a while", || {
        let body = (0..500).map(|_| (0..120).map(|_| word()).collect::<String>() + "\n");
        push(&second, &body.collect::<String>());
        let start = Instant::now();
        complete(&first, &target);
        let elapsed = start.elapsed();
        before = lines(&first, &target).1["rows"].take();
        elapsed > Duration::from_secs(2)
    })
    .unwrap();
    let slowed = Throttle::new(second.pid());
    let start = Instant::now();
    let (_, trailer) = lines(&first, &target);
    let elapsed = start.elapsed();
    drop(slowed);
    assert_eq!(trailer["complete"], true, "{trailer}");
    assert_eq!(trailer["rows"], before, "{trailer}");
    assert!(elapsed > Duration::from_secs(5), "it took {elapsed:?} only");
}

fn query(server: &TestServer, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(program());
    command.args([
        "query",
        "",
        "-n",
        "0",
        "--since",
        "2026-03-01",
        "--addr",
        &server.url(),
    ]);
    let output = command.args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn a_partial_answer_is_shown_and_said() {
    let scratch = Scratch::new("partial").unwrap();
    let mut nodes = three(&scratch);
    let all = format!("/api/v1/query?{ALL_TIME}&limit=0&q=");
    assert_eq!(complete(&nodes[0], &all).len(), 3 * RECORDS);
    let name = nodes[2].address("gossip");
    nodes.pop().unwrap().kill();
    let (code, rows, said) = query(&nodes[0], &["-o", "raw"]);
    assert_eq!(code, Some(3), "{said}");
    assert_eq!(rows.lines().count(), 2 * RECORDS);
    assert!(said.contains(&name), "{said}");
}

#[test]
fn answers_go_on_while_one_of_three_nodes_is_dead_or_paused() {
    let scratch = Scratch::new("goes-on").unwrap();
    let mut nodes = three(&scratch);
    let all = format!("/api/v1/query?{ALL_TIME}&limit=0&q=");
    assert_eq!(complete(&nodes[0], &all).len(), 3 * RECORDS);
    nodes.iter().for_each(hand_over);
    let victim = nodes.pop().unwrap();
    // At once, and until the others have noticed for sure: each answer has all.
    let ask_for_seconds = |seconds: u64| {
        let start = Instant::now();
        let mut asked = 0;
        while start.elapsed() < Duration::from_secs(seconds) {
            for node in &nodes {
                let (code, rows, said) = query(node, &["-o", "raw"]);
                assert_eq!(rows.lines().count(), 3 * RECORDS, "{said}");
                // That the silent one has no more, nobody can know.
                assert_eq!(code, Some(3), "{said}");
                asked += 1;
            }
        }
        assert!(asked >= 4, "{asked} answers in {seconds} s");
    };
    signal("STOP", victim.pid()).unwrap();
    ask_for_seconds(5);
    signal("CONT", victim.pid()).unwrap();
    assert_eq!(complete(&nodes[0], &all).len(), 3 * RECORDS);
    victim.kill();
    ask_for_seconds(6);
    let back = node(&scratch, 2, Some(&nodes[0])).unwrap();
    assert_eq!(complete(&back, &all).len(), 3 * RECORDS);
}

#[test]
fn a_node_that_dies_in_the_middle_of_an_answer_costs_nothing() {
    const LINES: usize = 30_000;
    let scratch = Scratch::new("middle").unwrap();
    let mut nodes = three(&scratch);
    let pad = "x".repeat(1_000);
    for (number, node) in nodes.iter().enumerate() {
        let lines = (number..LINES)
            .step_by(3)
            .map(|n| format!("middle {n} {pad}\n"));
        push(node, &lines.collect::<String>());
    }
    nodes.iter().for_each(hand_over);
    let target = format!("/api/v1/query?{ALL_TIME}&limit=0&q=middle");
    let asked = nodes.remove(0);
    let mut client = asked.client().unwrap();
    let mut response = client.send("GET", &target, &[], b"").unwrap();
    let mut text = vec![0; 1 << 20];
    response.read_exact(&mut text).unwrap();
    // The answer is far longer than what sockets and queues hold.
    nodes.remove(0).kill();
    response.read_to_end(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut found: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let trailer = found.pop().unwrap();
    assert!(trailer["_trailer"]["missing"].is_array(), "{trailer}");
    let numbers: BTreeSet<&str> = found
        .iter()
        .map(|row| row["_msg"].as_str().unwrap().split(' ').nth(1).unwrap())
        .collect();
    assert_eq!((found.len(), numbers.len()), (LINES, LINES), "{trailer}");
}

#[test]
fn what_is_not_read_to_its_end_leaves_nothing_behind() {
    let scratch = Scratch::new("leak").unwrap();
    let server = start(&scratch.path().join("data"));
    let pad = "leak ".repeat(400);
    for _ in 0..4 {
        push(&server, &vec![pad.as_str(); 2_000].join("\n"));
        server.compact().unwrap();
    }
    let all = format!("/api/v1/query?{ALL_TIME}&limit=0&q=leak");
    let count = |what: &str| {
        let path = format!("/proc/{}/{what}", server.pid());
        fs::read_dir(path).unwrap().count()
    };
    let abandon = || {
        for turn in 0..40 {
            let mut client = server.client().unwrap();
            let method = if turn % 2 == 0 { "HEAD" } else { "GET" };
            let response = client.send(method, &all, &[], b"").unwrap();
            assert_eq!(response.status, 200);
            // It is dropped with all of its rows.
        }
        wait_until("no question is left", || {
            server.metric("logpond_queries_active") == Ok(0.0)
        })
        .unwrap();
    };
    abandon();
    assert_eq!(messages(&server, "leak").len(), 8_000);
    // Threads that wait for the next question may stay.
    let before = (count("task"), count("fd"));
    abandon();
    abandon();
    wait_until("threads and descriptors are as before", || {
        count("task") <= before.0 && count("fd") <= before.1
    })
    .unwrap_or_else(|e| panic!("{e}: {before:?}, {:?}", (count("task"), count("fd"))));
}

#[test]
fn many_slow_connections_hold_nothing_up() {
    const CONNECTIONS: usize = 80;
    const ROUNDS: usize = 5;
    let scratch = Scratch::new("many").unwrap();
    let data = scratch.path().join("data");
    let server = start(&data);
    let mut streams: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| TcpStream::connect(server.address("durable")).unwrap())
        .collect();
    for round in 0..ROUNDS {
        for (number, stream) in streams.iter_mut().enumerate() {
            writeln!(stream, "many round {round} of {number}").unwrap();
            let mut answer = [0; 5];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"OK 1\n");
        }
        // What is acknowledged is found at once.
        let found = messages(&server, &format!("\"many round {round} \""));
        assert_eq!(found.len(), CONNECTIONS);
    }
    let journals = files_below(&data.join("journal"), "");
    assert!(journals.len() <= 2 * ROUNDS, "{} files", journals.len());
}

#[test]
fn a_bad_expression_is_an_error_that_says_so() {
    let scratch = Scratch::new("bad").unwrap();
    let server = start(&scratch.path().join("data"));
    let error = server
        .get(&format!("/api/v1/query?q={}", encode("/open(/")))
        .unwrap_err();
    assert!(
        error.contains("status 400") && error.contains("bad_query"),
        "{error}"
    );
    let output = Command::new(program())
        .args(["query", "-e", "open(", "--addr", &server.url()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("open("), "{said}");
}
