//! Batches with names, sent more than once.

use std::thread;

use super::TestServer;
use super::client::{Answer, begin, compact, get, metric, read_chunk, request};

const EPOCH: &str = "0123456789abcdef0123456789abcdef";

fn send(server: &TestServer, name: &str, body: &[u8]) -> Answer {
    let headers = [("Content-Type", "text/plain"), ("Logpond-Batch", name)];
    request(server.http(), "POST", "/api/v1/push", &headers, body)
}

fn name(sequence: u64, attempt: u32) -> String {
    format!("{EPOCH}-{sequence}-{attempt}@1763780000000")
}

fn count(server: &TestServer) -> u64 {
    let (_, trailer) = get(server.http(), "/api/v1/query?count=true&from=@0").rows();
    assert_eq!(trailer["complete"], true);
    trailer["rows"].as_u64().unwrap()
}

#[test]
fn a_batch_sent_again_is_there_once() {
    let mut server = TestServer::new();
    for attempt in [0, 1, 1, 2] {
        let answer = send(&server, &name(0, attempt), b"a\nb\n");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["accepted"], 2, "as at the first time");
    }
    assert_eq!(send(&server, &name(1, 0), b"c\n").json()["accepted"], 1);
    let answer = send(&server, &name(1, 0), b"c\n");
    assert!(
        answer.head.to_ascii_lowercase().contains("logpond-load: "),
        "{}",
        answer.head
    );
    assert_eq!(count(&server), 3);
    assert_eq!(metric(server.http(), "logpond_ingest_resends_total"), 3);
    assert_eq!(
        metric(server.http(), "logpond_ingest_resends_known_total"),
        4
    );
    // After a restart it is known too, or stored already.
    server.restart();
    assert_eq!(send(&server, &name(1, 1), b"c\n").json()["accepted"], 1);
    assert_eq!(count(&server), 3);
}

/// All at once: one writes it, the others wait for the same sync.
#[test]
fn a_batch_that_is_being_written_is_joined() {
    let server = TestServer::new();
    thread::scope(|scope| {
        for attempt in 0..8 {
            let server = &server;
            scope.spawn(move || {
                let answer = send(server, &name(0, attempt), b"a\nb\n");
                assert_eq!(answer.json()["accepted"], 2);
            });
        }
    });
    assert_eq!(count(&server), 2);
}

#[test]
fn names_that_make_no_sense_are_refused() {
    let server = TestServer::new();
    let far = format!("{}0", name(0, 0));
    for name in ["", "x", "1-2-3", &name(0, 0).to_uppercase(), &far] {
        let answer = send(&server, name, b"a\n");
        assert_eq!(answer.status, 400, "{name}");
        let message = answer.json()["error"]["message"].to_string();
        let explains = message.contains("logpond-batch") && message.contains("EPOCH");
        assert!(explains, "{message}");
    }
    let twice = [
        ("Content-Type", "text/plain"),
        ("Logpond-Batch", &*name(0, 0)),
        ("Logpond-Batch", &*name(1, 0)),
    ];
    let answer = request(server.http(), "POST", "/api/v1/push", &twice, b"a\n");
    assert_eq!(answer.status, 400);
}

/// A batch with a name is stored as a whole or not at all; what is too large for that is refused.
#[test]
fn a_batch_with_a_name_has_bounds() {
    let server = TestServer::new();
    let answer = send(&server, &name(0, 0), &vec![b'\n'; 65_537]);
    assert_eq!(answer.status, 400);
    let message = answer.json()["error"]["message"].to_string();
    assert!(message.contains("65536 entries"), "{message}");
    assert_eq!(send(&server, &name(0, 0), &vec![b'\n'; 65_536]).status, 200);
    assert_eq!(count(&server), 65_536);
}

