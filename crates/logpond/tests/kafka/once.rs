//! Each message is there once, whatever happens on either side.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use crate::broker::{Broker, Client};
use crate::pond::{Scratch, TestServer, files_below, memory_bytes, wait_until};
use crate::surroundings::program;

const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

fn start(data: &Path, broker: &Broker, topic: &str) -> TestServer {
    start_with(data, broker, topic, &[])
}

fn start_with(data: &Path, broker: &Broker, topic: &str, extra: &[&str]) -> TestServer {
    let kafka = format!("{}/{topic}", broker.address());
    let arguments = [&["--kafka", &kafka], extra].concat();
    TestServer::start(program(), &data.join("data"), &arguments).unwrap()
}

/// Waits until a metric of Kafka has reached this.
fn wait_for(server: &TestServer, name: &str, value: f64) {
    wait_until(&format!("{name} is {value}"), || {
        server.metric(name).unwrap() >= value
    })
    .unwrap();
}

/// How often each number of a topic is there.
fn numbers(server: &TestServer, topic: &str) -> BTreeMap<u64, usize> {
    let (rows, _) = server.query(&format!("topic={topic} n:*")).unwrap();
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(row["n"].as_u64().unwrap()).or_default() += 1;
    }
    counts
}

/// Each of these numbers is there once, and no other.
fn expect(server: &TestServer, topic: &str, expected: std::ops::Range<u64>) {
    let counts = numbers(server, topic);
    let doubled: Vec<_> = counts
        .iter()
        .filter(|(_, count)| **count != 1)
        .take(5)
        .collect();
    assert!(doubled.is_empty(), "{topic}: {doubled:?}");
    let found: Vec<u64> = counts.into_keys().collect();
    let missing: Vec<u64> = expected
        .clone()
        .filter(|n| found.binary_search(n).is_err())
        .take(5)
        .collect();
    assert!(missing.is_empty(), "{topic}: {missing:?} are missing");
    assert_eq!(found.len() as u64, expected.end - expected.start, "{topic}");
}

fn send(topic: &str, numbers: std::ops::Range<u64>, partitions: u32) -> Value {
    json!({"do": "send", "topic": topic, "from": numbers.start, "to": numbers.end, "partitions": partitions})
}

type Scenario = fn(&Broker, &mut Client);

/// Each has a topic of its own. They wait most of the time, so some run side by side.
const SCENARIOS: [&[Scenario]; 5] = [
    &[killed_servers],
    &[all_compressions, large_batches],
    &[expired_offsets, odd_messages, recreated_topics],
    &[moved_partitions],
    &[lost_nodes],
];

#[test]
fn messages_are_there_once() {
    let what = "reading from Kafka";
    let Some(mut broker) = Broker::start(what) else {
        return;
    };
    let Some(mut client) = broker.client(what) else {
        return;
    };
    thread::scope(|scope| {
        for scenarios in &SCENARIOS {
            let (broker, mut client) = (&broker, broker.client(what).unwrap());
            scope.spawn(move || {
                for scenario in *scenarios {
                    scenario(broker, &mut client);
                }
            });
        }
    });
    restarted_broker(&mut broker, &mut client);
}

