//! Following several nodes: each record once, whatever becomes of the nodes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use serde_json::Value;

use crate::http::{Client, encode};
use crate::nodes::{hand_over, node, push_named};
use crate::pond::{ALL_TIME, Scratch, TestServer, signal, wait_until};
use crate::surroundings::program;

/// Somebody who follows, over HTTP.
struct Follower {
    seen: Arc<Mutex<Vec<(Instant, Value)>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Follows records whose text has this word, through a node.
    fn start(through: &TestServer, word: &str, position: &str) -> Follower {
        let target = format!(
            "/api/v1/query?{ALL_TIME}&follow=true&positions=true&q={word}&position={}",
            encode(position)
        );
        let seen: Arc<Mutex<Vec<_>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let (there, stopped) = (seen.clone(), stop.clone());
        let address = through.address("http");
        let thread = thread::spawn(move || {
            let mut client = Client::connect(&address).unwrap();
            let response = client.send("GET", &target, &[], b"").unwrap();
            assert_eq!(response.status, 200);
            for line in BufReader::new(response).lines() {
                // The server may be killed under it.
                let Ok(line) = line else { break };
                let value = serde_json::from_str(&line).unwrap();
                there.lock().unwrap().push((Instant::now(), value));
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        Follower {
            seen,
            stop,
            thread: Some(thread),
        }
    }

    fn lines(&self) -> Vec<Value> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|(_, line)| line.clone()).collect()
    }

    /// How often each record has been sent.
    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in self.lines() {
            if let Some(text) = line["_msg"].as_str() {
                *counts.entry(text.to_owned()).or_default() += 1;
            }
        }
        counts
    }

    fn notices(&self, answers: bool) -> Vec<Value> {
        let lines = self.lines().into_iter();
        let notices = lines.filter(|line| line["_notice"]["answers"] == answers);
        notices.map(|mut line| line["_notice"].take()).collect()
    }

    /// Waits until all of these were sent, and makes sure that each was once.
    fn expect(&self, what: &str, expected: &[String]) {
        let all = || {
            let counts = self.counts();
            expected.iter().all(|text| counts.contains_key(text))
        };
        wait_until(what, all).unwrap_or_else(|error| {
            let counts = self.counts();
            let missing: Vec<_> = expected
                .iter()
                .filter(|t| !counts.contains_key(*t))
                .collect();
            panic!(
                "{error}: {missing:?} of {}; {:?}",
                expected.len(),
                self.notices(false)
            );
        });
        self.once(what);
    }

    fn once(&self, what: &str) {
        let twice: Vec<_> = self.counts().into_iter().filter(|(_, n)| *n > 1).collect();
        assert!(twice.is_empty(), "{what}: {twice:?}");
    }

    /// Ends it: it leaves when the next line comes.
    fn leave(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        drop(self.thread.take());
    }
}

/// Takes numbered lines in at a node; gives their texts.
fn send(server: &TestServer, name: &str, count: usize) -> Vec<String> {
    let texts: Vec<String> = (0..count).map(|n| format!("live {name} {n}")).collect();
    let body: String = texts.iter().map(|text| format!("{text}\n")).collect();
    let mut last = String::new();
    wait_until("the node takes records", || {
        let answer = server.push("text/plain", body.as_bytes());
        last = format!("{:?}", answer.as_ref().map(|a| (a.status, a.body.clone())));
        answer.is_ok_and(|answer| answer.status == 200)
    })
    .unwrap_or_else(|error| panic!("{error}: {last}"));
    texts
}

/// Three nodes that know each other.
fn three(scratch: &Scratch) -> Vec<TestServer> {
    let first = node(scratch, 0, None).unwrap();
    let second = node(scratch, 1, Some(&first)).unwrap();
    let third = node(scratch, 2, Some(&second)).unwrap();
    vec![first, second, third]
}