/// Every kind of answer has the six records of three batches, each once.
fn assert_exact(server: &TestServer) {
    assert_eq!(count(server), 6);
    let rows = |path: &str| get(server.http(), path).rows();
    let lines = |rows: &[serde_json::Value]| {
        let lines = rows.iter().map(|row| row["n"].as_u64().unwrap());
        lines.collect::<Vec<_>>()
    };
    for direction in ["forward", "backward"] {
        let path = format!("/api/v1/query?from=@0&direction={direction}");
        let (found, _) = rows(&path);
        let mut numbers = lines(&found);
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    }
    let (found, trailer) = rows("/api/v1/query?from=@0&q=n=2&before=2&after=2");
    assert_eq!(
        (lines(&found), &trailer["rows"]),
        (vec![0, 1, 2, 3, 4], &1.into())
    );
    let (top, trailer) = rows("/api/v1/top?from=@0&field=n");
    assert!(top.iter().all(|row| row["count"] == 1), "{top:?}");
    assert_eq!((top.len(), &trailer["rows"]), (6, &6.into()));
    let path = "/api/v1/histogram?from=2026-03-02T00:00:00Z&to=2026-03-02T00:01:00Z&step=1m";
    let (buckets, _) = rows(path);
    assert_eq!(buckets[0]["count"], 6);
    let (fields, _) = rows("/api/v1/fields?from=@0&q=n%3C6");
    let of_n = fields.iter().find(|field| field["field"] == "n").unwrap();
    assert_eq!(of_n["rows"], 6);
}

fn batch(sequence: u64) -> Vec<u8> {
    let lines = [2 * sequence, 2 * sequence + 1];
    let line = |n: u64| format!("{{\"time\":\"2026-03-02T00:00:0{n}Z\",\"n\":{n}}}\n");
    lines.map(line).concat().into_bytes()
}

/// What went into a segment is not in the journal's memory, but in the segment's footer.
#[test]
fn batches_in_segments_count_once() {
    let mut server = TestServer::new();
    for sequence in 0..3 {
        assert_eq!(
            send(&server, &name(sequence, 0), &batch(sequence)).status,
            200
        );
    }
    compact(server.http());
    assert_exact(&server);
    // Copies in the journal, of batches in a segment.
    for sequence in [0, 2] {
        assert_eq!(
            send(&server, &name(sequence, 1), &batch(sequence)).status,
            200
        );
    }
    assert_eq!(
        metric(server.http(), "logpond_ingest_resends_known_total"),
        0
    );
    assert_exact(&server);
    server.restart();
    assert_exact(&server);
    for attempt in [1, 2] {
        assert_eq!(send(&server, &name(0, attempt), &batch(0)).status, 200);
    }
    // In segments of their own or together with their batch, and once more.
    compact(server.http());
    assert_exact(&server);
    assert_eq!(send(&server, &name(1, 1), &batch(1)).status, 200);
    assert_eq!(send(&server, &name(1, 2), &batch(1)).status, 200);
    assert_exact(&server);
    compact(server.http());
    server.restart();
    assert_exact(&server);
}

/// An original that comes after its copy, from a buffer on the way, takes the copy's place.
#[test]
fn an_original_may_come_late() {
    let server = TestServer::new();
    assert_eq!(send(&server, &name(0, 2), &batch(0)).status, 200);
    compact(server.http());
    assert_eq!(send(&server, &name(0, 1), &batch(0)).status, 200);
    assert_eq!(count(&server), 2);
    compact(server.http());
    for sequence in [0, 1, 2] {
        assert_eq!(
            send(&server, &name(sequence, 0), &batch(sequence)).status,
            200
        );
    }
    assert_exact(&server);
    compact(server.http());
    assert_exact(&server);
}