/// Keys, headers, offsets and times are fields; partitions may be chosen.
fn all_compressions(broker: &Broker, client: &mut Client) {
    client.call(json!({"do": "create", "topic": "all", "partitions": 3}));
    for (codec, from) in CODECS.iter().zip((0..).step_by(1_000)) {
        let mut call = send("all", from..from + 1_000, 3);
        call["codec"] = json!(codec);
        client.call(call);
    }
    let scratch = Scratch::new("kafka-all").unwrap();
    let server = start(scratch.path(), broker, "all");
    wait_for(&server, "logpond_kafka_stored_total", 5_000.0);
    expect(&server, "all", 0..5_000);
    let (rows, _) = server.query("topic=all n=2345").unwrap();
    let row = &rows[0];
    let expected = [
        ("partition", json!("2")),
        ("kafka_key", json!("key-0")),
        ("kafka_header_trace", json!("t2345")),
        ("offset", json!(781)),
    ];
    for (name, value) in expected {
        assert_eq!(row[name], value, "{row}");
    }
    assert_eq!(
        server.metric("logpond_kafka_fetched_total").unwrap(),
        5_000.0
    );
    wait_until("nothing is left", || {
        server.metric("logpond_kafka_lag").unwrap() == 0.0
    })
    .unwrap();
    assert!(server.terminate().unwrap().success());
    // Partitions may be read by several servers, each some of them.
    let scratch = Scratch::new("kafka-part").unwrap();
    let server = start(scratch.path(), broker, "all:0-1");
    let of_two = (0..5_000).filter(|n| n % 3 < 2).count();
    wait_for(&server, "logpond_kafka_stored_total", of_two as f64);
    assert_eq!(numbers(&server, "all").len(), of_two);
    assert!(server.terminate().unwrap().success());
}

/// Kills servers in the middle of reading, and of making segments.
fn killed_servers(broker: &Broker, client: &mut Client) {
    const KILLS: u64 = 7;
    const NUMBERS: u64 = 60_000;
    client.call(json!({"do": "create", "topic": "kill", "partitions": 3}));
    let mut call = send("kill", 0..NUMBERS, 3);
    call["codec"] = json!("lz4");
    call["size"] = json!(200);
    client.begin(&call);
    let scratch = Scratch::new("kafka-kill").unwrap();
    for kill in 0..KILLS {
        let server = start(scratch.path(), broker, "kill");
        // At another place each time: some only began, some have stored thousands.
        let fetched = (kill % 3) as f64 * 1_500.0 + 1.0;
        wait_until("some were fetched", || {
            let metric = |name| server.metric(name).unwrap();
            metric("logpond_kafka_fetched_total") >= fetched
                || metric("logpond_kafka_offset") >= NUMBERS as f64
        })
        .unwrap();
        if kill % 3 == 1 {
            server.compact().unwrap();
        }
        server.kill();
    }
    client.finish(&call);
    let server = start(scratch.path(), broker, "kill");
    wait_for(&server, "logpond_kafka_offset", NUMBERS as f64);
    expect(&server, "kill", 0..NUMBERS);
    server.compact().unwrap();
    expect(&server, "kill", 0..NUMBERS);
    assert!(server.terminate().unwrap().success());
    // Nothing is read again, also where all that is known is in segments.
    let server = start(scratch.path(), broker, "kill");
    client.call(send("kill", NUMBERS..NUMBERS + 30, 3));
    wait_for(&server, "logpond_kafka_stored_total", 30.0);
    expect(&server, "kill", 0..NUMBERS + 30);
    assert_eq!(server.metric("logpond_kafka_fetched_total").unwrap(), 30.0);
    assert!(server.terminate().unwrap().success());
}

/// What Kafka removed before it was read is counted, and told by a record that is there once.
fn expired_offsets(broker: &Broker, client: &mut Client) {
    client.call(json!({"do": "create", "topic": "old", "partitions": 1}));
    client.call(send("old", 0..1_000, 1));
    client.call(json!({"do": "remove_before", "topic": "old", "offset": 400}));
    let scratch = Scratch::new("kafka-old").unwrap();
    let server = start(scratch.path(), broker, "old");
    wait_for(&server, "logpond_kafka_stored_total", 600.0);
    expect(&server, "old", 400..1_000);
    assert_eq!(
        server.metric("logpond_kafka_lost_total").unwrap(),
        0.0,
        "never promised"
    );
    assert!(server.terminate().unwrap().success());
    client.call(send("old", 1_000..1_100, 1));
    client.call(json!({"do": "remove_before", "topic": "old", "offset": 1_050}));
    for lost in [50.0, 0.0] {
        let server = start(scratch.path(), broker, "old");
        wait_for(&server, "logpond_kafka_offset", 1_100.0);
        assert_eq!(server.metric("logpond_kafka_lost_total").unwrap(), lost);
        let (rows, _) = server.query("app=logpond lost=50").unwrap();
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(rows[0]["topic"], "old");
        assert_eq!(numbers(&server, "old").len(), 600 + 50);
        assert!(server.terminate().unwrap().success());
    }
    // Where records have gone, the positions say how far it was read.
    fs::remove_dir_all(scratch.path().join("data/segments")).unwrap();
    fs::remove_dir_all(scratch.path().join("data/journal")).unwrap();
    let server = start(scratch.path(), broker, "old");
    client.call(send("old", 1_100..1_110, 1));
    wait_for(&server, "logpond_kafka_stored_total", 10.0);
    expect(&server, "old", 1_100..1_110);
    assert!(server.terminate().unwrap().success());
}