#[test]
fn a_follower_sees_each_record_of_all_nodes_once() {
    let scratch = Scratch::new("follow").unwrap();
    let mut nodes = three(&scratch);
    let mut expected = Vec::new();
    for (at, server) in nodes.iter().enumerate() {
        expected.extend(send(server, &format!("before {at}"), 20));
    }
    let follower = Follower::start(&nodes[0], "live", "");
    follower.expect("what was there is sent", &expected);
    for (at, server) in nodes.iter().enumerate() {
        expected.extend(send(server, &format!("after {at}"), 20));
    }
    follower.expect("what comes is sent", &expected);
    // One is killed while it takes records in, and comes back.
    let victim = nodes.remove(1);
    expected.extend(send(&victim, "last words", 50));
    victim.kill();
    expected.extend(send(&nodes[1], "meanwhile", 20));
    wait_until("the follower is told", || {
        follower.notices(false).len() == 1
    })
    .unwrap();
    let back = node(&scratch, 1, Some(&nodes[0])).unwrap();
    expected.extend(send(&back, "back", 20));
    nodes.insert(1, back);
    follower.expect("nothing is lost or doubled", &expected);
    wait_until("the follower is told", || follower.notices(true).len() == 1).unwrap();
    // What moves into segments, and to other nodes, is not sent again.
    nodes.iter().for_each(hand_over);
    for (at, server) in nodes.iter().enumerate() {
        expected.extend(send(server, &format!("handed {at}"), 20));
    }
    follower.expect("after the hand-over", &expected);
    // A node that nobody knew of joins.
    let fourth = node(&scratch, 3, Some(&nodes[2])).unwrap();
    expected.extend(send(&fourth, "new", 20));
    follower.expect("the new node's", &expected);
    // One is stopped for a moment.
    signal("STOP", nodes[2].pid()).unwrap();
    expected.extend(send(&nodes[1], "while one is stopped", 20));
    follower.expect("the others' come", &expected);
    wait_until("the follower is told", || {
        follower.notices(false).len() == 2
    })
    .unwrap();
    signal("CONT", nodes[2].pid()).unwrap();
    expected.extend(send(&nodes[2], "woken", 20));
    follower.expect("the woken node's", &expected);
    follower.leave();
}

#[test]
fn what_a_lost_node_had_handed_over_is_read_from_others() {
    let scratch = Scratch::new("follow-lost").unwrap();
    let mut nodes = three(&scratch);
    let before = send(&nodes[2], "before", 30);
    let target = format!("/api/v1/query?{ALL_TIME}&limit=5&positions=true&q=live");
    let mut position = String::new();
    wait_until("the answer is complete", || {
        let text = nodes[0].get(&target).unwrap();
        let mut last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let trailer = last["_trailer"].take();
        position = trailer["position"].as_str().unwrap().to_owned();
        trailer["complete"] == true
    })
    .unwrap();
    // While nobody follows, a node takes records in, hands them over, and is lost.
    let lost = send(&nodes[2], "of the lost", 40);
    hand_over(&nodes[2]);
    nodes.pop().unwrap().kill();
    std::fs::remove_dir_all(scratch.path().join("node-2")).unwrap();
    // Another node goes on where the first one was.
    let second = Follower::start(&nodes[1], "live", &position);
    second.expect("what others hold", &lost);
    let more = send(&nodes[0], "more", 10);
    second.expect("what comes", &more);
    let counts = second.counts();
    assert!(before.iter().all(|text| !counts.contains_key(text)));
    second.leave();
}

#[test]
fn a_batch_that_is_sent_again_to_another_node_is_followed_once() {
    let scratch = Scratch::new("follow-resend").unwrap();
    let mut nodes = three(&scratch);
    let epoch = "0123456789abcdef0123456789abcdef";
    let name = |batch: usize, attempt: usize| format!("{epoch}-{batch}-{attempt}@1772409600000");
    let body = |batch: usize| format!("live batch {batch} one\nlive batch {batch} two\n");
    let texts = |batch: usize| body(batch).lines().map(String::from).collect::<Vec<_>>();
    let mut expected = Vec::new();
    // Before: the follower's first part has the original, and the copy comes later.
    for server in &nodes {
        expected.extend(send(server, &format!("warm {}", server.pid()), 1));
    }
    push_named(&nodes[1], &name(0, 0), &body(0));
    expected.extend(texts(0));
    let follower = Follower::start(&nodes[0], "live", "");
    follower.expect("the original", &expected);
    push_named(&nodes[2], &name(0, 1), &body(0));
    // The original comes while it is followed, and two copies.
    push_named(&nodes[1], &name(1, 0), &body(1));
    push_named(&nodes[2], &name(1, 1), &body(1));
    push_named(&nodes[0], &name(1, 2), &body(1));
    expected.extend(texts(1));
    // Copies alone, of which the original never arrived.
    push_named(&nodes[2], &name(2, 1), &body(2));
    push_named(&nodes[1], &name(2, 2), &body(2));
    expected.extend(texts(2));
    follower.expect("batches", &expected);
    // The original is with a node that does not answer, when the copy is shown; then that is back.
    let stopped = nodes[1].pid();
    signal("STOP", stopped).unwrap();
    wait_until("the follower is told", || {
        !follower.notices(false).is_empty()
    })
    .unwrap();
    signal("CONT", stopped).unwrap();
    wait_until("the follower is told", || {
        !follower.notices(true).is_empty()
    })
    .unwrap();
    let told = follower.notices(false).len();
    let victim = nodes.remove(1);
    let data = scratch.path().join("node-1");
    victim.kill();
    wait_until("the follower is told", || {
        follower.notices(false).len() > told
    })
    .unwrap();
    // By itself it takes the original in, so that the copy is first seen by everybody else.
    push_named(&nodes[1], &name(3, 1), &body(3));
    expected.extend(texts(3));
    follower.expect("the copy", &expected);
    assert!(data.exists());
    let back = node(&scratch, 1, Some(&nodes[0])).unwrap();
    expected.extend(send(&back, "after", 3));
    push_named(&back, &name(3, 0), &body(3));
    nodes.insert(1, back);
    expected.extend(send(&nodes[1], "behind the original", 3));
    follower.expect("the original is left out", &expected);
    nodes.iter().for_each(hand_over);
    expected.extend(send(&nodes[2], "end", 3));
    follower.expect("all", &expected);
    follower.leave();
}