#[test]
fn followers_see_no_copies() {
    let server = TestServer::new();
    assert_eq!(send(&server, &name(0, 0), &batch(0)).status, 200);
    compact(server.http());
    let mut reader = begin(server.http(), "/api/v1/query?from=@0&follow=true");
    let mut seen = Vec::new();
    let mut read_to = |count: usize, seen: &mut Vec<u64>| {
        while seen.len() < count {
            let chunk = read_chunk(&mut reader).expect("more rows");
            for line in std::str::from_utf8(&chunk).unwrap().lines() {
                let row: serde_json::Value = serde_json::from_str(line).unwrap();
                seen.push(row["n"].as_u64().unwrap());
            }
        }
    };
    read_to(2, &mut seen);
    // A copy of what is stored is passed over, one of what is new is not.
    assert_eq!(send(&server, &name(0, 1), &batch(0)).status, 200);
    assert_eq!(send(&server, &name(1, 1), &batch(1)).status, 200);
    assert_eq!(send(&server, &name(2, 0), &batch(2)).status, 200);
    read_to(6, &mut seen);
    assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn what_has_become_of_batches_can_be_asked() {
    let mut server = TestServer::new();
    for sequence in [0, 1, 2, 5] {
        let answer = send(&server, &name(sequence, 0), b"a\n").json();
        assert_eq!(
            (&answer["durable"], &answer["replicated"]),
            (&true.into(), &true.into())
        );
    }
    let ask = |server: &TestServer, rest: &str| {
        get(
            server.http(),
            &format!("/api/v1/batches?epoch={EPOCH}{rest}"),
        )
    };
    let runs = |server: &TestServer, rest: &str| {
        let answer = ask(server, rest).json();
        assert_eq!(
            answer["durable"], answer["replicated"],
            "one copy is all there is"
        );
        answer["durable"].to_string()
    };
    for is_stored in [false, true] {
        if is_stored {
            compact(server.http());
        }
        assert_eq!(runs(&server, "&run=0-9"), "[[0,2],[5,5]]");
        assert_eq!(runs(&server, "&run=1-1&run=4-6"), "[[1,1],[5,5]]");
        assert_eq!(runs(&server, "&run=3-4"), "[]");
        assert_eq!(runs(&server, ""), "[]");
    }
    for wrong in ["&run=x", "&run=3-2", "&run=1", "&other=1"] {
        assert_eq!(ask(&server, wrong).status, 400, "{wrong}");
    }
    assert_eq!(
        get(server.http(), "/api/v1/batches?epoch=7&run=0-1").status,
        400
    );
    // A fast push promises less.
    let headers = [("Content-Type", "text/plain")];
    let path = "/api/v1/push?durable=false";
    let answer = request(server.http(), "POST", path, &headers, b"a\n").json();
    assert_eq!(
        (&answer["durable"], &answer["replicated"]),
        (&false.into(), &false.into())
    );
    // What left the journal is not remembered over a restart.
    server.restart();
    assert_eq!(runs(&server, "&run=0-9"), "[]");
}

fn bulk(server: &TestServer, body: &str) {
    let headers = [("Content-Type", "application/x-ndjson")];
    let answer = request(server.http(), "POST", "/a/_bulk", &headers, body.as_bytes());
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["errors"], false);
    assert_eq!(answer.json()["items"].as_array().map(Vec::len), Some(2));
}

/// A request of Elasticsearch's clients names its documents, and so itself.
#[test]
fn documents_with_ids_are_there_once() {
    let mut server = TestServer::new();
    let of = |id: &str, n: u32| {
        format!(
            "{{\"create\":{{\"_id\":\"{id}\"}}}}\n{{\"n\":{n}}}\n{{\"create\":{{\"_id\":\"x\"}}}}\n{{}}\n"
        )
    };
    for _ in 0..3 {
        bulk(&server, &of("1", 1));
    }
    assert_eq!(count(&server), 2);
    assert_eq!(
        metric(server.http(), "logpond_ingest_resends_known_total"),
        2
    );
    // Other ones by the same ids are others.
    bulk(&server, &of("1", 2));
    assert_eq!(count(&server), 4);
    server.restart();
    bulk(&server, &of("1", 1));
    assert_eq!(count(&server), 4);
    compact(server.http());
    bulk(&server, &of("1", 1));
    assert_eq!(count(&server), 4);
    server.restart();
    bulk(&server, &of("1", 2));
    assert_eq!(count(&server), 4, "it is in a segment");
    // Without ids they are others each time.
    for _ in 0..2 {
        bulk(
            &server,
            "{\"create\":{}}\n{}\n{\"create\":{\"_id\":\"1\"}}\n{}\n",
        );
    }
    assert_eq!(count(&server), 8);
}