/// Long messages are cut and marked, those without a value are no records, and transactions that were
/// thrown away never happened.
fn odd_messages(broker: &Broker, client: &mut Client) {
    let settings = json!({"max.message.bytes": "8388608"});
    client.call(json!({"do": "create", "topic": "odd", "partitions": 1, "settings": settings}));
    let mut long = send("odd", 0..1, 1);
    long["size"] = json!(2 << 20);
    client.call(long);
    client.call(json!({"do": "null", "topic": "odd"}));
    client
        .call(json!({"do": "transactions", "topic": "odd", "from": 1, "to": 200, "partitions": 1}));
    client.call(send("odd", 200..201, 1));
    let scratch = Scratch::new("kafka-odd").unwrap();
    let server = start(scratch.path(), broker, "odd");
    wait_for(&server, "logpond_kafka_stored_total", 201.0);
    assert_eq!(server.metric("logpond_kafka_empty_total").unwrap(), 1.0);
    let counts = numbers(&server, "odd");
    assert_eq!(
        counts.len(),
        200,
        "the one that was cut is no JSON any more"
    );
    assert!(counts.values().all(|count| *count == 1));
    let (rows, _) = server.query("topic=odd _truncated_bytes:*").unwrap();
    assert_eq!(rows.len(), 1);
    let bytes: u64 = rows[0]["_truncated_bytes"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(bytes > 2 << 20);
    assert!(server.terminate().unwrap().success());
}

/// What becomes much larger when it is decompressed is fetched batch by batch, and what becomes too large
/// stops its partition alone, until Kafka has removed it.
fn large_batches(broker: &Broker, client: &mut Client) {
    const BYTES: u64 = 900_000;
    const COUNT: u64 = 400;
    const HUGE: u64 = 3;
    client.call(json!({"do": "create", "topic": "large", "partitions": 2}));
    let mut keys = json!({"do": "null", "topic": "large", "codec": "gzip"});
    (keys["count"], keys["size"]) = (json!(COUNT), json!(BYTES));
    client.call(keys);
    let scratch = Scratch::new("kafka-large").unwrap();
    let server = start(scratch.path(), broker, "large");
    wait_for(&server, "logpond_kafka_empty_total", COUNT as f64);
    let most = memory_bytes(server.pid(), "VmHWM").unwrap();
    assert!(most < COUNT * BYTES / 2, "{most} bytes of memory");
    client.call(json!({"do": "huge", "topic": "large", "count": HUGE}));
    wait_until("the partition stands still", || {
        server
            .stderr()
            .contains("cannot be read, and the partition stands still")
    })
    .unwrap();
    // The other partition goes on.
    let mut other = send("large", 0..101, 2);
    other["from"] = json!(1);
    client.call(other);
    wait_for(&server, "logpond_kafka_stored_total", 50.0);
    assert_eq!(server.metric("logpond_kafka_reading").unwrap(), 1.0);
    let offset = COUNT + HUGE;
    client.call(json!({"do": "remove_before", "topic": "large", "offset": offset}));
    wait_until("both are read", || {
        server.metric("logpond_kafka_reading").unwrap() == 2.0
    })
    .unwrap();
    let lost = server.metric("logpond_kafka_lost_total").unwrap();
    assert_eq!(lost, HUGE as f64);
    wait_for(&server, "logpond_kafka_stored_total", 100.0);
    expect(&server, "large", 1..101);
    assert!(server.terminate().unwrap().success());
}

/// A topic of the same name is another one, and is read from where it begins.
fn recreated_topics(broker: &Broker, client: &mut Client) {
    client.call(json!({"do": "create", "topic": "anew", "partitions": 1}));
    client.call(send("anew", 0..500, 1));
    let scratch = Scratch::new("kafka-anew").unwrap();
    let server = start(scratch.path(), broker, "anew");
    wait_for(&server, "logpond_kafka_stored_total", 500.0);
    client.call(json!({"do": "delete", "topic": "anew"}));
    wait_until("it is missed", || {
        server.metric("logpond_kafka_reading").unwrap() == 0.0
            || server.stderr().contains("no such topic")
    })
    .unwrap();
    client.call(json!({"do": "create", "topic": "anew", "partitions": 1}));
    // Fewer than before, so that the old position would be beyond the end.
    client.call(send("anew", 500..800, 1));
    wait_for(&server, "logpond_kafka_stored_total", 800.0);
    expect(&server, "anew", 0..800);
    assert!(server.terminate().unwrap().success());
}

/// A broker that goes away is waited for, also one that was not there at the start.
fn restarted_broker(broker: &mut Broker, client: &mut Client) {
    client.call(json!({"do": "create", "topic": "away", "partitions": 2}));
    client.call(send("away", 0..1_000, 2));
    let scratch = Scratch::new("kafka-away").unwrap();
    let server = start(scratch.path(), broker, "away");
    wait_for(&server, "logpond_kafka_stored_total", 1_000.0);
    broker.restart();
    client.call(send("away", 1_000..2_000, 2));
    wait_for(&server, "logpond_kafka_stored_total", 2_000.0);
    expect(&server, "away", 0..2_000);
    assert!(server.terminate().unwrap().success());
}

/// A node that takes a partition over asks all others how far it was read, and waits for who does not
/// answer. Two that read it at once are found out, though neither is ahead.
fn moved_partitions(broker: &Broker, client: &mut Client) {
    client.call(json!({"do": "create", "topic": "moved", "partitions": 1}));
    client.call(send("moved", 0..1_000, 1));
    let data = [(); 2].map(|()| Scratch::new("kafka-moved").unwrap());
    let gossip = ["--gossip", "127.0.0.1:0"];
    let first = start_with(data[0].path(), broker, "moved", &gossip);
    let join = first.address("gossip");
    let second = [&gossip[..], &["--join", &join]].concat();
    let second = TestServer::start(program(), &data[1].path().join("data"), &second).unwrap();
    wait_for(&first, "logpond_kafka_stored_total", 1_000.0);
    wait_until("the nodes have met", || {
        second
            .query("topic=moved")
            .is_ok_and(|(rows, _)| rows.len() == 1_000)
    })
    .unwrap();
    // What the first has of it nobody else can say.
    first.kill();
    assert!(second.terminate().unwrap().success());
    client.call(send("moved", 1_000..1_500, 1));
    let second = start_with(data[1].path(), broker, "moved", &gossip);
    wait_until("it waits", || {
        second
            .stderr()
            .contains("before it is known what each node has")
    })
    .unwrap();
    assert_eq!(second.metric("logpond_kafka_fetched_total").unwrap(), 0.0);
    let join = second.address("gossip");
    let back = [&gossip[..], &["--join", &join]].concat();
    let first = TestServer::start(program(), &data[0].path().join("data"), &back).unwrap();
    wait_for(&second, "logpond_kafka_stored_total", 500.0);
    expect(&second, "moved", 0..1_500);
    // Both are told to read it now, and keep level: one gives it up, and goes on so.
    assert!(first.terminate().unwrap().success());
    let first = start_with(data[0].path(), broker, "moved", &back);
    let both = [&first, &second];
    let read_by = || {
        let reading = |server: &&TestServer| server.metric("logpond_kafka_reading").unwrap() == 1.0;
        both.into_iter().filter(reading).count()
    };
    wait_until("both read it", || read_by() == 2).unwrap();
    client.call(send("moved", 1_500..1_600, 1));
    wait_until("one of them gives it up", || read_by() == 1).unwrap();
    let says = |server: &&TestServer| {
        server
            .stderr()
            .contains("another node reads this partition")
    };
    wait_until("it says so", || both.iter().any(says)).unwrap();
    assert_eq!(both.into_iter().filter(says).count(), 1);
    let reads = both.into_iter().find(|server| !says(server)).unwrap();
    client.call(send("moved", 1_600..1_700, 1));
    wait_for(reads, "logpond_kafka_offset", 1_700.0);
    let counts = numbers(&first, "moved");
    for (number, count) in &counts {
        let most = if (1_500..1_600).contains(number) {
            2
        } else {
            1
        };
        assert!(
            (1..=most).contains(count),
            "{number} is there {count} times"
        );
    }
    assert_eq!(counts.len(), 1_700);
    assert!(first.terminate().unwrap().success());
    assert!(second.terminate().unwrap().success());
}

/// Copies of a lost node's records may have holes: what only that node had is read again, and nothing else.
fn lost_nodes(broker: &Broker, client: &mut Client) {
    client.call(json!({"do": "create", "topic": "lost", "partitions": 1}));
    // Three hundred messages, a hundred in each of three directories.
    let parts = [(); 3].map(|()| Scratch::new("kafka-part").unwrap());
    for (at, part) in parts.iter().enumerate() {
        let from = at as u64 * 100;
        client.call(send("lost", from..from + 100, 1));
        let positions = part.path().join("data/kafka/positions");
        if let Some(before) = at.checked_sub(1) {
            fs::create_dir_all(positions.parent().unwrap()).unwrap();
            let before = parts[before].path().join("data/kafka/positions");
            fs::copy(before, positions).unwrap();
        }
        let server = start(part.path(), broker, "lost");
        wait_for(&server, "logpond_kafka_stored_total", 100.0);
        server.compact().unwrap();
        assert!(server.terminate().unwrap().success());
    }
    // A node of a cluster in which another was lost has the first and the last of them.
    let data = Scratch::new("kafka-lost").unwrap();
    let gossip = ["--gossip", "127.0.0.1:0"];
    let node = TestServer::start(program(), &data.path().join("data"), &gossip).unwrap();
    let address = node.address("gossip");
    let join = [&gossip[..], &["--join", &address]].concat();
    let gone = Scratch::new("kafka-gone").unwrap();
    let gone = TestServer::start(program(), &gone.path().join("data"), &join).unwrap();
    wait_until("the nodes have met", || {
        let status = node.get("/api/v1/cluster").unwrap();
        status.matches("\"live\"").count() == 2
    })
    .unwrap();
    let name = gone.address("gossip");
    gone.kill();
    wait_until("it is given up", || {
        let mut forget = Command::new(program());
        forget.args(["cluster", "forget", &name, "--addr", &node.url()]);
        forget.output().unwrap().status.success()
    })
    .unwrap();
    assert!(node.terminate().unwrap().success());
    for part in [&parts[0], &parts[2]] {
        for segment in files_below(&part.path().join("data/segments"), ".parquet") {
            let to = data.path().join("data/segments");
            fs::copy(&segment, to.join(segment.file_name().unwrap())).unwrap();
        }
    }
    let node = start_with(data.path(), broker, "lost", &gossip);
    wait_for(&node, "logpond_kafka_offset", 300.0);
    expect(&node, "lost", 0..300);
    assert_eq!(node.metric("logpond_kafka_stored_total").unwrap(), 100.0);
    node.said("no node has all from 100 on");
    client.call(send("lost", 300..310, 1));
    wait_for(&node, "logpond_kafka_stored_total", 110.0);
    expect(&node, "lost", 0..310);
    assert!(node.terminate().unwrap().success());
}
