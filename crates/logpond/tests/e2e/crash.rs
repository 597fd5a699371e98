//! `kill -9` during load: what was acknowledged is there afterwards, and nothing is there twice.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::pond::{self, Scratch, TestServer, wait_until};
use crate::surroundings::{program, say};

/// How often the server is killed.
const ROUNDS: u64 = 12;

/// Clients of each protocol.
const CLIENTS: u64 = 2;

/// Records in a batch.
const BATCH: u64 = 25;

/// What a client knows: how many of its records were sent, and how many acknowledged. Numbers
/// are dense, so that "acknowledged" is "all below".
#[derive(Default)]
struct Client {
    sent: AtomicU64,
    acked: AtomicU64,
}

/// Everything that was sent and acknowledged, by the name of the client.
#[derive(Default)]
struct Ledger {
    acked: BTreeMap<String, u64>,
    sent: BTreeMap<String, u64>,
}

#[test]
fn acknowledged_records_survive_kill_9() {
    let scratch = Scratch::new("crash").unwrap();
    let data = scratch.path().join("data");
    let mut ledger = Ledger::default();
    let mut checks = 0;
    for round in 0..ROUNDS {
        let server = TestServer::start(program(), &data, &[]).unwrap();
        checks += check(&server, &ledger);
        // Every round dies at another point: after some acknowledgements, in the middle of load.
        load_until(server, round, 500 + 900 * round, &mut ledger);
    }
    let server = TestServer::start(program(), &data, &[]).unwrap();
    checks += check(&server, &ledger);
    let acknowledged: u64 = ledger.acked.values().sum();
    say(&format!(
        "crash: {acknowledged} records acknowledged, {ROUNDS} kills, {checks} records checked"
    ));
    assert!(acknowledged >= 50_000, "too little load: {acknowledged}");
    assert!(checks >= 200_000, "too few checks: {checks}");
}

/// Sends from several clients until so many records are acknowledged, and kills the server.
fn load_until(server: TestServer, round: u64, acks: u64, ledger: &mut Ledger) {
    let clients: BTreeMap<String, Client> = (0..CLIENTS)
        .flat_map(|n| [format!("http-{round}-{n}"), format!("tcp-{round}-{n}")])
        .map(|name| (name, Client::default()))
        .collect();
    let stop = AtomicBool::new(false);
    let (http, durable) = (server.address("http"), server.address("durable"));
    thread::scope(|scope| {
        for (name, client) in &clients {
            let (http, durable, stop) = (&http, &durable, &stop);
            scope.spawn(move || {
                if name.starts_with("http") {
                    push_batches(http, name, client, stop)
                } else {
                    send_lines(durable, name, client, stop)
                }
            });
        }
        let total = || {
            clients
                .values()
                .map(|c| c.acked.load(Ordering::SeqCst))
                .sum::<u64>()
        };
        wait_until("enough is acknowledged", || total() >= acks).unwrap();
        server.kill();
        stop.store(true, Ordering::SeqCst);
    });
    for (name, client) in clients {
        let acked = client.acked.load(Ordering::SeqCst);
        let sent = client.sent.load(Ordering::SeqCst);
        ledger.acked.insert(name.clone(), acked);
        ledger.sent.insert(name, sent);
    }
}

/// Pushes numbered records over HTTP until the server is gone. Nothing is sent again: a batch
/// without an answer may be there or not.
fn push_batches(address: &str, name: &str, client: &Client, stop: &AtomicBool) {
    let Ok(mut connection) = crate::http::Client::connect(address) else {
        return;
    };
    while !stop.load(Ordering::SeqCst) {
        let first = client.sent.load(Ordering::SeqCst);
        let body: String = (first..first + BATCH)
            .map(|n| format!("{{\"_msg\":\"ledger\",\"client\":\"{name}\",\"n\":{n}}}\n"))
            .collect();
        client.sent.store(first + BATCH, Ordering::SeqCst);
        let answer = pond::push(&mut connection, "application/x-ndjson", "", body.as_bytes());
        match answer {
            Ok(pushed) if pushed.status == 200 && pushed.accepted() == BATCH => {
                client.acked.store(first + BATCH, Ordering::SeqCst);
            }
            Ok(pushed) => panic!("push answered {} {}", pushed.status, pushed.body),
            Err(_) => return,
        }
    }
}

/// Sends numbered lines to the durable listener and counts its acknowledgements.
fn send_lines(address: &str, name: &str, client: &Client, stop: &AtomicBool) {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return;
    };
    let Ok(reading) = stream.try_clone() else {
        return;
    };
    let mut answers = BufReader::new(reading).lines();
    let mut acked = 0;
    while !stop.load(Ordering::SeqCst) {
        let first = client.sent.load(Ordering::SeqCst);
        let lines: String = (first..first + BATCH)
            .map(|n| format!("{{\"_msg\":\"ledger\",\"client\":\"{name}\",\"n\":{n}}}\n"))
            .collect();
        client.sent.store(first + BATCH, Ordering::SeqCst);
        if stream.write_all(lines.as_bytes()).is_err() {
            return;
        }
        while acked < first + BATCH {
            let Some(Ok(answer)) = answers.next() else {
                return;
            };
            let count = answer
                .strip_prefix("OK ")
                .and_then(|n| n.parse::<u64>().ok());
            acked += count.unwrap_or_else(|| panic!("durable answered {answer:?}"));
            client.acked.store(acked, Ordering::SeqCst);
        }
        assert!(acked <= first + BATCH, "more acknowledged than sent");
    }
}

/// Compares what is stored with the ledger; gives how many records it looked at.
fn check(server: &TestServer, ledger: &Ledger) -> u64 {
    let (rows, trailer) = server.query("ledger").unwrap();
    assert_eq!(trailer["complete"], true, "{trailer}");
    let mut stored: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for row in &rows {
        let client = row["client"].as_str().unwrap();
        stored
            .entry(client)
            .or_default()
            .push(row["n"].as_u64().unwrap());
    }
    for (name, numbers) in &mut stored {
        numbers.sort_unstable();
        let count = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), count, "{name}: records are there twice");
        let sent = ledger.sent.get(*name).copied().unwrap_or(0);
        assert!(
            numbers.iter().all(|n| *n < sent),
            "{name}: invented records"
        );
    }
    for (name, acked) in &ledger.acked {
        let numbers = stored.get(&**name).map_or(&[][..], |n| n);
        let kept = numbers.iter().take_while(|n| **n < *acked).count() as u64;
        assert_eq!(kept, *acked, "{name}: acknowledged records are lost");
    }
    rows.len() as u64
}