fn push_to_loki(server: &TestServer, line: &str) -> Answer {
    let body = format!(
        r#"{{"streams":[{{"stream":{{"app":"shop"}},"values":[["1772409600000000000","{line}"]]}}]}}"#
    );
    let headers = [("Content-Type", "application/json")];
    let path = "/loki/api/v1/push";
    request(server.http(), "POST", path, &headers, body.as_bytes())
}

/// Loki's clients send what was not answered in time again, perhaps while it is being stored.
#[test]
fn a_push_of_lokis_clients_is_there_once() {
    let server = TestServer::new();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(push_to_loki(&server, "started").status, 204));
        }
    });
    assert_eq!(count(&server), 1);
    assert_eq!(push_to_loki(&server, "stopped").status, 204);
    compact(server.http());
    assert_eq!(push_to_loki(&server, "started").status, 204);
    assert_eq!(count(&server), 2);
    assert_eq!(
        metric(server.http(), "logpond_ingest_resends_known_total"),
        8
    );
}

/// The answer to a push that is sent again is that to the first one.
#[test]
fn what_is_wrong_with_a_push_is_said_each_time() {
    let server = TestServer::new();
    let long = "x".repeat(2 << 20);
    let body = format!(
        r#"{{"streams":[{{"stream":{{"app":"shop"}},"values":[["1772409600000000000","{long}"],["1772409600000000001","started"]]}}]}}"#
    );
    let headers = [("Content-Type", "application/json")];
    for _ in 0..2 {
        let path = "/loki/api/v1/push";
        let answer = request(server.http(), "POST", path, &headers, body.as_bytes());
        assert_eq!(answer.status, 400);
    }
    assert_eq!(count(&server), 1);
}

fn post(server: &TestServer, path: &str, content_type: &str, body: &str) {
    let headers = [("Content-Type", content_type)];
    let answer = request(server.http(), "POST", path, &headers, body.as_bytes());
    assert!(
        matches!(answer.status, 200 | 204),
        "{path}: {} {:?}",
        answer.status,
        answer.body
    );
}

/// One of each kind of request that senders send again without saying so.
fn post_each(server: &TestServer) {
    assert_eq!(push_to_loki(server, "started").status, 204);
    let bulk = "{\"create\":{}}\n{\"@timestamp\":\"2026-03-02T00:00:00.123Z\",\"n\":1}\n";
    post(server, "/a/_bulk", "application/x-ndjson", bulk);
    let record = r#"{"timeUnixNano":"1772409600000000007","body":{"stringValue":"started"}}"#;
    let export = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{record}]}}]}}]}}"#);
    post(server, "/v1/logs", "application/json", &export);
    let event = r#"{"event":"started","time":1772409600.125}"#;
    post(
        server,
        "/services/collector/event",
        "application/json",
        event,
    );
}

/// The memory of senders lasts over restarts and compactions, in any order.
#[test]
fn requests_are_there_once_after_restarts_and_compactions() {
    let mut server = TestServer::new();
    post_each(&server);
    post_each(&server);
    assert_eq!(count(&server), 4);
    let cold = |server: &TestServer| {
        let path = "/api/v1/compact?wait=true&cold=true";
        request(server.http(), "POST", path, &[], b"");
    };
    for step in 0..6 {
        match step {
            0 | 1 | 4 => server.restart(),
            2 => compact(server.http()),
            _ => cold(&server),
        }
        if step % 2 == 1 {
            post_each(&server);
            assert_eq!(count(&server), 4, "step {step}");
        }
    }
    // An event that differs in its time alone is another one.
    let event = r#"{"event":"started","time":1772409600.126}"#;
    post(
        &server,
        "/services/collector/event",
        "application/json",
        event,
    );
    // An event without a time of its own, or with a coarse one, is another one each time.
    for event in [r#"{"event":"a"}"#, r#"{"event":"a","time":1772409600}"#] {
        for _ in 0..2 {
            post(
                &server,
                "/services/collector/event",
                "application/json",
                event,
            );
        }
    }
    assert_eq!(count(&server), 9);
}