#[test]
fn the_command_joins_the_newest_with_what_comes() {
    let scratch = Scratch::new("follow-command").unwrap();
    let mut nodes = three(&scratch);
    for (at, server) in nodes.iter().enumerate() {
        send(server, &format!("old {at}"), 30);
    }
    let mut child = Command::new(program())
        .args(["query", "live", "--follow", "-n", "7", "-o", "json"])
        .args(["--addr", &nodes[0].url()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let collect = |stream: Box<dyn std::io::Read + Send>| {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let there = lines.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                there.lock().unwrap().push(line);
            }
        });
        lines
    };
    let out = collect(Box::new(child.stdout.take().unwrap()));
    let err = collect(Box::new(child.stderr.take().unwrap()));
    let text = |line: &String| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["_msg"].as_str().unwrap().to_owned()
    };
    let printed = || out.lock().unwrap().iter().map(text).collect::<Vec<_>>();
    wait_until("the newest are printed", || printed().len() == 7).unwrap();
    let mut expected = Vec::new();
    for (at, server) in nodes.iter().enumerate() {
        expected.extend(send(server, &format!("new {at}"), 10));
    }
    wait_until("what comes is printed", || printed().len() >= 37).unwrap();
    nodes.pop().unwrap().kill();
    let said = |what: &str| err.lock().unwrap().iter().any(|line| line.contains(what));
    wait_until("it says who is away", || said("does not answer")).unwrap();
    let back = node(&scratch, 2, Some(&nodes[0])).unwrap();
    expected.extend(send(&back, "back", 10));
    wait_until("it says who is back", || said("answers again")).unwrap();
    wait_until("what comes is printed", || printed().len() >= 47).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let mut printed = printed().split_off(7);
    printed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(printed, expected);
}

/// Records that arrive are new, however old their times are.
#[test]
fn the_journal_command_shows_records_that_arrive_late() {
    let scratch = Scratch::new("follow-late").unwrap();
    let server = TestServer::start(program(), scratch.path(), &[]).unwrap();
    let mut child = Command::new(program())
        .args(["journal", "-f", "-n", "0", "-o", "cat"])
        .args(["--addr", &server.url()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let there = lines.clone();
    let out = child.stdout.take().unwrap();
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            there.lock().unwrap().push(line);
        }
    });
    let mut client = server.client().unwrap();
    let mut push = |body: &str| {
        let pushed = crate::pond::push(&mut client, "application/x-ndjson", "", body.as_bytes());
        assert_eq!(pushed.unwrap().status, 200);
    };
    let printed = |line: &str| lines.lock().unwrap().iter().any(|known| known == line);
    wait_until("it follows", || {
        push(r#"{"message":"here"}"#);
        printed("here")
    })
    .unwrap();
    push(r#"{"time":"2026-01-02T03:04:05Z","message":"late"}"#);
    wait_until("the late one is printed", || printed("late")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Not an assertion but a number: how long after its acknowledgement a record is seen.
#[test]
fn followers_see_records_soon() {
    let scratch = Scratch::new("follow-latency").unwrap();
    let nodes = three(&scratch);
    send(&nodes[2], "warm", 1);
    let follower = Follower::start(&nodes[0], "live", "");
    wait_until("the first", || !follower.counts().is_empty()).unwrap();
    let mut delays_us = Vec::new();
    let mut client = nodes[2].client().unwrap();
    for n in 0..200 {
        let text = format!("live timed {n}");
        let body = format!("{text}\n");
        let pushed = crate::pond::push(&mut client, "text/plain", "", body.as_bytes()).unwrap();
        assert_eq!(pushed.status, 200);
        let acknowledged = Instant::now();
        let mut at = None;
        wait_until("it is seen", || {
            let seen = follower.seen.lock().unwrap();
            let found = seen
                .iter()
                .rev()
                .find(|(_, line)| line["_msg"] == text.as_str());
            at = found.map(|(at, _)| *at);
            at.is_some()
        })
        .unwrap();
        let delay = at.unwrap().saturating_duration_since(acknowledged);
        delays_us.push(delay.as_micros());
    }
    delays_us.sort_unstable();
    let (p50, p99) = (delays_us[100], delays_us[198]);
    eprintln!("acknowledged to seen through another node: p50 {p50} us, p99 {p99} us");
    follower.leave();
}
