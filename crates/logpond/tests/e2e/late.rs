//! Nodes that are late: others that hold the same answer in their place, and nobody waits for them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::members::{RECORDS, counts, push};
use crate::nodes::hand_over;
use crate::pond::{ALL_TIME, Scratch, TestServer, signal};
use crate::surroundings::program;

/// How long a node may take to say what it holds before it counts as silent, and how long it may be
/// silent in its answer: what nobody is to wait for.
const INVENTORY_TIMEOUT: Duration = Duration::from_secs(2);
const SILENCE_TIMEOUT: Duration = Duration::from_secs(5);

fn start(
    scratch: &Scratch,
    role: &str,
    name: &str,
    join: &str,
    advertise: Option<&str>,
) -> TestServer {
    let data = scratch.path().join(name);
    let mut flags = vec![
        "--gossip",
        "127.0.0.1:0",
        "--replication",
        "2",
        "--join",
        join,
    ];
    if let Some(address) = advertise {
        flags.extend(["--advertise", address]);
    }
    TestServer::start_as(program(), role, &data, &flags).unwrap()
}

/// What a query gives, and how long it took.
fn ask(pond: &TestServer, target: &str) -> (Vec<Value>, Value, Duration) {
    let since = Instant::now();
    let (rows, trailer) = crate::nodes::lines(pond, target);
    (rows, trailer, since.elapsed())
}

fn targets() -> [String; 2] {
    [
        format!("/api/v1/query?{ALL_TIME}&limit=0"),
        format!("/api/v1/query?{ALL_TIME}&count=true"),
    ]
}

#[test]
fn a_store_that_is_stopped_is_not_waited_for() {
    let scratch = Scratch::new("late-stopped").unwrap();
    let ingester = start(&scratch, "ingest", "ingester", "off", None);
    let join = ingester.address("gossip");
    let stores = ["a", "b"].map(|name| start(&scratch, "store", name, &join, None));
    let asked = start(&scratch, "query-node", "asked", &join, None);
    push(&ingester, "first");
    hand_over(&ingester);
    counts(&asked, RECORDS);
    for target in targets() {
        signal("STOP", stores[0].pid()).unwrap();
        let (_, trailer, took) = ask(&asked, &target);
        signal("CONT", stores[0].pid()).unwrap();
        assert_eq!(trailer["complete"], true, "{trailer}");
        assert_eq!(trailer["rows"], RECORDS, "{trailer}");
        assert_eq!(
            trailer["silent"].as_array().map(Vec::len),
            Some(1),
            "{trailer}"
        );
        assert!(took < INVENTORY_TIMEOUT, "{took:?}");
        // It is there again, and is waited for.
        counts(&asked, RECORDS);
    }
    // Once gossip has missed the store, as it may on a busy machine, its call is given up sooner than it is passed
    // over.
    let passed_over = asked.metric("logpond_query_passed_over_total").unwrap();
    assert!(passed_over <= 2.0, "{passed_over}");
}

#[test]
fn a_writer_that_is_stopped_is_waited_for() {
    let scratch = Scratch::new("late-writer").unwrap();
    let ingester = start(&scratch, "ingest", "ingester", "off", None);
    let join = ingester.address("gossip");
    let _store = start(&scratch, "store", "store", &join, None);
    let asked = start(&scratch, "query-node", "asked", &join, None);
    push(&ingester, "first");
    counts(&asked, RECORDS);
    // What it has taken in meanwhile nobody else knows.
    signal("STOP", ingester.pid()).unwrap();
    let (_, trailer, _) = ask(&asked, &targets()[1]);
    signal("CONT", ingester.pid()).unwrap();
    assert_eq!(trailer["complete"], false, "{trailer}");
    assert_eq!(
        asked.metric("logpond_query_passed_over_total").unwrap(),
        0.0
    );
}

/// Passes connections on to a node; while it stalls, questions stay here.
struct Staller {
    address: SocketAddr,
    target: Arc<Mutex<Option<String>>>,
    stalls: Arc<AtomicBool>,
    questions: Arc<AtomicU64>,
}

impl Staller {
    fn start() -> Staller {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let staller = Staller {
            address: listener.local_addr().unwrap(),
            target: Arc::default(),
            stalls: Arc::default(),
            questions: Arc::default(),
        };
        let (target, stalls) = (staller.target.clone(), staller.stalls.clone());
        let questions = staller.questions.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // Before there is a node its connections just end.
                let to = target.lock().unwrap().clone();
                let Some(Ok(server)) = to.map(TcpStream::connect) else {
                    continue;
                };
                let (back, front) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let (stalls, questions) = (stalls.clone(), questions.clone());
                thread::spawn(move || copy(back, front, |_| true));
                thread::spawn(move || {
                    copy(client, server, |request| {
                        let is_question = memchr::memmem::find(request, b"/cluster/v1/question");
                        questions.fetch_add(is_question.map_or(0, |_| 1), Ordering::SeqCst);
                        is_question.is_none() || !stalls.load(Ordering::SeqCst)
                    });
                });
            }
        });
        staller
    }

    fn questions(&self) -> u64 {
        self.questions.load(Ordering::SeqCst)
    }
}

/// Copies until an end, or until something is not to be passed on; that connection stays open.
fn copy(mut from: TcpStream, mut to: TcpStream, passes: impl Fn(&[u8]) -> bool) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !passes(&buffer[..count]) {
            // Until the other side gives up.
            while let Ok(1..) = from.read(&mut buffer) {}
            break;
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

#[test]
fn what_a_late_node_was_asked_for_others_answer() {
    let scratch = Scratch::new("late-hedged").unwrap();
    let ingester = start(&scratch, "ingest", "ingester", "off", None);
    let join = ingester.address("gossip");
    let stallers = [Staller::start(), Staller::start()];
    let _stores = [0, 1].map(|number| {
        let staller = &stallers[number];
        let name = format!("store-{number}");
        let address = staller.address.to_string();
        let store = start(&scratch, "store", &name, &join, Some(&address));
        *staller.target.lock().unwrap() = Some(store.address("gossip"));
        store
    });
    let asked = start(&scratch, "query-node", "asked", &join, None);
    push(&ingester, "first");
    hand_over(&ingester);
    counts(&asked, RECORDS);
    for target in targets() {
        let before = stallers.each_ref().map(Staller::questions);
        let (expected, _, _) = ask(&asked, &target);
        // As nothing changes, the same node is asked again.
        let usual = stallers.iter().zip(before);
        let usual = usual.filter(|(staller, before)| staller.questions() > *before);
        let usual: Vec<&Staller> = usual.map(|(staller, _)| staller).collect();
        assert_eq!(usual.len(), 1, "one of two copies is read");
        let won = asked.metric("logpond_query_hedges_won_total").unwrap();
        usual[0].stalls.store(true, Ordering::SeqCst);
        let (rows, trailer, took) = ask(&asked, &target);
        usual[0].stalls.store(false, Ordering::SeqCst);
        assert_eq!(rows, expected);
        assert_eq!(trailer["complete"], true, "{trailer}");
        assert_eq!(trailer["rows"], RECORDS, "each once: {trailer}");
        assert_eq!(
            asked.metric("logpond_query_hedges_won_total").unwrap(),
            won + 1.0
        );
        assert!(took < SILENCE_TIMEOUT, "{took:?}");
    }
    assert_eq!(asked.metric("logpond_query_hedges_total").unwrap(), 2.0);
}
